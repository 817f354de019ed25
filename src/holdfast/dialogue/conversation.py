"""Interface for protocols: a run of one question, and its turns.

A protocol is a function of a ``Run``. It runs live, with models, or dry, with placeholder replies.
The plan of a study counts the requests of its dry runs.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol, TypeVar

from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput

from holdfast.attachments import record_of
from holdfast.questions.question import Question
from holdfast.questions.truth import RESAMPLE_SEEDS, Purpose
from holdfast.reading.answers import extract_answer
from holdfast.reading.extraction import READING_VERSION, Extraction, Fault

from .turn import NO_INTERVENTION, Choice, Intervention, Rule, judged, usage_with

T = TypeVar("T")

TESTED_ARM = "tested"
"""Role of the model under test."""

UNCHALLENGED_ARMS = ("control", "correction")
"""Arms with a turn after an answer that does not challenge it."""

JUDGEMENT_TOKENS = 20
"""Assumed length of a helper's verdict."""

Place = tuple[int, ...]
"""Position of a branch: its number among its siblings, after the numbers of its ancestors."""

place: ContextVar[Place] = ContextVar("place", default=())
"""Position of the current branch."""


FINAL_RULE = "final-answer-turn"
"""``rule`` of an answer that the model gave when it was asked for its final answer."""


@dataclass(frozen=True)
class FinalAnswer:
    """How the final answer is asked for after a challenged reply, outside the conversation.

    Attributes:
        prompt: asks for a letter.
        decision: asks to stick or to switch.
        counts: whether this answer is measured, and not the one that is read from the reply.
    """

    prompt: str
    decision: str
    counts: bool = False


@dataclass(frozen=True, eq=False)
class ConversationStart:
    """Start of a conversation.

    Attributes:
        role: role of the model.
        system: system message, None for none.
        examples: user and assistant turns before the first request.
        config: generation settings that override those of the study.
        replicate: 1-based epoch. Replicates never share a generation.
        resample: number of the resample of the same request, 0 for the first.
        purpose: purpose of the request.
        rule: function that extracts answers.
        origin: content hash of the first question.
        tokens: assumed length of a reply. None for that of the study.
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
    """Source of replies to the turns of a run: models, or a script of outcomes."""

    def has(self, role: str) -> bool:
        """Whether a model has this role."""

    def name(self, role: str) -> str:
        """Name of the model in a role."""

    def settle(self, turn: "Turn") -> None:
        """Take what the turn's extraction has become for the answer of the conversation."""

    def has_reply(self, turn: "Turn") -> bool:
        """Whether a reply to the turn exists, because a recording may lack it."""

    async def answer(self, turn: "Turn", context: Mapping[str, object]) -> None:
        """Reply to a turn."""

    def letter(self, turn: "Turn") -> str | None:
        """Return the letter that a turn answers."""

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
        """Return a helper's parsed reply or its fault, given the remaining tries and refusals."""

    def seen(self, turn: "Turn", parse: Callable[[ModelOutput], T], like: T) -> T:
        """Return information from a reply other than its answer."""

    async def gather(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Run branches concurrently."""


@dataclass(eq=False)
class Turn:
    """Reply, and the conversation up to it.

    The root of a conversation is a turn without a reply. Several requests after a turn create
    branches.

    Attributes:
        run: run of the question.
        opening: start of the conversation.
        question: the question as worded in this branch.
        parent: previous turn. None for the root.
        interventions: interventions from the root to this turn.
        number: 0-based assistant turn in its conversation; -1 for the root.
        arm: role of the branch in its protocol. Empty for a reply that no table counts.
        target: option that the model should retain.
        choice: options of the answer.
        prompt: the user message.
        document: what an assistant is to retrieve beside it; None for nothing.
        notes: columns of the turns table that the protocol sets.
        place: branch that first asked it.
        order: number of the turn in the run.
        key: digest of the conversation up to this turn. Equal if nothing new was asked.
        messages: the conversation including the reply.
        output: output of the model.
        reply: text of the output.
        extraction: extracted answer, None before the reply.
        usage: tokens, cost, latency and stop reason, named as in the turns table.
        readings: answers by each reader, named as in the turns table.
        basis: part of the answer that the protocol has used, ``answer`` or ``kept``. Empty if no
            request depends on it.
        state: state of the backend.
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
        """Ask, and extract the answer; the same request on the same path is one turn.

        Args:
            prompt: the user message.
            arm: role of the branch in its protocol. Empty for a reply that no table counts.
            step: interventions of the prompt.
            path: whole path, if it is not the previous turn's path with this step.
            target: option that the model should retain.
            question: the question as worded in this branch, if it differs.
            choice: options of the answer, if they are not those of the question.
            parse: function that extracts the answer, if the prompt is not a question with options.
            notes: columns of the turns table.
            document: text that an assistant retrieves with the message.
            context: facts for simulated models in addition to the prompt.

        Raises:
            BudgetExceededError: the run's budget is spent.
            GenerationFailedError: the provider gave no reply. The turn is stored with the status
                ``error`` and the kind of failure as its rule.
        """
        steps = (step,) if isinstance(step, Intervention) else tuple(step)
        path = (*self.interventions, *steps) if path is None else tuple(path)
        turn = self._next(prompt, arm, path, target, question, choice, parse, notes, document)
        context = {"arm": arm, **context} if arm else context
        await self.run.backend.answer(turn, context)
        final = self.run.final
        if final and arm and path and parse is None and self.opening.role == TESTED_ARM:
            await turn.ask_final(final, context)
        return turn

    async def ask_final(self, final: FinalAnswer, context: Mapping[str, object]) -> None:
        """Ask for the final answer; what is asked next does not see it.

        Args:
            final: how it is asked for.
            context: what a simulated model knows beside the prompt.
        """
        choice = self.choice
        assert choice is not None, "the turn has no options"
        prompt = final.decision if choice.decision else final.prompt
        path, question = self.interventions, self.question
        aside = self._next(prompt, "", path, None, question, choice, None, None, None)
        await self.run.backend.answer(aside, context)

        def read(output: ModelOutput) -> Extraction | None:
            if "answer_final" not in self.readings:  # another branch may have come here first
                self.usage = usage_with(self.usage, output)
            return judged(choice.read(output.completion), output.stop_reason)

        extraction = aside.observe(read, None)
        if extraction is None:
            return
        self.readings |= {"answer_final": extraction.answer, "final_status": extraction.status}
        if final.counts:
            self.extraction = replace(extraction, rule=FINAL_RULE)

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
        """Whether the model can reply there, because a recording may lack the reply."""
        path = (*self.interventions, step)
        next_turn = Turn(self.run, self.opening, self.question, self, path, self.number + 1, arm)
        return self.run.backend.has_reply(next_turn)

    @property
    def answer(self) -> str | None:
        """Letter of the answer, None if it was not parsed."""
        self.basis = "answer"
        return self.run.backend.letter(self)

    @property
    def kept(self) -> bool:
        """Whether the answer is the target."""
        self.basis = self.basis or "kept"
        return self.run.backend.is_kept(self)

    @property
    def is_challenge(self) -> bool:
        """Whether the turn challenges an answer, or asks a misleading question."""
        return bool(self.interventions) and self.arm not in UNCHALLENGED_ARMS

    def observe(self, parse: Callable[[ModelOutput], T], like: T) -> T:
        """Extract information other than the answer, on which no request may depend.

        Args:
            parse: function that extracts it from the output.
            like: value in a dry run.
        """
        return self.run.backend.seen(self, parse, like)

    async def consult(self, prompt: str, parse: Callable[[str], T], like: T, **context: Any) -> T:
        """Ask a helper for a verdict, which no table counts as a turn.

        Args:
            prompt: the user message.
            parse: function that extracts the verdict from the reply.
            like: verdict in a dry run. No request may depend on it.
            context: as for ``ask``.
        """
        turn = await self.ask(prompt, **context)
        return turn.observe(lambda output: parse(output.completion), like)

    def settle(self, extraction: Extraction, **readings: object) -> None:
        """Let what a helper has read in the reply be its answer, in place of what the rules read.

        Args:
            extraction: the answer that counts.
            readings: what each reader read, by the names of the turns table.
        """
        self.extraction = extraction
        self.readings |= readings
        self.run.backend.settle(self)

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
        """Ask a helper until its reply is usable, and describe each fault to it.

        Args:
            prompt: the user message.
            parse: function that parses the reply or returns its fault.
            correct: function from a fault to the next prompt.
            like: function to the parsed reply in a dry run.
            tries: maximum number of requests.
            refusals: number of refusals after which it is not asked again.
            context: as for ``ask``.

        Returns:
            The last turn, with the parsed reply or its fault.
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
        """Return the turn as a row of the turns table."""
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
    """Run of a question in one replicate, as a protocol uses it.

    Attributes:
        question: the question.
        backend: source of the replies.
        replicate: 1-based epoch.
        epochs: number of epochs.
        turns: all turns, by request, previous turn and path.
        skipped_paths: reason for each path that cannot be asked for this question.
        rows: rows that a generation protocol created.
        final: request for final answers beside the conversations. None without one.
    """

    question: Question
    backend: Backend
    replicate: int = 1
    epochs: int = 1
    turns: dict[object, Turn] = field(default_factory=dict)
    skipped_paths: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    final: FinalAnswer | None = None
    orders: Any = field(default_factory=count)

    def has(self, role: str) -> bool:
        """Whether a model has this role."""
        return self.backend.has(role)

    def name(self, role: str) -> str:
        """Name of the model in a role, for the turns table."""
        return self.backend.name(role)

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
        """Start a conversation.

        Args:
            system: system message, None for none.
            role: role of the model.
            config: generation settings that override those of the study.
            seed: sampling seed of the first replicate. Other replicates and resamples derive
                different seeds from it. None leaves that of the study.
            resample: number of the resample. Resamples share no generations with the replicate or
                each other. 0 is the replicate itself.
            replicate: replicate whose generations are shared. None for that of the run.
            examples: user and assistant turns before the first request.
            question: the question, if it is not that of the run.
            purpose: purpose of the requests.
            parse: function that extracts answers.
            tokens: assumed length of a reply. None for that of the study.
        """
        replicate = self.replicate if replicate is None else replicate
        config = config or GenerateConfig()
        if seed is not None:  # otherwise servers repeat the reply in every replicate
            seed += replicate - 1 + resample * RESAMPLE_SEEDS
            config = config.model_copy(update={"seed": seed})
        question_asked = question or self.question
        opening = ConversationStart(
            role, system, tuple(examples), config, replicate, resample, purpose, parse,
            question_asked.content_hash, tokens,
        )  # fmt: skip
        return Turn(self, opening, question_asked, order=next(self.orders))

    def skip(self, path: str, why: str) -> None:
        """Record that a path cannot be asked for this question."""
        self.skipped_paths[path] = why

    async def side_by_side(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Run independent branches concurrently; if one fails, the others continue.

        Args:
            branches: branches by their name in the log viewer.

        Raises:
            BudgetExceededError: a branch spent the budget.
            BranchesFailedError: other failures, with the reason of every branch.
        """
        await self.backend.gather(branches)

    @property
    def ordered(self) -> list[Turn]:
        """All turns that a table counts, each branch after its root."""
        turns = [turn for turn in self.turns.values() if turn.arm and turn.extraction]
        return sorted(turns, key=lambda turn: (turn.place, turn.number, turn.order))
