"""Beliefs of a real transformer through Inspect's `hf`, against its logits taken directly.

`make test-local` runs this: it needs PyTorch and transformers, and no network.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import polars as pl
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, ModelOutput, get_model
from tests.resolved import stick_or_switch_study
from tests.studies import holdfast

from holdfast.dialogue.beliefs import beliefs_in
from holdfast.protocols.stick_or_switch.convictions import CONTROLS
from holdfast.protocols.stick_or_switch.protocol import StickOrSwitchSettings
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question

os.environ["HF_HUB_OFFLINE"] = "1"
torch: Any = pytest.importorskip("torch", reason="needs PyTorch: make test-local")
transformers: Any = pytest.importorskip("transformers", reason="needs it: make test-local")
tokenizers: Any = pytest.importorskip("tokenizers", reason="needs it: make test-local")
pytest.importorskip("accelerate", reason="needs it: make test-local")

pytestmark = pytest.mark.slow

CLOSE = 1e-4
"""How far a probability may be from the one computed directly."""

ANSWERS = tuple(LETTERS[:5])
"""What the model answers with: the most that a question of four options has in play."""

SEED = 2
"""One whose models answer in two lengths, and hold an answer now and then."""

LIMIT = 8
END, USER, SAYS = "<|end|>", "<|user|>", "<|assistant|>"
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}<|assistant|>"
)
MARKERS = ("Ġ", "▁")
"""A blank in the vocabularies of Llama 3, Qwen and GPT-2, and in those of Llama 2 and Gemma."""


@dataclass(frozen=True)
class Tiny:
    """A saved model, as the tests load it."""

    path: Path
    marker: str

    def through_inspect(self, *, do_sample: bool) -> Model:
        return get_model(
            "hf/tiny",
            config=GenerateConfig(seed=5),
            memoize=False,
            model_path=str(self.path),
            device="cpu",
            do_sample=do_sample,
        )

    @cache  # noqa: B019 (lives as long as the session's model)
    def directly(self) -> tuple[Any, Any]:
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path)
        return model, transformers.AutoTokenizer.from_pretrained(self.path)


@pytest.fixture(scope="module", autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=MARKERS)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    path = tmp_path_factory.mktemp("tiny")
    tokenizer = _tokenizer(request.param)
    tokenizer.save_pretrained(path)
    _model(tokenizer).save_pretrained(path)
    return Tiny(path, request.param)


def _tokenizer(marker: str) -> Any:
    """Learned from a few questions, and from replies so often that " A" becomes one token."""
    whole = tokenizers.Tokenizer(tokenizers.models.BPE())
    parts = tokenizers.pre_tokenizers
    if marker == "Ġ":
        whole.pre_tokenizer = parts.ByteLevel(add_prefix_space=False)
        whole.decoder = tokenizers.decoders.ByteLevel()
    else:
        whole.pre_tokenizer = parts.Sequence([parts.Metaspace(), parts.Punctuation()])
        whole.decoder = tokenizers.decoders.Metaspace()
    texts = [f"{q.stem} {' '.join(q.options.values())}" for q in _questions()]
    texts += [f"Answer: {letter}" for letter in ANSWERS] * 500
    whole.train_from_iterator(
        texts,
        tokenizers.trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=[END, USER, SAYS],
            initial_alphabet=[*parts.ByteLevel.alphabet(), *MARKERS],
            show_progress=False,
        ),
    )
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=whole, eos_token=END)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _model(tokenizer: Any) -> Any:
    """Random weights, but for a nudge from each token to what a reply has next.

    Without it no reply would have an answer. Between the letters, and between "Answer:" and a
    bare letter, the random weights alone decide.
    """
    torch.manual_seed(SEED)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=4096,
            initializer_range=0.15,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
    surfaces = _surfaces(tokenizer)
    letters = [i for i, text in surfaces.items() if text.strip() in ANSWERS]
    word, colon = _ids(tokenizer, "Answer:")
    says, end = tokenizer.convert_tokens_to_ids([SAYS, END])
    nudges = [
        ([says], [word, *letters]),
        ([word], [colon]),
        ([colon], letters),
        (letters, [end]),
        # what a batch is padded with: whatever is predicted behind a reply is no part of it
        ([end], letters),
    ]
    inputs, outputs = (
        model.get_input_embeddings().weight.data,
        model.get_output_embeddings().weight.data,
    )
    for dimension, (after, then) in enumerate(nudges):
        outputs[:, dimension] = inputs[:, dimension] = 0.0
        inputs[after, dimension] = 8.0
        outputs[then, dimension] = 9.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.data[dimension] = 0.0
            layer.mlp.down_proj.weight.data[dimension] = 0.0
    # a first turn shows two letters, and without them no study goes on; replies differ in length
    likelier = [word, *(i for i in letters if surfaces[i].strip() in ANSWERS[:2])]
    outputs[likelier, : len(nudges)] *= 1.05
    return model


def _questions(n: int = LIMIT) -> Sequence[Question]:
    return stick_or_switch_study().questions.questions[:n]


def _surfaces(tokenizer: Any) -> dict[int, str]:
    return {i: tokenizer.decode([i]) for i in range(len(tokenizer))}


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def direct(tiny: Tiny, messages: Sequence[dict[str, str]], reply: str) -> dict[str, float]:
    """Probability of each letter where the reply has its letter, out of one forward pass."""
    model, tokenizer = tiny.directly()
    surfaces = _surfaces(tokenizer)
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt_tokens, reply_tokens = _ids(tokenizer, prompt), _ids(tokenizer, reply)
    place = max(i for i, token in enumerate(reply_tokens) if surfaces[token].strip() in LETTERS)
    with torch.inference_mode():
        logits = model(torch.tensor([prompt_tokens + reply_tokens[:place]])).logits[0, -1]
    probabilities = torch.softmax(logits.double(), dim=-1).tolist()
    mass = dict.fromkeys(LETTERS, 0.0)
    for token, p in enumerate(probabilities):
        if surfaces[token].strip() in mass:
            mass[surfaces[token].strip()] += p
    return mass


def about(figures: Any) -> Any:
    return pytest.approx(figures, abs=CLOSE)


def among(mass: dict[str, float], letters: Sequence[str]) -> dict[str, float]:
    total = math.fsum(mass[letter] for letter in letters)
    return {letter: mass[letter] / total for letter in letters}


def ask(model: Model, prompts: Sequence[str]) -> list[ModelOutput]:
    """All prompts at once, so that the provider puts them into one batch."""
    config = GenerateConfig(logprobs=True, top_logprobs=20, max_tokens=16)
    outputs: dict[int, ModelOutput] = {}

    async def one(number: int, prompt: str) -> None:
        outputs[number] = await model.generate([ChatMessageUser(content=prompt)], config=config)

    async def all_at_once() -> None:
        async with anyio.create_task_group() as group:
            for number, prompt in enumerate(prompts):
                group.start_soon(one, number, prompt)

    anyio.run(all_at_once)
    return [outputs[number] for number in range(len(prompts))]


def given(output: ModelOutput) -> dict[str, float]:
    """Probability of each letter that the provider itself gives, where the reply has its letter."""
    logprobs = output.choices[0].logprobs
    assert logprobs is not None
    token = logprobs.content[0 if len(output.completion.strip()) == 1 else 2]
    mass = dict.fromkeys(LETTERS, 0.0)
    for top in token.top_logprobs or []:
        letter = top.token.lstrip("".join(MARKERS))
        if letter in mass:
            mass[letter] += math.exp(top.logprob)
    return mass


OPTIONS = {letter: f"finding number {n}" for n, letter in enumerate(ANSWERS)}


def test_every_letter_has_the_probability_that_the_model_itself_gives_it(tiny: Tiny) -> None:
    prompts = [question.stem for question in _questions(16)]
    outputs = ask(tiny.through_inspect(do_sample=False), prompts)
    # replies of two lengths, so that the shorter ones are padded
    assert {len(output.completion.strip()) > 1 for output in outputs} == {True, False}
    for prompt, output in zip(prompts, outputs, strict=True):
        mass = direct(tiny, [{"role": "user", "content": prompt}], output.completion)
        assert max(mass.values()) < 0.9  # it leaves something to be wrong about
        assert given(output) == about(mass)
        assert beliefs_in(output, OPTIONS, None) == about(among(mass, ANSWERS))


def test_a_sampled_reply_has_the_beliefs_at_its_letter(tiny: Tiny) -> None:
    prompt = _questions(1)[0].stem
    outputs = ask(tiny.through_inspect(do_sample=True), [prompt] * 24)
    for output in outputs:
        mass = direct(tiny, [{"role": "user", "content": prompt}], output.completion)
        assert beliefs_in(output, OPTIONS, None) == about(among(mass, ANSWERS))
    assert len({output.completion.strip()[-1] for output in outputs}) > 2


def test_study_beliefs_are_those_of_the_model(tiny: Tiny, tmp_path: Path) -> None:
    result = holdfast(
        "run", "stick-or-switch", "--model", f"hf/{tiny.path}", "-M", "do_sample=false",
        "-M", "device=cpu", "-T", "beliefs=true", "-T", "shots=1", "--limit", str(LIMIT),
        "--generate-config", "{max_tokens: 16}", "--log-dir", tmp_path / "runs",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    turns = pl.read_parquet(tmp_path / "runs" / "turns.parquet")
    settings = StickOrSwitchSettings(shots=1)
    rows = {(row["question"], row["arm"], row["turn"]): row for row in turns.iter_rows(named=True)}
    checks: set[tuple[str, int]] = set()
    asked_of = {question.id: question for question in load_questions("bank").questions}
    # the offer of the right answer follows the abstention's first turn, as its control does
    parents = {**CONTROLS, "flexible-correct": "negative"}
    for (question, arm, turn), row in rows.items():
        before = parents.get(arm, arm)
        earlier = [rows[question, arm if n else before, n] for n in range(turn)]
        messages = [
            {"role": role, "content": text}
            for prompt, reply in [
                *settings.examples(before, asked_of[question]),
                *((earlier_row["prompt"], earlier_row["reply"]) for earlier_row in earlier),
                (row["prompt"], ""),
            ]
            for role, text in (("user", prompt), ("assistant", reply))
        ][:-1]
        display = row["shown"].split(",")
        letters = dict(zip(display, LETTERS, strict=False))
        if row["answer"] is None:  # a letter that is not on display
            assert row["reply"].strip()[-1] not in letters.values()
            assert row["p_gold"] is row["p_answer"] is row["p_suggested"] is None
            continue
        mass = among(direct(tiny, messages, row["reply"]), list(letters.values()))
        assert row["p_answer"] == about(mass[letters[row["answer"]]])
        assert row["p_gold"] == about(mass[letters[row["gold"]]])
        if row["suggested"] in letters:
            assert row["p_suggested"] == about(mass[letters[row["suggested"]]])
        checks.add((arm, turn))
    assert checks >= {("single-shot", 0), ("single-shot-abstain", 0), ("positive", 0)}
    assert checks & {("positive", 1), ("negative", 1), ("flexible-correct", 1)}
