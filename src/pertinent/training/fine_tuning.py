"""Fine-tune a transformers classifier, standard or counterfactual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from pertinent._optional import optional
from pertinent.engine.progress import Callback, progress_callback
from pertinent.errors import ModelError
from pertinent.explainers.base import DEFAULT_SPARSITIES
from pertinent.models.embedded.load import no_bar
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.removal.base import Removal
from pertinent.training.batches import Counterfactuals
from pertinent.training.labelled_texts import Examples
from pertinent.training.random_states import kept_random_states
from pertinent.training.run_folder import Folder
from pertinent.training.training_settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a training run.

    Attributes
    ----------
    model
        The trained model, wrapped, ready to be explained.
    folder
        Where it is saved in transformers' format, with ``pertinent.json`` beside it.
    accuracy
        Accuracy on the dev examples, or ``None`` if there were none.
    steps
        The number of updates.
    history
        What ``Trainer`` logged: loss and learning rate, and the dev accuracy of each epoch.
    """

    model: TransformerModel
    folder: Path
    accuracy: float | None
    steps: int
    history: Sequence[Mapping[str, float]]


def train(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Any],
    labels: Sequence[Any],
    *,
    out: str | Path,
    dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    counterfactual: bool = True,
    removal: str | Removal = "attention-mask",
    sparsities: Sequence[float] = DEFAULT_SPARSITIES,
    epochs: int = 3,
    batch_size: int = 32,
    learning_rate: float = 1e-5,
    seed: int = 0,
    precision: str = "float32",
    max_length: int | None = None,
    patience: int | None = None,
    checkpoint_steps: int | None = None,
    resume: bool = False,
    progress: Callback | bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Trained:
    """Fine-tune a sequence classifier with AdamW on its current device (CPU or CUDA), and save it.

    Counterfactual training (Hase et al. 2021, Sec. 4) doubles each batch: every text is also used, with
    the same label, with only a random share of its tokens kept. For a model trained this way, inputs
    with features removed are in distribution, so explanations based on them show what it learned.

    Parameters
    ----------
    model, tokenizer
        A transformers sequence classifier, in float32, and its fast tokenizer. Trained in place.
    examples, labels
        Texts, pairs, or a query with its document, as in `explain`; class names or numbers.
    out
        The folder to save to, new or empty. It holds checkpoints during training.
    dev
        (examples, labels) to measure accuracy on after each epoch; the best model is kept.
    counterfactual
        ``False`` for standard training.
    removal
        What a text looks like without tokens: any removal for texts but ``"marginalize"``.
    sparsities
        The shares of tokens to keep; one is drawn for each example and epoch.
    batch_size
        Examples per step and device, not counting their counterfactuals.
    seed
        The same seed gives the same model, on CUDA up to the order of floating-point sums.
    precision
        ``"float32"``, or mixed with ``"bfloat16"`` or ``"float16"``.
    max_length
        Texts are truncated to this many tokens.
    patience
        Stop when the dev accuracy has not improved this many times in a row.
    checkpoint_steps
        Evaluate and save a checkpoint every this many steps; by default after each epoch.
    resume
        Continue from the last checkpoint in `out`, or start from the beginning if there is none; a
        finished run is loaded.
    options
        Further settings for transformers' ``TrainingArguments``, such as ``{"warmup_steps": 100}``.
    """
    optional("accelerate")
    settings = TrainingSettings.of(
        counterfactual=counterfactual,
        removal=removal,
        sparsities=tuple(sparsities),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        precision=precision,
        max_length=max_length,
        patience=patience,
        checkpoint_steps=checkpoint_steps,
        options=dict(options or {}),
    )
    settings.check_dev(dev is not None)
    wrapped = TransformerModel(model, tokenizer, max_length=max_length)
    if wrapped.output.kind != "class":
        raise ModelError("Only a single-label classifier with at least two classes can be trained.")
    if wrapped.dtype != torch.float32:
        raise ModelError(
            f"The model must be in float32 to be trained, but is in {wrapped.dtype}: load it in float32, "
            "and set `precision` for mixed precision."
        )
    settings.check_device(wrapped.device.type)
    data = Examples.of(wrapped, examples, labels)
    measured = None if dev is None else Examples.of(wrapped, *dev, data="dev")
    folder = Folder(Path(out), settings.recorded(data, measured))
    if settings.removal is not None:
        for input in data.inputs:
            settings.removal.check(input)
    arguments = settings.arguments(folder.checkpoints, measured=dev is not None, device=wrapped.device.type)
    folder.open(resume=resume)
    if folder.finished:
        return _result(wrapped, folder, folder.read_back(wrapped.model))
    with progress_callback(progress, "train") as callback, no_bar(), kept_random_states():
        trainer = _trainer(wrapped, settings, arguments, data, dev=measured, progress=callback)
        plain = devices.disable_onednn(wrapped.device, getattr(torch, precision))
        with plain, sdpa_kernel(devices.ATTENTION):
            trainer.train(resume_from_checkpoint=folder.last_checkpoint())
        wrapped.model.eval()
        state = trainer.state
        done = {"dev_accuracy": state.best_metric, "steps": state.global_step, "history": state.log_history}
        if trainer.is_world_process_zero():
            folder.finish(wrapped, done)
    return _result(wrapped, folder, done)


def _trainer(
    wrapped: TransformerModel,
    settings: TrainingSettings,
    arguments: Any,
    data: Examples,
    *,
    dev: Examples | None,
    progress: Callback,
) -> Any:
    from pertinent.training.trainer import CounterfactualTrainer

    drawn = None
    if settings.removal is not None:
        drawn = Counterfactuals(settings.removal.bind(wrapped), settings.sparsities, settings.seed)
    return CounterfactualTrainer(
        wrapped,
        arguments,
        data,
        dev=None if dev is None else dev.sorted_by_length(),
        counterfactuals=drawn,
        progress=progress,
        callbacks=settings.callbacks(),
    )


def _result(wrapped: TransformerModel, folder: Folder, done: Mapping[str, Any]) -> Trained:
    return Trained(wrapped, folder.path, done["dev_accuracy"], done["steps"], done["history"])
