"""Catalogues of methods, metrics and removals, with citations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pertinent.config.registry import Registry
from pertinent.config.settings import field_default
from pertinent.explainers.base import explainers, learned_methods
from pertinent.metrics.base import metrics as registered_metrics
from pertinent.removals.base import removals as registered_removals
from pertinent.results.base import display


@dataclass(frozen=True)
class Entry:
    """An entry of a catalogue.

    A method that is `fitted_first` is trained by `fit`, and `fit`'s settings are listed.
    """

    name: str
    summary: str
    paper: str
    settings: Mapping[str, Any]
    fitted_first: bool = False


class Catalogue(list[Entry]):
    """A list of entries, displayed as a table."""

    def __repr__(self) -> str:
        width = max((len(entry.name) for entry in self), default=0)
        return "\n".join(
            f"{entry.name:{width}}  {entry.summary}  ({entry.paper}{'; fitted first' * entry.fitted_first})"
            for entry in self
        )

    def __rich__(self) -> Any:
        return display(self, "terminal")


def list_methods() -> Catalogue:
    """List the methods of `explain`, followed by those that `fit` must train first."""
    to_fit = (
        _entry(name, cls, cls.learner, fitted_first=True) for name, cls in learned_methods.all().items()
    )
    return Catalogue([*_catalogue(explainers), *to_fit])


def list_metrics() -> Catalogue:
    """List the metrics of `evaluate`."""
    return _catalogue(registered_metrics)


def list_removals() -> Catalogue:
    """List the removals of `explain`."""
    return _catalogue(registered_removals)


def _catalogue(registry: Registry[Any]) -> Catalogue:
    return Catalogue(_entry(name, cls, cls) for name, cls in registry.all().items())


def _entry(name: str, cls: Any, settings_of: Any, *, fitted_first: bool = False) -> Entry:
    settings = {f.name: field_default(f) for f in fields(settings_of) if f.init and f.name != "background"}
    source = str(cls.paper) if hasattr(cls, "paper") else "for " + " and ".join(cls.kinds())
    return Entry(name, cls.summary, source, settings, fitted_first)
