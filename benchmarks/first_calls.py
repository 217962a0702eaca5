"""Processor seconds of typical first calls on a CPU, compared with shap and lime at equal evaluations.

    OMP_NUM_THREADS=1 python benchmarks/first_calls.py [--repeats 3] [--json out.json]

Images: 64 patches of a picture of 64×64 pixels, a convolutional network, 1,000 evaluations. Texts: 20 texts
of about 40 words, a pipeline of scikit-learn, 500 evaluations each. Table: 5 rows of 25 columns, XGBoost's
probabilities, one background row, 500 evaluations each. Times include the model.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import new_parser, save

import pertinent

Calls = dict[str, Callable[[], Any]]


def images() -> Calls:
    """Return calls that explain an image."""
    import shap
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 64, 10)).eval()
    image = torch.randn(3, 64, 64)

    @torch.inference_mode()
    def scores(masks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept = torch.from_numpy(masks).float().reshape(-1, 1, 8, 8)
        pixels = kept.repeat_interleave(8, 2).repeat_interleave(8, 3)
        return np.asarray(net(image * pixels).softmax(1))

    model = pertinent.wrap(net, output="logit")
    options: Any = {"budget": 1000, "features": "patches:8", "removal": "constant", "progress": False}
    kernel = shap.KernelExplainer(scores, np.zeros((1, 64)))
    return {
        "pertinent kernel-shap": lambda: pertinent.explain(model, image.numpy(), "kernel-shap", **options),
        "shap Kernel": lambda: kernel.shap_values(np.ones((1, 64)), nsamples=1000, silent=True),
    }


def texts() -> Calls:
    """Return calls that explain texts."""
    import shap
    from lime.lime_text import LimeTextExplainer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    every = [" ".join(f"word{i}" for i in rng.integers(0, 2000, rng.integers(30, 50))) for _ in range(400)]
    labels = [sum(int(word[4:]) % 7 == 0 for word in text.split()) > 5 for text in every]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(every, labels)
    model, some = pertinent.wrap(pipeline), every[:20]
    partition = shap.Explainer(pipeline.predict_proba, shap.maskers.Text(r"\W+"), silent=True)
    lime = LimeTextExplainer()

    def ours(method: str) -> Callable[[], Any]:
        return lambda: pertinent.explain(model, some, method, budget=500, progress=False)

    return {
        **{f"pertinent {method}": ours(method) for method in ("shapley", "kernel-shap", "lime")},
        "lime": lambda: [
            lime.explain_instance(text, pipeline.predict_proba, num_samples=500) for text in some
        ],
        "shap Partition": lambda: partition(some, max_evals=500),
    }


def rows() -> Calls:
    """Return calls that explain rows of a table."""
    import shap
    from xgboost import XGBClassifier

    data = np.random.default_rng(0).normal(size=(2000, 25))
    estimator = XGBClassifier(max_depth=4).fit(data, data[:, 0] + data[:, 1] * data[:, 2] > 0)
    model = pertinent.wrap(estimator, background=data[:1])
    kernel = shap.KernelExplainer(estimator.predict_proba, data[:1])
    return {
        "pertinent shapley": lambda: pertinent.explain(model, data[:5], budget=500, progress=False),
        "shap Kernel": lambda: kernel.shap_values(data[:5], nsamples=500, silent=True),
    }


def measure(repeats: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each call: the median of its processor seconds, and its ratio to the fastest peer."""
    for setting in (images, texts, rows):
        times: dict[str, float] = {}
        for name, call in setting().items():
            call()
            seconds = []
            for _ in range(repeats):
                start = time.process_time()
                call()
                seconds.append(time.process_time() - start)
            times[name] = statistics.median(seconds)
        peer = min(seconds for name, seconds in times.items() if not name.startswith("pertinent"))
        for name, time_of_call in times.items():
            yield {
                "input": setting.__name__,
                "call": name,
                "processor seconds": f"{time_of_call:.2f}",
                "/ fastest peer": f"{time_of_call / peer:.2f}",
            }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    measured = list(measure(arguments.repeats))
    save(measured, arguments.json)


if __name__ == "__main__":
    main()
