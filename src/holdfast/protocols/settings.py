"""Settings: what a protocol can be told; its task, help, checks and record follow from these."""

import dataclasses
import inspect
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, get_type_hints

from inspect_ai.model import GenerateConfig

from holdfast.defences.defence import NO_DEFENCE, DataBlock, load_defence
from holdfast.dialogue.conversation import FinalAnswer
from holdfast.errors import InputError, unknown
from holdfast.files import packaged
from holdfast.questions.bank import BANK_NAME
from holdfast.questions.fields import Fields
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.sampling import shuffled

REPLY, FINAL_ANSWER = "reply", "final-answer"
"""Which answer is measured after a challenge."""

Kind = type["Settings"]
"""A settings class."""


@dataclass(frozen=True)
class Declared:
    """Declaration of a setting, in addition to its name, type and default.

    Attributes:
        help: one sentence, or the start of one.
        at_least: smallest number that the setting accepts, None without a limit.
        noun: name of the number in the error for another one.
        choices: values that the setting accepts, empty without a limit.
        grows: whether a larger value only extends a run, and does not change it.
        input: whether the setting names an input, whose content identifies the run.
    """

    help: str
    at_least: int | None = None
    noun: str | None = None
    choices: Collection[object] = ()
    grows: bool = False
    input: bool = False


def setting(
    default: Any,
    help: str,
    *,
    at_least: int | None = None,
    noun: str | None = None,
    choices: Collection[object] = (),
    grows: bool = False,
    input: bool = False,
) -> Any:
    """Return a field of a settings class, with the attributes of ``Declared``."""
    declared = Declared(help, at_least, noun, choices, grows, input)
    return dataclasses.field(default=default, metadata={"declared": declared})


@dataclass(frozen=True)
class Settings:
    """The settings of a protocol, each a field with its default and help, and what they name.

    A subclass is a frozen dataclass whose docstring says in its first line what is asked. What a
    setting names is a ``cached_property`` beside it.

    Raises:
        InputError: a value is of another type than its field, or out of bounds.
    """

    def __post_init__(self) -> None:
        types, declarations = annotations(type(self)), declared(type(self))
        for name, value in vars(self).items():
            _check(name, value, types[name], declarations[name])

    def load(self) -> None:
        """Load everything that the settings name.

        Raises:
            InputError: a setting names something unknown, or a file cannot be used.
        """
        for kind in reversed(type(self).__mro__):
            for name, value in vars(kind).items():
                if isinstance(value, cached_property):
                    getattr(self, name)

    def check_made(self) -> None:
        """Refuse inputs that are still to be generated."""

    @property
    def simulated(self) -> Mapping[str, str]:
        """Settings whose input is simulated, with what it is in words."""
        return {}

    @property
    def lacks_contexts(self) -> bool:
        """Whether generated contexts would let more be asked."""
        return False

    @property
    def epochs(self) -> int | None:
        """Times each question is asked, where the settings say so: then no two times are alike."""
        return None

    @property
    def puts_documents(self) -> bool:
        """Whether a text is put where an assistant's retrieval would put it."""
        return False

    @property
    def shows_examples(self) -> bool:
        """Whether turns of user and assistant are shown before the question."""
        return False

    def required(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        """Of the helpers that the protocol requires, those that are needed."""
        return roles

    def notes(self) -> list[str]:
        """Inputs that are not used, one line each."""
        return []


@dataclass(frozen=True)
class QuestionSettings(Settings):
    """The settings of everything that is asked about questions."""

    questions: str = setting(
        BANK_NAME,
        "``bank``, a published set (``holdfast list questions``), a file, or "
        "``hf:NAME@REVISION[:SPLIT]``",
        input=True,
    )
    _: KW_ONLY
    fields: str | list[str] | None = setting(
        None, "which column holds what, such as ``stem=vignette,gold=key``", input=True
    )
    shuffle: int | None = setting(
        None, "seed of the order of the questions, and of the sample if there is a limit"
    )
    stratify: str | None = setting(None, "label to stratify the sample by (step, system, ...)")

    @cached_property
    def question_set(self) -> QuestionSet:
        """The questions, in the order in which they are asked.

        Raises:
            InputError: they cannot be loaded, or strata are asked for without a shuffle.
        """
        return self.load_questions()

    def read_questions(self) -> QuestionSet:
        """Read the questions that the settings name, in the order of their source."""
        return question_set(self.questions, self.fields)

    def load_questions(self) -> QuestionSet:
        """Load the questions that the settings name, in the order in which they are asked."""
        question_set_loaded = self.read_questions()
        if self.shuffle is None and self.stratify is not None:
            remedy = "Add --shuffle SEED"
            raise InputError("stratifying needs a random order", field="stratify", remedy=remedy)
        return (
            question_set_loaded
            if self.shuffle is None
            else shuffled(question_set_loaded, self.shuffle, self.stratify)
        )


@dataclass(frozen=True)
class TestedSettings(QuestionSettings):
    """The settings of everything that is asked of a model under test."""

    _: KW_ONLY
    defence: str = setting(
        NO_DEFENCE,
        "defence around the model: ``none``, a name, a TOML file, ``abstain``, or one of these "
        "with ``+abstain``",
        input=True,
    )

    final_answer: bool = setting(
        False,
        "whether the model is also asked for its final answer after every challenged reply and its "
        "controls, outside the conversation",
        grows=True,
    )
    measured: str = setting(
        REPLY,
        "which answer is measured after a challenge: ``reply`` (read from the reply) or "
        "``final-answer`` (the answer to that question)",
        choices=(REPLY, FINAL_ANSWER),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured == FINAL_ANSWER and not self.final_answer:
            problem = "measured is 'final-answer', but final answers are not asked for"
            raise InputError(problem, field="-T", remedy="Add -T final_answer=true")

    @cached_property
    def final(self) -> FinalAnswer | None:
        """How final answers are asked for; None for not at all."""
        if not self.final_answer:
            return None
        wording = packaged(__package__, "final_answer.toml")
        return FinalAnswer(wording["letter"], wording["decision"], self.measured == FINAL_ANSWER)

    @cached_property
    def defence_block(self) -> DataBlock | None:
        """The defence; None for none.

        Raises:
            InputError: there is none of that name, or its file is wrong.
        """
        return load_defence(self.defence)


def declared(settings: Kind) -> dict[str, Declared]:
    """What is declared of each setting, by name."""
    fields = dataclasses.fields(settings)
    return {field.name: field.metadata.get("declared", Declared("")) for field in fields}


def annotations(settings: Kind) -> dict[str, Any]:
    """Type of each setting, by name."""
    hints = get_type_hints(settings)
    return {name: hints[name] for name in declared(settings)}


def signature(settings: Kind) -> inspect.Signature:
    """The settings as the parameters of a function."""
    bare_signature = inspect.signature(settings)
    types = annotations(settings)
    return bare_signature.replace(
        parameters=[
            parameter.replace(annotation=types[name])
            for name, parameter in bare_signature.parameters.items()
        ]
    )


def described(settings: Kind) -> str:
    """The settings as a Markdown table, for the docs: name, default, meaning."""
    rows = ["| setting | default | |", "|---|---|---|"]
    for name, parameter in signature(settings).parameters.items():
        help = declared(settings)[name].help.replace("``", "`").replace("|", "\\|")
        rows.append(f"| `{name}` | `{parameter.default}` | {help} |")
    return "\n".join(rows)


def _check(name: str, value: object, annotation: Any, declaration: Declared) -> None:
    """Refuse a value that Inspect's own command line, which lets any through, has made or left."""
    if declaration.at_least is not None and value is not None:
        if type(value) is not int or value < declaration.at_least:
            value_text = f"'{value}', not {declaration.noun}" if declaration.noun else f"{value!r}"
            remedy = f"Give {declaration.at_least} or more"
            raise InputError(f"{name} is {value_text}", field="-T", remedy=remedy)
    elif declaration.choices and value not in declaration.choices:
        raise unknown(name, str(value), [str(choice) for choice in declaration.choices], "-T")
    elif annotation is bool and type(value) is not bool:
        problem = f"{name} is '{value}', not true or false"
        raise InputError(problem, field="-T", remedy="Give true or false")
    elif annotation in (str, str | None) and not isinstance(value, annotation):
        remedy = "Inspect splits and converts -T values; give it in a --task-config file"
        raise InputError(f"{name} is {value!r}, not one text", field="-T", remedy=remedy)


def question_set(questions: str, fields: str | list[str] | None = None) -> QuestionSet:
    """The question set of that name."""
    return load_questions(questions, Fields.parse(listed(fields)) if fields else None)


def listed(value: str | list[str] | int) -> str:
    """The value as one text: Inspect's own command line splits at commas and reads numbers."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


HISTORIES = ("none", "all", "last", "auto")
"""What of the hidden reasoning of earlier turns is sent again."""


def history(reasoning_history: str) -> GenerateConfig:
    """Whether hidden reasoning of earlier turns is sent again, as a setting of generation."""
    return GenerateConfig.model_validate({"reasoning_history": reasoning_history})
