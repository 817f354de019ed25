"""Check names: of variables, classes and files; `make check` runs it."""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

MOST = 0.01
"""Share of variables and parameters that may be a determiner or a participle."""

DETERMINERS = """
all another any both each either every few here least many most neither none one other others own
rest same several some such that there these this those what which
""".split()

PARTICIPLES = """
begun broken brought built bought chosen done drawn fed felt found given gone got grown
heard held hidden kept known laid led lent let lost made meant met paid put read said seen
sent shown shut sought spent spoken stood struck stuck taken told thought thrown
understood won worn written
""".split()

NOUNS = set("bed embed feed need red seed speed weed".split())
"""What ends as a participle, or is spelled as one, and is a noun."""

WORDLESS = {"again", "base", "beside", "common", "helpers", "misc", "shared", "utils"}
"""Words that say nothing of what a file, a class or a function holds."""

PROTOCOL = {
    "charts.py", "measures.py", "protocol.py", "published.py", "report.py", "settings.py",
    "simulated.py",
}  # fmt: skip
"""Files that every folder of a protocol may have."""

ANYWHERE = {"__init__.py", "conftest.py"}
"""Files that Python and pytest look for by name in any folder."""


def is_vague(name: str) -> bool:
    """Whether a name is a determiner or a participle alone."""
    word = "" if name.startswith("__") else name.strip("_").lower()
    participle = word in PARTICIPLES or re.fullmatch(r"[a-z]{2,}ed", word)
    return word in DETERMINERS or bool(participle and word not in NOUNS)


def variables(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that are assigned, and parameters, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def problems(package: Path, *, listed: bool = False) -> Iterator[str]:
    """What is wrong with the names of a package, a line each."""
    total, vague = 0, Counter[str]()
    classes, files = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for file in sorted(package.rglob("*.py")):
        place, tree = file.relative_to(package.parent), ast.parse(file.read_text("utf-8"))
        for name, line in variables(tree):
            total += 1
            if is_vague(name):
                vague[name] += 1
                if listed:
                    print(f"{place}:{line}: {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{place}:{node.lineno}")
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and _wordless(node.name):
                yield f"{place}:{node.lineno}: {node.name} does not say what it holds"
        if _wordless(file.stem):
            yield f"{place}: the name does not say what the file holds"
        if file.name not in ANYWHERE and not (file.name in PROTOCOL and "protocols" in place.parts):
            files[file.name].append(str(place))
    share = sum(vague.values()) / max(total, 1)
    print(f"{package}: {share:.2%} of {total:,} variables and parameters are vague")
    if share > MOST:
        yield f"{package}: more than {MOST:.0%} are, first {dict(vague.most_common(10))}"
    for kind, homes in (("class", classes), ("file", files)):
        for name, places in homes.items():
            if len(places) > 1:
                yield f"{kind} {name} has {len(places)} homes: {', '.join(places)}"


def _wordless(name: str) -> bool:
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
    return not WORDLESS.isdisjoint(words)


if __name__ == "__main__":
    listed = "--list" in sys.argv
    folders = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    found = [problem for folder in folders for problem in problems(folder, listed=listed)]
    print("\n".join(found))
    sys.exit(bool(found))
