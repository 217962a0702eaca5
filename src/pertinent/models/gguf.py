"""Language models in GGUF files, read with transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError, ModelError
from pertinent.files import check_is_file

_MAGIC = b"GGUF"
"""First bytes of a GGUF file."""


def is_gguf(thing: Any) -> bool:
    """Return whether this is the path of a GGUF file."""
    return isinstance(thing, str | Path) and str(thing).lower().endswith(".gguf")


def read_gguf(file: str | Path, *, device: Any = "cpu", dtype: Any = "float32") -> tuple[Any, Any]:
    """Return the language model in a GGUF file, with weights that are not quantized, and its tokenizer.

    The file holds only numbers and texts: no code is run or downloaded.
    """
    path = Path(file)
    check_is_file(path)
    with path.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise FileError(f"{str(path)!r} is not a GGUF file.")
    optional("gguf")
    optional("accelerate", extra="gguf")
    import transformers

    from pertinent.models.torch.devices import parse_device, parse_dtype

    torch_device, torch_dtype = parse_device(device), parse_dtype(dtype)
    options: dict[str, Any] = {
        "gguf_file": path.name,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    weights = dict(options)
    if hasattr(transformers, "GgufConfig"):  # without it, kernels for quantized weights may be downloaded
        weights["quantization_config"] = transformers.GgufConfig(dequantize=True)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **options)
        auto_class: Any = transformers.AutoModelForCausalLM
        model = auto_class.from_pretrained(str(path.parent), dtype=torch_dtype, **weights)
    except Exception as error:
        raise ModelError(f"The language model in {str(path)!r} cannot be loaded: {error}") from error
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    return model.to(torch_device), tokenizer
