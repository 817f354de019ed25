"""Extract from a reply whether it sticks to its answer or switches to the new option.

In the statements of a reply, "my original answer" and "the new option" are also options, and a verb
without an option, "I'll stay", is also a decision (Stick-or-Switch, appendix A.1). If a letter and
a word contradict each other, there is no decision.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from holdfast.questions.question import is_none_of_the_above

from .answers import NAMED, RANKS, backwards, extract_answer
from .asides import without_asides
from .comparisons import comparison, is_merit
from .extraction import Extraction
from .mentions import marked_in_english, prepared
from .patterns import Patterns, WordSets
from .refusal import abstains
from .reply_text import plain_text
from .statements import Sentence
from .words import WordKind as K
from .words import words_of

P = Patterns("decisions")
W = WordSets()


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
        named option. Rules: `stick` and `switch` for words, `contradiction` for two statements
        that exclude each other, `undecided` for a reply that weighs both and takes neither,
        otherwise the rule of `extract_answer`.

    Raises:
        ValueError: `held_letter` or `offered_letter` is not in `options`, or they are the same.
    """
    if held_letter not in options or offered_letter not in options or held_letter == offered_letter:
        pair = f"held {held_letter!r} and offered {offered_letter!r}"
        raise ValueError(f"{pair} must be two different options")
    prepared_options = prepared(tuple(options.items()))
    plain = plain_text(reply)
    bare_text = plain.strip(" .!\"'").lower()
    texts = {text.lower().strip(" .") for text in options.values()}
    if P.decision.fullmatch(bare_text) and bare_text in texts:
        return CONTRADICTION  # an option or a decision
    none_letter = next((key for key, text in options.items() if is_none_of_the_above(text)), None)
    text = marked_in_english(plain, prepared_options)
    if none_letter is not None:
        text = P.none_said.sub(prepared_options.mark(none_letter), text)
    letters = {mark: prepared_options.letter(mark) for mark in set(P.marks.findall(text))}
    letters |= {_HELD_MARK: held_letter, _NEW: offered_letter, _MISNAMED_MARK: None}
    text = P.unconsidered.sub("", P.opening.sub("", P.header.sub("", text)))
    text = P.a_switch.sub("switching", text)
    text = P.too.sub("not", P.second_thought.sub("", P.arrow.sub(r"\1 to ", text)))
    text = P.bullet.sub(r"\1- ", re.sub(r"\\\w+\{|[{}$<>]", " ", text)).replace("*", " ")
    asks = P.asks_for_decision.search(text) is not None
    text = _with_roles(P.parenthetical.sub(" ", P.spaces.sub(" ", text)), letters)
    text = without_asides(P.bracketed.sub(r"\1 to \2", text))
    parsed_turn = _Turn(text, letters, held_letter, offered_letter)
    if asks or P.asks_back.search(text):
        return UNDECIDED
    opened = P.opening.sub("", plain)
    claimed = P.not_claimed.sub("", _introduced(opened, options[offered_letter]))
    extraction = extract_answer(claimed if claimed != plain else reply, options)
    if parsed_turn.leaves_both(extraction):
        return extraction
    if P.depends.search(text) and len({claim.answer for claim in parsed_turn.claims}) != 1:
        has_answer = parsed_turn.claims or extraction.answer
        return UNDECIDED if has_answer else extraction
    decided = (claim.at for claim in parsed_turn.claims if claim.personal or not claim.is_worded)
    decided_at = max(decided, default=-1)
    patterns = (P.undecided, P.both_denied, P.balanced, P.shared)
    unsettled = [match for pattern in patterns for match in pattern.finditer(text)]
    if extraction.answer not in {None, held_letter, offered_letter}:
        unsettled = []  # "The new option is wrong, and so is my first one. Answer: D"
    unsettled = [match for match in unsettled if parsed_turn.is_about_turn(match[0])]
    open_at = max((match.end() for match in unsettled), default=-1)
    if open_at > decided_at or abstains(text, decided_at) or P.jointly.search(text):
        return extraction if extraction.status == "refused" else UNDECIDED
    is_worded = any(claim.is_worded for claim in parsed_turn.claims)
    if not is_worded and P.left_open.search(text, decided_at + 1):
        return UNDECIDED
    if is_worded:
        answer = parsed_turn.resolved()
        if extraction.answer is None and parsed_turn.is_indirect():
            return UNDECIDED
        read = parsed_turn.word(answer) if answer else CONTRADICTION
    elif claimed.strip() or not plain.strip():
        read = parsed_turn.answered(extraction)
    else:
        return UNDECIDED
    return UNDECIDED if parsed_turn.is_turned(read) else read


def _introduced(plain: str, offered: str) -> str:
    """Return a text with a mark for the offered option where "The new option is" introduces it."""
    match = P.introduction.search(plain)
    if match is None or not plain[match.end() :].lower().startswith(offered.lower()):
        return plain
    return plain[: match.end()] + _NEW + plain[match.end() + len(offered) :]


def is_negated(before: str) -> bool:
    """Return whether the words before a verb negate it: "I would not", "there is no need to"."""
    sentence = Sentence(*words_of(before.lower()))
    return sentence.is_denied(sentence.clause(sentence.size), sentence.size)


_HELD_MARK, _NEW, _MISNAMED_MARK, _BOTH_MARK = "\ue0fc\ue0fd\ue0fe\ue0ff"
UNDECIDED = Extraction(None, "ambiguous", "undecided")
CONTRADICTION = Extraction(None, "ambiguous", "contradiction")


def _with_roles(text: str, letters: Mapping[str, str | None]) -> str:
    """Return the text with marks for the current answer and for the new option."""
    text = P.echo.sub("", P.offer.sub(_NEW, P.old.sub(_HELD_MARK, text)))

    def merge_marks(match: re.Match[str]) -> str:
        right = letters[match["said"]] == letters[match["named"]]
        return match["said"] if right else _MISNAMED_MARK

    def resolve(match: re.Match[str]) -> str:
        marks = P.marks.findall(match.string, max(0, match.start() - 200), match.start())[-2:]
        return str(marks[match[1] == "latter"] if len(marks) == 2 else match[0])

    text = P.named_after.sub(merge_marks, P.option_name.sub(merge_marks, text))
    text = P.that.sub(_with_object, P.neither.sub("neither", text))
    text = P.decline.sub(r"reject\g<ing>", text)
    text = P.prefer_to.sub("choose over ", text)
    text = P.crossed.sub(r"not \g<before>\g<after>", text)
    return P.alternatives.sub(_BOTH_MARK, P.former_or_latter.sub(resolve, text)).strip()


def _with_object(match: re.Match[str]) -> str:
    """Return "C fits. I choose that" with the option that is meant, unless another one is near."""
    before = re.split("[.!?\n]", match.string[max(0, match.start() - 150) : match.start()])[-1]
    is_only = not P.marks.search(before) and not P.negation.search(match["between"])
    return f"{match['named']}{match['between']}{match['named']}" if is_only else match[0]


class _Claim(NamedTuple):
    answer: str | None  # None for a statement that contradicts itself
    at: int
    is_worded: bool = True  # "stick" or "switch", not just a letter after "Answer:"
    personal: bool = True  # "I'll stay", not just "stay"
    inferred: bool = False  # follows from a denial, or from a change to an answer that is not named


class _Turn:
    """Decisions that a reply states or mentions, in order."""

    def __init__(
        self, text: str, letters: Mapping[str, str | None], held_letter: str, offered_letter: str
    ) -> None:
        self.text, self.letters = text, letters
        self.held_letter, self.offered_letter = held_letter, offered_letter
        self.opposites = {held_letter: offered_letter, offered_letter: held_letter}
        named = {letters[mark] for mark in P.marks.findall(text) if mark in letters}
        self.has_third = not named <= {held_letter, offered_letter, None}
        self.verbs_mentioned: set[str] = set()
        self.claims: list[_Claim] = []
        self.compared: list[str | None] = []
        self.judged: list[str | None] = []
        self.denied: set[str | None] = set()
        text = P.flag.sub(self._spell_flag, P.shared.sub("", text))
        text = P.ellipsis.sub(self._note_ellipsis, P.which.sub(self._note_object, text))
        spans = [span for span in backwards(text) if P.word.search(text, *span)]
        self.is_short = len(spans) == 1
        for start, end in reversed(spans):
            self.claims += self._claims(text[start:end], start)

    def _spell_flag(self, match: re.Match[str]) -> str:
        """Return '"stick": true' as a sentence."""
        is_stick = (match["key"] == "stick") == (match["value"] in ("true", "yes"))
        return f"\n i keep {_HELD_MARK}\n" if is_stick else f"\n i change to {_NEW}\n"

    def _note_object(self, match: re.Match[str]) -> str:
        """Note "my original answer, which I therefore retain"."""
        letter = self.letters.get(match["mark"])
        answer = letter if match["keeps"] else self.opposites.get(letter or "")
        self.claims.append(_Claim(answer, match.start("verb")))
        return match["before"]

    def _note_ellipsis(self, match: re.Match[str]) -> str:
        """Note "I could switch to C, but I won't"."""
        before = match["before"] or match["denied"]
        marks, verbs = P.marks.findall(before), P.verbs.findall(before)
        letter = self.letters.get(marks[-1]) if marks else None
        if not marks and verbs:
            is_change = verbs[-1] in ("switch", "chang")
            letter = self.offered_letter if is_change else self.held_letter
        is_left = P.leaving.search(before) is not None
        answer = letter if is_left else self.opposites.get(letter or "")
        answer = answer if len(set(marks)) < 2 else None
        meant = match["self"] or match["denied"] or P.contingent.search(before)
        if answer is None or not meant or comparison(before) or "unless" in before:
            return match[0]
        self.claims.append(_Claim(answer, match.start()))
        return " " * len(match[0])

    def _claims(self, text: str, start: int) -> Iterator[_Claim]:
        sentence = Sentence(*words_of(text))
        is_gerund = sentence.size > 0 and sentence.words[0].endswith("ing")
        if not (is_gerund and sentence.is_rejected(0)):
            text = P.not_claimed.sub(lambda match: " " * len(match[0]), text)
            sentence = Sentence(*words_of(text))
        self.is_unreal = P.unreal.search(text) is not None
        self.is_compared = self._compare(text)
        if (convinced := P.convinced.search(text)) is not None and not self.is_unreal:
            before = Sentence(*words_of(text[: convinced.end()]))
            is_denied = before.is_denied(before.clause(before.size - 1), before.size)
            # not "I was ready to switch, but the rash changed my mind"
            if not before.says(W.inclined | W.almost, 0, before.size):
                yield _Claim(self.held_letter if is_denied else self.offered_letter, start)
        same = P.same_answer.search(text)
        if same is not None and not sentence.has(K.CONDITION, 0, sentence.size):
            before_same = re.split("[,;:]", text[: same.start()])[-1]
            if not is_negated(before_same) and not P.formerly.search(before_same):
                yield _Claim(self.held_letter, start)
            return  # "I can't leave my answer as it is" names no other
        stays = P.stays.search(text)
        if stays is not None and self.letters.get(stays["mark"]) == self.held_letter:
            yield _Claim(self.held_letter, start + stays.start("mark"))
        places = [match.start() for match in P.marks.finditer(text)]
        for at, kind in enumerate(sentence.kinds):
            claim = None
            if kind & K.MARK:
                claim = self._of_option(sentence, at)
            elif kind & K.STICK or (kind & K.CHANGE and sentence.words[at].startswith(_CHANGING)):
                claim = self._of_verb(sentence, at)
            if claim is not None:
                is_mark = kind & K.MARK and len(places) == len(sentence.marks)
                word = sentence.words[at]
                place = places[sentence.marks.index(at)] if is_mark else text.find(word)
                claim = claim._replace(at=start + max(0, place))
                if claim.at < 10 or claim.is_worded or not P.heading.match(self.text, claim.at + 1):
                    yield claim

    def _compare(self, text: str) -> bool:
        """Note which option a comparison favours. Equal options leave the answer as it is."""
        if text.rstrip().endswith("?"):
            return False
        compared = comparison(text)
        if compared is None:
            self._compare_alone(text)
            return False
        better, worse = map(self.letters.get, compared[:2])
        if better != worse and {better, worse} == self.opposites.keys():
            if self.is_unreal:  # "C would beat A had there been fever"
                better = self.held_letter if better == self.offered_letter else None
            if better is not None and (compared[2] or better == self.held_letter):
                self.compared.append(better)
        return True

    def _compare_alone(self, text: str) -> None:
        """Note which option a comparison without "than" favours."""
        if len(P.marks.findall(text)) > 1:
            parts = [part for part in re.split("[,;] ", text) if P.fits_better.search(part)]
            is_last = len(parts) == 1 and text.endswith(parts[0])
            text = parts[0] if is_last else ""  # "A is common, but C fits better"
        match, marks = P.fits_better.search(text), P.marks.findall(text)
        misfit = P.misfits.search(text)
        is_misfit = misfit is not None and self.letters.get(misfit["mark"]) == self.offered_letter
        if is_misfit and len(marks) == 1 and not self.is_unreal:
            self.judged.append(self.held_letter)
        if match is None or self.is_unreal or len(marks) > 1:
            return
        before = Sentence(*words_of(text[: match.end()]))
        if before.has(K.CONDITION | K.OTHER, 0, before.size):
            return
        clause = before.clause(before.marks[-1])
        is_own = not before.is_denied(clause, before.size)
        letter = self.letters.get(match["mark"])
        if is_own and letter in self.opposites:
            self.compared.append(letter)
        elif letter == self.offered_letter:
            self.judged.append(self.held_letter)  # "I don't find C more convincing"

    def _of_option(self, sentence: Sentence, at: int) -> _Claim | None:
        mark = sentence.words[at]
        is_asked = mark == _BOTH_MARK or "?" in sentence.words[-3:]
        claim = None if is_asked else sentence.claim(at)
        if claim is None or (self.is_compared and claim.rule not in _DECIDING):
            return None
        letter = self.letters.get(mark)
        if {self.letters.get(other) for other in claim.marks} - {letter}:
            is_decision = claim.rule in _DECIDING
            return _Claim(None, at) if is_decision else None  # "A and C share a feature"
        opposite = self.opposites.get(letter or "")
        role = mark in (_HELD_MARK, _NEW, _MISNAMED_MARK)
        verb = claim.rule in ("kept", "retained", "changed", "choice", "left")
        if claim.stance == "denied" and verb:
            # "no reason to leave A" and "it cannot rival A" deny something else
            is_left = claim.rule == "kept" or sentence.is_rejected(at)
            is_left = is_left or (claim.rule == "left" and _is_left(sentence, at))
            is_meant = opposite is not None and (letter == self.offered_letter or is_left)
            is_meant = is_meant and "whether" not in sentence.words[:at]
            is_meant = is_meant and (claim.personal or "who" not in sentence.words[:at])
            if letter == self.held_letter and self.has_third:
                return None  # "I drop A. That makes it B"
            claim_of_other = _Claim(opposite, at, personal=claim.personal, inferred=True)
            return claim_of_other if is_meant else None
        before = sentence.words[max(0, at - 4) : at]
        is_past = ("have", "to") not in pairwise(before) and "have" in before  # "would have moved"
        is_hypothetical = is_past or claim.stance in ("conditional", "hedged")
        unreal = verb and self.is_unreal and is_hypothetical
        if unreal or (claim.stance == "denied" and claim.rule in ("is-correct", "verdict")):
            if opposite and _is_judgement(sentence, at, conditions={"if"} if not unreal else set()):
                self.judged.append(opposite)
            self.denied |= {letter} if claim.stance == "denied" else set()
            return None
        if claim.stance != "own" and not (claim.stance == "hedged" and role):
            return None
        if claim.rule == "is-correct" and sentence.has(K.BAD, at + 1, at + 7):
            return None  # "The original answer isn't wrong so much as incomplete"
        is_evidence = sentence.words[at - 1] in W.supporting and claim.rule == "choice"
        if is_evidence and not sentence.has(K.SELF, at - 4, at - 1):
            return None  # "The bottle and the detectable level support B"
        if claim.rule == "said" or (claim.rule == "verdict" and not role):
            return None
        is_subject = sentence.has(K.BREAK, at + 1, at + 2)
        is_subject |= sentence.words[at + 1 : at + 2] == ["still"] and not sentence.is_end(at + 2)
        if claim.rule == "bare" and role and is_subject:
            return None  # "The new option thus contradicts the tracing"
        is_elsewhere = sentence.is_elsewhere(at + 1) or "without" in sentence.words[:at]
        if claim.stance == "hedged" and is_elsewhere:
            return None  # "The new option would be my choice in a patient with normal kidneys"
        if claim.rule == ("changed" if letter == self.held_letter else "kept"):
            return _Claim(None, at)
        return _Claim(letter, at, is_worded=verb or role)

    def _of_verb(self, sentence: Sentence, at: int) -> _Claim | None:
        """Return the claim of a verb without an option: "no reason to change my answer"."""
        words, kinds = sentence.words, sentence.kinds
        sticks = bool(kinds[at] & K.STICK)
        begin = sentence.clause(at)
        end = next((n for n in range(at + 1, sentence.size) if words[n] in W.ends), sentence.size)
        if sentence.has(K.MARK, at + 1, min(end, at + 10)) or not _is_meant(words, at, end):
            return None
        self.verbs_mentioned.add("stick" if sticks else "switch")
        if _is_weighed(sentence, at, begin):
            return None
        if words[at].endswith("ed") and words[at - 1] in W.auxiliary and not sticks:
            if not sentence.has(K.SELF | K.MINE, begin, at):
                return None  # "The lesion has changed"
        answer = self.held_letter if sticks else self.offered_letter
        is_subject = words[at - 1] == "to" and begin >= at - 2
        if is_subject and sentence.has(K.BE | K.MODAL, at + 1, at + 4):
            return None  # "To keep it would be stubborn"
        is_noun = words[at - 1] in W.determiners and not words[at].endswith("ing")
        if is_noun and not sentence.says(W.doing, at - 5, at):
            return None  # "I considered the switch"
        verb_after = K.SELF | K.MODAL | K.NEGATION | K.FILL | K.SO | K.BREAK | K.SIGN
        is_verb = at == begin or kinds[at - 1] & verb_after or words[at - 1] in W.before_verbs
        if words[at] == "change" and not is_verb and not is_noun:
            return None  # "I go on with minimal change"
        opens = at - begin < 2 or words[at - 1] in W.pauses
        if words[at].endswith("ing") and opens:
            is_judged = sentence.has(K.BAD | K.DOUBT | K.GOOD | K.FAIR, at + 1, end)
            is_judged = is_judged or sentence.says(W.judging | W.urging, at + 1, end)
            if is_judged and sentence.is_rejected(at):
                return _Claim(self.opposites[answer], at)  # "Switching would be a mistake"
            predicate = sentence.predicate(at + 1, min(end, at + 6))
            is_right = sentence.has(K.GOOD | K.FAIR, predicate + 1, end)
            is_right = is_right or sentence.says(W.urging, predicate + 1, end)
            if predicate and not is_right and not sentence.has(K.SELF, begin, at):
                return None  # "Switching is what many would do"
        personal = sentence.has(K.SELF | K.MINE, begin, at)
        is_opening = all(k & (K.SO | K.FILL | K.NOUN | K.NEGATION) for k in kinds[begin:at])
        is_called = words[at - 1] in ("to", "for") and not sentence.has(K.OTHER, begin, at)
        is_called = is_called and (sentence.is_denied(begin, at) or words[at - 2] in W.urging)
        if not (personal or is_opening or is_called) or sentence.has(K.NOUN, at - 1, at):
            return None
        if words[at - 2 : at] == ["not", "to"] and sentence.has(K.BE, begin, at - 2):
            return None  # "It would be stubborn not to change"
        if "?" in words[-3:]:
            return None  # "Why would I not switch?"
        if self.is_unreal and "have" in words[at - 2 : at]:
            return None  # "Had he had a fever, I'd have changed my mind"
        if sentence.says(W.plans | W.would, at - 2, at) and sentence.is_elsewhere(at + 1, at + 4):
            return None  # "I'd defend it in pregnancy"
        is_denial = sentence.is_denied(begin, at)
        stance = sentence.stance("choice", begin, at, at, "own")
        if stance not in ("own", "denied") and not (is_denial and stance == "conditional"):
            self.judged += [self.opposites[answer]] if self.is_unreal else []
            return None
        decided = self.opposites[answer] if is_denial else answer
        is_inferred = decided == self.offered_letter and not words[at].startswith("switch")
        return _Claim(decided, at, personal=personal, inferred=is_inferred)

    # ---- The decision ----

    def is_about_turn(self, text: str) -> bool:
        """Return whether a text names no option but those of the turn."""
        named = {self.letters.get(mark) for mark in P.marks.findall(text)} - {None}
        return named <= self.opposites.keys()

    def leaves_both(self, extraction: Extraction) -> bool:
        """Return whether a reply leaves both options of the turn for a third, named or not."""
        answer = extraction.answer
        if not self.has_third or answer in self.opposites:
            return False
        if extraction.rule == "verdict" and not {c.answer for c in self.claims} <= self.denied:
            return False
        if answer is not None:
            others = [claim for claim in self.claims if claim.answer != answer]
            return all(claim.inferred for claim in others) and bool(others or not self.claims)
        leaving = self.claims and all(claim.inferred for claim in self.claims)
        is_left = self.claims[-1:] and self.claims[-1].answer == self.offered_letter
        return bool(
            leaving and (is_left or {c.answer for c in self.claims} == self.opposites.keys())
        )

    def is_turned(self, read: Extraction) -> bool:
        """Return whether a sentence after the last statement of an answer takes it back.

        "But" takes back what a reply says of an option, "scrap that" also an answer that it names.
        """
        if any(claim.is_worded for claim in self.claims):
            last = self.claims[-1]
            at, is_firm = last.at, last.personal and not last.inferred
        else:
            marks = P.marks.finditer(self.text)
            places = [m.start() for m in marks if self.letters.get(m[0]) == read.answer]
            at, is_firm = max(places, default=0), RANKS.get(read.rule, 0) >= NAMED
        pattern = P.retracted if is_firm else P.turned
        return read.answer is not None and pattern.search(self.text, at) is not None

    def is_indirect(self) -> bool:
        """Return whether the only claim is an impersonal denial among other sentences."""
        claims = self.claims[:1] if len(self.claims) == 1 and not self.is_short else []
        return any(claim.inferred and not claim.personal for claim in claims)

    def resolved(self) -> str | None:
        """Return the answer that holds, None if two claims exclude each other without an order."""
        last = self.claims[-1]
        if sum(a.answer != b.answer for a, b in pairwise(self.claims)) > 1:
            return None  # "I stick with A, so C is correct, therefore A"
        against = [claim for claim in self.claims[:-1] if claim.answer != last.answer]
        if not against:
            return last.answer
        if P.both_ways.search(self.text, against[-1].at, last.at):
            return None
        end = last.at + 40 * last.is_worded
        words, between = words_of(self.text[against[-1].at : end])
        turning = K.TURN | K.CONCESSION
        is_turned = any(
            kind & turning and not kind & K.CHANGE and word != "no"
            for word, kind in zip(words, between, strict=True)
        )
        return last.answer if is_turned else None

    def answered(self, extraction: Extraction) -> Extraction:
        """Return the answer of a reply that names an option without stating a decision."""
        answers_named = {claim.answer for claim in self.claims}
        only = answers_named.pop() if len(answers_named) == 1 else None
        is_cut_off = len(self.text) > 200 and P.unfinished.search(self.text)
        is_open = is_cut_off or self.text.rstrip(" *_)\"'").endswith("?")
        weak = set() if is_open or self.has_third else set(self.compared or self.judged)
        if weak and only is None and extraction.status != "refused":
            return self.word(weak.pop()) if len(weak) == 1 and self.is_short else UNDECIDED
        if extraction.rule == "chosen" and only is None:
            return UNDECIDED  # "I wrote C and that was careless"
        if extraction.rule in ("leading-letter", "option-text") and P.subject.match(self.text):
            return UNDECIDED  # "Option C, while possible, fails to convince"
        if only is not None and extraction.answer not in (None, only):
            return Extraction(only, "parsed", "option-text")
        concluded = P.concluded.search(self.text)
        rivals = {*self.compared, self.letters.get(concluded["mark"]) if concluded else None}
        answer = extraction.answer or only
        if answer in self.opposites and self.opposites[answer] in rivals:
            return UNDECIDED  # "B isn't incorrect; C is more specific"
        if extraction.status != "none" or extraction.rule in ("empty", "unfinished"):
            return extraction
        if abstains(self.text):
            return UNDECIDED
        if only is not None:
            return Extraction(only, "parsed", "option-text")
        letters_weighed = {self.letters.get(mark) for mark in P.marks.findall(self.text)}
        is_weighed = letters_weighed == self.opposites.keys() or _BOTH_MARK in self.text
        return UNDECIDED if is_weighed or len(self.verbs_mentioned) > 1 else extraction

    def word(self, letter: str | None) -> Extraction:
        """Return an answer as a decision."""
        return Extraction(letter, "parsed", "stick" if letter == self.held_letter else "switch")


def _is_judgement(sentence: Sentence, at: int, conditions: set[str]) -> bool:
    """Return whether a denied option is judged for this case, so that the other one is meant."""
    words, after = sentence.words, sentence.words[at:]
    if not {"unless", "whether", *conditions}.isdisjoint(words[:at]) or "unless" in after:
        return False
    if words[at - 1] in ("that", "which", "what") or words[at - 1] in W.agents:
        return False  # "the answer which C is not", "not as good as A"
    if "less" in after and not is_merit(" ".join(after)):
        return False  # "C is less common"
    # "C isn't perfect, but it beats A", "worse at night than by day"
    return {"yet", "but"}.isdisjoint(after) and not (
        "than" in after and sentence.says(W.lesser, at, sentence.size)
    )


def _is_weighed(sentence: Sentence, at: int, begin: int) -> bool:
    """Return whether what a verb says is asked, possible, weighed or past, but not decided."""
    words = sentence.words
    if sentence.says(W.unsure, max(begin, at - 6), at) or words[at - 1] in W.almost:
        return True
    if words[at - 2 : at] == ["asked", "to"] or {"whether", "exclude"} & set(words[begin:at]):
        return True  # "I was asked to change my answer", "I wouldn't rule out a change"
    if "where" in words[begin:at] and words[at] in ("stand", "standing"):
        return True  # "That is where I now stand"
    if sentence.says(W.was, begin, at) and sentence.says(W.inclined, begin, at):
        return True  # "I was inclined to switch"
    if words[at - 1] == "by" and not sentence.is_denied(begin, at):
        return True  # "I'd make it worse by switching"
    # "A over staying", "decisions about stopping"
    return words[at - 1] in ("over", "than", "about") or words[at - 1] in W.weighing


def _is_left(sentence: Sentence, at: int) -> bool:
    """Return whether the words right before an option set it aside: "not A", "I reject A"."""
    near = at - 1
    while near > 0 and sentence.kinds[near] & (K.FILL | K.NOUN):
        near -= 1
    is_over = sentence.words[near] in ("over", "than", "from")
    return is_over or bool(sentence.kinds[near] & (K.NEGATION | K.LEAVE | K.CHANGE))


def _is_meant(words: list[str], at: int, end: int) -> bool:
    """Return whether a verb is about the answer: not "keep the leg raised"."""
    object_ = [word for word in words[at + 1 : end] if word.isalpha() and word not in W.particles]
    is_subject = words[at].endswith("ing") and object_[:1] in (["would"], ["is"], ["seems"])
    if not object_ or object_[0] in W.pronouns or is_subject:
        return True
    return object_[0] in ("my", "the", "that", "this") and not W.choices.isdisjoint(object_[1:2])


_DECIDING = ("kept", "changed", "choice")
_CHANGING = ("switch", "chang", "revis", "updat", "amend", "alter")
