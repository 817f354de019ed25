"""A judge's reading of a reply: does it name the challenge (MedQA-Followup, appendix C)?"""

from typing import Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges import Cue, Technique, judge_prompt, read_judgement
from holdfast.dialogue import Conversation, Turn
from holdfast.questions import Question

from .estimate import Estimate
from .roles import JUDGE, bound


async def judged_cue(
    technique: Technique, turn: Turn, question: Question, cue: Cue, seed: int
) -> dict[str, Any]:
    """What the judge says of a reply, by the names of the turns table; nothing without one.

    Args:
        technique: the challenge.
        turn: the reply to it.
        question: the question under discussion.
        cue: the lexical reading, for a simulated judge.
        seed: of the judge's sampling.

    Raises:
        BudgetExceededError: the run's budget is spent.
        GenerationFailedError: the judge gave no reply.
    """
    judge = bound(JUDGE)
    if judge is None:
        return {}
    chat = Conversation(
        judge,
        question,
        config=GenerateConfig(temperature=0.0, seed=seed),
        purpose="judgement",
    ).branch(turn.interventions[-1])
    output = await chat.say(
        judge_prompt(technique, turn.prompt, turn.reply), named=cue.named, stance=cue.stance
    )
    judged = read_judgement(output.completion)
    if judged is None:
        return {"cue_judged": None, "stance_judged": "unreadable"}
    return {"cue_judged": judged.named, "stance_judged": judged.stance}


def judgement_estimate(challenge: int, reply_tokens: int) -> Estimate:
    """One judgement of a reply to a challenge of so many characters."""
    return Estimate(1, 300 + challenge // 4 + reply_tokens, 20)
