"""The settings of training, checked before anything is loaded, and converted for transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pertinent.config.settings import Count, Positive, Seed, Settings, Share, changed_settings
from pertinent.errors import SettingError, require
from pertinent.removals.base import Removal, removals

if TYPE_CHECKING:
    import torch

    from pertinent.finetuning.batches import Examples

PRECISIONS = {"float32": {}, "bfloat16": {"bf16": True}, "float16": {"fp16": True}}


@dataclass(frozen=True)
class TrainerSettings(Settings):
    """Settings of every training; `epochs` and `learning_rate` are ``None`` if no network is trained."""

    epochs: Count | None
    batch_size: Count
    learning_rate: Positive | None
    seed: Seed
    precision: Literal["float32", "bfloat16", "float16"]
    patience: Count | None
    checkpoint_steps: Count | None
    options: Mapping[str, Any]

    def check_device(self, device: torch.device | None) -> None:
        """Raise a `SettingError` for float16 on a device other than CUDA: it needs loss scaling."""
        kind = "cpu" if device is None else device.type
        if self.precision == "float16" and kind != "cuda":
            raise SettingError(f"`precision` 'float16' needs CUDA, but the model is on {kind}.")

    def arguments(self, checkpoints: Path, metric: str | None, device: str) -> Any:
        """The settings as transformers' ``TrainingArguments``.

        `metric` names what is measured on the validation examples to keep the best model; larger is better,
        unless it is the loss. It is ``None`` if there are no validation examples.
        """
        from transformers import TrainingArguments

        every = "epoch" if self.checkpoint_steps is None else "steps"
        settings: dict[str, Any] = {
            "output_dir": str(checkpoints),
            "num_train_epochs": self.epochs,
            "per_device_train_batch_size": self.batch_size,
            "per_device_eval_batch_size": 4 * self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "use_cpu": device == "cpu",
            "save_strategy": every,
            "save_total_limit": 1,
            "logging_strategy": "epoch",
            "logging_nan_inf_filter": False,  # it would synchronise with the device at every step
            "report_to": "none",
            "disable_tqdm": True,
            "remove_unused_columns": False,
            "label_names": ["labels"],
            "dataloader_pin_memory": False,  # the batches pin themselves when they are sent
            "ddp_broadcast_buffers": False,  # two passes before one backward must not write to buffers
            "restore_callback_states_from_checkpoint": True,
            **PRECISIONS[self.precision],
        }
        if self.checkpoint_steps is not None:
            settings |= {"save_steps": self.checkpoint_steps, "eval_steps": self.checkpoint_steps}
        if metric is not None:
            settings |= {
                "eval_strategy": every,
                "load_best_model_at_end": True,
                "metric_for_best_model": metric,
                "greater_is_better": metric != "loss",
            }
        try:
            return TrainingArguments(**settings | dict(self.options))
        except (TypeError, ValueError) as error:
            raise SettingError(f"transformers does not accept these settings: {error}") from error

    def callbacks(self) -> list[Any]:
        """The callback for early stopping, if there is a `patience`."""
        from transformers import EarlyStoppingCallback

        return [] if self.patience is None else [EarlyStoppingCallback(self.patience)]


@dataclass(frozen=True)
class TrainingSettings(TrainerSettings):
    """Settings of counterfactual training; `removal` is ``None`` for standard training."""

    epochs: Count
    learning_rate: Positive
    removal: Removal | None
    sparsities: tuple[Share, ...]
    max_length: Count | None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(bool(self.sparsities), "sparsities", "at least one share", self.sparsities)

    def recorded(self, data: Examples, validation: Examples | None) -> dict[str, Any]:
        """The record of how a model was trained, in plain JSON."""
        removal = self.removal
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "counterfactual": removal is not None,
            "removal": None if removal is None else removal.name,
            "removal_settings": {} if removal is None else changed_settings(removal),
            "sparsities": None if removal is None else list(self.sparsities),
            "options": dict(self.options),
            "examples": len(data),
            "dev_examples": 0 if validation is None else len(validation),
            "data": data.fingerprint,
        }


def text_removal(removal: str | Removal) -> Removal:
    """A removal that gives one row of tokens for each text."""
    name = removal if isinstance(removal, str) else removal.name
    usable = [known for known in removals.for_kind("text") if known != "marginalize"]
    if name == "marginalize":
        raise SettingError(
            "The removal 'marginalize' needs many samples of each text, too many to train with: choose from "
            f"{', '.join(usable)}."
        )
    made = removals.make(removal) if isinstance(removal, str) else removal
    if "text" not in made.kinds():
        raise SettingError(
            f"The removal {name!r} is for {' and '.join(made.kinds())}, but training needs one for text: "
            f"choose from {', '.join(usable)}."
        )
    # One sample per text: an explanation averages over several, training sees a new one in each epoch.
    return replace(made, samples=1) if "samples" in {f.name for f in fields(made)} else made  # type: ignore[call-arg]
