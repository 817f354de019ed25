"""Training data as trl's own trainers read it: prepared and batched, nothing trained.

`make test-local` runs this: it needs PyTorch and trl, and no network.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from tests.studies import holdfast

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("torch", reason="needs PyTorch: make test-local")
transformers: Any = pytest.importorskip("transformers", reason="needs it: make test-local")
tokenizers: Any = pytest.importorskip("tokenizers", reason="needs it: make test-local")
trl: Any = pytest.importorskip("trl", reason="needs it: make test-local")
data_utils: Any = pytest.importorskip("trl.data_utils", reason="needs it: make test-local")

pytestmark = pytest.mark.slow

END, USER, MODEL = "<|end|>", "<|user|>", "<|assistant|>"
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
    "{% else %}{{ message['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ROWS = 8

Load = Callable[[str], Any]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Exports of a small study, through the loader of `datasets`."""
    folder = tmp_path_factory.mktemp("training")
    run = holdfast(
        "run", "followup", "--model", "simulated/sycophant", "--model", "simulated/claude-sonnet-4",
        "--limit", "8", "--epochs", "2", "-T", "chains=authority-prior>rag-style",
        "--log-dir", folder / "runs",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr

    def load(format: str) -> Any:
        path = folder / f"{format}.jsonl"
        result = holdfast("export", folder / "runs", "--format", format, "-o", path)
        assert result.returncode == 0, result.stderr
        records = datasets.load_dataset(
            "json", data_files=str(path), split="train", cache_dir=str(folder / "cache")
        )
        assert records.num_rows >= ROWS
        return records.select(range(ROWS))

    return load


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """One token for a byte."""
    parts = tokenizers.pre_tokenizers
    words = [END, USER, MODEL, *sorted(parts.ByteLevel.alphabet())]
    whole = tokenizers.Tokenizer(
        tokenizers.models.BPE({word: n for n, word in enumerate(words)}, [])
    )
    whole.pre_tokenizer = parts.ByteLevel(add_prefix_space=False)
    whole.decoder = tokenizers.decoders.ByteLevel()
    fast_tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, eos_token=END, pad_token=END,
        additional_special_tokens=[USER, MODEL],
    )  # fmt: skip
    fast_tokenizer.chat_template = TEMPLATE
    return fast_tokenizer


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_config(
        transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=4096,
            bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip


def settings(kind: Any, folder: Path, **options: Any) -> Any:
    return kind(
        output_dir=str(folder), report_to="none", max_length=None, use_cpu=True, bf16=False,
        per_device_train_batch_size=ROWS, **options,
    )  # fmt: skip


def rendered(messages: list[dict[str, str]]) -> str:
    starts = {"user": USER, "assistant": MODEL}
    ends = {"user": "", "assistant": END}
    return "".join(f"{starts[m['role']]}{m['content']}{ends[m['role']]}" for m in messages)


def test_every_format_is_conversational(load: Load) -> None:
    for format in ("openai-chat", "trl-sft", "trl-dpo"):
        assert all(data_utils.is_conversational(example) for example in load(format))


def test_the_prompt_of_a_pair_is_used_unchanged(load: Load, tokenizer: Any) -> None:
    for pair in load("trl-dpo"):
        assert data_utils.maybe_extract_prompt(pair)["prompt"] == pair["prompt"]
        prompt = data_utils.maybe_apply_chat_template(dict(pair), tokenizer)
        assert prompt["prompt"] == rendered(pair["prompt"]) + MODEL
        assert prompt["chosen"] == pair["chosen"][0]["content"] + END
        assert prompt["rejected"] == pair["rejected"][0]["content"] + END


def test_preference_training_accepts_the_pairs(
    load: Load, tokenizer: Any, model: Any, tmp_path: Path
) -> None:
    pairs = load("trl-dpo")
    trainer = trl.DPOTrainer(
        model=model, ref_model=copy.deepcopy(model), args=settings(trl.DPOConfig, tmp_path),
        train_dataset=pairs, processing_class=tokenizer,
    )  # fmt: skip
    for pair, row in zip(pairs, trainer.train_dataset, strict=True):
        assert tokenizer.decode(row["prompt_ids"]) == rendered(pair["prompt"]) + MODEL
        assert tokenizer.decode(row["chosen_ids"]) == pair["chosen"][0]["content"] + END
        assert tokenizer.decode(row["rejected_ids"]) == pair["rejected"][0]["content"] + END
    (batch,) = trainer.get_train_dataloader()
    assert batch["input_ids"].shape[0] == 2 * ROWS


@pytest.mark.parametrize("last_alone", [False, True])
def test_fine_tuning_accepts_the_demonstrations(
    last_alone: bool, load: Load, tokenizer: Any, model: Any, tmp_path: Path
) -> None:
    records = load("trl-sft")
    whole = [rendered(example["messages"]) for example in records]
    learnt = [
        [m["content"] + END for m in example["messages"] if m["role"] == "assistant"]
        for example in records
    ]
    if last_alone:  # as docs/exporting.md has it
        records = records.map(
            lambda chat: {"prompt": chat["messages"][:-1], "completion": chat["messages"][-1:]},
            remove_columns="messages",
        )
        learnt = [replies[-1:] for replies in learnt]
    trainer = trl.SFTTrainer(
        model=model, args=settings(trl.SFTConfig, tmp_path, assistant_only_loss=not last_alone),
        train_dataset=records, processing_class=tokenizer,
    )  # fmt: skip
    for text, replies, row in zip(whole, learnt, trainer.train_dataset, strict=True):
        assert tokenizer.decode(row["input_ids"]) == text
        labels = [token for token in row["labels"] if token != -100]
        assert tokenizer.decode(labels) == "".join(replies)
    (batch,) = trainer.get_train_dataloader()
    assert batch["input_ids"].shape[0] == ROWS
