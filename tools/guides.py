"""Write the output of commands in the documentation anew: ``python tools/guides.py [PAGE ...]``.

A listing after ``<!-- output -->`` is run, its commands in order, and shows what they print;
``<!-- output: 1-4 9 -->`` shows these lines alone, with an ellipsis for the others (``12-`` is from
line 12 on, ``-3`` the last three, ``0`` none). The commands of
a page share one folder, in which ``examples`` and every listing with a title stand as files.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "<!-- output" in page.read_text("utf-8")
)
"""Pages with commands whose output is shown."""

_LISTING = re.compile(
    r"(?P<head><!-- output(?:: (?P<lines>[\d -]+))? -->\n+```console\n)(?P<body>.*?)(?=^```)"
    r"|^```\w+ title=\"(?P<title>[^\"]+)\"\n(?P<content>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)


def written_anew(page: Path) -> str:
    """The text of a page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        session = _Session(Path(folder))
        return _LISTING.sub(session.replacement, page.read_text("utf-8"))


class _Session:
    """The folder of a page, and the exit status of the command before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.status = folder, 0
        (folder / "examples").symlink_to(ROOT / "examples")

    def replacement(self, listing: re.Match[str]) -> str:
        """A listing with its output; a titled one is written to its file and stays as it is."""
        if listing["title"]:
            (self.folder / listing["title"]).write_text(listing["content"], "utf-8")
            return listing[0]
        body = "".join(
            f"$ {command}\n{_selected(self.run(command), listing['lines'])}"
            for command in _COMMAND.findall(listing["body"])
        )
        return listing["head"] + body

    def run(self, command: str) -> str:
        """What a command prints, warnings and errors among it."""
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.status}); {command}"],
            cwd=self.folder, env=_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False,
        )  # fmt: skip
        self.status = done.returncode
        return done.stdout


def _environment() -> dict[str, str]:
    # a store of generations that log directories share would change the numbers of calls
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and name != "HOLDFAST_CACHE_DIR"
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}


def _selected(output: str, numbers: str | None) -> str:
    """The lines of an output with these numbers, from 1, and an ellipsis for each gap."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    if numbers is None:
        return "".join(f"{line}\n" for line in lines)
    shown, last = "", 0
    for number in _numbers(numbers, len(lines)):
        shown += ("…\n" if number > last + 1 else "") + f"{lines[number - 1]}\n"
        last = number
    return shown + ("…\n" if 0 < last < len(lines) else "")


def _numbers(spans: str, count: int) -> list[int]:
    """The numbers up to ``count`` that spans such as ``1-4 9 12- -3`` choose."""
    chosen: set[int] = set()
    for span in spans.split():
        low, dash, high = span.partition("-")
        start = int(low) if low else count - int(high) + 1
        end = count if not low or (dash and not high) else int(high or low)
        chosen.update(range(max(start, 1), min(end, count) + 1))
    return sorted(chosen)


def main() -> None:
    """Rewrite the pages that are named, or all that show output."""
    for page in map(Path, sys.argv[1:]) if sys.argv[1:] else PAGES:
        page.write_text(written_anew(page), "utf-8")


if __name__ == "__main__":
    main()
