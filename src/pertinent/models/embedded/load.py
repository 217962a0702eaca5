"""Loading of the package's models and of transformers models from folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pertinent.config.settings import checked
from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.files import file_exists
from pertinent.models.base import Model

if TYPE_CHECKING:
    from pertinent.models.heads.base import RegisteredHead

TEXT_MODELS = ("sentiment", "topics")
ASSETS = Path(str(resources.files("pertinent"))) / "assets"
KINDS = {
    **dict.fromkeys(TEXT_MODELS, "text"),
    "recall": "prompt",
    "digits": "image",
    "table": "table",
    "diabetes": "table",
}
"""Kind of input that each model reads."""

NAMES = tuple(KINDS)
OPTIONAL = {"smollm2": "prompt"}
"""Kind of input of each model whose weights are in another package."""


def installed_kinds() -> dict[str, str]:
    """Return the kind of input of each model whose weights are installed."""
    from pertinent.models.embedded.smollm2 import is_installed

    return KINDS | (OPTIONAL if is_installed() else {})


LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""Options that prevent downloads and running code from the folder; otherwise transformers asks on stdin."""


@checked
def load(name: str, *, device: Any = "cpu", dtype: Any = "float32", long_texts: str = "truncate") -> Model:
    """Load a model included in the package, or in a package of weights.

    Parameters
    ----------
    name
        ``"sentiment"`` or ``"topics"``, small text classifiers; ``"recall"``, a small language model that
        answers questions about facts in its prompt; ``"digits"``, an image classifier; ``"table"``, a wine
        classifier; ``"diabetes"``, a regressor. The last two are fitted when they are loaded. With
        ``pip install 'pertinent[smollm2]'`` also ``"smollm2"``, the chat model SmolLM2-135M-Instruct, which
        is converted when it is first loaded.
    device, dtype
        Torch device and dtype, such as ``"cuda:0"`` and ``"bfloat16"``.
    long_texts
        As in `wrap`: ``"windows"`` reads texts of more than 256 tokens in windows.
    """
    if name not in (*NAMES, *OPTIONAL):
        raise unknown("embedded model", name, (*NAMES, *OPTIONAL))
    if name not in TEXT_MODELS and long_texts != "truncate":
        raise SettingError(f"The model {name!r} does not read long texts: omit `long_texts`.")
    if name in ("table", "diabetes"):
        from pertinent.models.embedded.tables import diabetes_model, table_model

        if (str(device), str(dtype).removeprefix("torch.")) != ("cpu", "float32"):
            raise SettingError(f"The model {name!r} runs only on the CPU: omit `device` and `dtype`.")
        return table_model() if name == "table" else diabetes_model()
    if name == "digits":
        from pertinent.models.embedded.digits import digits_model
        from pertinent.models.torch.devices import parse_device, parse_dtype

        return digits_model(ASSETS / name, str(parse_device(device)), parse_dtype(dtype))
    if name == "smollm2":
        from pertinent.models.embedded.smollm2 import smollm2_folder

        return load_transformer(smollm2_folder(), device=device, dtype=dtype)
    options = {"long_texts": long_texts} if name in TEXT_MODELS else {}
    return load_transformer(ASSETS / name, device=device, dtype=dtype, **options)


def load_transformer(
    folder: str | Path, *, device: Any = "cpu", dtype: Any = "float32", **options: Any
) -> Model:
    """Load a transformers model and its tokenizer or image processor from a folder, and wrap them."""
    folder = require_model(folder)
    from pertinent.models.torch.devices import parse_device, parse_dtype
    from pertinent.models.wrap import wrap

    torch_device, torch_dtype = parse_device(device), parse_dtype(dtype)
    try:
        is_embedded = folder.parent == ASSETS and folder.name in TEXT_MODELS
        model, reader = (_read_embedded if is_embedded else _read)(folder, torch_dtype)
    except Exception as error:
        raise ModelError(
            f"The transformers model in {str(folder)!r} cannot be loaded: {error} Code in the folder is "
            "never run: if you trust it, load the model yourself and call wrap((model, tokenizer))."
        ) from error
    return wrap((model.to(torch_device), reader), **options)


def require_model(folder: str | Path) -> Path:
    """Return the folder's path; raise a `FileError` unless it contains a transformers model."""
    if not file_exists(Path(folder) / "config.json"):
        raise FileError(f"There is no transformers model in {str(folder)!r}: it has no config.json.")
    return Path(folder)


def _read_embedded(folder: Path, dtype: Any) -> tuple[Any, Any]:
    """Return an embedded text classifier and its tokenizer without importing transformers."""
    from pertinent.models.embedded.bert import BertClassifier
    from pertinent.models.embedded.word_pieces import WordPieces

    return BertClassifier.from_folder(folder, dtype), WordPieces(folder)


def _read(folder: Path, dtype: Any) -> tuple[Any, Any]:
    """Return a folder's model and its tokenizer or image processor."""
    import transformers

    head = find_head(folder)
    readers = {"tokenizer": "AutoTokenizer", "image_processor": "AutoImageProcessor"}
    with no_progress_bar():
        reader = getattr(transformers, readers[head.reader]).from_pretrained(folder, **LOCAL)
        model_class = getattr(transformers, head.auto_class)
        return model_class.from_pretrained(folder, dtype=dtype, use_safetensors=True, **LOCAL), reader


def find_head(folder: str | Path) -> type[RegisteredHead]:
    """Return the head for the configuration in a folder; by default the text classifier's."""
    from pertinent.models.heads.base import heads

    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        names = tuple(map(str, config["architectures"]))
    except (OSError, ValueError, TypeError, KeyError):
        names = ()
    for head in heads.all().values():
        endings = filter(None, (head.auto_class.removeprefix("AutoModel"), *head.architectures))
        if any(name.endswith(tuple(endings)) for name in names):
            return head
    return heads.get("text-classification")


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Hide the progress bar of transformers, because loading is fast."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
