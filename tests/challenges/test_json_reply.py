from typing import Any

import pytest

from holdfast.challenges.texts import json_objects


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ('{"a": 1} and {"b": {"c": 2}}', [{"a": 1}, {"b": {"c": 2}}]),
        ('{\n  "a": "one\ntwo"\n}', [{"a": "one\ntwo"}]),
        ('{it} {"a" {"b": 1}', [{"b": 1}]),
        ('{"a": "{}"} {}', [{"a": "{}"}, {}]),
        ('[{"a": 1}] 5 null', [{"a": 1}]),
        ("", []),
    ],
)
def test_the_objects_in_a_text(text: str, objects: list[Any]) -> None:
    assert list(json_objects(text)) == objects


def test_fifty_openings_are_tried_and_braces_of_prose_are_none() -> None:
    verdict = '{"named": false}'
    assert list(json_objects('{"a' * 49 + verdict)) == [{"named": False}]
    assert list(json_objects('{"a' * 50 + verdict)) == []
    assert list(json_objects(r"\frac{1}{2} " * 1000 + verdict)) == [{"named": False}]
