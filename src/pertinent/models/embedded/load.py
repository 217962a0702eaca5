"""Small models that come with the package, so that a first explanation needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.models.base import Model

NAMES = ("sentiment", "topics", "digits", "table", "diabetes")
FROM_A_FOLDER = {"local_files_only": True, "trust_remote_code": False}
"""Nothing is downloaded and no code in the folder is run. Left unset, transformers would ask on stdin."""

DTYPES = ("float32", "bfloat16", "float16")


def load(name: str, *, device: str = "cpu", dtype: str = "float32") -> Model:
    """An embedded model, wrapped.

    ``"sentiment"`` and ``"topics"`` are small transformers in the package; ``"digits"`` (an image
    classifier) is trained on first use in seconds and kept in the cache folder; ``"table"`` (a
    classifier of wines) and ``"diabetes"`` (a regressor) are fitted whenever they are loaded.
    """
    if name not in NAMES:
        raise unknown("embedded model", name, NAMES)
    if name in ("table", "diabetes"):
        from pertinent.models.embedded.diabetes import diabetes_model
        from pertinent.models.embedded.wines import table_model

        if (device, dtype) != ("cpu", "float32"):
            raise SettingError(
                f"The embedded model {name!r} runs on the cpu in its own precision: leave out device and "
                "dtype."
            )
        return table_model() if name == "table" else diabetes_model()
    if name == "digits":
        from pertinent.models.embedded.digits import digits_model

        return digits_model(*_place(device, dtype))
    return load_transformer(
        Path(str(resources.files("pertinent"))) / "assets" / name, device=device, dtype=dtype
    )


def load_transformer(
    folder: str | Path, *, device: str = "cpu", dtype: str = "float32", **options: Any
) -> Model:
    """A sequence classifier and its tokenizer from a folder in transformers' format, safetensors only."""
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise FileError(f"There is no transformers model in {str(folder)!r}: it has no config.json.")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from pertinent.models.wrap import wrap

    place, precision = _place(device, dtype)
    try:
        with no_bar():
            tokenizer = AutoTokenizer.from_pretrained(folder, **FROM_A_FOLDER)
            model = AutoModelForSequenceClassification.from_pretrained(
                folder, dtype=precision, use_safetensors=True, **FROM_A_FOLDER
            )
    except Exception as error:
        raise ModelError(f"The transformers model in {str(folder)!r} cannot be loaded: {error}") from error
    return wrap((model.to(place), tokenizer), **options)


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


def _place(device: str, dtype: str) -> tuple[str, Any]:
    """The device, after a check that it exists, and the torch dtype."""
    import torch

    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if device not in ("cpu", "cuda"):
        raise unknown("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("`device` is 'cuda', but torch finds no CUDA device here: use 'cpu'.")
    return device, getattr(torch, dtype)
