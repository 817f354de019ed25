"""Clauses of a sentence: where they begin, and whether they deny, report or suppose.

The rules parse a sentence word by word (`words`). Around the option in question the words of its
clause determine the stance: denied, of somebody else, of an earlier turn, conditional, or of the
reply itself.
"""

from functools import cached_property, reduce
from operator import or_
from typing import Literal

from .patterns import Patterns, WordSets
from .words import WordKind as K

Stance = Literal["own", "hedged", "denied", "reported", "past", "conditional"]
"""Stance of a claim. Only `own` commits. `hedged` counts if nothing commits."""

VERB = K.CHOOSE | K.STICK | K.CHOSE | K.CHANGE | K.LEAVE
FOREIGN = K.OTHER | K.OWNER
OURS = K.SELF | K.MINE
_END_KINDS = K.SIGN | K.FILL | K.BREAK | K.AWAY | K.CONDITION | K.CONCESSION | K.SELF | K.OTHER
P = Patterns("clauses")
W = WordSets()


class Clauses:
    """Words of a sentence with their functions, its clauses and their stance."""

    def __init__(self, words: list[str], kinds: list[int]) -> None:
        """Take words and functions from `words_of`."""
        self.words = words
        self.kinds = kinds
        self.size = len(words)
        self.marks = [at for at, kind in enumerate(kinds) if kind & K.MARK]

    @cached_property  # a sentence has far fewer verbs than colons and words
    def _verbs(self) -> list[int]:
        verbs = K.BE | K.MODAL | K.EVIDENCE
        words = enumerate(zip(self.words, self.kinds, strict=True))
        return [at for at, (word, kind) in words if kind & verbs or word in W.makes]

    def has(self, kind: int, begin: int, end: int) -> bool:
        """Return whether a passage contains a word of a kind."""
        for bits in self.kinds[max(0, begin) : max(0, end)]:  # faster than any()
            if bits & kind:
                return True
        return False

    def _union(self, begin: int, end: int) -> int:
        return reduce(or_, self.kinds[max(0, begin) : max(0, end)], 0)

    def says(self, words: frozenset[str], begin: int, end: int) -> bool:
        """Return whether a passage contains one of these words."""
        return not words.isdisjoint(self.words[max(0, begin) : max(0, end)])

    # ---- Structure ----

    def clause(self, at: int) -> int:
        """Return the start of the clause of a word."""
        words, kinds = self.words, self.kinds
        opening = at - (words[at - 1 : at] in (['"'], ["("]))
        for j in range(at - 1, 0, -1):
            word = words[j]
            if word in W.therefore and j + 1 == opening and self.is_end(at + 1):
                return j + 1  # "it does not cover anaerobes so B"
            if kinds[j] & K.BREAK and (word in ("but", "yet", ";") or words[j - 1] in W.pauses):
                return j + 1
            if word in (",", "and", "-", ":") and j + 1 < at and self._begins(j, at):
                return j + 1
            if word == "," and words[0] in W.subordinating and "," not in words[:j]:
                return j + 1  # "As there is no fever, it points to B"
            is_break = word == ":" or (word == "and" and words[j - 1] == ",")
            if is_break and words[j + 1] in ("it", "this", "that", "these") and j + 1 < at:
                return j + 1  # "He has no fever, and this favors B"
            if word == "that" and words[j - 1] in ("means", "meaning"):
                return j + 1  # "He denies pain, which means that I choose B"
            if word in ("since", "because") and words[j - 1] == ",":
                return j + 1  # "A is not as good an answer, since B explains the rash"
            is_before_self = word in ("so", "that") and self.has(K.SELF, j + 1, j + 2)
            is_before_self |= word == "reason" and self.has(K.SELF, j + 1, j + 2)
            if word in ("so", "reason") and is_before_self:
                return j + 1  # "it is not B so I switch to C"
            if word == "that" and is_before_self:
                if not self.has(K.SAY | K.BELIEF | K.DOUBT, 0, j):
                    return j + 1  # "Don't be cross that I keep B"
            labelled = word == ":" and kinds[j - 1] & K.NOUN and words[at] >= "\ue080"
            labelled = labelled and not self.has(K.NEGATION, 0, j)  # "no close call: B is right"
            if (
                word in (",", ":", "and")
                and j + 1 == opening
                and self._is_subject(at)
                and not labelled
                and not (words[0] in W.according and self.says(W.addressees, 1, j))
            ):
                first = next(iter(self.marks), 0)
                opens = all(kind & (K.SO | K.SIGN) for kind in kinds[:first])
                is_sentence = self.has(K.SELF, 0, j) and self.has(K.BE & ~K.SELF, 0, j)
                before = max((n for n in self.marks if n < j), default=first)
                is_sentence = is_sentence or (opens and self._is_subject(first))
                is_sentence = is_sentence or (before < j and self._is_subject(before))
                if word != "and" or words[j - 1] == "," or is_sentence:
                    return at  # "C is wrong and B is right", "I was wrong and B is right"
        return 0

    def _begins(self, j: int, at: int) -> bool:
        """Return whether a new clause begins after a sign: "..., the answer is B"."""
        then, word = self.kinds[j + 1], self.words[j + 1]
        if self.words[0] in W.according and "my" not in self.words[:j]:
            return False
        if self.words[j] == "and":
            verb = then & (K.CHOOSE | K.STICK | K.CHANGE) and not then & K.NOUN
            is_own = (verb or word in W.will) and self.has(K.SELF, 0, j)
            return bool(then & K.SELF or is_own or word in W.its)
        if word.endswith("ing") and then & (K.CHOOSE | K.STICK | K.CHANGE):
            return self.words[j] == ","  # "with no fever, going with B"
        if then & K.SELF or word in ("my", "our", "it's", "that's"):
            return True
        if then & (FOREIGN | K.CONDITION | K.CONCESSION | K.BE | K.MODAL):
            return False
        if self.words[j] != ":":
            return self.has(K.BE | K.MODAL, j + 1, min(j + 7, at))
        return any(j < verb < at for verb in self._verbs)

    def predicate(self, begin: int, end: int) -> int:
        """Return the place of the first finite verb of a passage, 0 if there is none."""
        verbs = (n for n in range(begin, end) if self.kinds[n] & (K.BE | K.MODAL))
        having = (n for n in range(begin, end) if self.words[n] in W.having)
        return min(next(verbs, self.size), next(having, self.size)) % self.size

    def _is_subject(self, at: int) -> bool:
        if self.words[at + 1 : at + 3] == ["it", "is"]:
            return True
        then = at + 1 + (self.words[at + 1 : at + 2] in (['"'], [")"]))
        after = self.kinds[then] if then < self.size else 0
        is_verb = after & (K.BE | K.MODAL | K.SAY | K.EVIDENCE) and not after & K.FILL
        is_affirmed = self.says(W.affirms, then, then + 1) and self.is_end(then + 1)
        is_affirmed = is_affirmed or self.says(W.does, then, then + 1)
        return bool(is_verb) or is_affirmed or self.says(W.stays | W.fits, then, then + 1)

    def _is_closed(self, at: int) -> bool:
        """Return whether the option is not the subject of the words after it."""
        if at + 1 >= self.size:
            return True
        if self.words[at + 1] in ("or", "and"):
            return not self._is_subject(next((n for n in self.marks if n > at), self.size))
        after = self.kinds[at + 1]
        return bool(after & _END_KINDS) and not after & (K.BE | K.MODAL)

    def is_end(self, j: int) -> bool:
        """Return whether a sign or the end of the sentence is at a place."""
        return j >= self.size or bool(self.kinds[j] & K.SIGN)

    def _is_verb(self, j: int) -> bool:
        """Return whether a possible noun or preposition is a verb: "I answer B"."""
        is_governed = self.kinds[j - 1] & (K.SELF | K.MODAL | K.OTHER)
        return j > 0 and (bool(is_governed) or self.words[j - 1] in W.calls)

    def _is_aside(self, j: int) -> bool:
        """Return whether a "no" stands by itself: "No, B"."""
        is_closed = "".join(self.words[j + 1 : j + 2]) in set(",.-:")
        return is_closed and (self.words[j] in ("no", "not") or self.words[j].endswith("n't"))

    # ---- Stance ----

    def stance(self, rule: str, begin: int, lead: int, at: int, stance: Stance) -> Stance:
        """Return the stance of a claim by the words around it, given its stance by the form."""
        words, kinds = self.words, self.kinds
        if "?" in words[-3:] and words[-1] in "?)\"'*":
            return "conditional"
        verdict = rule in ("verdict", "answer-is")
        if self.is_denied(begin, lead) or words[at + 1 : at + 3] == ["less", "than"]:
            return "denied"
        if "than" in words[begin:lead] and "that" in words[begin : lead + 1]:
            return "denied"  # "It is more likely to be A than that this is B"
        if "but" in words[at:] and P.but_not_here.search(" ".join(words[at:])):
            return "denied"  # "B is the better drug, but not for her"
        if self._is_reported(begin, lead) or self._is_attributed(at):
            return "reported"
        if "i" in words[begin:at] and P.believed.search(" ".join(words[begin : at + 1])):
            return "past"  # "I initially thought B was right"
        if self._is_conditional(begin, lead, at, within=verdict):
            return "conditional"
        if stance == "hedged" and (words[lead] in W.was or kinds[lead] & K.CHOSE):
            if self.has(K.PAST, begin, lead) or self.has(K.CHOSE, at + 2, at + 4):
                return "past"  # "It was A that I gave"
        if rule in ("kept", "changed", "left", "choice") and self.says(W.perhaps, begin, at):
            return "conditional"
        if self.has(K.CONCESSION, begin, lead) or self.says(W.perhaps, begin, at):
            return "denied" if P.but_it_is_not.search(" ".join(words[at:])) else "hedged"
        places = [j for j in range(1, min(lead, 9)) if words[j] in W.question_words]
        if (
            words[0] in ("in", "on", "for")
            and places
            and self.has(K.THEIRS | K.PAST, 1, places[0] + 2)
        ):
            return "conditional"  # "In the next item, the answer is B"
        # "In children, B is right", "the group in which B is right"
        is_chosen = self.has(K.SELF, begin, lead) and not self.has(K.MODAL, begin, lead)
        if self._is_of_others(0, 1) and not is_chosen:  # not "In pregnancy, I choose B"
            return "conditional" if words[1] in W.amounts else "hedged"
        if words[at - 1 : at] in (["which"], ["whom"], ["where"]):
            return "conditional" if self.has(K.MODAL, at + 1, at + 3) else "hedged"
        return stance

    def is_denied(self, begin: int, lead: int) -> bool:
        """Return whether a clause negates its verb. Two negations cancel each other."""
        parity = 0
        for j in range(begin, min(lead + 1, self.size)):
            kind = self.kinds[j]
            if self.words[j] == "and" and not self.kinds[begin] & K.NEGATION:
                then = self.words[j + 1 : j + 2]
                if then and then[0].endswith("s") and self.kinds[j + 1] & K.EVIDENCE:
                    parity = 0  # "It rules out A and makes B correct"
            if kind & K.NEGATION and not (parity and self.words[j] == "nor"):
                parity += not self._is_aside(j) and self.words[j] != "without"
            parity += j < lead and (bool(kind & K.DOUBT) or self._is_unwise(j))
        return parity % 2 == 1

    def _is_unwise(self, j: int) -> bool:
        """Return whether a word calls what follows wrong: "foolish to"."""
        after = self.words[j + 1 : j + 4]
        return self.words[j] in W.unwise and (after[:1] == ["to"] or after == ["of", "me", "to"])

    def is_rejected(self, at: int) -> bool:
        """Return whether choosing the option is called wrong: "choosing B would be a mistake"."""
        verb = parity = 0
        pauses = [j for j in range(at + 1, self.size - 1) if self.words[j] == ","]
        resumed = [j for j in pauses[1:] if self.kinds[j + 1] & (K.BE | K.MODAL)]
        for j in range(at + 1, self.size):
            word, kind = self.words[j], self.kinds[j]
            if resumed and pauses[0] <= j <= resumed[0] and not verb:
                continue  # "Choosing B now, before he was asked, would be a mistake"
            if word in W.stops or word in (":", ";", "|") or (word == "," and not verb):
                break
            verb |= kind & (K.BE | K.MODAL)
            worse = word in W.worse and self.words[j - 1] in ("not", "never")
            is_bad = kind & (K.BAD | K.DOUBT) or word in W.unwise
            parity += bool(is_bad) + bool(kind & K.NEGATION) + worse
        return parity % 2 == 1

    def _is_reported(self, begin: int, lead: int) -> bool:
        words, kinds = self.words, self.kinds
        foreign_place = own_place = -1
        for j in range(begin, lead):
            if kinds[j] & K.SELF:
                own_place = j
            elif kinds[j] & FOREIGN:
                foreign_place = j
        start = begin
        if own_place >= 0:  # "I see that the textbook says B" is the textbook's
            start = next((j for j in range(own_place, lead) if words[j] == "that"), lead)
        if self.has(K.OPINES, start, lead) and not self.has(K.MINE, start, lead):
            return True
        if own_place < 0 and self.says(W.according, begin, lead) and "my" not in words[begin:lead]:
            return True
        sayings = [j for j in range(begin, lead + 1)
                   if kinds[j] & (K.SAY | K.BELIEF) and not kinds[j] & K.NOUN]  # fmt: skip
        if foreign_place < 0:
            beliefs = [j for j in sayings if kinds[j] & K.BELIEF and words[j - 1] != "my"]
            beliefs = [j for j in beliefs if j < lead]
            return bool(beliefs) and "that" in words[beliefs[-1] : lead + 1]
        yields = own_place >= 0 and self.has(K.AGREE | K.CHOOSE, own_place, foreign_place)
        if own_place > foreign_place or yields:
            # "You think I should choose B"
            is_near = 0 < own_place - foreign_place < 4
            is_urged = is_near and self.has(K.OPINES, foreign_place, own_place)
            return is_urged and self.has(K.MODAL, own_place + 1, own_place + 2)
        # "the patient's pain is" reports nothing, "you suggest that the answer is" does
        near = [j for j in sayings if 0 < j - foreign_place < 6]
        if any("," not in words[foreign_place:j] for j in near):
            return True
        return bool(kinds[lead] & (VERB & ~K.CHANGE) and own_place < 0)

    def _is_attributed(self, at: int) -> bool:
        """Return whether what is said is somebody's: "B is right, you say"."""
        words, kinds = self.words, self.kinds
        for j in range(at + 1, self.size - 1):
            if kinds[j] & K.BREAK:
                break
            if words[j] == "according":
                return self.says(W.addressees, j + 2, j + 3)
            if words[j] == ",":
                says = kinds[j + 1] & K.OTHER and self.has(K.SAY, j + 1, j + 3)
                if says and not self.has(K.MARK, j + 1, j + 5):
                    return True
                if words[j + 1 : j + 3] == ["i", "thought"]:
                    return True
        return False

    def _is_conditional(self, begin: int, lead: int, at: int, *, within: bool) -> bool:
        words, kinds = self.words, self.kinds
        if words[0] == "if" and not self.has(OURS, 1, 3) and self.has(K.MODAL, begin + 1, lead):
            return True  # "If she had fever it would be B"
        if words[0] in ("should", "had", "were") and not kinds[1] & K.SELF:
            return True  # "Had she been pregnant, B."
        if begin and words[begin - 1] in (",", "then", "and") and not kinds[0] & OURS:
            is_met = (kinds[0] & K.CONDITION or words[0] == "when") and words[0] != "unless"
            ours = kinds[1] & (OURS | K.OTHER) and words[1] not in W.patient
            ours = ours and not self.says(W.supposing_words, 0, begin)
            if is_met and not ours and words[1] != "that":
                return True  # "If the culture grows, the answer will be B"
        for j in range(begin, lead):
            if kinds[j] & K.CONDITION and words[j - 1 : j] not in (["even"], ["as"]):
                insists = kinds[j + 1] & K.OTHER and words[j + 1] not in W.patient
                return not (words[j] == "if" and insists)  # "if you insist", not "if she bleeds"
        for j in range(at + 1, self.size):
            goes_on = j + 1 < self.size and kinds[j + 1] & K.CONDITION
            if kinds[j] & K.BREAK or words[j] == "|" or (words[j] == "," and not goes_on):
                break
            if kinds[j] & K.CONDITION and words[j - 1] not in ("because", "even", "as"):
                return True
        if words[at + 1 : at + 2] == ["had"] and "been" in words[at + 3 : at + 8]:
            return True  # "I'd have chosen B had the fever been absent"
        return "had" in words[begin:lead] and "would" in words[at:]

    # ---- Other cases ----

    def is_elsewhere(self, begin: int, end: int | None = None) -> bool:
        """Return whether a passage is about another case: "in a patient with", not "in this"."""
        following = [*self.words[begin + 1 :], ""]
        return any(
            word == "without" or (word in W.elsewhere_words and then not in W.present)
            for word, then in zip(self.words[begin:end], following, strict=False)
        )

    def _is_elsewhere(self, p: int) -> bool:
        """Return whether a word is about another case: "right in children"."""
        when = "when" in self.words[p + 1 : p + 4] and not self.has(K.SELF, p, p + 5)
        other = self.says(W.elsewhere, p + 1, p + 5) and not self.says(W.rivals, p + 1, p + 6)
        return when or other or self._is_of_others(p + 1, p + 4)

    def _is_of_others(self, begin: int, end: int) -> bool:
        """Return whether a phrase is about other patients: "in pregnancy"."""
        for j in range(max(0, begin), min(end, self.size - 1)):
            if self.words[j] in ("in", "for", "among", "with", "during", "at", "of"):
                then = self.words[j + 1]
                return then not in W.determiners and self.has(K.GROUP, j + 1, j + 5)
        return False

    def _is_someones(self, p: int) -> bool:
        """Return whether a clause about others begins, whoever they are; "you" is the user."""
        is_foreign = self.has(K.OTHER, p, p + 1) or self.words[p : p + 1] == ["nobody"]
        return is_foreign and not self.words[p].startswith("you")
