from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.published import stick_or_switch
from holdfast.protocols.stick_or_switch.scale import Size, size_of, sizes

BUNDLED = sizes()


def own(folder: Path, text: str) -> str:
    path = folder / "own.csv"
    path.write_text(text, "utf-8")
    return str(path)


def name_of(model: str) -> str | None:
    found = size_of(model, BUNDLED)
    return found.model if found else None


# --- the models of the paper ---


def test_every_model_of_the_paper_has_its_row_and_no_other() -> None:
    paper = stick_or_switch()
    assert list(dict.fromkeys(size.model for size in BUNDLED.values())) == list(paper.models)
    for model in paper.models:
        assert name_of(model) == model


def test_a_size_is_the_one_in_the_name() -> None:
    for size in BUNDLED.values():
        if size.billions is None:
            assert size.family == "GPT"
        else:
            assert size.model.endswith(f" ({size.billions:g}B)")
            assert size.model.startswith(size.family.replace(" ", "-"))


def test_the_four_families_have_the_sizes_of_section_4_2() -> None:
    by_family: dict[str, set[float | None]] = {}
    for size in BUNDLED.values():
        by_family.setdefault(size.family, set()).add(size.billions)
    assert by_family == {
        "GPT": {None},
        "Llama 3": {1, 8, 70},
        "Qwen 2.5": {1.5, 3, 7, 72},
        "Qwen 3": {4, 8, 14, 32},
        "Gemma 3": {1, 4, 12, 27},
    }


# --- how an id is matched ---


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o", "GPT-4o"),
        ("openai/gpt-4o-2024-08-06", "GPT-4o"),
        ("openai/azure/gpt-4o", "GPT-4o"),
        ("openai/gpt-5.2", "GPT-5.2"),
        ("ollama/qwen2.5:7b", "Qwen-2.5 (7B)"),
        ("ollama/qwen2.5:1.5b-instruct-q4_K_M", "Qwen-2.5 (1.5B)"),
        ("ollama/qwen3:14b-q8_0", "Qwen-3 (14B)"),
        ("ollama/llama3.1:8b", "Llama-3.1 (8B)"),
        ("ollama/llama3.2:1b-instruct-fp16", "Llama-3.2 (1B)"),
        ("ollama/gemma3:4b-it-qat", "Gemma-3 (4B)"),
        ("vllm/Qwen/Qwen2.5-7B-Instruct", "Qwen-2.5 (7B)"),
        ("vllm/Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen-2.5 (72B)"),
        ("vllm/Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4", "Qwen-2.5 (3B)"),
        ("vllm/Qwen/Qwen3-32B-FP8", "Qwen-3 (32B)"),
        ("hf/Qwen/Qwen3-4B", "Qwen-3 (4B)"),
        ("hf/meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1 (8B)"),
        ("hf/meta-llama/Meta-Llama-3.1-70B-Instruct", "Llama-3.1 (70B)"),
        ("hf/meta-llama/Llama-3.2-1B-Instruct", "Llama-3.2 (1B)"),
        ("hf/google/gemma-3-27b-it", "Gemma-3 (27B)"),
        ("hf/google/gemma-3-1b-it", "Gemma-3 (1B)"),
        ("openrouter/google/gemma-3-12b-it:free", "Gemma-3 (12B)"),
        ("openrouter/qwen/qwen-2.5-72b-instruct", "Qwen-2.5 (72B)"),
        ("together/meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo", "Llama-3.1 (8B)"),
        ("together/Qwen/Qwen2.5-7B-Instruct-Turbo", "Qwen-2.5 (7B)"),
        ("groq/llama-3.1-8b-instant", "Llama-3.1 (8B)"),
        ("fireworks/accounts/fireworks/models/llama-v3p1-70b-instruct", "Llama-3.1 (70B)"),
        ("bedrock/us.meta.llama3-1-70b-instruct-v1:0", "Llama-3.1 (70B)"),
        ("GPT-4o [published]", "GPT-4o"),
        ("Qwen-3 (8B) [published]", "Qwen-3 (8B)"),
    ],
)
def test_usual_ids_of_providers(model: str, name: str) -> None:
    assert name_of(model) == name


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o-mini",
        "openai/gpt-4",
        "openai/gpt-5.2-pro",
        "vllm/Qwen/Qwen2.5-Coder-7B-Instruct",
        "vllm/deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        "vllm/Qwen/Qwen3-30B-A3B",
        "vllm/Qwen/Qwen2.5-7B-Instruct-1M",
        "hf/google/medgemma-4b-it",
        "hf/google/gemma-31b",  # not Gemma 3 with 1 billion
        "hf/google/gemma-2-27b-it",
        "hf/meta-llama/Llama-3.3-70B-Instruct",
        "ollama/qwen2.5",  # the size behind a bare name changes with the registry
        "ollama/gemma3:latest",
        "simulated/steadfast",
        "gpt-4o/lookalike",
        "",
        "/",
        "[published]",
    ],
)
def test_other_models_have_no_size_of_these(model: str) -> None:
    assert size_of(model, BUNDLED) is None


# --- a file of the user's ---


def test_a_file_adds_models(tmp_path: Path) -> None:
    extended = sizes(
        own(
            tmp_path,
            "model,family,parameters,aliases\n"
            "MedGemma (4B),MedGemma,4,medgemma-1.5-4b-it; mg4\n"
            '"Ward, tuned",In-house,0.5,\n'
            "\n"
            "Claude Sonnet 4,Claude,,\n",
        )
    )
    medgemma = Size("MedGemma (4B)", "MedGemma", 4.0)
    assert size_of("hf/google/medgemma-4b-it", extended) == medgemma
    assert size_of("hf/google/medgemma-1.5-4b-it", extended) == medgemma
    assert size_of("vllm/MG4", extended) == medgemma
    assert size_of("ward-tuned", extended) == Size("Ward, tuned", "In-house", 0.5)
    assert size_of("anthropic/claude-sonnet-4", extended) == Size("Claude Sonnet 4", "Claude", None)
    assert len(extended) == len(BUNDLED) + 5
    assert size_of("mg4", BUNDLED) is None


def test_a_row_takes_the_place_of_the_bundled_one_with_its_aliases(tmp_path: Path) -> None:
    mine = Size("llama-3.1-8b", "Llama", 8.03)
    extended = sizes(own(tmp_path, "model,family,parameters\nllama-3.1-8b,Llama,8.03\n"))
    assert size_of("Llama-3.1 (8B)", extended) == mine
    assert size_of("hf/meta-llama/Meta-Llama-3.1-8B-Instruct", extended) == mine
    assert size_of("Llama-3.1 (70B)", extended) == BUNDLED["llama 3.1 70b"]
    assert list(extended) == list(BUNDLED)


def test_columns_in_any_order_and_a_byte_order_mark(tmp_path: Path) -> None:
    extended = sizes(own(tmp_path, "\ufeffparameters, model ,family\n 2 , a-model , A\n"))
    assert size_of("a model", extended) == Size("a-model", "A", 2.0)


def test_a_name_with_a_slash_is_the_end_of_an_id(tmp_path: Path) -> None:
    extended = sizes(
        own(
            tmp_path,
            "model,family,parameters\n"
            "runs/one/final,A,1\n"
            "runs/two/final,A,2\n"
            "cheap/gpt-4o,GPT,200\n",
        )
    )
    assert size_of("vllm/runs/two/final", extended) == Size("runs/two/final", "A", 2.0)
    assert size_of("vllm/final", extended) is None
    # the longer name comes first; the shorter one holds elsewhere
    assert size_of("proxy/cheap/gpt-4o", extended) == Size("cheap/gpt-4o", "GPT", 200.0)
    assert size_of("openai/gpt-4o", extended) == BUNDLED["gpt 4o"]


HEADER = "model,family,parameters,aliases\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{file}, field 'model': is missing. Start with model,family,parameters."),
        ("model,family\n", "{file}, field 'parameters': is missing. "),
        (
            "model,family,parameters,alias\n",
            "{file}: unknown column 'alias'. Did you mean 'aliases'?",
        ),
        ("model,family,parameters,model\n", "{file}, field 'model': is named twice. "),
        (HEADER + "A,a,1,\nB,b\n", "{file}, row 2: has 2 cells where the header has 4. "),
        (HEADER + ",a,1,\n", "{file}, row 1, field 'model': is empty. Name the model."),
        (HEADER + "A,,1,\n", "{file}, row 1, field 'family': is empty. Name the family."),
        (
            HEADER + "A,a,7B,\n",
            "{file}, row 1, field 'parameters': '7B' is not a number of billions",
        ),
        (HEADER + "A,a,-1,\n", "{file}, row 1, field 'parameters': '-1' is not a number"),
        (HEADER + "A,a,0,\n", "{file}, row 1, field 'parameters': '0' is not a number"),
        (HEADER + "A,a,nan,\n", "{file}, row 1, field 'parameters': 'nan' is not a number"),
        (HEADER + "A,a,inf,\n", "{file}, row 1, field 'parameters': 'inf' is not a number"),
        (HEADER + "(),a,1,\n", "{file}, row 1, field 'model': '()' ends in no letter or digit. "),
        (HEADER + "A,a,1,x/\n", "{file}, row 1, field 'aliases': 'x/' ends in no letter "),
        (
            HEADER + "A-1,a,1,\n\nB,b,2,c; a1\n",
            "{file}, row 3, field 'aliases': 'a1' is the same model as row 1. Remove one, ",
        ),
        (HEADER + 'A,a,1,"x\n', "{file}, row 1: broken CSV ("),
    ],
)
def test_a_bad_file_is_one_line_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    file = own(tmp_path, text)
    with pytest.raises(InputError) as caught:
        sizes(file)
    assert str(caught.value).startswith(message.format(file=file))
    assert "\n" not in str(caught.value)


def test_the_same_name_twice_in_one_row_is_no_fault(tmp_path: Path) -> None:
    extended = sizes(own(tmp_path, HEADER + "New 1B,New,1,new-1b; NEW:1b-it\n"))
    assert size_of("new-1b", extended) == Size("New 1B", "New", 1.0)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.csv"), str(tmp_path), "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            sizes(path)
    file = tmp_path / "latin.csv"
    file.write_bytes(HEADER.encode() + b"caf\xe9,a,1,\n")
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte 35\)"):
        sizes(str(file))
