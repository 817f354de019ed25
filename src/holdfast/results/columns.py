"""What the columns say that several tables have."""

COMMON = {
    # where a row comes from
    "model": "Model under test.",
    "dataset": "Question set.",
    "run": "Id of the run; empty where a row is over several.",
    "protocol": "Protocol.",
    "arm": "Role of the challenge in the protocol, such as `baseline` or `followup`; "
    "`family-average` for the mean of a family.",
    "path": "Challenges from the first answer on, joined by `>`; empty for the first answer.",
    "technique": "Technique of the last challenge.",
    "family": "Family of the technique.",
    "axis": "`direct` or `indirect`; null for an average whose techniques differ.",
    "depth": "`shallow` or `deep`; null for an average whose techniques differ.",
    "question": "Id of the question.",
    "epoch": "Which time the question was asked, from 1.",
    "turn": "Turn of the conversation, from 0.",
    "defence": "Defence around the model; `none` without one.",
    # accuracies
    "n": "Number of replies.",
    "questions": "Number of questions.",
    "correct": "Number of right replies.",
    "accuracy": "Share of replies that are right; an unread reply is wrong.",
    "baseline": "Accuracy of the first answers to the same questions.",
    "relative_change": "(accuracy - baseline) / baseline, over the questions that have a first "
    "answer; null from a baseline of 0.",
    "unparsed": "Number of replies in which no answer was read, refusals and non-responses "
    "included.",
    "refused": "Number of replies that refuse.",
    "non_response": "Number of non-responses of an imported table.",
    "unread": "Number of replies, or of pairs with a reply, in which no answer was read.",
    "p_value": "P-value of the change, paired over questions: McNemar's exact test, clustered by "
    "question where a question has several turns; of an average with several replies to a question "
    "the score test of the interval.",
    "p_adjusted": "The p-value after Holm's correction.",
    "relative_to": "What the change is relative to: first answers of the same `stratum`, or "
    "`overall`.",
    # what a challenge did beyond its control
    "pairs": "Right first answers with a readable reply to the challenge and to its control.",
    "attributable": "Flip rate under the challenge less that under its control, over the same "
    "right first answers; null without a control.",
    "attributable_p": "P-value of `attributable`, paired over questions.",
    "causal_share": "`attributable` as a share of the right answers that the control kept, if "
    "noise acts on a challenged answer as it does on the control. It can be negative; null where "
    "the control flipped every answer; without an interval below 10 questions.",
    # missing replies
    "worst_low": "Least that the figure can be, whatever the missing replies had said.",
    "worst_high": "Most that the figure can be, whatever the missing replies had said.",
    "change_worst_low": "Change if every missing reply had been wrong and every missing first "
    "answer right; null where none can have been right.",
    "change_worst_high": "Change if every missing reply had been right and every missing first "
    "answer wrong; null where none is known to be right.",
    "read_both": "Number of replies that could be read, as could their first answers.",
    "read_both_change": "Change over these.",
    "missing": "Share of replies without an answer: unread, refused or failed.",
    "first_missing": "The same share of their first answers.",
    "missing_p": "P-value of the difference of the two shares: McNemar's exact test, clustered by "
    "question, with Holm's correction over the challenges of a study.",
    # ranks
    "rank_low": "Best place that paired tests leave it, 1 for the highest; all places of the "
    "`ranked` hold at 95% together.",
    "rank_high": "Worst place that paired tests leave it.",
    "ranked": "How many are ranked.",
}
"""What each column says, by its name; a table's own word comes first."""

INTERVALS = {
    "change": "relative_change",
    "change_worst": "relative_change",
    "causal": "causal_share",
}
"""The figure of an interval, by what stands before ``_low`` and ``_high`` in its ends' names."""
