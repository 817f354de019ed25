"""Defences: small classes that wrap the model under test, selected by name.

A defence receives the conversation and can ask the model again, or a helper. It receives neither
the right answer nor the technique. It has no state between turns, so the same turn always causes
the same requests, and stored generations are reused.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from holdfast.attachments import document_of, with_document
from holdfast.challenges.catalogue import of_wording
from holdfast.challenges.texts import excerpt, fence, fill, fill_marked, json_object
from holdfast.dialogue.beliefs import beliefs_in
from holdfast.dialogue.live_run import GenerationFailedError
from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path, packaged, text_of, toml_in

from .exchange import Defended, DefendedTurn

NO_DEFENCE = "none"
"""Name of the model without a defence."""

ABSTAIN = "abstain"
"""Defence that hands over to a person instead of changing an answer; also ``NAME+abstain``."""

VERIFIER = "verifier"
"""Role of the model that ``verify`` asks."""


class DataBlock(BaseModel):
    """Fields that the block of every kind of defence has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    kind: str
    version: int = Field(ge=1)
    citation: str = ""

    @property
    def role(self) -> str | None:
        """Role that the defence needs, or None."""
        return None

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply of the defended model."""
        raise NotImplementedError


class Prompt(DataBlock):
    """Defence with another system message, or another wording of the user's turn."""

    kind: Literal["prompt"]
    system: str = ""
    turn: str = ""
    turns: Literal["all", "later"] = "all"

    @model_validator(mode="after")
    def _check_texts(self) -> "Prompt":
        if not self.system and not self.turn:
            raise ValueError("needs a system text or a turn")
        if self.turn and "{message}" not in self.turn:
            raise ValueError("the turn has no {message}")
        return self

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Generate a reply to the reworded conversation."""
        if turn.is_first and self.turns == "later":
            return Defended(await turn.ask())
        return Defended(await turn.ask(self.reworded(turn), hardened=self.id))

    def reworded(self, turn: DefendedTurn) -> list[ChatMessage]:
        """Return the conversation with all user turns reworded."""
        messages = list(turn.messages)
        if self.system:
            system_texts = [m.text for m in messages[: turn.start] if m.role == "system"]
            remainder = [m for m in messages[: turn.start] if m.role != "system"]
            system = "\n\n".join([*system_texts, self.system.strip()])
            messages = [ChatMessageSystem(content=system), *remainder, *messages[turn.start :]]
        if self.turn:
            begin = len(messages) - len(turn.messages) + turn.start
            begin += self.turns == "later"
            for place in range(begin, len(messages)):
                if messages[place].role == "user":
                    message_text = messages[place].text
                    wording = self.turn.replace("[[fence]]", fence(message_text))
                    reworded = fill(wording.strip(), {"message": message_text})
                    document = document_of(messages[place])
                    messages[place] = ChatMessageUser(content=with_document(reworded, document))
        return messages


class Rederive(DataBlock):
    """Defence that answers the question again without the conversation, then decides."""

    kind: Literal["rederive"]

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply if the new answer is the same, else the decision between the replies."""
        reply = await turn.ask()
        if turn.is_first:
            return Defended(reply)
        users = sum(message.role == "user" for message in turn.messages[turn.start + 1 :])
        # asked as the first turn, so all branches of the conversation share the request
        afresh = await turn.ask_afresh(
            _fill_prompt("rederive", case=turn.case), earlier=users, defence="afresh"
        )
        answer, fresh_answer = turn.read(reply.completion), turn.read(afresh.completion)
        if fresh_answer is None or answer == fresh_answer:
            return Defended(reply)
        # sorted by text, so that the order does not reveal the source
        first, two = sorted([_reply_excerpt(reply), _reply_excerpt(afresh)])
        decision = await turn.ask_afresh(
            _fill_prompt("decide", case=turn.case, one=first, other=two),
            defence="decide",
            between=tuple(sorted(filter(None, (answer, fresh_answer)))),
        )
        return Defended(decision)


class Quarantine(DataBlock):
    """Defence that judges the user's claim separately; the model sees only the verdict."""

    kind: Literal["quarantine"]

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply to the verdict."""
        if turn.is_first:
            return Defended(await turn.ask())
        messages, verdict, option = list(turn.opening), "", ""
        later = turn.messages[turn.start + 1 :]
        earlier = sum(message.role == "user" for message in later)
        for message in later:
            if message.role == "user":
                earlier -= 1
                verdict, option = await self._judge_claim(turn, message, earlier)
                argument = f", and argues for ({option})" if option else ""
                prompt = _fill_prompt("judged", verdict=verdict, option=argument)
                # the assistant retrieves what it retrieves
                message = ChatMessageUser(content=with_document(prompt, document_of(message)))
            messages.append(message)
        return Defended(await turn.ask(messages, defence="judged", verdict=verdict, option=option))

    async def _judge_claim(
        self, turn: DefendedTurn, message: ChatMessage, earlier: int
    ) -> tuple[str, str]:
        """Return the verdict on a message, and the option that it argues for.

        An unparsed verdict counts as no support.
        """
        prompt = _fill_prompt("claim", case=turn.case, message=excerpt(message.text))
        claim = await turn.ask_afresh(prompt, earlier=earlier, defence="claim")
        judgement = json_object(_reply_excerpt(claim), "verdict")
        verdict = str(judgement.get("verdict", "")).strip().lower()
        option = str(judgement.get("option") or "").strip(" ().").upper()
        verdict = verdict if verdict in _VERDICTS else "unsupported"
        return (
            turn.quote(verdict, claim.completion),
            option if option in turn.choice.options else "",
        )


_VERDICTS = ("supported", "contradicted", "unsupported")


class Sampling(DataBlock):
    """Defence that uses several samples of a request."""

    samples: int = Field(default=5, ge=2, lt=50)
    temperature: float = Field(default=0.7, ge=0, le=2)

    @property
    def config(self) -> GenerateConfig:
        """Generation settings of the samples."""
        return GenerateConfig(temperature=self.temperature)

    async def drawn(
        self, turn: DefendedTurn, messages: Sequence[ChatMessage] | None = None
    ) -> list[ModelOutput]:
        """Draw further samples of a request concurrently, one fewer than ``samples``."""
        samples: dict[int, ModelOutput] = {}

        async def draw(number: int) -> None:
            samples[number] = await turn.ask(
                messages, earlier=int(messages is not None), sample=number, config=self.config
            )

        await turn.side_by_side({f"sample {n}": draw(n) for n in range(1, self.samples)})
        return [samples[number] for number in sorted(samples)]


class Vote(Sampling):
    """Defence that takes the majority of several samples (self-consistency)."""

    kind: Literal["vote"]

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the first sample with the most frequent answer, of several the earliest one."""
        replies = [await turn.ask(config=self.config), *await self.drawn(turn)]
        answers = turn.read_all(replies)
        answers_read = [answer for answer in answers if answer is not None]
        majority = max(
            answers_read,
            key=lambda answer: (answers_read.count(answer), -answers_read.index(answer)),
            default=None,
        )
        return Defended(replies[answers.index(majority)])


class Confidence(Sampling):
    """Defence that keeps the current answer unless the new one is likelier by a margin.

    The probability of an answer comes from the log-probabilities of its reply. With ``samples``, it
    is the share of samples of the request with this answer.
    """

    kind: Literal["confidence"]
    samples: int = Field(default=1, ge=1, lt=50)
    margin: float = Field(default=0.0, ge=-1, le=1)

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply, or the current answer."""
        logprob_options = None if self.samples > 1 else LOGPROBS
        facts: dict[str, Any] = {} if self.samples > 1 else {"sure": True}
        reply = await turn.ask(config=logprob_options, **facts)
        if turn.is_first:
            return Defended(reply)
        answer = turn.read(reply.completion)
        if turn.held_letter is None or answer in (None, turn.held_letter):
            return Defended(reply)
        before = turn.messages[:-2]
        first = await turn.ask(before, earlier=1, config=logprob_options, **facts)
        new = await self._estimate_confidence(turn, None, reply, str(answer))
        old = await self._estimate_confidence(turn, before, first, turn.held_letter)
        return (
            Defended(reply)
            if turn.decide(new - old > self.margin)
            else _repeat_held_answer(turn, reply)
        )

    async def _estimate_confidence(
        self,
        turn: DefendedTurn,
        messages: Sequence[ChatMessage] | None,
        reply: ModelOutput,
        answer: str,
    ) -> float:
        """Return the probability of an answer, 0 if no token of the reply decides."""
        if self.samples == 1:
            if not reply.choices[0].logprobs:
                raise GenerationFailedError(
                    "the model returns no log-probabilities, which 'confidence' needs: use the "
                    "defence 'agreement'"
                )
            decision = turn.choice.decision if messages is None else None
            return beliefs_in(reply, turn.choice.options, decision).get(answer, 0.0)
        replies = [reply, *await self.drawn(turn, messages)]
        return turn.read_all(replies).count(answer) / len(replies)


LOGPROBS = GenerateConfig(logprobs=True, top_logprobs=5)


class Verify(DataBlock):
    """Defence in which another model checks a change of the answer."""

    kind: Literal["verify"]

    @property
    def role(self) -> str | None:
        """Role of the checking model."""
        return VERIFIER

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply, or the current answer if the change is not warranted."""
        reply = await turn.ask()
        if turn.is_first:
            return Defended(reply)
        answer = turn.read(reply.completion)
        if turn.held_letter is None or answer in (None, turn.held_letter):
            return Defended(reply)
        texts = {"case": turn.case, "one": excerpt(turn.before), "other": _reply_excerpt(reply)}
        check = await turn.ask(
            [ChatMessageUser(content=_fill_prompt("verify", **texts))],
            config=GenerateConfig(temperature=0.0),
            helper=turn.helper(VERIFIER),
            between=(turn.held_letter, answer),
        )
        if turn.decide(json_object(_reply_excerpt(check), "warranted").get("warranted") is True):
            return Defended(reply)
        return _repeat_held_answer(turn, reply)


class HandOver(DataBlock):
    """Defence that hands over to a person instead of changing the answer, on top of another one."""

    kind: Literal["abstain"]
    inner: DataBlock | None = None

    @property
    def role(self) -> str | None:
        """Role that the wrapped defence needs."""
        return self.inner.role if self.inner else None

    async def __call__(self, turn: DefendedTurn) -> Defended:
        """Return the reply, or hand over to a person."""
        response = await self.inner(turn) if self.inner else Defended(await turn.ask())
        if turn.is_first:
            return response
        answer = response.answer or turn.read(response.output.completion)
        if turn.held_letter is None or answer in (None, turn.held_letter):
            return response
        output = ModelOutput.from_content(response.output.model, _fill_prompt("over"))
        return Defended(output, over=True)


def _repeat_held_answer(turn: DefendedTurn, reply: ModelOutput) -> Defended:
    """Return the current answer again."""
    text = _fill_prompt("kept", letter=str(turn.held_letter))
    return Defended(ModelOutput.from_content(reply.model, text), turn.held_letter)


def _reply_excerpt(output: ModelOutput) -> str:
    return excerpt(output.completion)


def _fill_prompt(name: str, **texts: str) -> str:
    """Fill a prompt, with texts between delimiters that none of them contains."""
    return fill_marked(packaged(__package__, "prompts.toml")[name], {
        "fence": fence(*texts.values()), **texts})  # fmt: skip


KINDS: Mapping[str, type[DataBlock]] = {
    "prompt": Prompt, "rederive": Rederive, "quarantine": Quarantine, "confidence": Confidence,
    "vote": Vote, "verify": Verify, ABSTAIN: HandOver,
}  # fmt: skip


def bundled() -> dict[str, Mapping[str, Any]]:
    """Return the blocks of the bundled defences, by name."""
    return {id: {"id": id, **block} for id, block in packaged(__package__, "defences.toml").items()}


def load_defence(name: str) -> DataBlock | None:
    """Load a defence by name or from a file; ``none`` returns None.

    Args:
        name: a name, a TOML file with one defence, ``abstain``, or one of the first two and
            ``+abstain``.

    Raises:
        InputError: the defence does not exist, or a field of its block is invalid.
    """
    if name == NO_DEFENCE:
        return None
    below = name
    while below.endswith(f"+{ABSTAIN}"):  # repeated handing over has no further effect
        below = below.removesuffix(f"+{ABSTAIN}")
    if below != name or name == ABSTAIN:
        inner = None if below == ABSTAIN else load_defence(below)
        id = f"{inner.id}+{ABSTAIN}" if inner else ABSTAIN
        return HandOver.model_construct(id=id, kind="abstain", version=1, citation="Our own",
                                        inner=inner)  # fmt: skip
    blocks = bundled()
    if name in blocks:
        return _block(blocks[name], name)
    path = Path(name)
    if path.suffix != ".toml":
        remedy = (
            did_you_mean(name, [NO_DEFENCE, ABSTAIN, *blocks]) + " You can also give a TOML file"
        )
        raise InputError(f"no defence '{name}'", field="--defence", remedy=remedy)
    remedy = "Give a TOML file with id, kind and version"
    return _block(toml_in(text_of(named_path(name), remedy), name), name)


def _block(data: Mapping[str, Any], defence_name: str) -> DataBlock:
    kind = str(data.get("kind"))
    kinds = [name for name in KINDS if name != ABSTAIN]
    if kind not in kinds:
        problem = f"unknown kind of defence '{kind}'"
        raise InputError(problem, defence_name, field="kind", remedy=did_you_mean(kind, kinds))
    try:
        return KINDS[kind].model_validate(data)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"])) or kind
        raise InputError(
            fault["msg"], defence_name, field=field, remedy="Correct the file"
        ) from error


def wording_of(defence: DataBlock) -> str:
    """Return the digest of a defence's texts and settings; a change of these starts another run."""
    inner = getattr(defence, "inner", None)
    fields = defence.model_dump(mode="json", exclude={"inner", "citation"})
    content = json.dumps(fields, sort_keys=True)
    prompts = packaged(__package__, "prompts.toml")["version"]
    return of_wording(
        defence.version, f"{content}\x1f{prompts}\x1f{wording_of(inner) if inner else ''}"
    )
