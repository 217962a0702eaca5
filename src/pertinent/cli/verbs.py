"""Commands: read the inputs, call the public function, show and write the result."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Annotated, Any

import pertinent
from pertinent.api.evaluate import DEFAULT_METRICS, evaluation_of
from pertinent.cli.cluster_flags import ClusterFlags
from pertinent.cli.command_output import CommandOutput, Failed, NothingDone, conclude
from pertinent.cli.commands import COMMANDS
from pertinent.cli.folder_runs import explain_to_folder
from pertinent.cli.input_files import InputRecord
from pertinent.cli.input_flags import InputFlags, as_inputs, ids_of
from pertinent.cli.loading import DEFAULTS, ModelFlags, kind_before_loading, load_methods, model_named
from pertinent.cli.signatures import call_with, texts
from pertinent.config.settings import Count
from pertinent.diagnostics.base import Diagnostic
from pertinent.errors import InputError, PertinentError, SettingError
from pertinent.explainers.base import Explainer
from pertinent.inputs.modality import modality_named
from pertinent.inputs.prompt import Prompt
from pertinent.models.embedded.load import OPTIONAL, installed_kinds
from pertinent.rendering.by_input import named
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.runs.folder_store import is_folder
from pertinent.runs.request import default_method, make_metrics


def arguments_of(args: Namespace) -> dict[str, Any]:
    """Return the public function's arguments that are flags, reading files and Python objects."""
    arguments = {name: getattr(args, name) for name in args.parameters}
    for name, reader in args.parameters.items():
        if reader is not None and arguments[name] is not None:
            arguments[name] = resolve_name(reader)(arguments[name])
    return arguments


@dataclass
class Call:
    """A call of a public function: the arguments from the flags, the inputs and the model."""

    arguments: dict[str, Any]
    records: list[InputRecord]
    model: Any

    @classmethod
    def from_flags(cls, args: Namespace, output: CommandOutput) -> Call:
        """Read the inputs and arguments; errors in them are raised before the model is loaded."""
        inputs = call_with(args, InputFlags)
        model = call_with(args, ModelFlags, model=model_named(args, inputs)).named()
        kind = kind_before_loading(model)
        arguments = arguments_of(args)
        if "method" in arguments and args.command != "fit":
            (arguments["method"],) = load_methods([args.method or default_method(kind)], args.set)
        if "methods" in arguments:
            arguments["methods"] = load_methods(args.methods, args.set)
        records = inputs.read(kind, model.name)
        if all(each.error is not None for each in records):
            raise NothingDone([(each.where, str(each.error)) for each in records])
        arguments["progress"] = output.progress
        if "id_column" in args:
            arguments["ids"] = ids_of(records)
        if inputs.label_column is not None:
            arguments["labels"] = [each.label for each in records]
        if "ray" in args:
            arguments["cluster"] = call_with(args, ClusterFlags).cluster()
        return cls(arguments, records, model)

    def to(self, function: Callable[..., Any], **changes: Any) -> Any:
        """Make the call; if all inputs failed for different reasons, raise `NothingDone` with all reasons."""
        try:
            return function(self.model, as_inputs(self.records), **self.arguments | changes)
        except PertinentError as error:
            failed = self.failed(error.failures)
            if len({reason for _, reason in failed}) > 1 and not len(error.finished):
                raise NothingDone(failed) from error
            raise

    def failed(self, failures: Sequence[Failure]) -> list[Failed]:
        """Return the position of each failed input, with the reason."""
        return [(self.records[failure.index].where, str(failure)) for failure in failures]


def explain(args: Namespace, *, by_class: bool = False) -> int:
    """Explain inputs with one method, measuring the explanations in the same run.

    Parameters
    ----------
    by_class
        Also show the five most likely classes (labels, values) side by side, if the method scores all
        classes.
    """
    if args.out is not None and is_folder(args.out):
        return explain_to_folder(args, arguments_of(args))
    output = _output(args, by_class=by_class)
    call = Call.from_flags(args, output)
    check, metrics = call.arguments.pop("check"), make_metrics(call.arguments["metrics"])
    evaluation, error = None, None
    try:
        explanations = call.to(pertinent.explain)
        evaluation = evaluation_of(explanations, metrics, explanations.failures) if metrics else None
    except (KeyboardInterrupt, PertinentError) as raised:
        if not len(getattr(raised, "finished", ())):
            raise
        explanations, error = raised.finished, raised  # type: ignore[union-attr]
    explanations = explanations if check is None else check.attach(explanations)
    unshown = output.show_all(explanations)
    if evaluation is not None and len(explanations) > 1:
        output.show(evaluation)
    unwritten = output.write(
        explanations, explanations, evaluation, f"Explained by {call.arguments['method'].name}"
    )
    code = conclude(len(explanations), [*call.failed(explanations.failures), *unshown, *unwritten])
    if isinstance(error, KeyboardInterrupt):
        raise error
    return code


def compare(args: Namespace, *, show: bool = False) -> int:
    """Explain inputs with several methods and show the table of measures.

    Parameters
    ----------
    show
        Print every explanation in addition to the table.
    """
    output = _output(args)
    call = Call.from_flags(args, output)
    evaluation = call.to(getattr(pertinent, args.command))
    if show:
        output.show_all(_explanations(evaluation))
    title = f"Compared: {', '.join(args.methods)}"
    return _conclude(output, evaluation, title, call.failed(evaluation.failures))


def evaluate(args: Namespace) -> int:
    """Measure explanations from a file with their model."""
    output = _output(args)
    saved = pertinent.read(args.explanations)
    kinds = {explanation.input.kind for explanation in saved}
    if len(kinds) != 1:
        raise InputError(
            f"The file must contain explanations of one kind, but contains {sorted(kinds) or 'none'}."
        )
    name = args.model or DEFAULTS.get(kind := kinds.pop())
    if name is None:
        raise SettingError(f"Explanations of {modality_named(kind).plural} require --model.")
    model = call_with(args, ModelFlags, model=name).load()
    for explanation in saved:
        if model.classes and explanation.classes != model.classes:
            raise SettingError(
                f"The model {name!r} has the classes {', '.join(model.classes)}, but the explanations in the "
                f"file have {', '.join(explanation.classes)}: pass their model with --model."
            )
    cluster = call_with(args, ClusterFlags).cluster()
    words = arguments_of(args) | {"cluster": cluster, "progress": output.progress}
    evaluation = pertinent.evaluate(model, saved, **words)
    title = f"Evaluation of {args.explanations.name}"
    return _conclude(output, evaluation, title, list(named(evaluation.failures)))


def merge(args: Namespace) -> int:
    """Merge the files of all shards of a run."""
    explanations = pertinent.merge(args.files, args.out)
    return conclude(len(explanations), list(named(explanations.failures)))


def neighbour_stability(args: Namespace) -> int:
    """Measure whether similar texts in a file have similar explanations."""
    output, saved = _output(args), pertinent.read(args.explanations)
    result = pertinent.neighbour_stability(saved, **arguments_of(args))
    return _conclude_diagnosis(output, result, list(named(result.failures)))


def diagnose(args: Namespace) -> int:
    """Run a diagnostic; show the table, and write JSON and a plot."""
    output = _output(args)
    call = Call.from_flags(args, output)
    result = call.to(getattr(pertinent, str(COMMANDS[args.command].function)))
    return _conclude_diagnosis(output, result, call.failed(result.failures))


def attack(
    args: Namespace,
    *,
    only: list[tuple[str, ...]] | None = None,
    top: Count | None = None,
    method: Annotated[str, "NAME|FOLDER"] | None = None,
    set: list[Annotated[str, "SETTING=VALUE"]] | None = None,
) -> int:
    """Attack every input, print the radii, and write the requested file.

    Parameters
    ----------
    only
        A set of features that the attack may change, by name or index from 0; may be repeated for several
        sets (all features).
    top
        The attack may change only the N most important features by --method.
    method
        With --top: a name from `list_methods()`.
    set
        With --method: a setting of the method; may be repeated.
    """
    output = _output(args)
    if only and top:
        raise SettingError("--only and --top both select the features to change: pass only one.")
    if bool(top) != bool(method):
        raise SettingError(
            "--top and --method must be passed together: --method ranks the features of --top."
        )
    if set and not method:
        raise SettingError("--set requires --method and --top.")
    methods = load_methods([method], set or ()) if method else []
    call = Call.from_flags(args, output)
    sets: list[Any] = [only] * len(call.records)
    if methods and top:
        sets = _most_important(call, methods[0], top)
    attacks = call.to(pertinent.attack_radius, sets=sets)
    output.show(type(attacks)(list(attacks)))
    return conclude(len(attacks), [*call.failed(attacks.failures), *output.write(attacks)])


def _most_important(call: Call, method: Explainer, n: int) -> list[list[int]]:
    """Return the n most important features of each input; for a failed input, its error."""
    words = {name: call.arguments[name] for name in ("features", "seed", "batch_size", "progress")}
    explained = pertinent.explain(call.model, as_inputs(call.records), method, **words)
    sets: list[list[int]] = [[] for _ in call.records]
    for explanation in explained:
        sets[explanation.index] = explanation.ranking[:n].tolist()
    for failure in explained.failures:
        call.records[failure.index] = replace(call.records[failure.index], error=failure.error)
    return sets


def serve(args: Namespace) -> int:
    """Serve the web app until it is interrupted."""
    models = {
        name: call_with(args, ModelFlags, model=name).load() for name in filter(None, args.model.split(","))
    }
    with suppress(KeyboardInterrupt):
        pertinent.serve(models or None, **arguments_of(args))
    return 0


def catalogue(args: Namespace) -> int:
    """List the methods, metrics or removals."""
    CommandOutput().show(getattr(pertinent, f"list_{args.command}")())
    return 0


def demo(args: Namespace) -> int:
    """Explain four texts, a prompt, an image and two table rows with the embedded models, offline.

    If smollm2 is installed, it also answers a question. The explanations are printed and written to one
    self-contained HTML file.
    """
    from rich.rule import Rule

    from pertinent.models.embedded.digits import example_digit
    from pertinent.models.embedded.tables import example_patient, example_row

    lines = texts()["demo texts"].strip().splitlines()
    examples: list[Any] = [line.split(maxsplit=1) for line in lines]
    installed = installed_kinds()
    examples = [
        (name, Prompt(raw, chat=True) if name in OPTIONAL else raw)
        for name, raw in examples
        if name in installed
    ]
    examples += [("digits", example_digit()), ("table", example_row()), ("diabetes", example_patient())]
    output, explanations = _output(args), list[Explanation]()
    for index, (name, raw) in enumerate(examples):
        model = ModelFlags(name).load()
        explanation = pertinent.explain(model, raw, metrics=DEFAULT_METRICS, progress=output.progress)
        explanations.append(replace(explanation, index=index))
        output.show(Rule(name))
        output.show(explanation)
    every = Explanations(explanations)
    return conclude(len(every), output.write(every, every, title="Explanations of the embedded models"))


def _output(args: Namespace, **more: Any) -> CommandOutput:
    read = [vars(args)[name] for name in ("file", "explanations") if vars(args).get(name) is not None]
    return call_with(args, CommandOutput, out_by_function="out" in args.parameters, read=read, **more)


def _explanations(evaluation: Evaluation) -> Explanations:
    return Explanations(list(evaluation.explanations), evaluation.failures)


def _conclude_diagnosis(
    output: CommandOutput, result: Diagnostic | Evaluation, failed: Sequence[Failed]
) -> int:
    """Show the table, write the requested JSON and plot, and return the exit code."""
    output.show(replace(result, failures=()) if isinstance(result, Diagnostic) else result)
    return conclude(len(result.rows), [*failed, *output.write(result)])


def _conclude(output: CommandOutput, evaluation: Evaluation, title: str, failed: Sequence[Failed]) -> int:
    """Show the table, write the requested files, and return the exit code."""
    if evaluation.rows:
        output.show(evaluation)
    explanations = _explanations(evaluation)
    unwritten = output.write(explanations, explanations, evaluation, title)
    return conclude(len(evaluation.rows), [*failed, *unwritten])
