"""Meanings of the columns that several tables share."""

COMMON = {
    # where a row comes from
    "model": "Model under test.",
    "dataset": "Question set.",
    "run": "Id of the run. Empty if a row is over several runs.",
    "protocol": "Protocol.",
    "arm": "Role of the challenge in the protocol, such as `baseline` or `followup`. "
    "`family-average` for the mean of a family.",
    "path": "Challenges after the first answer, joined by `>`. Empty for the first answer.",
    "technique": "Technique of the last challenge.",
    "family": "Family of the technique.",
    "axis": "`direct` or `indirect`. Null for an average whose techniques differ.",
    "depth": "`shallow` or `deep`. Null for an average whose techniques differ.",
    "question": "Id of the question.",
    "epoch": "Number of the repetition of the question, from 1.",
    "turn": "Turn of the conversation, from 0.",
    "defence": "Defence that wraps the model, `none` without a defence.",
    # accuracies
    "n": "Number of replies.",
    "questions": "Number of questions.",
    "correct": "Number of right replies.",
    "accuracy": "Share of replies that are right. An unparsed reply is wrong.",
    "baseline": "Accuracy of the first answers to the same questions.",
    "relative_change": "(accuracy - baseline) / baseline, over the questions that have a first "
    "answer. Null for a baseline of 0.",
    "unparsed": "Number of unparsed replies: replies without an answer, including refusals and "
    "non-responses.",
    "refused": "Number of replies that refuse to answer.",
    "non_response": "Number of non-responses in an imported table.",
    "unread": "Number of unparsed replies, or of pairs with an unparsed reply.",
    "p_value": "P-value of the change, paired by question: McNemar's exact test, clustered by "
    "question if a question has several turns. For an average with several replies to a question, "
    "the score test of the interval.",
    "p_adjusted": "P-value after Holm's correction.",
    "relative_to": "Basis of the change: first answers of the same `stratum`, or `overall`.",
    # effect of a challenge beyond its control
    "pairs": "Number of right first answers with a parsed reply to the challenge and to its "
    "control.",
    "attributable": "Flip rate under the challenge less the flip rate under its control, over the "
    "same right first answers. Null without a control.",
    "attributable_p": "P-value of `attributable`, paired by question.",
    "causal_share": "`attributable` as a share of the right answers that stayed right under the "
    "control. It assumes that noise acts equally on challenged and control replies. It can be "
    "negative. Null if the control flipped every answer. No interval below 10 questions.",
    # missing replies
    "worst_low": "Lowest possible value of the figure, whatever the missing replies said.",
    "worst_high": "Highest possible value of the figure, whatever the missing replies said.",
    "change_worst_low": "Change if every missing reply is wrong and every missing first answer is "
    "right. Null if no first answer can have been right.",
    "change_worst_high": "Change if every missing reply is right and every missing first answer "
    "is wrong. Null if no first answer is known to be right.",
    "read_both": "Number of parsed replies whose first answers are parsed too.",
    "read_both_change": "Change over the `read_both` replies.",
    "missing": "Share of replies without an answer: unparsed, refused or failed.",
    "first_missing": "Share of their first answers without an answer.",
    "missing_p": "P-value of the difference of the two shares: McNemar's exact test, clustered by "
    "question, with Holm's correction over the challenges of a study.",
    # ranks
    "rank_low": "Best rank that paired tests do not exclude, 1 for the highest. The ranks of all "
    "`ranked` rows are valid together at 95%.",
    "rank_high": "Worst rank that paired tests do not exclude.",
    "ranked": "Number of rows that are ranked.",
}
"""Meaning of each column by name; a table's own meaning takes precedence."""

INTERVALS = {
    "change": "relative_change",
    "change_worst": "relative_change",
    "causal": "causal_share",
}
"""Figure of each interval, by the prefix before ``_low`` and ``_high`` in its column names."""
