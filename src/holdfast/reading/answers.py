"""Extract the answer letter from a model's free-text reply.

The rules parse a reply into statements (`statements`). Statements of the reply itself commit it to
an option. Among those with the highest rank, the last one decides. Denied, reported, past or
conditional statements do not commit. Two contradictory commitments give no answer.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import pairwise
from operator import or_

from holdfast.questions.question import is_none_of_the_above

from .asides import without_asides
from .clauses import Stance
from .extraction import Extraction, Status
from .languages import in_english
from .mentions import Options, form_of, is_torn, marked, marked_in_english, prepared
from .parts import with_parts
from .patterns import Patterns, WordSets
from .refusal import abstains, refuses_to_answer
from .reply_text import has_reasoning, spoken_text, unmarked
from .statements import Sentence, Statement, statements
from .words import WordKind as K
from .words import kinds as kinds_of
from .words import words_of

P = Patterns("answers")
W = WordSets()

MARKED, NAMED, STATED, FORM, ASIDE = 4.0, 3.0, 2.0, 1.0, 0.5
_RULES = {
    MARKED: "final-answer boxed json answer-tag last-line",
    NAMED: "answer-label answer-is",
    STATED: "is-correct choice kept retained changed all-but it-is",
    FORM: "verdict chosen",
    ASIDE: "bare identified",
}
RANKS = {rule: rank for rank, rules in _RULES.items() for rule in rules.split()}
"""Rank of a statement by its form: the requested format, the word "answer", another statement of
the answer, a statement about the case, and an option in passing. A form counts only if nothing is
stated. An option in passing counts only if no other statement contradicts it, and can take back
what was stated."""

# Forms that name the answer: a letter in them that is not an option is a wrong answer, not a word.
_NAMING = ("final-answer", "boxed", "json", "answer-tag", "answer-label", "answer-is")
# Rules that are about the case unless the reply speaks of itself: "X is preferred", "choose X".
_IMPERSONAL = ("is-correct", "choice", "it-is")
_FORMAL_SIGNS = ("{", "<", "box", '":', "':")
_SHORT, _WHOLE, _LONGEST, _LONGEST_REST = 400, 60, 300, 250
CONFLICT = Extraction(None, "ambiguous", "conflict")
NOTHING = Extraction(None, "none", "nothing")
ABSTENTION = Extraction(None, "none", "abstention")


def extract_answer(reply: str, options: Mapping[str, str]) -> Extraction:
    """Extract the answer to a multiple-choice question from a reply.

    Args:
        reply: The whole reply of the model: any string, including reasoning.
        options: Option text by option letter (A to Z), in the order they were shown.

    Returns:
        The answer with its rule, or the reason why there is none.
    """
    extract = _extract_cached if len(reply) < _SHORT else _extract
    return extract(reply, tuple(options.items()))


def _extract(reply: str, options: tuple[tuple[str, str], ...]) -> Extraction:
    visible_text = spoken_text(reply)
    if not visible_text.strip():
        return Extraction(None, "none", "unfinished" if has_reasoning(reply) else "empty")
    known, plain = prepared(options), unmarked(visible_text)
    parsed_reply = Said(without_asides(marked_in_english(plain, known)), known)
    extraction = parsed_reply.committed() or parsed_reply.formed()
    return extraction or parsed_reply.unstated(_by_parts(plain, known) or NOTHING)


def _by_parts(plain: str, known: Options) -> Extraction | None:
    """Return the answer of a reply that names its option by a part of the words, if it is clear."""
    text = in_english(plain, known.words)
    named = with_parts(text, known)
    return None if named is known else Said(without_asides(marked(text, named)), named).by_parts()


_extract_cached = lru_cache(4096)(_extract)  # short replies to a question often repeat


def first_character(reply: str, options: Mapping[str, str]) -> Extraction:
    """Return the first character of a reply as its answer, as earlier studies do.

    Args:
        reply: The whole reply of the model.
        options: Option text by option letter.
    """
    is_letter = reply[:1] in options
    status: Status = "parsed" if is_letter else "none"
    return Extraction(reply[:1] if is_letter else None, status, "first-character")


def rank_of(claim: Statement) -> float:
    """Return the rank of a statement, 0 for forms that never commit. Words rank below a letter."""
    rank = RANKS.get(claim.rule, 0.0)
    return rank - 0.5 if rank > FORM and form_of(claim.marks[:1]) == "words" else rank


def _is_remark(claim: Statement) -> bool:
    """Return whether a statement leaves an earlier answer as it is: "Keep heparin for clots"."""
    by_words = form_of(claim.marks[:1]) == "words"
    is_advice = by_words or claim.rule in ("choice", "kept", "changed")
    return claim.rule in ("bare", "identified") or (is_advice and not claim.personal)


class Said:
    """Statements of a reply about the options, read from its end as far as they can decide."""

    def __init__(self, lines: str, known: Options) -> None:
        """Parse a text with marked options (`mentions.marked`)."""
        self.known = known
        if "but " in lines or "->" in lines or "should have been" in lines:
            lines = P.replaced.sub(lambda match: " " * len(match[0]), lines)
        if "{" in lines and len(P.entry.findall(lines)) > 2:
            lines = P.entry.sub("#", lines)
        if "{" in lines:
            lines = P.true_flag.sub(r'"answer": "\g<mark>"', P.false_flag.sub("", lines))
        self.lines = self.text = lines
        items = list(P.item.finditer(lines)) if "\n" in lines else []
        self.begun = {item.start("mark") for item in items}
        has_several = len({known.letter(item["mark"]) for item in items} - {None}) > 1
        self.items = [item for item in items if has_several and not _is_apart(item)]
        self.listed = {item.start("mark") for item in self.items}
        if "\n" in lines:
            self.text = P.line_end.sub(self._joined_line, lines)
        self.is_formal = any(sign in self.text for sign in _FORMAL_SIGNS)
        self.closing = self._closing()
        self.claims = [*self._formal(), *self._read_sentences()]
        self.claims.sort(key=lambda claim: claim.at)

    def _joined_line(self, match: re.Match[str]) -> str:
        """Return a line end, or a colon of its length if a label continues on the next line."""
        text, start, end = match.string, match.start(), match.end()
        line = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" ")
        label = P.label.search(line)
        if not label or P.each.search(line) or (P.marks.search(line) and line[-1:] != ":"):
            return match[0]
        items, near = (self.begun, 99) if label["other"] else (self.listed, 2)
        below = [at for at in items if end <= at < end + 12]
        if below and any(0 < text.count("\n", min(below), at) < near for at in items):
            return match[0]  # the list of options
        return ":".ljust(len(match[0]))

    def _read_sentences(self) -> Iterator[Statement]:
        text = self.text
        quotes = _find_quoted_marks(text)
        marked = [match.start() for match in P.marks.finditer(text)]
        for start, end in backwards(text):
            places = marked[bisect_left(marked, start) : bisect_left(marked, end)]
            if not places:
                continue
            claims = [claim._replace(at=places[n]) for n, claim in statements(text[start:end])]
            claims = [c._replace(stance="reported") if c.at in quotes else c for c in claims]
            yield from claims
            best = max(map(rank_of, self._commits(claims)), default=0.0)
            is_decided = best >= NAMED or self.closing in places
            if is_decided and not self.is_formal and not P.earlier.search(text, 0, start):
                return

    def _formal(self) -> Iterator[Statement]:
        """Yield answers in a dedicated form: boxed, tagged or under a key."""
        for match in P.formal.finditer(self.text) if self.is_formal else ():
            at, key = match.end(), match["key"] or ""
            mark = P.marks.match(self.text, at)
            if mark is None and (P.deciding.match(self.text, at) or key.endswith("letter")):
                continue  # "decision": "keep", "letter": null
            beside = P.joined_lines.match(self.text, at + 1) if mark else None
            marks = (mark[0] if mark else "") + (beside["other"] if beside else "")
            rule = "json" if key else "boxed" if match["boxed"] else "answer-tag"
            is_denied = P.denied.search(self.text, max(0, match.start() - 24), match.start())
            before = self.text[max(0, match.start("key") - 250) : match.start("key") - 1]
            parent = P.parent.search(before) if key else None
            owner = _owner(f"{parent['key']}_{key}" if parent else key)
            yield Statement(rule, marks, "denied" if is_denied else owner, at=at)

    def _closing(self) -> int | None:
        """Return the position of a mark alone on the last line."""
        match = P.last.search(self.lines, max(0, len(self.lines) - 40))
        if match is None or not self.lines[: match.start()].strip():
            return None
        at, letters = match.start("mark"), [self.known.letter(item["mark"]) for item in self.items]
        if len(self.items) > 1 and self.items[-1].start("mark") == at:
            adjacent = "\n\n" not in self.lines[self.items[-2].end("mark") : at]
            if adjacent and tuple(letters[-2:]) in list(pairwise(self.known.letters)):
                return None  # the last item of the list of options
        if self._is_under_heading(at) or not self.known.letter(match["mark"]):
            return None
        return at

    def _is_under_heading(self, at: int) -> bool:
        """Return whether the line above an option sets it aside: "Runner-up", "Rejected"."""
        heading = P.heading.search(self.lines, max(0, at - 80), at)
        if heading is None or heading["label"].count(" ") > 4 or P.bidden.search(heading["label"]):
            return False
        labelled = statements(f"{heading['label'].strip()}: {self.lines[at]}")
        return any(claim.stance in ("reported", "past", "denied") for _, claim in labelled)

    # ---- The decision ----

    def _commits(self, claims: Iterable[Statement]) -> list[Statement]:
        """Return statements that commit the reply to an option or to another named answer."""
        return [
            claim
            for claim in claims
            if claim.stance == "own"
            and rank_of(claim) not in (0, FORM)
            and not (claim.at in self.listed and claim.rule in ("bare", "is-correct"))
            and self._is_known(claim)
        ]

    def committed(self) -> Extraction | None:
        """Return the answer that the reply commits to, None without a commitment."""
        commits = self._commits(self.claims)
        if self.closing is not None:
            last_line = Statement("last-line", self.lines[self.closing], "own", at=self.closing)
            commits = [claim for claim in commits if claim.at < self.closing] + [last_line]
        top = max(map(rank_of, commits), default=0.0)
        last_commit = max((claim.at for claim in commits), default=-1)
        is_firm = top >= NAMED and not P.withdrawn.search(self.text, last_commit + 1)
        is_labelled = is_firm and any(claim.rule != "answer-is" for claim in commits)
        if not is_labelled and abstains(self.text, last_commit):
            return CONFLICT if is_firm else self.unstated(ABSTENTION)
        if last_commit >= 0 and P.scratched.search(self.text, last_commit + 1):
            return CONFLICT
        if top <= FORM:
            return None
        highest = [claim for claim in commits if rank_of(claim) == top]
        holds = highest[-1]
        if self._is_torn(commits, holds):
            return CONFLICT
        is_repeated = top >= NAMED and len(highest) > 1 and holds.rule != "final-answer"
        if is_repeated and not self._is_revised(highest[-2], holds):
            return CONFLICT
        for later in commits[commits.index(holds) + 1 :]:
            if self._letters(later) == self._letters(holds):
                continue
            is_remark = _is_remark(later)
            if self._is_revised(holds, later) and (later.revises or not is_remark):
                holds = later if rank_of(later) > FORM else later._replace(rule="changed")
            elif not is_remark:
                return CONFLICT
        return self._settled(holds)

    def _settled(self, claim: Statement) -> Extraction:
        """Return the answer of a statement unless it is weak and the reply then leaves it open."""
        extraction = _extraction(self.known, claim)
        is_other = claim.rule == "chosen" and P.pointed.search(self.text)
        if is_other or (rank_of(claim) < NAMED - 0.5 and P.depends.match(self.text)):
            return self.unstated(NOTHING)
        is_weak = rank_of(claim) <= FORM or (claim.rule in _IMPERSONAL and not claim.personal)
        if extraction.answer and is_weak and self._is_left_open(claim.at + 1, extraction.answer):
            return self.unstated(NOTHING)
        return extraction

    def _is_left_open(self, after: int, answer: str) -> bool:
        if P.unsettled.search(self.text, after):
            return True
        if not P.deferred.search(self.text, after):
            return False
        denied = {mark for claim in self.claims if claim.stance == "denied" for mark in claim.marks}
        others = set(P.marks.findall(self.text)) - denied
        return bool({self.known.letter(mark) for mark in others} - {None, answer})

    def _last_in_passing(self) -> Extraction | None:
        """Return the last option in passing if no other one is stated: "Not C. B."."""
        passing = [
            claim
            for claim in self._commits(self.claims)
            if rank_of(claim) <= FORM
            and len(claim.marks) == 1
            and (claim.rule != "bare" or form_of(claim.marks[0]) != "words")
        ]
        if not passing:
            return None
        last = self._letters(passing[-1])
        others = [claim for claim in self.claims if self._letters(claim) != last]
        stances = {"past" if claim.rule == "chosen" else claim.stance for claim in others}
        if stances & {"own", "hedged"}:
            return None
        rule = "contrast" if stances else "alone"
        return self._settled(passing[-1]._replace(rule=rule))

    def _is_torn(self, commits: Sequence[Statement], holds: Statement) -> bool:
        """Return whether two answers stand: "I maintain B, and C is right"."""
        if holds.rule == "is-correct" and not holds.personal:
            before = commits[: commits.index(holds)]
            rivals = [c for c in before if c.rule == "is-correct" and len(c.marks) == 1]
            if rivals and self._letters(rivals[-1]) != self._letters(holds):
                _, between = words_of(self.text[rivals[-1].at : holds.at][-600:])
                return not any(kind & K.TURN for kind in between)
        kept = [claim for claim in commits if claim.rule == "kept" and claim.at < holds.at]
        if not kept or holds.rule == "changed" or self._letters(kept[-1]) == self._letters(holds):
            return False
        _, between = words_of(self.text[kept[-1].at : holds.at])
        return not any(kind & (K.TURN | K.CHANGE) and not kind & K.GOOD for kind in between)

    def _is_revised(self, before: Statement, after: Statement) -> bool:
        """Return whether the later statement agrees with the earlier one, or retracts it."""
        if self._letters(before) == self._letters(after):
            return True
        if after.revises or after.rule == "changed":
            return True
        _, between = words_of(self.text[before.at : after.at][-600:])
        return any(kind & (K.TURN | K.CHANGE) for kind in between)

    def _is_known(self, claim: Statement) -> bool:
        """Return whether a statement is about an option or names another answer."""
        return claim.rule in _NAMING or self.known.letter(claim.marks[0]) is not None

    def _letters(self, claim: Statement) -> set[str | None]:
        return {self.known.letter(mark) for mark in claim.marks}

    def by_parts(self) -> Extraction | None:
        """Return the answer of a reply with named parts of options if nothing speaks against it."""
        extraction = self.committed() or self.formed()
        if extraction is None or not extraction.answer:
            return None
        if P.unsettled.search(self.text) or P.deferred.search(self.text):
            return None
        is_passing = extraction.rule == "option-text" and not P.headed.match(self.text)
        if is_passing or extraction.rule == "chosen":
            return None
        claims = [c for c in self.claims if c.stance in ("own", "hedged") and rank_of(c) >= FORM]
        named = [(mark.start(), self.known.letter(mark[0])) for mark in P.marks.finditer(self.text)]
        if (
            len({letter for _, letter in named}) > 2
            and max(map(rank_of, claims), default=9) <= FORM
        ):
            return None  # "Type I is IgE mediated. Type II is cytotoxic. ..."
        if claims and not any(claim.personal and claim.stance == "own" for claim in claims):
            if claims[-1].rule == "choice":
                return None  # "Management includes giving B"
            away = {c.at for c in self.claims if c.stance in ("denied", "reported", "past")}
            later = {letter for at, letter in named if at > claims[-1].at and at not in away}
            if later - {extraction.answer}:
                return None
        return replace(extraction, rule=f"{extraction.rule}:part")

    # ---- Replies without a commitment ----

    def formed(self) -> Extraction | None:
        """Return the answer by the form of the reply: its beginning, its end, or a verdict."""
        extraction = self._leading() or self._ticked() or self._last_in_passing()
        if extraction is not None:
            return extraction
        weak: dict[tuple[str, bool], list[Statement]] = {}
        for claim in self.claims:
            if claim.at not in self.listed and self._is_known(claim) and rank_of(claim):
                weak.setdefault((claim.stance, rank_of(claim) > FORM), []).append(claim)
        for key in (("hedged", True), ("own", False), ("hedged", False)):
            claims = [claim for claim in weak.get(key, ()) if rank_of(claim) >= FORM]
            if claims:
                marks = "".join(claim.marks for claim in claims)
                if not key[1]:
                    marks += "".join(c.marks for c in weak[key] if c.rule == "identified")
                if key[0] == "hedged" and max(map(rank_of, claims)) < NAMED - 0.5:
                    marks += "".join(claim.marks for claim in weak.get(("own", False), ()))
                return self._settled(claims[-1]._replace(marks=marks))
        return None

    def _leading(self) -> Extraction | None:
        """Return the option at the beginning of the reply, or the only one of a short reply."""
        text, match = self.text, P.start.match(self.text)
        if match is None:
            passing = [claim for claim in self.claims if claim.rule == "bare"]
            if len(passing) != 1 or passing[0].stance != "own" or len(text) > _WHOLE:
                return None
            match = P.start.match(text, passing[0].at)  # "Therefore, B."
            if match is None or not self._is_only(match["mark"]):
                return None
        mark, end = match["mark"], match.end()
        first = next((claim for claim in self.claims if claim.at == end - 1), None)
        marks = first.marks if first else mark
        alone = first is not None and (first.rule == "bare" or len(marks) > 1)
        alone |= form_of(mark) == "both" and self._is_only(mark)
        is_letter_form = form_of(mark) == "letter" and text[end : end + 1] == ","
        if not (alone or is_letter_form or P.leads.match(text, end)):
            return None
        if (first is not None and first.stance != "own") or _is_refuted(
            P.clause.match(text, end - 1)
        ):
            return None
        listed_letters = [self.known.letter(item["mark"]) for item in self.items]
        if len(marks) == 1 and listed_letters[:2] == list(self.known.letters[:2]):
            return None
        shares = {match["mark"]: float(match["share"]) for match in P.share.finditer(text)}
        if mark in shares and shares[mark] < max(shares.values()):
            return None  # "B: 20%, C: 60%"
        heads = len(set(P.heads.findall(text)))
        if P.scratched.search(text, end) or heads > 1 or (heads and P.described.search(text, end)):
            return None  # "Aspirin: for clots. Heparin: for ..."
        remainder = text[end:].strip(" \n.()*\"'")
        rule = "leading-letter" if remainder or form_of(mark) != "letter" else "bare-letter"
        rule = "option-text" if form_of(mark) == "words" else rule
        return _extraction(self.known, Statement(rule, marks, "own"))

    def _ticked(self) -> Extraction | None:
        """Return the only ticked option if the reply lists all of them with a tick or a cross."""
        signs: dict[str | None, set[bool]] = {}
        listed, praised = set[str | None](), set[str | None]()
        judged = {
            claim.at: claim.stance == "own"
            for claim in self.claims
            if claim.rule == "is-correct" and claim.stance in ("own", "denied")
        }
        for item in self.items:
            at, letter = item.start("mark"), self.known.letter(item["mark"])
            listed.add(letter)
            cells = list(P.verdict_cell.finditer(item["rest"]))
            is_clear = len(cells) == 1 or (cells and cells[-1].end() == len(item["rest"]))
            sign = item["sign"] or item["box"] or (cells[-1]["sign"] if is_clear else "")
            if sign or at in judged:
                ticks = P.tick.match(sign) is not None if sign else judged[at]
                signs.setdefault(letter, set()).add(ticks)
                praised |= {letter} if P.explicit_tick.match(sign) else set()
        ticked = [letter for letter, ticks in signs.items() if ticks == {True}]
        last = max(self.listed, default=0)
        known = set(self.known.letters)
        if len(ticked) != 1 or (listed if praised == {*ticked} else signs.keys()) != known:
            return None
        if P.none_correct.search(self.text, last):
            return None  # "right substitution, wrong chain"
        return Extraction(ticked[0], "parsed", "ticked")

    def _is_only(self, mark: str) -> bool:
        """Return whether a reply names no other option."""
        named = {self.known.letter(other) for other in P.marks.findall(self.text)}
        return named == {self.known.letter(mark)}

    def unstated(self, otherwise: Extraction) -> Extraction:
        """Return whether a reply without a statement refuses, rejects all options, or neither."""
        if refuses_to_answer(self.text):
            return Extraction(None, "refused", "refusal")
        if P.none_correct.search(self.text) or is_none_of_the_above(self.text):
            return Extraction(None, "none", "none-correct")
        return otherwise


def _is_refuted(clause: re.Match[str] | None) -> bool:
    """Return whether a clause denies its subject or leaves it open: "A) Embolism does not fit"."""
    sentence = Sentence(*words_of(clause[0] if clause else ""))
    verb = next((n for n in range(1, sentence.size) if not sentence.kinds[n] & K.SIGN), 0)
    is_verb = sentence.has(K.BE | K.MODAL | K.EVIDENCE | K.DOUBT, verb, verb + 1)
    is_verb = is_verb or sentence.says(W.does, verb, verb + 1)
    is_open = "possible" in sentence.words[verb : verb + 3]
    return verb > 0 and is_verb and (is_open or sentence.is_rejected(0))


def _owner(key: str) -> Stance:
    """Return whose answer a key names: "final_answer", "rejected_answer", "previous_answer"."""
    naming = reduce(or_, map(kinds_of, re.split(r"[_\W]+", key)))
    if naming & (K.THEIRS | K.OTHER | K.OWNER | K.NEGATION | K.BAD):
        return "reported"
    return "past" if naming & K.PAST else "own"


def _is_apart(item: re.Match[str]) -> bool:
    """Return whether an option is not an item of a list: it begins a sentence or is a paragraph."""
    above = item.string[: item.start("mark")].rpartition("\n")[0].rpartition("\n")[2]
    below = item.string[item.end() :].partition("\n")[2].partition("\n")[0]
    alone = not item["rest"].strip(" .*_)\"'!]") and not (item["box"] or item["sign"])
    beside = [near for near in map(P.item.match, (above, below)) if near and not _is_sentence(near)]
    return (alone or _is_sentence(item)) and not beside


def _is_sentence(item: re.Match[str]) -> bool:
    _, kinds = words_of(item["rest"][:40])
    return bool(kinds and kinds[0] & (K.BE | K.MODAL) and not kinds[0] & K.SIGN)


def _find_quoted_marks(text: str) -> set[int]:
    """Return positions of marks in a quotation of others: 'You asked, "Is it not B?"'."""
    if '"' not in text and "'" not in text[:4]:
        return set()
    forms = (P.opening, P.quote, P.quoted_by, P.speaker)
    quotations = [match for form in forms for match in form.finditer(text)]
    places = set[int]()
    for match in quotations:
        who = match["who"]
        if match.re is P.quote and match["verb"]:
            who = re.split('[.!?\n"]', text[max(0, match.start() - 60) : match.end("who")])[-1]
        kinds = words_of(who)[1]
        is_label = match.re is P.speaker and any(kind & K.NOUN for kind in kinds)
        is_own = any(kind & (K.SELF | K.MINE) for kind in kinds[-3:]) and not P.wrote.search(who)
        is_past = is_own and any(kind & K.PAST for kind in kinds)  # 'Earlier I said, "It is B"'
        if not (is_label or is_own) or is_past:
            start = match.start("said")
            places |= {start + mark.start() for mark in P.marks.finditer(match["said"])}
    return places


def _extraction(known: Options, claim: Statement) -> Extraction:
    letters = {known.letter(mark) for mark in claim.marks}
    if len(letters) > 1:
        return CONFLICT
    letter = letters.pop() if letters else None
    if letter is None:
        return Extraction(None, "none", "not-an-option" if claim.marks else "nothing")
    torn = ":other-words" if any(map(is_torn, claim.marks)) else ""
    return Extraction(letter, "parsed", claim.rule + torn)


def backwards(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences and lines of a text, the last one first.

    If a text mentions options hundreds of times, only the last sentences are yielded.
    """
    cut = text.rfind("\n", 0, max(0, len(text) - 400)) + 1
    mentions = 0
    for begin, end in ((cut, len(text)), (0, cut)):
        for start, stop in reversed(list(pairwise(_bounds(text, begin, end)))):
            yield start, stop
            mentions += len(P.marks.findall(text, start, stop))
            if mentions > _LONGEST_REST:
                return


def _bounds(text: str, begin: int, end: int) -> list[int]:
    """Return the starts of the sentences of a passage, and its end."""
    bounds = sorted([begin, *(match.end() for match in P.end.finditer(text, begin, end)), end])
    if end - begin > _LONGEST and any(b - a > _LONGEST for a, b in pairwise(bounds)):
        # parsing takes time quadratic in the length of a sentence
        cuts = [n for a, b in pairwise(bounds) for n in range(a + _LONGEST, b, _LONGEST)]
        bounds = sorted([*bounds, *(text.rfind(" ", 0, n) + 1 or n for n in cuts)])
    return bounds
