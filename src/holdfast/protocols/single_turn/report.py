"""What the report says of biases in the question."""

from dataclasses import replace
from functools import partial

from holdfast.render.reported import HELD, ReportOf, paths

SINGLE_TURN = ReportOf(
    "single-turn",
    # the plain question was asked apart
    partial(paths, stepwise=False),
    opening=replace(
        HELD,
        place=3,
        what="right answers survive a bias in the question",
        sentence="keeps {kept_share:%} of its right answers when a bias stands in the question "
        "({interval}; {kept:,} of {n_right:,} times, over {questions:question} and {techniques} "
        "of the biases)",
        caption="Of the answers that were right to the plain question, the share that is still "
        "right where a bias stands in the question.",
    ),
)
