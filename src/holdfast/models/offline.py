"""Models that need no network: the floor that counts shared words, and recorded replies."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from holdfast.errors import InputError
from holdfast.questions.question import LETTERS
from holdfast.questions.rows import read_rows
from holdfast.questions.truth import Truth, under_test
from holdfast.simulation import is_simulated


def replied(
    model: str,
    text: str,
    usage: ModelUsage,
    *,
    reasoning: str | None = None,
    stop_reason: StopReason = "stop",
    logprobs: Logprobs | None = None,
) -> ModelOutput:
    """A reply whose parts are known to be sound: pydantic need not look at them again."""
    content = [ContentReasoning(reasoning=reasoning), ContentText(text=text)] if reasoning else text
    fields = {"id": f"{_PROCESS}{next(_numbers):x}", "model": model, "content": content}
    choice = _CHOICE.model_copy(
        update={
            "message": _CHOICE.message.model_copy(update=fields),
            "stop_reason": stop_reason,
            "logprobs": logprobs,
        }
    )
    return _OUTPUT.model_copy(
        update={"model": model, "choices": [choice], "completion": text, "usage": usage}
    )


_PROCESS, _numbers = uuid4().hex, count()
_CHOICE = ChatCompletionChoice(message=ChatMessageAssistant(content="", source="generate"))
_OUTPUT = ModelOutput(choices=[_CHOICE])


class Local(ModelAPI):
    """A responder in this process that is told what is true of the turn under way."""

    provider: str
    """Its name before the slash."""

    direct = offline = True
    """Nothing of Inspect's is needed around a request, and no connection."""

    sent_as: ClassVar[Mapping[str, str]] = {}
    """Inspect's settings of generation that replies depend on, as for a server."""

    @abstractmethod
    def looked_at(self, truth: Truth) -> str:
        """Everything beside messages and settings that a reply depends on, for the cache's key."""

    @abstractmethod
    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, Logprobs | None]:
        """The reply to the turn under way, with its log-probabilities where asked for."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The reply, with its tokens estimated at four characters each."""
        truth = under_test.get()
        if truth is None:
            raise RuntimeError(f"{self.provider}/ models answer only inside a holdfast protocol")
        text, logprobs = self.reply(truth, input, config)
        input_tokens = sum(len(message.text) for message in input) // 4
        output_tokens = max(1, len(text) // 4)
        # without a usage of our own the framework would fetch a tokenizer
        usage = ModelUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
        )
        return replied(f"{self.provider}/{self.model_name}", text, usage, logprobs=logprobs)

    def max_connections(self) -> int:
        """No connection is made, so none is waited for."""
        return 1000


class Lexical(Local):
    """Answers the option that shares most of its words with what the user has said."""

    provider = "lexical"

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        **model_args: object,
    ) -> None:
        """Check the name."""
        super().__init__(model_name, base_url, api_key, [], config)
        if model_name != "overlap":
            raise InputError(
                f"unknown lexical model '{model_name}'",
                field="--model",
                remedy="Use lexical/overlap",
            )

    def looked_at(self, truth: Truth) -> str:
        """The question and the options on display."""
        return f"{truth.question.content_hash} {dict(truth.given).get('shown')}"

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, None]:
        """The option with the largest share of its words in stem and challenges; ties go to A."""
        question, options = truth.question, dict(truth.question.options)
        challenges = [message.text for message in messages if message.role == "user"][1:]
        if letters_shown := dict(truth.given).get("shown"):
            # options on display have letters of their own, and every prompt repeats them
            texts = [options.get(letter, "") for letter in letters_shown]
            options, challenges = dict(zip(LETTERS, texts, strict=False)), []
        words_read = _words(" ".join([question.stem, *challenges]))
        best = max(options, key=lambda letter: _share(options[letter], words_read))
        return f"Final Answer: ({best})", None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _share(option: str, words_read: set[str]) -> float:
    words = _words(option)
    return len(words & words_read) / len(words) if words else 0.0


class Recorded(Local):
    """Replies by question id and path, from a turns table or a file with those columns.

    Where the rows have an ``arm``, replies to one path in several arms are kept apart.

    Model arguments (``-M``) name other columns: ``question``, ``path``, ``reply``; a file without
    the path column holds first replies only. ``where=COLUMN=VALUE`` keeps the rows of one model
    or condition.
    """

    provider = "recorded"

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        question: str = "question",
        path: str = "path",
        reply: str = "reply",
        where: str = "",
        **model_args: object,
    ) -> None:
        """Read the file."""
        column, _, value = where.partition("=")
        row_count, simulated_rows = 0, False
        self._replies: dict[tuple[str, str], dict[str, str]] = {}
        for number, row in read_rows(Path(model_name)):
            if isinstance(row, str):
                raise InputError(row, model_name, number, remedy="Correct the row")
            if where and str(row.get(column)) != value:
                continue
            row_count += 1
            simulated_rows |= is_simulated(str(row.get("model")))
            for name in (question, reply, *([path] if path != "path" else [])):
                if name not in row:
                    raise InputError(
                        "is missing", model_name, number, name, "Name the column with -M"
                    )
            key = (str(row[question]), str(row.get(path) or ""))
            text = "" if row[reply] is None else str(row[reply])
            if self._replies.setdefault(key, {}).setdefault(str(row.get("arm")), text) != text:
                raise InputError(
                    f"a second reply for question '{key[0]}' and path '{key[1]}'",
                    model_name,
                    number,
                    remedy="Select one condition with -M where=COLUMN=VALUE",
                )

        # simulated results say so wherever they appear, in a recording too
        name = f"{model_name} [simulated]" if simulated_rows else model_name
        super().__init__(name, base_url, api_key, [], config)
        if not row_count:
            raise InputError(
                f"where={where} matches no row", model_name, field=column, remedy="Check -M where="
            )

    def looked_at(self, truth: Truth) -> str:
        """The recorded reply itself."""
        return f"{truth.question.id} {'>'.join(truth.path)} {self._recorded_reply(truth)}"

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, None]:
        """The recorded reply to the turn under way."""
        return self._recorded_reply(truth), None

    def lacks(self, truth: Truth) -> bool:
        """Whether the turn under way was not recorded."""
        return self._look_up(truth)[1] is None

    def _recorded_reply(self, truth: Truth) -> str:
        key, reply = self._look_up(truth)
        if reply is None:
            raise InputError(
                f"no recorded reply for question '{key[0]}' and path '{key[1]}'",
                self.model_name,
                remedy="Remove the technique with -T techniques=..., or record it",
            )
        return reply

    def _look_up(self, truth: Truth) -> tuple[tuple[str, str], str | None]:
        """By which question and path a reply was looked up, and the reply, None without one."""
        id, path = truth.question.id, ">".join(truth.path)
        # questions numbered by the loader are 0000, 0001, ...; recordings may count 0, 1, ...
        key = (
            (id, path) if (id, path) in self._replies or not id.isdigit() else (str(int(id)), path)
        )
        by_arm = self._replies.get(key, {})
        distinct = set(by_arm.values())
        reply = by_arm.get(str(dict(truth.given).get("arm")))
        if reply is None and len(distinct) == 1:
            reply = distinct.pop()
        return key, reply
