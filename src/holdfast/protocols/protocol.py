"""A protocol: one function of a run, its settings, and what else holdfast has to know of it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Generic, TypeVar

from inspect_ai.model import GenerateConfig

from holdfast.defences.defence import DataBlock
from holdfast.dialogue.conversation import TESTED_ARM, Run
from holdfast.models.behaviour import Behaviour
from holdfast.questions.loading import QuestionSet

from .dry_run import REPLY_TOKENS, CallPlanner, Path, QuestionPlan
from .settings import QuestionSettings, declared, signature

S = TypeVar("S", bound=QuestionSettings)

LoggedTurn = Mapping[str, Any]
"""A logged turn, by the names of the turns table."""

QUESTION_SETTINGS = frozenset(declared(QuestionSettings))
"""Settings that say which questions are asked."""

JUDGE = "judge"
"""Role that reads replies for what they mention."""
READER = "reader"
"""Role that reads the replies in which the rules find no answer, or several."""
READER_ALL = "reader-all"
"""Role that reads every reply."""


@dataclass(frozen=True)
class Protocol(Generic[S]):
    """A protocol, or the generation of something that a protocol needs.

    Attributes:
        name: as the command line names it.
        method: asks everything of one question.
        settings: its settings; the first line of the docstring says what is asked.
        version: raised when prompts or results change.
        config: generation settings that it asks for.
        inputs: digests of its inputs, for the log.
        epochs: times each question is asked, unless the user says otherwise.
        roles: helpers that it may ask, beside a generator, a judge and a reader; those that are
            not required only read, and can be added to a run.
        required: helpers without which nothing can be asked.
        generated: settings whose value may be ``generate``, with the generation that makes it.
        behaviour: what simulated models do under it; None where they only answer.
        reply_tokens: the longest reply that a plan assumes; None for any.
        generates: whether it generates what a study needs, and measures nothing.
        scored: arms whose answers are scored; empty for all.
    """

    name: str
    method: Callable[[Run, S], Awaitable[None]]
    settings: type[S]
    version: int
    config: Callable[[S], GenerateConfig] = lambda settings: GenerateConfig()
    inputs: Callable[[S], Mapping[str, Any]] = lambda settings: {}
    epochs: int = 1
    roles: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    behaviour: Behaviour | None = None
    reply_tokens: int | None = None
    generates: bool = False
    scored: tuple[str, ...] = ()

    def study(
        self, *, epochs: int | None = None, question_set: QuestionSet | None = None, **args: Any
    ) -> "Study":
        """The protocol with its settings, everything that they name loaded.

        Args:
            epochs: times each question is asked, None where the protocol says.
            question_set: the questions, where they are loaded already.
            args: settings.

        Raises:
            InputError: a setting names something unknown, or a file cannot be used.
        """
        settings = self.settings(**args)
        if question_set is not None:
            vars(settings)["question_set"] = question_set
        settings.load()
        return Study(self, settings, args, epochs)

    @property
    def input_settings(self) -> list[str]:
        """Settings that name inputs."""
        return [name for name, declaration in declared(self.settings).items() if declaration.input]

    @property
    def growing(self) -> list[str]:
        """What of a run may grow, as its command line has it: settings, and helpers that read."""
        settings = [
            name for name, declaration in declared(self.settings).items() if declaration.grows
        ]
        readers = (JUDGE, READER, READER_ALL, *self.roles)
        return [
            *(f"-T {name}" for name in settings),
            *(f"--model-role {role}" for role in readers if role not in self.required),
        ]


@dataclass(frozen=True)
class CallCount:
    """Calls and tokens.

    Attributes:
        fewest_calls: calls at the least.
        most_calls: calls at the most.
        input_tokens: tokens that the most calls read, at four characters each.
        output_tokens: tokens that they write, by an assumed length of a reply.
        replays: earlier turns in the most calls, which an assistant with sessions is sent again.
    """

    fewest_calls: int = 0
    most_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    replays: int = 0

    def __add__(self, addend: "CallCount") -> "CallCount":
        return CallCount(
            self.fewest_calls + addend.fewest_calls,
            self.most_calls + addend.most_calls,
            self.input_tokens + addend.input_tokens,
            self.output_tokens + addend.output_tokens,
            self.replays + addend.replays,
        )

    def less(self, calls: int, at_least: int) -> "CallCount":
        """The same without calls that are made elsewhere."""
        most_calls = self.most_calls - calls
        share = most_calls / self.most_calls if self.most_calls else 0.0
        return CallCount(
            max(0, self.fewest_calls - at_least),
            most_calls,
            round(self.input_tokens * share),
            round(self.output_tokens * share),
            round(self.replays * share),
        )


@dataclass
class StudyPlan:
    """What a study takes of some questions, all epochs together.

    Attributes:
        questions: how many questions there are.
        counts: calls and tokens by role.
        paths: arm and path of every turn that some question has.
        skipped_paths: by path, how many questions it cannot be asked of, by reason.
        goes_on: whether anything is asked after an answer.
        certain: requests to the model under test that are made whatever is answered.
        possible: forms of those that are made for some answers.
        forms: of the requests to helpers, as ``QuestionPlan`` has them.
    """

    questions: int = 0
    counts: dict[str, CallCount] = field(default_factory=dict)
    paths: dict[Path, None] = field(default_factory=dict)
    skipped_paths: dict[str, Counter[str]] = field(default_factory=dict)
    goes_on: bool = False
    certain: set[int] = field(default_factory=set)
    possible: set[int] = field(default_factory=set)
    forms: set[int] = field(default_factory=set)

    def add(self, plan: QuestionPlan, epochs: int) -> None:
        """Count a question in epochs that are alike."""
        for role, most_calls in plan.most_calls.items():
            # what no replicate makes anew is made once
            fewest_calls = plan.fewest_calls[role] * epochs - len(plan.shared_forms[role]) * (
                epochs - 1
            )
            if role != TESTED_ARM:  # where replies are alike, what a helper is asked of them is too
                replicate_forms = plan.replicate_forms[role] - self.forms
                fewest_calls = (
                    len(plan.shared_forms[role] - self.forms) + len(replicate_forms) * epochs
                )
                self.forms |= plan.shared_forms[role] | plan.replicate_forms[role]
            tokens = (plan.input_tokens[role] * epochs, plan.output_tokens[role] * epochs)
            replays = plan.replays[role] * epochs
            count = CallCount(fewest_calls, most_calls * epochs, *tokens, replays)
            self.counts[role] = self.counts.get(role, CallCount()) + count
        self.paths |= dict.fromkeys(plan.paths)
        self.goes_on = self.goes_on or plan.goes_on
        for path, why in plan.skipped_paths.items():
            self.skipped_paths.setdefault(path, Counter())[why] += 1
        self.certain |= plan.certain
        self.possible |= plan.possible

    def tested(self, earlier: "Sequence[StudyPlan]", epochs: int) -> CallCount:
        """Calls of the model under test, without those that earlier studies of a command make."""
        certain = {number for plan in earlier for number in plan.certain & self.certain}
        possible = {number for plan in earlier for number in plan.possible & self.possible}
        count = self.counts.get(TESTED_ARM, CallCount())
        return count.less(len(certain) * epochs, len(possible) * epochs)


@dataclass(frozen=True)
class Study:
    """A protocol with its settings.

    Attributes:
        protocol: the protocol.
        settings: its settings, everything that they name loaded.
        args: those of the settings that were given.
        given_epochs: times each question is asked, None where the protocol says.
    """

    protocol: Protocol[Any]
    settings: QuestionSettings
    args: Mapping[str, Any] = field(default_factory=dict)
    given_epochs: int | None = None

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return self.protocol.name

    @property
    def called(self) -> str:
        """The protocol, and the defence where there is one."""
        return f"{self.name} with {self.defence.id}" if self.defence else self.name

    @property
    def questions(self) -> QuestionSet:
        """What is asked."""
        return self.settings.question_set

    @property
    def defence(self) -> DataBlock | None:
        """What wraps the model under test."""
        return getattr(self.settings, "defence_block", None)

    @property
    def epochs(self) -> int:
        """Times each question is asked."""
        return self.given_epochs or self.settings.epochs or self.protocol.epochs

    @property
    def required(self) -> tuple[str, ...]:
        """Helpers without which nothing can be asked."""
        return self.settings.required(self.protocol.required)

    @property
    def config(self) -> GenerateConfig:
        """Generation settings that the protocol asks for."""
        return self.protocol.config(self.settings)

    def method(self, run: Run) -> Awaitable[None]:
        """Ask everything of one question."""
        run.final = getattr(self.settings, "final", None)
        return self.protocol.method(run, self.settings)

    def arguments(self) -> dict[str, Any]:
        """Every setting, given or default."""
        parameters = signature(self.protocol.settings).parameters
        return {
            name: self.args.get(name, parameter.default) for name, parameter in parameters.items()
        }

    def with_args(self, **args: Any) -> "Study":
        """The same protocol with other settings; the questions are not read again."""
        question_set = None if args.keys() & QUESTION_SETTINGS else self.questions
        return self.protocol.study(
            epochs=self.given_epochs, question_set=question_set, **{**self.args, **args}
        )

    def explorer(self, roles: Iterable[str] = (), reply_tokens: int = REPLY_TOKENS) -> CallPlanner:
        """Plans questions of the study, with these helpers bound."""
        roles_bound = {*self.protocol.roles, *self.protocol.required, JUDGE}
        if self.defence and self.defence.role:
            roles_bound.add(self.defence.role)
        bound = frozenset(roles_bound.intersection(roles))
        tokens = min(reply_tokens, self.protocol.reply_tokens or reply_tokens)
        if (bound, tokens) not in self._explorers:
            self._explorers[bound, tokens] = CallPlanner(
                self.method, bound, self.defence, self.epochs, self.config, tokens
            )
        return self._explorers[bound, tokens]

    @cached_property
    def _explorers(self) -> dict[object, CallPlanner]:
        """By the helpers that are bound, and the length of a reply."""
        return {}

    def needs(self, setting: str) -> bool:
        """Whether anything that is asked depends on what a setting names."""
        without = self.with_args(**{setting: "none"})
        explorers = self.explorer(), without.explorer()
        return any(
            explorers[0].plan(question).paths != explorers[1].plan(question).paths
            for question in self.questions.questions
        )

    @cached_property
    def simulated(self) -> tuple[str, ...]:
        """What reaches the model and says nothing of medicine, in words."""
        return tuple(
            words for setting, words in self.settings.simulated.items() if self.needs(setting)
        )

    def plan(
        self,
        limit: int | None = None,
        roles: Iterable[str] = (),
        places: Sequence[int] | None = None,
        reply_tokens: int = REPLY_TOKENS,
    ) -> StudyPlan:
        """Count what the study takes; what has been counted is not counted again.

        Args:
            limit: first questions only.
            roles: helpers that are bound.
            places: of the questions, None for all within the limit.
            reply_tokens: assumed length of a reply.
        """
        if places is None:
            places = range(len(self.questions.first(limit).questions))
        explorer = self.explorer(roles, reply_tokens)
        key = (explorer.roles, tuple(places), reply_tokens)
        if key not in self._plans:
            plan = StudyPlan(len(places))
            replicates, times = [self.epochs], self.epochs
            if self.settings.epochs:  # no two are alike
                replicates, times = [*range(1, self.epochs + 1)], 1
            for place, replicate in product(places, replicates):
                plan.add(explorer.plan(self.questions.questions[place], replicate), times)
            self._plans[key] = plan
        return self._plans[key]

    @cached_property
    def _plans(self) -> dict[object, StudyPlan]:
        """By helpers, places and length of a reply."""
        return {}
