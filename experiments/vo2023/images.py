"""AIM on pixels and patches (Tables 8 and 9, Figure 3), and the seconds of explanations."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import pertinent
from experiments.shared.stages import Run
from experiments.vo2023.fitting import Sizes, fit_aim, fits_folder, load, values_of
from experiments.vo2023.forms import ALPHA_BETA, FORMS, Fit, aim_settings
from experiments.vo2023.sets import CLASSES, IMAGES, TEXTS
from pertinent.array_types import Array, Floats
from pertinent.metrics.top_features import Faithfulness
from pertinent.rendering.plots import new_figure

REMOVAL = "constant:value=0"
AIM = {"aim": "explainer alone", "aim, with a selector": "both, explore .5"}
"""The default form, and the one that is closer to the paper, by their names in the tables."""
KEPT = {"pixels": (200, 300, 400), "patches:7": (5, 8, 10)}
OTHERS: dict[str, dict[str, Any]] = {"integrated-gradients": {}, "kernel-shap": {"budget": 2000}}
PATCH, K, SHOWN = 7, 5, 6
"""Of Figure 3: side of a patch, patches that are kept, and images of a data set."""


def image_file(dataset: str, features: str, row: str, seed: int) -> str:
    """Return the name of a fit to images."""
    return f"{dataset}_{features.partition(':')[0]}_{row.replace(',', '').replace(' ', '_')}_{seed}"


def measure_images(
    run: Run, dataset: str, features: str, row: str, seed: int, *, sizes: Sizes
) -> dict[str, Any]:
    """Measure AIM on pixels or patches; with the first seed also two methods of the paper."""
    subject, kept = load(run, dataset, sizes), KEPT[features]
    options: dict[str, Any] = {"removal": REMOVAL, "features": features, "progress": False}
    settings = aim_settings(dataset, FORMS[AIM[row]]) | {"k": kept[0], "seed": seed}
    out, start = fits_folder(run) / image_file(dataset, features, row, seed), time.perf_counter()
    aim = fit_aim(subject, sizes, out=out, **options | settings)
    result: dict[str, Any] = {"fit seconds": time.perf_counter() - start}
    methods: list[tuple[str, Any, int]] = [("aim", aim, len(subject.test))]
    if seed == 0 and row == "aim":
        methods += [(name, name, sizes.sampled) for name in OTHERS]
    for name, method, n in methods:
        own = OTHERS.get(name, {})
        explanations = pertinent.explain(subject.model, subject.test[:n], method, **options, **own)
        result[name] = {str(k): values_of(subject.model, explanations, Faithfulness(k=k)) for k in kept}
    return result


def time_aim(run: Run, dataset: str, sizes: Sizes) -> dict[str, Any]:
    """Measure the seconds of AIM and of the black box's predictions; of reviews also those of a fit."""
    subject = load(run, dataset, sizes)
    is_text = dataset in TEXTS
    options: dict[str, Any] = {"removal": "pad-token" if is_text else REMOVAL, "progress": False}
    options |= {} if is_text else {"features": "pixels"}
    seconds: dict[str, Any] = {"inputs": len(subject.test)}
    methods: dict[str, Any] = {"black box": "random"}
    for row, form in AIM.items():
        if dataset == "imdb":
            start = time.perf_counter()
            fit_aim(subject, sizes, seed=0, **options | aim_settings(dataset, FORMS[form]))
            seconds[f"fit, {row}"] = time.perf_counter() - start
        name = Fit(dataset, "network", form, 0).file if is_text else image_file(dataset, "pixels", row, 0)
        if (fits_folder(run) / name).is_dir():
            methods[row] = pertinent.load_explainer(fits_folder(run) / name)
    for row, method in list(methods.items()) * 3:
        start = time.perf_counter()
        pertinent.explain(subject.model, subject.test, method, **options)
        seconds.setdefault(row, []).append(time.perf_counter() - start)
    return seconds


def explain_pictures(run: Run, dataset: str, sizes: Sizes) -> dict[str, Any]:
    """Record images of each class with their scores by AIM, and the share of decisions that patches keep."""
    subject = load(run, dataset, sizes)
    options: dict[str, Any] = {"removal": REMOVAL, "features": f"patches:{PATCH}", "progress": False}
    beta = ALPHA_BETA[dataset][1]
    aim = pertinent.fit(
        subject.model, subject.training, "aim", k=K, beta=beta, epochs=sizes.epochs, **options
    )
    explanations = list(pertinent.explain(subject.model, subject.test, aim, **options))
    per_class = SHOWN // len(CLASSES[dataset])
    chosen = [
        i
        for target in range(len(CLASSES[dataset]))
        for i in [i for i, e in enumerate(explanations) if e.target == target][:per_class]
    ]
    return {
        "kept": float(np.mean(values_of(subject.model, explanations, Faithfulness(k=K)))),
        "images": [np.round(subject.test[i], 4).tolist() for i in chosen],
        "scores": [explanations[i].scores.tolist() for i in chosen],
        "predicted": [explanations[i].target_name for i in chosen],
    }


def keep_patches(image: Array, scores: Floats, k: int = K) -> Array:
    """Return the image (1, height, width) with only its k patches of the highest scores; others are black."""
    side = image.shape[-1] // PATCH
    mask = np.zeros(side * side)
    mask[np.argsort(-scores, kind="stable")[:k]] = 1
    return image * np.kron(mask.reshape(side, side), np.ones((PATCH, PATCH)))


def draw_pictures(records: dict[str, Any]) -> Any:
    """Return two rows for each data set: images, and their top patches (Figure 3)."""
    names = [name for name in IMAGES if name in records]
    figure = new_figure(1.1 * SHOWN, 2.6 * len(names))
    panels = figure.subplots(2 * len(names), SHOWN, squeeze=False)
    for pair, name in enumerate(names):
        record = records[name]
        for column, pixels in enumerate(record["images"]):
            image = np.array(pixels)
            top = keep_patches(image, np.array(record["scores"][column]))
            for axes, shown in zip(panels[2 * pair : 2 * pair + 2, column], (image, top), strict=True):
                axes.imshow(shown[0], cmap="gray", vmin=0, vmax=1)
                axes.set_xticks([])
                axes.set_yticks([])
            panels[2 * pair, column].set_title(record["predicted"][column], fontsize=9)
    return figure
