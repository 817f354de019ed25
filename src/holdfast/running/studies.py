"""Studies of a run: protocols with their settings, and their estimates."""

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike, fspath
from typing import Any

from inspect_ai.model import Model
from pydantic import TypeAdapter, ValidationError

from holdfast.challenges.catalogue import CONTEXTS
from holdfast.challenges.prepared import GENERATE
from holdfast.defences.defence import NO_DEFENCE, Confidence, HandOver, Prompt
from holdfast.dialogue.conversation import TESTED_ARM
from holdfast.errors import InputError, counted, unknown
from holdfast.protocols.installed import GENERATIONS, PROTOCOLS
from holdfast.protocols.protocol import READER, READER_ALL, CallCount, Study, StudyPlan
from holdfast.protocols.second_reading import check_reader, readings_of
from holdfast.protocols.settings import signature
from holdfast.questions.bank import BANK_NAME
from holdfast.questions.loading import QuestionSet
from holdfast.results.runs import is_simulated
from holdfast.simulation import name_in_results

from .models import price_of
from .provider_options import LARGEST, REPLY_TOKENS

OPTION_NAMES = {
    "contexts": "contexts",
    "distractors": "wrong options",
    "labels": "labels",
    "plausibility": "verdicts",
}
"""Name of each preparation's rows, in words."""


def planned(
    protocols: Sequence[str],
    questions: Sequence[str],
    settings: Mapping[str, Any],
    epochs: int | None = None,
    defences: Sequence[str] = (),
) -> list[Study]:
    """Return the studies of each protocol on each question set, without and with each defence."""
    studies = []
    source: dict[str, str] = {}
    taken = {p for name in protocols for p in signature(PROTOCOLS[name].settings).parameters}
    for name in sorted(settings.keys() - taken):
        problem = "is taken by no protocol of this run"
        raise InputError(problem, field=f"--{name}", remedy="Remove it")
    for name in dict.fromkeys(protocols):
        protocol = PROTOCOLS[name]
        parameters = signature(protocol.settings).parameters
        args = {k: v for k, v in settings.items() if k in parameters and v is not None}
        if defences and "defence" not in parameters:
            problem = f"'{name}' takes no defence"
            raise InputError(problem, field="--defence", remedy="Remove the defence")
        under = (
            [{"defence": defence_name} for defence_name in dict.fromkeys([NO_DEFENCE, *defences])]
            if defences
            else [{}]
        )
        for question_source, defence in product(dict.fromkeys(questions), under):
            study = protocol.study(
                epochs=epochs, **{"questions": question_source, **args, **defence}
            )
            _check_acts(study)
            set_name = study.questions.name
            if source.setdefault(set_name, question_source) != question_source:
                raise InputError(
                    f"'{source[set_name]}' and '{question_source}' would both be called "
                    f"'{set_name}' in the tables",
                    field="--questions",
                    remedy="Rename a file",
                )
            studies.append(study)
    return studies


def _check_acts(study: Study) -> None:
    """Raise an error for a defence of later turns in a protocol without later turns."""
    if study.defence is None or not study.questions.questions:
        return
    question, plain = study.questions.questions[0], study.with_args(defence=NO_DEFENCE)
    plan = study.explorer().outline(question)
    if not plan.goes_on and plan.possible == plain.explorer().outline(question).possible:
        raise InputError(
            f"{study.name} has no later turn, which the defence '{study.defence.id}' needs",
            field="--defence",
            remedy="Give a prompt defence or vote, or another protocol",
        )


def settings_of(
    protocols: Sequence[str], task_args: Mapping[str, Any] | Sequence[str]
) -> dict[str, Any]:
    """Return the settings, each of which at least one protocol must have."""
    parameters: dict[str, inspect.Parameter] = {}
    for name in protocols:
        if name not in PROTOCOLS:
            raise unknown("protocol", name, PROTOCOLS, "PROTOCOL")
        parameters |= signature(PROTOCOLS[name].settings).parameters
    for name in (arguments := named_args(task_args)):
        if name not in parameters:
            raise unknown("setting", name, parameters, "-T")
    return {name: _convert(value, parameters[name]) for name, value in arguments.items()}


def named_args(task_args: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return the settings of protocols by name."""
    if isinstance(task_args, Mapping):
        return dict(task_args)
    values: dict[str, Any] = {}
    for argument in task_args:
        name, equals, value = argument.partition("=")
        if not equals:
            raise InputError(f"'{argument}' is not NAME=VALUE", field="-T", remedy="Add a value")
        if name in values:
            raise InputError(f"'{name}' is given twice", field="-T", remedy="Give it once")
        values[name] = value
    return values


def _convert(value: Any, parameter: inspect.Parameter) -> Any:
    value = fspath(value) if isinstance(value, PathLike) else value
    try:
        typed_value = TypeAdapter(parameter.annotation).validate_python(value)
        if isinstance(typed_value, int) and abs(typed_value) > LARGEST:
            raise InputError(
                f"{parameter.name} is '{value}'", field="-T", remedy=f"Give {LARGEST} at most"
            )
        return typed_value
    except ValidationError as error:
        expected_type = error.errors()[0]["type"].partition("_")[0]
        kind = {"int": "a whole number", "bool": "true or false"}.get(expected_type, expected_type)
        raise InputError(
            f"{parameter.name} is '{value}', not {kind}", field="-T", remedy=f"Give {kind}"
        ) from None


def check_roles(studies: Sequence[Study], bound: Collection[str]) -> None:
    """Raise an error for studies without a required helper."""
    for study in studies:
        defence = study.defence
        for role in (
            *study.required,
            *([defence.role] if defence and defence.role else []),
        ):
            if role not in bound:
                raise InputError(
                    f"{study.called} needs a model in the role '{role}'",
                    field="--model-role",
                    remedy=f"Give --model-role {role}=MODEL; it is never the model under test",
                )


def check_readers(bound: Mapping[str, object], tested_models: Iterable[object]) -> None:
    """Raise an error for a reader that would read its own replies."""
    for role in (READER, READER_ALL):
        if role in bound:
            check_reader(str(bound[role]), [str(model) for model in tested_models])


def check_assistants(studies: Sequence[Study], tested_models: Iterable[Model]) -> None:
    """Refuse what an assistant, or a model that is none, cannot be asked.

    Raises:
        InputError: there is no place for a document, for examples, or for a defence's message.
    """
    for study, model in product(studies, tested_models):
        if study.settings.puts_documents and not getattr(model.api, "takes_documents", False):
            raise InputError(
                f"'{model}' has no place for a document",
                field="-T inject",
                remedy="Write {{ document }} into the body of the target file, or add [document]. "
                "A Python function needs a parameter 'document'",
            )
        defence = study.defence
        while isinstance(defence, HandOver):
            defence = defence.inner
        is_assistant = hasattr(model.api, "describe")
        if is_assistant and isinstance(defence, Confidence) and defence.samples == 1:
            raise InputError(
                f"'{model}' gives no log-probabilities, which the defence '{defence.id}' needs",
                field="--defence",
                remedy="Give the defence 'agreement'",
            )
        if not getattr(model.api, "is_stateful", False):
            continue
        if study.settings.shows_examples:
            raise InputError(
                f"'{model}' is sent the newest turn alone, and {study.called} shows examples with "
                "their answers",
                field="--target",
                remedy="Send {{ messages }}, or remove the examples",
            )
        takes_system = getattr(model.api, "takes_system", True)
        if isinstance(defence, Prompt) and defence.system and not takes_system:
            raise InputError(
                f"'{model}' is sent no system message, which the defence '{defence.id}' is",
                field="--defence",
                remedy="Write {{ system }} into the target file, or give another defence",
            )


def generation(
    name: str, args: Mapping[str, Any], question_set: QuestionSet | None = None
) -> Study:
    """Return a generation with the settings that it has.

    Args:
        name: name of the generation.
        args: settings, possibly of a study that needs it.
        question_set: the questions, if already loaded.
    """
    parameters = signature(GENERATIONS[name].settings).parameters
    chosen_args = {k: v for k, v in args.items() if k in parameters and v is not None}
    return GENERATIONS[name].study(question_set=question_set, **chosen_args)


def simulated_inputs(study: Study, generator: object) -> tuple[str, ...]:
    """Return the simulated inputs that reach the model, including those to generate."""
    files = [
        OPTION_NAMES[name]
        for setting, name in study.protocol.generated.items()
        if study.args.get(setting) == GENERATE and study.needs(setting)
    ]
    return (*study.simulated, *(files if is_simulated(str(generator)) else ()))


def check_inputs(
    studies: Sequence[Study],
    generator: object,
    tested_models: Iterable[object],
    *,
    is_allowed: bool,
) -> None:
    """Raise an error if a real model would receive inputs without medical meaning."""
    real = next((str(model) for model in tested_models if not is_simulated(str(model))), None)
    for study in studies:
        inputs = simulated_inputs(study, generator)
        if inputs and real and not is_allowed:
            raise InputError(
                f"the {' and '.join(inputs)} of '{study.questions.name}' are simulated and "
                f"have no medical content, and '{real}' is a real model",
                field=study.called,
                remedy="Let a real model write them (--model-role generator=MODEL), or give "
                "--allow-simulated-inputs, which marks every result SIMULATED",
            )


def generating(
    protocols: Sequence[str], task_args: Mapping[str, Any], generator: bool
) -> dict[str, Any]:
    """Return the settings, with inputs to generate if a generator is bound and needed."""
    settings = dict(task_args)
    for name in protocols:
        for setting in PROTOCOLS[name].generated if name in PROTOCOLS else ():
            if generator and settings.get(setting) in (None, "auto"):
                settings[setting] = GENERATE
            if settings.get(setting) == GENERATE and not generator:
                raise InputError(
                    "no model has the role 'generator'",
                    field=setting,
                    remedy="Give --model-role generator=MODEL, or a file",
                )
    return settings


def estimates(
    studies: Sequence[Study],
    models: Sequence[str],
    roles: Mapping[str, str],
    limit: int | None = None,
    reply_tokens: int = REPLY_TOKENS,
    stateful: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Estimate calls, tokens and dollars of the studies of one command.

    ``replays`` counts the earlier turns that the models in ``stateful`` receive again.
    """
    rows: list[dict[str, Any]] = []

    def add(name: str, by: str, study: Study, n: int, count: CallCount, *, exact: bool) -> None:
        price = price_of(by)
        cost = (count.input_tokens * price.input + count.output_tokens * price.output) / 1e6 \
            if price else None  # fmt: skip
        rows.append(
            {
                "protocol": name,
                "defence": study.defence.id if study.defence else NO_DEFENCE,
                "model": by,
                "dataset": study.questions.name,
                "questions": n,
                "generations": count.most_calls,
                "at_least": count.fewest_calls,
                "exact": exact and count.fewest_calls == count.most_calls,
                "input_tokens": count.input_tokens,
                "output_tokens": count.output_tokens,
                "cost": cost,
            }
        )

    earlier: list[StudyPlan] = []
    for study in studies:
        exact = True
        for setting, name in study.protocol.generated.items():
            if study.args.get(setting) == GENERATE and study.needs(setting):
                making = generation(name, study.args, study.questions)
                plan = making.plan(limit, reply_tokens=reply_tokens)
                add(name, roles["generator"], making, plan.questions, plan.counts[TESTED_ARM],
                    exact=False)  # fmt: skip
                exact = False  # inputs that cannot be generated are skipped
        plan = study.plan(limit, roles, reply_tokens=reply_tokens)
        call_count = plan.tested(earlier, study.epochs)
        earlier.append(plan)
        counts = {**plan.counts, **readings_of(call_count, reply_tokens)}
        inputs = simulated_inputs(study, roles.get("generator"))
        for model in models:
            add(study.name, model, study, plan.questions, call_count, exact=exact)
            if model in stateful:
                rows[-1]["replays"] = call_count.replays
            rows[-1]["model"] = name_in_results(model, inputs)
            for role, by in roles.items():
                if role in counts and counts[role].most_calls:
                    add(f"{study.name}: {role}", by, study, plan.questions, counts[role],
                        exact=exact)  # fmt: skip
    return rows


@dataclass(frozen=True)
class Lacking:
    """Techniques skipped for every question, because there are no contexts.

    Attributes:
        paths: the skipped techniques.
        techniques: number of all techniques, including these.
        questions: name of the question set.
        source: value of ``--questions``.
        generations: number of generations for the contexts.
    """

    paths: tuple[str, ...]
    techniques: int
    questions: str
    source: str
    generations: int

    def __str__(self) -> str:
        """Return a sentence with the remedy."""
        return (
            f"{len(self.paths)} of {counted(self.techniques, 'technique')} skipped: no "
            f"contexts for {self.questions}. Write them with 'holdfast generate contexts "
            f"--questions {self.source} --model MODEL' "
            f"({counted(self.generations, 'generation')}), then repeat the command with -T "
            "contexts=contexts.jsonl"
        )


def lacking(
    studies: Sequence[Study], limit: int | None, roles: Iterable[str] = ()
) -> list[Lacking]:
    """Return the techniques that each study skips because there are no contexts."""
    lacking = []
    for study in studies:
        if not study.settings.lacks_contexts:
            continue  # missing rows of a file of contexts are reported by technique
        plan = study.plan(limit, roles)
        why = {
            path: sum(n for reason, n in counts.items() if reason.removeprefix("no ") in CONTEXTS)
            for path, counts in plan.skipped_paths.items()
        }
        skipped_paths = tuple(
            path for path, n in why.items() if n == plan.questions and ">" not in path
        )
        if skipped_paths:
            making = generation("contexts", study.args, study.questions).plan()
            source = str(study.args.get("questions", BANK_NAME))
            lacking.append(
                Lacking(
                    skipped_paths,
                    len(skipped_paths)
                    + sum(">" not in path for arm, path in plan.paths if arm == "followup"),
                    study.questions.name,
                    source,
                    making.counts[TESTED_ARM].fewest_calls,
                )
            )
    return lacking
