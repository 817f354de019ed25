"""The USMLE system of each question, by a classifier (MedQA-Followup, appendix D.2, Table 5)."""

from dataclasses import dataclass

from inspect_ai import Task, task
from inspect_ai.model import get_model

from holdfast.challenges import Fault, label_version, read_system, system_label_prompt
from holdfast.dialogue import Conversation
from holdfast.questions import Question, QuestionSet

from .estimate import Estimate
from .preparing import Preparation, Row, obtain, preparation
from .study import asked_questions, settings_of


@dataclass(frozen=True)
class LabelStudy(Preparation):
    """Labelling with every setting resolved.

    Attributes:
        questions: what is labelled.
        seed: of the model's sampling.
    """

    questions: QuestionSet
    seed: int

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """One generation where the first reply can be read."""
        return Estimate(1, len(system_label_prompt(question)) // 4, min(reply_tokens, 10))


def label_study(
    questions: str = "bank",
    seed: int = 42,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
) -> LabelStudy:
    """The USMLE system of each question, by the model as classifier.

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        seed: of the model's sampling.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).

    Raises:
        InputError: a setting that cannot be used.
    """
    return LabelStudy(asked_questions(questions, fields, shuffle, stratify), seed)


@task
@settings_of(label_study)
def systems(study: LabelStudy) -> Task:
    """The USMLE system of each question, by the model as classifier."""

    async def rows(question: Question) -> list[Row]:
        chat = Conversation(get_model(), question, purpose="label")
        found = await obtain(chat, system_label_prompt(question), read_system)
        label = {"missing": found.kind} if isinstance(found, Fault) else {"system": found}
        return [{"question": question.id, "content_hash": question.content_hash, **label}]

    return preparation("systems", study.questions, rows, seed=study.seed, version=label_version())
