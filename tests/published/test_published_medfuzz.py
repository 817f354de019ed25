import re
from decimal import ROUND_DOWN, Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from holdfast.protocols.medfuzz.published import MedFuzz, medfuzz

PAPER = medfuzz()


@pytest.fixture(scope="module")
def text(resources: Path) -> str:
    return next(resources.glob("papers/004_*.txt")).read_text("utf-8")


def test_figures_match_the_text(text: str) -> None:
    assert f"human performance on {PAPER.human_examination} ({PAPER.human_accuracy})" in text
    assert f"subset of {PAPER.questions} question items" in text
    assert f"attack with K={PAPER.attempts} iterations" in text
    assert f"using {PAPER.controls} “control fuzzes” each" in text
    assert f"temperature of {PAPER.temperature} for each model" in text
    assert f"the attacker LLM is GPT-4 (version {PAPER.attacker})" in text
    assert "run the following procedure 5 times" in text
    assert PAPER.replicates == 5
    assert f"any of the fuzzed information ({PAPER.unfaithful} for both models)" in text
    assert all(model in text for model in PAPER.models)


def test_p_values_match_the_text_in_order(text: str) -> None:
    (sentence,) = re.findall(r"The case study in 3\.1 .*? and \.63\.", text)
    p_values = re.findall(r"<1/30|(?<![\d\w.])\.\d+", sentence)
    assert tuple(p_values) == PAPER.p_values
    # four cases, five p-values
    assert "these four cases to acquire p-values" in text
    assert len(PAPER.p_values) == 5


def test_each_p_value_is_a_share_of_the_controls_cut_to_its_digits() -> None:
    for p_value in PAPER.p_values[1:]:
        places = Decimal(1).scaleb(-len(p_value.lstrip(".")))
        shares = [Decimal(b) / PAPER.controls for b in range(PAPER.controls + 1)]
        assert Decimal(p_value) in [share.quantize(places, ROUND_DOWN) for share in shares]


def test_the_human_reference_is_a_share() -> None:
    assert PAPER.human_share == pytest.approx(0.766)


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ValidationError):
        MedFuzz.model_validate(PAPER.model_dump() | {"accuracy": 0.5})
    with pytest.raises(ValidationError):
        MedFuzz.model_validate(PAPER.model_dump() | {"attempts": 0})
