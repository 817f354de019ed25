"""Print how large the source, the tests and the documentation are: ``python tools/sizes.py``."""

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines(files: Iterable[Path]) -> int:
    """Number of lines of several files."""
    return sum(file.read_text("utf-8").count("\n") for file in files)


def written_words(page: Path) -> int:
    """Words of a page, without its listings."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
    return len(re.findall(r"[^\W\d_][\w'’-]*", text))


def main() -> None:
    """Print lines by package, then lines of the tests, and pages and words of the documentation."""
    source = ROOT / "src" / "holdfast"
    for package in sorted(path for path in source.iterdir() if (path / "__init__.py").exists()):
        print(f"{lines(package.rglob('*.py')):>7,} {package.name}")
    files, tests = [*source.rglob("*.py")], [*(ROOT / "tests").rglob("*.py")]
    pages = [*(ROOT / "docs").rglob("*.md")]
    print(f"source: {lines(files):,} lines in {len(files)} files")
    print(f"tests: {lines(tests):,} lines in {len(tests)} files")
    print(f"documentation: {sum(map(written_words, pages)):,} words on {len(pages)} pages")


if __name__ == "__main__":
    main()
