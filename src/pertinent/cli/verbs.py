"""What the commands do: read the inputs, call the public function, show and write what it returns."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Annotated, Any

import pertinent
from pertinent.api.evaluate import evaluation_of
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
from pertinent.rendering.by_input import named
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.runs.folder_store import is_folder
from pertinent.runs.request import DEFAULT_METHOD, make_metrics


def arguments_of(args: Namespace) -> dict[str, Any]:
    """The arguments of the public function that are flags; files and Python objects are read."""
    found = {name: getattr(args, name) for name in args.parameters}
    for name, reader in args.parameters.items():
        if reader is not None and found[name] is not None:
            found[name] = resolve_name(reader)(found[name])
    return found


@dataclass
class Call:
    """A call of a public function: the arguments from the flags, the inputs that were read, and the model."""

    arguments: dict[str, Any]
    records: list[InputRecord]
    model: Any

    @classmethod
    def from_flags(cls, args: Namespace, output: CommandOutput) -> Call:
        """Read what the command line names; wrong arguments are found before the model is loaded."""
        inputs = call_with(args, InputFlags)
        model = call_with(args, ModelFlags, model=model_named(args, inputs)).named()
        kind = kind_before_loading(model)
        arguments = arguments_of(args)
        if "method" in arguments and args.command != "fit":
            (arguments["method"],) = load_methods([args.method], args.set)
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
            arguments["cluster"] = call_with(args, ClusterFlags).made()
        return cls(arguments, records, model)

    def to(self, function: Callable[..., Any], **changes: Any) -> Any:
        """Make the call; if every input failed, and not all for one reason, every reason is reported."""
        try:
            return function(self.model, as_inputs(self.records), **self.arguments | changes)
        except PertinentError as error:
            failed = self.failed(error.failures)
            if len({reason for _, reason in failed}) > 1 and not len(error.finished):
                raise NothingDone(failed) from error
            raise

    def failed(self, failures: Sequence[Failure]) -> list[Failed]:
        """The place of each input that failed, and the reason."""
        return [(self.records[failure.index].where, str(failure)) for failure in failures]


def explain(args: Namespace, *, by_class: bool = False) -> int:
    """Explain inputs by one method, and measure the explanations in the same run.

    Parameters
    ----------
    by_class
        Show the five most likely classes (labels, values) side by side, too, where the method scores all of
        them.
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
    unwritten = output.write(explanations, evaluation, f"Explained by {args.method}")
    code = conclude(len(explanations), [*call.failed(explanations.failures), *unshown, *unwritten])
    if isinstance(error, KeyboardInterrupt):
        raise error
    return code


def compare(args: Namespace, *, show: bool = False) -> int:
    """Explain inputs by several methods and show the table of what was measured.

    Parameters
    ----------
    show
        Print every explanation too, not only the table.
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
        raise InputError(f"The file must hold explanations of one kind, but holds {sorted(kinds) or 'none'}.")
    name = args.model or DEFAULTS.get(kind := kinds.pop())
    if name is None:
        raise SettingError(f"--model must be given for explanations of {modality_named(kind).plural}.")
    model = call_with(args, ModelFlags, model=name).load()
    for explanation in saved:
        if model.classes and explanation.classes != model.classes:
            raise SettingError(
                f"The model {name!r} has the classes {', '.join(model.classes)}, but the explanations in the "
                f"file have {', '.join(explanation.classes)}: name their model with --model."
            )
    words = arguments_of(args) | {
        "cluster": call_with(args, ClusterFlags).made(),
        "progress": output.progress,
    }
    evaluation = pertinent.evaluate(model, saved, **words)
    title = f"Evaluation of {args.explanations.name}"
    return _conclude(output, evaluation, title, list(named(evaluation.failures)))


def merge(args: Namespace) -> int:
    """Put the files of all shards of a run together."""
    found = pertinent.merge(args.files, args.out)
    return conclude(len(found), list(named(found.failures)))


def neighbour_stability(args: Namespace) -> int:
    """Measure how alike the explanations of similar texts are, from a file."""
    output, saved = _output(args), pertinent.read(args.explanations)
    result = pertinent.neighbour_stability(saved, **arguments_of(args))
    return _conclude_diagnosis(output, result, list(named(result.failures)))


def diagnose(args: Namespace) -> int:
    """Check removals, or the explanations of a method: show the table, and write JSON and a plot."""
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
    """Attack every input, print the radii, and write the file asked for.

    Parameters
    ----------
    only
        A set of features that may change, by name or number from 0; may be repeated, for several sets (all
        features).
    top
        Only the N most important features by --method may change.
    method
        With --top: a name from `list_methods()`.
    set
        With --method: a setting of it; may be repeated.
    """
    output = _output(args)
    if only and top:
        raise SettingError("--only names the features that may change, and --top finds them: give one.")
    if bool(top) != bool(method):
        raise SettingError("--top and --method go together: the N most important features by that method.")
    if set and not method:
        raise SettingError("--set is a setting of the method: name that with --method, and --top.")
    methods = load_methods([method], set or ()) if method else []
    call = Call.from_flags(args, output)
    sets: list[Any] = [only] * len(call.records)
    if methods and top:
        sets = _most_important(call, methods[0], top)
    attacks = call.to(pertinent.attack_radius, sets=sets)
    output.show(type(attacks)(list(attacks)))
    return conclude(len(attacks), [*call.failed(attacks.failures), *output.write_json(attacks)])


def _most_important(call: Call, method: Explainer, n: int) -> list[list[int]]:
    """The n most important features of each input; one that cannot be explained becomes its error."""
    words = {name: call.arguments[name] for name in ("features", "seed", "batch_size", "progress")}
    explained = pertinent.explain(call.model, as_inputs(call.records), method, **words)
    sets: list[list[int]] = [[] for _ in call.records]
    for explanation in explained:
        sets[explanation.index] = explanation.ranking[:n].tolist()
    for failure in explained.failures:
        call.records[failure.index] = replace(call.records[failure.index], error=failure.error)
    return sets


def serve(args: Namespace) -> int:
    """Serve the web page until it is interrupted, which is how it ends."""
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

    The explanations are printed and written to one self-contained HTML file.
    """
    from rich.rule import Rule

    from pertinent.models.embedded.digits import example_digit
    from pertinent.models.embedded.tables import example_patient, example_row

    lines = texts()["demo texts"].strip().splitlines()
    examples: list[Any] = [line.split(maxsplit=1) for line in lines]
    examples += [("digits", example_digit()), ("table", example_row()), ("diabetes", example_patient())]
    output, explanations = _output(args), list[Explanation]()
    for index, (name, raw) in enumerate(examples):
        model = ModelFlags(name).load()
        evaluation = pertinent.compare(model, raw, DEFAULT_METHOD, progress=output.progress)
        found = [replace(e, index=index) for e in evaluation.explanations]
        output.show(Rule(name))
        output.show_all(Explanations(found))
        explanations += found
    unwritten = output.write(Explanations(explanations), None, "pertinent: what decisions rest on")
    return conclude(len(explanations), unwritten)


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
    return conclude(len(result.rows), [*failed, *output.write_json(result), *output.write_plot(result)])


def _conclude(output: CommandOutput, evaluation: Evaluation, title: str, failed: Sequence[Failed]) -> int:
    """Show the table, write the files asked for, and return the exit code."""
    if evaluation.rows:
        output.show(evaluation)
    unwritten = output.write(_explanations(evaluation), evaluation, title)
    return conclude(len(evaluation.rows), [*failed, *unwritten])
