"""Live runs against a defended model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput

from holdfast.dialogue.conversation import TESTED_ARM, Turn
from holdfast.dialogue.generations import digest
from holdfast.dialogue.live_run import Live, LiveTurn
from holdfast.dialogue.request import request
from holdfast.dialogue.sitting import branch
from holdfast.questions.truth import RESAMPLE_SEEDS, Purpose
from holdfast.reading.extraction import Extraction

from .exchange import SAMPLES, Ask, Defence, DefendedTurn


@dataclass
class DefendedLive(Live):
    """Backend that asks models, with a defence around the model under test.

    Attributes:
        defence: wrapper of the model under test.
    """

    defence: Defence | None = None

    async def respond(
        self, turn: Turn, messages: Sequence[ChatMessage], before: LiveTurn, live_turn: LiveTurn
    ) -> tuple[ModelOutput, Extraction | None]:
        """Return the reply of the defended model, and its answer if the defence determines it."""
        defence, choice = self.defence, turn.choice
        if defence is None or choice is None or turn.parse or turn.opening.role != TESTED_ARM:
            return await super().respond(turn, messages, before, live_turn)
        letters = {letter: displayed_letter for displayed_letter, letter in choice.letters.items()}
        exchange = DefendedTurn(
            messages, len(self.begun(turn.opening).messages), choice,
            letters.get(before.letter or ""), self._ask_for(turn, before, live_turn), self.bound,
        )  # fmt: skip
        async with branch(defence.id):
            defended_reply = await defence(exchange)
        live_turn.calls = len(exchange.outputs)
        return exchange.spent(defended_reply.output), defended_reply.extraction(choice)

    def _ask_for(self, turn: Turn, before: LiveTurn, live_turn: LiveTurn) -> Ask:
        """Return a function that makes the requests of a defence and counts repeated ones once."""
        truth = live_turn.truths[-1]

        async def ask(
            exchange: DefendedTurn,
            messages: Sequence[ChatMessage],
            earlier: int,
            sample: int,
            config: GenerateConfig | None,
            helper: Model | None,
            facts: Mapping[str, object],
        ) -> ModelOutput:
            model, config_asked = helper or before.model, turn.opening.config
            about = before.truths[-earlier] if earlier else truth
            if helper is not None:
                config_asked = GenerateConfig(seed=config_asked.seed)
            if sample:  # beyond the resamples of protocols
                times = (about.resample + 2) * SAMPLES + sample
                config_asked = config_asked.model_copy(
                    update={"seed": (config_asked.seed or 0) + times * RESAMPLE_SEEDS}
                )
                about = replace(about, resample=about.resample + times)
            config_asked = config_asked.merge(config) if config else config_asked
            if facts or sample:
                all_facts = {**dict(about.given), **facts, **({"sample": sample} if sample else {})}
                purpose: Purpose = "answer" if helper is None else "verification"
                about = replace(about, given=tuple(sorted(all_facts.items())), purpose=purpose)
            content = digest(
                str(model), about.drawn, config_asked.model_dump(exclude_none=True),
                [(message.role, message.text) for message in messages],
            )  # fmt: skip
            # share the generation with the same request of an undefended run
            plain = messages is exchange.messages and config_asked is turn.opening.config
            output = await request(
                model,
                messages,
                key=turn.key if plain else content,
                truth=about,
                config=config_asked,
            )
            if content not in live_turn.requests:
                live_turn.requests |= {content}
                exchange.outputs.append(output)
            return output

        return ask
