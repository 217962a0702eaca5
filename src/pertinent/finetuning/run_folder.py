"""Folder of a training run: it holds checkpoints until the run finishes, then the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pertinent import __version__
from pertinent.errors import FileError, SettingError
from pertinent.files import file_exists, folder_exists, make_folder, read_json, write_json

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel

RECORD = "pertinent.json"
_BEGUN = "begun.json"
_LAST_WRITTEN = "trainer_state.json"


@dataclass(frozen=True)
class RunFolder:
    """Folder of a training run; `settings` identify the run."""

    path: Path
    settings: Mapping[str, Any]

    @property
    def checkpoints(self) -> Path:
        """Return the folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def finished(self) -> bool:
        """Return whether the run has finished; its record is written last."""
        return file_exists(self.path / RECORD)

    def open(self, *, resume: bool) -> None:
        """Create the folder, or check that it belongs to this training run."""
        if file_exists(self.path):
            raise FileError(f"`out` must be a folder, got the file {str(self.path)!r}.")
        record = self.path / RECORD if self.finished else self.checkpoints / _BEGUN
        if file_exists(record):
            if not resume:
                raise FileError(
                    f"{str(self.path)!r} already contains a training run: resume it or choose another folder."
                )
            self._compare(record)
        elif folder_exists(self.path) and any(self.path.iterdir()):
            raise FileError(
                f"{str(self.path)!r} is not empty but contains no training run: choose another folder."
            )
        else:
            make_folder(self.checkpoints)
            write_json(self.checkpoints / _BEGUN, self.settings)

    def last_checkpoint(self) -> str | None:
        """Return the path of the last complete checkpoint, or ``None``."""
        complete = [file.parent for file in self.checkpoints.glob(f"checkpoint-*/{_LAST_WRITTEN}")]
        return str(max(complete, key=lambda path: int(path.name.split("-")[1]))) if complete else None

    def record(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings and results of the run."""
        return {"pertinent": __version__, **self.settings, **results}

    def finish(self, wrapped: TransformerModel, results: Mapping[str, Any]) -> None:
        """Save the model and the record of the run, and remove the checkpoints."""
        wrapped.model.save_pretrained(self.path)
        wrapped.tokenizer.save_pretrained(self.path)
        write_json(self.path / RECORD, self.record(results))
        self.remove_checkpoints()

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of a finished run."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def load(self, model: Any) -> dict[str, Any]:
        """Load the saved weights into the model and return the record of the run."""
        saved = type(model).from_pretrained(self.path, local_files_only=True, use_safetensors=True)
        model.load_state_dict(saved.state_dict())
        return dict(read_json(self.path / RECORD))

    def _compare(self, record: Path) -> None:
        saved = read_json(record)
        settings = json.loads(json.dumps(self.settings))
        changed = [name for name in settings if saved.get(name) != settings[name]]
        if changed:
            raise SettingError(
                f"{str(self.path)!r} contains a training run with different settings ({', '.join(changed)}): "
                "choose another folder."
            )


def is_unfinished(path: Path) -> bool:
    """Return whether the folder contains a run that has started but not finished."""
    return file_exists(RunFolder(path, {}).checkpoints / _BEGUN)
