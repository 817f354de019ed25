"""Every measure of Stick-or-Switch again, dialogue by dialogue, on drawn studies."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import norm

from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import beliefs, flexibility, positions, winners
from tests.results.frames import Row, table
from tests.results.offering import drawn

SEEDS = range(25)

Talk = list[Row]
"""The turns of one conversation, in order."""


def talks(rows: Iterable[Row]) -> dict[tuple[str, str], dict[tuple[str, int], Talk]]:
    """By run and arm: conversations by question and epoch."""
    groups: dict[tuple[str, str], dict[tuple[str, int], Talk]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row["turn"]):
        values = groups[row["run"], row["arm"]]
        values.setdefault((row["question"], row["epoch"]), []).append(row)
    return groups


def whole(talks_of: Mapping[tuple[str, int], Talk]) -> dict[tuple[str, int], Talk]:
    return {
        key: talk for key, talk in talks_of.items() if all(t["status"] != "error" for t in talk)
    }


def stays(talk: Talk) -> bool:
    return all(turn["answer"] == turn["target"] for turn in talk)


def by_keys(frame: Any, *names: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[name] for name in names): row for row in frame.to_dicts()}


@pytest.mark.parametrize("seed", SEEDS)
def test_survival_matches_brute_force(seed: int) -> None:
    rows = drawn(seed)
    figures = {}
    for (run, arm), talks_of in talks(rows).items():
        if arm not in ("positive", "negative"):
            continue
        talks_of = whole(talks_of)
        # what a question could have been asked: its options, less the one that is held
        longest = max(
            (len(s["shown"].split(",")) - 1 for s in rows
             if s["run"] == run and s["arm"] == "single-shot" and s["status"] != "error"
             and any(question == s["question"] for question, _ in talks_of)), default=0,
        )  # fmt: skip
        longest = max([longest, *(len(talk) for talk in talks_of.values())])
        for turn in range(1, longest + 1) if talks_of else ():
            offers = [talk[turn - 1] for talk in talks_of.values() if len(talk) >= turn]
            losses = [t for t in offers if t["answer"] != t["target"]]
            holding = sum(stays(talk[:turn]) for talk in talks_of.values())
            figures[run, arm, turn] = (
                len(talks_of), holding, holding / len(talks_of), len(offers), len(losses),
                len(losses) / len(offers) if offers else None,
                sum(t["answer"] == t["suggested"] for t in losses),
                sum(t["answer"] not in (None, t["suggested"]) for t in losses),
                sum(t["answer"] is None for t in losses),
            )  # fmt: skip
    names = ("n", "kept", "survival", "at_risk", "lost", "hazard", "lost_to_suggested",
             "lost_to_other", "lost_unread")  # fmt: skip
    rows_by_key = by_keys(survival(table(rows)), "run", "arm", "turn")
    assert {k: tuple(row[n] for n in names) for k, row in rows_by_key.items()} == figures


@pytest.mark.parametrize("seed", SEEDS)
def test_taxes_match_brute_force(seed: int) -> None:
    rows = drawn(seed)
    talks_of = talks(rows)
    figures: dict[tuple[str, ...], tuple[float | None, ...]] = {}
    for run in {row["run"] for row in rows}:
        arms_held = {
            name: whole(talks_of.get((run, arm), {}))
            for name, arm in (("conviction", "positive"), ("abstention", "negative"))
        }
        for behaviour, against in (
            ("conviction", "single-shot"),
            ("abstention", "single-shot"),
            ("abstention", "single-shot-abstain"),
        ):
            alone = whole(talks_of.get((run, against), {}))
            conversations = arms_held[behaviour]
            pairs = [(conversations[k], alone[k][0]) for k in conversations if k in alone]
            if pairs:
                single = fmean(shot["answer"] == shot["target"] for _, shot in pairs)
                end = fmean(stays(talk) for talk, _ in pairs)
                first = fmean(stays(talk[:1]) for talk, _ in pairs)
                figures[run, behaviour, against] = (
                    len(pairs), single, first, end, end - single, end - first,
                )  # fmt: skip
        alone = whole(talks_of.get((run, "single-shot"), {}))
        common = [k for k in arms_held["abstention"] if k in arms_held["conviction"] and k in alone]
        if common:
            pair = ("abstention", "conviction")
            ends = [fmean(stays(arms_held[name][k]) for k in common) for name in pair]
            firsts = [fmean(stays(arms_held[name][k][:1]) for k in common) for name in pair]
            raw = ends[0] - ends[1]
            asymmetry = (len(common), None, None, None, raw, raw - (firsts[0] - firsts[1]))
            figures[run, "asymmetry", "single-shot"] = asymmetry
    rows_by_key = by_keys(tax(table(rows)), "run", "behaviour", "against")
    assert rows_by_key.keys() == figures.keys()
    for key, row in rows_by_key.items():
        names = ("n", "single_shot", "isolated", "end_to_end", "raw_tax", "tax")
        assert [row[name] for name in names] == pytest.approx(figures[key], abs=1e-12)
        top = 2 if key[1] == "asymmetry" else 1
        assert -top <= row["low"] < row["high"] <= top
        assert row["low"] - 1e-9 <= row["tax"] <= row["high"] + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_flexibility_matches_brute_force(seed: int) -> None:
    rows = drawn(seed)
    talks_of = talks(rows)
    rows_by_key = by_keys(flexibility(table(rows)), "run")
    for run in {row["run"] for row in rows}:
        right, wrong = [], []
        for key, talk in talks_of.get((run, "negative"), {}).items():
            if talk[0]["answer"] == "NA":
                wrong += talk[1:2]
                right += talks_of.get((run, "flexible-correct"), {}).get(key, [])
        sides = []
        for offers in (right, wrong):
            readable = [turn for turn in offers if turn["status"] != "error"]
            sides.append((sum(t["answer"] == t["suggested"] for t in readable), len(readable)))
        if (run,) not in rows_by_key:
            arms = [r for r in rows if r["run"] == run and r["arm"] in ("negative",)]
            assert all(r["status"] == "error" for r in arms)
            continue
        row = rows_by_key[run,]
        assert (row["correct_switches"], row["n_correct"]) == sides[0]
        assert (row["incorrect_switches"], row["n_incorrect"]) == sides[1]
        if sides[0][1] and sides[1][1]:
            z = [norm.ppf((k + 0.5) / (n + 1)) for k, n in sides]
            assert row["d_prime"] == pytest.approx(z[0] - z[1])
            assert row["criterion"] == pytest.approx(-(z[0] + z[1]) / 2, abs=1e-12)
            rates = [k / n for k, n in sides]
            assert row["difference"] == pytest.approx(rates[0] - rates[1])
            assert row["d_prime_low"] < row["d_prime"] < row["d_prime_high"]
            assert (row["switching"] != "not blind") >= (
                row["d_prime_low"] <= 0 <= row["d_prime_high"]
            )
        else:
            assert row["difference"] is row["d_prime"] is row["switching"] is None


@pytest.mark.parametrize("seed", SEEDS)
def test_positions_and_winners_match_brute_force(seed: int) -> None:
    rows = drawn(seed)
    shares: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    wins: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for (run, arm), talks_of in talks(rows).items():
        for talk in whole(talks_of).values() if arm in ("positive", "negative") else ():
            for turn in talk:
                holding, offer = turn["answer"] == turn["target"], turn["suggested"]
                if turn["turn"] == 0:
                    place = turn["shown"].split(",").index(turn["target"]) + 1
                    shares[run, arm, "position", str(place)].append(holding)
                shares[run, arm, "index", offer].append(holding)
                shares[run, arm, "offer", str(turn["turn"] + 1)].append(holding)
                wins[run, arm, offer].append(turn["answer"] == offer)
    rows_by_key = by_keys(positions(table(rows)), "run", "arm", "effect", "level")
    assert {key: (row["n"], row["kept"]) for key, row in rows_by_key.items()} == {
        key: (len(holding), sum(holding)) for key, holding in shares.items()
    }
    groups = by_keys(winners(table(rows)), "run", "arm", "index")
    assert {key: (row["offered"], row["adopted"]) for key, row in groups.items()} == {
        key: (len(took), sum(took)) for key, took in wins.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_beliefs_match_brute_force(seed: int) -> None:
    rows = drawn(seed)
    talks_of = talks(rows)
    figures: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for (run, arm), conversations in talks_of.items():
        if arm.startswith("single"):
            continue
        roots = whole(talks_of.get((run, "negative"), {})) if arm == "flexible-correct" else {}
        for key, talk in whole(conversations).items():
            before = roots[key][0] if key in roots else None
            for turn in talk:
                if turn.get("p_gold") is not None:
                    at = (run, arm, turn["turn"] + 1)
                    values = figures.setdefault(at, defaultdict(list))
                    values["suggested"].append(turn["p_suggested"])
                    if arm != "flexible-correct":
                        values["target"].append(turn["p_gold"])
                    switches = turn["answer"] != turn["target"]
                    if arm == "flexible-correct":
                        switches = turn["answer"] == turn["suggested"]
                    if before and before.get("p_answer") is not None and turn["answer"]:
                        name = "before_switch" if switches else "before_stick"
                        values[name].append(before["p_answer"])
                before = turn
    rows_by_key = by_keys(beliefs(table(rows)), "run", "arm", "turn")
    assert rows_by_key.keys() == figures.keys()
    for key, row in rows_by_key.items():
        values = figures[key]
        assert row["n"] == len(values["suggested"])
        assert (row["n_switched"], row["n_stuck"]) == (
            len(values["before_switch"]), len(values["before_stick"]),
        )  # fmt: skip
        for name in ("target", "suggested", "before_switch", "before_stick"):
            mean = fmean(values[name]) if values[name] else None
            assert row[name] == pytest.approx(mean, abs=1e-9)
