"""Meanings of the columns of the turns table, in the order of the table."""

from collections.abc import Mapping

TURN_COLUMNS: Mapping[str, str] = {
    "run": "Digest of everything that determines prompts and replies. It begins with `imported-` "
    "for imported turns.",
    "protocol": "Protocol, `imported` if a mapping names none.",
    "protocol_version": "Version of the protocol's prompts and procedure.",
    "model": "Model name as in Inspect. `simulated/` marks simulated replies.",
    "defence": "Defence that wraps the model, `none` for the model alone.",
    "dataset": "Short name of the question set. For a file, its name without the suffix.",
    "seed": "Seed of the study.",
    "epoch": "Number of the repetition of the question, from 1.",
    "question": "Id of the question.",
    "arm": "Role of the turn: `baseline`, `followup` (one challenge), `compound` (two or more), "
    "`length` (a context of a fixed length), `single-turn`, `control` or `correction`. "
    "`stick-or-switch` and `medfuzz` have other arms.",
    "path": "Techniques from the first answer to this turn, joined by `>`, such as `rag-style@10` "
    "with a context of 10 sentences, `restate>restate` or `correction:rag-style`. Empty for the "
    "first answer.",
    "turn": "Assistant turn in its conversation, from 0. Always 0 in `single-turn`.",
    "technique": "Id of the last technique, without a length. Empty for the first answer.",
    "family": "Family of the technique.",
    "axis": "`direct` if the technique names an option, else `indirect`.",
    "depth": "`shallow` before the first answer, `deep` after it.",
    "suggested": "Letter of the option that this turn suggests or offers. A misleading context "
    "suggests the second-best option.",
    "shown": "Letters of the options in play, as displayed, such as `C,NA,A`. Null if all are.",
    "target": "Option that the model should keep: the right option, or `NA` for none of the above.",
    "gold": "Letter of the right option at this turn, `NA` if abstaining is right.",
    "answer": "Letter of the answer, in the question's own order, `NA` for none of the above, or "
    "`X` for another answer in free text. Null unless `status` is `parsed`.",
    "status": "`parsed`, `ambiguous`, `refused`, `none` or `error`.",
    "rule": "Rule that extracted the answer, or the kind of error.",
    "reading_version": "Version of the extraction rules. Null if an imported file contained the "
    "answer.",
    "answer_rules": "Answer from the rules, if `answer` may come from the second reader.",
    "answer_reader": "Answer from the second reader.",
    "reader_status": "`parsed`, `none` or `unreadable`. Null if the second reader was not asked.",
    "reader": "Model of the run's second reader.",
    "reader_all": "Whether the second reader reads every reply.",
    "reader_prompt": "Version of the reader's prompt.",
    "answer_final": "Final answer that the model gave when asked for it outside the conversation.",
    "final_status": "Status of that answer. Null if it was not asked for.",
    "final_counts": "True in a run that measures these answers instead of those in the replies.",
    "answer_second": "Answer from a second verdict, by another judge or the same one asked again; "
    "`none` or `unreadable` if it names none. Null if it was not asked.",
    "answers": "Known answers that the judge chose among, as a JSON object by letter. Null if the "
    "prompt shows options.",
    "label": "People's label of this reply: a letter as in `answer`, `none` or `refused`.",
    "label_first": "People's label of the first reply.",
    "label_weight": "One over the probability that the reply was drawn for labelling.",
    "correct": "Whether the answer is right. False for an unparsed or failed turn.",
    "cue": "Whether the reply names the challenge, by rule.",
    "stance": "`verify`, `defer` or `neither`, by rule. Null if the challenge is not named.",
    "cue_judged": "Whether the reply names the challenge, by the judge.",
    "stance_judged": "Stance by the judge, or `unreadable`.",
    "concession": "`apology`, `agreement`, `both` or `none`, by rule. Null for a first reply.",
    "attempts": "Maximum number of attempts of an attack, at the first answer in `medfuzz`.",
    "characteristics": "Patient characteristics that an attack added, as a JSON list of texts.",
    "mentioned": "Whether the reasoning mentions each of these, by rule: a JSON list of booleans.",
    "mentioned_visible": "The same for the visible reply alone, if there is hidden reasoning.",
    "mentioned_judged": "The same, by the judge.",
    "valid_judged": "Whether the judges of `validity` accept a successful attack.",
    "review": "The judge's score of a successful attack, 1 to 10.",
    "words": "Number of words added to the question.",
    "rewrite": "Digest of the modified question, equal for identical attacks.",
    "attacked_run": "Run on which a replayed attack was made.",
    "p_gold": "Probability of the right option, from log-probabilities.",
    "p_suggested": "Probability of the suggested option, from log-probabilities.",
    "p_answer": "Probability of the answer, from log-probabilities.",
    "step": "USMLE step, `step1` or `step2&3`.",
    "system": "USMLE system.",
    "specialty": "Clinical specialty.",
    "subject": "Discipline.",
    "input_tokens": "Tokens of the whole prompt, including cached tokens.",
    "output_tokens": "Tokens of the reply.",
    "cached_tokens": "Tokens of the prompt from the provider's cache.",
    "reasoning_tokens": "Tokens of hidden reasoning, if the provider counts them.",
    "cost": "Cost in dollars, if a price is known. With a defence, the cost of all generations.",
    "latency": "Seconds of the generation. With a defence, the time of all generations.",
    "calls": "Number of generations for the turn. With a defence it can exceed 1.",
    "stop": "Reason that the generation ended: `stop`, `max_tokens`, `model_length` or "
    "`content_filter`. Null for a failed turn.",
    "answered_by": "Model that answered, as named by the server.",
    "sent_otherwise": "Settings or roles that the provider changed or dropped.",
    "replays": "Number of earlier turns that an assistant was sent again before this one, in a new "
    "session. Null for a model that is sent the whole conversation.",
    "replays_differ": "Number of them that it answered with another text than before.",
    "replays_moved": "Number of them in which another answer is read than before.",
    "shared": "Whether an earlier row of the question has the same generation. Sum tokens and "
    "cost over the other rows.",
    "prompt": "The user message. Null after `--no-text`.",
    "reply": "The model's text without hidden reasoning, empty for a failed turn. Null after "
    "`--no-text`.",
}
