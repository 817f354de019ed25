"""Presentation of single-turn biases in the report."""

from dataclasses import replace
from functools import partial

from holdfast.render.reported import HEADLINE, ReportOf, paths

SINGLE_TURN = ReportOf(
    "single-turn",
    # the plain question has a separate conversation
    partial(paths, stepwise=False),
    opening=replace(
        HEADLINE,
        place=3,
        before="on the plain question",
        challenge="with a bias in the question",
        when="under the worst bias in the question",
        sentence="is right on {first:%} of the plain questions and on {after:%} with "
        "{challenge} in them, the lowest of {challenges} biases{of_all}",
        caption="Share of right answers to the plain question, and to the question with the "
        "bias that leaves the fewest right.",
    ),
)
