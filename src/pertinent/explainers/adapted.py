"""Adapters for other methods: functions of a game, and explainers of shap, captum and lime."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
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
    """One explanation, as a function that other libraries can call: ``game(masks)`` evaluates the model.

    Attributes
    ----------
    input
        The input; ``input.raw`` is the value that the user passed, ``input.features`` are the feature names.
    n_features, target
        Number of features, and index of the explained column.
    prediction
        The model's answer for this column on the whole input.
    budget, seed
        Largest number of distinct masks, and a seed for random draws.
    """

    input: Input
    n_features: int
    target: int
    prediction: float
    budget: int
    seed: int
    ask: Callable[[Any], Floats] = field(repr=False)

    def __call__(self, masks: Any) -> Floats:
        """Return the model's answers (masks,) for the target, with only the features of each mask kept."""
        return self.ask(np.asarray(masks).astype(np.bool_))[:, self.target]


@dataclass(frozen=True)
class Source:
    """A named function that scores the features of a game, with its options."""

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}({options})" if options else self.name

    def __call__(self, game: Game) -> Floats:
        """Return the scores (features,) and check their shape."""
        try:
            scores = np.asarray(self.function(game, **self.options), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self} failed: {error}") from error
        if scores.shape != (game.n_features,):
            raise ModelError(f"{self} must return {game.n_features} scores, but returned {scores.shape}.")
        return scores


@dataclass(frozen=True)
class Adapted(Explainer):
    """A method of another library. It runs in a separate thread, and only one such thread runs at a time.

    The global random generators of numpy, torch and Python are seeded for it and restored afterwards.
    """

    source: Source
    kind_of_scores: ScoreMeaning = "effect"

    paper = "outside"
    summary = "a method of another library"
    traits = Traits(columnwise=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the name that tables show."""
        return self.source.name

    def explain(self, task: Task) -> Steps:
        """Run the function in a thread and forward its questions."""
        assert task.input is not None
        questions: SimpleQueue[Any] = SimpleQueue()
        answers: SimpleQueue[Any] = SimpleQueue()
        result: Future[Floats] = Future()
        is_closed = Event()

        def ask(masks: Any) -> Floats:
            with _preserve_generators():
                questions.put(masks)
                answer = None if is_closed.is_set() else answers.get()
            if answer is None:
                raise InputError("The explanation was cancelled.")
            return np.asarray(answer)

        def run(game: Game) -> None:
            _seed_generators(game.seed)
            try:
                result.set_result(self.source(game))
            except Exception as error:  # noqa: BLE001  raised by `result.result()`
                result.set_exception(error)
            questions.put(None)

        seed, prediction = int(task.rng.integers(2**31)), float(task.prediction[task.target])
        game = Game(task.input, task.n_features, task.target, prediction, task.budget, seed, ask)
        thread = Thread(target=run, args=(game,), daemon=True)
        with _preserve_generators():
            thread.start()
            masks = questions.get()
        try:
            while masks is not None:
                values = yield Values(masks)
                with _preserve_generators():
                    answers.put(values)
                    masks = questions.get()
        finally:
            is_closed.set()
            answers.put(None)  # unblocks a waiting thread
            with _preserve_generators():
                thread.join()
        return Finding(scores=result.result(), meaning=self.kind_of_scores)


def _seed_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  the generator that other libraries use
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@contextmanager
def _preserve_generators() -> Iterator[None]:
    """Restore the state of the global random generators at the end of the block."""
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
    """Turn a function, or an explainer from shap, captum or lime, into a method.

    The method is then run, measured and compared like any built-in one: same features, removal, target and
    budget, in shared batches.

    Parameters
    ----------
    method
        Either a function that takes a `Game` and returns a score for each feature. Or a class that scores
        masks of kept features: from shap (``KernelExplainer``, ``PermutationExplainer``,
        ``SamplingExplainer``), captum (``KernelShap``, ``Lime``, ``ShapleyValueSampling``,
        ``FeatureAblation`` …), or lime's ``LimeTabularExplainer``. Or a shap explainer that already holds a
        model, such as ``shap.TreeExplainer(forest)``; it explains only table rows, and its model calls are
        not counted.
    name
        Name shown in tables; by default the name of the function or class.
    meaning
        Meaning of the scores: ``"effect"`` for signed scores, ``"magnitude"`` for unsigned ones.
    **options
        Keyword arguments of the function, or of the class's explain method, such as ``n_samples=200``.

    Examples
    --------
    >>> import numpy as np, pertinent
    >>> def keep_one(game):
    ...     return game(np.eye(game.n_features)) - game(np.zeros((1, game.n_features)))
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> pertinent.explain(model, "a bad film", pertinent.adapt(keep_one)).top(1)
    [('bad', 0.7)]
    """
    require(callable(method), "method", "a function or an explainer", method)
    is_class = isinstance(method, type)
    library = (method if isinstance(method, type) else type(method)).__module__.partition(".")[0]
    default = str(getattr(method, "__name__", type(method).__name__))
    function: Callable[..., Any] = method
    if library == "shap":
        default = f"shap {default}"
        function = partial(_shap_class if is_class else _shap_explainer, method)
    elif library in ("captum", "lime") and is_class:
        default = f"{library} {default}"
        function = partial(_captum if library == "captum" else _lime, method)
    elif is_class or library in ("captum", "lime"):
        raise SettingError(
            "`method` must be a function, a shap, captum or lime class, or a shap explainer, but got "
            f"{name or default}."
        )
    return Adapted(Source(name or default, function, options), meaning)


def _shap_class(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the full mask with the empty mask as background."""
    none, full = np.zeros((1, game.n_features)), np.ones((1, game.n_features))
    explainer = cls(game, none)
    if hasattr(cls, "shap_values") and "Kernel" in cls.__name__ + str(cls.__mro__):
        arguments = {"nsamples": max(1, game.budget - 2), "silent": True, **options}
        return np.asarray(explainer.shap_values(full, **arguments)).reshape(-1)
    arguments = {"max_evals": max(2 * game.n_features + 1, game.budget), "silent": True, **options}
    return np.asarray(explainer(full, **arguments).values).reshape(-1)


def _shap_explainer(explainer: Any, game: Game, **options: Any) -> Any:
    """Explain the table row with an explainer that holds a model."""
    values = getattr(game.input, "values", None)
    if values is None:
        raise InputError("A shap explainer that holds a model can only explain table rows.")
    scores = np.asarray(explainer(np.asarray(values)[None], **options).values)[0]
    return scores if scores.ndim == 1 else scores[:, game.target]


def _captum(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the full mask with the empty mask as baseline."""
    torch = optional("torch")
    none, full = torch.zeros(1, game.n_features), torch.ones(1, game.n_features)
    forward = lambda masks: torch.as_tensor(game(masks.detach().numpy() > 0.5))  # noqa: E731
    return cls(forward).attribute(full, baselines=none, **options).detach().numpy()[0]


def _lime(cls: Any, game: Game, **options: Any) -> Any:
    """Explain the full mask relative to random masks."""
    if cls.__name__ != "LimeTabularExplainer":
        raise SettingError(f"`method` must be lime's LimeTabularExplainer, but got {cls.__name__}.")
    rows = np.array([np.zeros(game.n_features), np.ones(game.n_features)])
    features = list(range(game.n_features))
    explainer = cls(rows, mode="regression", categorical_features=features, random_state=game.seed)
    arguments = {"num_samples": game.budget, "num_features": game.n_features, **options}
    scores = dict(explainer.explain_instance(rows[1], game, **arguments).as_map()[1])
    return [scores.get(feature, 0.0) for feature in features]
