"""Training settings, validated before models are loaded, and their conversion for transformers."""

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
    """Settings of a training run; `epochs` and `learning_rate` are ``None`` if no network is trained."""

    epochs: Count | None
    batch_size: Count
    learning_rate: Positive | None
    seed: Seed
    precision: Literal["float32", "bfloat16", "float16"]
    patience: Count | None
    checkpoint_steps: Count | None
    options: Mapping[str, Any]

    def check_device(self, device: torch.device | None) -> None:
        """Raise a `SettingError` for float16, which needs loss scaling, on a device other than CUDA."""
        kind = "cpu" if device is None else device.type
        if self.precision == "float16" and kind != "cuda":
            raise SettingError(
                f"`precision` must be 'float32' or 'bfloat16' on {kind}, got 'float16', which needs CUDA."
            )

    def arguments(self, checkpoints: Path, metric: str | None, device: str) -> Any:
        """Return the settings as transformers' ``TrainingArguments``.

        `metric` selects the best model on the validation examples: the highest value, or the lowest
        ``"loss"``. It is ``None`` without validation examples.
        """
        from transformers import TrainingArguments

        strategy = "epoch" if self.checkpoint_steps is None else "steps"
        settings: dict[str, Any] = {
            "output_dir": str(checkpoints),
            "num_train_epochs": self.epochs,
            "per_device_train_batch_size": self.batch_size,
            "per_device_eval_batch_size": 4 * self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "use_cpu": device == "cpu",
            "save_strategy": strategy,
            "save_total_limit": 1,
            "logging_strategy": "epoch",
            "logging_nan_inf_filter": False,  # avoids synchronising with the device at every step
            "report_to": "none",
            "disable_tqdm": True,
            "remove_unused_columns": False,
            "label_names": ["labels"],
            "dataloader_pin_memory": False,  # batches are pinned when they are sent to the device
            "ddp_broadcast_buffers": False,  # a second forward pass must not write to buffers
            "restore_callback_states_from_checkpoint": True,
            **PRECISIONS[self.precision],
        }
        if self.checkpoint_steps is not None:
            settings |= {"save_steps": self.checkpoint_steps, "eval_steps": self.checkpoint_steps}
        if metric is not None:
            settings |= {
                "eval_strategy": strategy,
                "load_best_model_at_end": True,
                "metric_for_best_model": metric,
                "greater_is_better": metric != "loss",
            }
        try:
            return TrainingArguments(**settings | dict(self.options))
        except (TypeError, ValueError) as error:
            raise SettingError(f"transformers rejected the training settings: {error}") from error

    def callbacks(self) -> list[Any]:
        """Return a list with the callback for early stopping; empty without `patience`."""
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
        """Return the settings and the data digest to save with the model, as plain JSON values."""
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
    """Return a removal that returns one row of tokens per text."""
    name = removal if isinstance(removal, str) else removal.name
    names = [other for other in removals.for_kind("text") if other != "marginalize"]
    if name == "marginalize":
        raise SettingError(
            "`removal` cannot be 'marginalize', which is too slow for training: choose from "
            f"{', '.join(names)}."
        )
    made = removals.make(removal) if isinstance(removal, str) else removal
    if "text" not in made.kinds():
        raise SettingError(
            f"`removal` must support text, got {name!r}, which supports {' and '.join(made.kinds())}: "
            f"choose from {', '.join(names)}."
        )
    # Explanations average over samples; training draws a new sample in each epoch.
    return replace(made, samples=1) if "samples" in {f.name for f in fields(made)} else made  # type: ignore[call-arg]
