"""Statements of a sentence about the options: their form, stance and option.

The rules parse a sentence word by word (`words`). From the mark of an option they follow the words
before it ("the answer is", "I choose", "Answer:") and the words after it ("is correct"). The other
words of the clause determine the stance: denied, of somebody else, of an earlier turn, conditional,
or of the reply itself.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

from .words import WordKind as K
from .words import words_of

Stance = Literal["own", "hedged", "denied", "reported", "past", "conditional"]
"""Stance of a claim. Only `own` commits. `hedged` counts if nothing commits."""


class Statement(NamedTuple):
    """Claim about an option.

    Attributes:
        rule: Id of its form.
        marks: Mark of the option, or two marks if two options are claimed at once.
        stance: Stance of the claim.
        revises: Whether the claim retracts an earlier one.
    """

    rule: str
    marks: str
    stance: Stance
    revises: bool = False


_OptionClaim = tuple[str, Stance, int]
"""Rule, stance by the form, and position of the word that leads to the option."""

_VERB = K.CHOOSE | K.STICK | K.CHOSE | K.CHANGE | K.LEAVE
_FOREIGN_KINDS = K.OTHER | K.OWNER
_THEIRS = _FOREIGN_KINDS | K.THEIRS
_OURS = K.SELF | K.MINE
_ADJECTIVE = K.FILL | K.PAST | K.OWN | K.GOOD | K.FAIR | _THEIRS
_PASSABLE_KINDS = K.FILL | K.PAST | K.OWN | K.NOUN | K.MINE | _THEIRS
_END_KINDS = K.SIGN | K.FILL | K.BREAK | K.AWAY | K.CONDITION | K.CONCESSION | K.SELF | K.OTHER
_FAR = 16


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LINKS = _set(": = - -> => ?")
_ARROWS = _set("-> =>")
_ENDS = _set(", : ; .")
_PAUSES = _set(", ; and - :")
_AND = _set("or and & / + ,")
_TO = _set("to into : = -> =>")
_OF = _set("of for in to with on about from by")
# "The answer to your question" is an answer of the reply.
_ABOUT = _set("to for in about regarding concerning here among with given when on")
_PLACES = _set("in on at from by into about than like")
_ALL_WORDS = _set("all every everything each any none nothing no others rest anything option one")
_BUT = _set("but except save")
_WAS = _set("was were wasn't weren't")
_AT_LAST = _set("finally ultimately now")
_ALSO = _set("also too")
_QUESTION_WORDS = _set("question item case vignette scenario version variant problem exam test")
_ON = _set("about for of on behind against toward towards")
_REPORTING_WORDS = _set("given listed keyed quoted cited")
_SUPPOSING_WORDS = _set("imagine ignore suppose assume remove drop delete replace without")
_SWAPS = ("swap", "trad", "exchang")
_WRONG = _set("wrong incorrect false")
_LATER = _set("after upon following")
_COUNTING_WORDS = _set("consider accept record count regard treat note take log mark register")
_HAD = _set("had i'd")
_WOULD = _set("would could might")
_UNSURE = _set("could might may")
_PERHAPS = _set("maybe perhaps possibly")
_THINK = _set("think believe guess suspect feel say know reckon maintain")
_ITS = _set("it it's that's that")
_STAYS = _set("stands stays holds remains wins survives prevails")
_SEEMS = _set("seems appears looks feels sounds gets")
_DOES = _set("does doesn't do don't did didn't cannot can't")
_FIT = _set("fit explain match account suit")
_FITS = _set("fits explains matches accounts suits")
_SETTLES = _set("settles settled decides decided clinches clinched")
_REPLACES = _set("replaces supersedes overtakes displaces")
_NOTHING = _set("that nothing nobody nowhere")
_QUESTION_STARTS = _set("what where who how")
_ACCORDING = _set("according per")
_DETERMINERS = _set("this the our my her his such that all general my your short")
_RENEWAL_WORDS = _set("final revised updated new corrected amended current still")
_STOPS = _set("because since as given while although though but so whereas and")
_ONCE = _set("initially originally previously formerly")
_NEARLY = _set("was were nearly almost considered contemplated close hesitated wondered debated")
_WORSE = _set("increase worsen harm delay risk miss")
_APART = _PLACES | _STOPS | _set("which that with for of over than")
_ELSEWHERE = _set("only another different other")
_CALLS = _set("to please and so then therefore just now let still or must should would will")
_ARTICLES = _set("my our your their the a an on at")
_QUOTES = _set(") ] } \" ' * ` _ $ > |")
# Words after an option that stands alone: "B, because ...".
_AFTER = _set(
    "because since as it for all then final definitely again still instead please over here "
    "given based due thanks throughout end period with to from full same"
)


@lru_cache(4096)  # marked sentences often repeat
def statements(sentence: str) -> tuple[tuple[int, Statement], ...]:
    """Return the claims of a sentence with marked options (`mentions.marked`), in order.

    Args:
        sentence: Sentence in lower case.

    Returns:
        Each claim with the number of its mark among the marks of the sentence.
    """
    parsed_sentence = Sentence(*words_of(sentence))
    claims = (
        (number, parsed_sentence.claim(at)) for number, at in enumerate(parsed_sentence.marks)
    )
    return tuple((number, claim) for number, claim in claims if claim is not None)


class Sentence:
    """Words of a sentence with their functions."""

    def __init__(self, words: list[str], kinds: list[int]) -> None:
        """Take words and functions from `words_of`."""
        self.words = words
        self.kinds = kinds
        self.size = len(words)
        self.marks = [at for at, kind in enumerate(kinds) if kind & K.MARK]

    def has(self, kind: int, begin: int, end: int) -> bool:
        """Return whether a passage contains a word of a kind."""
        for kind_of_word in self.kinds[max(0, begin) : max(0, end)]:
            if kind_of_word & kind:
                return True
        return False

    def says(self, words: frozenset[str], begin: int, end: int) -> bool:
        """Return whether a passage contains one of these words."""
        return not words.isdisjoint(self.words[max(0, begin) : max(0, end)])

    def claim(self, at: int) -> Statement | None:
        """Return the claim about the option at a mark."""
        begin = self.clause(at)
        if self.words[at - 1 : at + 2 : 2] == ["for", "to"] and not self.has(K.SELF, begin, at):
            return None  # "For B to be right, there would have to be fever"
        sign = self._sign_before(at)
        if sign and not (
            at > 1 and self.kinds[at - 2] & K.MARK and not self._sign_before(self.marks[0])
        ):  # "A \u2717 B \u2713": the signs follow the options
            return Statement("is-correct", self.words[at], "own" if sign & K.GOOD else "denied")
        claim = (
            self._read_arrow_or_all_but(at) or self._read_comment(at) or self._read_lead(at, begin)
        )
        if claim is None:
            return None
        rule, stance, lead = claim
        if stance in ("own", "hedged"):
            stance = self.stance(rule, begin, lead, at, stance)
        beside = self._adjacent(at)
        if not beside and stance == "own" and self.says(_ALSO, begin, at + 3):
            rule = "also"
        is_turn = self.has(K.TURN | K.CHANGE, 0, at)
        return Statement(rule, self.words[at] + beside, stance, is_turn)

    def _sign_before(self, at: int) -> int:
        """Return the kind of a tick or a cross before a mark, 0 without one."""
        kind = self.kinds[at - 1] if at else 0
        return kind & (K.GOOD | K.BAD) if kind & K.SIGN else 0

    # ---- Clauses ----

    def clause(self, at: int) -> int:
        """Return the start of the clause of a word."""
        words, kinds = self.words, self.kinds
        for j in range(at - 1, 0, -1):
            word = words[j]
            if word == "then" and words[j - 1] == "and" and kinds[j - 2] & K.MARK:
                continue  # "B and then C"
            if kinds[j] & K.BREAK and (word in ("but", "yet", ";") or words[j - 1] in _PAUSES):
                return j + 1
            if word in (",", "and", "-", ":") and j + 1 < at and self._begins(j, at):
                return j + 1
            if word == "that" and kinds[j + 1] & K.SELF:
                if not self.has(K.SAY | K.BELIEF | K.DOUBT, 0, j):
                    return j + 1  # "Don't be cross that I keep B"
            if word in (",", ":", "and") and j + 1 == at and self._is_subject(at):
                first = next(iter(self.marks), None)
                if word != "and" or (
                    first is not None and self._is_subject(first) and self._opens(first)
                ):
                    return at  # "C is wrong and B is right"
        return 0

    def _begins(self, j: int, at: int) -> bool:
        """Return whether a new clause begins after a sign: "..., the answer is B"."""
        then, word = self.kinds[j + 1], self.words[j + 1]
        if self.words[0] in ("according", "per") and "my" not in self.words[:j]:
            return False
        verb = then & (K.CHOOSE | K.STICK | K.CHANGE)
        if self.words[j] == "and":
            will = word in ("will", "would", "shall", "must")
            is_own = (will or (verb and not then & K.NOUN)) and self.has(K.SELF, 0, j)
            return bool(then & K.SELF or is_own or word in _ITS)
        if then & K.SELF or word in ("my", "our", "it's", "that's"):
            return True
        if then & (_FOREIGN_KINDS | K.CONDITION | K.CONCESSION | K.BE | K.MODAL):
            return False
        for place in range(j + 1, min(j + 7, at)):
            if self.kinds[place] & (K.BE | K.MODAL):
                return True
            if self.words[place] in (",", ":"):
                return False
        return False

    def _opens(self, at: int) -> bool:
        return all(kind & (K.SO | K.SIGN) for kind in self.kinds[:at])

    def _is_subject(self, at: int) -> bool:
        after = self.kinds[at + 1] if at + 1 < self.size else 0
        if self.words[at + 1 : at + 3] == ["it", "is"]:
            return True
        return bool(after & (K.BE | K.MODAL | K.SAY | K.EVIDENCE)) and not after & K.FILL

    def _is_closed(self, at: int) -> bool:
        """Return whether the option is not the subject of the words after it."""
        if at + 1 >= self.size:
            return True
        if self.words[at + 1] in ("or", "and"):
            return not self._is_subject(self._next_mark(at + 1))
        after = self.kinds[at + 1]
        return bool(after & _END_KINDS) and not after & (K.BE | K.MODAL)

    def _is_end(self, j: int) -> bool:
        return j >= self.size or bool(self.kinds[j] & K.SIGN)

    def _next_mark(self, j: int) -> int:
        return next((at for at in self.marks if at >= j), self.size)

    # ---- "C -> A", "all but C" ----

    def _read_arrow_or_all_but(self, at: int) -> _OptionClaim | None:
        words = self.words
        if self.says(_ARROWS, at - 3, at) and self.has(K.MARK, at - 5, at):
            return "changed", "own", 0
        if self.has(K.CHANGE, 0, at):
            first = max((n for n in self.marks if n < at), default=0)
            if words[at - 1] in ("to", "into") and at - first < 4 and words[first - 1] == ":":
                return "changed", "own", 0
        j = at - 1
        while j > 0 and self.kinds[j] & (K.FILL | K.NOUN) and words[j] not in _BUT and at - j < 4:
            j -= 1
        if (
            j > 0
            and words[j] in _BUT
            and self.says(_ALL_WORDS, j - 6, j)
            and not self.has(K.MARK, j - 6, j)
        ):
            is_judged = self.has(K.BAD | K.DOUBT | K.GOOD, 0, self.size)
            return ("all-but", "own", -1) if is_judged else ("left", "denied", at)
        return None

    # ---- "The answer is B", "I choose B", "Answer: B", "B" ----

    def _read_lead(self, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim by the words before the option."""
        words, kinds = self.words, self.kinds
        noun, is_linked, j = -1, False, at - 1
        while j >= begin and at - j < _FAR:
            word, kind = words[j], kinds[j]
            if kind & K.MARK:
                j -= words[j - 1 : j] in (["("], ['"'], ["my"], ["the"])
                if j <= begin or not (words[j - 1] == "from" or kinds[j - 1] & K.CHANGE):
                    return None
                j -= 1 + (words[j - 1] == "from")
                continue
            if kind & (K.AWAY | K.NEGATION) and not kind & K.BE and not self._is_aside(j):
                return "left", "denied", j
            if kind & K.NOUN and not self._is_verb(j):
                noun = j if noun < 0 else noun
            elif kind & K.BE and not (kind & K.STICK and self._is_verb(j)):
                return self._read_copula(j, at, begin, noun)
            elif kind & K.OWN and kinds[j + 1] & K.NOUN:
                pass  # "selected option: B"
            elif kind & (K.OWN | K.CHOSE) and j == begin and words[j + 1] == ":":
                pass  # "selected: B"
            elif kind & _VERB and not (kind & (K.FILL | K.THEIRS | K.OWN) and not self._is_verb(j)):
                return self._read_choice(j, at, begin)
            elif kind & K.EVIDENCE:
                if word == "mean" and self.has(K.SELF, j - 2, j):
                    return "changed", "own", j
                if words[j] in ("makes", "leaves") and words[at + 1 : at + 2] in (
                    ["the"], ["as"]
                ):  # fmt: skip
                    return "answer-is", "own", j  # "That makes B the answer"
                rule = "therefore" if words[j] in ("leaves", "leaving") else "verdict"
                return (rule, "own", j) if self._is_closed(at) else None
            elif kind & K.SAY and not kind & _PASSABLE_KINDS:
                return self._read_opinion(j, at, begin)
            elif not kind & _PASSABLE_KINDS and not kind & K.NEGATION:
                break
            is_linked = is_linked or (word in _LINKS and noun < 0)
            j -= 1
        if is_linked or (
            noun >= 0 and (words[noun] in ("answer", "ans") or words[noun - 1] == "my")
        ):
            return self._read_label(noun, at, begin, is_linked=is_linked)
        if self._is_alone(at, begin):
            return "bare", "own", begin
        if words[at - 1 : at] == [","] and at + 3 > self.size and self._is_end(at + 1):
            return "verdict", "own", at  # "Between A and C, C."
        return self._read_will(j, at, begin)

    def _read_will(self, j: int, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim of an intention without a known verb: "I would go straight to B"."""
        mine = max((n for n in range(begin, j + 1) if self.kinds[n] & K.SELF), default=-1)
        if mine < 0 or at - mine > 8 or self.words[j] in _STOPS:
            return None
        if self.has(K.NEGATION | K.DOUBT, begin, at) or self.has(_THEIRS, mine + 1, at):
            return None
        if self.says(_UNSURE | {"that"}, mine, at) or not self.has(K.MODAL | K.CHOOSE, mine, j):
            return None
        if self.has(K.MARK, mine, at):
            return None  # "I would try B (60%), C (30%)"
        return "choice", "hedged", mine

    def _is_alone(self, at: int, begin: int) -> bool:
        """Return whether a clause contains only the option: "So B.", "B, because ..."."""
        words, kinds = self.words, self.kinds
        if not all(kind & (K.SO | K.SIGN) for kind in kinds[begin:at]):
            return False
        if begin and (not kinds[begin - 1] & K.BREAK or words[begin - 1] == ";"):
            return False
        excluded_kinds = K.NEGATION | K.CONDITION | K.AWAY | K.BAD | K.LEAVE
        if "then" in words[:at] and self.has(K.MARK, 0, at) and not self.has(excluded_kinds, 0, at):
            return False  # "First B, then C"; not "B is wrong, then C"
        j = at + 1
        while j < self.size and words[j] in _QUOTES:
            j += 1
        if j >= self.size or words[j] in ".!?":
            return True
        if words[j] in _AND and self._adjacent(at):
            last = self._last_adjacent(at)
            whole = not begin and words[j] == "or" and self._is_end(last + 1)
            return (words[at] < "\ue040" or whole) and not self._is_subject(last)
        is_pause = words[j] in (",", "-")
        j += is_pause
        if j >= self.size:
            return True
        going_on = K.AWAY | K.CONDITION | K.CONCESSION | K.SELF | K.BREAK
        going_on |= K.NEGATION if is_pause else 0
        after_all = words[j : j + 2] == ["after", "all"]
        return bool(kinds[j] & going_on) or words[j] in _AFTER or after_all

    def _is_verb(self, j: int) -> bool:
        """Return whether a possible noun or preposition is a verb: "I answer B"."""
        kind, before = self.kinds[j], self.words[j - 1] if j else ""
        if not kind & _VERB or before in _ARTICLES:
            return False
        if not j:
            return not kind & K.NOUN
        return bool(self.kinds[j - 1] & (K.SELF | K.MODAL | K.OTHER)) or before in _CALLS

    def _is_aside(self, j: int) -> bool:
        """Return whether a "no" stands by itself: "No, B"."""
        return self.words[j] in ("no", "not") and self.words[j + 1 : j + 2] in (
            [","], ["."], ["-"], [":"]
        )  # fmt: skip

    def _read_owner(self, noun: int, begin: int, end: int) -> Stance:
        """Return whose answer a noun means, by the words around it: "the checker's answer"."""
        words, kinds = self.words, self.kinds
        owner_word = behind = 0
        for j in range(noun - 1, max(begin, noun - 6) - 1, -1):
            if kinds[j] & (K.BE | K.MARK | K.NEGATION) or words[j] in _ENDS or words[j] in _OF:
                break
            owner_word |= kinds[j]
            if words[j] in _ARTICLES:
                break
        then = words[noun + 1 : noun + 2]
        best = owner_word & (K.GOOD | K.FAIR) and then == ["by"]
        if _ABOUT.isdisjoint(then) and not best:
            for kind in kinds[noun + 1 : end]:
                behind |= kind
        if any(kind & _THEIRS and not kind & _OURS for kind in (owner_word, behind)):
            return "reported"
        if words[noun] == "alternative" and not owner_word & (K.OWN | K.GOOD):
            return "reported"
        is_renewed = self.says(_RENEWAL_WORDS, max(begin, noun - 5), noun)
        return "past" if (owner_word | behind) & K.PAST and not is_renewed else "own"

    def _is_qualifier(self, noun: int) -> bool:
        """Return whether a noun only qualifies another: "the reason for her choice"."""
        for j in range(noun - 1, max(-1, noun - 6), -1):
            if self.words[j] in _OF:
                return True
            if not self.kinds[j] & _ADJECTIVE:
                break
        return False

    def _read_label(
        self, noun: int, at: int, begin: int, *, is_linked: bool
    ) -> _OptionClaim | None:
        """Return the claim of a label before the option: "Final answer: B", "Runner-up: C"."""
        if not self._is_closed(at):
            return None
        words = self.words
        if not is_linked and self._is_rejected(at):
            return "answer-label", "denied", begin - 1  # "The answer B was not considered"
        if noun >= 0:
            final = words[noun - 1 : noun] == ["final"]
            return (
                "final-answer" if final else "answer-label",
                self._read_owner(noun, begin, at),
                noun,
            )
        link = next(j for j in range(at - 1, -1, -1) if words[j] in _LINKS)
        naming_kinds = 0
        for kind in self.kinds[begin:link]:
            naming_kinds |= kind
        if link - begin > 6 and words[link] == ":":
            theirs = self._is_reported(begin, link) and not self.has(K.SELF, begin, link)
            return "verdict", "reported" if theirs else "own", begin - 1
        if words[link - 1] in _WRONG:
            return "label", "denied", begin
        aside = K.SO | K.TURN | K.SIGN | K.OWN
        if all(kind & aside for kind in self.kinds[begin:link]):
            return "bare", "own", begin - 1  # "No, rather: B"
        if words[begin] in _LATER and words[link] == ":":
            return "answer-label", "own", begin  # "After your feedback: B"
        if naming_kinds & (_THEIRS | K.BAD | K.NEGATION):
            return "label", "reported", begin
        is_renewed = naming_kinds & (K.TURN | K.CHANGE) or self.says(_RENEWAL_WORDS, begin, link)
        if words[link] == ":" and naming_kinds & K.PAST and not is_renewed:
            return "label", "past", begin  # "Answer in the first round: B"
        ours = naming_kinds & (_OURS | K.TURN | K.OWN | K.GOOD | K.CHOSE | K.CHANGE)
        beside = all(kind & (K.SIGN | K.NOUN) for kind in self.kinds[link + 1 : at])
        if ours and beside and link - begin < 6:
            return "answer-label", "own", begin
        return "verdict", "past" if naming_kinds & K.PAST else "own", begin

    def _read_copula(self, j: int, at: int, begin: int, inner: int) -> _OptionClaim | None:
        """Return the claim of a form of "be" before the option."""
        words, kinds = self.words, self.kinds
        if self.says(_PLACES, j + 1, at) or (j > begin and kinds[j - 1] & K.MARK):
            return None  # "9% is the number in B", "B is my choice, A the other"
        if self.has(K.BAD, j + 1, at):
            return "verdict", "denied", j  # "the age is wrong for B"
        was = words[j] in _WAS
        modal = self.has(K.MODAL, j - 2, j)
        unsure = modal and self.says(_UNSURE, j - 3, j) and not self._adjacent(at)
        stance: Stance = "conditional" if unsure else "hedged" if was or modal else "own"
        question_word = next((n for n in range(begin, j) if words[n] in ("what", "one")), -1)
        if question_word >= 0 and self.has(K.SELF, question_word, question_word + 3):
            return "answer-is", stance, j  # "What I would choose is B"
        if question_word > begin and kinds[question_word - 1] & (K.THEIRS | K.PAST):
            return "answer-is", "reported", j  # "The second one is B"
        comma = max((n for n in range(begin, j) if words[n] == ","), default=begin - 1)
        far = self.says(
            _set("the this a an"), comma + 1, j
        )  # the words after the comma are another subject
        heads = (n for n in range(j - 1, comma if far else begin - 1, -1) if kinds[n] & K.NOUN)
        noun = next((n for n in heads if not self._is_qualifier(n)), -1)
        if noun < 0 and inner < 0:
            if not self._is_closed(at):
                return None
            if words[at - 1] == ":" and "?" not in words[at:]:
                # "The most likely cause is:\n\nB. ..."
                return "verdict", "own" if stance == "own" else "hedged", begin - 1
            plain = K.SO | K.FILL | K.SELF | K.SAY | K.MODAL
            is_plain = all(kind & plain for kind in kinds[begin:j])
            return "therefore" if is_plain else "verdict", stance, j
        whose = (
            self._read_owner(noun, begin, j) if noun >= 0 else self._read_owner(inner, j + 1, inner)
        )
        noun = noun if noun >= 0 else inner
        if whose != "own":
            return "answer-is", whose, j
        final = words[noun - 1 : noun] == ["final"] and not was
        return "final-answer" if final else "answer-is", stance, j

    def _read_choice(self, j: int, at: int, begin: int) -> _OptionClaim | None:
        """Return the claim of a verb of choice before the option."""
        words, kinds = self.words, self.kinds
        is_own, is_foreign = self.has(K.SELF, begin, j), self.has(_FOREIGN_KINDS, begin, j)
        if words[j] == "confident" and "," in words[j:at]:
            return None  # "I am 80% confident, with the rest on B"
        if words[0] == "to" and j == 1 and self.has(K.MODAL, at + 1, self.size):
            return "choice", "conditional", j  # "To make B correct, the stem would have to say so"
        if kinds[j] & K.LEAVE:
            return "left", "own" if self.is_denied(begin, j - 1) else "denied", -1
        if j > begin and words[j - 1] in ("over", "than"):
            return "left", "denied", j
        is_rejected = words[j].endswith("ing") and not is_own and self._is_rejected(at)
        if kinds[j] & K.CHANGE:
            between = words[j + 1 : at]
            mine = self.has(K.NOUN, begin, at) or "from" in between
            if "to" not in between and mine and self.is_denied(begin, j):
                return "kept", "own", begin - 1  # "no reason to change my answer: B"
            is_replaced = words[j].startswith("replac") and not {"with", "by"}.isdisjoint(between)
            is_replaced |= words[j].startswith(_SWAPS) and "for" in between
            is_decided = between == ["("] and "to" not in words[at + 1 : at + 4]  # "switch (B)"
            if _TO.isdisjoint(between) and not is_replaced and not is_decided:
                return "left", "denied", j
            return "changed", "denied" if is_rejected else "own", j
        if kinds[j] & K.CHOSE and not kinds[j] & (K.CHOOSE | K.STICK):
            is_meant = is_own and (words[j - 1] in _AT_LAST or words[j] == "meant")
            if "should" in words[max(begin, j - 3) : j] or is_meant:
                return "changed", "own", j  # "I should have written B", "I finally settled on B"
            if is_own and self.has(K.DOUBT | K.BAD, 0, self.size):
                return "chosen", "past", j  # "My mistake: I gave B"
            return ("chosen", "hedged", j) if is_own or is_foreign else None
        is_called = j == begin or words[j - 1] in _CALLS
        is_called = is_called or bool(kinds[j - 1] & (K.SO | K.BREAK | K.SIGN | K.MODAL))
        if not (is_own or is_foreign or is_called) or self.has(K.BAD, begin, j):
            return None  # "Common pitfall: choosing B"
        rule = "kept" if kinds[j] & K.STICK else "choice"
        if words[j - 1] == "in" and j - begin > 1 and kinds[j - 2] & K.MARK:
            is_negated = sum(bool(kind & K.NEGATION) for kind in kinds[begin:j]) % 2
            return rule, "denied" if is_negated else "own", begin - 1  # "I reject C in favor of B"
        if words[j - 1] == "to" and not is_own and self.has(K.THEIRS, begin, j):
            return rule, "reported", j  # "Your instinct to go for B"
        if is_own and self.says(_NEARLY, begin, j) and not kinds[j] & K.STICK:
            return rule, "past", j  # "I was close to choosing B"
        if is_own and words[j - 1] == "been" and self.says(_HAD, begin, j):
            return rule, "past", j  # "I had been leaning towards B"
        if not (is_own or is_foreign) and kinds[j - 1] & K.MODAL and words[j - 1] in _WOULD:
            return "verdict", "hedged", j  # "The culture would favor B"
        if is_rejected:
            return rule, "denied", j
        unsure = self.says(_UNSURE, max(begin, j - 5), j)
        return rule, "conditional" if unsure else "own", j

    def _read_opinion(self, j: int, at: int, begin: int) -> _OptionClaim:
        """Return the claim of a verb of thought: "I think B", "the checker expects B"."""
        if self.words[j] in _SETTLES and ":" in self.words[j:at]:
            return "answer-label", "own", j  # "The free air settles it: B"
        is_own = self.has(K.SELF, begin, j) and self.words[j] in _THINK
        direct = not self.says(_PLACES, j + 1, at) and self._is_closed(at)
        return "therefore" if is_own and direct else "said", "own", j

    def _is_rejected(self, at: int) -> bool:
        """Return whether choosing the option is called wrong: "choosing B would be a mistake"."""
        verb = parity = 0
        for j in range(at + 1, self.size):
            word, kind = self.words[j], self.kinds[j]
            if word in _STOPS or word in (":", ";", "|") or (word == "," and not verb):
                break
            verb |= kind & (K.BE | K.MODAL)
            worse = word in _WORSE and self.words[j - 1] in ("not", "never")
            parity += bool(kind & (K.BAD | K.DOUBT)) + bool(kind & K.NEGATION) + worse
        return parity % 2 == 1

    # ---- "B is correct" ----

    def _read_comment(self, at: int) -> _OptionClaim | None:
        """Return the claim by the words after the option."""
        words, kinds = self.words, self.kinds
        before = at - 1
        while before > 0 and kinds[before] & (K.SIGN | K.NOUN):
            before -= 1
        if words[before] in _ON and not (words[before] == "of" and kinds[before - 1] & K.NOUN):
            return None  # "Your hunch about B is right", "for B to be right"
        if "my" in words[at + 1 : at + 5] and self.says(_COUNTING_WORDS, at - 5, at):
            noun = next((n for n in range(at + 2, self.size) if kinds[n] & K.NOUN), at)
            if noun - at < 8 and self._read_owner(noun, at + 1, noun) == "own":
                return "choice", "own", at  # "Please consider B my revised answer"
        j, depth = at + 1, 0
        while j < self.size and j - at < 40:
            word, kind = words[j], kinds[j]
            depth = max(0, depth + (word == "(") - (word == ")"))
            gap = word in "()\"'*],`" or (kind & K.FILL and not kind & (K.BE | K.SIGN))
            gap = gap and word not in _APART
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
            if not kinds[j] & (K.MODAL | K.FILL) and words[j] != "have":
                break
            j += 1
        word, kind = words[j], kinds[j]
        if kind & K.SIGN and kind & (K.GOOD | K.BAD):
            return "is-correct", "own" if kind & K.GOOD else "denied", at
        if word in ("yes", "no") and not modal and self._is_end(j + 1):
            return "is-correct", "own" if word == "yes" else "denied", at
        if word in _REPLACES and self._next_mark(j) - j < 5:
            return "changed", "own", at  # "B replaces C as my answer"
        if word in _DOES and self.says(_FIT, j, j + 4):
            is_negated = self.has(K.NEGATION, j, j + 3)
            return ("is-correct", "denied", at) if is_negated else None  # "B does not fit"
        if word in _FITS and self.says(_set("better best"), j + 1, j + 9):
            return "is-correct", "hedged", at  # "B explains the fever better"
        gloss = word in (":", "-") and not modal
        if not (gloss or kind & K.BE or word in _SEEMS or word in _STAYS):
            return None
        stays = words[j - 1] == "it" or word in _STAYS
        if stays and not gloss and (self._is_end(j + 1) or words[j + 1] in _AFTER):
            return "is-correct", "own", at  # "B it is", "B stays"
        was = words[j] in _WAS
        unsure = (modal in _UNSURE and bool(modal)) or is_missed
        shaky = modal or was or words[j] == "becomes"
        sure: Stance = "conditional" if unsure else "hedged" if shaky else "own"
        return self._gloss(j, at) if gloss else self._predicate(j, at, sure)

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
            if kind & K.NOUN:
                whose = self._read_owner(p, j + 1, p)
                return ("is-correct", whose, at) if whose != "own" else None
        return ("is-correct", "denied", at) if parity % 2 and self._is_end(j + 2) else None

    def _predicate(self, j: int, at: int, sure: Stance) -> _OptionClaim | None:
        """Return the claim of the words after "B is": "correct", "the checker's choice"."""
        words, kinds = self.words, self.kinds
        parity = int(bool(kinds[j] & K.NEGATION))
        for p in range(j + 1, min(self.size, j + 9)):
            word, kind = words[p], kinds[p]
            if kind & K.MARK or word in ("but", ";") or (word in ",:." and p > j + 1):
                break
            parity += bool(kind & K.NEGATION)
            if word in _REPORTING_WORDS and p == j + 1:
                return "is-correct", "reported", at  # "B is given as the answer"
            stance: Stance = "denied" if parity % 2 else sure
            if kind & K.BAD:
                return "is-correct", "own" if parity % 2 else "denied", at
            if word in _QUESTION_STARTS or word == "one":
                return self._read_relative(p, at, stance)
            if kind & K.NOUN and self._is_the_answer(p):
                whose = self._read_owner(p, j + 1, p)
                if whose != "own" and not (whose == "past" and words[j] not in _WAS):
                    return "is-correct", whose, at
                if self._is_elsewhere(p):
                    return "is-correct", "conditional", at  # "the right answer only in pregnancy"
                return "is-correct", "hedged" if stance == "conditional" else stance, at
            if word == "kept" and words[p + 1 : p + 2] in (["in"], ["on"], ["under"]):
                return None  # "C should be kept in mind"
            is_judged = kind & (K.GOOD | K.FAIR)
            if is_judged and not (p + 1 < self.size and kinds[p + 1] & (K.NOUN | K.OWN)):
                if self._is_elsewhere(p):
                    return "is-correct", "conditional", at
                fair = stance == "own" and not kind & K.GOOD
                return "is-correct", "hedged" if fair else stance, at
        return ("is-correct", "denied", at) if parity % 2 else None

    def _is_elsewhere(self, p: int) -> bool:
        """Return whether a word is about another case: "right in children"."""
        when = "when" in self.words[p + 1 : p + 4] and not self.has(K.SELF, p, p + 5)
        return when or self.says(_ELSEWHERE, p + 1, p + 5) or self._is_of_others(p + 1, p + 4)

    def _is_of_others(self, begin: int, end: int) -> bool:
        """Return whether a phrase is about other patients: "in pregnancy"."""
        for j in range(max(0, begin), min(end, self.size - 1)):
            if self.words[j] in ("in", "for", "among", "with", "during", "at", "of"):
                then = self.words[j + 1]
                return then not in _DETERMINERS and self.has(K.GROUP, j + 1, j + 5)
        return False

    def _is_of_another_question(self, lead: int) -> bool:
        """Return whether a claim answers another question: "In the next item, the answer is B"."""
        question_place = next(
            (j for j in range(1, min(lead, 9)) if self.words[j] in _QUESTION_WORDS), 0
        )
        return self.has(K.THEIRS | K.PAST, 1, question_place and question_place + 2)

    def _read_relative(self, p: int, at: int, sure: Stance) -> _OptionClaim | None:
        """Return the claim of the words after "B is what": "I would choose", "you suggest"."""
        then = self.words[p + 1 : p + 2]
        if self.words[p] == "one" and (then == ["to"] or self._is_end(p + 1)):
            return "is-correct", sure, at  # "B is the one to choose"
        if then in (["that"], ["which"]) and self.says(_FITS, p + 2, p + 5):
            return "is-correct", "hedged" if sure == "own" else sure, at
        if self.has(K.SELF, p + 1, p + 4):
            past = self.words[p - 1] in _WAS or self.has(K.PAST, p, p + 8)
            return "is-correct", "past" if past and "still" not in self.words else sure, at
        if self.has(_FOREIGN_KINDS, p + 1, p + 4) or then == ["was"]:
            return "is-correct", "reported", at
        return ("is-correct", "hedged", at) if self.words[p] == "what" else None

    def _is_the_answer(self, p: int) -> bool:
        """Return whether a noun means the answer: "the best choice", not "a type of selection"."""
        before = self.kinds[p - 1] & (K.OWN | K.MINE | K.GOOD | K.FAIR | K.PAST | _THEIRS)
        return self.words[p - 1] != "of" and bool(before or self.words[p - 1] == "the")

    # ---- Stance ----

    def stance(self, rule: str, begin: int, lead: int, at: int, stance: Stance) -> Stance:
        """Return the stance of a claim by the words around it.

        Args:
            rule: Form of the claim.
            begin: Start of its clause.
            lead: Word that leads to the option. Before ``begin`` if the form determines the stance.
            at: Position of the option.
            stance: Stance by the form, ``own`` or ``hedged``.
        """
        words, kinds = self.words, self.kinds
        if "?" in words[-3:] and words[-1] in "?)\"'*":
            return "conditional"
        verdict = rule in ("verdict", "answer-is")
        if self.is_denied(self._scope(begin, lead) if verdict else begin, lead):
            return "denied"
        if self._is_reported(begin, lead):
            return "reported"
        if self._is_conditional(begin, lead, at, within=verdict):
            return "conditional"
        if stance == "hedged" and (words[lead] in _WAS or kinds[lead] & K.CHOSE):
            if self.has(K.PAST, begin, lead):
                return "past"
        if self.says(_ONCE, begin, lead) and rule in ("answer-is", "verdict", "therefore"):
            return "past"
        if self.has(K.CONCESSION, begin, lead) or self.says(_PERHAPS, begin, at):
            return "hedged"
        if words[0] in ("in", "on", "for") and self._is_of_another_question(lead):
            return "conditional"
        # "In children, B is right", "the group in which B is right"
        if self._is_of_others(0, 1) or words[at - 1 : at] in (["which"], ["whom"], ["where"]):
            return "hedged"
        return stance

    def _scope(self, begin: int, lead: int) -> int:
        """Return the start of the words that can deny a verdict: not "no fever" in its subject."""
        for j in range(lead - 1, begin - 1, -1):
            if self.words[j] in _NOTHING or self.kinds[j] & (K.SELF | K.SAY):
                return begin
        return max(begin, lead - 2)

    def is_denied(self, begin: int, lead: int) -> bool:
        """Return whether a clause negates its verb. Two negations cancel each other."""
        parity = 0
        for j in range(begin, min(lead + 1, self.size)):
            kind = self.kinds[j]
            if kind & K.NEGATION and not (parity and self.words[j] == "nor"):
                parity += not self._is_aside(j)
            parity += bool(kind & K.DOUBT) and j < lead
        return parity % 2 == 1

    def _is_reported(self, begin: int, lead: int) -> bool:
        words, kinds = self.words, self.kinds
        foreign_place = own_place = -1
        for j in range(begin, lead):
            if words[j] in ("me", "us") and kinds[j - 1] & K.SAY and words[j + 1] == "to":
                return True  # "You ask me to confirm B"
            if kinds[j] & K.SELF:
                own_place = j
            elif kinds[j] & _FOREIGN_KINDS:
                foreign_place = j
        # "I see that the textbook says B" is the textbook's
        that_place = (
            own_place
            if own_place < 0
            else next((j for j in range(own_place, lead) if words[j] == "that"), lead)
        )
        that_place = max(begin, that_place)
        if self.has(K.OPINES, that_place, lead) and not self.has(K.MINE, that_place, lead):
            return True
        if own_place < 0 and self.says(_ACCORDING, begin, lead) and "my" not in words[begin:lead]:
            return True
        saying_places = [
            j
            for j in range(begin, lead + 1)
            if kinds[j] & (K.SAY | K.BELIEF) and not kinds[j] & K.NOUN
        ]
        if foreign_place < 0:
            belief_places = [
                j
                for j in saying_places
                if kinds[j] & K.BELIEF and words[j - 1] != "my" and j < lead
            ]
            return bool(belief_places) and "that" in words[belief_places[-1] : lead + 1]
        if own_place > foreign_place or (
            own_place >= 0 and self.has(K.AGREE | K.CHOOSE, own_place, foreign_place)
        ):
            return False
        # "the patient's pain is" reports nothing, "you suggest that the answer is" does
        if any(
            0 < j - foreign_place < 6 and "," not in words[foreign_place:j] for j in saying_places
        ):
            return True
        return bool(kinds[lead] & (_VERB & ~K.CHANGE) and own_place < 0)

    def _is_conditional(self, begin: int, lead: int, at: int, *, within: bool) -> bool:
        words, kinds = self.words, self.kinds
        if words[0] in ("should", "had", "were") and not kinds[1] & K.SELF:
            return True  # "Had she been pregnant, B."
        if begin and words[begin - 1] in (",", "then") and not kinds[0] & _OURS:
            is_met = kinds[0] & K.CONDITION or words[0] == "when"
            ours = kinds[1] & (_OURS | K.OTHER) and not self.says(_SUPPOSING_WORDS, 0, begin)
            if is_met and not ours and words[1] != "that":
                return True  # "If the culture grows, the answer will be B"
        for j in range(begin, lead):
            subject = any(self.kinds[n] & K.NOUN for n in range(j, lead))
            if within and j > begin + 2 and "," not in words[j:lead] and not subject:
                continue  # "the structure at risk if the mass persists is B"
            if kinds[j] & K.CONDITION and words[j - 1 : j] not in (["even"], ["as"]):
                return not (words[j] == "if" and kinds[j + 1] & K.OTHER)  # "if you insist"
        for j in range(at + 1, self.size):
            goes_on = j + 1 < self.size and kinds[j + 1] & K.CONDITION
            if kinds[j] & K.BREAK or words[j] == "|" or (words[j] == "," and not goes_on):
                break
            if kinds[j] & K.CONDITION and words[j - 1] not in ("because", "even", "as"):
                return True
        return "had" in words[begin:lead] and "would" in words[at:]

    # ---- Two options at once ----

    def _adjacent(self, at: int) -> str:
        """Return the mark of another option in the same claim, else an empty text."""
        words, kinds = self.words, self.kinds
        if at > 1 and words[at - 1] in ("and", "or") and kinds[at - 2] & K.MARK:
            single = words[at - 1] == "and" and words[at + 1 : at + 2] in (["is"], ["was"])
            return "" if single else words[at - 2]
        is_linked = False
        for j in range(at + 1, min(self.size, at + 12)):
            word, kind = words[j], kinds[j]
            if kind & K.MARK:
                if "\ue040" <= word <= "\ue07f" and not "\ue040" <= words[at] <= "\ue07f":
                    return ""  # the words of the option continue: "A: Surgery, chemotherapy"
                single = self._is_subject(j) and words[j + 1] not in ("are", "were", "both")
                return word if is_linked and word != words[at] and not single else ""
            if word in _AND:
                is_linked = True
            elif word in ";:-?!." or not (kind & (K.FILL | K.NOUN) or word in _PERHAPS):
                return ""
        return ""

    def _last_adjacent(self, at: int) -> int:
        """Return the last of the linked options: "B, C and D"."""
        last = at
        for j in range(at + 1, self.size):
            if self.kinds[j] & K.MARK:
                last = j
            elif self.words[j] not in _AND and not self.kinds[j] & K.NOUN:
                break
        return last
