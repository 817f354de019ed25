"""A reply as text that the rules can read: without reasoning, typography and emphasis."""

import re
import unicodedata

_TAG = re.compile(
    r"<\s?(?P<close>/)?\s?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)\b"
    r"[^<>\n]{0,80}>|<unused94>|(?P<close2><unused95>)"
    r"|<\|begin_of_thought\|>|(?P<close3><\|end_of_thought\|>)"
    r"|<\|channel\|>analysis|(?P<close4><\|channel\|>final(?:<\|message\|>)?)",
    re.IGNORECASE,
)
# Typographic quotes, dashes, brackets and full stop, each to its ASCII form.
_PUNCTUATION = dict.fromkeys(range(0x2010, 0x2016), "-") | {0x2212: "-", 0x3002: ".", 0xD: "\n"}
_PUNCTUATION |= dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032), "'")
_PUNCTUATION |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0xAB, 0xBB, 0x300C, 0x300D), '"')
_PUNCTUATION |= {0x3010: "[", 0x3011: "]"}
# Of a very long reply only its ends are read, where answers stand: that bounds the time taken.
_HEAD, _TAIL = 4_000, 20_000


def without_reasoning(text: str) -> str:
    """The text without what stands between a model's thinking tags."""
    if "<" not in text:
        return text
    kept: list[str] = []
    position, inside = 0, False
    for tag in _TAG.finditer(text):
        closing = tag.lastgroup is not None
        if not closing and not inside:
            kept.append(text[position : tag.start()])
        elif closing and not inside:
            kept.clear()  # The opening tag was in the prompt: all before it is reasoning.
        inside, position = not closing, tag.end()
    return "".join(kept) + ("" if inside else text[position:])


def has_reasoning(text: str) -> bool:
    """Whether a model's thinking tag stands anywhere in a text."""
    return _TAG.search(text) is not None


def spoken_text(reply: str) -> str:
    """A reply without reasoning and typographic signs, with its emphasis; of a long one the ends.

    Args:
        reply: Any string; of more than 24,000 characters the first 4,000 and the last 20,000
            are kept.
    """
    return folded(_excerpt(without_reasoning(reply)))


def plain_text(reply: str) -> str:
    """A reply as `spoken_text` gives it, without its emphasis too."""
    return unmarked(spoken_text(reply))


def _excerpt(text: str) -> str:
    text = re.sub(r"\s{4,}", lambda run: "\n\n" if "\n" in run[0] else " ", text).strip()
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n\n{text[-_TAIL:]}"


def _fold_character(character: str) -> str:
    if unicodedata.category(character) in ("Cf", "Cc", "Cs", "Mn"):
        return ""
    plain = unicodedata.normalize("NFKD", character)
    return "".join(part for part in plain if unicodedata.category(part) not in ("Mn", "Cf"))


def folded(text: str) -> str:
    """Letters, digits and signs by their plain forms, nothing invisible, single blanks."""
    # Character by character: normalising a whole string sorts runs of combining marks, which
    # takes quadratic time on a hostile run.
    if text.isascii():
        text = text.replace("\r", "\n").replace("\x7f", "")
    else:
        text = text.translate(_PUNCTUATION)
        text = text.translate({ord(c): _fold_character(c) for c in set(text) if c > "\x7e"})
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", "", text)
    text = re.sub(r"[^\S\n]{2,}|[^\S\n ]", " ", text)
    return re.sub(r" ?\n[ \n]*", lambda run: "\n\n" if run[0].count("\n") > 1 else "\n", text)


def unmarked(text: str) -> str:
    """A text without the marks of emphasis, headings and LaTeX fonts."""
    text = re.sub(r"\\(?:text|mathrm|mathbf|mathsf|rm|bf)[a-z]{0,2}\b ?|\*\*|__|`|~~", "", text)
    return re.sub(r"(?m)^ ?#{1,6} ", "", text)
