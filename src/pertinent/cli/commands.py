"""The commands ``explain``, ``compare``, ``evaluate`` and the catalogues."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pertinent.api import catalogue as catalogues
from pertinent.api.evaluate import DEFAULT_METRICS
from pertinent.api.evaluate import evaluate as measure
from pertinent.api.request import Request, with_same_features
from pertinent.cli.models import DEFAULTS, is_own, kind_read, load_model
from pertinent.cli.output import Output, conclude
from pertinent.cli.read import items, kind_given
from pertinent.cli.settings import make_methods, make_metrics
from pertinent.cli.work import Outcome, carry_out
from pertinent.errors import InputError, SettingError
from pertinent.metric.base import Metric
from pertinent.models.base import Model
from pertinent.report.by_input import name_of
from pertinent.results.explanation import Explanations

_TO_FIT = "methods that learn first: pertinent fit --method NAME --out FOLDER, then --method FOLDER"


def explain(args: Namespace) -> int:
    """Explain inputs by one method."""
    output = Output(args)
    metrics = [] if args.no_measure else make_metrics(DEFAULT_METRICS, args.sparsity)
    outcome = _explained(args, [args.method], metrics)
    unshown = output.show_all(outcome.explanations)
    if outcome.evaluation is not None and len(outcome.explanations) > 1:
        output.show(outcome.evaluation)
    unwritten = output.write(outcome.explanations, outcome.evaluation, f"Explained by {args.method}")
    return _conclude(outcome, [*unshown, *unwritten])


def compare(args: Namespace) -> int:
    """Explain inputs by several methods and compare their measures."""
    output = Output(args)
    outcome = _explained(args, args.methods, make_metrics(args.metrics or DEFAULT_METRICS, args.sparsity))
    if args.show:
        output.show_all(outcome.explanations)
    if outcome.evaluation is not None:
        output.show(outcome.evaluation)
    title = f"Compared: {', '.join(args.methods)}"
    unwritten = output.write(outcome.explanations, outcome.evaluation, title)
    return _conclude(outcome, unwritten)


def _conclude(outcome: Outcome, unwritten: Sequence[tuple[str, str]]) -> int:
    """The exit code, once what is finished has been shown and written."""
    code = conclude(len(outcome.explanations), [*outcome.failures, *unwritten])
    if outcome.interrupted:
        raise KeyboardInterrupt
    return code


def evaluate(args: Namespace) -> int:
    """Measure explanations from a file."""
    output = Output(args)
    metrics = make_metrics(args.metrics or DEFAULT_METRICS, args.sparsity)
    saved = Explanations.read(args.file)
    args.model = args.model or DEFAULTS[_only_kind(saved)]
    model = load_model(args.model, args.device, args.dtype)
    _check_classes(args.model, model, saved)
    evaluation = measure(
        model,
        saved,
        metrics,
        removal=args.removal,
        seed=args.seed,
        batch_size=args.batch_size,
        progress=False if output.silent else None,
    )
    if evaluation.rows:
        output.show(evaluation)
    unwritten = output.write(evaluation.explanations, evaluation, f"Evaluation of {Path(args.file).name}")
    failures = [(name_of(f), str(f)) for f in evaluation.failures]
    return conclude(len(evaluation.rows), [*failures, *unwritten])


def catalogue(args: Namespace) -> int:
    """List the methods, metrics or removals."""
    from rich.console import Console

    from pertinent.report.terminal.tables import show_catalogue

    console = Console(highlight=False)
    entries = getattr(catalogues, args.command)()
    console.print(show_catalogue([e for e in entries if not e.fitted_first], args.command))
    if args.command == "methods":
        console.print(show_catalogue([e for e in entries if e.fitted_first], _TO_FIT))
    return 0


def _explained(args: Namespace, methods: Sequence[str], metrics: Sequence[Metric]) -> Outcome:
    """Read, explain and measure; wrong arguments are found before the model is loaded."""
    explainers = make_methods(methods, args.set)
    options: dict[str, Any] = {"budget": args.budget, "features": args.features, "seed": args.seed}
    options |= {"target": args.target, "removal": args.removal, "scale": args.scale}
    options |= {"early_stopping": args.early_stopping} if "early_stopping" in args else {}
    if args.sparsity is not None:
        options["sparsity"] = args.sparsity
    requests = with_same_features(
        [Request.of(explainer, metrics=metrics, **options) for explainer in explainers]
    )
    args.model = args.model or DEFAULTS[kind_given(args) or "text"]
    # A model of the user's own knows what it reads; of others that is known before they are loaded.
    own = load_model(args.model, args.device, args.dtype) if is_own(args.model) else None
    found = items(args, kind_read(args.model, own))
    model = own or load_model(args.model, args.device, args.dtype)
    return carry_out(
        model,
        found,
        requests,
        out=args.out,
        batch_size=args.batch_size,
        progress=False if args.quiet else None,
    )


def _only_kind(explanations: Explanations) -> str:
    kinds = {explanation.input.kind for explanation in explanations}
    if len(kinds) != 1:
        raise InputError(f"The file must hold explanations of one kind, but holds {sorted(kinds) or 'none'}.")
    return kinds.pop()


def _check_classes(name: str, model: Model, explanations: Explanations) -> None:
    for explanation in explanations:
        if model.classes and explanation.classes != model.classes:
            raise SettingError(
                f"The model {name!r} has the classes {', '.join(model.classes)}, but the explanations in the "
                f"file have {', '.join(explanation.classes)}: name their model with --model."
            )
