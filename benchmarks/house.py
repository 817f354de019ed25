"""How large the package is: ``python benchmarks/house.py``.

Lines and code lines (no blanks, comments or docstrings) and files by room, and how many files
outside its own folder name a protocol.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "holdfast"

PROTOCOLS = {
    "medfuzz": r"medfuzz|MedFuzz|[Ff]uzz|[Aa]ttacker",
    "stick_or_switch": r"stick.or.switch|StickOrSwitch|[Cc]onviction",
}
"""Words that only the folder of a protocol should know."""

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """Lines of a module that hold code: no blank ones, no comments, no docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                if isinstance(one.value.value, str):
                    lines.difference_update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    return len(lines)


def sizes(package: Path) -> dict[str, Counter[str]]:
    """Files, lines and code lines by room; the package's own modules are the room ``.``."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).parts
        source = path.read_text()
        found.setdefault(inside[0] if len(inside) > 1 else ".", Counter()).update(
            files=1, lines=source.count("\n"), code=code_lines(source)
        )
    return found


def naming(package: Path, protocol: str) -> list[str]:
    """Files outside a protocol's folder that name it."""
    words = re.compile(PROTOCOLS[protocol])
    paths = sorted([*package.rglob("*.py"), *package.rglob("*.toml")])
    return [
        str(path.relative_to(package))
        for path in paths
        if protocol not in path.relative_to(package).parts[:-1] and words.search(path.read_text())
    ]


def main() -> None:
    """Print the sizes."""
    rooms = sizes(PACKAGE)
    total = sum(rooms.values(), Counter[str]())
    print(f"{'room':<14}{'files':>7}{'lines':>8}{'code':>8}")
    for name, room in [*rooms.items(), ("all", total)]:
        print(f"{name:<14}{room['files']:>7}{room['lines']:>8}{room['code']:>8}")
    for protocol in PROTOCOLS:
        outside = naming(PACKAGE, protocol)
        print(f"\n{protocol} is named by {len(outside)} files outside its folder:")
        print("\n".join(f"  {name}" for name in outside))


if __name__ == "__main__":
    main()
