"""Statements of a sentence about the options: their form, stance and option.

The rules parse a sentence word by word (`words`). From the mark of an option they follow the words
before it ("the answer is", "I choose", "Answer:") and the words after it ("is correct"). The other
words of the clause determine the stance (`clauses`).
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from .clauses import FOREIGN, OURS, VERB, Clauses, Stance
from .patterns import Patterns, WordSets
from .words import WordKind as K
from .words import words_of


class Statement(NamedTuple):
    """Claim about an option.

    Attributes:
        rule: Id of its form.
        marks: Mark of the option, or two marks if two options are claimed at once.
        stance: Stance of the claim.
        revises: Whether the claim retracts an earlier one.
        personal: Whether the reply speaks of itself: "I choose", "my answer".
        at: Position of the mark in the text.
    """

    rule: str
    marks: str
    stance: Stance
    revises: bool = False
    personal: bool = True
    at: int = -1


_OptionClaim = tuple[str, Stance, int]
"""Rule, stance by the form, and position of the word that leads to the option."""

_THEIRS = FOREIGN | K.THEIRS
_CHOSEN = K.CHOSE | K.THEIRS | K.SAY
_ADJECTIVE = K.FILL | K.PAST | K.OWN | K.GOOD | K.FAIR | _THEIRS
_PASSABLE_KINDS = K.FILL | K.PAST | K.OWN | K.NOUN | K.MINE | _THEIRS
_GIVING_UP = ("abandon", "relinquish", "retract", "withdraw")
_FAR = 16
P = Patterns("statements")
W = WordSets()


@lru_cache(4096)  # marked sentences often repeat
def statements(sentence: str) -> tuple[tuple[int, Statement], ...]:
    """Return the claims of a marked sentence in lower case, each with the number of its mark."""
    parsed_sentence = Sentence(*words_of(sentence))
    claims = enumerate(map(parsed_sentence.claim, parsed_sentence.marks))
    return tuple((number, claim) for number, claim in claims if claim is not None)


class Sentence(Clauses):
    """Sentence with its claims about the options."""

    def claim(self, at: int) -> Statement | None:
        """Return the claim about the option at a mark."""
        begin = self.clause(at)
        claim = self._read_arrow_or_all_but(at) or self._read_comment(at)
        claim = claim or self._read_lead(at, begin)
        if claim is None:
            return None
        rule, stance, lead = claim
        if stance in ("own", "hedged"):
            stance = self.stance(rule, begin, lead, at, stance)
        beside = self._adjacent(at)
        if rule == "it-is" and "\ue040" <= self.words[at] <= "\ue07f":
            rule = "identified"  # "the charge is 32 C" need not be the answer
        is_turn = rule == "changed" or self.has(K.TURN | K.CHANGE, 0, at)
        is_mine = rule == "is-correct" and "my" in self.words[at + 1 : at + 5]
        personal = is_mine or self.has(K.SELF | K.MINE, begin, at)
        return Statement(rule, self.words[at] + beside, stance, is_turn, personal)

    # ---- "C -> A", "all but C" ----

    def _read_arrow_or_all_but(self, at: int) -> _OptionClaim | None:
        words = self.words
        arrow = next((n for n in range(at - 1, at - 4, -1) if n > 0 and words[n] in W.arrows), 0)
        if arrow and self.has(K.MARK, arrow - 1 - (words[arrow - 1] in W.quotes), arrow):
            return "changed", "own", 0
        if self.has(K.CHANGE, 0, at):
            first = max((n for n in self.marks if n < at), default=0)
            if words[at - 1] in ("to", "into") and at - first < 4 and words[first - 1] == ":":
                return "changed", "own", 0
        j = at - 1
        while j > 0 and self.kinds[j] & (K.FILL | K.NOUN) and words[j] not in W.but and at - j < 4:
            j -= 1
        if j <= 0 or words[j] not in W.but:
            return None
        if not self.says(W.all_words, j - 6, j) or self.has(K.MARK, j - 6, j):
            return None
        if self.says(W.none_words, j - 6, j):
            if not self._is_none(j, at):
                return None
            return ("left", "denied", at) if self.is_rejected(at) else ("all-but", "own", -1)
        is_judged = self.has(K.BAD | K.DOUBT | K.GOOD, 0, self.size)
        if self.says(W.any, j - 3, j) and (self.is_denied(0, j - 1) or self.says(W.hard, 0, j)):
            # "I wouldn't choose anything other than B", "hard to call anything but B"
            is_judged = self.has(K.SELF | K.BE, 0, j)
        return ("all-but", "own", -1) if is_judged else ("left", "denied", at)

    def _is_none(self, end: int, at: int) -> bool:
        """Return whether "but" follows "none of the others"; not "there is no fever, but B"."""
        words = self.words
        n = next(n for n in range(end - 1, -1, -1) if words[n] in W.none_words)
        of_options = self.has(K.NOUN, n + 1, end) or self.says(W.listed, n + 1, end)
        of_options |= words[n] != "no" and end - n < 3
        leads = n == 0 or words[n - 1] in W.leads_to_none or self.has(K.SELF, 0, n)
        in_past = self.says(W.was, at + 1, at + 2)
        return of_options and leads and not in_past and "," not in words[n:end]

    # ---- "The answer is B", "I choose B", "Answer: B", "B" ----

    def _read_lead(self, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim by the words before the option."""
        words, kinds = self.words, self.kinds
        noun, is_linked, is_glossed, j = -1, False, False, at - 1
        while j >= begin and at - j < _FAR:
            word, kind = words[j], kinds[j]
            if j == at - 1 and self._is_intended(at):
                return "choice", "own", j
            if j == at - 1 and self._is_unbeaten(at, begin):
                return "choice", "own", begin - 1
            if kind & K.MARK:
                j -= words[j - 1 : j] in (["("], ['"'], ["my"], ["the"])
                if j <= begin or not (words[j - 1] == "from" or kinds[j - 1] & K.CHANGE):
                    return None
                j -= 1 + (words[j - 1] == "from")
                continue
            if word == "without" and words[at + 1 : at + 2] == ["being"]:
                return None  # "A was chosen without B being considered"
            if kind & (K.AWAY | K.NEGATION) and not kind & K.BE and not self._is_aside(j):
                if word in W.nothing or (kinds[0] & K.CONDITION and "," in words[j:at]):
                    return None  # "It adds nothing that B does not explain"
                rule = "left" if kind & K.NEGATION else "set-aside"
                return None if self.is_denied(begin, j - 1) else (rule, "denied", j)
            if word == "option" and words[j - 1] == ":":
                pass  # "Decision: option B"
            elif kind & K.NOUN and not self._is_verb(j):
                noun = j if noun < 0 else noun
            elif kind & K.BE and not (kind & K.STICK and self._is_verb(j)):
                claim = None if word == "being" else self._read_copula(j, at, begin, noun)
                is_vague = is_glossed and claim is not None and claim[0] == "verdict"
                return None if is_vague and not self.says(W.superlatives, begin, j) else claim
            elif kind & K.OWN and kinds[j + 1] & K.NOUN:
                pass  # "selected option: B"
            elif kind & VERB and not (kind & (K.FILL | K.THEIRS | K.OWN) and not self._is_verb(j)):
                return self._read_choice(j, at, begin)
            elif kind & K.EVIDENCE:
                if word == "leads" and (j == at - 1 or self.has(K.MARK, j - 2, j)):
                    return None  # "A leads B", "A leads to B"
                if word in W.makes and words[at + 1 : at + 2] in (["the"], ["a"], ["an"]):
                    if not self.has(K.NOUN | K.GOOD | K.FAIR, at + 2, at + 5):
                        return None  # "which makes B the one that is missed"
                then = at + 1 + self.says(W.quotes, at + 1, at + 2)
                fitting = (
                    K.GOOD | K.FAIR | K.BAD | K.FILL | K.SIGN | K.NOUN | K.MARK | K.SO | K.BREAK
                )
                if word in W.makes and then < self.size and not kinds[then] & fitting:
                    return None  # "This makes B obsolete"
                if word in W.makes and self.has(K.BAD, at + 2, at + 5):
                    return "verdict", "denied", j  # "This makes B the wrong choice"
                is_denied = self.has(K.NEGATION, at + 2, at + 6)
                is_denied = is_denied and self.says(W.contrasts, at + 1, at + 3)
                if is_denied or "initially" in words[begin:j]:
                    return None  # "It looks like B but it is not", "At first it sounds like B"
                if words[j - 1] == "to" and "without" in words[begin:j]:
                    return None  # "with no history to suggest B"
                if kinds[j - 1] & K.MODAL and words[j - 2] in ("that", "which"):
                    return None  # "the flush that might point to B"
                rule = "it-is" if words[j] in ("leaves", "leaving") else "verdict"
                stance: Stance = "conditional" if kinds[j - 1] & K.MODAL else "own"
                if words[j - 1] == "less":
                    stance = "denied"  # "It is less consistent with B"
                return (rule, stance, j) if self._is_closed(at) else None
            elif word == "agreed" and j == begin:
                break
            elif kind & K.SAY and not kind & _PASSABLE_KINDS:
                if word in W.settles and ":" in words[j:at]:
                    return "answer-label", "own", j  # "The free air settles it: B"
                is_direct = not self.says(W.places, j + 1, at) and self._is_closed(at)
                is_own = is_direct and word in W.think and self.has(K.SELF, begin, j)
                return "it-is" if is_own else "said", "own", j
            elif word in W.arrows and kinds[j - 1] & K.NOUN:
                pass  # "Answer -> B"
            elif not kind & _PASSABLE_KINDS and not kind & K.NEGATION:
                is_gloss = words[at - 1] == "(" or words[at - 2 : at] == [",", "option"]
                is_gloss = is_gloss and at - j < 5 and words[at] < "\ue040"
                if not is_gloss or is_linked or noun >= 0:
                    break
                is_glossed = True  # "I stay with Legionella (C)"
            is_linked = is_linked or (word in W.links and noun < 0)
            j -= 1
        is_answer = noun >= 0 and (words[noun] in ("answer", "ans") or words[noun - 1] == "my")
        if (is_linked or is_answer) and not is_glossed:
            return self._read_label(noun, at, begin)
        if self._is_alone(at, begin):
            ends = at + 3 >= self.size or words[at + 3] in ".!;"
            is_concluded = words[at + 1 : at + 2] == [","] and self.says(
                W.concluding, at + 2, at + 3
            )
            other = next((n for n in self.marks if n > at), at)
            is_contrasted = self._is_contrasted(at) and self.is_end(other + 1)
            is_verdict = (is_concluded and ends) or (is_contrasted and words[at - 1] != "for")
            return "verdict" if is_verdict else "bare", "own", begin  # "B, then.", "B not C"
        if words[at - 1 : at] == [","] and at + 3 > self.size and self.is_end(at + 1):
            is_chosen = words[at] in words[:at] or self.says(W.among, 0, at)
            is_chosen = is_chosen or self.has(K.NOUN, 0, at)
            return ("verdict", "own", at) if is_chosen else None  # "Between A and C, C."
        return None

    def _is_intended(self, at: int) -> bool:
        """Return whether an option is what the reply would do: "I would respect her refusal"."""
        words = self.words
        is_plan = words[at - 1] in W.plans
        is_plan = is_plan or (words[at - 1] in W.would and self.has(K.SELF, at - 2, at - 1))
        return is_plan and "\ue040" <= words[at] < "\ue080"

    def _is_unbeaten(self, at: int, begin: int) -> bool:
        """Return whether nothing is above an option: "nothing on the list beats B"."""
        words = self.words
        is_compared = words[at - 1] in ("than", "to") and words[at - 2] in W.better
        is_above = is_compared or words[at - 1] in W.beats
        return is_above and not {"nothing", "none"}.isdisjoint(words[max(begin, at - 9) : at])

    def _is_alone(self, at: int, begin: int) -> bool:
        """Return whether a clause contains only the option: "So B.", "B, because ..."."""
        words, kinds = self.words, self.kinds
        if not all(kind & (K.SO | K.SIGN) for kind in kinds[begin:at]):
            return False
        if words[at - 1] == "for" and self.says(W.apologies, begin, at):
            return False  # "I apologize for B"
        j = at + 1
        while j < self.size and (words[j] in W.quotes or words[j] in W.trailing):
            j += 1
        if j >= self.size or words[j] in ".!?":
            return True
        if words[j] in W.joins and self._adjacent(at):
            return words[at] < "\ue040"
        is_pause = words[j] in (",", "-")
        if words[at - 1] == "for" and kinds[j] & K.SELF:
            return False  # "For B I'd expect a rash"
        if kinds[j] & K.STICK or self._is_contrasted(j - 1):
            return True
        if kinds[j] & K.NEGATION or words[j] in ("vs", "versus"):
            return False  # "B no longer fits", "B versus C"
        j += is_pause
        pause = next((n for n in range(j, self.size) if is_pause and words[n] == ","), self.size)
        if self.has(K.MODAL | K.BE, pause + 1, pause + 2):
            return False  # "B, as suggested before, would not be safe"
        going_on = K.AWAY | K.CONDITION | K.CONCESSION | K.SELF | K.BREAK
        going_on |= K.NEGATION if is_pause else 0
        if words[j : j + 1] == ["with"] and self.has(K.BE | K.MODAL, j, self.size):
            return False  # "B with sampling is the next step"
        j += words[j : j + 1] == ["and"] and self.has(K.SELF, j + 1, j + 2)
        return j >= self.size or bool(kinds[j] & going_on) or words[j] in W.after

    def _is_contrasted(self, at: int) -> bool:
        """Return whether "not" and another option follow: "B not C", "B and not C"."""
        j = at + 1 + (self.words[at + 1 : at + 2] in ([","], ["and"]))
        return self.words[j : j + 1] == ["not"] and self.has(K.MARK, j + 1, j + 2)

    def _read_owner(self, noun: int, begin: int, end: int) -> Stance:
        """Return whose answer a noun means, by the words around it: "the checker's answer"."""
        words, start = self.words, max(begin, noun - 6)
        articles = [j for j in range(start, noun) if words[j] in W.articles]
        before, behind = self._union(articles[-1] if articles else start, noun), 0
        is_best = before & (K.GOOD | K.FAIR) and words[noun + 1 : noun + 2] == ["by"]
        if W.about.isdisjoint(words[noun + 1 : noun + 2]) and not is_best:
            behind = self._union(noun + 1, end)
        if any(kind & _THEIRS and not kind & OURS for kind in (before, behind)):
            return "reported"
        is_renewed = self.says(W.renewal_words, max(begin, noun - 7), end)
        return "past" if (before | behind) & K.PAST and not is_renewed else "own"

    def _read_label(self, noun: int, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim of a label before the option: "Final answer: B", "Runner-up: C"."""
        words = self.words
        labelled = words[at - 1] in (":", "(") and words[at] >= "\ue080"
        if words[at - 1] == ":" and words[at + 1 : at + 2] == [":"] and noun < 0:
            return None  # "Here is how they compare: A: ..."
        if not labelled and not self._is_closed(at):
            return None
        is_linked = noun < 0 or self.says(W.links, noun + 1, at)
        if not is_linked and self.is_rejected(at):
            return "answer-label", "denied", begin - 1  # "The answer B was not considered"
        if noun >= 0:
            final = words[noun - 1 : noun] == ["final"]
            rule = "final-answer" if final else "answer-label"
            return rule, self._read_owner(noun, begin, at), noun
        link = next(j for j in range(at - 1, -1, -1) if words[j] in W.links)
        naming_kinds = self._union(begin, link)
        if link - begin > 6 and words[link] == ":":
            theirs = self._is_reported(begin, link) and not self.has(K.SELF, begin, link)
            return "verdict", "reported" if theirs else "own", begin - 1
        if naming_kinds & (_THEIRS | K.BAD | K.NEGATION):
            return "label", "reported", begin
        is_renewed = naming_kinds & (K.TURN | K.CHANGE) or self.says(W.renewal_words, begin, link)
        if words[link] == ":" and naming_kinds & K.PAST and not is_renewed:
            return "label", "past", begin  # "Answer in the first round: B"
        ours = naming_kinds & (OURS | K.TURN | K.OWN | K.GOOD | K.CHOSE | K.CHANGE)
        beside = all(kind & (K.SIGN | K.NOUN) for kind in self.kinds[link + 1 : at])
        if ours and beside and link - begin < 6:
            return "answer-label", "own", begin
        return "verdict", "past" if naming_kinds & K.PAST else "own", begin

    def _read_copula(self, j: int, at: int, begin: int, inner: int) -> _OptionClaim | None:
        """Return the claim of a form of "be" before the option."""
        words, kinds = self.words, self.kinds
        if self.says(W.places, j + 1, at) or (j > begin and kinds[j - 1] & K.MARK):
            return None  # "9% is the number in B", "B is my choice, A the other"
        if j and words[j - 1] in W.likewise and words[j] in W.equally:
            return None  # "A is fine and so is B"
        if words[j - 1] == "which" and not self.is_end(at + 1):
            return None  # "mild vasodilation, which is B to a lesser degree"
        if words[j] == "that's" and words[j - 1] == "-" and j:
            return "verdict", "own", j  # "E mediates the uptake - that's option B"
        was = words[j] in W.was
        modal = self.has(K.MODAL, j - 2, j)
        unsure = modal and self.says(W.unsure, j - 3, j) and not self._adjacent(at)
        stance: Stance = "conditional" if unsure else "hedged" if was or modal else "own"
        heads = (n for n in range(j - 1, begin - 1, -1) if kinds[n] & K.NOUN)
        # "the reason for her choice" is another noun's
        noun = next((n for n in heads if not self._is_attribute(n)), -1)
        if noun < 0 and words[inner : inner + 1] == ["option"] and not self._is_closed(at):
            return None  # "B it is, as option C would be fatal"
        if noun < 0 and inner < 0:
            if words[at - 1] != ":" and not self._is_closed(at):
                return None
            if words[at - 1] == ":" and "?" not in words[at:]:  # "The cause is:\n\nB. ..."
                return "verdict", "own" if stance == "own" else "hedged", begin - 1
            if self.says(W.lesser, begin, j):
                return "verdict", "denied", j  # "The weaker of the two is B"
            plain = K.SO | K.FILL | K.SELF | K.SAY | K.MODAL
            is_plain = all(kind & plain for kind in kinds[begin:j])
            return "it-is" if is_plain else "verdict", stance, j
        start, end = (begin, j) if noun >= 0 else (j + 1, inner)
        noun = noun if noun >= 0 else inner
        whose = self._read_owner(noun, start, end)
        if whose != "own":
            return "answer-is", whose, j
        final = words[noun - 1 : noun] == ["final"] and not was
        return "final-answer" if final else "answer-is", stance, j

    def _is_attribute(self, noun: int) -> bool:
        """Return whether a noun belongs to another one: "the reason for her choice"."""
        for j in range(noun - 1, max(-1, noun - 7), -1):
            if self.words[j] in W.of or self.words[j] in "),;:":
                return self.words[j] in W.of
        return False

    def _read_choice(self, j: int, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim of a verb of choice before the option."""
        words, kinds = self.words, self.kinds
        is_own, is_foreign = self.has(K.SELF, begin, j), self.has(FOREIGN, begin, j)
        is_gerund = words[j].endswith("ing") and not is_own
        if words[j] == "confident" and "," in words[j:at]:
            return None  # "I am 80% confident, with the rest on B"
        is_ours = is_own or is_foreign or self.has(K.MINE, begin, j) or kinds[j] & K.CHANGE
        if j and kinds[j - 1] & K.MODAL and not is_ours:
            return "choice", "conditional", j  # "A second test would settle B"
        if words[j] in ("make", "making") and "for" in words[j:at]:
            return None  # "the argument that you're making for B"
        if words[j] in W.agreeing and "that" in words[j:at] and self._is_subject(at):
            return None  # "I agree that B is more sensitive"
        if words[at + 1 : at + 3] in (["into", "consideration"], ["into", "account"]):
            return None  # "I'll take B into account"
        if words[j - 1] == "without":
            return "choice", "denied", j  # "I withdraw A without endorsing B"
        if words[j] in ("go", "going") and W.ways.isdisjoint(words[j + 1 : at]):
            return None  # "Going letter by letter: A has"
        if words[j - 1] == "for" and words[j].endswith("ing") and not kinds[j] & K.LEAVE:
            return "choice", "past", j  # "The answer is B, with apologies for saying A"
        if words[j - 1] == "of" and words[j].endswith("ing") and self.has(K.LEAVE, begin, j):
            is_kept = self.is_denied(begin, j - 1)
            return None if is_kept else ("left", "denied", -1)  # "I retract the idea of giving B"
        if words[j] in ("make", "making") and words[at + 1 : at + 2] in (["a"], ["an"]):
            return None  # "making B a poor add-on"
        if words[at + 1 : at + 3] == ["back", "on"] or self.says(W.off, at + 1, at + 2):
            return "left", "denied", at  # "I would take B off the table"
        if words[j] in W.ranking and self.says(W.ranks, at + 1, at + 2):
            return "set-aside", "denied", j  # "I'd put A third and B last"
        if words[at + 1 : at + 2] == ["also"] and not is_own:
            return None  # "It is sensible to give B as well"
        if "that" in words[j:at] and self.says(W.does, at + 1, at + 2):
            return None  # "which is to say that B doesn't persuade me"
        is_open = self.has(K.MODAL, at + 1, self.size) or words[at + 1 : at + 2] == [","]
        is_open = is_open or not (self.is_end(at + 1) or self.says(W.after, at + 1, at + 2))
        if words[0] == "to" and j == 1 and is_open:
            return "choice", "conditional", j  # "To make B correct, the stem would have to say so"
        if is_own and self.says(W.nearly, begin, j) and not kinds[j] & K.STICK:
            return "choice", "past", j  # "I was close to choosing B"
        is_subject = is_gerund and not self._is_closed(at)
        is_judged = words[at + 1 : at + 2] == ["does"] or self.says(W.urging, at + 1, at + 5)
        if is_subject and not self.has(K.BE | K.MODAL, at + 1, at + 2) and not is_judged:
            return "choice", "conditional", j  # "Keeping B has its merits"
        if words[j - 2 : j] == ["not", "to"] and self.has(K.BE & ~K.STICK, begin, j - 2):
            if not self.has(K.DOUBT | K.BAD, begin, j - 2) and not self.says(W.unwise, begin, j):
                return None  # "It would be churlish not to keep B"
        if (words[j - 1] in W.weighing or words[j - 1] == "about") and words[j].endswith("ing"):
            return "choice", "conditional", j  # "I'd consider switching to C"
        is_direct = all(kind & (K.NOUN | K.FILL) for kind in kinds[j + 1 : at])
        is_departed = words[j] in ("leave", "leaving") and is_direct
        is_asked = words[j - 1] == "to" and self.says(W.asking, j - 3, j - 1)
        if is_foreign and (is_asked or (is_gerund and not self.has(K.MINE, begin, j))):
            return "choice", "reported", j  # "You suggest swapping A for B"
        if kinds[j] & K.LEAVE or (is_departed and not self.says(W.unmoved, at + 1, at + 2)):
            is_rejected = is_gerund and self.is_rejected(at)
            stance = self.stance("left", begin, j, at, "own")
            is_unsure = self.says(W.unsure, max(begin, j - 5), j) and not self.is_denied(begin, j)
            is_unsure |= "whether" in words[begin:j]
            is_judged = self.has(K.GOOD | K.FAIR, at + 1, self.size)
            is_judged |= self.says(W.urging, at + 1, self.size) or is_rejected
            is_unsure |= is_gerund and j == begin and not self._is_closed(at) and not is_judged
            if is_unsure or stance in ("conditional", "reported", "past"):
                return "left", "conditional", j  # "I may abandon B"
            if not self.is_denied(begin, j) and not is_rejected:
                return "left", "denied", -1
            is_given_up = is_departed or words[j].startswith(_GIVING_UP)
            has_reason = self.says(W.reasons, j - 4, j) and not is_foreign
            has_reason = has_reason or (self.has(K.MINE, begin, j) and "nothing" in words[begin:j])
            is_kept = is_given_up and (is_own or has_reason or is_rejected)
            return "retained" if is_kept else "left", "own", -1
        if j > begin and words[j - 1] in ("over", "than"):
            return "left", "denied", j
        is_rejected = is_gerund and self.is_rejected(at)
        end = next((n for n in range(at + 1, self.size) if kinds[n] & K.SIGN), self.size)
        is_weighed = self.has(K.MODAL, at + 1, min(end, at + 14)) and not self.has(
            K.BAD, at + 1, self.size
        )
        is_judged = self.has(K.GOOD | K.FAIR, at + 2, end) or self.says(W.urging, at + 2, end)
        is_weighed |= j == begin and self.has(K.BE, at + 1, at + 2) and not is_judged
        if is_gerund and not is_rejected and is_weighed:
            return "choice", "conditional", j  # "Switching to C would mean to ignore the fever"
        governor = next((n for n in range(j - 1, -1, -1) if not kinds[n] & K.MODAL), 0)
        if kinds[j] & K.CHANGE and j and kinds[governor] & K.OTHER and not is_own:
            is_mine = "my" in words[begin:at] and not kinds[j - 1] & K.MODAL
            if not is_mine and not words[governor].startswith("you"):
                return "changed", "reported", j  # "Many endocrinologists move to B"
        is_passive = kinds[j] & K.CHANGE and kinds[j - 1] & K.BE and words[j].endswith("ed")
        if is_passive and not self.has(K.NOUN | K.MINE | K.SELF, begin, j):
            return "changed", "reported", j  # "Patients are switched to B"
        if kinds[j] & K.CHANGE and words[j].endswith("ed"):
            is_regretted = words[at + 1 : at + 5] == [",", "and", "that", "was"]
            if "when" in words[at + 1 : at + 3] or is_regretted:
                return "chosen", "past", j  # "I moved to B when you mentioned the spleen"
        if words[j] == "changes" and words[j + 1 : at] == ["("]:
            return None  # "temporal lobe changes (B)"
        if kinds[j] & K.CHANGE:
            between = words[j + 1 : at]
            mine = self.has(K.NOUN, begin, at) or "from" in between
            if "to" not in between and mine and self.is_denied(begin, j):
                return "kept", "own", begin - 1  # "no reason to change my answer: B"
            is_replaced = words[j].startswith("replac") and not {"with", "by"}.isdisjoint(between)
            is_replaced |= words[j] in W.swaps and "for" in between
            is_replaced |= mine and between[-1:] == ["on"]  # "I change my answer on B"
            is_source = "from" in between and "to" not in between  # "changed_from: A"
            if (W.to.isdisjoint(between) or is_source) and not is_replaced and between != ["("]:
                is_kept = self.is_denied(begin, j - 1) and all(
                    kinds[n] & (K.SIGN | K.NOUN) or words[n] == "the" for n in range(j + 1, at)
                )
                rule = "retained" if is_kept and is_own else "left"
                return rule, "own" if is_kept else "denied", -1 if is_kept else j
            if not is_own and self.says(W.possible, max(begin, j - 5), j):
                return "changed", "conditional", j  # "It may be reasonable to switch to B"
            return "changed", "denied" if is_rejected else "own", j
        if kinds[j] & K.CHOSE and not kinds[j] & (K.CHOOSE | K.STICK):
            if j and kinds[j - 1] & FOREIGN and not kinds[j - 1] & K.SELF:
                return "chosen", "reported", j  # "I respect that your attending said B"
            if "about" in words[j:at]:
                return "chosen", "past", j  # "I revise what I said about B"
            if is_own and (words[j - 1] in W.at_last or words[j] == "meant"):
                return "changed", "own", j  # "I finally settled on B"
            if is_own and self.has(K.DOUBT | K.BAD, 0, self.size):
                return "chosen", "past", j  # "My mistake: I gave B"
            was_chosen = any(
                words[h] in W.had and kinds[h + 1] & _CHOSEN for h in range(begin, j + 1)
            )
            was_chosen |= "when" in words[begin:j] or "but" in words[at + 1 : at + 3]
            if is_own and (was_chosen or self.says(W.ago, at + 1, at + 4)):
                return "chosen", "past", j  # "I had suggested B", "I said B a moment ago"
            return ("chosen", "hedged", j) if is_own or is_foreign else None
        rule = "kept" if kinds[j] & K.STICK else "choice"
        if words[j - 1] == "in" and j > 1 and kinds[j - 2] & K.MARK:  # "I reject C in favor of B"
            negations = [kind for kind in kinds[begin:j] if kind & K.NEGATION]
            return rule, "denied" if len(negations) % 2 else "own", begin - 1
        is_called = j == begin or words[j - 1] in W.calls or words[j - 1] == "me"
        is_called = is_called or bool(kinds[j - 1] & (K.SO | K.BREAK | K.SIGN | K.MODAL))
        if words[j : j + 2] == ["make", "it"] and not (is_own or is_foreign or is_called):
            return "verdict", "own", j  # "Fever and jaundice make it B"
        if not (is_own or is_foreign or is_called) or self.has(K.BAD, begin, j):
            return None  # "Common pitfall: choosing B"
        if words[j - 1] == "to" and not is_own and self.has(K.THEIRS, begin, j):
            return rule, "reported", j  # "Your instinct to go for B"
        if is_own and words[j - 1] == "been" and self.says(W.had, begin, j):
            return rule, "past", j  # "I had been leaning towards B"
        if is_rejected:
            return rule, "denied", j
        unsure = self.says(W.unsure, max(begin, j - 5), j)
        return rule, "conditional" if unsure else "own", j

    # ---- "B is correct" ----

    def _read_comment(self, at: int) -> _OptionClaim | None:
        """Return the claim by the words after the option."""
        words, kinds = self.words, self.kinds
        before = at - 1
        while before > 0 and kinds[before] & (K.SIGN | K.NOUN):
            before -= 1
        if kinds[before] & K.BE and words[at + 1 : at + 2] == [","]:
            return None  # "The answer is B, not A"
        if words[before] == "over":
            return None  # "Over A, my answer is now B"
        if kinds[before] & K.LEAVE and words[before].endswith("ing"):
            return None  # "Abandoning B would be premature"
        if words[before] in ("nor", "neither"):
            return "is-correct", "denied", at  # "Neither A nor B is supported"
        if words[before] in W.on and not (words[before] == "of" and kinds[before - 1] & K.NOUN):
            return None  # "Your hunch about B is right", "for B to be right"
        if "my" in words[at + 1 : at + 5] and self.says(W.counting_words, at - 5, at):
            return "choice", "own", at  # "Please consider B my revised answer"
        if self.has(K.SELF, at + 1, at + 2) and self.has(K.LEAVE | K.DOUBT, at + 2, at + 5):
            return "is-correct", "denied", at  # "B I now reject too"
        is_finding = words[before] == "makes" or self.has(K.SELF, before - 1, before)
        if words[before] in W.finds and is_finding and self.has(K.GOOD | K.FAIR, at + 1, at + 4):
            if not self.has(K.NEGATION | K.BAD | K.DOUBT, at + 1, at + 4):
                return "is-correct", "hedged", at  # "I find B more convincing"
        if W.adopting & set(words[at + 1 : at + 12]) and self._is_adopted(at):
            return "is-correct", "own", at
        j, depth = at + 1, 0
        while j < self.size and j - at < 40:
            word, kind = words[j], kinds[j]
            depth = max(0, depth + (word == "(") - (word == ")"))
            gap = word in "()\"'*],`" or (kind & K.FILL and not kind & (K.BE | K.SIGN))
            gap = gap and word not in W.apart and not kind & K.SELF
            if not depth and not gap:
                break
            j += 1
        if j >= self.size:
            return None
        modal = words[j] if kinds[j] & K.MODAL else ""
        if kinds[at - 1] & K.MODAL and at and words[j] == "be":
            modal = "might"  # "Only in a child would B be right"
        is_missed = False
        while modal and j + 1 < self.size and not kinds[j] & K.BE:
            is_missed = is_missed or words[j] == "have"  # "B would have been right"
            if not kinds[j] & (K.MODAL | K.FILL) and words[j] not in ("have", "not", "never"):
                break
            j += 1
        word, kind = words[j], kinds[j]
        if word in ("yes", "no") and not modal and self.is_end(j + 1):
            return "is-correct", "own" if word == "yes" else "denied", at
        if words[j - 1] == "it" and kind & K.BE and self.is_end(j + 1):
            return "is-correct", "own", at  # "B it is"
        is_contrast = word in W.affirms and self.is_end(j + 1) and j == at + 1
        is_contrast = is_contrast and (
            self.says(W.explaining, 0, at) or not self.has(K.NEGATION, 0, at)
        )
        if is_contrast and self.has(K.NEGATION, 0, at) and self.has(K.MARK, 0, at - 1):
            return "is-correct", "own", at  # "A doesn't explain the rash, B does"
        if words[at - 1] == "only" and not modal and (word in W.fits or word in W.works):
            return "is-correct", "hedged", at  # "only B makes sense"
        if word in W.fits and not modal and not {"best", "better"}.isdisjoint(words[j - 1 : j + 9]):
            end = next((n for n in range(j, self.size) if words[n] in W.ends), self.size)
            is_best = "best" in words[j - 1 : end] and not self.says(W.limits, j, end)
            return ("is-correct", "own", at) if is_best else None  # "B explains the fever best"
        gloss = word in (":", "-") and not modal
        if word in W.beats and not modal and self._is_over_others(j + 1):
            return "verdict", "own", at  # "B beats A"
        if not (gloss or kind & K.BE or word in W.seems or word in W.stays):
            return None
        if word in W.seems and "initially" in words[j : j + 5]:
            return None  # "B looks right at first glance"
        shaky = modal or word in W.was or (word == "becomes" and words[j + 1 : j + 2] != ["my"])
        sure: Stance = "hedged" if shaky else "own"
        if modal in W.unsure or is_missed:
            sure = "conditional"
        if word in W.stays and self.is_end(j + 1):
            return "is-correct", sure, at  # "My earlier choice, B, stands"
        if gloss:
            return self._gloss(j, at)
        denials = sum(bool(kind & K.NEGATION) for kind in kinds[at + 1 : j]) if modal else 0
        return self._predicate(j, at, sure, denials)

    def _is_adopted(self, at: int) -> bool:
        """Return whether a clause makes an option the answer: "B, and that is what I'd pick"."""
        if self.words[at - 1] in ("than", "over") or self.words[at - 1] in W.beats:
            return False  # "A is cheaper than B, so it's my answer"
        end = next((n for n in self.marks if n > at), self.size)
        return P.adopted.match(" ".join(self.words[at + 1 : min(end, at + 20)])) is not None

    def _is_over_others(self, j: int) -> bool:
        """Return whether an option or all the others follow: "over A", "the rest"."""
        j += self.words[j : j + 1] == ["over"]
        j += self.words[j : j + 1] == ["the"]
        return self.has(K.MARK, j, j + 1) or self.says(W.others, j, j + 1)

    def _gloss(self, j: int, at: int) -> _OptionClaim | None:
        """Return the claim of the words after "B:": "correct", "the suggested option"."""
        parity = 0
        for p in range(j + 1, min(self.size, j + 5)):
            kind = self.kinds[p]
            parity += bool(kind & K.NEGATION)
            if kind & K.MARK or not kind & (K.GOOD | K.BAD | K.NEGATION | _ADJECTIVE | K.NOUN):
                return None
            if kind & (K.BAD | K.GOOD):
                right = bool(kind & K.GOOD) == (parity % 2 == 0)
                return "is-correct", "own" if right else "denied", at
        return ("is-correct", "denied", at) if parity % 2 and self.is_end(j + 2) else None

    def _predicate(self, j: int, at: int, sure: Stance, denials: int) -> _OptionClaim | None:
        """Return the claim of the words after "B is": "correct", "the checker's choice"."""
        words, kinds = self.words, self.kinds
        parity = denials + bool(kinds[j] & K.NEGATION)
        for p in range(j + 1, min(self.size, j + 9)):
            word, kind = words[p], kinds[p]
            if kind & K.MARK or word in ("but", ";") or (word in ",:." and p > j + 1):
                break
            is_alone = word == "without" and not kinds[p - 1] & K.NEGATION
            parity += bool(kind & K.NEGATION) and not is_alone
            if word in ("that", "which") and p > j + 1:
                break  # "B is the share of tests that are true"
            if word == "and" and self.says(W.persons, p + 1, p + 2):
                break  # "B is an emergency, and it would be dangerous to wait"
            if word in W.reporting_words and p == j + 1:
                return "is-correct", "reported", at  # "B is given as the answer"
            stance: Stance = "denied" if parity % 2 else sure
            is_adjective = kind & (K.GOOD | K.FAIR | K.BAD)
            if word.endswith("ing") and p == j + 1 and not is_adjective:
                return None  # "B is rejecting a true hypothesis"
            if parity % 2 and word in W.exclusions:
                return "is-correct", "conditional", at  # "B can't be overlooked"
            if kind & K.BAD and words[p - 1] in ("more", "most"):
                return None  # "B is the more dangerous disease"
            if kind & K.BAD and self.says(W.purposes, j + 1, p):
                return None  # "B is effective for inadequate contractions"
            if kind & K.BAD:
                if (
                    parity % 2
                    and self.has(K.NEGATION, p + 1, self.size)
                    and "but" in words[p + 1 : p + 4]
                ):
                    return None  # "B is not wrong, but it is not the best"
                if parity % 2 and (
                    word in W.lesser or words[p + 1 : p + 2] in (["because"], ["as"], ["per"])
                ):
                    return None  # "B is not wrong because it is rare"
                return "is-correct", "hedged" if parity % 2 else "denied", at
            if word == "one" and not (
                words[p - 1] in W.which_one or kinds[p - 1] & (K.GOOD | K.FAIR)
            ):
                return None  # "B is the volar one"
            if word in W.question_starts or word == "one":
                return self._read_relative(p, at, stance)
            named = K.OWN | K.MINE | K.GOOD | K.FAIR | K.PAST | _THEIRS  # not "a type of selection"
            if words[p - 1 : p + 2] == ["the", "option", "to"] and not self.has(K.CHOOSE, p, p + 3):
                return None  # "B is the option to worry about"
            is_named = kinds[p - 1] & named or words[p - 1] == "the"
            is_named = is_named or words[p - 2] == "only"  # "the only safe option"
            if kind & K.NOUN and is_named:
                whose = self._read_owner(p, j + 1, p)
                if words[j] in W.was and "my" in words[j + 1 : p] and words[j - 1] != ",":
                    return "is-correct", "past", at  # "B was my answer"
                if self.says(W.partly, j + 1, p):
                    return None  # "B is only half of the answer"
                if whose != "own" and not (whose == "past" and words[j] not in W.was):
                    return "is-correct", whose, at
                is_hypothetical = sure == "hedged" and self.is_elsewhere(p + 1, p + 4)
                if is_hypothetical or self._is_elsewhere(p) or self.says(W.unlike, p + 2, p + 4):
                    return "is-correct", "conditional", at  # "the right answer only in pregnancy"
                if self._is_someones(p + 1):
                    return "is-correct", "reported", at  # "the diagnosis nobody wants to miss"
                return "is-correct", "hedged" if stance == "conditional" else stance, at
            if word in ("kept", "held", "retained") and self.says(W.reserved, p + 1, p + 2):
                return None  # "C should be kept in mind"
            if word == "right" and words[p - 1] == "the" and words[p + 1 : p + 2]:
                if not (self.is_end(p + 1) or kinds[p + 1] & K.NOUN or words[p + 1] in W.steps):
                    return None  # "B is usually in the right colon"
            if words[p - 1] == "as" and "as" in words[p + 1 : p + 4]:
                return None  # "B is as likely as A"
            if word == "true" and words[p - 1] != "the" and p > j + 1 and not self.is_end(p + 1):
                return None  # "B is characterised by true weakness"
            if words[j] == "gets" and p > j + 1:
                return None  # "B gets the build right"
            is_judged = kind & (K.GOOD | K.FAIR)
            when = next((n for n in range(p + 1, min(p + 4, self.size)) if words[n] == "when"), 0)
            if is_judged and when and not self.has(K.SELF, when, when + 3):
                return "is-correct", "conditional", at  # "B is right when capacity is in doubt"
            if is_judged and words[j] in W.was and self.has(K.SELF, p + 1, p + 2):
                return "is-correct", "past", at  # "B was the best I could do"
            if is_judged and self.says(W.limits, p + 1, p + 4):
                return None  # "B is best except in pregnancy", "B holds up less well than A"
            is_general = kind & K.FAIR and words[p + 1 : p + 2] in (["for"], ["in"], ["among"])
            if is_general and not kind & K.GOOD and self.has(K.FILL, p + 1, p + 2):
                if words[p + 2 : p + 3] and words[p + 2] not in W.present:
                    return "is-correct", "conditional", at  # "B is preferred for small lesions"
            is_limited = sure == "hedged" or "only" in words[j : p + 2]
            for_others = self.is_elsewhere(p + 1, p + 3) or any(
                word in W.elsewhere_words and then in ("a", "an")
                for word, then in pairwise(words[p + 3 : p + 6])
            )
            for_others |= words[p + 1 : p + 2] == ["with"]
            if is_judged and is_limited and for_others:
                return "is-correct", "conditional", at  # "A is only indicated in pregnancy"
            if is_judged and not (p + 1 < self.size and kinds[p + 1] & (K.NOUN | K.OWN)):
                is_conceded = not self.is_end(p + 1) and "but" in words[p + 2 : p + 9]
                fair = stance == "own" and (not kind & K.GOOD or is_conceded)
                is_contrast = words[at - 1 : at] == ["but"] and self.is_end(p + 1)
                fair &= not (is_contrast and word == "better")  # "A fits, but B is better"
                return "is-correct", "hedged" if fair else stance, at
        is_denied = parity % 2 and not self.says(W.rarely, j + 1, j + 3)
        return ("is-correct", "denied", at) if is_denied else None  # "B is rarely seen in women"

    def _read_relative(self, p: int, at: int, sure: Stance) -> _OptionClaim | None:
        """Return the claim of the words after "B is what": "I would choose", "you suggest"."""
        then = self.words[p + 1 : p + 2]
        is_to = then == ["to"] and self.has(K.CHOOSE, p + 2, p + 3)
        if self.words[p] == "one" and (is_to or self.is_end(p + 1)):
            return "is-correct", sure, at  # "B is the one to choose"
        if then in (["that"], ["which"]) and self.says(W.fits, p + 2, p + 5):
            return "is-correct", "hedged" if sure == "own" else sure, at
        if self.has(K.SELF, p + 1, p + 4):
            if self.has(K.NEGATION, p + 1, p + 6):
                return "is-correct", "denied", at  # "B is the one drug I shouldn't have given"
            cases = [n for n in range(p + 3, min(p + 8, self.size - 1)) if self.words[n] == "with"]
            other = any(not self.is_end(n + 1) and self.is_elsewhere(n, n + 1) for n in cases)
            if other and self.has(K.MODAL, p + 1, p + 4):
                return "is-correct", "conditional", at  # "B is what I'd reach for with nausea"
            pause = next((n for n in range(p, self.size) if self.words[n] == ","), p + 8)
            past = self.words[p - 1] in W.was or self.has(K.PAST, p, min(pause, p + 8))
            return "is-correct", "past" if past and "still" not in self.words else sure, at
        if self.has(FOREIGN, p + 1, p + 4) or then == ["was"]:
            return "is-correct", "reported", at
        is_vague = self.words[p] != "what" or self.says(W.vague, p + 1, self.size)
        return None if is_vague else ("is-correct", "hedged", at)

    # ---- Two options at once ----

    def _adjacent(self, at: int) -> str:
        """Return the mark of another option in the same claim, else an empty text."""
        words, kinds = self.words, self.kinds
        if at > 1 and words[at - 1] in ("and", "or") and kinds[at - 2] & K.MARK:
            single = words[at - 1] == "and" and words[at + 1 : at + 2] in (["is"], ["was"])
            single = single and words[at - 3] not in W.together  # "Therapy with B and C is best"
            return "" if single else words[at - 2]
        for first, then in pairwise(self.marks):
            if (
                words[then - 2] in W.likewise
                and words[then - 1] in W.equally
                and at in (first, then)
            ):
                return words[then if at == first else first]  # "B is right, but so is C"
        is_linked = False
        for j in range(at + 1, min(self.size, at + 12)):
            word, kind = words[j], kinds[j]
            if kind & K.MARK:
                if "\ue040" <= word <= "\ue07f" and not "\ue040" <= words[at] <= "\ue07f":
                    return ""  # the words of the option continue: "A: Surgery, chemotherapy"
                single = self._is_subject(j) and words[j + 1] not in ("are", "were", "both")
                return word if is_linked and word != words[at] and not single else ""
            if word in W.joins:
                is_linked = True
            elif (
                word in ";:-?!."
                or kind & K.AWAY
                or not (kind & (K.FILL | K.NOUN) or word in W.perhaps)
            ):
                return ""
        return ""
