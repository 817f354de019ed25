"""A conversation with a model: ask, and branch off without asking again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import uuid4

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)

from holdfast.errors import BudgetExceededError, HoldfastError
from holdfast.questions import RESAMPLE_SEEDS, Purpose, Question, Truth
from holdfast.reading import Extraction, extract_answer

from .defending import SAMPLES, Ask, Defence, Defended, Exchange
from .generations import digest
from .probing import what_to_change
from .request import request
from .sitting import branch
from .turn import (
    UNCHALLENGED,
    Choice,
    Intervention,
    Reading,
    Rule,
    SecondReader,
    Turn,
    judged,
    usage_of,
)

_PROCESS, _numbers = uuid4().hex, count()
"""Ids of messages: those that Inspect would give cost more than what is said."""

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


def _said_by(who: ChatMessage, content: str) -> ChatMessage:
    return who.model_copy(update={"id": f"{_PROCESS}{next(_numbers):x}", "content": content})


class GenerationFailedError(HoldfastError):
    """The model gave no reply: a malfunction, no verdict."""

    kind: str = "Error"
    """Name of the provider's own error."""


class Conversation:
    """What was said so far, and the way to say more.

    An identical request is made once in a run: identical conversations in flight wait for one
    generation, finished ones come from those that are kept. A branch shares everything said before
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
        resample: int = 0,
        seed: int | None = None,
        purpose: Purpose = "answer",
        read: Rule = extract_answer,
        second: SecondReader | None = None,
        examples: Sequence[tuple[str, str]] = (),
        defence: Defence | None = None,
        helper: Callable[[str], Model | None] = lambda role: None,
    ) -> None:
        """Start a conversation.

        Args:
            model: the model that answers.
            question: what is discussed; answers are read against its options.
            system: system message, None for none.
            config: generation settings of this conversation, over those of the task.
            replicate: 1-based epoch; replicates never share a generation.
            resample: asks afresh what the replicate asks, the further time of that number: shares
                no generation with it, nor with those of other numbers.
            seed: of the first replicate's sampling, each further one has the next, and what is
                asked afresh one of its own; None leaves the task's.
            purpose: what the model is asked for.
            read: reads the answers.
            second: reads them beside it, None for nobody.
            examples: user and assistant turns said before anything is asked.
            defence: stands around the model in every turn that is asked; None for nothing.
            helper: the model in a role, which the defence may ask.
        """
        self.model = model
        self.question = question
        self.interventions: tuple[Intervention, ...] = ()
        self._origin = question.content_hash
        self._config = config or GenerateConfig()
        if seed is not None:  # a server that heeds seeds would say the same in every replicate
            seed += replicate - 1 + resample * RESAMPLE_SEEDS
            self._config = self._config.model_copy(update={"seed": seed})
        self._truth = Truth(question, replicate=replicate, resample=resample, purpose=purpose)
        self._read = read
        self._second = second
        self._own = question.options
        self._messages: list[ChatMessage] = [_said_by(_SYSTEM, system)] if system else []
        for asked, said in examples:
            self._messages += [_said_by(_USER, asked), _said_by(_ASSISTANT, said)]
        self._defence, self._helper, self._start = defence, helper, len(self._messages)
        self._held: str | None = None
        self._before: tuple[Truth, ...] = ()
        self._requested: frozenset[str] = frozenset()
        # settings count: in one process the same words can be said at two temperatures
        settings = self._config.model_dump(exclude_none=True)
        self._key = digest(str(model), self._truth.drawn, system or "", settings, list(examples))
        self._position: tuple[int, ...] = ()
        self._children = 0
        self._asked = 0
        self.last: ModelOutput | None = None
        # shared by all branches
        self._said: list[tuple[tuple[int, ...], Turn, list[ChatMessage]]] = []

    @property
    def messages(self) -> list[ChatMessage]:
        """Everything said so far in this branch."""
        return list(self._messages)

    @property
    def turns(self) -> list[Turn]:
        """Every turn of this conversation and its branches, each branch after its root."""
        return [turn for _, turn, _ in sorted(self._said, key=lambda said: said[0])]

    @property
    def challenged(self) -> list[ChatMessage]:
        """The conversation that says most: the first that left its target, else any challenged one.

        Without a challenge, or where none was answered, it is what was said in this branch.
        """
        told = [(turn, messages) for _, turn, messages in sorted(self._said, key=lambda s: s[0])
                if turn.interventions and turn.reply and turn.arm not in UNCHALLENGED]  # fmt: skip
        gave_way = (messages for turn, messages in told if turn.answer != turn.target)
        return next(gave_way, told[0][1] if told else self.messages)

    def branch(
        self, intervention: Intervention | None = None, *, question: Question | None = None
    ) -> "Conversation":
        """A conversation that goes on from here with that intervention.

        Args:
            intervention: what is done to the conversation, None for nothing.
            question: the question as this branch puts it, where it differs.
        """
        other = Conversation.__new__(Conversation)
        other.__dict__.update(self.__dict__)
        other.question = question or self.question
        if intervention is not None:
            other.interventions = (*self.interventions, intervention)
        other._messages = list(self._messages)
        other._position = (*self._position, self._children)
        other._children = 0
        self._children += 1
        return other

    async def say(self, prompt: str, **given: object) -> ModelOutput:
        """Say ``prompt``; the reply becomes part of the conversation, but no turn of the table.

        Args:
            prompt: the user message.
            given: what a simulated model is told beside it.

        Raises:
            BudgetExceededError: the run's budget is spent.
            GenerationFailedError: the provider gave no reply, its retries used up.
        """
        output, _ = await self._say(prompt, digest(self._key, prompt), given)
        return output

    async def _say(
        self, prompt: str, key: str, given: Mapping[str, object], choice: Choice | None = None
    ) -> tuple[ModelOutput, Defended | None]:
        asked = [*self._messages, _said_by(_USER, prompt)]
        truth, config, defended = self._under_way(given), self._config, None
        try:
            if self._defence is None or choice is None:
                output = await request(self.model, asked, key=key, truth=truth, config=config)
            else:
                defended = await self._defend(self._defence, asked, key, truth, choice)
                output = defended.output
        except BudgetExceededError:
            raise
        except Exception as error:
            cause = _cause(error)
            lasting = "" if _tried_again(self.model, cause) else what_to_change(cause)
            failed = GenerationFailedError(_one_line(cause) + lasting)
            failed.kind = type(cause).__name__
            raise failed from error
        self._asked, self._before = self._asked + 1, (*self._before, truth)
        self.last = output
        self._messages = [*asked, output.message]
        self._key = digest(key, output.completion)
        return output, defended

    async def _defend(
        self,
        defence: Defence,
        asked: Sequence[ChatMessage],
        key: str,
        truth: Truth,
        choice: Choice,
    ) -> Defended:
        """What the defended model says, with all that this took."""
        shown = {own: letter for letter, own in choice.letters.items()}
        held = shown.get(self._held or "")
        turn = Exchange(asked, self._start, choice, held, self._ask_for(key, truth), self._helper)
        async with branch(defence.id):
            found = await defence(turn)
        return replace(found, output=turn.spent(found.output), calls=len(turn.outputs))

    def _ask_for(self, key: str, truth: Truth) -> Ask:
        """Makes the requests of a defence; what was asked in this conversation counts once."""

        async def ask(
            turn: Exchange,
            messages: Sequence[ChatMessage],
            earlier: int,
            sample: int,
            config: GenerateConfig | None,
            helper: Model | None,
            given: Mapping[str, object],
        ) -> ModelOutput:
            model, own = helper or self.model, self._config
            about = self._before[-earlier] if earlier else truth
            if helper is not None:
                own = GenerateConfig(seed=own.seed)
            if sample:  # beside the times that a protocol asks afresh
                times = (about.resample + 2) * SAMPLES + sample
                own = own.model_copy(update={"seed": (own.seed or 0) + times * RESAMPLE_SEEDS})
                about = replace(about, resample=about.resample + times)
            own = own.merge(config) if config else own
            if given or sample:
                told = {**dict(about.given), **given, **({"sample": sample} if sample else {})}
                purpose: Purpose = "answer" if helper is None else "verification"
                about = replace(about, given=tuple(sorted(told.items())), purpose=purpose)
            content = digest(
                str(model), about.drawn, own.model_dump(exclude_none=True),
                [(message.role, message.text) for message in messages],
            )  # fmt: skip
            # what is asked without the defence too waits for the same generation
            plain = messages is turn.messages and own is self._config
            output = await request(
                model, messages, key=key if plain else content, truth=about, config=own
            )
            if content not in self._requested:
                self._requested |= {content}
                turn.outputs.append(output)
            return output

        return ask

    def has_reply(self, arm: str) -> bool:
        """Whether the model has a reply to give in that arm; a recording may lack it."""
        lacks = getattr(self.model.api, "lacks", None)
        return lacks is None or not lacks(self._under_way({"arm": arm}))

    def _under_way(self, given: Mapping[str, object]) -> Truth:
        """What is true of the next turn."""
        return replace(
            self._truth,
            question=self.question,
            path=tuple(intervention.step for intervention in self.interventions),
            families=tuple(intervention.family for intervention in self.interventions),
            suggested=tuple(intervention.suggested for intervention in self.interventions),
            given=tuple(sorted(given.items())),
            origin=self._origin,
        )

    async def ask(
        self,
        prompt: str,
        *,
        arm: str,
        target: str | None = None,
        choice: Choice | None = None,
        read: Callable[[str], Extraction] | None = None,
        notes: Mapping[str, Any] | None = None,
        **given: object,
    ) -> Turn:
        """Say ``prompt`` and read the answer.

        Args:
            prompt: the user message.
            arm: the branch's role in its protocol.
            target: the option that the protocol wants kept.
            choice: what is answered, where the options in play are not those of the question.
            read: reads this reply, where it is no answer to a question.
            notes: what is known of the turn before it is answered, by the names of the table.
            given: what a simulated model is told beside the prompt.

        Returns:
            The turn; it is also in ``turns``.

        Raises:
            BudgetExceededError: the run's budget is spent.
            GenerationFailedError: the provider gave no reply, its retries used up; the turn is
                kept in ``turns`` with the status ``error`` and the kind of fault as its rule.
        """
        number, key = self._asked, digest(self._key, prompt)

        def keep(reply: str, reading: Reading, usage: dict[str, Any]) -> Turn:
            turn = Turn(
                arm, number, self.interventions, target, key, prompt, reply, reading.extraction,
                usage, dict(notes or {}), dict(reading.notes),
            )  # fmt: skip
            self._said.append((self._position, turn, self._messages))
            return turn

        choice = choice or Choice.among(self.question.options, self._read)
        try:
            output, defended = await self._say(
                prompt, key, {"arm": arm, **given}, None if read else choice
            )
        except GenerationFailedError as error:
            keep("", Reading(Extraction(None, "error", error.kind)), _NO_USAGE)
            raise
        reply, usage = output.completion, usage_of(output)
        if read:
            return keep(reply, Reading(judged(read(reply), output.stop_reason)), usage)
        settled = defended.extraction(choice) if defended else None
        if defended:
            usage["calls"] = defended.calls
        if settled is not None:
            self._held = settled.answer or self._held
            known = {"answer_rules": settled.answer, **self._not_the_samples(choice)}
            return keep(reply, Reading(settled, known), usage)
        rules = judged(choice.read(reply), output.stop_reason)
        known = {"answer_rules": rules.answer, **self._not_the_samples(choice)}
        try:
            second = await self._second(choice, reply, rules) if self._second else Reading(rules)
        except HoldfastError:
            keep(reply, Reading(rules, known), usage)  # sound, and there when this is gone on with
            raise
        self._held = second.extraction.answer or self._held
        return keep(reply, Reading(second.extraction, {**known, **second.notes}), usage)

    def _not_the_samples(self, choice: Choice) -> dict[str, Any]:
        """What the log has to say of a choice for its reply to be read again."""
        said: dict[str, Any] = {}
        if self.question.options != self._own:
            said["options"] = list(self.question.options.values())
        if choice.decision:
            said["held"], said["offered"] = (choice.letters[letter] for letter in choice.decision)
        return said


def _cause(error: BaseException) -> BaseException:
    """The provider's own error, out of the wrappers of the retries and of Inspect."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else error.__cause__
    return error if inner is None else _cause(inner)


def _tried_again(model: Model, error: BaseException) -> bool:
    """Whether the provider takes the error for one that passes."""
    decision = model.api.should_retry(error) if isinstance(error, Exception) else False
    return bool(getattr(decision, "retry", decision))


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
