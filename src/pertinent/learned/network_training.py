"""Training the networks of a learned explainer in place, and what is recorded of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from pertinent.engine.progress import Callback, progress_callback
from pertinent.learned.base import Learner, LearnsScores
from pertinent.learned.maple_forest import fit_forest
from pertinent.learned.methods.maple import LearnsMaple
from pertinent.learned.model_answers import Asker
from pertinent.learned.networks.fitted_network import device_of, new_scorer
from pertinent.learned.networks.joint_networks import new_networks
from pertinent.learned.networks.scorer import Scorer
from pertinent.learned.score_trainer import ScoreTrainer
from pertinent.learned.selection import CHOICE, LearnsSelection
from pertinent.learned.selection_trainer import SelectionTrainer
from pertinent.learned.training_data import Lessons
from pertinent.models.base import Model
from pertinent.models.embedded.load import no_bar
from pertinent.models.torch import devices
from pertinent.removal.base import Removal
from pertinent.training.random_states import kept_random_states
from pertinent.training.run_folder import Folder
from pertinent.training.training_settings import ScoreSettings

HISTORY = ("epoch", "loss", "eval_loss", "eval_spearman", "eval_faithfulness", "eval_quality")
"""What is kept of each epoch; not the time it took, so that the same fit gives the same record."""


def train_networks(
    learner: Learner,
    model: Model,
    data: Lessons,
    dev: Lessons,
    *,
    removal: Removal,
    settings: ScoreSettings,
    folder: Folder,
    progress: Callback | bool | None,
) -> tuple[Scorer, dict[str, Any]]:
    """The network that explains, and what came of its training.

    Training goes on from the last checkpoint in the folder if there is one.
    """
    if isinstance(learner, LearnsMaple):
        return fit_forest(learner, model, data, dev, settings.seed)
    make, scorer = _planned(learner, model, data, removal, settings.seed)
    device = device_of(model)
    arguments = settings.arguments(folder.checkpoints, measured=True, device=device.type)
    with ExitStack() as stack:
        stack.enter_context(kept_random_states())
        callback = stack.enter_context(progress_callback(progress, "fit"))
        stack.enter_context(no_bar())
        stack.enter_context(_quick_checkpoints())
        trainer = make(arguments, (data, dev), progress=callback, callbacks=settings.callbacks())
        stack.enter_context(devices.disable_onednn(device, getattr(torch, settings.precision)))
        stack.enter_context(sdpa_kernel(devices.ATTENTION))
        trainer.train(resume_from_checkpoint=folder.last_checkpoint())
        described = trainer.described() if isinstance(learner, LearnsSelection) else {}
    scorer.to(device).eval()
    state = trainer.state
    history = [{name: log[name] for name in HISTORY if name in log} for log in state.log_history]
    best = state.best_metric
    if isinstance(learner, LearnsSelection):
        measured = [log for log in state.log_history if f"eval_{CHOICE}" in log]
        best = max(measured, key=lambda log: log[f"eval_{CHOICE}"])[f"eval_{learner.measure}"]
    done = {f"dev_{learner.measure}": best, "steps": state.global_step, "history": history}
    return scorer, done | described


def _planned(
    learner: Learner, model: Model, data: Lessons, removal: Removal, seed: int
) -> tuple[Callable[..., Any], Scorer]:
    """What makes the trainer, and the network that will explain."""
    if isinstance(learner, LearnsSelection):
        networks = new_networks(
            learner.networks(),
            model,
            data.inputs,
            len(data.lessons[0]["predictions"]),
            n_memory=learner.n_memory,
            seed=seed,
        )
        asker = Asker(model, removal, seed)
        answering = networks.parts[learner.answering]
        assert isinstance(answering, Scorer)
        return partial(SelectionTrainer, learner, model, networks, asker=asker), answering
    assert isinstance(learner, LearnsScores)
    scorer = new_scorer(model, data.inputs, learner.deviation(data.lessons), seed)
    return partial(ScoreTrainer, learner, model, scorer), scorer


@contextmanager
def _quick_checkpoints() -> Iterator[None]:
    """A small network writes several in a second, which transformers warns of and deals with."""
    logger = logging.getLogger("transformers.trainer_utils")

    def other(record: logging.LogRecord) -> bool:
        return "mtime" not in record.getMessage()

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)
