"""Generated wrong options for a question, and the graph of concepts that they come from."""

import heapq
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges.prepared import GENERATE, QuestionInputs, prepared
from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import (
    Fault,
    fill,
    json_object,
    names_of,
    option_lines,
    same_name,
    without_parentheses,
    words_of,
)
from holdfast.dialogue.conversation import Run
from holdfast.errors import InputError, did_you_mean
from holdfast.files import is_valid_text, named_path, packaged
from holdfast.protocols.generating import obtain
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import QuestionSettings, setting
from holdfast.questions.bank import BANK_NAME, bank_items
from holdfast.questions.loading import Problem, QuestionSet
from holdfast.questions.question import Question, digest_of
from holdfast.questions.rows import read_rows
from holdfast.simulation import is_simulated_row

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[str, str, str]
"""Head, relation and tail as in the file."""

_COLUMNS = ("head", "relation", "tail")
_TYPES = ("head_type", "tail_type")
_SYNONYM_RELATIONS = frozenset(
    {"same as", "synonym", "synonym of", "also known as", "alias of", "equals"}
)
_KIND_OF = frozenset(
    {"is a", "isa", "is an", "instance of", "kind of", "type of", "subtype of", "subclass of"}
)
_LONGEST = 30  # maximum number of words of a node name that is matched inside an option
_LONGEST_OPTION = 500  # maximum number of words of an option in which names are matched


@dataclass(frozen=True)
class Candidate:
    """Node that could serve as a wrong option.

    Attributes:
        text: name of the node as in the file.
        path: edges from the gold answer's node to this node.
        shared_neighbours: number of neighbours that both nodes share.
    """

    text: str
    path: tuple[Edge, ...]
    shared_neighbours: int

    @property
    def why(self) -> str:
        """The path in words, one edge after another."""
        return "; ".join(" ".join(edge) for edge in self.path)


def load_graph(path: str) -> "nx.MultiDiGraph[str]":
    """Load a knowledge graph from a table with the columns head, relation and tail.

    Names that differ only in case or white space are one node, which keeps the first spelling. The
    optional columns head_type and tail_type contain the type of a node (drug, disease, protein),
    and may be empty. Other columns are ignored. Repeated edges count once.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    source = str(path)
    for number, row in read_rows(named_path(path)):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Correct the row")
        head, relation, tail = (_cell(row, column, source, number) for column in _COLUMNS)
        for name, column in zip((head, tail), _TYPES, strict=True):
            if (key := _fold(name)) not in graph:
                graph.add_node(key, name=name, types=set())
            if kind := _fold(str(row.get(column) or "")):
                graph.nodes[key]["types"].add(kind)
        if _fold(head) != _fold(tail):  # a loop is not useful
            graph.add_edge(_fold(head), _fold(tail), _fold(relation), relation=relation)
    if not graph:
        raise InputError("has no rows", source, remedy=f"Give rows of {', '.join(_COLUMNS)}")
    names: dict[str, str] = {}
    for node in sorted(graph):
        words = graph.nodes[node]["words"] = words_of(node)
        names.setdefault(words, node)
    names.pop("", None)
    graph.graph["names"] = names
    graph.graph["longest"] = min(_LONGEST, max((name.count(" ") + 1 for name in names), default=0))
    return graph


def content_of(graph: "nx.MultiDiGraph[str]") -> list[object]:
    """Return every edge and type, sorted."""
    types = ((node, sorted(types)) for node, types in graph.nodes(data="types") if types)
    return [*sorted(graph.edges(data="relation")), *sorted(types)]


def candidates(
    graph: "nx.MultiDiGraph[str]", question: Question, limit: int = 12
) -> list[Candidate]:
    """Return nodes near the gold answer that could serve as wrong options, most plausible first.

    The gold answer's node is the node with the name of the option, or else with the longest name
    that the option contains. A name in every option does not count, because it is part of the
    question. First come its siblings, which have the same relation to the same node, then other
    nodes that share a neighbour with it, then its direct neighbours. Within each group, the order
    is by number of shared neighbours, then by rarity of a shared one, then by name. Except for
    siblings, a candidate must be of the gold's kind: it is on the same side of a relation that the
    gold also has. If the graph has types, a candidate must not have another type than the gold,
    because a drug is not an answer about a mechanism. Options are excluded, and so are nodes that
    the gold is a kind of, is the same as, or has as a kind. Nobody has checked that a candidate is
    wrong for this question.

    Returns:
        The candidates, empty if the gold option names no node.

    Source: after KGGD (Yang et al., 2025b), whose distractors come from walks in a graph.
    """
    option_words = [words_of(question.options[letter]) for letter in question.distractors]
    gold = _node_of(graph, question.options[question.gold], option_words)
    if gold is None:
        return []
    option_nodes = {_node_of(graph, text) for text in question.options.values()}
    option_names = {name for text in question.options.values() for name in names_of(text)}

    neighbours_shared: dict[str, set[str]] = {}
    for neighbour in set(_neighbours(graph, gold)):
        for node in set(_neighbours(graph, neighbour)):
            neighbours_shared.setdefault(node, set()).add(neighbour)
    near = (
        {*neighbours_shared, *_neighbours(graph, gold)}
        - option_nodes
        - _same_broader_narrower(graph, gold)
    )
    kind = {link for adjacent in _neighbours(graph, gold) for link in _links(graph, gold, adjacent)}
    # rank by counts first, and build paths only for the best
    candidates_found = []
    for node in near:
        through = neighbours_shared.get(node, set())
        siblings = {x for x in through if _links(graph, gold, x) & _links(graph, node, x)}
        if graph.nodes[node]["words"] in option_names or _is_of_another_type(graph, gold, node):
            continue
        if not (siblings or _is_of(kind, graph, node)):
            continue
        tier = 0 if siblings else 1 if through else 2
        via = min(siblings or through, key=lambda x: (_degree(graph, x), x), default=None)
        rarity = _degree(graph, via) if via else 0
        candidates_found.append((tier, -len(through), rarity, node, via))
    best = heapq.nsmallest(limit, candidates_found, key=lambda rank: rank[:4])
    return [
        Candidate(graph.nodes[node]["name"], _path(graph, gold, node, via), -shares)
        for _, shares, _, node, via in best
    ]


def _cell(row: Mapping[str, Any], column: str, source: str, number: int) -> str:
    if column not in row:
        near = did_you_mean(column, map(str, row))
        remedy = f"Name the columns head, relation, tail. {near}"
        raise InputError("is missing", source, number, column, remedy)
    value = row[column]
    if not isinstance(value, str) or not _fold(value):
        raise InputError("is not text", source, number, column, "Give a name")
    if not is_valid_text(value):
        problem = "has a lone surrogate, which is not valid text"
        raise InputError(problem, source, number, column, "Fix it")
    return " ".join(value.split())


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _node_of(
    graph: "nx.MultiDiGraph[str]", option: str, other_names: Sequence[str] = ()
) -> str | None:
    """Return the node named in an option, except for names that all other options contain too."""
    nodes: dict[str, str] = graph.graph["names"]
    for name in names_of(option):
        if name in nodes:
            return nodes[name]
    words = words_of(without_parentheses(option)).split()[:_LONGEST_OPTION]
    longest = min(graph.graph["longest"], len(words))
    spans = (
        " ".join(words[start : start + n])
        for n in range(longest, 0, -1)
        for start in range(len(words) - n + 1)
    )
    # a name such as "A" or "50" inside an option has no meaning
    named_spans = [
        span
        for span in spans
        if len(span) > 2
        and not span.isdigit()
        and span in nodes
        and not (other_names and all(f" {span} " in f" {node_name} " for node_name in other_names))
    ]
    return nodes[max(named_spans, key=len)] if named_spans else None


def _neighbours(graph: "nx.MultiDiGraph[str]", node: str) -> Iterator[str]:
    yield from graph.succ[node]
    yield from graph.pred[node]


def _degree(graph: "nx.MultiDiGraph[str]", node: str) -> int:
    return len(graph.succ[node]) + len(graph.pred[node])  # ``graph.degree`` counts edge by edge


def _links(graph: "nx.MultiDiGraph[str]", node: str, neighbour: str) -> set[tuple[str, str]]:
    """Return the node's relations to its neighbour: its side and the relation."""
    forward = {("head", relation) for relation in graph.succ[node].get(neighbour, ())}
    return forward | {("tail", relation) for relation in graph.pred[node].get(neighbour, ())}


def _is_of(kind: set[tuple[str, str]], graph: "nx.MultiDiGraph[str]", node: str) -> bool:
    return any(kind & _links(graph, node, neighbour) for neighbour in _neighbours(graph, node))


def _is_of_another_type(graph: "nx.MultiDiGraph[str]", node: str, neighbour: str) -> bool:
    """Whether both have types but share none."""
    ours, theirs = graph.nodes[node]["types"], graph.nodes[neighbour]["types"]
    return bool(ours and theirs) and not ours & theirs


def _same_broader_narrower(graph: "nx.MultiDiGraph[str]", gold: str) -> set[str]:
    """Return nodes within two steps that would also be right, or nearly right."""
    relatives: set[str] = set()
    for side in ("head", "tail"):
        front = {gold}
        for _ in range(2):
            front = {
                neighbour
                for node in front
                for neighbour in _neighbours(graph, node)
                if any(
                    words_of(relation) in _SYNONYM_RELATIONS
                    or (s == side and words_of(relation) in _KIND_OF)
                    for s, relation in _links(graph, node, neighbour)
                )
            }
            relatives |= front
    return relatives


def _path(graph: "nx.MultiDiGraph[str]", gold: str, node: str, via: str | None) -> tuple[Edge, ...]:
    if via is None:
        return (_edge(graph, gold, node, _links(graph, gold, node)),)
    ours, theirs = _links(graph, gold, via), _links(graph, node, via)
    common_nodes = ours & theirs
    return (
        _edge(graph, gold, via, common_nodes or ours),
        _edge(graph, node, via, common_nodes or theirs),
    )


def _edge(
    graph: "nx.MultiDiGraph[str]", node: str, neighbour: str, links: set[tuple[str, str]]
) -> Edge:
    side, relation = min(links)
    head, tail = (node, neighbour) if side == "head" else (neighbour, node)
    relation_text: str = graph.edges[head, tail, relation]["relation"]
    return graph.nodes[head]["name"], relation_text, graph.nodes[tail]["name"]


@dataclass(frozen=True)
class Distractors(QuestionInputs[Mapping[str, str]]):
    """More plausible wrong options: the new text of each replaced option, by question id.

    Attributes:
        faults: reason for missing options, by question id.
    """

    faults: Mapping[str, str] = field(default_factory=dict)

    setting = "distractors"
    noun = "distractors"
    missing = "wrong options"
    remedy = "Give the file that was built for this question set"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) of the texts, or of their origin if they have one."""
        texts = [(id, sorted(new.items())) for id, new in sorted(self.by_question.items())]
        return digest_of(self.origin or texts)

    def covers(self, questions: QuestionSet) -> bool:
        """Whether the source contains any of the questions, even with a fault."""
        return any(q.id in self.by_question or q.id in self.faults for q in questions.questions)

    def obstacle(self, question: Question) -> str | None:
        """Return why the question has no new options, None if it has."""
        if question.id in self.by_question:
            return None
        return self.faults.get(question.id, "no replacement for a wrong option")

    def replaced(self, question: Question) -> Question:
        """Return the question with its new wrong options; gold and letters do not change."""
        texts = self.by_question[question.id]
        options = {letter: texts.get(letter, text) for letter, text in question.options.items()}
        return Question.model_validate({**question.model_dump(), "options": options})


def load_distractors(source: str, questions: QuestionSet) -> Distractors:
    """Load new wrong options for a question set.

    Args:
        source: ``auto`` (the bank's options for the bank, else none), ``bank``, ``none``,
            ``generate`` (placeholders for plans), a file with the columns question and distractors
            (letter to text), or a file generated for this study (``generated:FILE``).
        questions: questions of the options.

    Raises:
        InputError: the file cannot be read, a row is invalid, or no row is for these questions.
    """

    def own() -> Distractors:
        distractors = _bank(questions)
        return distractors if distractors.by_question else Distractors("none")

    def placeholders() -> Distractors:
        question_list = questions.questions
        texts = {
            q.id: {letter: f"placeholder {letter}" for letter in q.distractors}
            for q in question_list
        }
        return Distractors(GENERATE, texts)

    sources = {
        "none": lambda: Distractors("none"),
        "auto": own,
        BANK_NAME: lambda: _bank(questions),
        GENERATE: placeholders,
    }
    return prepared(
        Distractors, source, questions, sources, lambda file: check_distractors(file, questions)
    )


def check_distractors(
    source: str, questions: QuestionSet | None = None
) -> tuple[Distractors, list[Problem]]:
    """Read the valid rows of a file of wrong options, and report every invalid row."""
    problems: list[Problem] = []
    texts: dict[str, dict[str, str]] = {}
    faults: dict[str, str] = {}
    first: dict[str, int] = {}
    unused_rows, is_simulated = 0, False
    for number, row in read_rows(named_path(source)):
        if isinstance(row, str):
            problems.append(Problem(number, None, row))
            continue
        id = str(row.get("question", row.get("id")) or "")
        replacements = row.get("distractors")
        if isinstance(replacements, str):
            replacements = json_object(replacements)
        if not id or id in texts or id in faults:
            message = f"'{id}' was given before, in row {first[id]}" if id else "is missing"
            problems.append(Problem(number, "question", message))
            continue
        first[id] = number
        if not replacements and row.get("missing"):
            faults[id] = f"no replacement for a wrong option ({row['missing']})"
            continue
        if not isinstance(replacements, dict) or not replacements:
            problems.append(Problem(number, "distractors", "is not an object of letters and texts"))
            continue
        question = questions.named(id) if questions else None
        unused_rows += questions is not None and question is None
        is_simulated |= question is not None and is_simulated_row({**row, **replacements})
        id = question.id if question else id
        first.setdefault(id, number)
        if question and row.get("content_hash") not in (None, "", question.content_hash):
            faults[id] = "the new options are for another question under this id"
            continue
        fault = replacement_fault(replacements, question) if question else None
        if fault:
            problems.append(Problem(number, "distractors", fault.detail))
            continue
        texts[id] = {str(letter): str(text) for letter, text in replacements.items()}
    distractors = Distractors(
        Path(source).name, texts, unused_rows, is_simulated=is_simulated, faults=faults
    )
    return distractors, problems


def distractor_version() -> int:
    """Return the version of the prompt for wrong options."""
    return int(_wording()["version"])


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "distractors.toml")


def distractor_prompt(
    question: Question, letters: Sequence[str], candidates: Sequence[str] = ()
) -> str:
    """Return the prompt for new texts of wrong options."""
    candidate_lines = "\n".join(f"- {candidate}" for candidate in candidates)
    values = {
        "gold": question.gold,
        "letters": ", ".join(letters),
        "question": question.stem,
        "options_text": option_lines(question.options),
        "candidates": fill(_wording()["candidates"], {"listed": candidate_lines})
        if candidates
        else "",
        "example": json.dumps({letter: "new text" for letter in letters}),
    }
    return fill(_wording()["replace"].removeprefix("\n"), values)


def read_distractors(
    reply: str, question: Question, letters: Sequence[str]
) -> dict[str, str] | Fault:
    """Return the new texts in a generator's reply, or their fault."""
    if not reply.strip():
        return Fault("empty", "is empty")
    reply_object = json_object(reply, *letters) or json_object(reply)
    if not reply_object:
        return Fault("no JSON", "is no JSON object of letters and texts")
    if set(reply_object) != set(letters):
        return Fault("other letters", f"does not give a text for each of {', '.join(letters)}")
    return replacement_fault(reply_object, question) or {
        letter: reply_object[letter].strip() for letter in letters
    }


def replacement_fault(texts: Mapping[str, Any], question: Question) -> Fault | None:
    """Return the fault of texts that cannot replace wrong options."""
    for letter, text in texts.items():
        if letter not in question.distractors:
            return Fault("no wrong option", f"replaces '{letter}', which is no wrong option")
        if not isinstance(text, str) or not text.strip():
            return Fault("empty", f"has no text for {letter}")
        if not is_valid_text(text):
            return Fault("no valid text", f"holds a character for {letter} that is no valid text")
        other_texts = [
            t for letter_name, t in texts.items() if letter_name != letter and isinstance(t, str)
        ]
        for letter_name in (*question.options.values(), *other_texts):
            if same_name(letter_name, text):
                return Fault("an option again", f"repeats the option '{text.strip()[:80]}'")
    return None


def _bank(questions: QuestionSet) -> Distractors:
    items = {item["id"]: item for item in bank_items()}
    ours = [
        q
        for q in questions.questions
        if q.id in items and (q.options, q.gold) == (items[q.id]["options"], items[q.id]["gold"])
    ]
    texts = {
        q.id: dict(zip(q.distractors, items[q.id]["replacement_distractors"], strict=True))
        for q in ours
    }
    return Distractors(BANK_NAME, texts)


@dataclass(frozen=True)
class DistractorSettings(QuestionSettings):
    """Wrong options for the single-turn protocol, written by the model as generator."""

    replace: int = setting(
        0, "number of wrong options to replace per question; 0 for all", at_least=0
    )
    graph: str | None = setting(
        None,
        "a CSV file of a knowledge graph (head, relation, tail) to take candidates from",
        input=True,
    )
    seed: int = setting(42, "seed of the options to replace and of the model's sampling")

    @cached_property
    def loaded_graph(self) -> "nx.MultiDiGraph[str] | None":
        """The knowledge graph, None without a file."""
        return load_graph(self.graph) if self.graph else None

    @cached_property
    def _walks(self) -> dict[str, list[str]]:
        """Candidates by the content of a question, because walks in a large graph are slow."""
        return {}

    def letters(self, question: Question) -> tuple[str, ...]:
        """Return the wrong options to replace, a random selection if not all."""
        left = list(question.distractors)
        letters: list[str] = []
        while left and (not self.replace or len(letters) < self.replace):
            key = (self.seed, question.content_hash, "replaced", len(letters))
            letters.append(left.pop(left.index(draw(left, *key))))
        return tuple(sorted(letters))

    def candidates(self, question: Question) -> list[str]:
        """Return the graph's candidates, each with its relation to the gold."""
        if self.loaded_graph is None:
            return []
        if question.content_hash not in self._walks:
            self._walks[question.content_hash] = [
                f"{near.text} ({near.why})" for near in candidates(self.loaded_graph, question)
            ]
        return self._walks[question.content_hash]


async def generate_distractors(run: Run, settings: DistractorSettings) -> None:
    """Ask for new texts of a question's wrong options."""
    question, letters = run.question, settings.letters(run.question)
    graph_candidates = settings.candidates(question)
    texts = await obtain(
        run.chat(purpose="distractors", tokens=100),
        distractor_prompt(question, letters, graph_candidates),
        lambda reply: read_distractors(reply, question, letters),
        dict.fromkeys(letters, ""),
        letters=letters,
    )
    result = {"missing": texts.kind} if isinstance(texts, Fault) else {"distractors": texts}
    run.rows.append(
        {
            "question": question.id,
            "content_hash": question.content_hash,
            **result,
            "candidates": graph_candidates,
        }
    )


PROTOCOL = Protocol(
    "distractors",
    generate_distractors,
    DistractorSettings,
    distractor_version(),
    config=lambda settings: GenerateConfig(temperature=0.0, seed=settings.seed),
    inputs=lambda settings: {
        "graph": digest_of(content_of(settings.loaded_graph) if settings.loaded_graph else [])
    },
    generates=True,
)
