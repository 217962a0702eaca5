"""The text and numbers of a report on a removal check; the table decides how they look."""

from __future__ import annotations

from collections.abc import Iterator

from pertinent.diagnostics.removal_check import MUCH_LOST, RemovalCheck
from pertinent.intervals import FEWEST, Interval
from pertinent.report.failures import failure_notes

FEW_INPUTS = 100
"""With fewer inputs, intervals are too wide to show differences of a few points."""


def advice(check: RemovalCheck) -> str:
    """Which removal to use, and whether to train the model counterfactually: two sentences."""
    if check.inputs < FEWEST:
        few = "One input tells" if check.inputs == 1 else f"{check.inputs} inputs tell"
        return f"{few} nothing about a removal: check at least {FEWEST} inputs."
    return f"{_which(check)} {_training(check)}"


def _which(check: RemovalCheck) -> str:
    scores = {p.share: p.score.mean for p in check.points if p.removal == check.best}
    found = (
        f"with {percent(check.half)} of the {check.features} removed, {check.measure} is "
        f"{scores[check.half]:.3f} against {scores[0.0]:.3f} on whole inputs"
    )
    if len(check.removals) == 1:
        return f"Only {check.best} was checked: {found}."
    if check.best == check.default:
        return f"Use {check.best}, the model's default: {found}, and no other removal is clearly better."
    instead = "which scores best over all shares"
    if check.default in check.losses:
        loss = check.losses[check.default]
        instead = f"which over all shares scores {loss} higher than the default, {check.default}"
    return f"Use {check.best}, {instead}: {found}."


def _training(check: RemovalCheck) -> str:
    if not check.needs_training:
        return "There is no sign that the model needs counterfactual training."
    lost, over = check.lost, check.overconfidence
    if lost.mean >= MUCH_LOST and lost.low > 0:
        reason = f"it loses {lost} there, and training can recover the part due to distribution shift"
    else:
        reason = f"its confidence exceeds its accuracy there by {over} more than on whole inputs"
    return f"The model should be trained counterfactually: {reason}."


def cells(check: RemovalCheck, removal: str) -> Iterator[tuple[str, str]]:
    """The score at each share and its bounds, in percent."""
    for p in check.points:
        if p.removal == removal and p.share:
            yield f"{100 * p.score.mean:.0f}", _bounds(p.score)


def _bounds(score: Interval) -> str:
    return f" [{100 * score.low:.0f}–{100 * score.high:.0f}]" if score.bounds else ""


def confidence(check: RemovalCheck, removal: str) -> str:
    """The mean confidence of a removal at the share `half`, in percent."""
    points = {p.share: p for p in check.points if p.removal == removal}
    return f"{100 * points[check.half].confidence.mean:.0f}"


def caption(check: RemovalCheck) -> str:
    """How to read the table."""
    whole = next(p for p in check.points if p.removal == check.best and not p.share)
    accuracy = f" (whole inputs: {100 * whole.score.mean:.0f}{_bounds(whole.score)})"
    said = (
        f"{check.measure.capitalize()} in % by share of {check.features} removed"
        f"{accuracy if check.measure == 'accuracy' else ''}, confidence at {percent(check.half)} "
        f"(whole inputs: {100 * whole.confidence.mean:.0f}). "
        f"{check.inputs:,} input{'' if check.inputs == 1 else 's'}, {check.draws} random masks each, "
        "the same for every removal; majority vote; 95% bootstrap intervals. "
        "A drop is due to lost information and distribution shift; differences between removals are due "
        "to shift alone."
    )
    if check.inputs < FEW_INPUTS:
        said += f" Fewer than {FEW_INPUTS} inputs: small differences cannot be detected."
    return said


def left_out(check: RemovalCheck) -> Iterator[str]:
    """Removals and inputs that could not be checked."""
    for removal, reason in check.skipped.items():
        yield f"Not checked: {removal}: {reason}"
    yield from failure_notes(check.failures)


def percent(share: float) -> str:
    """As ``50%``."""
    return f"{100 * share:g}%"
