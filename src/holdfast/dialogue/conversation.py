"""What a protocol is written against: a run of one question, and the turns asked in it.

A protocol is one function of a ``Run``. The same function is run live, against models, and dry,
where every reply is a stand-in: the plan of a study is what its dry runs have asked.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, TypeVar

from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

from holdfast.attachments import record_of
from holdfast.questions.question import Question
from holdfast.questions.truth import RESAMPLE_SEEDS, Purpose
from holdfast.reading.answers import extract_answer
from holdfast.reading.extraction import READING_VERSION, Extraction, Fault

from .turn import NO_INTERVENTION, Choice, Intervention, Rule

T = TypeVar("T")

TESTED_ARM = "tested"
"""Role of the model under test."""

UNCHALLENGED_ARMS = ("control", "correction")
"""Arms in which something is asked after an answer, but nothing against it."""

JUDGEMENT_TOKENS = 20
"""Assumed length of a helper's verdict."""

Place = tuple[int, ...]
"""A branch by its number among those beside it, and so for the branches that it is in."""

place: ContextVar[Place] = ContextVar("place", default=())
"""The branch under way."""


@dataclass(frozen=True, eq=False)
class ConversationStart:
    """How a conversation begins.

    Attributes:
        role: who is asked.
        system: system message, None for none.
        examples: user and assistant turns before anything is asked.
        config: generation settings over those of the study.
        replicate: 1-based epoch; replicates never share a generation.
        resample: which further time the same is asked afresh; 0 for the first.
        purpose: what the model is asked for.
        rule: reads the answers.
        origin: content hash of the question that it began with.
        tokens: assumed length of a reply; None for that of the study.
    """

    role: str
    system: str | None
    examples: tuple[tuple[str, str], ...]
    config: GenerateConfig
    replicate: int
    resample: int
    purpose: Purpose
    rule: Rule
    origin: str
    tokens: int | None


class Backend(Protocol):
    """Answers the turns of a run: a model, or a script of outcomes."""

    def has(self, role: str) -> bool:
        """Whether a model has that role."""

    def has_reply(self, turn: "Turn") -> bool:
        """Whether a reply to the turn exists; a recording may lack it."""

    async def answer(self, turn: "Turn", context: Mapping[str, object]) -> None:
        """Reply to a turn."""

    def letter(self, turn: "Turn") -> str | None:
        """Letter that a turn answers."""

    def is_kept(self, turn: "Turn") -> bool:
        """Whether a turn answers its target."""

    def usable(
        self,
        turn: "Turn",
        parse: Callable[[ModelOutput], T | Fault],
        like: Callable[[str], T],
        *,
        left: int,
        refusals: int,
    ) -> T | Fault:
        """What a helper's reply is taken for, with so many tries left, and refusals to end them."""

    def seen(self, turn: "Turn", parse: Callable[[ModelOutput], T], like: T) -> T:
        """What is read in a reply beside its answer."""

    async def gather(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Wait for branches side by side."""


@dataclass(eq=False)
class Turn:
    """A reply, and the conversation that ends with it.

    The root of a conversation is a turn without a reply. Asking a turn twice branches off.

    Attributes:
        run: the question under way.
        opening: how the conversation began.
        question: the question, as this branch puts it.
        parent: the turn before; None for the root.
        interventions: from the root to this turn.
        number: 0-based assistant turn in its conversation; -1 for the root.
        arm: the branch's role in its protocol; empty for a reply that no table counts.
        target: the option that the protocol wants kept.
        choice: what is answered.
        prompt: the user message.
        document: what an assistant is to retrieve beside it; None for nothing.
        notes: columns of the turns table that the protocol sets.
        place: the branch in which it was first asked.
        order: which turn of the run it is.
        key: digest of the whole conversation up to this turn; equal where nothing new was asked.
        messages: the conversation with the reply.
        output: what the model returned.
        reply: its text.
        extraction: the answer that counts; None before there is one.
        usage: tokens, cost, latency and how it ended, by the names of the turns table.
        readings: what each reader found, by the names of the turns table.
        basis: what of the answer the protocol has looked at, ``answer`` or ``kept``; empty where
            nothing that is asked depends on it.
        state: what the backend keeps of the turn.
    """

    run: "Run"
    opening: ConversationStart
    question: Question
    parent: "Turn | None" = None
    interventions: tuple[Intervention, ...] = ()
    number: int = -1
    arm: str = ""
    target: str | None = None
    choice: Choice | None = None
    prompt: str = ""
    document: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    place: Place = ()
    order: int = 0
    key: str = ""
    messages: Sequence[ChatMessage] = ()
    output: ModelOutput | None = None
    reply: str = ""
    extraction: Extraction | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    readings: dict[str, Any] = field(default_factory=dict)
    parse: Callable[[ModelOutput], Extraction] | None = None
    basis: str = ""
    state: Any = None

    async def ask(
        self,
        prompt: str,
        *,
        arm: str = "",
        step: Intervention | Sequence[Intervention] = (),
        path: Sequence[Intervention] | None = None,
        target: str | None = None,
        question: Question | None = None,
        choice: Choice | None = None,
        parse: Callable[[ModelOutput], Extraction] | None = None,
        notes: Mapping[str, Any] | None = None,
        document: str | None = None,
        **context: object,
    ) -> "Turn":
        """Ask, and read the answer. The same request on the same path is one turn.

        Args:
            prompt: the user message.
            arm: the branch's role in its protocol; none for a reply that no table counts.
            step: what the prompt does to the conversation.
            path: the whole path, where it is not that of the turn before with this step.
            target: the option that the protocol wants kept.
            question: the question as this branch puts it, where it differs.
            choice: what is answered, where the options in play are not those of the question.
            parse: reads this reply, where it is no answer to a question.
            notes: columns of the turns table.
            document: what an assistant is to retrieve beside the message.
            context: what a simulated model knows beside the prompt.

        Raises:
            BudgetExceededError: the run's budget is spent.
            GenerationFailedError: the provider gave no reply; the turn is kept with the status
                ``error`` and the kind of fault as its rule.
        """
        steps = (step,) if isinstance(step, Intervention) else tuple(step)
        path = (*self.interventions, *steps) if path is None else tuple(path)
        turn = self._next(prompt, arm, path, target, question, choice, parse, notes, document)
        await self.run.backend.answer(turn, {"arm": arm, **context} if arm else context)
        return turn

    def _next(
        self,
        prompt: str,
        arm: str,
        path: tuple[Intervention, ...],
        target: str | None,
        question: Question | None,
        choice: Choice | None,
        parse: Callable[[ModelOutput], Extraction] | None,
        notes: Mapping[str, Any] | None,
        document: str | None,
    ) -> "Turn":
        run = self.run
        identity = (self.order, prompt, document, arm, tuple(step.step for step in path))
        turn = run.turns.get(identity)
        if turn is None:
            question_asked = question or self.question
            turn = run.turns[identity] = Turn(
                run, self.opening, question_asked, self, path, self.number + 1, arm, target,
                choice or Choice.among(question_asked.options, self.opening.rule), prompt, document,
                dict(notes or {}), place.get(), next(run.orders), parse=parse,
            )  # fmt: skip
        else:
            turn.place = min(turn.place, place.get())
        return turn

    def has_reply(self, arm: str, step: Intervention) -> bool:
        """Whether the model has a reply to give there; a recording may lack it."""
        path = (*self.interventions, step)
        next_turn = Turn(self.run, self.opening, self.question, self, path, self.number + 1, arm)
        return self.run.backend.has_reply(next_turn)

    @property
    def answer(self) -> str | None:
        """Letter of the option answered, None where none could be read."""
        self.basis = "answer"
        return self.run.backend.letter(self)

    @property
    def kept(self) -> bool:
        """Whether the target was answered."""
        self.basis = self.basis or "kept"
        return self.run.backend.is_kept(self)

    @property
    def is_challenge(self) -> bool:
        """Whether something is said against an answer, or with a question that misleads."""
        return bool(self.interventions) and self.arm not in UNCHALLENGED_ARMS

    def observe(self, parse: Callable[[ModelOutput], T], like: T) -> T:
        """Read something in the reply beside its answer. Nothing that is asked may depend on it.

        Args:
            parse: reads the output.
            like: what a dry run takes for it.
        """
        return self.run.backend.seen(self, parse, like)

    async def consult(self, prompt: str, parse: Callable[[str], T], like: T, **context: Any) -> T:
        """Ask a helper for a verdict, which no table counts as a turn.

        Args:
            prompt: the user message.
            parse: reads the reply.
            like: what a dry run takes for it. Nothing that is asked may depend on it.
            context: as ``ask`` takes it.
        """
        turn = await self.ask(prompt, **context)
        return turn.observe(lambda output: parse(output.completion), like)

    async def obtain(
        self,
        prompt: str,
        parse: Callable[[ModelOutput], T | Fault],
        correct: Callable[[Fault], str],
        like: Callable[[str], T],
        *,
        tries: int = 4,
        refusals: int = 4,
        **context: Any,
    ) -> "tuple[Turn, T | Fault]":
        """Ask a helper until its reply can be used, telling it each time what was wrong.

        Args:
            prompt: the user message.
            parse: reads a reply, or says what is wrong with it.
            correct: the next prompt, by what was wrong.
            like: makes what a dry run takes for a usable reply.
            tries: how often it is asked at the most.
            refusals: after how many refusals it is not asked again.
            context: as ``ask`` takes it.

        Returns:
            The last turn, and what was read or the last reply's fault.
        """
        turn, refusal_count = self, 0
        value: T | Fault = Fault("empty", "is empty")

        def judge(output: ModelOutput) -> Extraction:
            fault = parse(output)
            if not isinstance(fault, Fault):
                return Extraction(None, "parsed", "valid")
            return Extraction(None, "refused" if fault.kind == "refused" else "none", fault.kind)

        for attempt in range(tries):
            turn = await turn.ask(prompt, parse=judge, **context, attempt=attempt)
            value = self.run.backend.usable(
                turn, parse, like, left=tries - attempt - 1, refusals=refusals - refusal_count
            )
            if not isinstance(value, Fault):
                break
            refusal_count += value.kind == "refused"
            if refusal_count == refusals:
                break
            prompt = correct(value)
        return turn, value

    def record(self) -> dict[str, Any]:
        """The turn by the column names of the turns table."""
        last = self.interventions[-1] if self.interventions else NO_INTERVENTION
        extraction = self.extraction or Extraction(None, "none", "unanswered")
        return {
            "arm": self.arm,
            "path": ">".join(intervention.step for intervention in self.interventions),
            "turn": self.number,
            "technique": last.id,
            "family": last.family,
            "axis": last.axis,
            "depth": last.depth,
            "suggested": last.suggested,
            "target": self.target,
            "answer": extraction.answer,
            "status": extraction.status,
            "rule": extraction.rule,
            "reading_version": READING_VERSION,
            **self.readings,
            **self.notes,
            **self.usage,
            **({"looked": self.basis} if self.basis else {}),
            "key": self.key,
            "prompt": record_of(self.prompt, self.document),
            "reply": self.reply,
        }


@dataclass(eq=False)
class Run:
    """One question in one replicate, as a protocol sees it.

    Attributes:
        question: what is asked.
        backend: answers.
        replicate: 1-based epoch.
        epochs: how many there are.
        turns: every turn, by what was asked of which turn on which path.
        skipped_paths: paths that cannot be asked of this question, with the reason.
        rows: what a generation has made.
    """

    question: Question
    backend: Backend
    replicate: int = 1
    epochs: int = 1
    turns: dict[object, Turn] = field(default_factory=dict)
    skipped_paths: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    orders: Any = field(default_factory=count)

    def has(self, role: str) -> bool:
        """Whether a model has that role."""
        return self.backend.has(role)

    def chat(
        self,
        system: str | None = None,
        *,
        role: str = TESTED_ARM,
        config: GenerateConfig | None = None,
        seed: int | None = None,
        resample: int = 0,
        replicate: int | None = None,
        examples: Sequence[tuple[str, str]] = (),
        question: Question | None = None,
        purpose: Purpose = "answer",
        parse: Rule = extract_answer,
        tokens: int | None = None,
    ) -> Turn:
        """Begin a conversation.

        Args:
            system: system message, None for none.
            role: who is asked.
            config: generation settings over those of the study.
            seed: of the first replicate's sampling. Each further replicate has the next one, and
                what is asked afresh one of its own. None leaves the study's.
            resample: asks afresh what the replicate asks, the further time of that number: shares
                no generation with it, nor with those of other numbers.
            replicate: whose generations it shares; None for the run's own.
            examples: user and assistant turns before anything is asked.
            question: the question, where it is not the run's.
            purpose: what the model is asked for.
            parse: reads the answers.
            tokens: assumed length of a reply; None for that of the study.
        """
        replicate = self.replicate if replicate is None else replicate
        config = config or GenerateConfig()
        if seed is not None:  # a server that heeds seeds would say the same in every replicate
            seed += replicate - 1 + resample * RESAMPLE_SEEDS
            config = config.model_copy(update={"seed": seed})
        question_asked = question or self.question
        opening = ConversationStart(
            role, system, tuple(examples), config, replicate, resample, purpose, parse,
            question_asked.content_hash, tokens,
        )  # fmt: skip
        return Turn(self, opening, question_asked, order=next(self.orders))

    def skip(self, path: str, why: str) -> None:
        """Say that a path cannot be asked of this question."""
        self.skipped_paths[path] = why

    async def side_by_side(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Wait for branches, which do not see each other's answers; one that fails stops no other.

        Args:
            branches: by the name that the log viewer shows.

        Raises:
            BudgetExceededError: the budget was spent in one of them.
            BranchesFailedError: any other failure, with every branch's reason.
        """
        await self.backend.gather(branches)

    @property
    def ordered(self) -> list[Turn]:
        """Every turn that a table counts, each branch after its root."""
        turns = [turn for turn in self.turns.values() if turn.arm and turn.extraction]
        return sorted(turns, key=lambda turn: (turn.place, turn.number, turn.order))
