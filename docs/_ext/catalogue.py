"""Sphinx directives that list what is registered: methods, metrics, removals, heads, models, commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rst import Rst, docstring, heading, sentence, settings, table
from sphinx.application import Sphinx

from pertinent.asks import AttackRadii, TreeValues
from pertinent.asks.gradients import GradientQuestion
from pertinent.cli.commands import COMMANDS
from pertinent.cli.parser import command_parser
from pertinent.explainers.base import Explainer, Traits, explainers, learned_methods
from pertinent.inputs.modality import modalities
from pertinent.metrics.base import metrics
from pertinent.models.heads.base import heads
from pertinent.removals import removals

MEANINGS = {
    "effect": "signed scores",
    "magnitude": "scores are never negative",
    "membership": "sets of features",
    "attack": "order in which an attack needs the features",
}


class Methods(Rst):
    """``.. methods::`` describes the methods of `explain`, grouped by what they are based on."""

    def lines(self) -> Iterator[str]:
        """Yield a table and a section for each method of each group."""
        groups: dict[str, list[type[Explainer]]] = {
            "Scores by removing features": [],
            "Searches for sets": [],
            "Gradients": [],
            "Robustness": [],
            "Baseline": [],
        }
        for cls in explainers.all().values():
            groups["Baseline" if cls.paper == "baseline" else group_of(cls.traits)].append(cls)
        for group, classes in groups.items():
            yield from heading(group)
            yield from table(("method", "summary"), [(f"`{c.name}`_", sentence(c.summary)) for c in classes])
            for cls in classes:
                yield from heading(cls.name, "~")
                yield from (f"*{cls.paper}*", "", badges(properties(cls.traits)), "")
                yield from docstring(cls, self.config)
                yield from settings(cls)


def group_of(traits: Traits) -> str:
    """Return the group of a method with these traits."""
    if traits.meaning == "membership":
        return "Searches for sets"
    if AttackRadii in traits.asks:
        return "Robustness"
    if any(issubclass(kind, GradientQuestion) for kind in traits.asks):
        return "Gradients"
    return "Scores by removing features"


def properties(traits: Traits) -> Iterator[str]:
    """Yield the properties of a method in words."""
    yield MEANINGS[traits.meaning]
    if traits.all_classes:
        yield "all classes"
    if traits.standard_errors:
        yield "standard errors"
    if traits.adds_up:
        yield "base value and scores sum to the prediction"
    if traits.stops_early:
        yield "early stopping"
    if traits.deterministic:
        yield "deterministic"
    if traits.needs_decision:
        yield "classifiers only"
    if TreeValues in traits.asks:
        yield "needs a model of trees"
    if any(issubclass(kind, GradientQuestion) for kind in traits.asks):
        yield "needs gradients"
    if traits.default_scale != "natural":
        yield f"scale {traits.default_scale!r} by default"


class FittedMethods(Rst):
    """``.. fitted-methods::`` describes the methods of `fit`, with the settings of `fit` and `explain`."""

    def lines(self) -> Iterator[str]:
        """Yield a table and a section for each method."""
        classes = learned_methods.all()
        yield from table(
            ("method", "summary"), [(f"`{n}`_", sentence(c.summary)) for n, c in classes.items()]
        )
        for name, cls in classes.items():
            spec = cls.learner.spec
            kinds = " and ".join(spec.modalities or ("all kinds of input",))
            yield from heading(name)
            yield from (f"*{cls.paper}*", "")
            yield badges([MEANINGS[cls.traits.meaning], f"{' or '.join(spec.classes)} classes", kinds])
            yield ""
            yield from docstring(cls, self.config)
            yield from ("**Training**", "")
            yield from docstring(cls.learner, self.config)
            yield from settings(cls.learner)
            explaining = list(settings(cls, omit=("network",)))
            if len(explaining) > 1:
                yield from ("**Explaining**", "", *explaining)


class Metrics(Rst):
    """``.. metrics::`` describes the metrics."""

    def lines(self) -> Iterator[str]:
        """Yield a table and a section for each metric."""
        classes = metrics.all()
        rows = [(f"`{name}`_", sentence(c.summary), c.better) for name, c in classes.items()]
        yield from table(("metric", "summary", "better"), rows)
        for name, cls in classes.items():
            yield from heading(name)
            yield from (f"*{cls.paper}*", "", badges([f"{cls.better} is better"]), "")
            yield from docstring(cls, self.config)
            yield from settings(cls)


class Removals(Rst):
    """``.. removals::`` describes the removals."""

    def lines(self) -> Iterator[str]:
        """Yield a table and a section for each removal."""
        classes = removals.all()
        rows = [(f"`{n}`_", sentence(c.summary), ", ".join(c.kinds())) for n, c in classes.items()]
        yield from table(("removal", "a removed feature is", "inputs"), rows)
        for name, cls in classes.items():
            yield from heading(name)
            yield from (badges(cls.kinds()), "", f"``pertinent.removals.{cls.__name__}``", "")
            yield from docstring(cls, self.config)
            yield from settings(cls)


class Heads(Rst):
    """``.. heads::`` lists the heads that `wrap` recognises."""

    def lines(self) -> Iterator[str]:
        """Yield a table of heads."""
        rows = [
            (name, sentence(cls.summary), codes(cls.tasks), codes(cls.options()))
            for name, cls in heads.all().items()
        ]
        yield from table(("head", "explains", "tasks of pipelines", "options of wrap"), rows)


class Modalities(Rst):
    """``.. modalities::`` lists the kinds of input."""

    def lines(self) -> Iterator[str]:
        """Yield a table of kinds of input."""
        rows = [
            (name, sentence(cls.summary), f"``{cls.features}``", f"``{cls.default_removal}``")
            for name, cls in modalities.all().items()
        ]
        yield from table(("kind", "input", "features by default", "removal by default"), rows)


class Commands(Rst):
    """``.. commands::`` shows the help of every command."""

    def lines(self) -> Iterator[str]:
        """Yield a section for each command."""
        for name in COMMANDS:
            yield from heading(f"pertinent {name}")
            yield from (".. code-block:: text", "")
            yield from (f"   {line}" for line in command_parser(name).format_help().splitlines())
            yield ""


def badges(texts: Iterable[str]) -> str:
    """Return texts as badges."""
    return " ".join(f":bdg-secondary-line:`{text}`" for text in texts)


def codes(names: Sequence[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"``{name}``" for name in names)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    directives = (Methods, FittedMethods, Metrics, Removals, Heads, Modalities, Commands)
    for directive in directives:
        name = "fitted-methods" if directive is FittedMethods else directive.__name__.lower()
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
