"""Tokens of a reply, matched to its text."""

import re
from collections.abc import Iterator, Sequence

from inspect_ai.model import Logprob, TopLogprob

_BLANKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "č": "\r", "ĉ": "\t"})
"""Blanks in the vocabularies of SentencePiece and of byte-level BPE."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""Single byte in a vocabulary of SentencePiece."""


def _bytes_shown() -> dict[str, int]:
    """Return the byte of each character in byte-level BPE (GPT-2, Llama 3, Qwen)."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    invisible = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + n): b for n, b in enumerate(invisible)
    }


_BYTES = _bytes_shown()


def tokens_of(reply: str, tokens: Sequence[Logprob]) -> list[Logprob]:
    """Return the tokens of a reply, spelled as in its text.

    Inspect's provider of local transformers returns tokens as in the vocabulary ("ĠA", "▁A"). It
    returns the likeliest token even if another one was sampled, and continues beyond the end of a
    padded reply. The text of the reply therefore determines the sampled alternative and the end.

    Args:
        reply: the reply, without reasoning before it.
        tokens: tokens from the provider, including the reasoning's.

    Returns:
        Token and log-probability of the reply with all alternatives, and blanks as blanks. Empty if
        the tokens do not form the reply.
    """
    text = reply.strip().encode()
    # after reasoning, the reply is the last part
    for first in (0, *reversed(range(1, len(tokens)))):
        if match := _find_spelling(text, tokens[first:]):
            return [
                _to_logprob(token, candidate, spelling)
                for token, (candidate, spelling) in zip(tokens[first:], match, strict=False)
            ]
    return []


_Path = tuple[tuple[TopLogprob, bytes], ...]


def _find_spelling(text: bytes, tokens: Sequence[Logprob]) -> _Path:
    """Return an alternative of each token, with its spelling, that together form the text."""
    ways: dict[int, _Path] = {0: ()}
    for token in tokens:
        further: dict[int, _Path] = {}
        for start, path in ways.items():
            for candidate, spelling, end in _continuations(token, text, start):
                further.setdefault(end, (*path, (candidate, spelling)))
        if len(text) in further:
            return further[len(text)]
        ways = further
        if not ways:
            break
    return ()


def _continuations(
    token: Logprob, text: bytes, start: int
) -> Iterator[tuple[TopLogprob, bytes, int]]:
    """Yield alternatives that match the text, with spelling and end, the sampled one first."""
    own_logprob = TopLogprob(token=token.token, logprob=token.logprob)
    for candidate in (own_logprob, *(token.top_logprobs or [])):
        for spelling in _spellings(candidate.token):
            # the reply has no surrounding blanks
            piece = spelling if start else spelling.lstrip()
            remainder = text[start:]
            if remainder.startswith(piece) or piece.rstrip() == remainder:
                yield candidate, spelling, min(start + len(piece), len(text))


def _spellings(token: str) -> list[bytes]:
    """Return the possible spellings of a token."""
    spellings = [token.encode(), token.translate(_BLANKS).encode()]
    if all(character in _BYTES for character in token):
        spellings.append(bytes(_BYTES[character] for character in token))
    if byte := _BYTE.fullmatch(token):
        spellings.append(bytes([int(byte[1], 16)]))
    return list(dict.fromkeys(spellings))


def _to_logprob(token: Logprob, candidate: TopLogprob, spelling: bytes) -> Logprob:
    text = spelling.decode(errors="ignore")
    tops = [
        TopLogprob(
            token=text if top.token == candidate.token else top.token.translate(_BLANKS),
            logprob=top.logprob,
        )
        for top in token.top_logprobs or []
    ]
    return Logprob(token=text, logprob=candidate.logprob, top_logprobs=tops)
