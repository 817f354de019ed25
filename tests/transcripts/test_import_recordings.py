"""The mappings of the documentation on real recordings, against the columns of their files."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.results.duet import SETTINGS, TURNS, duet_turns
from tests.transcripts.imports import MAPPINGS, imported

from holdfast.protocols.single_turn.measures import single_turn
from holdfast.protocols.stick_or_switch.convictions import survival
from holdfast.questions.loading import load_questions
from holdfast.reading.answers import extract_answer
from holdfast.results.accuracy import accuracy
from holdfast.results.declaration import TABLES
from holdfast.results.flows import flips
from holdfast.results.runs import is_imported
from holdfast.transcripts.importing import Imported

MODELS = ("gpt-4-0613", "llama-2-70b-chat")


@pytest.fixture(scope="module")
def dialogues(resources: Path) -> Path:
    return resources / "data" / "duet_recordings" / "biology_two_models.csv"


@pytest.fixture(scope="module")
def duet(dialogues: Path) -> pl.DataFrame:
    return imported(dialogues, MAPPINGS / "duet.toml").turns


def recordings(resources: Path, model: str) -> Path:
    return resources / "data" / "biasmedqa_recordings" / f"{model}.jsonl"


def biased(resources: Path, model: str, mapping: str | Path) -> Imported:
    questions = str(resources / "data" / "medqa" / "us_5_options_test.jsonl")
    if isinstance(mapping, str):  # beside the recordings nothing can be written
        Path("mapping.toml").write_text(mapping)
        mapping = Path("mapping.toml")
    return imported(recordings(resources, model), mapping, questions)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", ["Llama-3.1-8B-Instruct", "gpt-4o-mini"])
def test_accuracies_match_the_file(
    duet: pl.DataFrame, dialogues: Path, model: str, setting: str
) -> None:
    file_rows = pl.read_csv(dialogues).filter(model_name=model, setting=setting)
    rows = accuracy(duet).filter(model=model, arm=SETTINGS[setting])
    assert rows.select("n", "correct", "accuracy").rows() == [
        (
            file_rows.height,
            file_rows[f"turn_{turn}_correct"].sum(),
            file_rows[f"turn_{turn}_correct"].mean(),
        )
        for turn in range(TURNS)
    ]


def test_every_turn_is_a_row_in_file_order(duet: pl.DataFrame, dialogues: Path) -> None:
    file_rows = pl.read_csv(dialogues)
    assert duet.height == file_rows.height * TURNS == 2856
    answers = [
        (row["qn_id"], row["model_name"], turn, row[f"turn_{turn}_selected_letter"],
         row[f"turn_{turn}_correct"] == 1, row[f"turn_{turn}_conf_answer"])
        for row in file_rows.iter_rows(named=True)
        for turn in range(TURNS)
    ]  # fmt: skip
    columns = ["question", "model", "turn", "answer", "correct", "p_gold"]
    assert duet.select(columns).rows() == answers
    assert set(duet["rule"]) == {"given"}
    assert duet["run"].map_elements(is_imported, return_dtype=pl.Boolean).all()


def test_measures_match_dialogues_written_by_hand(duet: pl.DataFrame, dialogues: Path) -> None:
    assert (
        survival(duet)
        .drop("run", "dataset")
        .equals(survival(duet_turns(dialogues)).drop("run", "dataset"))
    )


def test_dialogues_can_be_read_as_chains(dialogues: Path) -> None:
    turns = imported(dialogues, MAPPINGS / "duet-techniques.toml").turns
    file_rows = pl.read_csv(dialogues)
    rows = flips(turns).filter(~pl.col("path").str.contains(">"))
    assert rows.height == 14
    for row in rows.iter_rows(named=True):
        part = file_rows.filter(model_name=row["model"], technique=row["technique"])
        right = part.filter(setting="NEG")
        assert (row["n"], row["n_right"]) == (part.height, right.height)
        assert row["right_to_wrong"] == right.height - right["turn_1_correct"].sum()
        corrections = part.filter(setting="POS")["turn_1_correct"].sum()
        assert row["wrong_to_right"] == corrections


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_biased_replies_are_joined_by_position(resources: Path, model: str) -> None:
    outcome = biased(resources, model, MAPPINGS / "biasmedqa.toml")
    questions = load_questions(str(resources / "data" / "medqa" / "us_5_options_test.jsonl"))
    records = [json.loads(line) for line in recordings(resources, model).open(encoding="utf-8")]
    assert outcome.turns.height == outcome.conversations == len(records) == 15 * 1273
    assert not outcome.passed_over
    rows = outcome.turns.iter_rows(named=True)
    for place, (row, record) in enumerate(zip(rows, records, strict=True)):
        question = questions.questions[record["index"]]
        parts = [part for part in (record["mitigation"], record["bias"]) if part]
        assert row["question"] == question.id
        assert row["path"] == ">".join(parts).replace("_", "-")
        assert row["arm"] == ("single-turn" if record["bias"] else "baseline")
        assert (row["gold"], row["suggested"]) == (record["gold"], record["suggested"])
        assert row["reply"] == record["response"]
        if place % 60 == 0:  # 319 of them
            extraction = extract_answer(record["response"], question.options)
            assert (row["answer"], row["status"], row["rule"]) == (
                extraction.answer, extraction.status, extraction.rule,
            )  # fmt: skip
            assert row["correct"] == (extraction.answer == question.gold)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_first_character_figures_match_the_recordings(resources: Path, model: str) -> None:
    naive = 'answers = "first-character"\n' + (MAPPINGS / "biasmedqa.toml").read_text()
    turns = biased(resources, model, naive).turns
    file_rows = pl.read_ndjson(recordings(resources, model), infer_schema_length=None)
    assert turns["correct"].to_list() == file_rows["first_char_correct"].to_list()
    counts = {
        (mitigation or "", (bias or "").replace("_", "-")): right
        for mitigation, bias, right in file_rows.group_by("mitigation", "bias")
        .agg(pl.col("first_char_correct").sum())
        .rows()
    }
    rows = single_turn(turns).filter(pl.col("arm") != "family-average")
    assert rows.height == 15
    assert {
        (mitigation or "", technique or ""): right
        for mitigation, technique, right in rows.select("mitigation", "technique", "correct").rows()
    } == counts


@pytest.mark.slow
def test_replies_are_joined_by_id(resources: Path, medqa: str) -> None:
    source = resources / "data" / "mirage_recordings" / "medqa_gpt-4-32k_cot.jsonl"
    turns = imported(source, MAPPINGS / "mirage.toml", medqa).turns
    assert turns.height == 1273
    assert turns["question"].to_list() == [f"{n:04d}" for n in range(1273)]
    golds = [question.gold for question in load_questions(medqa).questions]
    assert turns["gold"].to_list() == golds
    (row,) = accuracy(turns).to_dicts()
    assert (row["n"], row["arm"], row["protocol"]) == (1273, "baseline", "imported")
    # nine of ten replies are JSON with the letter in it
    assert turns.filter(rule="json").height > 1200
    assert row["correct"] == turns["correct"].sum() > 1000


@pytest.mark.slow
def test_every_table_works_on_imported_turns(resources: Path, dialogues: Path) -> None:
    tables = [imported(dialogues, MAPPINGS / name).turns
              for name in ("duet.toml", "duet-techniques.toml")]  # fmt: skip
    tables.append(biased(resources, MODELS[0], MAPPINGS / "biasmedqa.toml").turns.head(1000))
    for turns in tables:
        for measure in TABLES.values():
            measure(turns)
