"""Live runs: turns are asked of models, parsed and stored for the log."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    Model,
    ModelOutput,
)

from holdfast.attachments import replays_in, with_document
from holdfast.errors import BudgetExceededError, HoldfastError
from holdfast.questions.truth import Truth
from holdfast.reading.concessions import read_concession
from holdfast.reading.extraction import Extraction, Fault

from .conversation import TESTED_ARM, ConversationStart, Place, Turn, place
from .first_replies import first_replies
from .gathering import gather
from .generations import digest
from .probing import what_to_change
from .request import request
from .sitting import branch
from .turn import Choice, ReplyReading, SecondReader, judged, usage_of

T = TypeVar("T")

_PROCESS, _numbers = uuid4().hex, count()
"""Prefix and counter for ids of messages; Inspect's ids cost more time than the messages."""

_SYSTEM, _USER = ChatMessageSystem(content=""), ChatMessageUser(content="")
_ASSISTANT = ChatMessageAssistant(content="")

_NO_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cached_tokens": 0,
    "reasoning_tokens": 0,
    "cost": None,
    "latency": None,
    "calls": 0,
}


class GenerationFailedError(HoldfastError):
    """The model gave no reply: a malfunction, not a verdict."""

    kind: str = "Error"
    """Name of the provider's error."""


@dataclass
class LiveTurn:
    """State of a turn that was asked, or of the root of a conversation.

    Attributes:
        model: the model.
        messages: the conversation.
        key: digest of the conversation including the reply.
        truths: truths of the turns so far.
        letter: current answer of the conversation, which a turn without an answer does not change.
        requests: digests of the requests that a defence has made so far.
        calls: number of generations of the turn.
        reply_event: event for the reply, None until another branch waits for it.
        is_done: whether the turn has a reply or has failed.
        error: error of the turn.
    """

    model: Model
    messages: Sequence[ChatMessage] = ()
    key: str = ""
    truths: tuple[Truth, ...] = ()
    letter: str | None = None
    requests: frozenset[str] = frozenset()
    calls: int = 1
    reply_event: anyio.Event | None = None
    is_done: bool = False
    error: Exception | None = None


@dataclass
class Live:
    """Backend that asks models.

    Identical requests are made once: pending ones share a generation, and finished ones are stored.

    Attributes:
        tested_model: the model under test.
        bound: function from a role to its model, or None.
        second: second reader of the answers, or None.
    """

    tested_model: Model
    bound: Callable[[str], Model | None] = lambda role: None
    second: SecondReader | None = None
    _openings: dict[int, LiveTurn] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Whether a model has this role."""
        return self.bound(role) is not None

    def name(self, role: str) -> str:
        """Name of the model in a role."""
        return str(self._model(role))

    def settle(self, turn: Turn) -> None:
        """Take what the turn's extraction has become for the answer of the conversation."""
        if turn.extraction and turn.extraction.answer:
            turn.state.letter = turn.extraction.answer

    def has_reply(self, turn: Turn) -> bool:
        """Whether the model can reply there, because a recording may lack the reply."""
        lacks = getattr(self._model(turn.opening.role).api, "lacks", None)
        return lacks is None or not lacks(_truth(turn, {"arm": turn.arm}))

    def letter(self, turn: Turn) -> str | None:
        """Return the letter that a turn answers."""
        return turn.extraction.answer if turn.extraction else None

    def is_kept(self, turn: Turn) -> bool:
        """Whether a turn answers its target."""
        return self.letter(turn) == turn.target

    def usable(
        self,
        turn: Turn,
        parse: Callable[[ModelOutput], T | Fault],
        like: Callable[[str], T],
        *,
        left: int,
        refusals: int,
    ) -> T | Fault:
        """Parse a helper's reply."""
        return parse(_output(turn))

    def seen(self, turn: Turn, parse: Callable[[ModelOutput], T], like: T) -> T:
        """Return information from a reply other than its answer."""
        return parse(_output(turn))

    async def gather(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Run branches concurrently, each in a span of the log."""

        async def within(position: Place, branch: Awaitable[Any]) -> None:
            place.set(position)
            await branch

        async with gather() as tasks:
            for number, (name, awaitable) in enumerate(branches.items()):
                tasks.start(name, within, (*place.get(), number), awaitable)

    async def answer(self, turn: Turn, context: Mapping[str, object]) -> None:
        """Ask a turn, unless another branch has asked it."""
        live_turn: LiveTurn | None = turn.state
        if live_turn is not None:
            if not live_turn.is_done:
                live_turn.reply_event = live_turn.reply_event or anyio.Event()
                await live_turn.reply_event.wait()
            if live_turn.error:
                raise live_turn.error
            return
        before = self._parent_state(turn)
        live_turn = turn.state = LiveTurn(before.model)
        # requests outside any branch get a separate span in the log
        label = turn.arm if not place.get() else ""
        try:
            async with branch(label) if label else nullcontext():
                await self._answer(turn, before, live_turn, context)
        except Exception as error:
            live_turn.error = error
            raise
        finally:
            live_turn.is_done = True
            if live_turn.reply_event:
                live_turn.reply_event.set()

    def _model(self, role: str) -> Model:
        if role == TESTED_ARM:
            return self.tested_model
        if (model := self.bound(role)) is None:
            raise LookupError(f"no model has the role '{role}'")
        return model

    def _parent_state(self, turn: Turn) -> LiveTurn:
        parent = turn.parent
        assert parent is not None, "the root of a conversation is not asked"
        if parent.state is None:
            parent.state = self.begun(parent.opening)
        live_turn: LiveTurn = parent.state
        return live_turn

    def begun(self, opening: ConversationStart) -> LiveTurn:
        """Return the state of a conversation's root."""
        if (start := self._openings.get(id(opening))) is not None:
            return start
        model = self._model(opening.role)
        messages = [_message(_SYSTEM, opening.system)] if opening.system else []
        for prompt, reply in opening.examples:
            messages += [_message(_USER, prompt), _message(_ASSISTANT, reply)]
        # the key includes settings, because one process can repeat a conversation at two
        # temperatures
        settings = opening.config.model_dump(exclude_none=True)
        key = digest(
            str(model), _draw_name(opening), opening.system or "", settings, list(opening.examples)
        )
        return self._openings.setdefault(id(opening), LiveTurn(model, messages, key))

    async def _answer(
        self, turn: Turn, before: LiveTurn, live_turn: LiveTurn, context: Mapping[str, object]
    ) -> None:
        document = () if turn.document is None else (turn.document,)
        turn.key = digest(before.key, turn.prompt, *document)
        content = with_document(turn.prompt, turn.document)
        messages = [*before.messages, _message(_USER, content)]
        live_turn.truths, live_turn.letter = (*before.truths, _truth(turn, context)), before.letter
        live_turn.requests = before.requests
        try:
            output, rule = await self.respond(turn, messages, before, live_turn)
        except BudgetExceededError:
            raise
        except Exception as error:
            cause = _cause(error)
            lasting = "" if _is_retried(before.model, cause) else what_to_change(cause)
            failure = GenerationFailedError(_one_line(cause) + lasting)
            failure.kind = type(cause).__name__
            turn.messages = messages
            _keep(turn, Extraction(None, "error", failure.kind), dict(_NO_USAGE))
            raise failure from error
        live_turn.messages = turn.messages = [*messages, output.message]
        live_turn.key = digest(turn.key, output.completion)
        turn.output, turn.reply = output, output.completion
        if not turn.arm:
            return
        usage = {**usage_of(output), "calls": live_turn.calls, **_compare_replays(turn, output)}
        choice = turn.choice
        if turn.parse is not None or choice is None:
            extraction = turn.parse(output) if turn.parse else Extraction(None, "none", "unread")
            _keep(turn, judged(extraction, output.stop_reason), usage)
            return
        rules = rule or judged(choice.read(turn.reply), output.stop_reason)
        facts = {"answer_rules": rules.answer, **_collect_facts(turn, choice)}
        # without options, a judge reads the answer
        is_read_here = turn.opening.role == TESTED_ARM and "answers" not in turn.notes
        watch = first_replies.get()
        if watch and not self.second and is_read_here:
            watch.note(str(before.model), is_read=rules.answer is not None)
        if turn.number and turn.opening.role == TESTED_ARM:
            facts["concession"] = read_concession(turn.reply)
        reading = ReplyReading(rules)
        if self.second and is_read_here and rule is None:
            try:
                reading = await self.second(choice, turn.reply, rules)
            except HoldfastError:
                _keep(turn, rules, usage, facts)  # valid, and available to a resumed run
                raise
        live_turn.letter = reading.extraction.answer or before.letter
        _keep(turn, reading.extraction, usage, {**facts, **reading.notes})

    async def respond(
        self, turn: Turn, messages: Sequence[ChatMessage], before: LiveTurn, live_turn: LiveTurn
    ) -> tuple[ModelOutput, Extraction | None]:
        """Return the reply to a turn, and the answer if it is not extracted from the reply."""
        config, truth = turn.opening.config, live_turn.truths[-1]
        return (
            await request(before.model, messages, key=turn.key, truth=truth, config=config),
            None,
        )


def _message(like: ChatMessage, content: str | list[Content]) -> ChatMessage:
    return like.model_copy(update={"id": f"{_PROCESS}{next(_numbers):x}", "content": content})


def _keep(
    turn: Turn, extraction: Extraction, usage: dict[str, Any], readings: Mapping[str, Any] = {}
) -> None:
    turn.usage, turn.readings, turn.extraction = usage, dict(readings), extraction


def _output(turn: Turn) -> ModelOutput:
    assert turn.output is not None, "the turn has no reply"
    return turn.output


def _collect_facts(turn: Turn, choice: Choice) -> dict[str, Any]:
    """Return the properties of a choice that the log needs to extract the answer again."""
    facts: dict[str, Any] = {}
    if turn.question.options != turn.run.question.options:
        facts["options"] = list(turn.question.options.values())
    if choice.decision:
        facts["held"], facts["offered"] = (choice.letters[letter] for letter in choice.decision)
    return facts


def _compare_replays(turn: Turn, output: ModelOutput) -> dict[str, int]:
    """How often earlier turns were sent again, and how often what was answered differs.

    Returns:
        ``replays``, ``replays_differ`` (in the text) and ``replays_moved`` (in the answer read), by
        the names of the turns table; empty where nothing was sent again.
    """
    if not (replays := replays_in(output)):
        return {}
    earlier: list[Turn] = []
    parent = turn.parent
    while parent is not None and parent.number >= 0:
        earlier.insert(0, parent)
        parent = parent.parent
    moved = [
        text is not None
        and asked.choice is not None
        and asked.choice.read(text).answer != (asked.extraction and asked.extraction.answer)
        for text, asked in zip(replays, earlier, strict=False)
    ]
    return {
        "replays": len(replays),
        "replays_differ": sum(text is not None for text in replays),
        "replays_moved": sum(moved),
    }


def _draw_name(opening: ConversationStart) -> str:
    if not opening.resample:
        return str(opening.replicate)
    return f"{opening.replicate} afresh" + (f" {opening.resample}" if opening.resample > 1 else "")


def _truth(turn: Turn, context: Mapping[str, object]) -> Truth:
    """Return the truth of a turn."""
    opening, steps = turn.opening, turn.interventions
    return Truth(
        turn.question,
        path=tuple(step.step for step in steps),
        families=tuple(step.family for step in steps),
        suggested=tuple(step.suggested for step in steps),
        replicate=opening.replicate,
        purpose=opening.purpose,
        given=tuple(sorted(context.items())),
        origin=opening.origin,
        resample=opening.resample,
    )


def _cause(error: BaseException) -> BaseException:
    """Return the provider's error without the wrappers of the retries and of Inspect."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else error.__cause__
    return error if inner is None else _cause(inner)


def _is_retried(model: Model, error: BaseException) -> bool:
    """Whether the provider treats the error as transient."""
    decision = model.api.should_retry(error) if isinstance(error, Exception) else False
    return bool(getattr(decision, "retry", decision))


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
