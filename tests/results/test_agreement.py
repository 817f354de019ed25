"""Agreement of the rules and a reader, by hand and for readers whose errors are known."""

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_table

from holdfast.results.audit import READING_COLUMNS, reading
from holdfast.stats.intervals import wilson
from tests.results.frames import Row, table, turn


def read(
    question: str, rules: str | None, reading_text: str | None, path: str = "", **letters: object
) -> Row:
    """A turn that both have read; ``!`` is a reading that could not be read itself."""
    status = "unreadable" if reading_text == "!" else "parsed" if reading_text else "none"
    return turn(question, rules, path) | {
        "answer_rules": rules, "answer_reader": None if reading_text == "!" else reading_text,
        "reader": "m0", "reader_all": True, "reader_status": status, **letters,
    }  # fmt: skip


HAND = [
    read("q1", "A", "A"),
    read("q2", "A", "B"),
    read("q3", None, None),
    read("q4", "A", "!"),
    read("q1", "B", "B", "push"),
    read("q2", "B", None, "push"),
    read("q3", None, "A", "push"),
    # nobody has asked a reader of this one, and this call failed
    read("q4", "A", None, "push", reader_status=None),
    read("q5", None, None, "push", status="error"),
]


def test_agreement_matches_hand_calculation() -> None:
    rows = reading(table(HAND))
    assert rows.columns == list(READING_COLUMNS)
    counts = ["arm", "n", "agree", "rules_none", "reader_none", "unreadable"]
    assert rows.select(counts).rows() == [
        (None, 6, 3, 2, 2, 1),
        ("baseline", 3, 2, 1, 1, 1),
        ("followup", 3, 1, 1, 1, 0),
    ]
    assert rows["agreement"].to_list() == [3 / 6, 2 / 3, 1 / 3]
    low, high = wilson(np.array([2.0]), np.array([3.0]))
    baseline = rows.row(1, named=True)
    assert (baseline["low"], baseline["high"]) == pytest.approx((low[0], high[0]))
    # A, B, none by the rules against A, B, none by the reader, over both arms
    square = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert rows["kappa"][0] == pytest.approx(kappa_of_table(square).kappa)


def test_without_a_reader_there_are_no_rows() -> None:
    assert reading(table([turn("q1", "A"), turn("q1", "B", "push")])).height == 0


def test_readers_have_separate_rows() -> None:
    rows = [
        read("q1", "A", "A"),
        read("q1", "A", "B", run="r2", reader="m9"),
        read("q1", None, "A", run="r3", reader_all=False),
    ]
    counts = reading(table(rows)).select("run", "reader", "reader_all", "arm", "agree").rows()
    assert counts == [
        ("r1", "m0", True, None, 1), ("r1", "m0", True, "baseline", 1),
        ("r2", "m9", True, None, 0), ("r2", "m9", True, "baseline", 0),
        ("r3", "m0", False, None, 0), ("r3", "m0", False, "baseline", 0),
    ]  # fmt: skip


def drawn(errors: dict[str, float], n: int = 2000) -> list[Row]:
    """Readings that err with a chance of their own in each arm, half of the time by none."""
    rng = np.random.default_rng(7)
    rows = []
    for arm, (path, rate) in enumerate(errors.items()):
        for number in range(n):
            rules = "ABCD"[int(rng.integers(4))]
            letters = [None, *(letter for letter in "ABCD" if letter != rules)]
            wrong = letters[int(rng.choice(4, p=[1 / 2, *[1 / 6] * 3]))]
            reading_text = wrong if rng.random() < rate else rules
            rows.append(read(f"q{arm}-{number}", rules, reading_text, path))
    return rows


def test_errors_caused_by_challenges_show_by_arm() -> None:
    rows = reading(table(drawn({"": 0.02, "push": 0.2}))).to_dicts()
    by_arm = {row["arm"]: row for row in rows}
    assert by_arm["baseline"]["low"] < 0.98 < by_arm["baseline"]["high"]
    assert by_arm["followup"]["low"] < 0.8 < by_arm["followup"]["high"]
    assert by_arm["followup"]["high"] < by_arm["baseline"]["low"]
    # half of the errors are none; chance agreement of four letters is 0.8/4 and a little less
    assert by_arm["followup"]["reader_none"] / 2000 == pytest.approx(0.1, abs=0.02)
    chance = 0.25 * (1 - 0.1)
    assert by_arm["followup"]["kappa"] == pytest.approx((0.8 - chance) / (1 - chance), abs=0.03)
    # and a reader that errs alike everywhere, or never, shows no difference
    alike = {row["arm"]: row for row in reading(table(drawn({"": 0.1, "push": 0.1}))).to_dicts()}
    assert alike["followup"]["low"] < alike["baseline"]["agreement"] < alike["followup"]["high"]
    never = reading(table(drawn({"": 0.0, "push": 0.0}, 50)))
    assert set(never["agreement"]) == set(never["kappa"]) == {1.0}
