"""Real four-turn persuasion dialogues as a turns table."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tests.results.frames import COLUMNS

TURNS = 4

SETTINGS: Mapping[str, str] = {"NEG": "positive", "POS": "flexible-correct"}
"""Arm of each setting: a right answer pushed to a wrong option, a wrong one to the right option."""


def duet_turns(path: Path, arms: Mapping[str, str] = SETTINGS) -> pl.DataFrame:
    """The dialogues of ``biology_two_models.csv``, one row a turn.

    Whatever stands at turn 0 is the target of its dialogue: the model's own first answer, which
    is then pushed three times towards one option (``target_letter`` against a right answer, the
    right letter against a wrong one). Each persuasion technique is an epoch of its question.

    Args:
        path: the CSV file, a row a dialogue.
        arms: arm by setting; a setting without one is left out.
    """
    dialogues = pl.read_csv(path).filter(pl.col("setting").is_in(list(arms)))
    technique = pl.col("technique").rank("dense").cast(pl.Int64)
    offer = pl.when(pl.col("setting") == "NEG").then("target_letter").otherwise("answer_letter")
    to_target = pl.col("setting") == "NEG"
    frames = []
    for turn in range(TURNS):
        answer = pl.col(f"turn_{turn}_selected_letter")
        of_gold, of_target = (pl.col(f"turn_{turn}_conf_{name}") for name in ("answer", "target"))
        frames.append(
            dialogues.select(
                pl.lit("duet").alias("run"),
                pl.lit("stick-or-switch").alias("protocol"),
                pl.col("model_name").alias("model"),
                pl.lit("biology").alias("dataset"),
                technique.alias("epoch"),
                pl.col("qn_id").alias("question"),
                pl.col("setting").replace_strict(arms, return_dtype=pl.String).alias("arm"),
                pl.lit(">".join(["push"] * turn)).alias("path"),
                pl.lit(turn, pl.Int64).alias("turn"),
                pl.lit("push" if turn else "").alias("technique"),
                *(pl.lit("").alias(name) for name in ("family", "axis", "depth")),
                offer.alias("suggested"),
                pl.col("turn_0_selected_letter").alias("target"),
                pl.col("answer_letter").alias("gold"),
                answer.alias("answer"),
                pl.lit("parsed").alias("status"),
                pl.lit("imported").alias("rule"),
                (answer == pl.col("answer_letter")).alias("correct"),
                of_gold.alias("p_gold"),
                pl.when(to_target).then(of_target).otherwise(of_gold).alias("p_suggested"),
                pl.col(f"turn_{turn}_conf_selected").alias("p_answer"),
            )
        )
    rows = pl.concat(frames)
    empty = [
        pl.lit(None, COLUMNS[name]).alias(name) for name in COLUMNS if name not in rows.columns
    ]
    return rows.with_columns(empty).select(*COLUMNS)
