from typing import Any

import pytest

from holdfast.challenges.texts import json_object, json_objects


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
def test_objects_are_found_in_a_text(text: str, objects: list[Any]) -> None:
    assert list(json_objects(text)) == objects


def test_fifty_openings_are_tried_and_prose_braces_ignored() -> None:
    verdict = '{"named": false}'
    assert list(json_objects('{"a' * 49 + verdict)) == [{"named": False}]
    assert list(json_objects('{"a' * 50 + verdict)) == []
    assert list(json_objects(r"\frac{1}{2} " * 1000 + verdict)) == [{"named": False}]


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ('x {"a": 1} {"b": 2}', {"b": 2}),
        ("{} []", {}),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('{bad} {"a": "\n\t"}', {"a": "\n\t"}),
        (r"\frac{1}{2} " * 1000 + '{"a": 1}', {"a": 1}),
        ("nothing", {}),
    ],
)
def test_the_last_object_with_content_is_read(reply: str, content: dict[str, Any]) -> None:
    assert json_object(reply) == content


def test_the_last_object_with_the_requested_keys_is_read() -> None:
    reply = '{"a": 1, "b": 2} {"a": 3, "b": 4} {"a": 5} {}'
    assert json_object(reply, "a", "b") == {"a": 3, "b": 4}
    assert json_object(reply, "a") == {"a": 5}
    assert json_object(reply, "c") == {}
