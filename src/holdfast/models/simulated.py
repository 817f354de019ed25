"""``simulated/PROFILE``: a responder with known truth, to prove the instrument and to teach.

It is no model: it is told the right answer and gives it, or gives it up, with the chances of its
profile. Every draw is a hash of profile, seed, question and path, so a reply never depends on
the machine or on the order of execution.
"""

import dataclasses

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Logprobs,
)

from holdfast.errors import InputError
from holdfast.questions import Question, Truth

from .assistants import ASSISTANTS, assistant
from .chance import chance, pick
from .local import Local
from .profile import DATASETS, Profile, cue_names, profile
from .sticking import decided, worded
from .swaying import decided_at, mentioning, probed, turned
from .wording import WORDINGS

_CONFIDENCE = 0.85
"""Probability given to the answer's letter; the other options share the rest."""


class Simulated(Local):
    """The responder of one profile, or a helper of a study (``generator``, ``judge``, ...)."""

    provider = "simulated"

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the framework's own signature)
        dataset: str = DATASETS[0],
        **model_args: object,
    ) -> None:
        """Look the profile up.

        Raises:
            InputError: there is no profile or helper of that name, or no figures for the data
                set (``-M dataset=MedMCQA``).
        """
        super().__init__(model_name, base_url, api_key, [], config)
        self.profile = (
            Profile(about="", baseline=0)
            if assistant(model_name)
            else profile(model_name, ASSISTANTS, dataset)
        )

    def looked_at(self, truth: Truth) -> str:
        """The profile's figures and the truth."""
        truths = (
            truth.drawn_by,
            truth.question.content_hash,
            *truth.techniques,
            *truth.families,
            *truth.suggested,
        )
        # an arm is looked at with what is shown alone: elsewhere the same words share a reply
        given = [item for item in truth.given if item[0] != "arm" or "shown" in dict(truth.given)]
        # attempts, controls and samples of one attack are variants of a step
        told = [*truths, *truth.path, given] if _of_an_attack(truth) else [*truths, given]
        return "\x1f".join([self.profile.model_dump_json(), *map(str, told)])

    def reply(
        self, truth: Truth, messages: list[ChatMessage], config: GenerateConfig
    ) -> tuple[str, Logprobs | None]:
        """What the profile says to the turn under way, in one of several wordings."""
        serves, helper = assistant(self.model_name) or (("answer",), None)
        if truth.purpose not in serves:
            others = [name for name, (s, _) in ASSISTANTS.items() if truth.purpose in s]
            raise InputError(
                f"'simulated/{self.model_name}' gives no {truth.purpose}",
                field="--model",
                remedy=f"Use simulated/{others[0]}" if others else "Use simulated/sycophant",
            )
        if helper:
            return helper(truth, config.seed or 0), None
        given, told = dict(truth.given), (self.model_name, self.profile, truth)
        if "shown" in given:
            if given.get("probe"):
                said, logprobs = probed(*told, given, config.seed or 0)
            else:
                said, logprobs = worded(decided(*told, given, config.seed or 0), truth, given)
            return said, logprobs if config.logprobs else None
        letter = self._answer(truth, config.seed or 0)
        option = truth.question.options[letter]
        wording = WORDINGS[
            int(chance("wording", truth.drawn_by, *truth.techniques) * len(WORDINGS))
        ]
        # str.format never looks inside the texts that it fills in
        text = wording.format(letter=letter, text=_without_markup(option))
        if "characteristics" in given:
            text = f"{mentioning(*told, config.seed or 0)}{text}"
        else:
            text = f"{self._cue(truth, config.seed or 0, letter)}{text}"
        return text, _logprobs(text, letter, truth.question) if config.logprobs else None

    def _answer(self, truth: Truth, seed: int) -> str:
        """Replay the path from the first answer: each challenge can abandon or mend it."""
        question = truth.question
        root = (self.model_name, seed, truth.replicate, truth.drawn_by)
        right = chance("first", *root) < self.profile.baseline / 100
        letter = question.gold if right else pick(question.distractors, "first-wrong", *root)
        if "characteristics" in dict(truth.given):
            if right and turned(self.model_name, self.profile, truth, seed):
                letter = pick(question.distractors, "turned", *root, *truth.path)
            return letter
        warned = "mitigation" in truth.families
        for depth, technique in enumerate(truth.techniques):
            here = (*root, *truth.techniques[: depth + 1])
            family, suggested = truth.families[depth], truth.suggested[depth]
            if family == "mitigation":
                continue
            abandon, recover = self.profile.chances(technique, family)
            if warned:
                abandon *= 1 - self.profile.mitigated
            if letter == question.gold:
                if chance("abandon", *here) < abandon:
                    letter = self._elsewhere(question, suggested, here)
            elif chance("recover", *here) < recover:
                letter = question.gold
            elif suggested is not None and chance("adopt", *here) < abandon:
                letter = suggested
        return letter

    def _cue(self, truth: Truth, seed: int, letter: str) -> str:
        """What the reply says of the challenge, where it names it."""
        name = cue_names().get(truth.techniques[-1]) if truth.path else None
        key = (
            "cue",
            self.model_name,
            seed,
            truth.replicate,
            truth.drawn_by,
            *truth.techniques,
        )
        if name is None or chance(*key) >= self.profile.named:
            return ""
        before = dataclasses.replace(
            truth,
            path=truth.path[:-1],
            families=truth.families[:-1],
            suggested=truth.suggested[:-1],
        )
        if letter == self._answer(before, seed):
            return f"I checked {name}, and it does not change my answer. "
        return f"In light of {name}, I change my answer. "

    def _elsewhere(
        self, question: Question, suggested: str | None, here: tuple[object, ...]
    ) -> str:
        others = [letter for letter in question.distractors if letter != suggested]
        if suggested is not None and (not others or chance("follow", *here) < self.profile.follow):
            return suggested
        return pick(others, "elsewhere", *here)


def _without_markup(option: str) -> str:
    """The option on one line and short, so that the reply's form stays what the wording says."""
    return " ".join(option.split())[:80].strip("\"'`*_$\\{}<>()[].:")


def _logprobs(text: str, letter: str, question: Question) -> Logprobs:
    """Log-probabilities of a reply: certain but for the answer's letter."""
    rest = (1 - _CONFIDENCE) / (len(question.options) - 1)
    mass = {letter: _CONFIDENCE} | {o: rest for o in question.options if o != letter}
    return decided_at(text, text.rindex(letter), letter, mass)


def _of_an_attack(truth: Truth) -> bool:
    asked = truth.purpose in ("attack", "control", "mention", "review")
    return asked or not dict(truth.given).keys().isdisjoint({"characteristics", "probe"})
