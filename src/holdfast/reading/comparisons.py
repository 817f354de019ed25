"""Comparisons of two options: "C is no better than A", "A outperforms C"."""

from .patterns import Patterns, WordSets
from .statements import Sentence
from .words import words_of

P = Patterns("comparisons")
W = WordSets()
_FORMS = (
    (P.more_than, "degree"), (P.more_with_than, "degree"), (P.compared_with, "degree"),
    (P.superior_to, "degree"), (P.as_good_as, "equal"), (P.beaten_by, "less"),
    (P.beats_other, "more"), (P.yields_to, "less"), (P.equals, "equal"), (P.advantage, "more"),
    (P.explains_unlike, "more"),
)  # fmt: skip

_CLAUSE_SIGNS = (
    ";", ": ", ", but ", ", and ", ", so ", ", therefore ", ", thus ", ", hence ", ", because ",
    ", since ", " means that ", " meaning that ",
)  # fmt: skip


def is_merit(text: str) -> bool:
    """Return whether a text names what it is good to be more of."""
    return P.merit.search(text) is not None


def comparison(sentence: str) -> tuple[str, str, bool] | None:
    """Return the marks of the better and the worse option, and whether they differ for sure."""
    if not P.sign.search(sentence):
        return None
    sentence = P.naming.sub("", sentence)
    for form, kind in _FORMS:
        if (match := form.search(sentence)) is None:
            continue
        words = match.groupdict()
        degree, of = words.get("degree") or "", words.get("of") or ""
        less = kind == "less" or degree in ("second",) or P.less.fullmatch(degree) is not None
        if degree in ("more", "less", "fewer", "greater", "higher", "lower"):
            merit = f"{words['before'] if kind == 'degree' else ''} {of}"
            if not P.merit.search(merit):
                return None
        start = max(sentence.rfind(sign, 0, match.start("x")) for sign in _CLAUSE_SIGNS)
        # "C isn't perfect, but it beats A" denies no comparison
        predicate = words["before"].rpartition(", but it ")[2]
        clause = sentence[start + 1 : match.start("x")] + f" {predicate} {of}"
        denial = Sentence(*words_of(P.subject.sub("", clause)))
        if "whether" in denial.words:
            return None
        is_denied = denial.is_denied(0, denial.size)
        if not is_denied and denial.says(W.unsure, 0, denial.size):
            return None  # "C might be better than A"
        x, y = words["x"], words["y"]
        if kind == "equal":
            return (y, x, True) if is_denied else None
        return (x, y, not is_denied) if less == is_denied else (y, x, not is_denied)
    return None
