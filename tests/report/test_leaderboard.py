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


def _model(name: str, misled: int, questions: int = QUESTIONS, **others: Any) -> list[Row]:
    """Right at first on all; asked to reconsider it stays so, a text misleads ``misled``."""
    own: dict[str, Any] = {
        "model": name,
        "run": name,
        "prompt": "Which?",
        "reply": "This.",
    } | others
    return [
        row
        for number in range(questions)
        for row in (
            turn(f"q{number}", "A", **own),
            turn(f"q{number}", "A", "recheck", suggested="B", **own),
            turn(f"q{number}", "A" if number >= misled else "B", "mislead", suggested="B", **own),
        )
    ]


def _written(folder: Path, *models: list[Row]) -> list[Path]:
    """A source for each of them."""
    folder.mkdir(exist_ok=True)
    places = [folder / f"{number}.parquet" for number in range(len(models))]
    for place, rows in zip(places, models, strict=True):
        table(rows).write_parquet(place)
    return places


def _index(*models: list[Row]) -> str:
    """The first page alone, of a source for each."""
    found = [LeaderboardSource(table(rows), {}, [], [], [], []) for rows in models]
    return next(leaderboard_pages(found, (), None, 9))[2]


def _tables(html: str) -> dict[str, list[dict[str, str]]]:
    """By heading, the rows of each table of the first page by header; ``to`` is their link."""
    found = {}
    for heading, body in re.findall(r"<h2>(.*?)</h2>(.*?)</table>", html, re.S):
        rows = []
        for to, name, cells in re.findall(
            r'<tr><th scope="row"><a href="([^"]*)">(.*?)</a></th>(.*?)</tr>', body
        ):
            own = {"to": to, "Model": unescape(name)}
            for header, text in re.findall(r'<td data-of="(.*?)">(.*?)</td>', cells):
                own[unescape(header)] = unescape(text).replace("\u00a0", " ")
            rows.append(own)
        found[unescape(heading)] = rows
    return found


def _files(site: Path) -> dict[str, bytes]:
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file()
    }


def test_ranks_and_shares_are_those_of_the_measure() -> None:
    models = _model("holds", 1), _model("sways", 24), _model("falls", 39), _model("holds too", 1)
    ((heading, rows),) = _tables(_index(*models)).items()
    assert heading == "d1, followup"
    measured = worst(table([row for own in models for row in own])).to_dicts()
    assert {row["Model"]: row["Rank"] for row in rows} == {
        row["model"]: rank(row) for row in measured
    }
    shown = {row["Model"]: row for row in rows}
    assert (shown["holds"]["Rank"], shown["sways"]["Rank"]) == ("1 to 2", "3")
    assert shown["falls"]["Rank"] == "4"
    assert shown["sways"]["Right after the worst challenge %"].startswith("40.0 [")
    assert shown["sways"]["Right at first %"].startswith("100.0 [")
    assert shown["sways"]["Which"].startswith("mislead")
    assert shown["sways"]["Questions"] == str(QUESTIONS)


def test_kinds_of_challenge_selectivity_and_date_stand_beside() -> None:
    rows: list[Row] = []
    for n in range(10):  # right at first: the push takes three, the control one
        rows += [turn(f"r{n}", "A"), control(f"r{n}", "B" if n == 9 else "A"),
                 turn(f"r{n}", "B" if n < 3 else "A", "push", suggested="B")]  # fmt: skip
    for n in range(10):  # wrong at first: the correction mends eight, the control two
        rows += [turn(f"w{n}", "B"), control(f"w{n}", "A" if n < 2 else "B"),
                 correction(f"w{n}", "A" if n < 8 else "B")]  # fmt: skip
    record = RunRecord("r1", "2026-02-03T04:05:06+00:00", None, 20, {}, {})
    dated = LeaderboardSource(table(rows), {"r1": record}, [], [], [], [])
    undated = LeaderboardSource(table(_model("b", 12)), {}, [], [], [], [])
    html = next(leaderboard_pages([dated, undated], (), None, 9))[2]
    (shown,) = _tables(html).values()
    first, second = sorted(shown, key=lambda row: row["Model"] == "b")
    assert first["Told a wrong letter"] == "70.0% (-20.0)"
    assert first["Selectivity"].startswith("+40.0 [")
    assert first["Date"] == "2026\u201102\u201103"
    assert "Shown a misleading text" not in first or first["Shown a misleading text"] == ""
    assert second["Shown a misleading text"] == f"{1 - 12 / QUESTIONS:.1%}"
    assert (second["Selectivity"], second["Date"]) == ("", "")
    assert "In brackets: percentage points more or less" in html
    assert all("Date" not in row for row in _tables(_index(_model("b", 12)))["d1, followup"])


def test_identical_models_share_ranks() -> None:
    (rows,) = _tables(_index(*(_model(f"m{number}", 12) for number in range(5)))).values()
    assert [row["Rank"] for row in rows] == ["1 to 5"] * 5


def test_other_data_sets_stand_apart_and_unlike_studies_are_told() -> None:
    html = _index(
        _model("a", 3),
        _model("b", 30, questions=30),
        _model("c", 3, dataset="d2"),
        [row for row in _model("d", 3, dataset="d2") if row["path"] != "recheck"],
        _model("simulated/e", 3, dataset="d3"),
        _model("f", 3, dataset="d3", run="imported-f"),
        _model("g", 3, dataset="d4", run="g+spotlight-1"),
        _model("g", 3, dataset="d4", run="g"),
    )
    tables = _tables(html)
    assert {heading: {row["Model"] for row in rows} for heading, rows in tables.items()} == {
        "d1, followup": {"a", "b"},
        "d2, followup": {"c", "d"},
        "d3, followup": {"simulated/e [SIMULATED]", "f [IMPORTED]"},
        "d4, followup": {"g", "g + spotlight"},
    }
    assert len({row["to"] for row in tables["d4, followup"]}) == 1
    html = unescape(html)
    (questions,) = re.findall(r"<li>(Not the same questions.*?)</li>", html)
    (challenges,) = re.findall(r"<li>(Not every model was asked.*?)</li>", html)
    assert "30 to 40 per model, 30 in common" in questions
    assert challenges.endswith("Missing for some: recheck.")
    assert html.index(questions) < html.index("d2, followup") < html.index(challenges)


def test_what_has_no_worst_case_has_a_row() -> None:
    silent = [turn(f"q{n}", None, path, model="silent", run="s") for n in range(3)
              for path in ("", "recheck")]  # fmt: skip
    plain = [turn(f"q{n}", "A", model="plain", run="p") for n in range(3)]
    (rows,) = _tables(_index(silent, plain)).values()
    assert {row["Model"]: row["Which"] for row in rows} == {
        "silent": "no answer was read",
        "plain": "nothing was challenged",
    }


def test_hostile_names_make_safe_files_and_stay_text() -> None:
    names = [*HOSTILE.values(), "../../up", "a/b", "A/B", "a?b#c%2f", "日本", "x" * 300, "CON"]
    html = _index([row for name in names for row in _model(name, 1, 2)])
    (rows,) = _tables(html).values()
    files = {row["to"] for row in rows}
    assert len({file.lower() for file in files}) == len(rows) == len(names)
    assert all(re.fullmatch(r"models/[a-z0-9-]{8,69}\.html", file) for file in files)
    assert html.count("<script>") == 1
    assert "<img" not in html
    assert "<svg" not in html


@pytest.mark.slow
def test_every_link_is_a_page_and_a_second_run_has_the_same_bytes(tmp_path: Path) -> None:
    names = "a", "</a>/../b"
    sources = _written(tmp_path / "in", *(_model(name, 3, 2) for name in names))
    site = tmp_path / "site"
    site.mkdir()
    made = holdfast.leaderboard(sources, site, title="First")
    first = _files(site)
    assert set(made.models) == set(names)
    (rows,) = _tables(first["index.html"].decode()).values()
    assert {row["to"] for row in rows} == set(first) - {"index.html"}
    for row in rows:
        page = unescape(first[row["to"]].decode())
        assert f"<title>{row['Model']}</title>" in page
        assert f"{row['Model']} · 1 model · 2 questions of d1" in page
        assert Path(made.models[row["Model"]]).read_bytes() == first[row["to"]]
    holdfast.leaderboard(sources, site, title="First")
    assert _files(site) == first
    assert {path.name for path in tmp_path.iterdir()} == {"in", "site"}


@pytest.mark.slow
def test_what_cannot_be_read_is_named_and_the_rest_is_built(tmp_path: Path) -> None:
    (source,), site = _written(tmp_path / "in", _model("a", 1, 2)), tmp_path / "site"
    torn = tmp_path / "torn<b>.parquet"
    torn.write_bytes(b"PAR1")
    done = command("report", source, torn, tmp_path / "absent", "--leaderboard", site)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 2)
    assert done.stdout == f"Leaderboard: {site}/index.html (1 model)\n"
    told = re.findall(r"<li>(.*?)</li>", (site / "index.html").read_text("utf-8"))
    for name in ("torn<b>.parquet", "absent"):
        assert name in done.stderr
        assert any(name in unescape(line) for line in told)
    before = _files(site)
    failed = command("report", torn, "--leaderboard", site)
    assert (failed.returncode, len(failed.stderr.splitlines())) == (2, 1)
    assert _files(site) == before


@pytest.mark.slow
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (source,), site = _written(tmp_path / "in", _model("a", 1, 2)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    (site / "CNAME").write_text("board.example.org")
    before = _files(site)
    with pytest.raises(InputError, match="exists already"):
        holdfast.leaderboard(source, site)
    assert _files(site) == before
    other = command("report", source, "--leaderboard", tmp_path / "new", "--rules", "gate.toml")
    assert (other.returncode, (tmp_path / "new").exists()) == (2, False)
    assert "--rules" in other.stderr


@pytest.mark.slow
def test_a_site_that_fails_half_way_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,), site = _written(tmp_path / "in", _model("a", 1, 2)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    before = _files(site)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        holdfast.leaderboard(source, site, title="Later")
    monkeypatch.undo()
    assert _files(site) == before
    assert {path.name for path in tmp_path.iterdir()} == {"in", "site"}


@pytest.mark.slow
def test_what_was_not_set_alike_is_told(tmp_path: Path) -> None:
    places = []
    for model, seed in (("steadfast", 1), ("sycophant", 2), ("sycophant", 1)):
        place = tmp_path / f"{model}{seed}"
        holdfast.run("followup", f"simulated/{model}", limit=2, log_dir=place, seed=seed,
                     task_args={"techniques": "authority-prior"})  # fmt: skip
        places.append(place)
    holdfast.leaderboard(places[:2], tmp_path / "unlike")
    told = (tmp_path / "unlike" / "index.html").read_text("utf-8")
    assert "Not the same settings: " in told
    assert "-T seed (1, 2)" in told
    holdfast.leaderboard([places[0], places[2]], tmp_path / "alike")
    assert "Not the same settings" not in (tmp_path / "alike" / "index.html").read_text("utf-8")


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError])
@pytest.mark.rest_slow
def test_a_site_that_cannot_take_its_place_leaves_the_old_one(
    fault: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place,) = _written(tmp_path / "s", _model("m", 9))
    holdfast.leaderboard(place, tmp_path / "site")
    before = _files(tmp_path / "site")
    rename = Path.rename

    def stopped(path: Path, target: Path) -> Path:
        if path.name.endswith(".partial"):
            raise fault
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises((KeyboardInterrupt, InputError)):
        holdfast.leaderboard(place, tmp_path / "site")
    assert _files(tmp_path / "site") == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["s", "site"]


_KILLED = """
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
@pytest.mark.rest_slow
def test_a_kill_at_any_step_loses_no_leaderboard(
    step: int, stands: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,), site = _written(tmp_path / "in", _model("a", 1, 2)), tmp_path / "site"
    holdfast.leaderboard(source, site)
    before = _files(site)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(source), str(site), str(step)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    found = _files(site) if site.exists() else None
    assert {"old": found == before, "none": found is None, "new": found not in (before, None)}[
        stands
    ]

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        holdfast.leaderboard(source, site)
    monkeypatch.undo()
    assert _files(site) == (found or before)
    holdfast.leaderboard(source, site)
    assert _files(site) == before
