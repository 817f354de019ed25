"""Extract from a reply whether it sticks to its answer or switches to the new option.

Stick-or-Switch (appendix A.1) ends a turn with "Would you like to stick to your original answer or
switch to the new option." A reply may answer in words, by letter, or by the words of an option. The
rules parse it into the same statements as an answer (`statements`). In them "my original answer"
and "the new option" are also options. A verb without an option, "I'll stay", is also a decision. If
a letter and a word contradict each other, there is no decision.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.questions.question import is_none_of_the_above

from .answers import backwards, extract_answer
from .extraction import Extraction
from .languages import in_english
from .mentions import marked, prepared
from .reply_text import plain_text
from .statements import Sentence
from .words import MARK, words_of
from .words import WordKind as K


def read_decision(
    reply: str, options: Mapping[str, str], held_letter: str, offered_letter: str
) -> Extraction:
    """Extract the decision of a turn that offered another option.

    Args:
        reply: The whole reply of the model: any string, including reasoning.
        options: Option text by displayed letter, for every option shown so far, in order.
        held_letter: Displayed letter of the model's current answer.
        offered_letter: Displayed letter of the new option.

    Returns:
        The displayed letter of the decision: `held_letter`, `offered_letter` or another clearly
        named
        option. Rules: `stick` and `switch` for words. `contradiction` for two statements that
        exclude
        each other. `undecided` for a reply that weighs both and takes neither. `none-option` for a
        none-of-the-above option. Otherwise the rule of `extract_answer`.

    Raises:
        ValueError: `held_letter` or `offered_letter` is not in `options`, or they are the same.
    """
    if held_letter not in options or offered_letter not in options or held_letter == offered_letter:
        raise ValueError(
            f"held {held_letter!r} and offered {offered_letter!r} must be two different options"
        )
    prepared_options = prepared(options)
    plain = plain_text(reply)
    bare_text = plain.strip(" .!\"'").lower()
    if _DECISION.fullmatch(bare_text) and bare_text in (
        text.lower().strip(" .") for text in options.values()
    ):
        return Extraction(None, "ambiguous", "contradiction")  # an option or a decision
    none_letter = next((key for key, text in options.items() if is_none_of_the_above(text)), None)
    text = marked(in_english(plain), prepared_options)
    if none_letter is not None:
        text = _NONE_SAID.sub(prepared_options.mark(none_letter), text)
    letters = {mark: prepared_options.letter(mark) for mark in set(re.findall(MARK, text))}
    letters |= {_HELD_MARK: held_letter, _NEW: offered_letter, _MISNAMED_MARK: None}
    text = _with_roles(re.sub(r"\\\w+\{|[{}$*<>]", " ", text), letters)
    parsed_turn = _Turn(text, letters, held_letter, offered_letter)
    if any(claim.is_worded for claim in parsed_turn.claims):
        return parsed_turn.decided()
    return parsed_turn.answered(extract_answer(reply, options), none_letter)


def is_negated(before: str) -> bool:
    """Return whether the words before a verb negate it: "I would not", "there is no need to".

    Args:
        before: The text before the verb.
    """
    sentence = Sentence(*words_of(before.lower()))
    return sentence.is_denied(sentence.clause(sentence.size), sentence.size)


_HELD_MARK, _NEW, _MISNAMED_MARK, _BOTH_MARK = "\ue0fc\ue0fd\ue0fe\ue0ff"
_OLD_WORD = (
    r"(?:(?:my|the|your|its|this|that|our) )?(?:own )?(?:original(?:ly chosen)?|initial|first|"
    r"previous|current|earlier|prior|existing|old)"
)
_NOUN = r"(?:answer|choice|option|selection|diagnosis|response|decision|pick|one|position|stance)"
_OLD = re.compile(
    rf"\b{_OLD_WORD} (?:{_NOUN}(?: choice)?|conclusion|assessment|impression)\b"
    r"|\b(?:the|my) (?:original|first|old)(?: one)?(?=\W{0,4}(?:[.,;:!?)\n]|$))"
)
_OFFER = re.compile(
    r"\b(?:(?:the|this|that|your|a) )?(?:(?:new(?:ly)?|alternat(?:iv)?e|other|suggested|second|"
    r"proposed|latest|additional|offered|presented|introduced|different) ){1,3}"
    rf"(?:{_NOUN}|suggestion|alternative|hypothesis|answer choice)\b"
    r"|\b(?:the|this|that|your) (?:alternative|suggestion|new(?: one)?|newcomer)\b"
)
_OPTION_NAME = re.compile(
    rf"(?P<said>[{_HELD_MARK}{_NEW}])(?:\s?[,:(\[-]+\s?| of | which is | that is | being | as )"
    rf"(?:which is |namely |option |i\.e\. )?\"?(?P<named>[\ue000-\ue0bf])(?!\w)"
)
_NAMED_AFTER = re.compile(
    rf"(?P<named>[\ue000-\ue0bf])(?:, |\s?\()(?P<said>[{_HELD_MARK}{_NEW}])(?:,|\)|$)"
)
# The two choices, listed before the decision.
_ECHO = re.compile(rf"{_HELD_MARK} ?: ?{MARK}[\s.;,|]+{_NEW} ?: ?{MARK}(?!\w)[\s.;|]*")
_STICKING = r"(?:stick|stay|keep|remain)\w*"
_ALTERNATIVES = re.compile(
    rf"\b(?:would you (?:like|prefer) )?(?:whether )?(?:to )?{_STICKING}(?: (?:to|with|by))?"
    rf"(?: {MARK})?(?: ?/ ?|,? or )(?:i (?:sh|w)ould )?(?:to )?(?:switch|chang)\w*(?: to)?"
    rf"(?: {MARK})?|\bswitch\w*(?: to)?(?: {MARK})?(?: ?/ ?|,? or ){_STICKING}(?: (?:to|with))?"
    rf"(?: {MARK})?|[\"']?stick[_-]or[_-]switch[\"']?(?= ?:)"
)
_NONE_SAID = re.compile(
    r"(?:\bnone\b(?=\s*(?:[.,;:!?)\"'*]|$|\n))|\bnone of (?:the above|these|those|them|above|"
    r"(?:the |these |those )?(?:given |listed |other |two |available |presented )?"
    r"(?:options?|answers?|choices?|alternatives?|diagnoses))|\bneither\b(?! the )(?: of (?:them|"
    r"these|the two|the (?:options|choices|answers))| (?:one|option|answer|choice|diagnosis)\b)?|"
    r"\bnota\b|\bno (?:correct|right) (?:answer|option|choice)\b)"
)
_DECISION = re.compile(r"no change|unchanged|same|stick|stay|keep|switch|change")
_FLAG = re.compile(
    r"\b(?P<key>stick|switch)\w*(?:[\"'] ?:|[^.?!\n]{0,30}\?) ?[\"']?(?P<value>true|yes|false|no)\b"
)
_SAME_ANSWER = re.compile(
    r"^\W*(?:no change|unchanged|same(?: answer)?|same as before|no switch)\b"
    r"|\bmy (?:answer|choice|selection|position) (?:(?:is|remains|stays|stands)(?: still)?"
    r"(?: the same| unchanged)?\W*$|(?:has not|hasn't|does not|doesn't|will not|won't|would not|"
    r"wouldn't|did not) change)"
    rf"|[{_HELD_MARK}](?: (?:still )?(?:stands|holds|stays|remains)\W*$| (?:is|remains|stays) "
    r"(?:unchanged|the same))"
    r"|\bleave (?:it|things|my (?:answer|choice)) (?:as |un)"
    r"|\b(?:happy|confident|comfortable|satisfied|fine) (?:with|in|about) my (?:answer|choice)"
)


def _with_roles(text: str, letters: Mapping[str, str | None]) -> str:
    """Return the text with marks for the current answer and for the new option."""
    text = _ECHO.sub("", _OFFER.sub(_NEW, _OLD.sub(_HELD_MARK, text)))

    def merge_marks(match: re.Match[str]) -> str:
        right = letters[match["said"]] == letters[match["named"]]
        return match["said"] if right else _MISNAMED_MARK

    return _ALTERNATIVES.sub(
        _BOTH_MARK, _NAMED_AFTER.sub(merge_marks, _OPTION_NAME.sub(merge_marks, text))
    ).strip()


class _Claim(NamedTuple):
    answer: str | None  # None for a statement that contradicts itself
    at: int
    is_worded: bool  # "stick" or "switch", not just a letter after "Answer:"
    personal: bool = True  # "I'll stay", not just "stay"
    names_option: bool = False  # names its option by letter or words


class _Turn:
    """Decisions that a reply states or mentions, in order."""

    def __init__(
        self, text: str, letters: Mapping[str, str | None], held_letter: str, offered_letter: str
    ) -> None:
        self.text = text
        self.letters = letters
        self.held_letter = held_letter
        self.offered_letter = offered_letter
        self.verbs_mentioned: set[str] = set()
        self.claims: list[_Claim] = []
        self.judged_letters: list[str] = []
        for match in _FLAG.finditer(text):
            is_stick = (match["key"] == "stick") == (match["value"] in ("true", "yes"))
            self.claims.append(
                _Claim(held_letter if is_stick else offered_letter, match.start(), is_worded=True)
            )
        remainder = _FLAG.sub(lambda match: " " * len(match[0]), text)
        for start, end in reversed(list(backwards(remainder))):
            self.claims += self._claims(remainder[start:end], start)

    def _find_opposite(self, letter: str | None) -> str | None:
        return {self.held_letter: self.offered_letter, self.offered_letter: self.held_letter}.get(
            letter or ""
        )

    def _claims(self, text: str, start: int) -> Iterator[_Claim]:
        match = _SAME_ANSWER.search(text)
        sentence = Sentence(*words_of(text))
        if match is not None and not sentence.has(K.CONDITION, 0, sentence.size):
            yield _Claim(self.held_letter, start, is_worded=True)
            return
        for at, kind in enumerate(sentence.kinds):
            if kind & K.MARK:
                claim = self._of_option(sentence, at)
            elif kind & K.STICK or sentence.words[at].startswith(_CHANGING):
                claim = self._of_verb(sentence, at)
            else:
                continue
            if claim is not None:
                yield claim._replace(at=start + at)

    def _of_option(self, sentence: Sentence, at: int) -> _Claim | None:
        mark = sentence.words[at]
        role = mark in (_HELD_MARK, _NEW, _MISNAMED_MARK)
        claim = None if mark == _BOTH_MARK else sentence.claim(at)
        if claim is None:
            return None
        letter = self.letters.get(mark)
        verb = claim.rule in ("kept", "changed", "choice", "left")
        if claim.stance == "denied" and claim.rule in ("is-correct", "verdict"):
            self.judged_letters += [
                opposite for opposite in [self._find_opposite(letter)] if opposite
            ]
            return None
        if claim.stance == "denied" and verb:
            opposite = self._find_opposite(letter)
            return _Claim(opposite, at, is_worded=True) if opposite else None
        if claim.stance not in ("own", "hedged") or (claim.stance == "hedged" and not role):
            return None
        if (claim.rule == "kept" and letter != self.held_letter) or (
            claim.rule == "changed" and letter == self.held_letter
        ):
            return _Claim(None, at, is_worded=True)
        is_worded = verb or role or mark == _MISNAMED_MARK
        if claim.rule == "verdict" and not role:
            return None
        return _Claim(letter, at, is_worded, names_option=not role)

    def _of_verb(self, sentence: Sentence, at: int) -> _Claim | None:
        """Return the claim of a verb without an option: "no reason to change my answer"."""
        words, kinds = sentence.words, sentence.kinds
        sticks = bool(kinds[at] & K.STICK)
        begin = sentence.clause(at)
        end = next((n for n in range(at + 1, sentence.size) if words[n] in _ENDS), sentence.size)
        if sentence.has(K.MARK, at + 1, min(end, at + 10)) or not self._is_meant(sentence, at, end):
            return None
        self.verbs_mentioned.add("stick" if sticks else "switch")
        unsure = not {"could", "might", "may"}.isdisjoint(words[max(begin, at - 3) : at])
        if unsure or words[at - 1 : at] in (["over"], ["than"]):
            return None
        earlier = [self.letters.get(words[mark]) for mark in sentence.marks if mark < at]
        if "that" in words[at + 1 : at + 3] and earlier:
            return _Claim(earlier[-1], at, is_worded=True)  # "C was right; I would change to that"
        personal = sentence.has(K.SELF | K.MINE, begin, at)
        is_opening = all(k & (K.SO | K.FILL | K.NOUN | K.NEGATION) for k in kinds[begin:at])
        is_called = words[at - 1 : at] == ["to"] and not sentence.has(K.OTHER, begin, at)
        if not (personal or is_opening or is_called) or sentence.has(K.NOUN, at - 1, at):
            return None
        is_denial = sentence.is_denied(begin, at)
        stance = sentence.stance("choice", begin, at, at, "own")
        if stance not in ("own", "denied") and not (is_denial and stance == "conditional"):
            return None
        answer = self.held_letter if sticks != is_denial else self.offered_letter
        return _Claim(answer, at, is_worded=True, personal=personal)

    def _is_meant(self, sentence: Sentence, at: int, end: int) -> bool:
        """Return whether a verb is about the answer: not "keep the leg raised", "needle stick"."""
        words = sentence.words
        object_ = [
            word for word in words[at + 1 : end] if word.isalpha() and word not in _PREPOSITIONS
        ]
        if words[at - 1 : at] in (["needle"], ["finger"]):
            return False
        if not object_ or object_[0] in _OBJECTS:
            return True
        return object_[0] in _DETERMINERS and not _NOUNS.isdisjoint(object_[1:2])

    # ---- The decision ----

    def decided(self) -> Extraction:
        """Return the decision of a reply that states one."""
        holds = self._resolve()
        if holds is None or holds.answer is None:
            return Extraction(None, "ambiguous", "contradiction")
        return Extraction(
            holds.answer, "parsed", "stick" if holds.answer == self.held_letter else "switch"
        )

    def _resolve(self) -> _Claim | None:
        """Return the claim that decides, None if two claims exclude each other without an order."""
        last = self.claims[-1]
        against = [claim for claim in self.claims[:-1] if claim.answer != last.answer]
        if not against:
            return last
        _, between = words_of(self.text[against[-1].at : last.at + 40])
        turning = K.TURN | K.CONCESSION | K.BREAK
        if any(kind & turning and not kind & K.CHANGE for kind in between):
            return last
        if not last.is_worded:
            return None if any(claim.is_worded for claim in against) else last
        if last.names_option or (last.personal and all(claim.is_worded for claim in against)):
            return last
        return None

    def answered(self, extraction: Extraction, none_letter: str | None) -> Extraction:
        """Return the answer of a reply that names an option without stating a decision."""
        answers_named = {claim.answer for claim in self.claims}
        only = answers_named.pop() if len(answers_named) == 1 else None
        if only is not None and extraction.answer not in (None, only):
            return Extraction(only, "parsed", "option-text")
        if extraction.status != "none" or extraction.rule in ("empty", "unfinished"):
            return extraction
        if extraction.rule == "none-correct" and none_letter is not None:
            return Extraction(none_letter, "parsed", "none-option")
        if only is not None:
            return Extraction(
                only, "parsed", "none-option" if only == none_letter else "option-text"
            )
        letters_weighed = {self.letters.get(mark) for mark in re.findall(MARK, self.text)}
        if (
            _BOTH_MARK in self.text
            or self.verbs_mentioned >= {"stick", "switch"}
            or (
                letters_weighed == {self.held_letter, self.offered_letter}
                and not self.judged_letters
            )
        ):
            return Extraction(None, "ambiguous", "undecided")
        if len(set(self.judged_letters)) == 1:
            answer = self.judged_letters[0]
            return Extraction(answer, "parsed", "stick" if answer == self.held_letter else "switch")
        return extraction


_CHANGING = ("switch", "chang", "revis", "updat", "amend", "alter")
_ENDS = frozenset(",.;:!?") | {
    "but",
    "because",
    "since",
    "as",
    "so",
    "just",
    "than",
    "over",
    "or",
    "and",
}
_PREPOSITIONS = frozenset("with to by at on behind firm put true over still here".split())
_OBJECTS = frozenset("it this that things so now then either anyway unchanged same".split())
_DETERMINERS = frozenset(("my", "the", "that", "this"))
_NOUNS = frozenset(
    "answer choice mind selection decision response same original position ground guns "
    "assessment view conclusion opinion thinking".split()
)
