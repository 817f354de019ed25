import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.challenges.texts import words_of
from holdfast.errors import InputError
from holdfast.protocols.single_turn.distractors import Candidate, candidates, load_graph
from holdfast.questions.bank import bank_items
from holdfast.questions.loading import load_questions
from holdfast.questions.question import Question

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph.csv"

DRUGS = """head,relation,tail
Esmolol,is a,Beta blocker
Metoprolol,is a,Beta blocker
Atenolol,is a,Beta blocker
Beta blocker,is a,Heart drug
Landiolol,is a,Esmolol
Brevibloc,same as,Esmolol
Esmolol,treats,Tachycardia
Atenolol,treats,Tachycardia
Verapamil,treats,Tachycardia
Fever,causes,Tachycardia
Adenosine,can mimic,Tachycardia
Adenosine,treats,Reentry
Esmolol,interacts with,Digoxin
Digoxin,treats,Heart failure
Esmolol,causes,Bradycardia
"""


def file(folder: Path, text: str | bytes, name: str = "graph.csv") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def build_question(gold: str, *wrong: str) -> Question:
    options = dict(zip("ABCDE", (gold, *(wrong or ("Heparin",))), strict=False))
    return Question(id="1", stem="Which?", options=options, gold="A")


def texts(offers: list[Candidate]) -> list[str]:
    return [candidate.text for candidate in offers]


# --- the file ---


@pytest.mark.parametrize(
    "text",
    [
        "head,relation,tail\nAspirin,treats,Pain\n",
        "source,tail,note,head,relation\nx,Pain,,Aspirin,treats\n",
        b"\xef\xbb\xbfhead,relation,tail\r\n Aspirin , treats ,Pain\r\n",
        "head,relation,tail\nAspirin,treats,Pain\nASPIRIN,Treats,pain\n",
        'head,relation,tail\n"Aspirin","treats","Pain"\nPain,causes,pain\n',
    ],
    ids=["plain", "order-and-extras", "bom-and-blanks", "twice", "loop"],
)
def test_columns_in_any_order_and_names_in_any_case_make_one_edge(
    tmp_path: Path, text: str | bytes
) -> None:
    graph = load_graph(file(tmp_path, text))
    assert list(graph.edges(keys=True)) == [("aspirin", "pain", "treats")]
    assert [name for _, name in graph.nodes(data="name")] == [
        graph.nodes[node]["name"] for node in graph
    ]
    assert {graph.nodes[node]["name"] for node in graph} == {"Aspirin", "Pain"}


def test_two_relations_of_one_pair_are_two_edges(tmp_path: Path) -> None:
    rows = "head,relation,tail\nAspirin,treats,Pain\nAspirin,eases,Pain\n"
    assert load_graph(file(tmp_path, rows)).number_of_edges() == 2


@pytest.mark.parametrize(
    ("name", "content", "row", "field", "reason"),
    [
        ("graph.csv", "head,relation,tail\n", None, None, "has no rows"),
        ("graph.csv", "", None, None, "is empty"),
        ("graph.csv", "head,relatoin,tail\na,b,c\n", 1, "relation", "is missing"),
        ("graph.csv", "a,b,c\nd,e,f\n", 1, "head", "is missing"),
        ("graph.csv", "head,relation,tail\na,b,c\nd,,f\n", 2, "relation", "is not text"),
        ("graph.csv", "head,relation,tail\na,b, \n", 1, "tail", "is not text"),
        ("graph.csv", "head,relation,tail\na,b,c\nd,e\n", 2, None, "has 2 cells"),
        ("graph.csv", 'head,relation,tail\na,b,"c\n', 1, None, "broken CSV"),
        ("graph.csv", b"head,relation,tail\na,b,\xff\n", None, None, "is not UTF-8"),
        ("graph.csv", "head,relation,tail\na,b,c\0\n", None, None, "NUL"),
        ("graph.csv", None, None, None, "no such file"),
        ("graph.jsonl", '{"head": "a", "relation": "b", "tail": 5}\n', 1, "tail", "is not text"),
        ("graph.jsonl", '{"head": "a", "relation": "b", "tail": "\\ud800"}\n', 1, "tail",
         "lone surrogate"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, name: str, content: str | bytes | None, row: int | None, field: str | None,
    reason: str,
) -> None:  # fmt: skip
    source = str(tmp_path / name) if content is None else file(tmp_path, content, name)
    with pytest.raises(InputError) as caught:
        load_graph(source)
    error = caught.value
    assert (error.file, error.row, error.field) == (source, row, field)
    assert reason in error.fault


# --- the walk ---


def test_siblings_come_before_neighbours_of_neighbours_and_direct_ones(tmp_path: Path) -> None:
    offers = candidates(load_graph(file(tmp_path, DRUGS)), build_question("Esmolol"))
    treats = ("Esmolol", "treats", "Tachycardia")
    blocker = ("Esmolol", "is a", "Beta blocker")
    assert offers == [
        # two shared neighbours, then one; the class has 4 edges and tachycardia 5
        Candidate("Atenolol", (blocker, ("Atenolol", "is a", "Beta blocker")), 2),
        Candidate("Metoprolol", (blocker, ("Metoprolol", "is a", "Beta blocker")), 1),
        Candidate("Verapamil", (treats, ("Verapamil", "treats", "Tachycardia")), 1),
        # of the kind since it treats something, but mimics what the gold treats
        Candidate("Adenosine", (treats, ("Adenosine", "can mimic", "Tachycardia")), 1),
        # causes something, as esmolol does
        Candidate("Fever", (treats, ("Fever", "causes", "Tachycardia")), 1),
        Candidate("Digoxin", (("Esmolol", "interacts with", "Digoxin"),), 0),
    ]
    assert offers[3].why == "Esmolol treats Tachycardia; Adenosine can mimic Tachycardia"
    every_name = set(texts(candidates(load_graph(file(tmp_path, DRUGS)),
                                      build_question("Esmolol"), limit=100)))  # fmt: skip
    # neither what the gold is, nor its kinds and synonyms, nor what it treats or causes
    assert every_name.isdisjoint({
        "Esmolol", "Beta blocker", "Heart drug", "Landiolol", "Brevibloc", "Tachycardia",
        "Bradycardia",
    })  # fmt: skip
    graph = load_graph(file(tmp_path, DRUGS.replace("Landiolol,is a", "Landiolol,treats")))
    assert "Landiolol" in texts(candidates(graph, build_question("Esmolol"), limit=100))


def test_rarer_neighbours_break_ties(tmp_path: Path) -> None:
    rows = """head,relation,tail
Gold,causes,Fever
Amber,causes,Fever
Brass,causes,Fever
Gold,causes,Ascites
Zinc,causes,Ascites
"""
    names = texts(candidates(load_graph(file(tmp_path, rows)), build_question("Gold")))
    assert names == ["Zinc", "Amber", "Brass"]


TYPED_ROWS = """head,relation,tail,head_type,tail_type
Reduced renal secretion,can raise,Digoxin concentration,mechanism,finding
Slower gut transit,can raise,Digoxin concentration,Mechanism ,finding
Verapamil,can raise,Digoxin concentration,drug,finding
Herbal tea,can raise,Digoxin concentration,,finding
"""


def test_typed_graphs_offer_no_drug_for_a_mechanism(tmp_path: Path) -> None:
    typed_graph = load_graph(file(tmp_path, TYPED_ROWS))
    gold = build_question("Reduced renal secretion")
    # a node without a type may be of any
    assert texts(candidates(typed_graph, gold)) == ["Herbal tea", "Slower gut transit"]
    plain = "\n".join(",".join(line.split(",")[:3]) for line in TYPED_ROWS.splitlines())
    plain_graph = load_graph(file(tmp_path, plain))
    assert texts(candidates(plain_graph, gold)) == ["Herbal tea", "Slower gut transit", "Verapamil"]


def test_a_node_of_several_types_matches_each(tmp_path: Path) -> None:
    more = f"{TYPED_ROWS}Verapamil,is named in,Mechanisms of the month,mechanism,\n"
    names = texts(
        candidates(load_graph(file(tmp_path, more)), build_question("Reduced renal secretion"))
    )
    assert names == ["Herbal tea", "Slower gut transit", "Verapamil"]


def test_a_name_in_every_option_is_the_subject_of_the_question(tmp_path: Path) -> None:
    graph = load_graph(file(tmp_path, DRUGS))
    asked_about = ("Slower hydrolysis of esmolol", "Faster hydrolysis of esmolol")
    assert candidates(graph, build_question(*asked_about)) == []
    # a name in the right option alone is the answer
    assert candidates(
        graph, build_question("Intravenous esmolol", "Intravenous heparin", asked_about[0])
    )
    rarer = ("Atenolol after esmolol", "Heparin after esmolol")
    assert texts(candidates(graph, build_question(*rarer)))[0] == "Metoprolol"


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ("Atenolol", "Atenolol"),
        ("ATENOLOL.", "Atenolol"),
        ("Oral atenolol 50 mg", "Atenolol"),
        ("Beta-1 blockade (atenolol)", "Atenolol"),
        ("Verapamil (calcium channel blocker)", "Verapamil"),
    ],
)
def test_an_option_of_the_question_is_no_candidate(tmp_path: Path, wrong: str, option: str) -> None:
    graph = load_graph(file(tmp_path, DRUGS))
    names = texts(candidates(graph, build_question("Esmolol")))
    assert option in names
    fewer_names = texts(candidates(graph, build_question("Esmolol", "Heparin", wrong)))
    assert fewer_names == [text for text in names if text != option]


@pytest.mark.parametrize(
    "gold",
    [
        "Ménière’s disease",
        "MENIERE DISEASE.",
        "Ménière disease (endolymphatic hydrops)",
        "Endolymphatic hydrops (Meniere's disease)",
        "Treatment of left-sided Meniere  disease, at once",
        "Disease: Meniere disease",
    ],
)
def test_the_gold_is_found_by_name_or_within_the_option(tmp_path: Path, gold: str) -> None:
    rows = """head,relation,tail
Meniere's disease,causes,Vertigo
Labyrinthitis,causes,Vertigo
Disease,causes,Harm
Poison,causes,Harm
Left,causes,Harm
"""
    graph = load_graph(file(tmp_path, rows))
    assert texts(candidates(graph, build_question(gold))) == ["Labyrinthitis"]


@pytest.mark.parametrize(
    "gold",
    [
        "50 patients",
        "500 patients",
        "A policy for all",
        "Propranololized",
        "Beta blockers",
        "(?!)",
        "+",
    ],
)
def test_parts_of_words_and_single_letters_match_nothing(tmp_path: Path, gold: str) -> None:
    rows = """head,relation,tail
50,is,Number
500,is,Number
A,is,Number
Propranolol,is,Number
Beta blocker,is,Number
+,is,Number
Other,is,Number
"""
    assert candidates(load_graph(file(tmp_path, rows)), build_question(gold)) == []


def test_numbers_match_whole_options_only(tmp_path: Path) -> None:
    graph = load_graph(file(tmp_path, "head,relation,tail\n50,is,Number\n60,is,Number\n"))
    assert texts(candidates(graph, build_question("50%", "90%"))) == ["60"]


@settings(max_examples=40)
@given(st.permutations(DRUGS.splitlines()[1:]), st.integers(0, 8))
def test_the_order_of_rows_does_not_matter_and_the_limit_cuts_the_end(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    offers = candidates(load_graph(file(folder, DRUGS)), build_question("Esmolol"))
    shuffled_graph = load_graph(file(folder, "\n".join(["head,relation,tail", *rows])))
    assert candidates(shuffled_graph, build_question("Esmolol"), limit) == offers[:limit]


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    rows = 'head,relation,tail\n"{x} ""(a""",\\1,"[z]\n|"\nOther,\\1,"[z]\n|"\n'
    offers = candidates(load_graph(file(tmp_path, rows)), build_question('{X} "(A"'))
    assert offers == [
        Candidate("Other", (('{x} "(a"', "\\1", "[z] |"), ("Other", "\\1", "[z] |")), 1)
    ]


def test_a_hub_and_a_long_option_take_bounded_time(tmp_path: Path) -> None:
    rows = "head,relation,tail\n" + "".join(f"Drug {n},is a,Drug\n" for n in range(5_000))
    graph = load_graph(file(tmp_path, rows))
    start = time.monotonic()
    assert len(candidates(graph, build_question("Drug 7 " + "(x " * 100_000))) == 12
    assert time.monotonic() - start < 5


# --- the example ---


def test_the_example_offers_candidates_of_the_type_of_the_gold() -> None:
    graph = load_graph(str(EXAMPLE))
    assert 60 <= graph.number_of_edges() <= 120
    types = {graph.nodes[node]["name"]: graph.nodes[node]["types"] for node in graph}
    assert all(types.values())
    replacements = {item["id"]: item["replacement_distractors"] for item in bank_items()}
    n_questions = n_agreements = 0
    for question in load_questions("bank").questions:
        right = words_of(question.options[question.gold])
        offers = candidates(graph, question)
        names = {text.casefold() for text in texts(offers)}
        assert names.isdisjoint(option.casefold() for option in question.options.values())
        n_questions += len(offers) >= 2
        n_agreements += bool(names & {text.casefold() for text in replacements[question.id]})
        for candidate in candidates(graph, question, limit=100):
            assert candidate.text in (candidate.path[-1][0], candidate.path[-1][2])
            head, _, tail = candidate.path[0]
            gold = head if words_of(head) in right else tail
            assert types[candidate.text] & types[gold], question.id
    assert n_questions >= 20
    assert n_agreements >= 8
