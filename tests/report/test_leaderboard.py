"""The leaderboard: a site of many studies, its tables, its links, and what it leaves alone."""

import re
import signal
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.report.page.hostile import HOSTILE
from tests.results.frames import Row, control, correction, table, turn
from tests.studies import holdfast as command

import holdfast
from holdfast.errors import InputError
from holdfast.report.leaderboard import LeaderboardSource, leaderboard_pages
from holdfast.results.records import RunRecord
from holdfast.results.worst import rank, worst

QUESTIONS = 40


def model(name: str, count: int, questions: int = QUESTIONS, **columns: Any) -> list[Row]:
    """Right at first on all; asked to reconsider it stays so, a text misleads ``misled``."""
    columns = {"model": name, "run": name, "prompt": "Which?", "reply": "This.", **columns}
    return [
        row
        for number in range(questions)
        for row in (
            turn(f"q{number}", "A", **columns),
            turn(f"q{number}", "A", "recheck", suggested="B", **columns),
            turn(f"q{number}", "AB"[number < count], "mislead", suggested="B", **columns),
        )
    ]


def sources(folder: Path, *models: list[Row]) -> list[Path]:
    """A turns table for each of them."""
    folder.mkdir(exist_ok=True)
    places = [folder / f"{number}.parquet" for number in range(len(models))]
    for place, rows in zip(places, models, strict=True):
        table(rows).write_parquet(place)
    return places


def source_of(rows: list[Row], records: dict[str, RunRecord] | None = None) -> LeaderboardSource:
    return LeaderboardSource(table(rows), records or {}, [], [], [], [])


def index(*parts: LeaderboardSource) -> str:
    """The first page alone."""
    return next(leaderboard_pages(parts, (), None, 9))[2]


def index_of(*models: list[Row]) -> str:
    return index(*map(source_of, models))


def tables(html: str) -> dict[str, list[dict[str, str]]]:
    """By heading, the rows of each table of the first page by header; ``to`` is their link."""
    headings: dict[str, list[dict[str, str]]] = {}
    for heading, body in re.findall(r"<h2>(.*?)</h2>(.*?)</table>", html, re.S):
        rows = headings.setdefault(unescape(heading), [])
        for to, name, cells in re.findall(
            r'<tr><th scope="row"><a href="([^"]*)">(.*?)</a></th>(.*?)</tr>', body
        ):
            row = {"to": to, "Model": unescape(name)}
            for header, text in re.findall(r'<td data-of="(.*?)">(.*?)</td>', cells):
                row[unescape(header)] = unescape(text).replace("\u00a0", " ")
            rows.append(row)
    return headings


def files(site: Path) -> dict[str, bytes]:
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file()
    }


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    patch.setattr(Path, "write_bytes", full)


def test_ranks_and_shares_match_the_measure() -> None:
    models = model("holds", 1), model("sways", 24), model("falls", 39), model("holds too", 1)
    ((heading, rows),) = tables(index_of(*models)).items()
    assert heading == "d1, followup"
    measures = worst(table([row for study in models for row in study])).to_dicts()
    by_name = {row["Model"]: row for row in rows}
    assert {name: row["Rank"] for name, row in by_name.items()} == {
        row["model"]: rank(row) for row in measures
    }
    ranks = [by_name[name]["Rank"] for name in ("holds", "sways", "falls")]
    assert ranks == ["1 to 2", "3", "4"]
    sways = by_name["sways"]
    assert sways["Right after the worst challenge %"].startswith("40.0 [")
    assert sways["Right at first %"].startswith("100.0 [")
    assert sways["Which"].startswith("mislead")
    assert sways["Questions"] == str(QUESTIONS)
    # identical models share ranks
    (rows,) = tables(index_of(*(model(f"m{number}", 12) for number in range(5)))).values()
    assert [row["Rank"] for row in rows] == ["1 to 5"] * 5


def test_kinds_of_challenge_selectivity_and_date_are_columns() -> None:
    rows: list[Row] = []
    for n in range(10):  # right at first: the push takes three, the control one
        rows += [turn(f"r{n}", "A"), control(f"r{n}", "B" if n == 9 else "A"),
                 turn(f"r{n}", "B" if n < 3 else "A", "push", suggested="B")]  # fmt: skip
    for n in range(10):  # wrong at first: the correction mends eight, the control two
        rows += [turn(f"w{n}", "B"), control(f"w{n}", "A" if n < 2 else "B"),
                 correction(f"w{n}", "A" if n < 8 else "B")]  # fmt: skip
    record = RunRecord("r1", "2026-02-03T04:05:06+00:00", None, 20, {}, {})
    html = index(source_of(rows, {"r1": record}), source_of(model("b", 12)))
    (lines,) = tables(html).values()
    first, second = sorted(lines, key=lambda row: row["Model"] == "b")
    assert first["Told a wrong letter"] == "70.0% (-20.0)"
    assert first["Selectivity"].startswith("+40.0 [")
    assert first["Date"] == "2026\u201102\u201103"
    assert first.get("Shown a misleading text", "") == ""
    assert second["Shown a misleading text"] == f"{1 - 12 / QUESTIONS:.1%}"
    assert (second["Selectivity"], second["Date"]) == ("", "")
    assert all("Date" not in row for row in tables(index_of(model("b", 12)))["d1, followup"])


def test_data_sets_are_separate_and_unlike_studies_flagged() -> None:
    html = index_of(
        model("a", 3),
        model("b", 30, questions=30),
        model("c", 3, dataset="d2"),
        [row for row in model("d", 3, dataset="d2") if row["path"] != "recheck"],
        model("simulated/e", 3, dataset="d3"),
        model("f", 3, dataset="d3", run="imported-f"),
        model("g", 3, dataset="d4", run="g+spotlight-1"),
        model("g", 3, dataset="d4", run="g"),
    )
    headings = tables(html)
    assert {heading: {row["Model"] for row in rows} for heading, rows in headings.items()} == {
        "d1, followup": {"a", "b"},
        "d2, followup": {"c", "d"},
        "d3, followup": {"simulated/e [SIMULATED]", "f [IMPORTED]"},
        "d4, followup": {"g", "g + spotlight"},
    }
    assert len({row["to"] for row in headings["d4, followup"]}) == 1
    html = unescape(html)
    (questions,) = re.findall(r"<li>(The models were asked different questions.*?)</li>", html)
    (challenges,) = re.findall(r"<li>(The models faced different challenges.*?)</li>", html)
    assert re.findall(r"\d+", questions) == ["30", "40", "30"]
    assert challenges.endswith("recheck.")
    assert html.index(questions) < html.index("d2, followup") < html.index(challenges)


def test_a_study_without_a_worst_case_has_a_row() -> None:
    silent = [turn(f"q{n}", None, path, model="silent", run="s") for n in range(3)
              for path in ("", "recheck")]  # fmt: skip
    plain = [turn(f"q{n}", "A", model="plain", run="p") for n in range(3)]
    (rows,) = tables(index_of(silent, plain)).values()
    reasons = {row["Model"]: row["Which"] for row in rows}
    assert len(set(reasons.values()) - {""}) == len(reasons) == 2


def test_hostile_names_make_safe_files_and_stay_text() -> None:
    names = [*HOSTILE.values(), "../../up", "a/b", "A/B", "a?b#c%2f", "日本", "x" * 300, "CON"]
    html = index_of([row for name in names for row in model(name, 1, 2)])
    (rows,) = tables(html).values()
    paths = {row["to"] for row in rows}
    assert len({path.lower() for path in paths}) == len(rows) == len(names)
    assert all(re.fullmatch(r"models/[a-z0-9-]{8,69}\.html", path) for path in paths)
    assert html.count("<script>") == 1
    assert "<img" not in html
    assert "<svg" not in html


@pytest.mark.slow
def test_links_are_pages_and_builds_are_reproducible(tmp_path: Path) -> None:
    names = "a", "</a>/../b"
    places = sources(tmp_path / "in", *(model(name, 3, 2) for name in names))
    site = tmp_path / "site"
    site.mkdir()
    board = holdfast.leaderboard(places, site, title="First")
    first = files(site)
    assert set(board.models) == set(names)
    (rows,) = tables(first["index.html"].decode()).values()
    assert {row["to"] for row in rows} == set(first) - {"index.html"}
    for row in rows:
        page = unescape(first[row["to"]].decode())
        assert f"<title>{row['Model']}</title>" in page
        assert f"{row['Model']} · 1 model · 2 questions of d1" in page
        assert Path(board.models[row["Model"]]).read_bytes() == first[row["to"]]
    holdfast.leaderboard(places, site, title="First")
    assert files(site) == first
    assert {path.name for path in tmp_path.iterdir()} == {"in", "site"}


@pytest.mark.slow
def test_an_unreadable_source_is_named_and_the_rest_built(tmp_path: Path) -> None:
    (source,), site = sources(tmp_path / "in", model("a", 1, 2)), tmp_path / "site"
    torn = tmp_path / "torn<b>.parquet"
    torn.write_bytes(b"PAR1")
    run = command("report", source, torn, tmp_path / "absent", "--leaderboard", site)
    assert (run.returncode, len(run.stderr.splitlines())) == (0, 2)
    notes = re.findall(r"<li>(.*?)</li>", (site / "index.html").read_text("utf-8"))
    for name in ("torn<b>.parquet", "absent"):
        assert name in run.stderr
        assert any(name in unescape(note) for note in notes)
    before = files(site)
    run = command("report", torn, "--leaderboard", site)
    assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)
    assert files(site) == before


@pytest.mark.slow
def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (source,), site = sources(tmp_path / "in", model("a", 1, 2)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    (site / "CNAME").write_text("board.example.org")
    before = files(site)
    with pytest.raises(InputError, match="already exists"):
        holdfast.leaderboard(source, site)
    assert files(site) == before
    for option in ("--rules", "--figures"):
        run = command("report", source, "--leaderboard", tmp_path / "new", option, "gate.toml")
        assert (run.returncode, (tmp_path / "new").exists()) == (2, False)
        assert option in run.stderr


@pytest.mark.parametrize("fault", ["a full disk", KeyboardInterrupt, OSError])
@pytest.mark.slow
def test_an_unfinished_site_leaves_the_old_one(
    fault: str | type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,), site = sources(tmp_path / "in", model("m", 9)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    before = files(site)
    rename = Path.rename

    def stop(path: Path, target: Path) -> Path:
        if not isinstance(fault, str) and path.name.endswith(".partial"):
            raise fault
        return rename(path, target)

    if isinstance(fault, str):
        fill_disk(monkeypatch)
    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises((KeyboardInterrupt, InputError)):
        holdfast.leaderboard(source, site, title="Later")
    monkeypatch.undo()
    assert files(site) == before
    assert {path.name for path in tmp_path.iterdir()} == {"in", "site"}


@pytest.mark.slow
def test_differing_settings_are_reported(tmp_path: Path) -> None:
    places = []
    for name, seed in (("steadfast", 1), ("sycophant", 2), ("sycophant", 1)):
        place = tmp_path / f"{name}{seed}"
        holdfast.run("followup", f"simulated/{name}", limit=2, log_dir=place, seed=seed,
                     task_args={"techniques": "authority-prior"})  # fmt: skip
        places.append(place)
    for name, pair in (("unlike", places[:2]), ("alike", places[::2])):
        holdfast.leaderboard(pair, tmp_path / name)
        text = (tmp_path / name / "index.html").read_text("utf-8")
        assert ("-T seed (1, 2)" in text) == (name == "unlike")


SCRIPT = """
import os, shutil, signal, sys
from pathlib import Path
import holdfast

source, site, step = sys.argv[1:]
steps = iter(range(9))

def killed_before(does):
    def at(path, *others, **named):
        if next(steps) == int(step):
            os.kill(os.getpid(), signal.SIGKILL)
        return does(path, *others, **named)
    return at

Path.rename, shutil.rmtree = killed_before(Path.rename), killed_before(shutil.rmtree)
holdfast.leaderboard(source, site, title="Later")
"""


@pytest.mark.parametrize(("step", "stands"), [(0, "old"), (1, "none"), (2, "new"), (3, "new")])
@pytest.mark.slow
def test_a_kill_at_any_step_loses_no_leaderboard(
    step: int, stands: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,), site = sources(tmp_path / "in", model("a", 1, 2)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    before = files(site)
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source), str(site), str(step)], check=False
    )
    assert process.returncode == -signal.SIGKILL
    now = files(site) if site.exists() else None
    assert {"old": now == before, "none": now is None, "new": now not in (before, None)}[stands]
    fill_disk(monkeypatch)
    with pytest.raises(InputError, match="No space left"):
        holdfast.leaderboard(source, site)
    monkeypatch.undo()
    assert files(site) == (now or before)
    holdfast.leaderboard(source, site)
    assert files(site) == before
