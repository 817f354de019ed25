"""Wrong options that a knowledge graph offers: what stands near the gold answer (KGGD)."""

import heapq
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.challenges import names_of, without_parentheses, words_of
from holdfast.errors import InputError, did_you_mean
from holdfast.files import is_valid_text, named_path
from holdfast.questions import Question, read_rows

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[str, str, str]
"""Head, relation and tail as the file writes them."""

_COLUMNS = ("head", "relation", "tail")
_TYPES = ("head_type", "tail_type")
_SAME = frozenset({"same as", "synonym", "synonym of", "also known as", "alias of", "equals"})
_KIND_OF = frozenset(
    {"is a", "isa", "is an", "instance of", "kind of", "type of", "subtype of", "subclass of"}
)
_LONGEST = 30  # words of a node name that is looked for inside an option
_READ = 500  # words of an option in which a name is looked for


@dataclass(frozen=True)
class Candidate:
    """A node that could stand as a wrong option.

    Attributes:
        text: the node's name as the file writes it.
        path: the edges that join the gold answer's node to it, from the gold outwards.
        shared: number of neighbours it shares with the gold answer's node.
    """

    text: str
    path: tuple[Edge, ...]
    shared: int

    @property
    def why(self) -> str:
        """The path in words, one edge after another."""
        return "; ".join(" ".join(edge) for edge in self.path)


def load_graph(path: str) -> "nx.MultiDiGraph[str]":
    """A knowledge graph from a table with the columns head, relation and tail.

    Names that differ in case or white space only are one node; of two spellings the first stays.
    The columns head_type and tail_type say what kind of thing a node is (drug, disease, protein);
    they may be missing or empty. Other columns are left alone, an edge given twice counts once.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    source = str(path)
    for number, row in read_rows(named_path(path)):
        if isinstance(row, str):
            raise InputError(row, source, number, remedy="Fix the row")
        head, relation, tail = (_cell(row, column, source, number) for column in _COLUMNS)
        for name, column in zip((head, tail), _TYPES, strict=True):
            if (key := _folded(name)) not in graph:
                graph.add_node(key, name=name, types=set())
            if kind := _folded(str(row.get(column) or "")):
                graph.nodes[key]["types"].add(kind)
        if _folded(head) != _folded(tail):  # a loop leads nowhere
            graph.add_edge(_folded(head), _folded(tail), _folded(relation), relation=relation)
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
    """Every edge and type, in an order of their own."""
    types = ((node, sorted(types)) for node, types in graph.nodes(data="types") if types)
    return [*sorted(graph.edges(data="relation")), *sorted(types)]


def candidates(
    graph: "nx.MultiDiGraph[str]", question: Question, limit: int = 12
) -> list[Candidate]:
    """Nodes near the gold answer that could stand as wrong options, the most plausible first.

    The gold answer's node is the one named like the option, else the longest name that the option
    contains; a name that stands in every option is what is asked about, not what is asked for, and
    does not count. First come its siblings, which have the same relation to the same node; then
    other nodes that share a neighbour with it; then nodes joined to it directly; within each, those
    with more shared neighbours, then those that share a rarer one, then by name. Outside the
    siblings a candidate must be of the gold's kind: it stands on the same side of a relation that
    the gold has too. Where the graph has types, none is of another type than the gold: a mechanism
    is not answered by a drug. Left out are the options, and whatever the gold is a kind of, is the
    same as, or has as a kind. That a candidate is wrong for this question nobody has checked.

    Returns:
        The candidates; none where no node is named in the gold option.

    Source: after KGGD (Yang et al., 2025b), whose distractors come from walks in a graph.
    """
    others = [words_of(question.options[letter]) for letter in question.distractors]
    gold = _node_of(graph, question.options[question.gold], others)
    if gold is None:
        return []
    offered = {_node_of(graph, text) for text in question.options.values()}
    taken = {name for text in question.options.values() for name in names_of(text)}

    shared: dict[str, set[str]] = {}
    for neighbour in set(_neighbours(graph, gold)):
        for node in set(_neighbours(graph, neighbour)):
            shared.setdefault(node, set()).add(neighbour)
    near = {*shared, *_neighbours(graph, gold)} - offered - _same_broader_narrower(graph, gold)
    kind = {link for other in _neighbours(graph, gold) for link in _links(graph, gold, other)}
    # the rank is told from counts first: paths are built for the few that are kept
    ranked = []
    for node in near:
        through = shared.get(node, set())
        siblings = {x for x in through if _links(graph, gold, x) & _links(graph, node, x)}
        if graph.nodes[node]["words"] in taken or _is_of_another_type(graph, gold, node):
            continue
        if not (siblings or _is_of(kind, graph, node)):
            continue
        tier = 0 if siblings else 1 if through else 2
        via = min(siblings or through, key=lambda x: (_degree(graph, x), x), default=None)
        rarity = _degree(graph, via) if via else 0
        ranked.append((tier, -len(through), rarity, node, via))
    best = heapq.nsmallest(limit, ranked, key=lambda rank: rank[:4])
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
    if not isinstance(value, str) or not _folded(value):
        raise InputError("is not text", source, number, column, "Give a name")
    if not is_valid_text(value):
        what = "has a lone surrogate, which is not valid text"
        raise InputError(what, source, number, column, "Fix it")
    return " ".join(value.split())


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _node_of(graph: "nx.MultiDiGraph[str]", option: str, others: Sequence[str] = ()) -> str | None:
    """The node named in an option, but for names that the words of all the others hold too."""
    nodes: dict[str, str] = graph.graph["names"]
    for name in names_of(option):
        if name in nodes:
            return nodes[name]
    words = words_of(without_parentheses(option)).split()[:_READ]
    longest = min(graph.graph["longest"], len(words))
    spans = (
        " ".join(words[start : start + n])
        for n in range(longest, 0, -1)
        for start in range(len(words) - n + 1)
    )
    # a name such as "A" or "50" inside an option says nothing
    found = [
        span
        for span in spans
        if len(span) > 2
        and not span.isdigit()
        and span in nodes
        and not (others and all(f" {span} " in f" {other} " for other in others))
    ]
    return nodes[max(found, key=len)] if found else None


def _neighbours(graph: "nx.MultiDiGraph[str]", node: str) -> Iterator[str]:
    yield from graph.succ[node]
    yield from graph.pred[node]


def _degree(graph: "nx.MultiDiGraph[str]", node: str) -> int:
    return len(graph.succ[node]) + len(graph.pred[node])  # graph.degree counts edge by edge


def _links(graph: "nx.MultiDiGraph[str]", node: str, other: str) -> set[tuple[str, str]]:
    """How the node stands to the other: its side and the relation."""
    forward = {("head", relation) for relation in graph.succ[node].get(other, ())}
    return forward | {("tail", relation) for relation in graph.pred[node].get(other, ())}


def _is_of(kind: set[tuple[str, str]], graph: "nx.MultiDiGraph[str]", node: str) -> bool:
    return any(kind & _links(graph, node, other) for other in _neighbours(graph, node))


def _is_of_another_type(graph: "nx.MultiDiGraph[str]", node: str, other: str) -> bool:
    """Whether both have types and share none."""
    ours, theirs = graph.nodes[node]["types"], graph.nodes[other]["types"]
    return bool(ours and theirs) and not ours & theirs


def _same_broader_narrower(graph: "nx.MultiDiGraph[str]", gold: str) -> set[str]:
    """What would be right, or nearly so, beside the gold, within the two steps that are walked."""
    found: set[str] = set()
    for side in ("head", "tail"):
        front = {gold}
        for _ in range(2):
            front = {
                other
                for node in front
                for other in _neighbours(graph, node)
                if any(
                    words_of(relation) in _SAME or (s == side and words_of(relation) in _KIND_OF)
                    for s, relation in _links(graph, node, other)
                )
            }
            found |= front
    return found


def _path(graph: "nx.MultiDiGraph[str]", gold: str, node: str, via: str | None) -> tuple[Edge, ...]:
    if via is None:
        return (_edge(graph, gold, node, _links(graph, gold, node)),)
    ours, theirs = _links(graph, gold, via), _links(graph, node, via)
    both = ours & theirs
    return (_edge(graph, gold, via, both or ours), _edge(graph, node, via, both or theirs))


def _edge(
    graph: "nx.MultiDiGraph[str]", node: str, other: str, links: set[tuple[str, str]]
) -> Edge:
    side, relation = min(links)
    head, tail = (node, other) if side == "head" else (other, node)
    written: str = graph.edges[head, tail, relation]["relation"]
    return graph.nodes[head]["name"], written, graph.nodes[tail]["name"]
