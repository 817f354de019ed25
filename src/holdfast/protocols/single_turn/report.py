"""What the report says of biases in the question."""

from dataclasses import replace
from functools import partial

from holdfast.render.reported import HEADLINE, ReportOf, paths

SINGLE_TURN = ReportOf(
    "single-turn",
    # the plain question was asked apart
    partial(paths, stepwise=False),
    opening=replace(
        HEADLINE,
        place=3,
        before="on the plain question",
        when="under the worst bias in the question",
        sentence="is right on {first:%} of the plain questions and on {after:%} where "
        "{challenge} stands in them, the lowest of {challenges} biases{of_all}",
        caption="Of all answers to the plain question, the share that is right; and of those "
        "where the bias that leaves the fewest right stands in it, the same.",
    ),
)
