"""Read whether a reply sticks to its answer or switches to the option newly offered.

Stick-or-Switch (appendix A.1) ends a turn with "Would you like to stick to your original answer
or switch to the new option."  A reply may say so in words, by letter, or by an option's text.
As in `extract_answer`, a statement beats a mention, and of several statements the last holds.
Where a letter and a word contradict each other nothing is guessed.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .extraction import Extraction, extract_answer
from .mention import (
    BOTH,
    HELD,
    HELD_OPTION,
    MISNAMED,
    NEW,
    OFFERED_OPTION,
    REF,
    none_among,
    roles_of,
    with_roles,
)


def read_decision(reply: str, options: Mapping[str, str], held: str, offered: str) -> Extraction:
    """Read a stick-or-switch turn.

    Args:
        reply: The model's whole reply; any string, reasoning included.
        options: Displayed letter to text of every option in play so far, in the order shown.
        held: The displayed letter of the model's current answer.
        offered: The displayed letter of the option newly offered.

    Returns:
        The displayed letter decided on: `held`, `offered` or another option in play that is
        clearly named.  Rules: `stick` and `switch` for words; `contradiction` for two statements
        that exclude each other; `undecided` for a reply that weighs both and takes neither;
        `none-option` for a none-of-the-above in play; else the rule of `extract_answer`.

    Raises:
        ValueError: `held` or `offered` is not in `options`, or they are the same.
    """
    if held not in options or offered not in options or held == offered:
        raise ValueError(f"held {held!r} and offered {offered!r} must be two of the options")
    roles = roles_of(options, held, offered)
    text = with_roles(reply, options, roles)
    claims, mentioned = _claims(text, roles)
    if any(claim.worded for claim in claims):
        decided = _resolved(claims, text)
        if decided is None or decided.answer is None:
            return Extraction(None, "ambiguous", "contradiction")
        whole = _named_by_whole(text, options)
        if whole not in (None, decided.answer):
            return Extraction(None, "ambiguous", "contradiction")
        rule = "stick" if decided.answer == held else "switch"
        return Extraction(decided.answer, "parsed", rule)
    named = {claim.answer for claim in claims}
    found = extract_answer(reply, options)
    if found.answer is not None and len(named) == 1 and found.answer not in named:
        return Extraction(named.pop(), "parsed", "option-text")
    if found.rule == "choice" and "subject" in mentioned:  # "Switching to C would be wrong."
        found = Extraction(None, "none", "nothing")
    none_of_them = none_among(options)
    if found.answer is None and none_of_them is not None and found.status == "none":
        sole = _SOLE_REFERENT.fullmatch(text)
        if found.rule == "none-correct" or (sole and roles[none_of_them] == sole[1]):
            return Extraction(none_of_them, "parsed", "none-option")
    if found.status == "none" and found.rule not in ("empty", "unfinished"):
        if len(named) == 1:
            answer = named.pop()
            rule = "none-option" if answer == none_of_them else "option-text"
            return Extraction(answer, "parsed", rule)
        if BOTH in text or mentioned >= {"stick", "switch"}:
            return Extraction(None, "ambiguous", "undecided")
        weak = {claim.answer for claim in _judgements(text, roles)}
        if len(weak) == 1:
            answer = weak.pop()
            return Extraction(answer, "parsed", "stick" if answer == held else "switch")
    return found


def is_negated(before: str) -> bool:
    """Whether the words before a verb turn it round: "I would not", "there is no need to".

    Args:
        before: Lower-case text that ends with the blank before the verb.
    """
    chain = _NEGATION.search(before)
    # "No reason not to switch" is one to switch.
    return chain is not None and len(_NEGATOR.findall(chain[0])) % 2 == 1


# ---- Statements of a decision ----


class _Claim(NamedTuple):
    answer: str | None  # None for a statement that contradicts itself
    start: int
    end: int
    worded: bool  # "stick" or "switch", not just a letter after "Answer:"
    personal: bool  # "I'll stay", not just "stay"
    lettered: bool = False  # names its option by letter or text


_CLAUSE = re.compile(r"(?:[^.!?;\n]|[.](?=\w))+")
_BREAK = re.compile(
    r",? (?:but|however|yet|although|though|whereas)\b|, (?:so|and i|nor|then|while)\b| - "
)
_OBJECT = (
    rf"(?:{REF}|it|this|that|(?:my|the|that|this) (?:answer|choice|mind|selection|decision|"
    rf"response)|things)\b"
)
_STICK = (
    r"(?<!needle )(?<!needle-)(?<!finger )(?:stick(?:ing)?|stay(?:ing)?|stand(?:ing)?|"
    r"remain(?:ing)?"
    r"|hold(?:ing)?)(?! injur| the patient)(?: (?:firm|put|true))?(?: (?:with|to|by|at|on|"
    r"behind))?\b"
    rf"|(?:keep(?:ing)?|maintain(?:ing)?|retain(?:ing)?|uphold(?:ing)?|continu(?:e|ing)|(?:re)?(?:af|con)firm)"
    rf"(?: (?:with|to))?(?= {_OBJECT}| the same (?:answer|choice)|\W*$)"
)
_SWITCH = (
    r"(?:switch(?:ing)?(?: over)?(?! the patient)(?: my (?:answer|choice|selection))?"
    rf"|(?:chang(?:e|ing)|revis(?:e|ing)|updat(?:e|ing)|amend(?:ing)?|"
    rf"alter(?:ing)?)(?: {_OBJECT}|(?=\W*$))"
    rf"|mov(?:e|ing)(?= (?:over )?to {REF}))\b"
)
_LEAVE = (
    rf"(?:abandon|drop|discard|give up|let go of|reject|dismiss|rule out|"
    rf"withdraw)(?:ing)?(?= {REF})"
)
_TAKE = (
    r"(?:choos(?:e|ing)|go(?:ing)? with|select(?:ing)?|pick(?:ing)?|prefer|opt(?:ing)? for|"
    r"adopt(?:ing)?|favou?r|accept(?:ing)?|tak(?:e|ing)|lean(?:ing)? towards?|vote for|settle on|"
    r"return(?:ing)? to|revert(?:ing)? to|go(?:ing)? back to|agree with|go(?:ing)? for)"
    rf"(?= {REF})"
)
_VERB = re.compile(
    rf"\b(?:(?P<stick>{_STICK})|(?P<switch>{_SWITCH})|(?P<leave>{_LEAVE})|(?P<take>{_TAKE}))"
)
_LIGHT = (
    r"be|been|being|am|is|are|want(?:ing)?|need|plan(?:ning)?|going|intend|wish|think|believe|see|"
    r"feel|find|like|have|any|an?|the|reason|it|i|we|should|would|will|could|to|that|this|"
    r"necessary|"
    r"inclined|strong|enough|good|sufficient|really|therefore|convinced|persuaded|evidence|cause|"
    r"ready|"
    r"willing|prepared|why|compelling|comfortable|justif\w+|warrant\w*|yet|simply|just|support|"
    r"supports?|able|appropriate|makes?|me|lead|us|for|in|of|here|even|considering|consider|basis|"
    r"grounds|point|no|not|longer|there's|there|case|do|does|did|had|has|right|sense|out|"
    r"need(?:ed)?|require[sd]?|information|clear|clinical|findings?|enough|ever"
)
_NEGATION = re.compile(
    r"(?:\b(?:not|never|no|cannot|nor|without|nothing|little|insufficient|decline|refuse|"
    r"hardly)\b|n't\b)"
    rf"(?: (?:{_LIGHT})\b){{0,12}} $"
)
_NEGATOR = re.compile(r"\b(?:not|never|no|cannot|nor|without|nothing|little|insufficient|decline|"
    r"refuse|hardly)\b|n't\b")  # fmt: skip
_ASIDE = re.compile(
    r"\b(?:rather than|instead of|than|whether|as much as|tempted|wanted|considered|considering|"
    r"could|might|"
    r"may|can|instinct|at first|initially|was going|was about|was inclined|thought (?:about|of)|"
    r"you|your|one (?:would|should)|some|many|others|people|they|"
    r"why)\b(?! ?n't)(?:(?! i ).){0,60}$|\bas much as i .{0,40}$"
)
_CONDITION = re.compile(
    r"(?<!even )(?<!as )\b(?:if|when|had)\b(?! (?:i|we|asked|forced|pressed)\b)"
)
_PERSON = re.compile(r"\b(?:i|i'd|i'll|i'm|we|we'd|we'll|me|let's|let me|my)\b")
_LABEL = (
    r"(?:[\"']?(?:my |the |your )?(?:final |own |model_?)?(?:answer|ans|decision|choice|response|"
    r"verdict|"
    r"conclusion|action|selection|recommendation)(?: (?:is|would be|"
    r"remains))?[\"']?\s?[:=-]{0,3}\s?)"
)
_OPENING = re.compile(
    rf"^\W*(?:(?:yes|no|ok|okay|sure|so|thus|therefore|hence|then|and|still|overall|actually|wait|"
    r"but|however|instead|ultimately|finally|again|definitely|please|now|will|would|to|is|the|your|"
    r"final|own|answer|ans|decision|choice|response|verdict|conclusion|action|selection|"
    rf"recommendation|\d|{REF}|{BOTH})\b\W*)*$"
)
_IMPERSONAL = re.compile(
    r"\b(?:reason|need|basis|cause|grounds|point|case|sense|evidence|decision|decided|choose|"
    r"better|"
    r"best|wise|appropriate|reasonable|is|be|enough|sufficient|warrants?|warranted|justif\w+|"
    r"supports?|necessary|recommend|suggest|insufficient)(?: (?:to|for|in|of|a|me|us|here)){0,3} $"
)
_SUBJECT = re.compile(r"\w+ing\b.{0,60}\b(?:would|is|could|may|might|isn't|seems|makes)\b")
_LETTERED = re.compile(
    rf"(?:^|[\s,{{(\"'])(?P<label>{_LABEL})[\s\"'(:=-]{{0,6}}(?P<ref>{REF})(?!\w)"
    rf"|^\W*(?P<whole>{REF})\W*$"
)
_SAME = re.compile(
    r"^\W*(?:no change|unchanged|same(?: answer)?|same as before|no switch)\b"
    r"|\bmy (?:answer|choice|selection|position) (?:(?:is|remains|stays|"
    r"stands)(?: still)?(?: the same| "
    r"unchanged)?\W*$|(?:has not|hasn't|does not|doesn't|will not|won't|would not|wouldn't|"
    r"did not) change)"
    r"|\b[HK] (?:still )?(?:stands|holds|stays|remains)\W*$"
    r"|\b[HK] (?:is|remains|stays) (?:unchanged|the same)"
    r"|\bleave (?:H|it|things|my (?:answer|choice)) (?:as |un)"
    r"|\b(?:happy|confident|comfortable|satisfied|fine) (?:with|in|about) my (?:answer|choice)"
)
_VALUED = re.compile(
    rf"(?P<ref>{REF}) (?:(?:is|are|remains?|would be|seems|appears(?: to be)?) (?:(?:still|"
    rf"indeed|clearly|"
    r"probably|likely|now|therefore) )?(?:(?:the|a|my|more|most|much|"
    r"far) ){0,3}(?:single )?(?:correct|right|"
    r"best|better|likely|answer|probable|consistent|appropriate|plausible|accurate|final answer|"
    r"preferred)\b"
    r"|it is(?=\W*$)|(?:fits|explains|matches|accounts for|suits) [^.;\n]{0,60}\b(?:better|best)\b)"
    rf"|\bmy (?:final )?answer (?:is|remains|stays|stands at)(?: still)? (?P<mine>{REF})(?!\w)"
    rf"|\b(?:confident in|committed to|convinced of|satisfied with|still (?:believe|think|say)|i "
    rf"(?:believe|think|say)(?: that)?|persuaded by) (?P<trusted>{REF})(?!\w)(?! (?:is|does|"
    rf"would|may|could))"
)
_FLAG = re.compile(r"[\"'](?P<key>stick|switch)\w*[\"'] ?: ?[\"']?(?P<value>true|yes|false|no)\b")
_TURNING = re.compile(
    r"\b(?:but|however|actually|wait|final(?:ly)?|instead|so|therefore|thus|hence|after all|yet|"
    r"still|in the end|ultimately|overall|upon|on (?:reflection|second thoughts?|balance)|"
    r"reconsider\w*|then|now|no|nevertheless|nonetheless|conclu\w+|in summary|although|after|"
    r"given)\b"
)
_SOLE_REFERENT = re.compile(rf"\W*({REF})\W*")


def _claims(text: str, roles: Mapping[str, str]) -> tuple[list[_Claim], set[str]]:
    """The decisions a text states, in order, and the kinds it only mentions."""
    letters = {role: letter for letter, role in roles.items()}
    held, offered = letters[HELD_OPTION], letters[OFFERED_OPTION]
    answers: dict[str, str | None] = {**letters, HELD: held, NEW: offered, MISNAMED: None}
    claims: list[_Claim] = []
    mentioned: set[str] = set()
    for start, clause in _clauses(text):
        for found in _FLAG.finditer(clause):
            stuck = (found["key"] == "stick") == (found["value"] in ("true", "yes"))
            at = start + found.start(), start + found.end()
            claims.append(_Claim(held if stuck else offered, *at, worded=True, personal=True))
        for found in _VERB.finditer(_FLAG.sub(_blank, clause)):
            claim = _verb(clause, found, answers, held, offered)
            if claim is None:
                mentioned.add("stick" if found.lastgroup == "stick" else "switch")
                if _SUBJECT.match(clause, found.start()):
                    mentioned.add("subject")
            else:
                claims.append(claim._replace(start=start + claim.start, end=start + claim.end))
        for found in _SAME.finditer(clause):
            near = max(0, found.start() - 160)
            negated = _NEGATION.search(clause[near : found.start()])
            if not negated and not _CONDITION.search(clause, near, found.end() + 160):
                at = start + found.start(), start + found.end()
                claims.append(_Claim(held, *at, worded=True, personal=True))
        for found in _VALUED.finditer(clause):
            role = found["ref"] or found["mine"] or found["trusted"]
            before = clause[max(0, found.start() - 160) : found.start()]
            if _NEGATION.search(before) or _CONDITION.search(before) or _ASIDE.search(before):
                continue
            at = start + found.start(), start + found.end()
            worded = role in (HELD, NEW)
            claims.append(_Claim(answers[role], *at, worded, personal=True, lettered=not worded))
        for found in _LETTERED.finditer(clause):
            role = found["ref"] or found["whole"]
            at = start + found.start(), start + found.end()
            worded = role in (HELD, NEW, MISNAMED)
            if found["whole"] is None and found["label"].startswith("your"):
                continue
            claims.append(_Claim(answers[role], *at, worded, personal=False, lettered=not worded))
    return sorted(claims, key=lambda claim: claim.start), mentioned


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    for sentence in _CLAUSE.finditer(text):
        at = sentence.start()
        for found in _BREAK.finditer(text, sentence.start(), sentence.end()):
            yield at, text[at : found.start()]
            at = found.start()
        yield at, text[at : sentence.end()]


def _verb(
    clause: str, found: re.Match[str], answers: Mapping[str, str | None], held: str, offered: str
) -> _Claim | None:
    near = max(0, found.start() - 160)
    before, after = clause[near : found.start()], clause[found.end() : found.end() + 160]
    kind = found.lastgroup
    chain = _NEGATION.search(before)
    negated = is_negated(before)
    condition = _CONDITION.search(clause, near, found.end() + 160) is not None
    if (condition and not negated) or BOTH in after[:3]:
        return None
    if _ASIDE.search(before) and not negated:
        return None
    personal = _PERSON.search(before) is not None
    stated = before if chain is None else before[: chain.start()]
    gerund = found[0].split()[0].endswith("ing")
    if not personal:
        if chain is None and not _OPENING.match(before) and not _IMPERSONAL.search(before):
            return None
        if gerund and not stated.strip() and _SUBJECT.match(clause, found.start()):
            return None
    later = _VERB.search(after)
    window = found[0] + after[: min(later.start() if later else 90, 90)]
    referents = [role[0] for role in re.finditer(rf"{REF}(?!\w)", window)]
    role = _object(kind, window, referents)
    lettered = role is not None and role not in (HELD, NEW)
    named = answers[role] if role is not None else None
    answer: str | None
    if kind == "leave":
        answer = offered if named == held else held
    elif kind == "take":
        answer = named if not negated else held if named == offered else offered
    elif kind == "stick":
        answer = held if role is None or named == held else None
        if negated and answer is not None:
            answer = offered
        elif negated:
            answer = held if named == offered else None
    else:
        answer = offered if role is None else None if named == held else named
        if negated:
            answer = held
    return _Claim(answer, found.start(), found.end(), True, personal, lettered)


def _object(kind: str | None, window: str, referents: list[str]) -> str | None:
    """The role of what a verb takes: "switch from H to N", "change H to F", "stick with K"."""
    if not referents:
        return None
    if kind != "switch":
        return referents[0]
    goal = re.search(rf"\b(?:to|for|in favou?r of)\W{{1,3}}(?:option )?({REF})(?!\w)", window)
    if goal is not None:
        return goal[1]
    # "I would change my original answer", "switch from none of the above": the goal is unsaid.
    if re.search(rf"\bfrom\W{{1,3}}{referents[0]}", window) or not window.startswith("switch"):
        return referents[1] if len(referents) > 1 else None
    return referents[0] if re.match(rf"switch\w*\W{{1,4}}{REF}", window) else None


def _judgements(text: str, roles: Mapping[str, str]) -> Iterator[_Claim]:
    """What a text that decides nothing thinks of the two: "the new option is less likely"."""
    letters = {role: letter for letter, role in roles.items()}
    held, offered = letters[HELD_OPTION], letters[OFFERED_OPTION]
    for found in _DOUBTED.finditer(text):
        if not _CONDITION.search(text[max(0, found.start() - 60) : found.start()]):
            doubted = found["ref"] in (NEW, OFFERED_OPTION) or found["act"] == "switch"
            answer = held if doubted else offered
            yield _Claim(answer, *found.span(), worded=True, personal=False)


_DOUBTED = re.compile(
    r"(?P<ref>[HNKF])(?: (?:over|rather than|instead of) [HNKF])? "
    r"(?:(?:is|seems|would be|appears(?: to be)?) (?:not (?:\w+ )?(?:correct|"
    r"right|likely|supported|"
    r"better|appropriate|as likely|consistent)|less|incorrect|wrong|unlikely)\b|(?:does not|"
    r"doesn't) (?:fit|explain|match|"
    r"account for)\b)"
    r"|\b(?P<act>switch|stick)ing [^.\n]{0,40}\bwould (?:not be|be (?:a |an )?(?:mistake|error|"
    r"wrong|unwise|"
    r"premature|incorrect))\b"
)


def _resolved(claims: list[_Claim], text: str) -> _Claim | None:
    """The claim that holds, or None where two exclude each other with no order."""
    last = claims[-1]
    against = [claim for claim in claims[:-1] if claim.answer != last.answer]
    if not against or _TURNING.search(text[against[-1].end : last.end]):
        return last
    if not last.worded:
        return last if not any(claim.worded for claim in against) else None
    if last.lettered or (last.personal and all(claim.worded for claim in against)):
        return last
    return None


def _named_by_whole(text: str, options: Mapping[str, str]) -> str | None:
    """The option whose text is the whole reply, though it reads as a decision: "No change"."""
    bare = text.strip(" .\"'\n")
    return next(
        (key for key, option in options.items() if option.lower().strip(" .") == bare), None
    )
