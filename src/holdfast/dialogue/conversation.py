"""A conversation with the model under test: ask, and branch off without asking again."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)

from holdfast.errors import BudgetExceededError, HoldfastError
from holdfast.questions import Question, Truth, under_test

from .budget import Budget, run_budget
from .extraction import Extraction, extract_answer
from .turn import Intervention, Turn, judged, usage_of

_NO_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cached_tokens": 0,
    "reasoning_tokens": 0,
    "cost": None,
    "latency": None,
}


class GenerationFailedError(HoldfastError):
    """The model gave no reply: a malfunction, no verdict."""


class Conversation:
    """What was said so far, and the way to say more.

    An identical request is made once in a run: identical conversations in flight wait for one
    generation, finished ones come from Inspect's cache. A branch shares everything said before
    it, so a protocol need not arrange for shared prefixes.
    """

    def __init__(
        self,
        model: Model,
        question: Question,
        *,
        system: str | None = None,
        config: GenerateConfig | None = None,
        replicate: int = 1,
    ) -> None:
        """Start a conversation.

        Args:
            model: the model that answers.
            question: what is discussed; answers are read against its options.
            system: system message, None for none.
            config: generation settings of this conversation, over those of the task.
            replicate: 1-based epoch; replicates never share a generation.
        """
        self.model = model
        self.question = question
        self.interventions: tuple[Intervention, ...] = ()
        self._config = config or GenerateConfig()
        self._replicate = replicate
        self._messages: list[ChatMessage] = [ChatMessageSystem(content=system)] if system else []
        self._key = _digest(str(model), str(replicate), system or "")
        self._position: tuple[int, ...] = ()
        self._children = 0
        self._asked = 0
        self._said: list[tuple[tuple[int, ...], Turn]] = []  # shared by all branches

    @property
    def messages(self) -> list[ChatMessage]:
        """Everything said so far in this branch."""
        return list(self._messages)

    @property
    def turns(self) -> list[Turn]:
        """Every turn of this conversation and its branches, each branch after its root."""
        return [turn for _, turn in sorted(self._said, key=lambda said: said[0])]

    def branch(self, intervention: Intervention) -> "Conversation":
        """A conversation that goes on from here with that intervention."""
        other = Conversation.__new__(Conversation)
        other.__dict__.update(self.__dict__)
        other.interventions = (*self.interventions, intervention)
        other._messages = list(self._messages)
        other._position = (*self._position, self._children)
        other._children = 0
        self._children += 1
        return other

    async def ask(self, prompt: str, *, arm: str, target: str | None = None) -> Turn:
        """Say ``prompt`` and read the answer.

        Args:
            prompt: the user message.
            arm: the branch's role in its protocol.
            target: the option that the protocol wants kept.

        Returns:
            The turn; it is also in ``turns``.

        Raises:
            BudgetExceededError: the run's budget is spent.
            GenerationFailedError: the provider gave no reply, its retries used up; the turn is
                kept in ``turns`` with the status ``error`` and the kind of fault as its rule.
        """
        asked = [*self._messages, ChatMessageUser(content=prompt)]
        key = _digest(self._key, prompt)
        try:
            output = await self._generate(asked, key)
        except BudgetExceededError:
            raise
        except Exception as error:
            cause = _cause(error)
            failure = Extraction(None, "error", type(cause).__name__)
            self._keep(
                Turn(
                    arm,
                    self._asked,
                    self.interventions,
                    target,
                    key,
                    prompt,
                    "",
                    failure,
                    _NO_USAGE,
                )
            )
            raise GenerationFailedError(_one_line(cause)) from error
        reply = output.completion
        extraction = judged(extract_answer(reply, self.question.options), output.stop_reason)
        usage = usage_of(output)
        turn = Turn(
            arm, self._asked, self.interventions, target, key, prompt, reply, extraction, usage
        )
        self._keep(turn)
        self._asked += 1
        self._messages = [*asked, output.message]
        self._key = _digest(key, reply)
        return turn

    def _keep(self, turn: Turn) -> None:
        self._said.append((self._position, turn))

    async def _generate(self, messages: list[ChatMessage], key: str) -> ModelOutput:
        truth = Truth(
            self.question,
            tuple(step.id for step in self.interventions),
            tuple(step.family for step in self.interventions),
            tuple(step.suggested for step in self.interventions),
            self._replicate,
        )
        # Inspect's cache is not single-flight, and its key holds neither the model's arguments
        # nor the replicate, nor what else a responder without a network looks at
        looked_at = getattr(self.model.api, "looked_at", None)
        policy = CachePolicy(
            expiry=None,
            scopes={
                "model_args": _digest(self.model.model_args),
                "replicate": str(self._replicate),
                "looked_at": looked_at(truth) if looked_at else "",
            },
        )
        budget = run_budget.get() or Budget()
        token = under_test.set(truth)
        try:
            async with _alone(key), budget.request() as spending:
                output = await self.model.generate(messages, config=self._config, cache=policy)
                if not output.choices:
                    raise RuntimeError(output.error or "the provider returned no choice")
                spending.usage = output.usage
                spending.cached = _from_cache(output)
        finally:
            under_test.reset(token)
        return output


def _cause(error: BaseException) -> BaseException:
    """The provider's own error, out of the wrappers of the retries and of Inspect."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else error.__cause__
    return error if inner is None else _cause(inner)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]


_asking: dict[str, tuple[anyio.Lock, int]] = {}


@asynccontextmanager
async def _alone(key: str) -> AsyncIterator[None]:
    """Let one request with this key through at a time; the others then find it in the cache."""
    lock, waiting = _asking.get(key, (anyio.Lock(), 0))
    _asking[key] = (lock, waiting + 1)
    try:
        async with lock:
            yield
    finally:
        lock, waiting = _asking[key]
        if waiting == 1:
            del _asking[key]
        else:
            _asking[key] = (lock, waiting - 1)


def _from_cache(output: ModelOutput) -> bool:
    """Whether the generation just returned was read from the cache, by its event in the log."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices:
            if event.output.choices[0].message.id == output.message.id:
                return event.cache == "read"
    return False
