"""The base of learned explainers: how a method learns, and what a fitted one has in common with others.

A method is two small classes in one file. Its `Learner` says which answers of the model are asked for, what
is learned from them, and the loss: `LearnsScores` from explanations by a teacher, `LearnsSelection` (in
selection.py) by selecting features in every step and seeing what follows. Its `LearnedExplainer` says what is
made of the network's scores. Networks are chosen by the kind of input (`models.torch.scorers`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Array, Floats
from pertinent.asks import Network
from pertinent.decoding import PlainData
from pertinent.errors import SettingError
from pertinent.explainers import base
from pertinent.explainers.base import Explainer, Task
from pertinent.outputs import Scale
from pertinent.registry import Registry
from pertinent.settings import Settings

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation

Lesson: TypeAlias = Mapping[str, Array]
"""What is learned of one input: arrays, which are padded with zeros to stack those of several inputs."""

NEXT_TO_NOTHING = 1e-9
"""The unit of the scores of a model that always answers the same."""

Tensor: TypeAlias = Any
"""A torch tensor: only its methods are used, so that torch need not be imported here."""


@dataclass(frozen=True)
class Learner(Settings, ABC):
    """How a method learns; its fields are settings of `fit`.

    Attributes
    ----------
    teacher
        The method whose explanations are learned from, by name or as an instance.
    teacher_settings
        Settings of the teacher that differ from its defaults.
    any_teacher
        Whether another method may be given instead.
    pilots
        Methods by which some inputs are explained as well, for the card.
    all_classes
        Whether it can learn the scores of all classes at once.
    with_labels
        Whether it makes use of the inputs' labels.
    scales
        The scales on which it may learn.
    classes
        Whose scores it learns: of the ``"predicted"`` class or of ``"all"``; ``None`` if one may choose.
    outputs
        The kinds of output that it can learn to explain.
    regressors
        Whether a plain value may be any, and not only an overlap with the answer to the whole input.
    only_tables
        Whether it learns from table rows alone.
    trained
        Whether a network is trained, in epochs.
    steps
        About how many steps are enough if inputs are many; all epochs are made if they are few.
    checks
        How often the network is measured on the dev inputs in all of a training; ``None`` for what suits it.
    measure
        What is measured on the dev inputs, to keep the best network: the loss; ``"spearman"``, the mean
        rank correlation with the lesson's ``scores``; ``"faithfulness"``, how well the model decides
        with what is selected; or ``"quality"``, how sufficient and sparse that is.
    """

    teacher: ClassVar[str | Explainer]
    teacher_settings: ClassVar[Mapping[str, Any]] = {}
    any_teacher: ClassVar[bool] = False
    pilots: ClassVar[tuple[Explainer, ...]] = ()
    all_classes: ClassVar[bool] = True
    with_labels: ClassVar[bool] = False
    scales: ClassVar[tuple[Scale, ...]] = ("natural", "logit")
    classes: ClassVar[Literal["predicted", "all"] | None] = None
    outputs: ClassVar[tuple[str, ...]] = ("class", "label", "value")
    regressors: ClassVar[bool] = True
    only_tables: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    steps: ClassVar[float] = math.inf
    checks: ClassVar[int | None] = None
    measure: ClassVar[Literal["loss", "spearman", "faithfulness", "quality"]] = "loss"

    @abstractmethod
    def lesson(self, explanation: Explanation, columns: Sequence[int], label: Any) -> Lesson:
        """What is learned from an explanation by the teacher, of these columns of the model.

        `label` is the column or the value that the user says is right, ``None`` if nothing is said.
        """


@dataclass(frozen=True)
class LearnsScores(Learner):
    """Learns scores from explanations by a teacher."""

    @abstractmethod
    def deviation(self, lessons: Sequence[Lesson]) -> Floats:
        """The unit (columns,) of the network's scores: about how large they are."""

    @abstractmethod
    def compute_loss(
        self, scores: Tensor, lesson: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """The loss of scores (rows, columns, width) against stacked lessons (rows, …).

        `real` (rows, width) says which features there are; the others' scores are zero.
        """

    def measured(
        self,
        dev: Sequence[Lesson],
        predicted: Sequence[Floats],
        piloted: Sequence[Lesson],
        pilots: Sequence[Sequence[Floats]],
    ) -> dict[str, Any]:
        """What the card says of the network, in plain JSON, from what it predicts of the dev inputs.

        `pilots` has, for each pilot method, the scores of the inputs whose lessons are `piloted`.
        """
        del dev, predicted, piloted, pilots
        return {}


@dataclass(frozen=True)
class LearnedExplainer(Explainer):
    """A network that `fit` has trained, which scores an input in one pass."""

    learner: ClassVar[type[Learner]]
    columnwise: ClassVar[bool] = False
    network: Network = field(metadata={"setting": False})

    @property
    def scales(self) -> tuple[Scale, ...]:  # type: ignore[override]
        """The scale of the values it was fitted to."""
        return (self.network.card["scale"],)

    @property
    def fitted_features(self) -> str | None:  # type: ignore[override]
        """What the inputs were cut into that it was fitted to; ``None`` if each was cut by hand."""
        features: str | None = self.network.card["features"]
        return features

    @classmethod
    def check_card(cls, card: PlainData) -> None:
        """Raise an `InputError` if the card lacks what the method needs."""
        del card

    @property
    def folder(self) -> Path | None:
        """The folder that it was last saved to or loaded from; ``None`` if it is in no folder."""
        return self.network.folder

    @property
    def digest(self) -> str:
        """A digest of the network's weights and its card, in hexadecimal digits, for `load_explainer`."""
        return self.network.fingerprint.hex()

    def save(self, folder: str | Path) -> None:
        """Write the network and its card into a folder, for `load_explainer`."""
        self.network.save(Path(folder))

    def evaluations(self, n_features: int) -> int:
        """One pass of the network."""
        del n_features
        return 1

    def columns(self, task: Task) -> list[int]:
        """The model's columns that the network has scores for."""
        if self.network.card["classes"] == "all":
            return list(range(len(task.prediction)))
        if task.target != task.output.default_target(task.prediction):
            other = ", or fit one with classes='all'" if self.learner.all_classes else ""
            raise SettingError(
                f"This explainer was fitted for the predicted class alone: leave out `target`{other}."
            )
        return [task.target]


learned: Registry[LearnedExplainer] = base.learned


def normalized(scores: Floats, total: Floats) -> Floats:
    """The scores (columns, features), all shifted by the same amount to sum to the total (columns,)."""
    return np.asarray(scores + ((total - scores.sum(axis=1)) / scores.shape[1])[:, None])


def of_columns(rows: Floats) -> Floats:
    """Scores as a finding has them: one row alone, or a row for each column."""
    return rows[0] if len(rows) == 1 else rows


def root_mean_square(rows: Sequence[Floats]) -> Floats:
    """How far the numbers of each row (columns,) are from zero, over several arrays (columns, any).

    Never 0: where all are zero as of the largest row, and next to nothing if that is zero, too.
    """
    found = np.sqrt((np.concatenate(rows, axis=1) ** 2).mean(axis=1))
    return np.where(found > 0, found, found.max() or NEXT_TO_NOTHING)
