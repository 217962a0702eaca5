"""Base classes of learned explainers.

A learned method consists of two small classes in one file. Its `Learner` has the settings of `fit` as fields
and trains a network. Most learners derive from `ScoreLearner` (score_learner.py), which learns from a
teacher's explanations, or from `SelectionLearner` (selection.py), which selects features in every step and
evaluates the model on them. Its `LearnedExplainer` turns the network's outputs into an explanation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pertinent.array_types import Array, Floats
from pertinent.asks import Asking, Network, NetworkOutputs
from pertinent.config.registry import Registry
from pertinent.config.serialization import PlainData
from pertinent.config.settings import Settings
from pertinent.errors import FileError, InputError, SettingError, require
from pertinent.explainers import base
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits
from pertinent.files import file_exists, read_json
from pertinent.finetuning.run_folder import RECORD, is_unfinished
from pertinent.inputs.modality import modality_named
from pertinent.learners.schedule import Schedule
from pertinent.learners.score_arrays import normalize_scores, squeeze_columns
from pertinent.outputs import SCALES, Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.learners.training_context import TrainingContext
    from pertinent.models.base import Model
    from pertinent.results.explanation import Explanation

LearnedClasses: TypeAlias = Literal["predicted", "all"]
"""Classes that a network scores features for: the predicted class only, or all classes."""

TrainingTargets: TypeAlias = Mapping[str, Array]
"""Training targets of one input: arrays by name; batches pad them with zeros and stack them."""

Tensor: TypeAlias = Any
"""A torch tensor. Only its methods are used, so torch is imported only when a network is trained."""

_NOUNS = {"class": "classes", "label": "labels", "value": "plain values", "overlap": "overlaps"}


@dataclass(frozen=True)
class LearnerSpec:
    """Properties of a learned method, checked by `fit` before it computes anything.

    Attributes
    ----------
    teacher
        Method whose explanations it learns from, by name or as an instance.
    teacher_settings
        Teacher settings that differ from the teacher's defaults.
    any_teacher
        Whether the user may choose another teacher.
    classes
        Classes it can learn scores for; with several entries, the user may choose one.
    outputs
        Kinds of model output that it supports; ``"overlap"`` stands for plain values that are 1 for the
        whole input.
    scales
        Scales of the model's answers that it can learn on.
    modalities
        Kinds of input that it can explain; ``None`` for all that have a network.
    labels
        Whether it uses the true class or value of each input.
    """

    teacher: str | Explainer
    teacher_settings: Mapping[str, Any] = field(default_factory=dict)
    any_teacher: bool = False
    classes: tuple[LearnedClasses, ...] = ("predicted", "all")
    outputs: tuple[str, ...] = ("class", "label", "value")
    scales: tuple[Scale, ...] = SCALES
    modalities: tuple[str, ...] | None = None
    labels: bool = False


@dataclass(frozen=True)
class Learner(Settings, ABC):
    """Settings of `fit` for a method, and the training of its network."""

    spec: ClassVar[LearnerSpec]

    @property
    def classes(self) -> tuple[LearnedClasses, ...]:
        """Return the classes that can be learned with these settings."""
        return self.spec.classes

    def default_classes(
        self, model: Model, inputs: Sequence[Input], explanations: Sequence[Explanation]
    ) -> LearnedClasses:
        """Return the classes learned by default; `explanations` are the teacher's."""
        return self.classes[0]

    def schedule(self, model: Model, inputs: Sequence[Input]) -> Schedule | None:
        """Return the default schedule for these inputs; ``None`` if the training has no epochs."""
        return None

    @abstractmethod
    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Train a network, a `Scorer`, and return it with entries for its card."""

    def check_settings(
        self, method: str, *, teacher: Any, classes: LearnedClasses | None, scale: Scale, labels: Any
    ) -> None:
        """Raise a `SettingError` for an argument of `fit` that does not suit the method."""
        spec = self.spec
        if teacher is not None and not spec.any_teacher:
            raise SettingError(f"`teacher` must be None for {method}, which evaluates the model directly.")
        possible = " or ".join(map(repr, self.classes))
        require(classes is None or classes in self.classes, "classes", f"{possible} for {method}", classes)
        require(scale in spec.scales, "scale", f"{' or '.join(spec.scales)} for {method}", scale)
        if labels is not None and not spec.labels:
            raise SettingError(f"`labels` must be None for {method}, which learns from the model's answers.")

    def check_inputs(self, method: str, inputs: Sequence[Input], labels: Sequence[Any] | None) -> None:
        """Raise an error for inputs that the method cannot explain, or labels that do not match them."""
        kind, modalities = inputs[0].kind, self.spec.modalities
        if modalities is not None and kind not in modalities:
            able = " and ".join(map(_plural, modalities))
            raise InputError(f"{method} explains {able}, but the inputs are {_plural(kind)}.")
        n_labels = None if labels is None else len(labels)
        require(n_labels in (None, len(inputs)), "labels", f"one for each of {len(inputs)} inputs", n_labels)

    def check_output(self, method: str, kind: str) -> None:
        """Raise a `SettingError` if the method cannot explain a model with this kind of output."""
        if kind in self.spec.outputs or (kind == "value" and "overlap" in self.spec.outputs):
            return
        able = [name for name, cls in learned.all().items() if kind in cls.learner.spec.outputs]
        possible = " and ".join(_NOUNS[output] for output in self.spec.outputs)
        raise SettingError(
            f"{method} explains {possible}, but the model answers with {_NOUNS.get(kind, kind)}: choose "
            f"{', '.join(able[:-1])} or {able[-1]}."
        )


@dataclass(frozen=True)
class LearnedExplainer(Explainer):
    """A network trained by `fit` that scores the features of an input in one forward pass.

    By default, the network's outputs are the scores.
    """

    learner: ClassVar[type[Learner]]
    traits = Traits(columnwise=False)
    network: Network = field(metadata={"setting": False})

    def __post_init__(self) -> None:
        """Read the scale and the feature type that the network was fitted to from its card."""
        super().__post_init__()
        card = self.network.card
        self.change_traits(scales=(card["scale"],), fitted_features=card["features"])

    @classmethod
    def check_card(cls, card: PlainData) -> None:
        """Raise an `InputError` if the card lacks an entry that the method needs."""
        del card

    @property
    def folder(self) -> Path | None:
        """Return the folder it was last saved to or loaded from; ``None`` if there is none."""
        return self.network.folder

    @property
    def digest(self) -> str:
        """Return a hexadecimal digest of the network's weights and card, for `load_explainer`."""
        return self.network.fingerprint.hex()

    @classmethod
    def from_folder(cls, folder: str | Path, *, digest: str | None = None) -> LearnedExplainer:
        """Return the explainer in a folder, as `load_explainer` does."""
        return load_explainer(folder, digest=digest)

    def save(self, folder: str | Path) -> None:
        """Write the network and its card to a folder, for `load_explainer`."""
        self.network.save(Path(folder))

    def sharing_passes(self, model: Any) -> AbstractContextManager[None]:
        """Return the network's context for sharing forward passes."""
        return self.network.sharing_passes(model)

    def evaluations(self, n_features: int) -> int:
        """Return 1, for the network's forward pass."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Predict the scores."""
        return Finding(squeeze_columns((yield from self.predict(task))))

    def predict(self, task: Task) -> Asking[Floats]:
        """Return the network's outputs (columns, features) after checking the target."""
        self.columns(task)  # raises a `SettingError` for other targets
        outputs: Floats = yield NetworkOutputs(self.network)
        return outputs

    def normalize_scores(self, task: Task, scores: Floats) -> Steps:
        """Shift the scores of each column equally so that they sum to v(N) − v(∅), which is evaluated."""
        ends = yield from task.ask_empty_and_full()
        total = (ends[1] - ends[0])[self.columns(task)]
        return Finding(squeeze_columns(normalize_scores(scores, total)), base_values=ends[0])

    def columns(self, task: Task) -> list[int]:
        """Return the model's columns for which the network has scores."""
        if self.network.card["classes"] == "all":
            return list(range(len(task.prediction)))
        if task.target != task.output.default_target(task.prediction):
            hint = ", or fit an explainer with classes='all'" if "all" in self.learner.spec.classes else ""
            raise SettingError(f"`target` must be the predicted class of this explainer: omit it{hint}.")
        return [task.target]


learned: Registry[LearnedExplainer] = base.learned_methods


def _plural(kind: str) -> str:
    return modality_named(kind).plural


def load_explainer(folder: str | Path, *, digest: str | None = None) -> LearnedExplainer:
    """Load an explainer from a folder written by `fit` or `save`.

    It explains only the model that it was fitted to.

    Parameters
    ----------
    folder
        The folder.
    digest
        Expected `digest` of the explainer; a `FileError` is raised if the folder contains a different one.
    """
    from pertinent.learners.fitted_network import load_network

    require(isinstance(folder, str | Path), "folder", "the path of a folder", folder)
    path = Path(folder)
    if not file_exists(path / RECORD):
        hint = " A fit into this folder is unfinished: repeat the same call." if is_unfinished(path) else ""
        raise FileError(f"There is no explainer in {str(path)!r}: it has no {RECORD}.{hint}")
    card = read_json(path / RECORD)
    try:
        explainer = _explainer_of(PlainData(card, "card"))
    except InputError as error:
        raise FileError(f"{str(path)!r} contains no explainer or a damaged one: {error}") from error
    loaded = explainer(load_network(path, card))
    if digest not in (None, loaded.digest):
        raise FileError(
            f"`digest` must match the explainer in {str(path)!r}, {loaded.digest}, but got {digest}."
        )
    return loaded


def _explainer_of(card: PlainData) -> type[LearnedExplainer]:
    """Return the explainer's class; raise an `InputError` if the card is damaged."""
    explainer = learned.get(card.text("method", learned.all()))
    card.text("classes", ("predicted", "all"))
    card.text("scale", SCALES)
    if card.value("features") is not None:
        card.text("features")
    card.text("model")
    explainer.check_card(card)
    removal = PlainData(card.mapping("removal"), "removal")
    removal.text("name")
    removal.text("fingerprint")
    removal.mapping("settings")
    return explainer
