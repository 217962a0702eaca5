"""Methods from outside: any function of a game, or an explainer of shap, captum or lime."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.asks import Values
from pertinent.errors import InputError, ModelError, SettingError, require
from pertinent.explainers.base import Explainer, Finding, ScoreMeaning, Steps, Task, Traits
from pertinent.inputs.base import Input


@dataclass(frozen=True, eq=False)
class Game:
    """One explanation as a function from outside sees it: ``game(masks)`` asks the model.

    Attributes
    ----------
    input
        The input; ``input.raw`` is what the user gave, ``input.features`` are the names of its features.
    n_features, target
        The number of features, and the number of the column that is explained.
    prediction
        The model's answer for that column on the whole input.
    budget, seed
        How many distinct masks may be asked for, and a seed for random draws.
    """

    input: Input
    n_features: int
    target: int
    prediction: float
    budget: int
    seed: int
    ask: Callable[[Any], Floats] = field(repr=False)

    def __call__(self, masks: Any) -> Floats:
        """The model's answers (masks,) for the target with only the features that each mask keeps."""
        return self.ask(np.asarray(masks).astype(np.bool_))[:, self.target]


@dataclass(frozen=True)
class Source:
    """What scores a game: its name, and the function with its options."""

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}({options})" if options else self.name

    def __call__(self, game: Game) -> Floats:
        """The scores (features,), checked."""
        try:
            scores = np.asarray(self.function(game, **self.options), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self} failed: {error}") from error
        if scores.shape != (game.n_features,):
            raise ModelError(f"{self} must return {game.n_features} scores, but returned {scores.shape}.")
        return scores


@dataclass(frozen=True)
class Adapted(Explainer):
    """A method from outside, in a thread of its own while it thinks; one of them thinks at a time.

    Its draws by numpy's, torch's and Python's global generators are seeded, and not disturbed by others.
    """

    source: Source
    kind_of_scores: ScoreMeaning = "effect"

    paper = "outside"
    summary = "a method from outside"
    traits = Traits(columnwise=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name in tables."""
        return self.source.name

    def explain(self, task: Task) -> Steps:
        """Run the function, and ask what it asks."""
        assert task.input is not None
        asked: SimpleQueue[Any] = SimpleQueue()
        answers: SimpleQueue[Any] = SimpleQueue()
        is_over = Event()
        seed = int(task.rng.integers(2**31))

        def ask(masks: Any) -> Floats:
            with _own_draws():
                asked.put(masks)
                answer = None if is_over.is_set() else answers.get()
            if answer is None:
                raise InputError("The explanation was cancelled.")
            return np.asarray(answer)

        prediction = float(task.prediction[task.target])
        game = Game(task.input, task.n_features, task.target, prediction, task.budget, seed, ask)
        thread = Thread(target=partial(_play, self.source, game, asked), daemon=True)
        with _own_draws():
            thread.start()
            found = asked.get()
        try:
            while not isinstance(found, _Played):
                answer = yield Values(found)
                with _own_draws():
                    answers.put(answer)
                    found = asked.get()
        finally:
            is_over.set()
            answers.put(None)  # ends a thread that still waits
            with _own_draws():
                thread.join()
        if found.error is not None:
            raise found.error
        return Finding(scores=found.scores, meaning=self.kind_of_scores)


@dataclass(frozen=True)
class _Played:
    scores: Floats | None = None
    error: Exception | None = None


def _play(source: Source, game: Game, told: SimpleQueue[Any]) -> None:
    """Play in a thread, with draws that depend on the seed of the game alone."""
    random.seed(game.seed)
    np.random.seed(game.seed)  # noqa: NPY002  what libraries draw by
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(game.seed)
    try:
        told.put(_Played(source(game)))
    except Exception as error:  # noqa: BLE001  raised where the explanation is waited for
        told.put(_Played(error=error))


@contextmanager
def _own_draws() -> Iterator[None]:
    """Leave the state of the global random generators as it is, whatever is drawn meanwhile."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch:
            torch.set_rng_state(states[2])


def adapt(
    method: Callable[..., Any], name: str | None = None, *, meaning: ScoreMeaning = "effect", **options: Any
) -> Explainer:
    """Make a method of a function of your own, or of an explainer of shap, captum or lime.

    It is then explained with, measured and compared like any other: with the same features, removal, target
    and budget, in shared batches.

    Parameters
    ----------
    method
        A function that is given a `Game` and returns a score for each feature. Or a class: of shap
        (``KernelExplainer``, ``PermutationExplainer``, ``SamplingExplainer``), of captum (``KernelShap``,
        ``Lime``, ``ShapleyValueSampling``, ``FeatureAblation`` …), or lime's ``LimeTabularExplainer``: they
        explain which features are kept. Or an explainer of shap that has its own model, such as
        ``shap.TreeExplainer(forest)``, for table rows; what that asks its model is not counted.
    name
        Its name in tables; by default that of the function or class.
    meaning
        What its scores say: ``"effect"`` if they have a sign, ``"magnitude"`` if they have none.
    **options
        Arguments of the function; of a class, those of its method that explains, such as ``n_samples=200``.

    Examples
    --------
    >>> import numpy as np, pertinent
    >>> def kept_alone(game):
    ...     return game(np.eye(game.n_features)) - game(np.zeros((1, game.n_features)))
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> pertinent.explain(model, "a bad film", pertinent.adapt(kept_alone)).top(1)
    [('bad', 0.7)]
    """
    require(callable(method), "method", "a function or an explainer", method)
    library = (type(method) if not isinstance(method, type) else method).__module__.partition(".")[0]
    own = name or str(getattr(method, "__name__", type(method).__name__))
    is_class = isinstance(method, type)
    function: Callable[..., Any] = method
    if library == "shap":
        own = own if name else f"shap {own}"
        function = partial(_shap_class if is_class else _shap_explainer, method)
    elif library in ("captum", "lime") and is_class:
        own = own if name else f"{library} {own}"
        function = partial(_captum if library == "captum" else _lime, method)
    elif is_class or library in ("captum", "lime"):
        raise SettingError(
            f"`method` must be a function, a class of shap, captum or lime, or an explainer of shap, but got "
            f"{own}."
        )
    return Adapted(Source(own, function, options), meaning)


def _shap_class(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the mask that keeps everything, against the one that keeps nothing."""
    none, every = np.zeros((1, game.n_features)), np.ones((1, game.n_features))
    explainer = cls(game, none)
    if hasattr(cls, "shap_values") and "Kernel" in cls.__name__ + str(cls.__mro__):
        asked = {"nsamples": max(1, game.budget - 2), "silent": True, **options}
        return np.asarray(explainer.shap_values(every, **asked)).reshape(-1)
    most = {"max_evals": max(2 * game.n_features + 1, game.budget), "silent": True}
    return np.asarray(explainer(every, **{**most, **options}).values).reshape(-1)


def _shap_explainer(explainer: Any, game: Game, **options: Any) -> Any:
    """Explain the row itself by an explainer that has a model of its own."""
    values = getattr(game.input, "values", None)
    if values is None:
        raise InputError("An explainer of shap that has its own model explains table rows alone.")
    found = np.asarray(explainer(np.asarray(values)[None], **options).values)[0]
    return found if found.ndim == 1 else found[:, game.target]


def _captum(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the mask that keeps everything, against the one that keeps nothing."""
    torch = optional("torch")
    none, every = torch.zeros(1, game.n_features), torch.ones(1, game.n_features)
    forward = lambda masks: torch.as_tensor(game(masks.detach().numpy() > 0.5))  # noqa: E731
    return cls(forward).attribute(every, baselines=none, **options).detach().numpy()[0]


def _lime(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the mask that keeps everything, among masks that keep each feature or not."""
    if cls.__name__ != "LimeTabularExplainer":
        raise SettingError(f"`method` must be LimeTabularExplainer of lime, but got {cls.__name__}.")
    rows = np.array([np.zeros(game.n_features), np.ones(game.n_features)])
    places = list(range(game.n_features))
    explainer = cls(rows, mode="regression", categorical_features=places, random_state=game.seed)
    asked = {"num_samples": game.budget, "num_features": game.n_features, **options}
    found = dict(explainer.explain_instance(rows[1], game, **asked).as_map()[1])
    return [found.get(place, 0.0) for place in places]
