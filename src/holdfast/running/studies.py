"""The studies that a run names: protocols with their settings, and what they will take."""

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from inspect_ai import Task
from pydantic import TypeAdapter, ValidationError

from holdfast.challenges import CONTEXTS, GENERATE
from holdfast.defences import NONE, wording_of
from holdfast.errors import InputError, counted, unknown
from holdfast.protocols import (
    PREPARATIONS,
    PROTOCOLS,
    READER,
    READER_ALL,
    TESTS,
    Estimate,
    Protocol,
    Study,
    check_reader,
    opening_estimate,
    readings_of,
    reasons,
    resolved,
)
from holdfast.protocols.followup.context_generation import ContextStudy
from holdfast.protocols.followup.protocol import FollowupStudy
from holdfast.questions import BANK_NAME, Question
from holdfast.results import INPUTS, is_simulated
from holdfast.simulation import name_in_results

from .models import price_of
from .options import LARGEST, REPLY_TOKENS

CALLED = {
    "contexts": "contexts",
    "distractors": "wrong options",
    "systems": "labels",
    "plausibility": "verdicts",
}
"""What a preparation makes, in words."""


@dataclass(frozen=True)
class Planned:
    """A protocol with the settings given, by the parameters of its task, and with them resolved.

    ``epochs`` are the times that each question is asked, None where the protocol says.
    """

    name: str
    protocol: Protocol
    args: Mapping[str, Any]
    study: Study
    epochs: int | None = None

    @property
    def called(self) -> str:
        """The protocol, and the defence where there is one."""
        defence = self.study.defence
        return f"{self.name} with {defence.id}" if defence else self.name

    def arguments(self) -> dict[str, Any]:
        """Every setting, given or default."""
        parameters = inspect.signature(self.protocol.task).parameters
        return {name: self.args.get(name, one.default) for name, one in parameters.items()}

    def settings(self) -> dict[str, Any]:
        """Every setting but the inputs, by the name of ``run_settings``."""
        return {f"-T {name}": value for name, value in self.arguments().items()
                if name not in INPUTS}  # fmt: skip

    def task(self) -> Task:
        """The study's Inspect task."""
        with resolved(self.study):
            return self.protocol.task(**self.args)

    def with_args(self, **args: Any) -> "Planned":
        """The same protocol with other settings."""
        return _resolved(self.name, self.protocol, {**self.args, **args}, self.epochs)


def planned(
    protocols: Sequence[str],
    questions: Sequence[str],
    common: Mapping[str, Any],
    task_args: Mapping[str, Any] | Sequence[str],
    epochs: int | None = None,
    defences: Sequence[str] = (),
) -> list[Planned]:
    """Resolve the settings of each protocol on each question set, without and with each defence."""
    found = []
    parsed = _parsed(protocols, task_args)
    source: dict[str, str] = {}
    for name in dict.fromkeys(protocols):
        protocol = PROTOCOLS[name]
        known = inspect.signature(protocol.task).parameters
        args = {k: v for k, v in {**common, **parsed}.items() if k in known and v is not None}
        if defences and "defence" not in known:
            what = f"'{name}' takes no defence"
            raise InputError(what, field="--defence", remedy="Run it without one")
        under = [{"defence": one} for one in dict.fromkeys([NONE, *defences])] if defences else [{}]
        for asked, defence in product(dict.fromkeys(questions), under):
            study = _resolved(name, protocol, {"questions": asked, **args, **defence}, epochs)
            _check_acts(study)
            called = study.study.questions.name
            if source.setdefault(called, asked) != asked:
                raise InputError(
                    f"'{source[called]}' and '{asked}' are both called '{called}' in the tables",
                    field="--questions",
                    remedy="Rename a file",
                )
            found.append(study)
    return found


def _resolved(
    name: str, protocol: Protocol, args: Mapping[str, Any], epochs: int | None = None
) -> Planned:
    study: Study = protocol.study(**args)
    return Planned(name, protocol, args, study.repeated(epochs) if epochs else study, epochs)


def _check_acts(planned: Planned) -> None:
    """Refuse a defence of later turns where there are none."""
    study = planned.study
    if study.defence and not study.defence.opens and study.questions.questions:
        turns = study.turns(study.questions.questions[0])
        if turns.gone_on == 0:
            raise InputError(
                f"{planned.name} says nothing to an answer, and '{study.defence.id}' acts there",
                field="--defence",
                remedy="Give a prompt defence or vote, or another protocol",
            )


def _parsed(
    protocols: Sequence[str], task_args: Mapping[str, Any] | Sequence[str]
) -> dict[str, Any]:
    """The settings given by ``-T``, each of which some protocol must know."""
    parameters: dict[str, inspect.Parameter] = {}
    for name in protocols:
        if name not in PROTOCOLS:
            raise unknown("protocol", name, PROTOCOLS, "PROTOCOL")
        parameters |= inspect.signature(PROTOCOLS[name].task).parameters
    parsed: dict[str, Any] = {}
    for name, value in named_args(task_args):
        if name not in parameters:
            raise unknown("setting", name, parameters, "-T")
        if name in parsed:
            raise InputError(f"'{name}' is given twice", field="-T", remedy="Give it once")
        parsed[name] = _of_type(value, parameters[name])
    return parsed


def named_args(task_args: Mapping[str, Any] | Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Settings of protocols by name, as they were given."""
    if isinstance(task_args, Mapping):
        yield from task_args.items()
        return
    for argument in task_args:
        name, equals, value = argument.partition("=")
        if not equals:
            raise InputError(f"'{argument}' is not NAME=VALUE", field="-T", remedy="Add a value")
        yield name, value


def _of_type(value: Any, parameter: inspect.Parameter) -> Any:
    try:
        typed = TypeAdapter(parameter.annotation).validate_python(value)
        if isinstance(typed, int) and abs(typed) > LARGEST:
            raise InputError(
                f"{parameter.name} is '{value}'", field="-T", remedy=f"Give {LARGEST} at the most"
            )
        return typed
    except ValidationError as error:
        expected = error.errors()[0]["type"].partition("_")[0]
        kind = {"int": "a whole number", "bool": "true or false"}.get(expected, expected)
        raise InputError(
            f"{parameter.name} is '{value}', not {kind}", field="-T", remedy=f"Give {kind}"
        ) from None


def check_roles(studies: Sequence[Planned], bound: Collection[str]) -> None:
    """Refuse studies that lack a helper."""
    for study in studies:
        defence = study.study.defence
        for role in (*study.study.required, *([defence.role] if defence and defence.role else [])):
            if role not in bound:
                raise InputError(
                    f"{study.called} needs the role '{role}', and it is not bound",
                    field="--model-role",
                    remedy=f"Give --model-role {role}=MODEL; it is never the model under test",
                )


def check_readers(bound: Mapping[str, object], tested: Iterable[object]) -> None:
    """Refuse a reader that would read its own replies."""
    for role in (READER, READER_ALL):
        if role in bound:
            check_reader(str(bound[role]), [str(model) for model in tested])


def simulated_inputs(planned: Planned, generator: object) -> tuple[str, ...]:
    """What reaches the model and is simulated, with what the generator is to make."""
    made = [
        CALLED[name]
        for setting, name in planned.protocol.generated.items()
        if planned.args.get(setting) == GENERATE and planned.study.needs(setting)
    ]
    return (*planned.study.simulated, *(made if is_simulated(str(generator)) else ()))


def check_inputs(
    studies: Sequence[Planned], generator: object, tested: Iterable[object], *, allowed: bool
) -> None:
    """Refuse to put to a real model what holds the place of medicine in a simulated run."""
    real = next((str(model) for model in tested if not is_simulated(str(model))), None)
    for planned in studies:
        inputs = simulated_inputs(planned, generator)
        if inputs and real and not allowed:
            raise InputError(
                f"the {' and '.join(inputs)} of '{planned.study.questions.name}' are simulated and "
                f"say nothing of medicine, and '{real}' is a real model",
                field=planned.called,
                remedy="Have them written by a real model with --generator MODEL, or give "
                "--allow-simulated-inputs: every result is then marked SIMULATED",
            )


def preparation(name: str, args: Mapping[str, Any]) -> Planned:
    """A preparation with those of the settings that it knows."""
    known = inspect.signature(PREPARATIONS[name].task).parameters
    args = {k: v for k, v in args.items() if k in known and v is not None}
    return _resolved(name, PREPARATIONS[name], args)


def generating(
    protocols: Sequence[str], common: Mapping[str, Any], generator: bool
) -> dict[str, Any]:
    """The common settings, with what a generator is to make where it is bound and needed."""
    settings = dict(common)
    for name in protocols:
        for setting in PROTOCOLS[name].generated if name in PROTOCOLS else ():
            if generator and settings.get(setting) in (None, "auto"):
                settings[setting] = GENERATE
            if settings.get(setting) == GENERATE and not generator:
                raise InputError(
                    "the role 'generator' is not bound",
                    field=setting,
                    remedy="Give --generator MODEL, or a file",
                )
    return settings


def log_test(name: str, args: Mapping[str, Any]) -> Planned:
    """A test of what the logs of a protocol hold, with its settings."""
    return _resolved(name, TESTS[name], args)


def estimates(
    studies: Sequence[Planned],
    models: Sequence[str],
    roles: Mapping[str, str],
    limit: int | None = None,
    epochs: int | None = None,
    reply_tokens: int = REPLY_TOKENS,
) -> list[dict[str, Any]]:
    """Generations, tokens and dollars of studies that are put to models by one command."""
    rows: list[dict[str, Any]] = []

    def add(name: str, by: str, study: Study, asked: int, total: Estimate, *, exact: bool) -> None:
        price = price_of(by)
        cost = (total.input_tokens * price.input + total.output_tokens * price.output) / 1e6 \
            if price else None  # fmt: skip
        rows.append(
            {
                "protocol": name,
                "defence": study.defence.id if study.defence else NONE,
                "model": by,
                "dataset": study.questions.name,
                "questions": asked,
                "generations": total.generations,
                "at_least": total.least,
                "exact": exact,
                "input_tokens": total.input_tokens,
                "output_tokens": total.output_tokens,
                "cost": cost,
            }
        )

    opened, shared = set[str](), set[object]()
    for planned in studies:
        study, defence = planned.study, planned.study.defence
        asked = study.questions.first(limit).questions
        exact = study.exact and (study.defence is None or study.defence.exact)
        for setting, name in planned.protocol.generated.items():
            if planned.args.get(setting) == GENERATE and study.needs(setting):
                making = preparation(name, planned.args).study
                needed = _total(making, asked, reply_tokens)
                add(name, roles["generator"], making, len(asked), needed, exact=False)
                exact = False  # what cannot be generated is left out
        total = _total(study, asked, reply_tokens)
        if defence and defence.shares in shared:  # with another defence of this command
            total = replace(total, fewest=0)
        shared |= {defence.shares} if defence else set()
        # what an earlier protocol of this command asks too is asked once
        worded = wording_of(defence) if defence and not defence.first_plain else ""
        openings = {f"{worded}{opening}" for q in asked for opening in study.openings(q)}
        if study.defence and not worded:  # the run without it has them
            openings = set()
        for again in openings & opened:
            total -= opening_estimate(again, reply_tokens)
        opened |= openings
        times = epochs or study.epochs
        inputs = simulated_inputs(planned, roles.get("generator"))
        for each in models:
            add(planned.name, each, study, len(asked), total.times(times), exact=exact)
            rows[-1]["model"] = name_in_results(each, inputs)
            helped = _helped(study, asked, reply_tokens) | readings_of(total, reply_tokens)
            for role, needed in helped.items():
                if role in roles and needed.generations:
                    add(f"{planned.name}: {role}", roles[role], study, len(asked),
                        needed.times(times), exact=exact and role == READER_ALL)  # fmt: skip
    return rows


@dataclass(frozen=True)
class Lacking:
    """Techniques that are left out of every question, because there are no contexts.

    Attributes:
        paths: those left out.
        techniques: how many techniques there are, with those.
        questions: the question set.
        source: how ``--questions`` names it.
        generations: what it takes to write the contexts.
    """

    paths: tuple[str, ...]
    techniques: int
    questions: str
    source: str
    generations: int

    def __str__(self) -> str:
        """In words, with the remedy."""
        return (
            f"{len(self.paths)} of {counted(self.techniques, 'technique')} left out: no contexts "
            f"for {self.questions}. Write them with 'holdfast prepare contexts --questions "
            f"{self.source} --generator MODEL' ({counted(self.generations, 'generation')}), then "
            "run the same command with --contexts contexts.jsonl"
        )


def lacking(studies: Sequence[Planned], limit: int | None) -> list[Lacking]:
    """What studies leave out because there are no contexts, one for each that does."""
    found = []
    for planned in studies:
        study = planned.study
        if not isinstance(study, FollowupStudy) or study.contexts.by_question:
            continue  # what a file of contexts lacks is told by technique
        asked = study.questions.first(limit).questions
        why = {
            path: sum(n for reason, n in counts.items() if reason.removeprefix("no ") in CONTEXTS)
            for path, counts in reasons(study, limit).items()
        }
        left_out = tuple(path for path, n in why.items() if n == len(asked) and ">" not in path)
        if left_out:
            making = ContextStudy(
                study.questions, None, study.lengths, study.seed, study.corrections
            )
            needed = _total(making, asked, 0).generations
            source = str(planned.args.get("questions", BANK_NAME))
            found.append(
                Lacking(left_out, len(study.techniques), study.questions.name, source, needed)
            )
    return found


def _total(study: Study, questions: Sequence[Question], reply_tokens: int) -> Estimate:
    return sum((study.needed(question, reply_tokens) for question in questions), Estimate())


def _helped(study: Study, questions: Sequence[Question], reply_tokens: int) -> dict[str, Estimate]:
    totals: dict[str, Estimate] = {}
    for question in questions:
        for role, needed in study.helping(question, reply_tokens).items():
            totals[role] = totals.get(role, Estimate()) + needed
    return totals
