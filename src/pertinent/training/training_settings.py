"""The settings of training, checked before anything is loaded, and converted for transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pertinent.errors import SettingError, require
from pertinent.registry import settings_of
from pertinent.removal.base import Removal, removals
from pertinent.settings import Count, Positive, Seed, Settings, Share

if TYPE_CHECKING:
    from pertinent.training.labelled_texts import Examples

if TYPE_CHECKING:
    import torch

PRECISIONS = {"float32": {}, "bfloat16": {"bf16": True}, "float16": {"fp16": True}}


@dataclass(frozen=True)
class TrainerSettings(Settings):
    """Settings that every training has; `epochs` and `learning_rate` are ``None`` if there is no network."""

    epochs: Count | None
    batch_size: Count
    learning_rate: Positive | None
    seed: Seed
    precision: Literal["float32", "bfloat16", "float16"]
    patience: Count | None
    checkpoint_steps: Count | None
    options: Mapping[str, Any]

    def check_device(self, device: torch.device | None) -> None:
        """Raise a `SettingError` for mixed float16 elsewhere than on CUDA: it needs loss scaling."""
        kind = "cpu" if device is None else device.type
        if self.precision == "float16" and kind != "cuda":
            raise SettingError(f"`precision` 'float16' needs CUDA, but the model is on {kind}.")

    def arguments(self, checkpoints: Path, metric: str | None, device: str) -> Any:
        """The settings as transformers' ``TrainingArguments``.

        `metric` is what is measured on the validation examples, to keep the best model: more is better,
        unless it is the loss. ``None`` if there are no validation examples.
        """
        from transformers import TrainingArguments

        every = "epoch" if self.checkpoint_steps is None else "steps"
        steps = {} if self.checkpoint_steps is None else {"save_steps": self.checkpoint_steps}
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
            **steps,
            **PRECISIONS[self.precision],
        }
        if metric is not None:
            settings |= {
                "eval_strategy": every,
                "load_best_model_at_end": True,
                "metric_for_best_model": metric,
                "greater_is_better": metric != "loss",
            }
            if self.checkpoint_steps is not None:
                settings["eval_steps"] = self.checkpoint_steps
        try:
            return TrainingArguments(**settings | dict(self.options))
        except (TypeError, ValueError) as error:
            raise SettingError(f"transformers does not accept these settings: {error}") from error

    def callbacks(self) -> list[Any]:
        """Early stopping, if asked for."""
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

    @classmethod
    def of(cls, *, counterfactual: bool, removal: str | Removal, **settings: Any) -> TrainingSettings:
        """The settings, with the removal created and checked."""
        return cls(removal=text_removal(removal) if counterfactual else None, **settings)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(bool(self.sparsities), "sparsities", "at least one share", self.sparsities)

    def check_validation(self, has_validation: bool) -> None:
        """Early stopping needs something to watch."""
        if self.patience is not None and not has_validation:
            raise SettingError("`patience` watches the accuracy on other inputs: give `validation`, too.")

    def recorded(self, data: Examples, dev: Examples | None) -> dict[str, Any]:
        """The record of how a model was trained, in plain JSON."""
        removal = self.removal
        return {
            "counterfactual": removal is not None,
            "removal": None if removal is None else removal.name,
            "removal_settings": {} if removal is None else settings_of(removal),
            "sparsities": None if removal is None else list(self.sparsities),
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "precision": self.precision,
            "max_length": self.max_length,
            "patience": self.patience,
            "checkpoint_steps": self.checkpoint_steps,
            "options": dict(self.options),
            "examples": len(data),
            "dev_examples": 0 if dev is None else len(dev),
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
