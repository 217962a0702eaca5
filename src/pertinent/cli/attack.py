"""``pertinent attack``: how little must change for the model to decide otherwise?"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pertinent.api.attack_radius import attack_radius
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request
from pertinent.api.run import Run
from pertinent.cli.models import DEFAULTS, is_own, kind_read, load_model
from pertinent.cli.output import Output, conclude
from pertinent.cli.read import items, kind_given
from pertinent.cli.settings import make_methods
from pertinent.errors import SettingError
from pertinent.files import write_text
from pertinent.results.attack_results import Attacks


def attack(args: Namespace) -> int:
    """Attack every input, print the radii, and write the file asked for."""
    output = Output(args)
    if args.only and args.top:
        raise SettingError("--only names the features that may change, and --top finds them: give one.")
    if bool(args.top) != bool(args.method):
        raise SettingError("--top and --method go together: the K most important features by that method.")
    if args.set and not args.method:
        raise SettingError("--set is a setting of the method: name that with --method, and --top.")
    request = None
    if args.method:
        (explainer,) = make_methods([args.method], args.set)
        request = Request.of(explainer, features=args.features, seed=args.seed)
    args.model = args.model or DEFAULTS[kind_given(args) or "text"]
    own = load_model(args.model, args.device, args.dtype) if is_own(args.model) else None
    found = items(args, kind_read(args.model, own))
    raws = [item.raw if item.error is None else item.error for item in found]
    model = own or load_model(args.model, args.device, args.dtype)
    run = Run(model, raws, False, None, "attack", args.batch_size, False if output.silent else None)
    sets: list[Any] = [args.only] * len(raws)
    if request is not None:
        raws, sets = _top(run, request, args.top)
    done = attack_radius(
        model,
        raws,
        sets,
        toward=args.toward,
        algorithm=args.algorithm,
        norm=args.norm,
        steps=args.steps,
        features=args.features,
        seed=args.seed,
        batch_size=args.batch_size,
        progress=False if output.silent else None,
    )
    assert isinstance(done, Attacks)
    output.show(Attacks(list(done)))
    unwritten = output.write_json(done.to_json, lambda path: write_text(path, done.to_json() + "\n"))
    return conclude(len(done), [*((found[f.index].where, str(f)) for f in done.failures), *unwritten])


def _top(run: Run, request: Request, k: int) -> tuple[list[Any], list[list[int]]]:
    """The most important features of each input; the error in place of an input without explanation."""
    explained = explain_all(run, [request])
    kept = list(run.inputs)
    sets: list[list[int]] = [[] for _ in kept]
    for explanation in explained:
        sets[explanation.index] = explanation.ranking[:k].tolist()
    for failure in explained.failures:
        kept[failure.index] = failure.error
    return kept, sets
