"""Extract the answer letter from a model's free-text reply.

The rules parse a reply into statements (`statements`). Statements of the reply itself commit it to
an option. Among those with the highest rank, the last one decides. Denied, reported, past or
conditional statements do not commit. Two contradictory commitments give no answer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from holdfast.questions.question import is_none_of_the_above

from .extraction import Extraction
from .languages import in_english
from .mentions import BY_BOTH, BY_WORDS, Options, form_of, marked, prepared
from .refusal import REFUSAL
from .reply_text import has_reasoning, spoken_text, unmarked
from .statements import Stance, Statement, statements
from .structured import marks_of, object_in, owner
from .words import MARK, words_of
from .words import WordKind as K

MARKED_RANK, STATED_RANK, FORM = 3, 2, 1
RANKS = {
    "final-answer": MARKED_RANK,
    "boxed": MARKED_RANK,
    "json": MARKED_RANK,
    "answer-tag": MARKED_RANK,
    "last-line": MARKED_RANK,
    "answer-label": STATED_RANK,
    "answer-is": STATED_RANK,
    "is-correct": STATED_RANK,
    "choice": STATED_RANK,
    "kept": STATED_RANK,
    "changed": STATED_RANK,
    "therefore": STATED_RANK,
    "all-but": STATED_RANK,
    "bare": STATED_RANK,
    "also": STATED_RANK,
    "ticks": STATED_RANK,
    "verdict": FORM,
    "chosen": FORM,
}
"""Rank of a statement by its form: the requested format, a statement of the answer, or a statement
about the case. The last counts only if nothing else is stated."""

# Forms that name the answer: a letter in them that is not an option is a wrong answer, not a word.
_NAMING = ("final-answer", "boxed", "json", "answer-tag", "answer-label", "answer-is")
_SHORT = 400
CONFLICT = Extraction(None, "ambiguous", "conflict")
NOTHING = Extraction(None, "none", "nothing")


def extract_answer(reply: str, options: Mapping[str, str]) -> Extraction:
    """Extract the answer to a multiple-choice question from a reply.

    Args:
        reply: The whole reply of the model: any string, including reasoning.
        options: Option text by option letter (A to Z), in the order they were shown.

    Returns:
        The answer with its rule, or the reason why there is none.
    """
    if len(reply) < _SHORT:
        return _extract_cached(reply, tuple(options.items()))
    return _extract(reply, options)


@lru_cache(4096)  # short replies to a question often repeat
def _extract_cached(reply: str, options_shown: tuple[tuple[str, str], ...]) -> Extraction:
    options = dict(options_shown)
    alone = _AS_SHOWN.match(reply)
    if alone is not None and alone["words"] in ("", options.get(alone["letter"])):
        if alone["letter"] in options:  # the most frequent reply
            return Extraction(
                alone["letter"], "parsed", "leading-letter" if alone["words"] else "bare-letter"
            )
    return _extract(reply, options)


def _extract(reply: str, options: Mapping[str, str]) -> Extraction:
    visible_text = spoken_text(reply)
    if not visible_text.strip():
        return Extraction(None, "none", "unfinished" if has_reasoning(reply) else "empty")
    prepared_options = prepared(options)
    text = marked(in_english(unmarked(visible_text)), prepared_options)
    structured_answer = _read_structured(text, prepared_options) if "{" in text else None
    if structured_answer is not None:
        return structured_answer
    parsed_reply = Said(text, prepared_options)
    return (
        parsed_reply.committed()
        or parsed_reply.formed(visible_text)
        or parsed_reply.unstated(options)
    )


def first_character(reply: str, options: Mapping[str, str]) -> Extraction:
    """Return the first character of a reply as its answer, as earlier studies do.

    Args:
        reply: The whole reply of the model.
        options: Option text by option letter.
    """
    letter = reply[:1]
    if letter in options:
        return Extraction(letter, "parsed", "first-character")
    return Extraction(None, "none", "first-character")


class Placed(NamedTuple):
    """Statement with the position of its mark in the text."""

    statement: Statement
    at: int

    @property
    def rank(self) -> int:
        """Rank of the form, 0 for forms that never commit."""
        return RANKS.get(self.statement.rule, 0)


_MARKS = re.compile(MARK)
# An option as it was shown, without other text.
_AS_SHOWN = re.compile(r"\(?(?P<letter>[A-Z])(?:\)|[.:]\)?)? ?(?P<words>.*?)\.?\s*\Z")
# a fixed first character lets `re` skip other characters at once
_END = re.compile(r"[.!?\n](?:(?<=\n)|[.!?]*[\"')\]*]{0,3}(?=\s|$))")
_LONGEST, _LONGEST_REST = 300, 250
_NO_END = ("dr", "vs", "i.e", "e.g")
# A label with a full stop: "Ans. B".
_LABEL_STOP = re.compile(rf"\bans(?:wer)?(?P<end>\.)[\s(*]{{1,3}}{MARK}")
_LINE_END = re.compile(rf"[ \n](?:(?<= )\n+|(?<=\n)\n*) ?(?=[\s*_\"'(\[\\$-]{{0,8}}{MARK})")
_LABEL = re.compile(
    r"(?:\b(?:answers?|ans|choice|option|selection|decision|conclusion|verdict|response|is|be)"
    r"[\s*_\"')\]]{0,4}[:.]?|[:?]|->)\Z"
)
_ITEM = re.compile(
    rf"(?m)^[\s*_>#\u2022|~-]{{0,6}}(?:\[(?P<box>[ x\u2713\u2714\u2705])\] ?)?"
    rf"(?:(?P<sign>[\u2713\u2714\u2705\u2611\u2717\u2718\u274c\u2716]) ?)?(?:\d{{1,2}}[.)] )?"
    rf"(?:option |choice )?[(\[\"']?(?P<mark>{MARK})(?P<rest>[^\n]{{0,200}})"
)
_LAST = re.compile(rf"(?:\A|\n)[\s*_\"'(\[>#-]{{0,8}}(?P<mark>{MARK})[\s.*_\"')\]!]{{0,8}}\Z")
_ENDING = re.compile(
    rf"\n\n[*\"'(\[]{{0,4}}(?P<mark>{MARK})[).:\]*]{{1,3}} ?"
    r"(?:[^\s\ue000-\ue0ff]+ ){0,7}[^\s\ue000-\ue0ff]+ ?\Z"
)
_OPEN = (
    r"(?:[\s\"'(\[{$*<>:=]|\\[a-z]{1,12}+\{?+|(?:option|choice|the|correct|final|best|answer|is|"
    r"letter)\b){0,12}+"
)
_FORMAL = re.compile(
    rf"(?:(?P<boxed>\\f?box(?:ed)?[{{ ]|oxed\{{)|<(?:(?:final_?)?answer|final)>){_OPEN}(?={MARK})"
    rf"|[\"'{{,\s](?P<key>[\w -]{{0,30}}?(?:answer|choice|option|letter|selection|decision|"
    rf"prediction|diagnosis|verdict|final)(?:_\w{{1,12}})?)[\"'] ?: ?"
    rf"(?:{_OPEN}(?={MARK})|[\s\"'(\[{{]{{0,4}}(?:(?:null|none|n/a|unsure|unknown)\b|[\"']))"
)
_JOINED_LINES = re.compile(
    rf"[\s)\]}}\"'*_$\\]{{0,6}}(?:,? ?(?:\band/or\b|\band\b|\bor\b|&|/|\+)|,)"
    rf"(?:[\s\"'(\[{{$*]|\\[a-z]{{1,12}}+\{{?+){{0,8}}+(?P<other>{MARK})"
)
_QUOTE = re.compile(
    r"(?P<who>[^.!?\n\"]{0,60}\b(?:ask|sa[iy]|wr[io]t|stat|argu|insist|claim|repl|add)\w*"
    r"(?: me| that| again)?[,:]? ?|\n> ?|\b(?:line|sentence|claim|note|statement|phrase|words?|"
    r"text|passage|label|caption|comment|remark|hint) )\"(?P<said>[^\"\n]{3,400})\""
)
_QUOTED_BY = re.compile(
    r"\"(?P<said>[^\"\n]{3,400})\",? ?(?P<who>[^.!?\n\",;:]{0,40}?\b(?:sa(?:y|ys|id)|writes?|wrote|"
    r"(?:claim|argu|insist|assert|conclud|stat)(?:s|es|ed)|reads))\b"
)
_HEADING = re.compile(
    r"(?:\A|\n)[\s#>*_-]{0,6}(?P<label>[^\n.!?:,\ue000-\ue0ff]{4,60}):?[\s*_]*\n[\s*_\"'(\[>-]{0,8}\Z"
)
# "Answer as per your instruction" belongs to the reply, although it names somebody.
_BIDDEN = re.compile(
    r"\b(?:per|instruct\w*|request\w*|wish\w*|direct(?:ed|ion)|directive|guidance|asked|insist\w*)\b"
)
_START = re.compile(rf"[^\w\ue000-\ue0ff]{{0,12}}(?:option |choice )?(?P<mark>{MARK})")
_SHARE = re.compile(rf"(?P<mark>{MARK})[).:\s(=~-]{{0,5}}(?P<share>\d{{1,3}}(?:\.\d{{1,4}})?) ?%")
_LEADS = re.compile(r"[\s)\]\"'*.:,-]{0,4}(?:\Z|\n|[.:)\]\"'*(!_\\-]|\u2705)")
_BOLD = re.compile(r"\*\*\s?\(?(?:[Oo]ption )?([A-Z])(?:\)|\*\*|[.:]\s)")
_ASSERTION = re.compile(
    r"\b(?:most|best|likely|should|recommend|correct|answer|due to|caused by|consistent with|"
    r"choos\w*)\b"
)
_INDECISION = re.compile(
    r"\b(?:can't|cannot|can not|couldn't|won't|unable to|impossible to|not able to) (?:\w+ ){0,2}"
    r"(?:choose|pick|decide|commit|select|favou?r|prefer|settle)\b[^.\n]{0,40}"
    r"\b(?:one over|between|either|which|any one|a single)\b"
)
_NONE_CORRECT = re.compile(
    r"\bnone of (?:the|these|those)\b(?: \w{1,12}){0,3} (?:above|options?|answers?|choices?)\b|"
    r"\bnone of the above|\bno (?:correct|right) (?:answer|option|choice)\b|"
    r"\bno (?:option|answer|choice) is (?:the )?(?:correct|right)|"
    r"\bnot (?:\w{1,12} )?(?:among|in|one of|any of) the (?:\w{1,12} )?(?:options|choices|answers)|"
    r"\b(?:options|choices|answers)\b[^.\n]{0,40}\b(?:are|is) (?:all )?"
    r"(?:incorrect|wrong|not correct)"
)


class Said:
    """Statements of a reply about the options.

    Attributes:
        placed: Statements in order up to the last word. Parsing starts at the end of the reply and
            stops where no earlier statement can decide.
    """

    def __init__(self, lines: str, prepared_options: Options) -> None:
        """Parse a text with marked options (`mentions.marked`)."""
        self.known = prepared_options
        self.lines = self.text = lines
        self.items: list[re.Match[str]] = []
        if "\n" in lines:
            self.items = list(_ITEM.finditer(lines))
        has_several = (
            len({prepared_options.letter(item["mark"]) for item in self.items} - {None}) > 1
        )
        self.items = [item for item in self.items if has_several and not _is_apart(item)]
        self.listed = {item.start("mark") for item in self.items}
        if "\n" in lines:
            self.text = _LINE_END.sub(self._joined_line, lines)
        self.closing = self._closing()
        self.placed = sorted(
            [*self._formal(), *self._read_sentences()],
            key=lambda placed_statement: placed_statement.at,
        )

    def _joined_line(self, match: re.Match[str]) -> str:
        """Return a line end, or a colon of its length if a label continues on the next line."""
        text, start, end = match.string, match.start(), match.end()
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if not _LABEL.search(line) or (_MARKS.search(line) and line[-1:] != ":"):
            return match[0]
        below = [at for at in self.listed if end <= at < end + 12]
        if below and any(0 < text.count("\n", min(below), at) < 2 for at in self.listed):
            return match[0]  # the list of options
        return ":".ljust(len(match[0]))

    def _read_sentences(self) -> Iterator[Placed]:
        text, formal = self.text, self._is_formal()
        quotes = _find_quoted_marks(text)
        for start, end in backwards(text):
            places = [start + match.start() for match in _MARKS.finditer(text[start:end])]
            if not places:
                continue
            placements = [
                self._under_heading(Placed(statement, places[n]))
                for n, statement in statements(text[start:end])
            ]
            if quotes:
                placements = [
                    _as_said(statement) if statement.at in quotes else statement
                    for statement in placements
                ]
            yield from placements
            best_rank = max((statement.rank for statement in self._commits(placements)), default=0)
            if self.closing in places and not formal:
                best_rank = MARKED_RANK if "final" not in text[:start] else best_rank
            if best_rank == MARKED_RANK or (
                best_rank == STATED_RANK and not formal and "final" not in text[:start]
            ):
                if not any(statement.statement.rule == "also" for statement in placements):
                    return

    def _under_heading(self, placed_statement: Placed) -> Placed:
        """Give an option the stance of the heading above it: "Runner-up", "Rejected"."""
        if placed_statement.statement.rule != "bare":
            return placed_statement
        stance = self._read_heading(placed_statement.at)
        return (
            placed_statement
            if stance is None
            else placed_statement._replace(
                statement=placed_statement.statement._replace(stance=stance)
            )
        )

    def _read_heading(self, at: int) -> Stance | None:
        """Return the stance from the line above an option, None if the line determines none."""
        heading = _HEADING.search(self.lines, max(0, at - 80), at)
        if heading is None or heading["label"].count(" ") > 4 or _BIDDEN.search(heading["label"]):
            return None
        for _, statement in statements(f"{heading['label'].strip()}: {self.lines[at]}"):
            if statement.stance in ("reported", "past", "denied"):
                return statement.stance
        return None

    def _is_formal(self) -> bool:
        text = self.text
        return "{" in text or "<" in text or "box" in text or '":' in text or "':" in text

    def _formal(self) -> Iterator[Placed]:
        """Yield answers in a dedicated form: boxed, tagged or under a key."""
        position = 0
        for match in _FORMAL.finditer(self.text) if self._is_formal() else ():
            at = match.end()
            if at < position:
                continue
            mark = _MARKS.match(self.text, at)
            beside = _JOINED_LINES.match(self.text, at + 1) if mark else None
            position = beside.end() if beside else at
            marks = (mark[0] if mark else "") + (beside["other"] if beside else "")
            rule = "json" if match["key"] else "boxed" if match["boxed"] else "answer-tag"
            yield Placed(Statement(rule, marks, owner(match["key"] or "")), at)

    def _closing(self) -> int | None:
        """Return the position of a mark alone on the last line."""
        match = _LAST.search(self.lines, max(0, len(self.lines) - 40))
        if match is None or not self.lines[: match.start()].strip():
            return None
        at = match.start("mark")
        if len(self.items) > 1 and self.items[-1].start("mark") == at:
            previous = self.items[-2]
            pair = [self.known.letter(previous["mark"]), self.known.letter(match["mark"])]
            adjacent = "\n\n" not in self.lines[previous.end("mark") : at]
            if adjacent and pair in [list(two) for two in pairwise(self.known.letters)]:
                return None  # the last item of the list of options
        if self._read_heading(at) or not self.known.letter(match["mark"]):
            return None
        return at

    # ---- The decision ----

    def _commits(self, statements_placed: Iterable[Placed]) -> list[Placed]:
        """Return statements that commit the reply to an option or to another named answer."""
        return [
            candidate
            for candidate in statements_placed
            if candidate.statement.stance == "own"
            and candidate.rank >= STATED_RANK
            and not (
                candidate.at in self.listed and candidate.statement.rule in ("bare", "is-correct")
            )
            and not (candidate.statement.rule == "bare" and self._is_cut(candidate.at))
            and self._is_known(candidate.statement)
        ]

    def committed(self) -> Extraction | None:
        """Return the answer that the reply commits to, None without a commitment."""
        commits = self._commits(self.placed)
        closing = self._last_line()
        if closing is not None:
            commits = [candidate for candidate in commits if candidate.at != closing.at] + [closing]
        commits.sort(key=lambda candidate: candidate.at)
        opening = self.text[: commits[0].at].strip(" \n(\"'[*") if commits else ""
        if commits and commits[0].statement.rule == "bare" and not opening:
            commits.pop(0)  # "B. Because ...": a form, see `formed`
        if not commits:
            return self._read_ticks()
        top = max(candidate.rank for candidate in commits)
        holds = [candidate for candidate in commits if candidate.rank == top][-1]
        earlier = [
            candidate
            for candidate in commits
            if candidate.rank == MARKED_RANK and candidate.at < holds.at
        ]
        if self._is_torn(commits, holds):
            return CONFLICT
        if holds is closing and earlier and not self._is_agreement(earlier[-1], holds):
            return CONFLICT
        for later in commits[commits.index(holds) + 1 :]:
            if not self._is_agreement(holds, later):
                return CONFLICT
            holds = later if self._is_revised(holds, later) else holds
        indecision = holds.rank == STATED_RANK and _INDECISION.search(self.text, holds.at)
        if indecision and len({*_MARKS.findall(self.text, max(0, holds.at - 300))}) > 1:
            return CONFLICT
        if holds.statement.rule == "also" and any(
            not self._is_same_option(holds, candidate) for candidate in commits
        ):
            return CONFLICT
        return _extraction(self.known, holds.statement)

    def _is_torn(self, commits: Sequence[Placed], holds: Placed) -> bool:
        """Return whether a sentence states two answers: "I maintain B, and C is right"."""
        retentions = [
            commit for commit in commits if commit.statement.rule == "kept" and commit.at < holds.at
        ]
        if (
            not retentions
            or holds.statement.rule == "changed"
            or self._is_same_option(retentions[-1], holds)
        ):
            return False
        if _END.search(self.text, retentions[-1].at, holds.at):
            return False
        _, between = words_of(self.text[retentions[-1].at : holds.at])
        return not any(kind & (K.TURN | K.CHANGE) and not kind & K.GOOD for kind in between)

    def _last_line(self) -> Placed | None:
        """Return the closing line as a commitment, unless its label denies that."""
        at = self.closing
        if at is None:
            return None
        line = self.lines[:at].rstrip(" *_\"'([>#-\n").rpartition("\n")[2]
        for candidate in self.placed:
            if candidate.at == at and candidate.statement.rule == "final-answer":
                return candidate
            elsewhere = candidate.statement.stance in ("reported", "past") and line.count(" ") < 5
            if candidate.at == at and elsewhere and candidate.statement.rule == "answer-label":
                return None
        return Placed(Statement("last-line", self.lines[at], "own"), at)

    def _is_agreement(self, before: Placed, after: Placed) -> bool:
        return self._is_same_option(before, after) or self._is_revised(before, after)

    def _is_same_option(self, first: Placed, second: Placed) -> bool:
        return self._letters(first.statement) == self._letters(second.statement)

    def _is_revised(self, before: Placed, after: Placed) -> bool:
        """Return whether the later statement retracts the earlier one."""
        if after.statement.revises or after.statement.rule == "changed":
            return True
        _, between = words_of(self.text[before.at : after.at][-600:])
        return any(kind & (K.TURN | K.CHANGE) for kind in between)

    def _is_cut(self, at: int) -> bool:
        """Return whether a reply breaks off after a capital that begins a sentence."""
        return not self.text[at + 1 :].strip() and self.text[:at].rstrip(" ")[-1:] in (".", "!")

    def _is_known(self, statement: Statement) -> bool:
        """Return whether a statement is about an option or names another answer."""
        return statement.rule in _NAMING or self.known.letter(statement.marks[0]) is not None

    def _letters(self, statement: Statement) -> set[str | None]:
        return {self.known.letter(mark) for mark in statement.marks}

    def _read_ticks(self) -> Extraction | None:
        """Return the only option of a list that is called right."""
        verdicts = [(item["mark"], _verdict(item)) for item in self.items]
        right = [mark for mark, verdict in verdicts if verdict]
        if len(right) == 1 and any(verdict is False for _, verdict in verdicts):
            return _extraction(self.known, Statement("ticks", right[0], "own"))
        return None

    # ---- Replies without a commitment ----

    def formed(self, visible_text: str) -> Extraction | None:
        """Return the answer by the form of the reply: its beginning, a verdict or bold type."""
        leading = self._leading()
        if leading is not None:
            return leading
        last = max(0, len(self.lines) - 120)
        ending = _ENDING.search(self.lines, last) if "\n\n" in self.lines[last:] else None
        if ending is not None and not self.items and not REFUSAL.search(self.text):
            return _extraction(self.known, Statement("last-line", ending["mark"], "own"))
        weak = [
            (candidate.statement, candidate.rank)
            for candidate in self.placed
            if candidate.statement.stance in ("own", "hedged")
            and candidate.rank
            and candidate.at not in self.listed
            and self._is_known(candidate.statement)
        ]
        hedges = [
            candidate for candidate, rank in weak if candidate.stance == "hedged" and rank > FORM
        ]
        verdicts = [
            candidate for candidate, rank in weak if candidate.stance == "own" and rank == FORM
        ]
        hedged_forms = [
            candidate for candidate, rank in weak if candidate.stance == "hedged" and rank == FORM
        ]
        candidates = hedges or verdicts or hedged_forms
        if candidates:
            is_agreed = len(set[str | None]().union(*map(self._letters, candidates))) == 1
            return _extraction(self.known, candidates[-1]) if is_agreed else CONFLICT
        bold = (
            {match[1] for match in _BOLD.finditer(visible_text)} if "**" in visible_text else set()
        )
        if len(bold) == 1 and bold <= set(self.known.letters) - self._collect_unmeant():
            return Extraction(bold.pop(), "parsed", "bold")
        return None

    def _leading(self) -> Extraction | None:
        text = self.text
        match = _START.match(text)
        if match is None:
            return None
        mark, end = match["mark"], match.end()
        first = next((candidate for candidate in self.placed if candidate.at == end - 1), None)
        marks = first.statement.marks if first else mark
        alone = first is not None and (first.statement.rule == "bare" or len(marks) > 1)
        is_letter_form = form_of(mark) == "letter" and text[end : end + 1] == ","
        if not (alone or is_letter_form or _LEADS.match(text, end)):
            return None
        if first is not None and first.statement.stance != "own":
            return None
        listed_letters = [self.known.letter(item["mark"]) for item in self.items]
        if len(marks) == 1 and listed_letters[:2] == list(self.known.letters[:2]):
            return None
        shares = {match["mark"]: float(match["share"]) for match in _SHARE.finditer(text)}
        if mark in shares and shares[mark] < max(shares.values()):
            return None  # "B: 20%, C: 60%"
        remainder = text[end:].strip(" \n.()*\"'")
        rule = "leading-letter" if remainder or form_of(mark) != "letter" else "bare-letter"
        rule = "option-text" if form_of(mark) == "words" else rule
        return _extraction(self.known, Statement(rule, marks, "own"))

    def _collect_unmeant(self) -> set[str | None]:
        """Return the options of statements that do not commit the reply."""
        unmeant = (
            candidate.statement for candidate in self.placed if candidate.statement.stance != "own"
        )
        return set[str | None]().union(*map(self._letters, unmeant))

    def _read_mention(self) -> Extraction | None:
        """Return the only option with letter and words, or that an assertion names."""
        unmeant = self._collect_unmeant()
        for form, rule in ((BY_BOTH, "item"), (BY_WORDS, "quoted-text")):
            letters_named: set[str | None] = set()
            for match in re.finditer(form, self.text):
                window = self.text[max(0, match.start() - 160) : match.start()]
                sentence = re.split(r"[.!?](?=\s)|\n", window)[-1]
                letter = self.known.letter(match[0])
                is_doubted = any(k & (K.NEGATION | K.DOUBT | K.AWAY) for k in words_of(sentence)[1])
                if letter in unmeant or is_doubted:
                    return None
                if rule == "item" or _ASSERTION.search(sentence) or len(self.text) < 40:
                    letters_named.add(letter)
            if letters_named:
                return (
                    Extraction(letters_named.pop(), "parsed", rule)
                    if len(letters_named) == 1
                    else None
                )
        return None

    def unstated(self, options: Mapping[str, str]) -> Extraction:
        """Return the extraction of a reply without a statement.

        It is a refusal, a mention, none of the options, or nothing.
        """
        if REFUSAL.search(self.text):
            return Extraction(None, "refused", "refusal")
        mention = self._read_mention()
        if mention is not None:
            return mention
        if _NONE_CORRECT.search(self.text) or is_none_of_the_above(self.text):
            for letter, option in options.items():
                if is_none_of_the_above(option):
                    return Extraction(letter, "parsed", "none-option")
            return Extraction(None, "none", "none-correct")
        return NOTHING


def _is_apart(item: re.Match[str]) -> bool:
    """Return whether an option is not an item of a list: it begins a sentence or is a paragraph."""
    above = item.string[: item.start("mark")].rpartition("\n")[0].rpartition("\n")[2]
    below = item.string[item.end() :].partition("\n")[2].partition("\n")[0]
    alone = not item["rest"].strip(" .*_)\"'!]") and not (item["box"] or item["sign"])
    beside = [
        neighbour
        for neighbour in map(_ITEM.match, (above, below))
        if neighbour and not _is_sentence(neighbour)
    ]
    return (alone or _is_sentence(item)) and not beside


def _is_sentence(item: re.Match[str]) -> bool:
    _, kinds = words_of(item["rest"][:40])
    return bool(kinds and kinds[0] & (K.BE | K.MODAL) and not kinds[0] & K.SIGN)


def _find_quoted_marks(text: str) -> set[int]:
    """Return positions of marks in a quotation of others: 'You asked, "Is it not B?"'."""
    if '"' not in text:
        return set()
    return {
        match.start("said") + mark.start()
        for form in (_QUOTE, _QUOTED_BY)
        for match in form.finditer(text)
        for mark in _MARKS.finditer(match["said"])
        if not any(kind & (K.SELF | K.MINE) for kind in words_of(match["who"])[1][-3:])
    }


def _as_said(placed_statement: Placed) -> Placed:
    return placed_statement._replace(
        statement=placed_statement.statement._replace(stance="reported")
    )


def _read_structured(text: str, prepared_options: Options) -> Extraction | None:
    """Return the answer of a reply that is a JSON object, else None."""
    answers = object_in(text)
    marks = None if answers is None else marks_of(answers)
    if marks is not None:
        return _extraction(prepared_options, Statement("json", marks, "own"))
    remainder = text.strip(" \n`")
    whole = answers and remainder.startswith("{") and remainder.endswith("}")
    return NOTHING if whole else None


def _extraction(prepared_options: Options, statement: Statement) -> Extraction:
    letters = {prepared_options.letter(mark) for mark in statement.marks}
    if len(letters) > 1:
        return CONFLICT
    letter = letters.pop() if letters else None
    if letter is None:
        return Extraction(None, "none", "not-an-option" if statement.marks else "nothing")
    return Extraction(letter, "parsed", statement.rule)


def backwards(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences and lines of a text, the last one first.

    If a text mentions options hundreds of times, only the last sentences are yielded.
    """
    cut = text.rfind("\n", 0, max(0, len(text) - 400)) + 1
    mentions = 0
    for begin, end in ((cut, len(text)), (0, cut)):
        for start, stop in reversed(list(pairwise(_bounds(text, begin, end)))):
            yield start, stop
            mentions += len(_MARKS.findall(text, start, stop))
            if mentions > _LONGEST_REST:
                return


def _bounds(text: str, begin: int, end: int) -> list[int]:
    """Return the starts of the sentences of a passage, and its end."""
    beginnings = [begin, end]
    beginnings += [
        match.end()
        for match in _END.finditer(text, begin, end)
        if not text.endswith(_NO_END, max(0, match.start() - 4), match.start())
    ]
    bounds = sorted(beginnings)
    if "ans." in text or "answer." in text:
        labels = {match.start("end") for match in _LABEL_STOP.finditer(text, begin, end)}
        bounds = [start for start in bounds if start - 1 not in labels]
    if end - begin > _LONGEST and any(b - a > _LONGEST for a, b in pairwise(bounds)):
        # parsing takes time quadratic in the length of a sentence
        cuts = [n for a, b in pairwise(bounds) for n in range(a + _LONGEST, b, _LONGEST)]
        bounds = sorted([*bounds, *(text.rfind(" ", 0, n) + 1 or n for n in cuts)])
    return bounds


def _verdict(item: re.Match[str]) -> bool | None:
    """Return whether a line of a list calls its option right, None if it does not say."""
    if item["box"] is not None:
        return item["box"] != " "
    if item["sign"] is not None:
        return item["sign"] in "\u2713\u2714\u2705\u2611"
    cells = re.split(r"\||->", item["rest"].strip(" |*_~"))
    return next(
        (judgement for cell in reversed(cells) if (judgement := _judge_cell(cell)) is not None),
        None,
    )


def _judge_cell(cell: str) -> bool | None:
    words, kinds = words_of(cell)
    if words[-1:] == ["in"] or words in ([":", "t"], ["-", "t"]):
        return True
    negations = words_read = 0
    for word, kind in zip(words, kinds, strict=True):
        words_read += not kind & K.SIGN
        if words_read > 8:
            break
        if word == "no" or kind & K.BAD:
            return bool(negations)
        if (kind & K.GOOD or word == "answer") and words_read < 5:
            return not negations
        negations = negations or kind & K.NEGATION
    return False if negations else None
