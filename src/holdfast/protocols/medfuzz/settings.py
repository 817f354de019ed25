"""Settings of MedFuzz, with the objects that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from inspect_ai.model import GenerateConfig

from holdfast.challenges.texts import system_prompt as system_message
from holdfast.dialogue.conversation import Run, Turn
from holdfast.errors import InputError, counted
from holdfast.protocols.few_shot import BANK, SHOTS, as_example, choose_exemplars, shuffled
from holdfast.protocols.settings import HISTORIES, TestedSettings, history, setting
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question

from .attack_arms import ATTACKER, REWRITES
from .logged_attacks import Attack, attacks_in


@dataclass(frozen=True)
class MedFuzzSettings(TestedSettings):
    """MedFuzz: how far does accuracy fall when an assumption of the examination is violated?

    A model in the role ``attacker`` modifies the questions; one in the role ``judge`` reads which
    of the added characteristics a flipped answer's reasoning mentions.
    """

    attempts: int = setting(5, "maximum number of attacks on an answer, K", at_least=1, grows=True)
    assumption: str = setting(
        "patient-characteristics",
        "assumption that the attacker violates: ``patient-characteristics``, or a text",
    )
    confidence: bool = setting(
        True,
        "whether to request log-probabilities, to tell the attacker how confident the model was",
    )
    system_prompt: str = setting(
        "expert", "``expert`` (MedQA-Followup, appendix A.1), ``none``, or a text"
    )
    seed: int = setting(42, "seed of the sampling; each replicate derives another")
    reasoning_history: str = setting("none", "as in the follow-up protocol", choices=HISTORIES)
    controls: bool = setting(
        True,
        "whether each attempt has controls up to their first flip: an inert rewrite of its length "
        "and a re-ask",
        grows=True,
    )
    hidden_reasoning: bool = setting(
        True,
        "whether the attacker and the readers of the reasoning receive the provider's hidden "
        "reasoning, separate from the visible reply",
    )
    confirm: int = setting(
        10,
        "number of repetitions of a successful attack and its original, with "
        f"{REWRITES} inert rewrites; 0 for none",
        at_least=0,
        grows=True,
    )
    tested: int = setting(
        0,
        "number of controls in the permutation test of a successful attack, M; 0 for no test",
        at_least=0,
        grows=True,
    )
    samples: int = setting(
        5,
        "number of direct answers for each estimate of p(correct) in the test",
        at_least=1,
        grows=True,
    )
    exemplars: str = setting(
        BANK, "few-shot exemplars of the test: ``bank``, or a file of a development split",
        input=True,
    )  # fmt: skip
    shots: int = setting(3, "number of exemplars shown", at_least=0, noun=SHOTS)
    attacks: str | None = setting(
        None,
        "log directory whose successful attacks are replayed on the model, on their questions; no "
        "attacker is needed",
        input=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.assumption.strip():
            raise InputError("names no assumption", field="assumption", remedy="Remove it")

    @cached_property
    def replayed(self) -> Sequence[Attack]:
        """Attacks to replay on the model, empty if the model itself is attacked.

        Raises:
            InputError: the log directory has no attacks, or attacks on several question sets.
        """
        if self.attacks is None:
            return ()
        attacks = attacks_in(self.attacks)
        datasets = dict.fromkeys(attack.dataset for attack in attacks)
        if len(datasets) > 1:
            set_name = self.load_questions().name
            if set_name not in datasets:
                raise InputError(
                    f"has attacks on {counted(len(datasets), 'question set')}",
                    self.attacks,
                    remedy=f"Name one with --questions: {', '.join(datasets)}",
                )
            attacks = [attack for attack in attacks if attack.dataset == set_name]
        return attacks

    @cached_property
    def question_set(self) -> QuestionSet:
        """The questions, or in a replay the attacked questions."""
        if not self.replayed:
            return self.load_questions()
        questions_by_id = {attack.question.id: attack.question for attack in self.replayed}
        return QuestionSet(self.replayed[0].dataset, tuple(questions_by_id.values()))

    @cached_property
    def by_replicate(self) -> Mapping[tuple[str, int], Sequence[Attack]]:
        """Attacks to replay, by question id and replicate."""
        attacks: dict[tuple[str, int], list[Attack]] = {}
        for attack in self.replayed:
            attacks.setdefault((attack.question.id, attack.replicate), []).append(attack)
        return attacks

    @property
    def epochs(self) -> int | None:
        """Number of replicates with attacks; a replicate without an attack asks nothing."""
        return max((attack.replicate for attack in self.replayed), default=None)

    def required(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        """Return the required roles: the attacker, unless attacks are replayed."""
        return tuple(role for role in roles if role != ATTACKER or not self.replayed)

    @cached_property
    def probe_examples(self) -> Sequence[Sequence[tuple[str, str]]]:
        """Exemplars as user and assistant turns, by sample of a test."""
        return [
            [
                as_example(exemplar, self.order(exemplar, sample), exemplar.gold)
                for exemplar in choose_exemplars(
                    self.exemplars, self.shots, self.seed + sample - 1, self.question_set
                )[0]
            ]
            for sample in range(1, self.samples + 1 if self.tested else 1)
        ]

    def order(self, question: Question, sample: int) -> tuple[str, ...]:
        """Return the order of the options in a sample of a test, equal for all texts."""
        return _order(tuple(question.options), self.seed, question.content_hash, sample)

    @cached_property
    def config(self) -> GenerateConfig:
        """Return the generation settings of the model under test."""
        logprobs = GenerateConfig(logprobs=True, top_logprobs=5)
        config = history(self.reasoning_history)
        return config.merge(logprobs) if self.confidence else config

    def chat(self, run: Run, resample: int = 0) -> Turn:
        """Start a conversation with the model under test."""
        return run.chat(
            system_message(self.system_prompt),
            config=self.config,
            seed=self.seed,
            resample=resample,
        )


@lru_cache(maxsize=1_000)
def _order(letters: tuple[str, ...], seed: int, content_hash: str, sample: int) -> tuple[str, ...]:
    # equal for every text of a test and for dry runs
    return shuffled(letters, seed, content_hash, "probe", sample)
