"""Who has read what: turns of before, and answers that are held against each other."""

from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.results.readings import READINGS, check_read_alike, first_readings
from holdfast.results.turns import SCHEMA
from tests.results.frames import Row, table, turn

RULES = {"reading_version": 2}
READER = {**RULES, "reader": "m0", "reader_all": False, "reader_prompt": 1}
FROM_FILE = {"rule": "given"}


def read(*kinds: dict[str, Any]) -> list[Row]:
    return [turn(f"q{n}", "A", **kind) for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (read(RULES, RULES), read(RULES)),
        (read(READER), read(READER)),
        # nobody has read what a file gave
        (read(RULES, FROM_FILE), read(FROM_FILE)),
        (read(FROM_FILE), read(READER, FROM_FILE)),
        ([], read(RULES)),
    ],
)
def test_equal_readings_are_compared(a: list[Row], b: list[Row]) -> None:
    check_read_alike({"A": table(a), "B": table(b)})


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (read({"reading_version": 1}), read(RULES),
         "A by version 1 of the rules; B by version 2 of the rules"),
        (read(RULES), read(READER),
         "B by version 2 of the rules with m0 for replies that the rules cannot parse (prompt 1)"),
        (read(READER), read({**READER, "reader_all": True}), "B by version 2 of the rules with m0 "
         "for every reply (prompt 1)"),
        (read(READER), read({**READER, "reader": "m1"}), "with m1 for replies that the "
         "rules cannot parse"),
        (read(READER), read({**READER, "reader_prompt": 2}), "(prompt 2)"),
        (read(RULES), read({**RULES, "final_counts": True}), "B by version 2 of the rules and by "
         "final answers"),
        (read(RULES, READER), read(RULES), "A by version 2 of the rules and by version 2 of the "
         "rules with m0"),
    ],
)  # fmt: skip
def test_differing_readings_are_refused_with_the_remedy(
    a: list[Row], b: list[Row], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_read_alike({"A": table(a), "B": table(b)}, "rules.toml", "no_worse_than")
    line = str(caught.value)
    assert line.startswith(
        "rules.toml, field 'no_worse_than': the replies were not read in the same way: "
    )
    assert message in line
    assert line.endswith(
        "Run 'holdfast score LOGDIR' on each, with the same second reader or without one."
    )


def test_older_tables_were_read_by_version_1() -> None:
    old = table([turn("q1", "A"), turn("q2", None), turn("q3", "B", rule="given")])
    frame = first_readings(old.drop(*READINGS))
    rows = frame.select("reading_version", "answer_rules").rows()
    assert rows == [(1, "A"), (1, None), (None, None)]
    # and one that says who has read it stays as it is
    assert first_readings(old).equals(old)
    assert set(READINGS) <= set(SCHEMA)
