"""One flipped bit in a file of a log dir: every table is refused or equal, no reply differs."""

import json
import logging
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import copytree
from zipfile import ZipFile

import polars as pl
import pytest

from holdfast.dialogue.generations import Generations
from holdfast.errors import InputError
from holdfast.results.records import finished_orders, run_records
from holdfast.results.turns import turns_table
from tests.studies import holdfast, question_rows, write_jsonl

FLIPS = 80
COMMAND = ("run", "followup", "--model", "simulated/sycophant", "-T", "techniques=double-check")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small run that has labels, newer readings, and labels of people."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_CACHE_DIR", raising=False)  # kept beside the logs
        yield left_in(tmp_path_factory.mktemp("flipped"))


def left_in(folder: Path) -> Path:
    questions = write_jsonl(folder / "q.jsonl", question_rows(3))
    labels = write_jsonl(folder / "l.jsonl", [{"question": f"q{n}", "system": "s"} for n in (0, 2)])
    log_dir = folder / "runs"
    command = (*COMMAND, "--questions", questions, "--labels", labels, "--log-dir", log_dir)
    assert holdfast(*command).returncode == 0
    assert holdfast("score", log_dir).returncode == 0
    sheet = folder / "audit.csv"
    assert holdfast("export", log_dir, "--format", "audit", "-o", sheet).returncode == 0
    labelled_sheet = pl.read_csv(sheet, infer_schema=False).with_columns(
        label=pl.lit("B"), label_first=pl.lit("B")
    )
    labelled_sheet.write_csv(sheet)
    audit = holdfast("import", sheet, "--audit", log_dir)
    assert audit.returncode == 0, audit.stderr
    return log_dir


def flipped(file: Path, flips: int = FLIPS, start: int = 0) -> Iterator[None]:
    """Flip one bit after the other, each time in the file as it was."""
    whole, chance = file.read_bytes(), random.Random(35)
    for _ in range(flips):
        bit = chance.randrange(8 * start, 8 * len(whole))
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
        yield
    file.write_bytes(whole)


def refused(load: Callable[[], pl.DataFrame], whole: pl.DataFrame) -> int:
    """1 where a damaged table is refused in one line that names the file, 0 where it is equal."""
    try:
        turns = load()
    except InputError as error:
        refusal = error
    else:
        assert turns.equals(whole)
        return 0
    assert refusal.file
    assert refusal.remedy
    assert "\n" not in str(refusal)
    return 1


def test_a_table_with_a_flipped_bit_is_refused_or_equal(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "turns.parquet"
    file.write_bytes((study / "turns.parquet").read_bytes())
    whole = turns_table([str(file)])
    assert whole.height > 0
    times = sum(refused(lambda: turns_table([str(file)]), whole) for _ in flipped(file))
    assert times > FLIPS * 0.9


def test_an_imported_table_with_a_flipped_bit_is_refused_or_equal(
    study: Path, tmp_path: Path
) -> None:
    chats, file = tmp_path / "c.jsonl", tmp_path / "t.parquet"
    assert holdfast("export", study, "--format", "openai-chat", "-o", chats).returncode == 0
    assert holdfast("import", chats, "-o", file).returncode == 0
    whole = turns_table([str(file)])
    times = sum(refused(lambda: turns_table([str(file)]), whole) for _ in flipped(file, flips=40))
    assert times > 30


def test_a_table_without_a_digest_is_read(study: Path, tmp_path: Path) -> None:
    turns = turns_table([str(study)])
    turns.write_parquet(tmp_path / "turns.parquet")  # as a notebook does
    for source in (tmp_path, tmp_path / "turns.parquet"):
        assert turns_table([str(source)]).equals(turns)


@pytest.mark.slow
def test_a_damaged_table_is_named_and_read_from_the_logs(
    study: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log_dir = copytree(study, tmp_path / "runs")
    whole = turns_table([str(log_dir)])
    assert not caplog.messages
    file = log_dir / "turns.parquet"
    for _ in flipped(file, flips=10):
        with caplog.at_level(logging.WARNING):
            assert turns_table([str(log_dir)]).equals(whole)
            assert holdfast("table", log_dir, "--format", "csv").returncode == 0
    lines = [line for line in caplog.messages if "is damaged" in line]
    assert lines
    assert all(line.startswith(f"Warning: {file}: ") for line in lines)
    for log in log_dir.glob("*.eval"):
        log.unlink()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    run = holdfast("table", log_dir)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert str(file) in line


@pytest.mark.parametrize("name", ["readings.parquet", "audit.parquet", "labels.jsonl"])
@pytest.mark.slow
def test_flipped_bits_in_other_files_are_refused_or_harmless(
    name: str, study: Path, tmp_path: Path
) -> None:
    log_dir = copytree(study, tmp_path / "runs")
    (log_dir / "turns.parquet").unlink()
    whole = turns_table([str(log_dir)])
    load = partial(turns_table, [str(log_dir)])
    times = sum(refused(load, whole) for _ in flipped(log_dir / name))
    assert times > FLIPS * 0.9


def test_a_log_with_a_flipped_bit_is_refused_or_equal(study: Path, tmp_path: Path) -> None:
    log_dir = copytree(study, tmp_path / "runs")
    (log,) = log_dir.glob("*.eval")
    (log_dir / "turns.parquet").unlink()
    for source in map(str, (log_dir, log)):
        load = partial(turns_table, [source])
        whole = load()
        times = sum(refused(load, whole) for _ in flipped(log))
        assert times > FLIPS * 0.6


@pytest.mark.slow
def test_a_flipped_bit_in_a_logs_contents_is_refused_or_harmless(
    study: Path, tmp_path: Path
) -> None:
    log = tmp_path / "l.eval"
    (whole,) = study.glob("*.eval")
    log.write_bytes(whole.read_bytes())
    with ZipFile(log) as archive:
        contents = archive.start_dir
    load = partial(turns_table, [str(log)])
    turns = load()
    assert sum(refused(load, turns) for _ in flipped(log, start=contents)) > FLIPS * 0.1


def test_flipped_bits_change_no_kept_reply(study: Path, tmp_path: Path) -> None:
    store = copytree(study / ".cache", tmp_path / "store")
    (file,) = store.glob("*.jsonl")
    keys = [json.loads(line)["key"] for line in file.read_text("utf-8").splitlines()]
    before = Generations(store)
    whole = {key: before.get(key) for key in keys}
    assert None not in whole.values()
    open_before = Generations(store)
    assert len(open_before) == len(keys)
    for _ in flipped(file):
        reopened_store = Generations(store)
        for generations in (reopened_store, open_before):
            replies = {key: generations.get(key) for key in keys}
            different = [key for key in keys if replies[key] not in (None, whole[key])]
            assert not different
        # without its end the last line is one that a kill has torn, which is no damage
        torn = not file.read_bytes().endswith(b"\n")
        assert (0 if torn else 1) <= reopened_store.damaged <= 2
        assert len(reopened_store) >= len(keys) - 2


def test_a_damaged_reply_is_restored_from_the_log(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_CACHE_DIR")
    log_dir = copytree(study, tmp_path / "runs")
    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    (file,) = (log_dir / ".cache").glob("*.jsonl")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    n_generations = len(Generations(log_dir / ".cache"))
    run = holdfast(*COMMAND, "--questions", questions, "--log-dir", log_dir, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["calls"] == 0
    warnings = [line for line in run.stderr.splitlines() if "checksum" in line]
    assert len(warnings) == 1
    assert str(log_dir / ".cache") in warnings[0]
    corrections = Generations(log_dir / ".cache")
    assert (len(corrections), corrections.damaged) == (n_generations + 1, 0)


def test_flipped_bits_in_a_logs_header_are_refused_or_harmless(study: Path, tmp_path: Path) -> None:
    log = tmp_path / "l.eval"
    (whole,) = study.glob("*.eval")
    log.write_bytes(whole.read_bytes())

    def read() -> pl.DataFrame:
        source = [str(log)]
        return pl.DataFrame({"said": [repr((run_records(source), finished_orders(source)))]})

    before = read()
    assert sum(refused(read, before) for _ in flipped(log)) > FLIPS * 0.1


def test_a_panic_of_the_reader_ends_in_one_line(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "turns.parquet"
    turns_table([str(study)]).write_parquet(file)  # without a digest

    def panics(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("range end index 7\nout of range")

    monkeypatch.setattr(pl, "scan_parquet", panics)
    run = holdfast("table", file)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert f"{file}: cannot be read as a turns table (range end index 7 out of range)" in line
