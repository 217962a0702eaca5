"""Small models that come with the package, so that a first explanation needs nothing else."""

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
"""The kind of input that each model reads."""

NAMES = tuple(KINDS)
FROM_A_FOLDER = {"local_files_only": True, "trust_remote_code": False}
"""Options so that nothing is downloaded and no code in the folder is run; else transformers asks on stdin."""


@checked
def load(name: str, *, device: Any = "cpu", dtype: Any = "float32", long_texts: str = "truncate") -> Model:
    """Load a model that comes with the package.

    ``"sentiment"`` and ``"topics"`` are small transformers in the package, ``"recall"`` is a small language
    model that answers questions about facts in its prompt; ``"digits"`` (an image classifier) is trained on
    first use in seconds and kept in the cache folder; ``"table"`` (a classifier of wines) and ``"diabetes"``
    (a regressor) are fitted whenever they are loaded. `device` and `dtype` are torch's, such as ``"cuda:0"``
    and ``"bfloat16"``. `long_texts` is that of `wrap`: ``"windows"`` reads texts of more than 256 tokens in
    windows.
    """
    if name not in NAMES:
        raise unknown("embedded model", name, NAMES)
    if name not in TEXT_MODELS and long_texts != "truncate":
        raise SettingError(f"The model {name!r} reads no long texts: leave out long_texts.")
    if name in ("table", "diabetes"):
        from pertinent.models.embedded.tables import diabetes_model, table_model

        if (str(device), str(dtype).removeprefix("torch.")) != ("cpu", "float32"):
            raise SettingError(f"The model {name!r} runs on the cpu alone: leave out device and dtype.")
        return table_model() if name == "table" else diabetes_model()
    if name == "digits":
        from pertinent.models.embedded.digits import digits_model
        from pertinent.models.torch.devices import parse_device, parse_dtype

        return digits_model(str(parse_device(device)), parse_dtype(dtype))
    reading = {"long_texts": long_texts} if name in TEXT_MODELS else {}
    return load_transformer(ASSETS / name, device=device, dtype=dtype, **reading)


def load_transformer(
    folder: str | Path, *, device: Any = "cpu", dtype: Any = "float32", **options: Any
) -> Model:
    """Load a classifier of texts or images, a reader that answers questions or a language model.

    The folder holds the weights as safetensors, and the tokenizer or image processor.
    """
    folder = Path(folder)
    if not file_exists(folder / "config.json"):
        raise FileError(f"There is no transformers model in {str(folder)!r}: it has no config.json.")
    from pertinent.models.torch.devices import parse_device, parse_dtype
    from pertinent.models.wrap import wrap

    place, precision = parse_device(device), parse_dtype(dtype)
    try:
        is_own = folder.parent == ASSETS and folder.name in TEXT_MODELS
        model, reader = (_read_own if is_own else _read)(folder, precision)
    except Exception as error:
        raise ModelError(
            f"The transformers model in {str(folder)!r} cannot be loaded: {error} No code in it is run: "
            "to trust it, load it yourself and wrap((model, tokenizer))."
        ) from error
    return wrap((model.to(place), reader), **options)


def _read_own(folder: Path, dtype: Any) -> tuple[Any, Any]:
    """An embedded model and its tokenizer, without transformers."""
    from pertinent.models.embedded.bert import BertClassifier
    from pertinent.models.embedded.word_pieces import WordPieces

    return BertClassifier.from_folder(folder, dtype), WordPieces(folder)


def _read(folder: Path, dtype: Any) -> tuple[Any, Any]:
    """Return the model in a folder, and its tokenizer or image processor."""
    import transformers

    head = find_head(folder)
    readers = {"tokenizer": "AutoTokenizer", "image_processor": "AutoImageProcessor"}
    with no_bar():
        reader = getattr(transformers, readers[head.reader]).from_pretrained(folder, **FROM_A_FOLDER)
        kind = getattr(transformers, head.auto_class)
        return kind.from_pretrained(folder, dtype=dtype, use_safetensors=True, **FROM_A_FOLDER), reader


def find_head(folder: str | Path) -> type[RegisteredHead]:
    """Return the head of the model in a folder by its configuration, a text classifier's if none matches."""
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
def no_bar() -> Iterator[None]:
    """Hide transformers' progress bar: loading takes only a moment."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
