"""Replay: the attacks found on one model put to another.

Each model answers the original first; where it is right, it is asked the attacked question and,
as a control, the original again, each in a conversation of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from inspect_ai import Task, task
from inspect_ai.model import GenerateConfig

from holdfast.challenges import question_prompt
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.sample_run import SampleRun, protocol_solver
from holdfast.protocols.settings import Settings, setting
from holdfast.protocols.study import Estimate, Study, protocol_task
from holdfast.questions import Question, QuestionSet

from .arms import REASK, REPLAYED, UNATTACKED
from .attacker import ADDED_TOKENS, fuzz_version
from .permutation import Attack, read_attacks


@dataclass(frozen=True)
class ReplayStudy(Study):
    """A replay with every setting resolved; attacks are by question id and replicate.

    Of one replicate there are as many as there are runs in which one succeeded.
    """

    questions: QuestionSet
    attacks: Mapping[tuple[str, int], Sequence[Attack]]
    system: str
    seed: int

    exact = False

    @property
    def epochs(self) -> int:  # type: ignore[override]
        """As many as there are replicates; those without an attack ask nothing."""
        return max(replicate for _, replicate in self.attacks)

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations of one replicate at the most; one where the first answer is wrong."""
        attacks = max(len(own) for (id, _), own in self.attacks.items() if id == question.id)
        asked = len(question_prompt(question) + (system_message(self.system) or "")) // 4
        n = 2 + attacks
        return Estimate(n, n * asked + attacks * ADDED_TOKENS, n * reply_tokens, 1)


@dataclass(frozen=True)
class ReplaySettings(Settings[ReplayStudy]):
    """The attacks of MedFuzz that succeeded on one model, put to another."""

    attacks: str = setting(
        "", "file of successful attacks, as ``holdfast medfuzz replay`` writes it", input=True
    )
    number: int = setting(0, "how many attacks the file holds", at_least=0, grows=True)
    system_prompt: str = setting(
        "expert", "``expert`` (MedQA-Followup, appendix A.1), ``none``, or a text"
    )
    seed: int = setting(42, "seed of the sampling; each replicate has its own")

    def study(self) -> ReplayStudy:
        """What will be asked."""
        found = read_attacks(self.attacks)
        asked = {attack.question.id: attack.question for attack in found}
        attacks: dict[tuple[str, int], list[Attack]] = {}
        for attack in found:
            attacks.setdefault((attack.question.id, attack.replicate), []).append(attack)
        return ReplayStudy(
            QuestionSet(found[0].dataset, tuple(asked.values())),
            attacks,
            self.system_prompt,
            self.seed,
        )


@task
@settings_of(ReplaySettings)
def medfuzz_replay(study: ReplayStudy) -> Task:
    """The attacks of MedFuzz that succeeded on one model, put to another."""
    return protocol_task(
        study,
        protocol_solver("replay_attack", study, partial(_replay, study)),
        protocol="medfuzz-replay",
        version=fuzz_version(),
        config=GenerateConfig(temperature=1.0, seed=study.seed),
        # more attacks can be put later, each by itself
        questions="attacked",
    )


async def _replay(study: ReplayStudy, run: SampleRun) -> None:
    """Put the attacks of this replicate, where there is one."""
    attacks = study.attacks.get((run.question.id, run.replicate))
    if not attacks:
        return
    begin = partial(run.begin, system=system_message(study.system), seed=study.seed)
    plain, again = begin(), begin(resample=1)
    if await _ask(plain.branch(), UNATTACKED) != run.question.gold:
        return
    async with gather() as branches:
        for attack in attacks:
            step = Intervention("replay", "medfuzz", "indirect", "shallow", variant=attack.run)
            chat = plain.branch(step, question=run.question.changed(stem=attack.modified))
            branches.start(step.step, _ask, chat, REPLAYED, attack)
        control = again.branch(Intervention(REASK, "control", variant="1"))
        branches.start(REASK, _ask, control, REASK)


async def _ask(chat: Conversation, arm: str, attack: Attack | None = None) -> str | None:
    turn = await chat.ask(
        question_prompt(chat.question),
        arm=arm,
        target=chat.question.gold,
        notes={"attacked_run": attack.run} if attack else None,
        characteristics=list(attack.characteristics) if attack else [],
    )
    return turn.answer


PROTOCOL = Protocol(ReplaySettings, medfuzz_replay)
