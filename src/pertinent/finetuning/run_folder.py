"""The folder of a training run: checkpoints while it runs, the model when it is done."""

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
    """The folder of one training run, which is described by `settings`."""

    path: Path
    settings: Mapping[str, Any]

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def finished(self) -> bool:
        """Whether the trained model is there; its record is written last."""
        return file_exists(self.path / RECORD)

    def open(self, *, resume: bool) -> None:
        """Make the folder, or check that it holds this same training run."""
        if file_exists(self.path):
            raise FileError(f"{str(self.path)!r} is a file; `out` must be a folder.")
        begun = self.path / RECORD if self.finished else self.checkpoints / _BEGUN
        if file_exists(begun):
            if not resume:
                raise FileError(
                    f"{str(self.path)!r} already holds a training run: resume it, or choose another folder."
                )
            self._compare(begun)
        elif folder_exists(self.path) and any(self.path.iterdir()):
            raise FileError(f"{str(self.path)!r} is not empty and holds no training: choose another folder.")
        else:
            make_folder(self.checkpoints)
            write_json(self.checkpoints / _BEGUN, self.settings)

    def last_checkpoint(self) -> str | None:
        """The last checkpoint that was written completely."""
        whole = [found.parent for found in self.checkpoints.glob(f"checkpoint-*/{_LAST_WRITTEN}")]
        return str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None

    def record(self, done: Mapping[str, Any]) -> dict[str, Any]:
        """The record of the training: its settings and its results."""
        return {"pertinent": __version__, **self.settings, **done}

    def finish(self, wrapped: TransformerModel, done: Mapping[str, Any]) -> None:
        """Save the model and a record of its training, and remove the checkpoints."""
        wrapped.model.save_pretrained(self.path)
        wrapped.tokenizer.save_pretrained(self.path)
        write_json(self.path / RECORD, self.record(done))
        self.remove_checkpoints()

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of a finished training."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def read_back(self, model: Any) -> dict[str, Any]:
        """Load the saved weights into the model, and return the record of its training."""
        saved = type(model).from_pretrained(self.path, local_files_only=True, use_safetensors=True)
        model.load_state_dict(saved.state_dict())
        return dict(read_json(self.path / RECORD))

    def _compare(self, begun: Path) -> None:
        before = read_json(begun)
        now = json.loads(json.dumps(self.settings))
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            raise SettingError(
                f"{str(self.path)!r} holds a training run with other settings ({', '.join(changed)}): "
                "choose another folder."
            )


def is_begun(path: Path) -> bool:
    """Whether a run in this folder was begun and not finished."""
    return file_exists(RunFolder(path, {}).checkpoints / _BEGUN)
