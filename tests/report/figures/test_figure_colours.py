"""Colours for the colour-blind: simulated, what a figure tells apart by hue alone stays apart."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.results.charts.alluvial import KINDS
from holdfast.results.charts.theme import COLOURS, LESS, MANY_MODELS, MORE, SHAPES

Floats = NDArray[np.float64]

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
VISIONS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
WHITE = TO_XYZ.sum(axis=1)
APART = 10.0
"""Least distance in CIELAB (Delta E 1976); about 2.3 is just noticeable."""


def linear(colour: str) -> Floats:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: Floats) -> Floats:
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first: str, second: str, vision: str) -> float:
    a, b = (lab(VISIONS[vision] @ linear(colour)) for colour in (first, second))
    return float(np.linalg.norm(a - b))


def test_the_distance_follows_its_definition() -> None:
    assert distance("#000000", "#ffffff", "none") == pytest.approx(100, abs=0.1)
    # red and green of one lightness are apart for most, and near each other for a deuteranope
    red, green = "#c85a5a", "#6f8a2f"
    assert distance(red, green, "deuteranopia") < 0.5 * distance(red, green, "none")


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(
    "palette", [COLOURS, tuple(KINDS.values()), (LESS, MORE)], ids=["models", "flows", "heat"]
)
def test_colours_of_a_palette_stay_apart(palette: tuple[str, ...], vision: str) -> None:
    near = {
        pair: round(distance(*pair, vision), 1)
        for pair in combinations(palette, 2)
        if distance(*pair, vision) < APART
    }
    assert not near


def test_each_model_has_its_shape() -> None:
    assert len(set(SHAPES)) == len(SHAPES) >= MANY_MODELS
