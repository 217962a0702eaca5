"""Methods that are fitted to black boxes of texts: forms of AIM, L2X and VIBI, and others."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.vo2023.sets import IMAGES

BOXES = ("network", "linear")
K = 10
ALPHA_BETA = {"imdb": (1.8, 1e-3), "hatexplain": (0.1, 1e-3), "ag_news": (0.1, 1e-4)} | dict.fromkeys(
    IMAGES, (0.5, 1e-3)
)
"""α and β of Table 6."""

DECISIONS: dict[str, Any] = {"learns_from": "decisions"}
BOTH = DECISIONS | {"trained": "both"}
PLAIN = DECISIONS | {"context": False, "intercept": False, "centring": False, "layers": "paper"}
PAPER = PLAIN | {"trained": "both", "explore": 0.0}
FORMS: dict[str, dict[str, Any]] = {
    "from probabilities": {},
    "from probabilities, no context": {"context": False},
    "explainer alone": DECISIONS,
    "both, explore 0": BOTH | {"explore": 0.0},
    "both, explore .5": BOTH,
    "paper": PAPER,
    "paper, D.3: explainer alone": PLAIN | {"sizes": "uniform"},
    "paper, D.1: from the selector": PAPER | {"infer": "selector"},
    "paper, D.2: selector alone": {"trained": "selector", "layers": "paper"},
    "paper, temperature 1": PAPER | {"temperature": 1.0},
    "paper, own layers": PAPER | {"layers": "own"},
    "paper, explore .5": PAPER | {"explore": 0.5},
    "explainer alone, own, no context": DECISIONS | {"context": False},
    "both, explore 0, before": BOTH | {"explore": 0.0},
}
"""Forms on paper_form.md. They learn from decisions, as in the paper, unless they say otherwise. In the last,
the embeddings of segments are random, as they were when its selector died."""
MAIN = tuple(FORMS)[:6]
ALPHAS = (0.1, 0.5, 1.0, 1.5, 1.8, 2.0)
README_FORMS: dict[str, dict[str, Any]] = {
    "explainer alone, 20 epochs": DECISIONS | {"epochs": 20},
    "both, no context": BOTH | {"context": False},
    "from the selector": BOTH | {"infer": "selector"},
    "selector alone": {"trained": "selector"},
    **{f"both, alpha {alpha}": BOTH | {"alpha": alpha} for alpha in ALPHAS},
}
"""More forms on README.md."""
TAUS = {"l2x": (0.1, 0.2, 0.5, 0.7), "vibi": (0.2, 0.5, 0.7)}
BETAS = (0.1, 0.5, 2.0)
"""Of Tables 13 and 15 to 17; of β every other value."""


def selected(tau: float) -> dict[str, Any]:
    """Return the settings of L2X and VIBI as in their papers: the approximator sees the selected features."""
    return {"k": K, "subsets": "selected", "temperature": tau}


TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "l2x": {f"l2x, τ {tau}": selected(tau) for tau in TAUS["l2x"]},
    "vibi": {
        f"vibi, τ {tau}, β {beta}": selected(tau) | {"beta": beta} for beta in BETAS for tau in TAUS["vibi"]
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    **{method: {"k": K} for method in TUNED},
    **{f"l2x, K {k}": {"k": k} for k in (5, 20)},
    **TUNED["l2x"],
    **TUNED["vibi"],
    "magnex": {},
}
"""Other methods that are fitted."""
SAMPLED: dict[str, dict[str, Any]] = {
    "lime": {"samples": 1000},
    "functional-information": {},
    "kernel-shap": {"budget": 1000},
    "parallel-local-search": {"budget": 1000, "sparsity": [0.05, 0.1, 0.2]},
    "thompson-search": {"budget": 1000, "sparsity": [0.05, 0.1, 0.2]},
    "random": {},
    "leave-one-out": {},
    "shapley": {"budget": 1000},
}
"""Methods that evaluate the black box for each text."""


class Fit(NamedTuple):
    """A form with a seed, on one black box."""

    dataset: str
    box: str
    form: str
    seed: int

    @property
    def name(self) -> str:
        """Return the key of the fit's results."""
        return " | ".join(map(str, self))

    @property
    def file(self) -> str:
        """Return the name of the fit as that of a file."""
        return " ".join(map(str, self)).replace(",", "").replace(":", "").replace(" ", "_")

    @property
    def method(self) -> tuple[str, dict[str, Any]]:
        """Return the method and its settings."""
        if self.form in SAMPLED:
            return self.form, SAMPLED[self.form]
        if self.form in OTHERS:
            return self.form.partition(",")[0], OTHERS[self.form]
        return "aim", aim_settings(self.dataset, (FORMS | README_FORMS)[self.form])


def aim_settings(dataset: str, form: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a form, with α and β of Table 6 where they have an effect."""
    alpha, beta = ALPHA_BETA[dataset]
    trained = form.get("trained", "explainer")
    table_6 = {"alpha": alpha} if trained != "explainer" else {}
    table_6 |= {"beta": beta} if trained != "selector" else {}
    return table_6 | form
