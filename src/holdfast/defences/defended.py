"""Runs of a protocol against a defended model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput

from holdfast.dialogue import TESTED, Live, LiveTurn, Turn, branch, request
from holdfast.dialogue.generations import digest
from holdfast.questions import RESAMPLE_SEEDS, Purpose
from holdfast.reading import Extraction

from .exchange import SAMPLES, Ask, Defence, DefendedTurn


@dataclass
class DefendedLive(Live):
    """Answers the turns of a run by models, the one under test behind a defence.

    Attributes:
        defence: wraps the model under test.
    """

    defence: Defence | None = None

    async def respond(
        self, turn: Turn, messages: Sequence[ChatMessage], before: LiveTurn, asked: LiveTurn
    ) -> tuple[ModelOutput, Extraction | None]:
        """What the defended model says, and its answer where the defence has settled it."""
        defence, choice = self.defence, turn.choice
        if defence is None or choice is None or turn.read or turn.opening.role != TESTED:
            return await super().respond(turn, messages, before, asked)
        displayed = {letter: shown for shown, letter in choice.letters.items()}
        exchange = DefendedTurn(
            messages, len(self.begun(turn.opening).messages), choice,
            displayed.get(before.letter or ""), self._ask_for(turn, before, asked), self.bound,
        )  # fmt: skip
        async with branch(defence.id):
            defended = await defence(exchange)
        asked.calls = len(exchange.outputs)
        return exchange.spent(defended.output), defended.extraction(choice)

    def _ask_for(self, turn: Turn, before: LiveTurn, asked: LiveTurn) -> Ask:
        """Makes the requests of a defence; what was asked in this conversation counts once."""
        truth = asked.truths[-1]

        async def ask(
            exchange: DefendedTurn,
            messages: Sequence[ChatMessage],
            earlier: int,
            sample: int,
            config: GenerateConfig | None,
            helper: Model | None,
            given: Mapping[str, object],
        ) -> ModelOutput:
            model, own = helper or before.model, turn.opening.config
            about = before.truths[-earlier] if earlier else truth
            if helper is not None:
                own = GenerateConfig(seed=own.seed)
            if sample:  # beside the times that a protocol asks afresh
                times = (about.resample + 2) * SAMPLES + sample
                own = own.model_copy(update={"seed": (own.seed or 0) + times * RESAMPLE_SEEDS})
                about = replace(about, resample=about.resample + times)
            own = own.merge(config) if config else own
            if given or sample:
                known = {**dict(about.given), **given, **({"sample": sample} if sample else {})}
                purpose: Purpose = "answer" if helper is None else "verification"
                about = replace(about, given=tuple(sorted(known.items())), purpose=purpose)
            content = digest(
                str(model), about.drawn, own.model_dump(exclude_none=True),
                [(message.role, message.text) for message in messages],
            )  # fmt: skip
            # what is asked without the defence too waits for the same generation
            plain = messages is exchange.messages and own is turn.opening.config
            output = await request(
                model, messages, key=turn.key if plain else content, truth=about, config=own
            )
            if content not in asked.requested:
                asked.requested |= {content}
                exchange.outputs.append(output)
            return output

        return ask
