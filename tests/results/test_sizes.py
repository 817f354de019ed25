"""Sizes of models, and the measures of Stick-or-Switch by size."""

from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility
from holdfast.protocols.stick_or_switch.published import stick_or_switch
from holdfast.protocols.stick_or_switch.scale import SCALE_COLUMNS, Size, scale, size_of, sizes
from tests.results.frames import Row, table
from tests.results.offering import drawn, flexible, held, single

SIZES = sizes()
HEADER = "model,family,parameters,aliases\n"


def file_of(folder: Path, text: str) -> str:
    path = folder / "sizes.csv"
    path.write_text(text, "utf-8")
    return str(path)


def test_every_model_of_the_paper_has_its_row_and_size() -> None:
    models = list(stick_or_switch().models)
    assert list(dict.fromkeys(size.model for size in SIZES.values())) == models
    for model in models:
        size = size_of(model, SIZES)
        assert size is not None
        assert size.model == model
        if size.billions is None:
            assert size.family == "GPT"
        else:
            assert model.endswith(f" ({size.billions:g}B)")
            assert model.startswith(size.family.replace(" ", "-"))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o", "GPT-4o"),
        ("openai/gpt-4o-2024-08-06", "GPT-4o"),
        ("openai/azure/gpt-4o", "GPT-4o"),
        ("ollama/qwen2.5:1.5b-instruct-q4_K_M", "Qwen-2.5 (1.5B)"),
        ("ollama/llama3.2:1b-instruct-fp16", "Llama-3.2 (1B)"),
        ("ollama/gemma3:4b-it-qat", "Gemma-3 (4B)"),
        ("vllm/Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen-2.5 (72B)"),
        ("vllm/Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4", "Qwen-2.5 (3B)"),
        ("vllm/Qwen/Qwen3-32B-FP8", "Qwen-3 (32B)"),
        ("hf/meta-llama/Meta-Llama-3.1-70B-Instruct", "Llama-3.1 (70B)"),
        ("hf/google/gemma-3-1b-it", "Gemma-3 (1B)"),
        ("openrouter/google/gemma-3-12b-it:free", "Gemma-3 (12B)"),
        ("openrouter/qwen/qwen-2.5-72b-instruct", "Qwen-2.5 (72B)"),
        ("together/meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo", "Llama-3.1 (8B)"),
        ("groq/llama-3.1-8b-instant", "Llama-3.1 (8B)"),
        ("fireworks/accounts/fireworks/models/llama-v3p1-70b-instruct", "Llama-3.1 (70B)"),
        ("bedrock/us.meta.llama3-1-70b-instruct-v1:0", "Llama-3.1 (70B)"),
        ("Qwen-3 (8B) [published]", "Qwen-3 (8B)"),
        ("openai/gpt-4o-mini", None),
        ("openai/gpt-4", None),
        ("openai/gpt-5.2-pro", None),
        ("vllm/Qwen/Qwen2.5-Coder-7B-Instruct", None),
        ("vllm/deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", None),
        ("vllm/Qwen/Qwen3-30B-A3B", None),
        ("vllm/Qwen/Qwen2.5-7B-Instruct-1M", None),
        ("hf/google/medgemma-4b-it", None),
        ("hf/google/gemma-31b", None),  # not Gemma 3 with 1 billion
        ("hf/google/gemma-2-27b-it", None),
        ("hf/meta-llama/Llama-3.3-70B-Instruct", None),
        ("ollama/qwen2.5", None),  # the size behind a bare name changes with the registry
        ("ollama/gemma3:latest", None),
        ("gpt-4o/lookalike", None),
        ("", None),
        ("/", None),
        ("[published]", None),
    ],
)
def test_ids_of_providers_are_matched_by_their_size(model: str, name: str | None) -> None:
    size = size_of(model, SIZES)
    assert (size.model if size else None) == name


# --- a file of the user's ---


def test_a_file_adds_models_and_replaces_them(tmp_path: Path) -> None:
    text = (
        "\ufeffmodel, family ,parameters,aliases\n"  # a byte order mark
        "MedGemma (4B),MedGemma,4,medgemma-1.5-4b-it; mg4; MG-4\n"  # the same name twice
        '"Ward, tuned",In-house,0.5,\n'
        "\n"
        "Claude Sonnet 4,Claude,,\n"
        "llama-3.1-8b,Llama,8.03,\n"  # in place of the one above, with its aliases
        "runs/one/final,A,1,\n"
        "runs/two/final,A,2,\n"
        "cheap/gpt-4o,GPT,200,\n"
    )
    models = sizes(file_of(tmp_path, text))
    medgemma = Size("MedGemma (4B)", "MedGemma", 4.0)
    llama = Size("llama-3.1-8b", "Llama", 8.03)
    for model, size in {
        "hf/google/medgemma-4b-it": medgemma,
        "hf/google/medgemma-1.5-4b-it": medgemma,
        "vllm/MG4": medgemma,
        "ward-tuned": Size("Ward, tuned", "In-house", 0.5),
        "anthropic/claude-sonnet-4": Size("Claude Sonnet 4", "Claude", None),
        "Llama-3.1 (8B)": llama,
        "hf/meta-llama/Meta-Llama-3.1-8B-Instruct": llama,
        "Llama-3.1 (70B)": SIZES["llama 3.1 70b"],
        # a name with a slash is the end of an id; the longer one comes first
        "vllm/runs/two/final": Size("runs/two/final", "A", 2.0),
        "vllm/final": None,
        "proxy/cheap/gpt-4o": Size("cheap/gpt-4o", "GPT", 200.0),
        "openai/gpt-4o": SIZES["gpt 4o"],
    }.items():
        assert size_of(model, models) == size
    assert size_of("mg4", SIZES) is None
    models = sizes(file_of(tmp_path, "parameters, model ,family\n 2 , a-model , A\n"))
    assert size_of("a model", models) == Size("a-model", "A", 2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ", field 'model': is missing. Start with model,family,parameters."),
        ("model,family\n", ", field 'parameters': is missing. "),
        ("model,family,parameters,alias\n", ": unknown column 'alias'. Did you mean 'aliases'?"),
        ("model,family,parameters,model\n", ", field 'model': is named twice. "),
        (HEADER + "A,a,1,\nB,b\n", ", row 2: has 2 cells where the header has 4. "),
        (HEADER + ",a,1,\n", ", row 1, field 'model': is empty. Name the model."),
        (HEADER + "A,,1,\n", ", row 1, field 'family': is empty. Name the family."),
        *((HEADER + f"A,a,{number},\n", f", row 1, field 'parameters': '{number}' is not a number")
          for number in ("7B", "-1", "0", "nan", "inf")),
        (HEADER + "(),a,1,\n", ", row 1, field 'model': '()' ends in no letter or digit. "),
        (HEADER + "A,a,1,x/\n", ", row 1, field 'aliases': 'x/' ends in no letter "),
        (HEADER + "A-1,a,1,\n\nB,b,2,c; a1\n",
         ", row 3, field 'aliases': 'a1' is the same model as row 1. Remove one, "),
        (HEADER + 'A,a,1,"x\n', ", row 1: broken CSV ("),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    file = file_of(tmp_path, text)
    with pytest.raises(InputError) as error:
        sizes(file)
    assert str(error.value).startswith(f"{file}{message}")
    assert "\n" not in str(error.value)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.csv"), str(tmp_path), "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            sizes(path)
    file = tmp_path / "latin.csv"
    file.write_bytes(HEADER.encode() + b"caf\xe9,a,1,\n")
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte 35\)"):
        sizes(str(file))


# --- measures by size ---


def study(model: str) -> list[Row]:
    rows = [
        single("q1", "A"), *held("q1", "AAA"), *held("q1", "NC", "negative"), flexible("q1", "A"),
        single("q1", "N", "single-shot-abstain"), single("q2", "A"), *held("q2", "AB"),
    ]  # fmt: skip
    return [row | {"model": model, "run": f"run of {model}"} for row in rows]


def test_models_are_sorted_by_family_and_size(tmp_path: Path) -> None:
    models = ("vllm/Qwen/Qwen2.5-72B-Instruct", "unheard/of", "openai/gpt-4o", "ollama/qwen2.5:7b")
    turns = table([row for model in models for row in study(model)])
    assert scale(turns).select("model", "family", "parameters").rows() == [
        ("ollama/qwen2.5:7b", "Qwen 2.5", 7.0),
        ("vllm/Qwen/Qwen2.5-72B-Instruct", "Qwen 2.5", 72.0),
        ("openai/gpt-4o", "GPT", None),
        ("unheard/of", None, None),
    ]
    file = file_of(tmp_path, "model,family,parameters\nunheard/of,Mine,3.5\n")
    row = scale(table(study("unheard/of")), models=file).row(0, named=True)
    assert (row["family"], row["parameters"]) == ("Mine", 3.5)


def test_figures_match_hand_calculation() -> None:
    row = scale(table(study("m"))).row(0, named=True)
    assert {name: row[name] for name in SCALE_COLUMNS[4:16]} == {
        "single_shot": 1.0, "isolated": 1.0, "conviction": 0.5, "tax": -0.5, "raw_tax": -0.5,
        "single_shot_abstention": 1.0, "isolated_abstention": 1.0, "abstention": 0.0,
        "abstention_tax": -1.0, "raw_abstention_tax": -1.0, "correct_rate": 1.0,
        "incorrect_rate": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_matches_its_table(seed: int) -> None:
    turns = table(drawn(seed))
    survivals, taxes, switches = survival(turns), tax(turns), flexibility(turns)
    rows = scale(turns).to_dicts()
    assert len(rows) == survivals["run"].n_unique()
    for row in rows:
        run = row["run"]
        abstention = taxes.filter(run=run, behaviour="abstention", against="single-shot")
        for frame, columns in (
            (survivals.filter(run=run, arm="positive").tail(1),
             {"conviction": "survival", "conviction_high": "high"}),
            (survivals.filter(run=run, arm="negative").tail(1), {"abstention": "survival"}),
            (abstention, {"abstention_tax": "tax", "abstention_tax_low": "low"}),
            (switches.filter(run=run),
             {"correct_rate": "correct_rate", "incorrect_high": "incorrect_high"}),
        ):  # fmt: skip
            for name, source in columns.items():
                assert [row[name]] == (frame[source].to_list() or [None])
