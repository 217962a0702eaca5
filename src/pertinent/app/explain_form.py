"""Requests of the web app: an input, a method and settings, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pertinent.config.serialization import decode
from pertinent.config.settings import Count, Seed
from pertinent.errors import InputError
from pertinent.inputs.modality import InputLimits

_MAX_NAME_LENGTH = 1000
"""Maximum number of characters of the name of a model, method, class, removal or granularity."""


@dataclass(frozen=True)
class Limits(InputLimits):
    """Limits of one request to the web app.

    Attributes
    ----------
    budget
        Maximum number of evaluations of an explanation.
    body
        Maximum size of a request in bytes.
    seconds
        Maximum duration of a request in seconds.
    """

    budget: int = 10_000
    body: int = 2**23
    seconds: float = 600.0


@dataclass(frozen=True)
class ExplainForm:
    """Request to explain one input with a model of the web app.

    Attributes
    ----------
    input
        The form fields of the input, see `Modality.from_fields`.
    model, method, target, budget, removal, features, seed
        As in `explain`.
    """

    model: str
    input: Mapping[str, Any] = field(default_factory=dict)
    method: str | None = None
    target: str | None = None
    budget: Count | None = None
    removal: str | None = None
    features: str | None = None
    seed: Seed = 0


def read_form(plain: Any, limits: Limits) -> ExplainForm:
    """Decode a request; raise an `InputError` for a field that exceeds its limit.

    Lengths are checked first, because decoding takes much longer than counting.
    """
    if isinstance(plain, dict):
        names = ("model", "method", "target", "removal", "features")
        for name, limit in {**dict.fromkeys(names, _MAX_NAME_LENGTH), "input": limits.features}.items():
            value = plain.get(name)
            if isinstance(value, str | list | dict) and len(value) > limit:
                unit = "characters" if isinstance(value, str) else "entries"
                raise InputError(
                    f"`{name}` must have at most {limit:,} {unit} on this page, got {len(value):,}."
                )
    return decode(ExplainForm, plain)
