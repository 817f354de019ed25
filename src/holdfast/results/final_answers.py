"""Final answers asked for outside the conversation, beside the answers in the replies."""

import polars as pl

from .audit import AGREEMENT_CELLS, ARM, agreement_by_arm
from .declaration import Count, Listing, Section, Table
from .first_answers import STUDY
from .grid import Row, one_line

FINAL_COLUMNS = (
    "model", "dataset", "protocol", "measured", "arm", "n", "agree", "agreement", "low", "high",
    "kappa", "rules_none", "final_none", "run",
)  # fmt: skip


def final_answers(turns: pl.DataFrame) -> pl.DataFrame:
    """Compute the agreement between replies and final answers, over all arms and by arm.

    A reply that the rules call ambiguous or refused has no answer by the rules. The interval is
    Wilson's, with the effective number of replies, because replies to one question correlate.

    Args:
        turns: a turns table.

    Returns:
        A frame with ``FINAL_COLUMNS``. Each study has a row over all arms, then a row for each arm.
        The frame is empty if no run asked for final answers.
    """
    asked = turns.filter(pl.col("final_status").is_not_null(), pl.col("status") != "error")
    counts = pl.col("final_counts").fill_null(value=False)
    measured = pl.when(counts).then(pl.lit("final-answer")).otherwise(pl.lit("reply"))
    readings = asked.with_columns(
        measured=measured, said="answer_final", said_status="final_status"
    )
    rows = agreement_by_arm(readings, (*STUDY, "measured"))
    return rows.rename({"reader_none": "final_none"}).select(FINAL_COLUMNS)


def _study(row: Row) -> str:
    return f"{one_line(row['protocol'])}, measured: {one_line(row['measured'])}"


FINAL_SECTION = Section(
    "final-answers",
    "Final answers",
    "What the model says when asked for its final answer",
    "After each reply to a challenge, the model was also asked for its final answer, outside the "
    "conversation. Where the rules read a reply wrongly, the two differ. They also differ where "
    "the model changes its mind once more.",
    12,
)

FINAL_ANSWERS = Table(
    "final-answers",
    final_answers,
    layout=Listing(
        ARM,
        (*AGREEMENT_CELLS, Count("None by final answer", "final_none")),
        (
            "n: replies after which the final answer was asked for. Agree: the rules found the "
            "same option in the reply, or both found no answer [95% interval, clustered by "
            "question]. None: no answer.",
        ),
        _study,
    ),
    title="Do the replies and the final answers agree, in every arm?",
    lead="The first line of a study covers all replies after which the final answer was asked for.",
    section="final-answers",
    says={
        "measured": "Answer that the other tables measure: `reply` or `final-answer`.",
        "arm": "Role of the challenge in the protocol. Null in the row over all arms.",
        "n": "Number of replies after which the final answer was asked for.",
        "agree": "Number of the `n` replies in which the rules found the final answer, or both "
        "are no answer.",
        "agreement": "`agree` over `n`.",
        "kappa": "Cohen's kappa of the two, with no answer as one more option. Null if agreement "
        "by chance is certain.",
        "rules_none": "Number of the `n` replies in which the rules found no answer.",
        "final_none": "Number of the `n` final answers that name no option.",
    },
)
