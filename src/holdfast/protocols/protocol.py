"""A protocol: one function of a run, its settings, and what else holdfast has to know of it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from inspect_ai.model import GenerateConfig

from holdfast.defences import Block
from holdfast.dialogue import TESTED, Run
from holdfast.models.behaviour import Behaviour
from holdfast.questions import Question, QuestionSet

from .dry_run import Explorer, Path, QuestionPlan, Requests
from .settings import QuestionSettings, signature

S = TypeVar("S", bound=QuestionSettings)

Logged = Mapping[str, Any]
"""A logged turn, by the names of the turns table."""

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
        roles: helpers that it may ask, beside a generator, a judge and a reader.
        required: helpers without which nothing can be asked.
        generated: settings whose value may be ``generate``, with the generation that makes it.
        behaviour: what simulated models do under it; None where they only answer.
        reply_tokens: the longest reply that a plan assumes; None for any.
        generates: whether it generates what a study needs, and measures nothing.
        stops_early: whether a conversation ends once its target is left: what would have followed
            then counts as left too, and no table averages over those that went on.
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
    stops_early: bool = False

    def study(self, *, epochs: int | None = None, **args: Any) -> "Study":
        """The protocol with its settings, everything that they name loaded.

        Raises:
            InputError: a setting names something unknown, or a file cannot be used.
        """
        settings = self.settings(**args)
        settings.load()
        return Study(self, settings, args, epochs)


@dataclass(frozen=True)
class CallCount:
    """Calls and tokens.

    Attributes:
        least: calls at the least.
        most: calls at the most.
        input_tokens: tokens that the most calls read, at four characters each.
        output_tokens: tokens that they write, by an assumed length of a reply.
    """

    least: int = 0
    most: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "CallCount") -> "CallCount":
        return CallCount(
            self.least + other.least,
            self.most + other.most,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def less(self, calls: int, at_least: int) -> "CallCount":
        """The same without calls that are made elsewhere."""
        most = self.most - calls
        share = most / self.most if self.most else 0.0
        return CallCount(
            max(0, self.least - at_least),
            most,
            round(self.input_tokens * share),
            round(self.output_tokens * share),
        )


@dataclass(frozen=True)
class StudyPlan:
    """What a study takes of some questions, all epochs together.

    Attributes:
        counts: calls and tokens by role.
        paths: arm and path of every turn that some question has.
        skipped: by path, how many questions it cannot be asked of, by reason.
        goes_on: whether anything is asked after an answer.
        questions: how many questions there are.
    """

    counts: Mapping[str, CallCount]
    paths: Sequence[Path]
    skipped: Mapping[str, Counter[str]]
    goes_on: bool
    questions: int


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
    def defence(self) -> Block | None:
        """What wraps the model under test."""
        return getattr(self.settings, "defence_block", None)

    @property
    def epochs(self) -> int:
        """Times each question is asked."""
        return self.given_epochs or self.protocol.epochs

    @property
    def config(self) -> GenerateConfig:
        """Generation settings that the protocol asks for."""
        return self.protocol.config(self.settings)

    def method(self, run: Run) -> Awaitable[None]:
        """Ask everything of one question."""
        return self.protocol.method(run, self.settings)

    def arguments(self) -> dict[str, Any]:
        """Every setting, given or default."""
        known = signature(self.protocol.settings).parameters
        return {name: self.args.get(name, one.default) for name, one in known.items()}

    def with_args(self, **args: Any) -> "Study":
        """The same protocol with other settings."""
        return self.protocol.study(epochs=self.given_epochs, **{**self.args, **args})

    def explorer(self, roles: Iterable[str] = ()) -> Explorer:
        """Plans questions of the study, with these helpers bound."""
        known = {*self.protocol.roles, *self.protocol.required, JUDGE}
        if self.defence and self.defence.role:
            known.add(self.defence.role)
        bound = frozenset(known.intersection(roles))
        if bound not in self._explorers:
            self._explorers[bound] = Explorer(
                self.method, bound, self.defence, self.epochs, self.config,
                self.protocol.reply_tokens,
            )  # fmt: skip
        return self._explorers[bound]

    @cached_property
    def _explorers(self) -> dict[frozenset[str], Explorer]:
        """By the helpers that are bound."""
        return {}

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Arm and path of every turn that some question has."""
        explorer = self.explorer()
        paths: dict[Path, None] = {}
        for question in self.questions.questions:
            paths |= dict.fromkeys(explorer.plan(question).paths)
        return tuple(paths)

    def skipped(self, limit: int | None) -> dict[str, Counter[str]]:
        """By path, how many questions it cannot be asked of, by reason."""
        return dict(self.plan(limit).skipped)

    def plan(
        self,
        limit: int | None = None,
        roles: Iterable[str] = (),
        requests: Requests | None = None,
        earlier: "Sharing | None" = None,
        places: Iterable[int] | None = None,
    ) -> StudyPlan:
        """Count what the study takes.

        Args:
            limit: first questions only.
            roles: helpers that are bound.
            requests: numbers requests, for all studies of a command.
            earlier: what earlier studies of the command ask.
            places: of the questions, None for all within the limit.
        """
        explorer, epochs = self.explorer(roles), self.epochs
        requests = requests or Requests()
        asked = self.questions.first(limit).questions
        if places is not None:
            asked = tuple(self.questions.questions[place] for place in places)
        counts: dict[str, CallCount] = {}
        paths: dict[Path, None] = {}
        skipped: dict[str, Counter[str]] = {}
        goes_on = False
        alike: set[int] = set()
        for question in asked:
            plan = explorer.plan(question, epochs, requests)
            for role, count in _counts(plan, epochs, earlier, alike).items():
                counts[role] = counts.get(role, CallCount()) + count
            paths |= dict.fromkeys(plan.paths)
            goes_on = goes_on or plan.goes_on
            for path, why in plan.skipped.items():
                skipped.setdefault(path, Counter())[why] += 1
        return StudyPlan(counts, tuple(paths), skipped, goes_on, len(asked))


@dataclass
class Sharing:
    """Requests of the studies of one command, which are made once.

    Attributes:
        certain: made whatever is answered.
        possible: made for some answers.
    """

    certain: set[int] = field(default_factory=set)
    possible: set[int] = field(default_factory=set)


def _counts(
    plan: QuestionPlan, epochs: int, earlier: Sharing | None, alike: set[int]
) -> Mapping[str, CallCount]:
    """Calls that a question takes in all its epochs, those of earlier studies left out.

    Args:
        plan: what it takes in one epoch.
        epochs: how many there are.
        earlier: what earlier studies of the command ask.
        alike: forms of the requests of earlier questions, which at the least are made once.
    """
    counts: dict[str, CallCount] = {}
    for role, most in plan.most.items():
        count = CallCount(plan.least[role], most, plan.input_tokens[role], plan.output_tokens[role])
        if role == TESTED and earlier is not None:
            count = count.less(
                len(plan.certain & earlier.certain), len(plan.possible & earlier.possible)
            )
        shared, anew = plan.shared[role], plan.anew[role]
        once = len(shared) * (epochs - 1) + len(shared & alike) + len(anew & alike) * epochs
        alike |= shared | anew
        counts[role] = CallCount(
            max(0, count.least * epochs - once),
            *(n * epochs for n in (count.most, count.input_tokens, count.output_tokens)),
        )
    if earlier is not None:
        earlier.certain |= plan.certain
        earlier.possible |= plan.possible
    return counts


def asked_question(question: Question) -> dict[str, Any]:
    """The metadata of a question's sample."""
    from holdfast.questions import LABELS

    return {
        "gold": question.gold,
        **{label: getattr(question, label) for label in LABELS},
        "content_hash": question.content_hash,
    }
