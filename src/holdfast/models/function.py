"""``python:FILE.py:FUNCTION``: an assistant that is a Python function of the user."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import anyio
from anyio import CapacityLimiter
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    RetryDecision,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from tenacity.wait import wait_base

from holdfast.attachments import document_of
from holdfast.errors import InputError, in_one_line
from holdfast.files import import_file, line_in, named_path, text_of

from .offline import replied
from .server import RetryWait

PREFIX = "python:"
"""Prefix of a function on the command line."""

_REMEDY = "Write python:FILE.py:FUNCTION"

_THREADS = 8
"""Default number of concurrent calls of a function that is not async."""

Reply = Callable[..., Any]
"""Function from the messages, and optionally a ``document``, to the reply."""

_named: dict[str, tuple[Reply, str]] = {}
"""Functions that the user of this process has named, and their files, by digest."""


def function_name(source: str) -> str:
    """Return the name of a function in results: its file without the folder, and its name.

    Args:
        source: ``python:FILE.py:FUNCTION``.

    Raises:
        InputError: the source has another form.
    """
    file, _, function = source.removeprefix(PREFIX).rpartition(":")
    if not file.endswith(".py") or not function.isidentifier():
        raise InputError(f"'{source}' names no function", field="--model", remedy=_REMEDY)
    return f"python/{Path(file).name}:{function}"


def name_function(source: str) -> str:
    """Import the file of a function that the user has named, and return the function's digest.

    A log contains only the digest, so a received log cannot name a file to run.

    Raises:
        InputError: the file cannot be imported, or has no such function.
    """
    function_name(source)
    file, _, name = source.removeprefix(PREFIX).rpartition(":")
    path = named_path(file)
    content = text_of(path, "Check --model")
    digest = hashlib.sha256(f"{name}\x1f{content}".encode()).hexdigest()[:16]
    if digest not in _named:
        path = path.resolve()
        module_name = f"holdfast_function_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
        function = getattr(import_file(path, module_name, file), name, None)
        if not callable(function):
            raise InputError(f"has no function '{name}'", file, remedy=_REMEDY)
        _named[digest] = function, file
    return digest


class FunctionError(Exception):
    """The function raised an exception, or returned something other than text."""


class Function(ModelAPI):
    """Model provider for a Python function ``messages -> str``, sync or async.

    ``messages`` are dicts with ``role`` and ``content``. If the function has a parameter
    ``document``, it receives the document that its retrieval would return, or None.
    """

    direct = True
    """Requests bypass the generation code of Inspect."""

    sent_as: ClassVar[Mapping[str, str]] = {}
    """Always empty, because the function receives only messages."""

    is_stateful = False
    """Always False, because the function receives the whole conversation."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        function: str = "",
        **model_args: object,
    ) -> None:
        """Take the function of that digest.

        Raises:
            InputError: the user has named no such function.
        """
        named = _named.get(function)
        if named is None:
            raise InputError(
                f"'python/{model_name}' is not a function that this command names",
                field="--model",
                remedy=_REMEDY,
            )
        super().__init__(model_name, None, None, [], config)
        self._function, self._file = named
        parameters = inspect.signature(self._function).parameters
        self.takes_documents = "document" in parameters
        self._limiter = CapacityLimiter(_THREADS)

    def describe(self) -> str:
        """Return a description of the function."""
        return f"runs {self._file} in this process"

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Call the function.

        Raises:
            FunctionError: it raised, or returned no text.
        """
        messages = [{"role": m.role, "content": m.text} for m in input]
        more = {"document": document_of(input[-1])} if self.takes_documents else {}
        self._limiter.total_tokens = config.max_connections or _THREADS
        with anyio.fail_after(config.attempt_timeout):
            reply = await self._call([dict(message) for message in messages], more)
        if not isinstance(reply, str):
            raise FunctionError(f"{self._file} returned {type(reply).__name__}, not text")
        request: dict[str, Any] = {"messages": messages, **more}
        output = replied(self.model_name, reply, ModelUsage())
        return output, ModelCall.model_construct(request=request, response={"body": reply})

    async def _call(self, messages: Sequence[Mapping[str, str]], more: Mapping[str, Any]) -> Any:
        try:
            if inspect.iscoroutinefunction(self._function):
                return await self._function(messages, **more)
            result = await anyio.to_thread.run_sync(
                lambda: self._function(messages, **more),
                limiter=self._limiter,
                abandon_on_cancel=True,
            )
            return await result if inspect.isawaitable(result) else result
        except (TimeoutError, ConnectionError):
            raise
        except Exception as error:  # the user's code can fail in any way
            line = line_in(error, named_path(self._file).resolve())
            where = f"{self._file}, line {line}" if line else self._file
            reason = f"{type(error).__name__}: {in_one_line(error)}"
            # error messages show the cause
            raise FunctionError(f"{where} raised {reason}") from None

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Return whether to retry: only timeouts and connection errors are temporary."""
        if isinstance(ex, (TimeoutError, ConnectionError)):
            return RetryDecision.transient()
        return RetryDecision.no()

    def retry_wait(self) -> wait_base:
        """Return the waiting time: half a second, then three times as long each time."""
        return RetryWait()

    def connection_key(self) -> str:
        """Return the key by which connections are limited: the function."""
        return self.model_name
