"""What a user of the web page sends: an input, a method and settings, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pertinent.config.serialization import decode
from pertinent.config.settings import Count, Seed
from pertinent.errors import InputError
from pertinent.inputs.modality import InputLimits
from pertinent.runs.request import DEFAULT_METHOD

_LONGEST_NAME = 1000
"""Characters of the name of a model, a method, a class and the like."""


@dataclass(frozen=True)
class Limits(InputLimits):
    """Limits of one request to the web page.

    Attributes
    ----------
    budget
        Evaluations of one explanation.
    body
        Bytes of a request.
    seconds
        Seconds that a request may take.
    """

    budget: int = 10_000
    body: int = 2**23
    seconds: float = 600.0


@dataclass(frozen=True)
class ExplainForm:
    """A request to explain one input with a model of the page.

    Attributes
    ----------
    input
        The fields of the input, which `Modality.from_fields` reads.
    model, method, target, budget, removal, features, seed
        As in `explain`.
    """

    model: str
    input: Mapping[str, Any] = field(default_factory=dict)
    method: str = DEFAULT_METHOD
    target: str | None = None
    budget: Count | None = None
    removal: str | None = None
    features: str | None = None
    seed: Seed = 0


def read_form(plain: Any, limits: Limits) -> ExplainForm:
    """Decode a request; raise an `InputError` that names a field beyond the limits.

    Lengths are compared first, because decoding takes much longer than counting.
    """
    if isinstance(plain, dict):
        names = ("model", "method", "target", "removal", "features")
        for name, limit in {**dict.fromkeys(names, _LONGEST_NAME), "input": limits.features}.items():
            value = plain.get(name)
            if isinstance(value, str | list | dict) and len(value) > limit:
                unit = "characters" if isinstance(value, str) else "entries"
                raise InputError(
                    f"`{name}` must have at most {limit:,} {unit} on this page, got {len(value):,}."
                )
    return decode(ExplainForm, plain)
