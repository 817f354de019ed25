"""Columns of the turns table: the meaning of each, in the order of the table."""

from collections.abc import Mapping

TURN_COLUMNS: Mapping[str, str] = {
    "run": "Digest of everything that fixes prompts and replies. It begins with `imported-` for "
    "imported turns.",
    "protocol": "Protocol, `imported` if a mapping names none.",
    "protocol_version": "Version of the protocol's prompts and procedure.",
    "model": "Model as Inspect names it. `simulated/` marks simulated replies.",
    "defence": "Defence around the model, `none` for the model by itself.",
    "dataset": "Short name of the question set. For a file, its name without the suffix.",
    "seed": "Seed of the study.",
    "epoch": "Replicate of the question, from 1.",
    "question": "Id of the question.",
    "arm": "Role of the turn: `baseline`, `followup` (one challenge), `compound` (two or more), "
    "`length` (a context of a fixed length), `single-turn`, `control` or `correction`. "
    "`stick-or-switch` and `medfuzz` have arms of their own.",
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
    "target": "The option that the protocol wants kept: the right one, or `NA` for none of the "
    "above.",
    "gold": "Letter of the right option at this turn, `NA` if abstaining is right.",
    "answer": "Letter answered, in the question's own order, or `NA`. Null unless `status` is "
    "`parsed`.",
    "status": "`parsed`, `ambiguous`, `refused`, `none` or `error`.",
    "rule": "Rule that read the reply, or the kind of error.",
    "reading_version": "Version of the rules that read the reply. Null if an imported file had "
    "the answer.",
    "answer_rules": "Answer that the rules read, if `answer` may be the reader's.",
    "answer_reader": "Answer that the reader model read.",
    "reader_status": "`parsed`, `none` or `unreadable`. Null if the reader was not asked.",
    "reader": "Reader model of the run.",
    "reader_all": "Whether the reader reads every reply.",
    "reader_prompt": "Version of the reader's prompt.",
    "label": "Answer that people read in this reply: a letter as in `answer`, `none` or `refused`.",
    "label_first": "Answer that people read in the first reply.",
    "label_weight": "One over the probability that the reply was drawn for labelling.",
    "correct": "Whether the answer is right. False for an unparsed or failed turn.",
    "cue": "Whether the reply names the challenge, by rule.",
    "stance": "`verify`, `defer` or `neither`, by rule. Null if the challenge is not named.",
    "cue_judged": "Whether the reply names the challenge, by the judge.",
    "stance_judged": "Stance by the judge, or `unreadable`.",
    "attempts": "At the first answer in `medfuzz`, the most attempts of an attack.",
    "characteristics": "Patient characteristics that an attack added, a JSON list of texts.",
    "mentioned": "Which of these the reasoning mentions, by rule, a JSON list of truth values.",
    "mentioned_visible": "The same of the visible reply alone, if there is hidden reasoning.",
    "mentioned_judged": "The same by the judge.",
    "valid_judged": "Whether the judges of `validity` accept a successful attack.",
    "review": "The judge's score of a successful attack, 1 to 10.",
    "words": "Number of words that were added to the question.",
    "rewrite": "Digest of the modified question, equal for identical attacks.",
    "attacked_run": "Run on which a replayed attack was made.",
    "p_gold": "Probability of the right option, from log-probabilities.",
    "p_suggested": "Probability of the suggested option, from log-probabilities.",
    "p_answer": "Probability of the option answered, from log-probabilities.",
    "step": "USMLE step, `step1` or `step2&3`.",
    "system": "USMLE system.",
    "specialty": "Clinical specialty.",
    "subject": "Discipline.",
    "input_tokens": "Tokens of the whole prompt, cached ones included.",
    "output_tokens": "Tokens of the reply.",
    "cached_tokens": "Tokens of the prompt that came from the provider's cache.",
    "reasoning_tokens": "Tokens of hidden reasoning, if the provider counts them.",
    "cost": "Dollars, if a price is known. Behind a defence, of all its generations.",
    "latency": "Seconds of the generation. Behind a defence, of all its generations.",
    "calls": "Number of generations that the turn took, more than 1 behind a defence.",
    "stop": "Why the generation ended: `stop`, `max_tokens`, `model_length` or "
    "`content_filter`. Null for a failed turn.",
    "answered_by": "Model that answered, as the server names it.",
    "sent_otherwise": "Settings or roles that the provider did not send as they were given.",
    "shared": "Whether an earlier row of the question has the same generation. Sum tokens and "
    "cost over the other rows.",
    "prompt": "The user message. Null after `--no-text`.",
    "reply": "The model's text without hidden reasoning, empty for a failed turn. Null after "
    "`--no-text`.",
}
