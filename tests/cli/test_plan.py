"""``holdfast run --dry-run``: what it says of a study is what a server then counts."""

import json
from pathlib import Path

import pytest
from benchmarks.server import Server
from tests.cli.commands import Facts, facts_of, files_below, json_lines, plan_of, study_of
from tests.studies import holdfast, question_rows, write_jsonl

MODEL = ("--model", "openai/bench", "--allow-simulated-inputs")
WRITER = "--model-role generator=simulated/generator"


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> list[Facts]:
    """Contexts of first questions of the bank, also at the lengths of the ablation."""
    folder = tmp_path_factory.mktemp("contexts")
    # one of the first eight has a drawn length that is one of the ablation's
    facts_of("generate", "contexts", "--model", "simulated/generator", "--limit", "8", "--lengths",
             "1,10,20", "-o", folder / "c.jsonl", "--log-dir", folder / "made")  # fmt: skip
    return json_lines(folder / "c.jsonl")


@pytest.fixture
def inputs(contexts: list[Facts]) -> list[Facts]:
    write_jsonl(Path("q.jsonl"), question_rows(3))
    write_jsonl(Path("c.jsonl"), contexts)
    return contexts


PLANS: list[tuple[str, list[int]]] = [
    ("single-turn --limit 4 -T biases=recency,cultural", [5 * 4]),
    ("followup --limit 8", [17 * 8]),
    ("followup --questions q.jsonl", [13 * 3]),
    ("followup --limit 3 -T chains=paper,double-check>rag-style", [34 * 3]),
    ("followup --limit 8 -T contexts=c.jsonl -T chains=paper", [33 * 8]),
    ("followup --limit 6 -T contexts=c.jsonl -T chains=paper -T lengths=1,10,20", [45 * 6]),
    ("followup --limit 8 -T contexts=c.jsonl -T chains=paper -T lengths=1,10,20", [45 * 8]),
    # seven biases without and with each of three mitigations, and the wrong options; the plain
    # question is the follow-ups', and so is its resample
    ("followup single-turn --limit 4 -T chains=paper -T mitigations=all", [33 * 4, 29 * 4]),
    # another prompt of one protocol alone: no plain question is shared
    ("followup single-turn --limit 4 -T system_prompt=none", [17 * 4, 8 * 4]),
    # no resample: each epoch's first answer is that of the others
    ("followup single-turn --limit 2 --epochs 3", [16 * 6, 8 * 6]),
]  # fmt: skip
"""Arguments of a study, and the generations of each protocol."""


@pytest.mark.rest_slow
@pytest.mark.parametrize(("arguments", "numbers"), PLANS, ids=[row[0] for row in PLANS])
def test_requests_match_the_plan(
    arguments: str, numbers: list[int], server: Server, inputs: list[Facts]
) -> None:
    reuse = 0
    if "--limit 8" in arguments and "lengths" in arguments:
        # a text of the study that is one of the ablation's too counts once, by four techniques
        alike = [row for row in inputs if row["length"] is None and row["sentences"] in (1, 10, 20)]
        assert alike
        reuse = 4 * len(alike)
        numbers = [numbers[0] - reuse]
    rows = plan_of(*arguments.split(), *MODEL)
    assert [(row["generations"], row["exact"]) for row in rows] == [(n, True) for n in numbers]
    assert server.stats()["calls"] == 0
    outcome, turns = study_of(*arguments.split(), *MODEL, "--model-base-url", f"{server.url}/v1")
    stats = server.stats()
    assert (stats["calls"], stats["repeated"]) == (sum(numbers), 0)
    assert (outcome["calls"], outcome["complete"]) == (sum(numbers), True)
    # what two protocols or lengths share has a row in each of them
    assert turns.height == sum(numbers) or (
        turns.height > sum(numbers) and ("single-turn" in arguments or "lengths" in arguments)
    )
    if arguments.startswith("followup --"):  # other arms share the plain question
        assert outcome["cached"] == reuse


@pytest.mark.slow
def test_omissions_are_neither_planned_nor_asked(server: Server) -> None:
    missing = facts_of("generate", "contexts", "--model", "simulated/faulty-generator", "--limit",
                       "8", "-o", "c.jsonl", "--log-dir", "made")["missing"]  # fmt: skip
    assert missing
    study = ("followup", *MODEL, "--limit", "8", "-T", "contexts=c.jsonl")
    plan = holdfast("run", "--dry-run", *study, "--json")
    (row,) = json.loads(plan.stdout)
    # misleading-context and rag-style both need a misleading context
    number = sum(n * (1 + reason.startswith("misleading")) for reason, n in missing.items())
    assert row["generations"] == 17 * 8 - number
    assert all(reason.partition(" (")[2].rstrip(")") in plan.stderr for reason in missing)
    outcome, _ = study_of(*study, "--model-base-url", f"{server.url}/v1")
    assert server.stats()["calls"] == row["generations"]
    assert sum(n for reasons in outcome["left_out"].values() for n in reasons.values()) == number


def test_a_faultless_generator_keeps_to_its_row(inputs: list[Facts]) -> None:
    arguments = ("--limit", "8", "-T", "lengths=1,10,20")
    contexts, followup = plan_of("followup", *MODEL, *arguments, *WRITER.split())
    assert contexts["model"] == "simulated/generator"
    assert followup["model"] == "openai/bench [simulated contexts]"
    # a reply that fails its check is asked for again, and a text that stays away is left out
    assert [row["exact"] for row in (contexts, followup)] == [False, False]
    minimum = sum(4 if row["length"] is None else 3 for row in inputs)
    assert contexts["at_least"] <= minimum <= contexts["generations"]


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("role", "bounds"), [("judge", (27, 42)), ("reader", (0, 51)), ("reader-all", (51, 51))]
)
def test_auxiliary_models_stay_within_the_plan(
    role: str, bounds: tuple[int, int], server: Server
) -> None:
    helper = f"{role}={{model: openai/helper, base_url: {server.url}/v1}}"
    study = ("followup", *MODEL, "--limit", "3", "--model-role", helper)
    target, row = plan_of(*study)
    assert (target["generations"], row["model"]) == (51, "openai/helper")
    assert (row["at_least"], row["generations"]) == bounds
    outcome, _ = study_of(*study, "--model-base-url", f"{server.url}/v1")
    # equal replies to equal options are read once
    minimum = 1 if role == "reader-all" else bounds[0]
    assert outcome["calls"] == server.stats()["calls"]
    assert minimum <= outcome["calls"] - 51 <= bounds[1]


def test_a_rule_on_the_first_answer_makes_the_plan_a_bound(server: Server) -> None:
    source = write_jsonl(Path("q.jsonl"), question_rows(6, options=2))
    study = ("followup", *MODEL, "--questions", source, "-T", "suggest=not-own",
             "-T", "techniques=inc_letter")  # fmt: skip
    (row,) = plan_of(*study)
    assert (row["generations"], row["exact"]) == (6 * 8, False)
    study_of(*study, "--model-base-url", f"{server.url}/v1")
    # a wrong first answer leaves no other option to push
    assert 6 < server.stats()["calls"] < row["generations"]


def test_a_plan_needs_no_key_and_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    before = files_below(tmp_path)
    roles = ("--model-role", "generator=openai/any", "--model-role", "judge=openai/any")
    assert plan_of("followup", "single-turn", "--model", "openai/gpt-4.1", *roles)
    assert files_below(tmp_path) == before


def test_user_prices_price_the_plan() -> None:
    Path("prices.json").write_text('{"simulated/sycophant": {"input": 2.0, "output": 8.0}}')
    (row,) = plan_of("followup", "--model", "simulated/sycophant", "--prices", "prices.json")
    assert row["cost"] == pytest.approx((row["input_tokens"] * 2 + row["output_tokens"] * 8) / 1e6)
