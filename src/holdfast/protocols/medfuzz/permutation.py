"""The permutation test of MedFuzz: is an attack's effect more than that of any added text?

Algorithm 2 (section 3.4): the attacker writes control fuzzes, which add other content of the same
kind, length and place; the change of p(correct) under the attack is held against the changes under
the controls. The probabilities are estimated from direct answers, options in random order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.challenges import Fault
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.errors import InputError
from holdfast.protocols.few_shot import (
    BANK,
    LOGPROBS,
    SHOTS,
    as_example,
    choice_prompt,
    choose_exemplars,
    displayed,
    displayed_beliefs,
    shuffled,
)
from holdfast.protocols.preparing import AGAIN
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.sample_run import SampleRun, protocol_solver
from holdfast.protocols.settings import Settings, setting
from holdfast.protocols.study import Estimate, Study, protocol_task
from holdfast.questions import Question, QuestionSet, read_rows

from .arms import ATTACKER
from .attacker import (
    ADDED_TOKENS,
    again_control_prompt,
    attackers_conversation,
    control_prompt,
    fuzz_version,
    modify,
)
from .modification import Fuzz, fuzz_of, read_control

ORIGINAL, ATTACKED, CONTROL = "original", "attacked", "control"
"""Arms: the text whose p(correct) is estimated."""


class Attack(BaseModel):
    """A successful attack, as a run leaves it for the test.

    Attributes:
        question: what was attacked.
        dataset: name of its question set.
        run: the run in which it succeeded.
        replicate: the replicate in which it succeeded.
        attempt: the attempt that did.
        modified: the stem that turned the answer.
        characteristics: what was added.
        assumption: what was to be violated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Question
    dataset: str
    run: str
    replicate: int
    attempt: int
    modified: str
    characteristics: tuple[str, ...]
    assumption: str


@dataclass(frozen=True)
class MedFuzzTestStudy(Study):
    """A permutation test with every setting resolved.

    Attacks are by question id and replicate. Each sample of a text has options and exemplars in
    another random order.
    """

    questions: QuestionSet
    attacks: Mapping[tuple[str, int], Attack]
    controls: int
    samples: int
    exemplars: str
    shots: int
    seed: int

    exact = False
    required = (ATTACKER,)

    @property
    def epochs(self) -> int:  # type: ignore[override]
        """As many as there are replicates; those without an attack ask nothing."""
        return max(replicate for _, replicate in self.attacks)

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Probes for one replicate at the most."""
        n = (2 + self.controls) * self.samples
        read = len(choice_prompt(question, list(question.options))) // 4 + ADDED_TOKENS
        return Estimate(n, n * read, n * min(reply_tokens, 10), 0)

    def helped(self, question: Question, reply_tokens: int) -> dict[str, Estimate]:
        """Control fuzzes for one replicate with every try."""
        tries = self.controls * (1 + AGAIN)
        said = len(question.stem) // 4 + ADDED_TOKENS + 200
        return {ATTACKER: Estimate(tries, tries * 4 * said, tries * said, 0)}

    def order(self, question: Question, sample: int) -> tuple[str, ...]:
        """The options in the order in which that sample shows them, whatever the text."""
        return shuffled(list(question.options), self.seed, question.content_hash, "probe", sample)

    @cached_property
    def shown(self) -> list[tuple[Question, ...]]:
        """By sample, the exemplars that come first."""
        return [
            choose_exemplars(self.exemplars, self.shots, self.seed + sample, self.questions)[0]
            for sample in range(self.samples)
        ]

    def examples(self, sample: int) -> list[tuple[str, str]]:
        """The exemplars of a sample as user and assistant turns, options in random order."""
        return [
            as_example(question, self.order(question, sample), question.gold)
            for question in self.shown[sample - 1]
        ]


@dataclass(frozen=True)
class MedFuzzTestSettings(Settings[MedFuzzTestStudy]):
    """The permutation test of MedFuzz on successful attacks.

    A model in the role ``attacker`` writes the controls.
    """

    attacks: str = setting(
        "", "file of successful attacks, as ``holdfast medfuzz test`` writes it", input=True
    )
    controls: int = setting(30, "control texts per attack, M", at_least=1, grows=True)
    samples: int = setting(
        5, "direct answers from which each p(correct) is estimated", at_least=1, grows=True
    )
    exemplars: str = setting(
        BANK, "few-shot exemplars: ``bank``, or a file of a development split", input=True
    )
    shots: int = setting(3, "how many of them are shown", at_least=0, noun=SHOTS)
    seed: int = setting(42, "seed of the orders in which options are shown, and of the sampling")

    def study(self) -> MedFuzzTestStudy:
        """What will be asked; too few exemplars are told before anything is."""
        found = read_attacks(self.attacks)
        asked = {attack.question.id: attack.question for attack in found}
        study = MedFuzzTestStudy(
            questions=QuestionSet(found[0].dataset, tuple(asked.values())),
            attacks={(attack.question.id, attack.replicate): attack for attack in found},
            controls=self.controls,
            samples=self.samples,
            exemplars=self.exemplars,
            shots=self.shots,
            seed=self.seed,
        )
        _ = study.shown
        return study


def read_attacks(file: str) -> list[Attack]:
    """The attacks in a file, one or more."""
    found = []
    for number, row in read_rows(Path(file)) if file else ():
        try:
            found.append(Attack.model_validate(row))
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"is not an attack ({first['msg']})",
                file,
                number,
                ".".join(map(str, first["loc"])),
                "Give a file written by 'holdfast medfuzz test'",
            ) from error
    if not found:
        raise InputError(
            "has no attacks", file or "-T attacks", remedy="Run 'holdfast medfuzz test LOGDIR'"
        )
    return found


@task
@settings_of(MedFuzzTestSettings)
def medfuzz_test(study: MedFuzzTestStudy) -> Task:
    """The permutation test of MedFuzz on successful attacks."""
    return protocol_task(
        study,
        protocol_solver("test_attack", study, partial(_test, study)),
        protocol="medfuzz-test",
        version=fuzz_version(),
        config=GenerateConfig(temperature=1.0, seed=study.seed),
        # more attacks can be tested later, each by itself
        questions="attacked",
    )


async def _test(study: MedFuzzTestStudy, run: SampleRun) -> None:
    """Test the attack of this replicate, where there is one."""
    attack = study.attacks.get((run.question.id, run.replicate))
    if attack is None:
        return
    run.notes["attacked_run"] = attack.run
    attacker = attackers_conversation(run, attack.assumption, "control", study.seed)
    probes = [
        run.begin(
            config=LOGPROBS,
            # two samples can have the same order, and are two answers all the same
            seed=study.seed + _APART * sample,
            examples=study.examples(sample),
        )
        for sample in range(1, study.samples + 1)
    ]
    await _put(study, attack, attacker, probes)


_APART = 1_000
"""Between the seeds of samples, so that those of replicates do not meet."""


async def _put(
    study: MedFuzzTestStudy, attack: Attack, attacker: Conversation, probes: list[Conversation]
) -> None:
    """Probe the original, the attack and its controls side by side.

    Args:
        study: the study.
        attack: what is tested.
        attacker: a conversation with the attacker, before anything is asked.
        probes: for each sample a conversation with the target, its exemplars already said.
    """
    question = attack.question
    fuzz = fuzz_of(question, attack.modified, attack.characteristics)
    if isinstance(fuzz, Fault):
        raise InputError(
            f"the attack on question '{question.id}' {fuzz.detail}",
            field="attacks",
            remedy="Give the attacks of this version of holdfast",
        )
    async with gather() as branches:
        for arm, put in ((ORIGINAL, None), (ATTACKED, fuzz)):
            chats = [probe.branch(_step(arm)) for probe in probes]
            branches.start(arm, _probe, study, question, arm, put, chats)
        for number in range(1, study.controls + 1):
            # branched off here, in the order in which the log is to have them
            step = _step(CONTROL, str(number))
            chats = [probe.branch(step) for probe in probes]
            branches.start(
                step.step, _control, study, question, fuzz, attacker.branch(step), number, chats
            )


async def _control(
    study: MedFuzzTestStudy,
    question: Question,
    fuzz: Fuzz,
    attacker: Conversation,
    number: int,
    chats: list[Conversation],
) -> None:
    """Have one control written, and probe it; without one it is missing."""
    control = await modify(
        attacker,
        control_prompt(question, fuzz, number),
        lambda reply: read_control(reply, question, fuzz),
        again_control_prompt,
        number=number,
        attack={
            "stem": fuzz.stem,
            "characteristics": list(fuzz.characteristics),
            "added": list(fuzz.added),
        },
    )
    if not isinstance(control, Fault):
        await _probe(study, question, CONTROL, control, chats)


async def _probe(
    study: MedFuzzTestStudy,
    question: Question,
    arm: str,
    fuzz: Fuzz | None,
    chats: list[Conversation],
) -> None:
    """Estimate p(correct) of one text: direct answers, options in another order in each."""
    put = question if fuzz is None else question.changed(stem=fuzz.stem)

    async def answer(sample: int, chat: Conversation) -> None:
        shown = study.order(question, sample)
        chat = chat.branch(_step("order", str(sample)), question=put)
        turn = await chat.ask(
            choice_prompt(put, shown),
            arm=arm,
            target=question.gold,
            choice=displayed(put, shown),
            notes={"shown": ",".join(shown)},
            shown=shown,
            held=None,
            right=question.gold,
            probe=True,
            characteristics=[] if fuzz is None else list(fuzz.characteristics),
        )
        if chat.last is not None:
            turn.notes["p_gold"] = displayed_beliefs(chat.last, put, shown).get(question.gold)

    async with gather() as branches:
        for sample, chat in enumerate(chats, 1):
            branches.start(str(sample), answer, sample, chat)


def _step(id: str, variant: str = "") -> Intervention:
    return Intervention(id, "medfuzz", "indirect", "shallow", variant=variant)


PROTOCOL = Protocol(MedFuzzTestSettings, medfuzz_test)
