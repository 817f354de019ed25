"""JSON: what goes in comes out, whatever it holds."""

import json
import math

import pytest

from holdfast.encoding import json_bytes, json_value

VALUES = {
    "plain": {"a": [1, 2.5, None, True], "\u00e9": "\u4f60 {x} </script>"},
    "half a pair": {"text": "a\ud83d b"},
    "large": {"n": 2**70, "x": 1e-310},
    "deep": json.loads("[" * 250 + "]" * 250),
}


@pytest.mark.parametrize("name", VALUES)
def test_encoded_values_are_decoded(name: str) -> None:
    assert json_value(json_bytes(VALUES[name])) == VALUES[name]


def test_output_of_the_standard_library_is_read() -> None:
    for value in VALUES.values():
        assert json_value(json.dumps(value)) == value
    assert math.isnan(json_value(json.dumps(math.nan)))
    assert math.isnan(json.loads(json_bytes(math.nan)))


def test_invalid_json_is_refused() -> None:
    for text in (b"", b"{", b"{'a': 1}", b"\xff\xfe"):
        with pytest.raises(ValueError, match=r"."):
            json_value(text)
