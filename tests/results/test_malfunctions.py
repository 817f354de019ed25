from holdfast.results.records import errors
from tests.results.frames import STUDY, table, turn


def test_errors_are_counted_by_path_and_kind() -> None:
    twice = [*STUDY, turn("q7", None, "push", epoch=2, status="error", rule="RateLimitError")]
    assert sorted(errors(table(twice)).rows()) == [
        ("m1", "", "TimeoutError", 1),
        ("m1", "push", "RateLimitError", 2),
    ]


def test_unreadable_replies_are_no_errors() -> None:
    assert errors(table([turn("q1", None), turn("q2", None, status="refused")])).height == 0
