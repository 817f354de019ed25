"""``recorded/FILE``: replays recorded replies, so that they pass through the same instrument."""

from pathlib import Path

from inspect_ai.model import ChatMessage, GenerateConfig

from holdfast.errors import InputError
from holdfast.questions import Truth, read_rows

from .local import Local


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
        """Read the file.

        Raises:
            InputError: the file cannot be read, lacks a column, or answers a turn twice.
        """
        column, _, value = where.partition("=")
        kept, simulated = 0, False
        self._replies: dict[tuple[str, str], dict[str, str]] = {}
        for number, row in read_rows(Path(model_name)):
            if isinstance(row, str):
                raise InputError(row, model_name, number, remedy="Mend the row")
            if where and str(row.get(column)) != value:
                continue
            kept += 1
            simulated |= str(row.get("model")).startswith("simulated/")
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
                    remedy="Keep one condition with -M where=COLUMN=VALUE",
                )

        # simulated results say so wherever they appear, in a recording too
        name = f"{model_name} [simulated]" if simulated else model_name
        super().__init__(name, base_url, api_key, [], config)
        if not kept:
            raise InputError(
                f"where={where} keeps no row", model_name, field=column, remedy="Check -M where="
            )

    def looked_at(self, truth: Truth) -> str:
        """The recorded reply itself."""
        return f"{truth.question.id} {'>'.join(truth.path)} {self._recorded(truth)}"

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, None]:
        """The recorded reply to the turn under way."""
        return self._recorded(truth), None

    def _recorded(self, truth: Truth) -> str:
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
        if reply is None:
            raise InputError(
                f"no recorded reply for question '{key[0]}' and path '{key[1]}'",
                self.model_name,
                remedy="Leave the technique out with -T techniques=... or record it",
            )
        return reply
