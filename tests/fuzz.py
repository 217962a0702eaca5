"""Calls of every public verb, with models of every kind, good and odd inputs and settings; damaged files.

    python -m tests.fuzz --calls 10000 --files 10000

A call must return a result that can be shown, or raise a `PertinentError`. No number may be NaN and no input
lost. A damaged file must be refused, or read as it was written.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import math
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from rich.console import Console

import pertinent
from pertinent.errors import PertinentError
from pertinent.explainers.base import explainers, learned_methods
from pertinent.files import read_json
from pertinent.metrics.base import metrics
from pertinent.removals.base import removals
from pertinent.rendering.html.page import report
from tests import tiny
from tests.fuzz_generative import explain_prompt, explain_served
from tests.fuzz_stores import store_files
from tests.results.test_damaged_files import damaged

# -- models --------------------------------------------------------------------------------------


def of_texts(texts):
    """Return probabilities of strings and pairs by their letters."""
    p = [(sum(map(ord, str(text))) % 97) / 100 for text in texts]
    return np.array([[x, 1 - x] for x in p])


def of_arrays(rows):
    x = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
    p = 1 / (1 + np.exp(-np.clip(x @ np.linspace(-1, 1, x.shape[1]), -30, 30)))
    return np.stack([p, 1 - p], axis=1)


def values_of(rows):
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), -1).sum(axis=1)


def failing(rows):
    raise KeyError("no such thing")


def quarrelsome(texts):
    """Raise an error for some inputs."""
    if any("bad" in str(text) for text in texts):
        raise ValueError("not this one \x1b[2J")
    return of_texts(texts)


def odd_answers(answer):
    """Return a model that always returns the same value."""
    return lambda rows: answer


@cache
def wrapped(name):
    """Return a model of a kind."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 4))
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    kinds = (rows[:, 0] > 0).astype(int)
    if name == "sklearn":
        from sklearn.linear_model import LogisticRegression

        return pertinent.wrap(LogisticRegression().fit(frame, kinds), background=frame)
    if name == "regressor":
        from sklearn.ensemble import HistGradientBoostingRegressor

        return pertinent.wrap(
            HistGradientBoostingRegressor(max_iter=3).fit(rows, rows[:, 1]), background=rows
        )
    if name == "pipeline":
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline

        made = make_pipeline(CountVectorizer(), MultinomialNB())
        return pertinent.wrap(made.fit(["so good", "not bad", "very good", "bad bad"], [1, 0, 1, 0]))
    if name == "transformer":
        return pertinent.wrap((tiny.model("bert"), tiny.tokenizer()))
    torch.manual_seed(0)
    if name == "image-module":
        layers = (torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        return pertinent.wrap(torch.nn.Sequential(*layers), kind="image")
    if name == "table-module":
        return pertinent.wrap(torch.nn.Linear(4, 3), kind="table")
    functions = {
        "text": (of_texts, {}),
        "text-of-kind": (of_texts, {"kind": "text"}),
        "image": (of_arrays, {"kind": "image"}),
        "table": (of_arrays, {"kind": "table"}),
        "table-background": (of_arrays, {"kind": "table", "background": frame}),
        "value": (values_of, {"kind": "table", "output": "value", "unit": "m"}),
        "failing": (failing, {}),
        "quarrelsome": (quarrelsome, {}),
    }
    function, options = functions[name]
    return pertinent.wrap(function, **options)


READS = dict.fromkeys(("transformer", "pipeline", "quarrelsome", "text-of-kind", "text"), "text")
READS |= dict.fromkeys(("image", "image-module"), "image")
READS |= dict.fromkeys(
    ("sklearn", "regressor", "table-module", "table", "table-background", "value"), "table"
)
GOOD = list(READS)
ANSWERS = [
    None,
    "yes",
    [],
    [[]],
    0.5,
    [[math.nan, 1.0]],
    [[math.inf, 0.0]],
    [["a", "b"]],
    [[0.5, 0.5], [0.5]],
    np.zeros((1, 2, 3)),
    {"a": 1},
    [{"a": 1.0}, {"b": 1.0}],
    [[2.0, 3.0]],
    object(),
    [[1 + 1j, 0]],
]

# -- inputs --------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["so", "good", "bad", "w1", "w2", "naïve", "日本", "\ud800", "\x1b[31m", "<b>", "…", "-"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
NUMBERS = st.one_of(st.floats(-5, 5), st.integers(-3, 3))
ROWS = st.lists(NUMBERS, min_size=4, max_size=4)
IMAGES = st.sampled_from([(1, 6, 6), (1, 6, 6), (6, 6), (6, 6, 1), (3, 4, 4), (1, 1, 1), (1, 9, 2)]).map(
    lambda shape: np.arange(math.prod(shape), dtype=np.float32).reshape(shape) / math.prod(shape)
)
ODD = [
    None,
    "",
    "   ",
    {},
    [],
    (),
    [[]],
    [None],
    pd.NA,
    float("nan"),
    math.inf,
    True,
    5,
    1 + 2j,
    b"bytes",
    object(),
    datetime(2020, 1, 1, tzinfo=UTC),
    [datetime(2020, 1, 1, tzinfo=UTC), 1.0, 2.0, 3.0],
    np.zeros((0, 4)),
    np.zeros((1, 0, 5)),
    np.zeros((2, 2, 2, 2)),
    np.full((4, 4), np.nan),
    np.array(3.0),
    np.array(["a", "b"]),
    np.zeros(4, dtype=complex),
    np.array([1, "a", None, 2.0], dtype=object),
    "\ud800",
    "a" * 300 + ".json",
    {"text": 5},
    {"query": "a", "document": ""},
    {"a": 1.0},
    {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5},
    {"a": math.nan, "b": 2, "c": 3, "d": None},
    ["so good", 5, None, ["a"], {}],
    [pd.DataFrame({"a": [1]})],
    pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]}),
    pd.DataFrame(),
    pd.Series([1.0, 2.0, 3.0, 4.0], index=list("abcd")),
    pd.Series(["so good", "not bad"]),
    pd.Series([], dtype=object),
    Path("nothing/here.png"),
    "nothing/here.png",
    [[1, 2], [3]],
    torch.zeros(4),
    torch.zeros(1, 6, 6),
    {1: 2, 2: 3},
    ["a" * 5000],
    range(4),
    (text for text in ["so good", "not bad"]),
    pertinent.Text("so good", "not bad"),
    ("so good", "not bad"),
    [math.inf, 1.0, 2.0, 3.0],
    [1e300, -1e300, 1e308, 0.0],
]
FORMS = {"text": ["text", "texts"], "table": ["row", "rows"], "image": ["image", "images"]}


@st.composite
def inputs(draw, kind):
    """Draw inputs, mostly of the kind that the model reads."""
    every = ["text", "texts", "row", "rows", "image", "images", "odd", "odd", "mixed", "mixed"]
    form = draw(st.sampled_from([*every, *8 * FORMS[READS.get(kind, "table")]]))
    if form == "text":
        return draw(TEXTS)
    if form == "texts":
        return draw(st.lists(TEXTS, min_size=0, max_size=4))
    if form == "row":
        return draw(
            st.one_of(ROWS, ROWS.map(np.array), ROWS.map(lambda row: dict(zip("abcd", row, strict=True))))
        )
    if form == "rows":
        rows = draw(st.lists(ROWS, min_size=1, max_size=4))
        return draw(st.sampled_from([rows, np.array(rows), pd.DataFrame(rows, columns=list("abcd"))]))
    if form == "image":
        return draw(IMAGES)
    if form == "images":
        return draw(st.lists(IMAGES, min_size=1, max_size=3))
    odd = draw(st.sampled_from(ODD))
    if form == "mixed":
        return [draw(TEXTS), odd, draw(ROWS), draw(IMAGES)]
    return odd


# -- settings ------------------------------------------------------------------------------------

STRANGE_NUMBERS = [1.5, math.nan, math.inf, -math.inf, -1, 0, True, 10**30, np.float64(0.3), np.int64(3)]
STRANGE_THINGS = [1 + 2j, "0.5", None, [], [0.5], (1, "a"), {}, "", b"x", np.array([0.5]), object()]
STRANGE_THINGS += [torch.tensor(3), np.array(["a", "b"]), np.array(1), "a" * 300, range(3), {"a"}]
STRANGE = st.sampled_from(STRANGE_NUMBERS + STRANGE_THINGS)
SMALL = st.integers(1, 40)
FEATURES = ["words", "tokens", "sentences", "patches:2", "pixels", "columns", "patches:0", "x", "patches:x"]
FEATURES += [[(0, 2), (3, 5)], [(3, 1)], np.zeros((6, 6), dtype=int), np.eye(6, dtype=int), np.ones((2, 2))]
SUITING = {"text": ["words", "sentences"], "image": ["patches:2", "pixels"], "table": ["columns"]}
METHODS = sorted(explainers.all())
REMOVALS = sorted(removals.all())
METRICS = sorted(metrics.all())


@st.composite
def options(draw, reads):
    """Draw arguments of `explain`, mostly valid ones."""
    sensible = {
        "target": st.sampled_from([0, 1, "1", 0, 1, np.int64(0), [0, 1], -1, 99]),
        "sparsity": st.sampled_from([0.2, 1, [0.1, 0.5], 1.0, 0.3, (0.5,), 0.0, 2]),
        "budget": st.sampled_from([1, 40, 60, 200, 200]),
        "removal": st.sampled_from(
            [*8 * removals.for_kind(reads), *REMOVALS, "background:rows=x", "nothing"]
        ),
        "features": st.sampled_from([*8 * SUITING[reads], *FEATURES]),
        "seed": st.integers(0, 3),
        "batch_size": SMALL,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(sensible)), max_size=3, unique=True))
    return {name: draw(STRANGE if draw(st.integers(0, 7)) == 7 else sensible[name]) for name in chosen}


@st.composite
def method_settings(draw, name):
    """Draw at most one setting of the method, of any type."""
    known = [f.name for f in fields(explainers.get(name)) if f.init]
    if not known or draw(st.integers(0, 4)) < 4:
        return {}
    name = draw(st.sampled_from([*known, "unheard_of"]))
    return {name: draw(st.one_of(STRANGE, SMALL, st.floats(0.01, 0.99)))}


@st.composite
def calls(draw):
    """Draw a public function with its arguments."""
    verb = draw(st.sampled_from([*6 * ["explain"], *VERBS]))
    kind = draw(st.sampled_from([*GOOD, *GOOD, "odd", "failing"]))
    model = odd_answers(draw(st.sampled_from(ANSWERS))) if kind == "odd" else wrapped(kind)
    method = draw(st.sampled_from(METHODS))
    settings = draw(method_settings(method))
    if not draw(st.integers(0, 20)):
        method, settings = draw(st.sampled_from(["no-such-method", None, 5, "", "lime"])), {}
    return Call(
        verb, model, draw(inputs(kind)), method, settings, draw(options(READS.get(kind, "table"))),
        draw(st.lists(st.sampled_from(METRICS), max_size=2)), draw(STRANGE), draw(STRANGE),
        draw(st.sampled_from(WRAP_OPTIONS)), draw(st.integers(0, 10**6)),
    )  # fmt: skip


WRAP_OPTIONS = ["output", "classes", "names", "unit", "kind", "background", "columns", "groups"]
WRAP_OPTIONS += ["max_length", "long_texts"]
QUIET = {"progress": False}


@dataclass
class Call:
    verb: str
    model: object
    inputs: object
    method: object
    settings: dict
    options: dict
    metrics: list
    odd: object
    other: object
    option: str
    size: int

    def subset(self, *names):
        """Return those of the options that a function accepts."""
        return {name: self.options[name] for name in names if name in self.options}


# -- running and checking ------------------------------------------------------------------------


def explain(call):
    options = {"budget": 60} | call.options | call.settings | QUIET
    check(pertinent.explain(call.model, call.inputs, call.method, **options), call.inputs)


def explain_iter(call):
    options = {"budget": 60} | call.options | call.settings | QUIET
    for result in pertinent.explain_iter(call.model, call.inputs, call.method, **options):
        check(result, call.inputs)


def compare(call):
    options = {"budget": 60} | call.options | QUIET
    methods = call.odd if call.other is None else [call.method, "leave-one-out"]
    check_table(pertinent.compare(call.model, call.inputs, methods, call.metrics, **options))


def evaluate(call):
    result = pertinent.explain(call.model, call.inputs, "leave-one-out", **QUIET)
    options = call.subset("removal", "seed", "batch_size")
    metrics = call.odd if call.other is None else call.metrics
    check_table(pertinent.evaluate(call.model, result, metrics, **options, **QUIET))


def check_removal(call):
    options = call.subset("features", "seed", "batch_size")
    if call.option == "kind":
        options |= {"labels": call.odd}
    if call.option == "unit":
        options |= {"shares": call.other}
    removal = call.options.get("removal")
    shown(pertinent.check_removal(call.model, call.inputs, removals=removal, draws=2, **options, **QUIET))


def stability(call):
    options = {"budget": 60, "seeds": 2} | call.options | call.settings | QUIET
    options.pop("seed", None)
    if call.option == "kind":
        options["seeds"] = call.odd
    result = pertinent.stability(call.model, call.inputs, call.method, **options)
    shown(result)
    result._repr_html_()
    result.to_dataframe()


def attack_radius(call):
    options = call.subset("features", "seed", "batch_size")
    arguments = {
        "classes": {"toward": call.odd},
        "names": {"sets": call.odd},
        "background": {"sets": [call.odd, call.other]},
        "groups": {"sets": [0, 1]},
        "columns": {"sets": [[], [0]], "norm": "linf"},
        "kind": {"algorithm": "pgd", "max_radius": call.odd},
        "output": {"algorithm": "decision" if call.metrics else "projection"},
        "unit": {"steps": call.odd, "norm": call.other} if call.metrics else {},
    }
    options |= arguments.get(call.option, {})
    result = pertinent.attack_radius(call.model, call.inputs, **({"steps": 2} | options), **QUIET)
    several = [result] if isinstance(result, pertinent.Attacked) else result
    if isinstance(several, pertinent.Attacks) and isinstance(call.inputs, list):
        indices = [one.index for one in result] + [failure.index for failure in result.failures]
        assert sorted(indices) == list(range(len(call.inputs))), f"{indices} came back"
        result.to_dataframe()
    for one in several:
        assert not np.isnan(one.radii).any()
        assert np.isfinite(one.changes).all()
        assert len(one.radii) == len(one.passes) == len(one.sets)
        repr(one)


def wrap(call):
    thing = call.odd if call.option == "unit" else of_arrays
    value = call.inputs if call.option in ("background", "columns", "groups", "classes") else call.other
    model = pertinent.wrap(thing, **{call.option: value})
    repr(model)
    check(pertinent.explain(model, call.inputs, "leave-one-out", **QUIET), call.inputs)


def load(call):
    setting = "dtype" if call.option == "unit" else "device"
    repr(pertinent.load(call.odd, **{setting: call.other}))


def read(call):
    pertinent.read(call.inputs if call.option == "kind" else call.odd)


def request(call):
    options = {name: value for name, value in call.options.items() if name != "batch_size"}
    made = pertinent.Request.from_method(call.method, call.settings, **options)
    assert made.fingerprint
    assert pertinent.Request.from_dict(made.to_dict()) == made


def fit(call):
    """Fit a learned method with an unusual setting, and explain."""
    names = sorted(learned_methods.all())
    name = names[call.size % len(names)]
    options = call.subset("features", "removal", "seed")
    options |= {"epochs": 1} | ({call.option: call.odd} if call.option in ("classes", "output") else {})
    fitted = pertinent.fit(call.model, call.inputs, name, **options, **QUIET)
    check(pertinent.explain(call.model, call.inputs, fitted, **QUIET), call.inputs)


def from_dict(call):
    """Read damaged plain data of results and requests."""
    draw = random.Random(call.size)
    if call.option in ("classes", "names"):
        plain = pertinent.Request.from_method(
            "kernel-shap", removal="constant", metrics=["deletion"]
        ).to_dict()
        assert pertinent.Request.from_dict(damaged(plain, draw)).fingerprint
        return
    if call.option == "kind":
        result = pertinent.check_removal(call.model, call.inputs, draws=2, **QUIET)
    else:
        result = pertinent.explain(call.model, call.inputs, "leave-one-out", **QUIET)
        result = pertinent.evaluate(call.model, result, **QUIET) if call.option == "unit" else result
    again = type(result).from_dict(damaged(result.to_dict(), draw))
    shown(again)
    again.to_dataframe()
    again.to_html()


def resumed(call):
    """Stop a run and continue it with the same or other arguments; results must not be mixed."""

    def stop(progress):
        if progress.done > call.size % 4:
            raise KeyboardInterrupt

    inputs = list(call.inputs) if isinstance(call.inputs, list | tuple) else [call.inputs]
    others = {"classes": inputs[:-1], "names": inputs[::-1], "unit": [*inputs, *inputs]}
    other = others.get(call.option, inputs)
    words = {"method": "leave-one-out", "batch_size": 2}
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run.parquet"
        with suppress(KeyboardInterrupt):
            pertinent.explain(call.model, inputs, **words, out=out, progress=stop)
        if call.option == "kind" and (journal := out.with_name("run.parquet.journal")).is_file():
            data = bytearray(journal.read_bytes())
            data[call.size % len(data)] ^= 1 + call.size % 255
            journal.write_bytes(data)
        if call.option == "output":
            words["method"] = "lime"
        result = pertinent.explain(call.model, other, **words, out=out, **QUIET)
        fresh = pertinent.explain(call.model, other, **words, **QUIET)
        if isinstance(fresh, pertinent.Explanation):  # the list was one input
            result, fresh = pertinent.Explanations([result]), pertinent.Explanations([fresh])
        assert [(e.index, e.features) for e in result] == [(e.index, e.features) for e in fresh]
        predictions = [[e.prediction.values for e in several] for several in (result, fresh)]
        np.testing.assert_allclose(*predictions, atol=1e-5)
        assert [f.index for f in result.failures] == [f.index for f in fresh.failures]


def ask_result(call):
    """Call the methods of a result that have arguments."""
    result = pertinent.explain(call.model, call.inputs, "shapley-sampling", **QUIET)
    if isinstance(result, pertinent.Explanations) and not len(result):
        return
    e = result if isinstance(result, pertinent.Explanation) else result[0]
    names = {"classes": e.top, "names": e.mask, "unit": e.for_class, "kind": e.plot, "output": result.save}
    if call.option in names:
        names[call.option](call.odd)
    elif call.option == "groups":
        e.heatmap()
    elif call.option == "columns":
        pertinent.save_report(result, call.odd, title=call.other)
    else:
        report(result, title=str(call.other))


VERBS = {
    f.__name__: f
    for f in (
        *(explain, explain_iter, compare, evaluate, check_removal, stability, attack_radius),
        *(wrap, load, read, request, ask_result, fit, from_dict, resumed),
        *(explain_prompt, explain_served),
    )
}


def check(result, raw):
    """Check that no input is lost, that there is no NaN, and that the result can be shown."""
    if isinstance(result, pertinent.Failure):
        assert result.reason
        return
    several = [result] if isinstance(result, pertinent.Explanation) else result
    if isinstance(result, pertinent.Explanations) and isinstance(raw, list):
        indices = [e.index for e in result] + [f.index for f in result.failures]
        assert sorted(indices) == list(range(len(raw))), f"{len(raw)} inputs, but {indices} came back"
    for e in several:
        for name in ("scores", "prediction.values", "base_values", "class_scores"):
            values = attrgetter(name)(e)
            assert values is None or np.isfinite(values).all(), f"{name} is {values}"
        assert len(e.scores) == len(e.features)
        e.to_html()
        repr(e)
        assert pertinent.Explanation.from_dict(e.to_dict()).features == e.features
    shown(result)
    result.to_json()
    result.to_dataframe()


def check_table(result):
    assert all(math.isfinite(row.value) for row in result.rows)
    shown(result)
    result._repr_html_()


def shown(thing):
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(thing)
    assert "\x1b[2J" not in console.file.getvalue()


def fuzz(n_calls, number, counts):
    """Make n calls; `counts` counts the results and collects other errors, each with an example."""

    @seed(number)
    @settings(
        max_examples=n_calls,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def attempt(call):
        counts["calls"] += 1
        try:
            VERBS[call.verb](call)
            counts["returned"] += 1
        except PertinentError as error:
            counts["refused"] += 1
            counts["silent"] += not str(error)
        except Exception as error:  # noqa: BLE001
            counts.note(error, call)

    attempt()


# -- damaged files -------------------------------------------------------------------------------


def good_files(folder):
    """Yield a file of every kind, the function that reads it, and whether it has a digest."""
    rows = np.random.default_rng(0).normal(size=(12, 4))
    model = wrapped("table-background")

    def stop(progress):
        if progress.done >= 6:
            raise KeyboardInterrupt

    words = {"method": "shapley-sampling", "samples": 4, **QUIET}
    result = pertinent.explain(model, [*rows, [1j, 0, 0, 0]], out=folder / "run.parquet", **words)
    result.save(folder / "found.json")
    result[:1].save(folder / "saved.parquet")
    pertinent.evaluate(model, result, **QUIET).save(folder / "evaluation.json")
    pertinent.check_removal(model, rows, draws=2, **QUIET).save(folder / "check.json")
    with suppress(KeyboardInterrupt):
        pertinent.explain(model, rows, out=folder / "begun.parquet", **(words | {"progress": stop}))
    pertinent.fit(model, rows, "fastshap", epochs=2, **QUIET).save(folder / "fitted")
    (folder / "request.json").write_text(json.dumps(pertinent.Request.from_method("lime", seed=3).to_dict()))

    def fitted(path):
        explainer = pertinent.load_explainer(path.parent)
        return pertinent.explain(model, rows[0], explainer, **QUIET).scores.tolist()

    def plain(path):
        return [{**e.to_dict(), "seconds": 0} for e in pertinent.read(path)]

    def request(path):
        return pertinent.Request.from_dict(read_json(path)).to_dict()

    def begun(path):
        """Return the explanations of an unfinished run; a truncated record may be missing."""
        return plain(path.with_suffix(""))

    yield from ((folder / name, plain, True) for name in ("run.parquet", "saved.parquet"))
    yield folder / "begun.parquet.journal", begun, True
    for name in ("model.safetensors", "config.json", "pertinent.json"):
        yield folder / "fitted" / name, fitted, True
    for name in ("found.json", "evaluation.json", "check.json"):
        yield folder / name, lambda path: pertinent.read(path).to_json(), False
    yield folder / "request.json", request, False
    yield from store_files(folder)


def fuzz_files(n_files, number, counts):
    """Damage and read n files."""
    draw = random.Random(number)
    with TemporaryDirectory() as name:
        files = list(good_files(Path(name)))
        originals = [read(path) for path, read, _ in files]
        for turn in range(n_files):
            path, read, has_digest = files[turn % len(files)]
            data = path.read_bytes()
            path.write_bytes(damaged_bytes(data, draw))
            counts["files"] += 1
            try:
                again, good = read(path), originals[turn % len(files)]
                same = again == good or (isinstance(good, list) and all(each in good for each in again))
                assert same or not has_digest, f"{path.name} changed without a word"
            except PertinentError as error:
                counts["files refused"] += 1
                counts["silent"] += not str(error)
            except Exception as error:  # noqa: BLE001
                counts.note(error, f"{path.name}, turn {turn}")
            finally:
                path.write_bytes(data)


def damaged_bytes(data, draw):
    """Return the data with a flipped bit, some random bytes, or a truncated end."""
    changed = bytearray(data)
    kind = draw.random()
    if kind < 0.6:
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind < 0.9:
        for _ in range(draw.choice((1, 8, 64))):
            changed[draw.randrange(len(data))] = draw.randrange(256)
    else:
        del changed[draw.randrange(len(data)) :]
    return bytes(changed)


class Counts(Counter):
    """Counts of the outcomes of a fuzz; `errors` has an example of each error that is no `PertinentError`."""

    def __init__(self):
        super().__init__()
        self.errors = {}

    def note(self, error, example):
        """Record an error by its type and line."""
        line = traceback.extract_tb(error.__traceback__)[-1]
        key = f"{type(error).__name__} at {Path(line.filename).name}:{line.lineno}: {str(error)[:100]}"
        self.errors.setdefault(key, (example, "".join(traceback.format_exception(error))))


def main(description, n, **fuzzes):
    """Run the fuzzes by the arguments of the command line; return whether there were unexpected errors."""
    parser = argparse.ArgumentParser(description=description)
    for name in fuzzes:
        parser.add_argument(f"--{name}", type=int, default=n)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print a traceback of each error")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts = Counts()
    start = time.perf_counter()
    for name, run in fuzzes.items():
        if getattr(args, name):
            run(getattr(args, name), args.seed, counts)
    for key, (example, trace) in counts.errors.items():
        print(f"\n{key}\n    {str(example)[:1500]}")  # noqa: T201
        if args.show:
            print(trace[-2500:])  # noqa: T201
    numbers = ", ".join(f"{key}: {n}" for key, n in counts.items())
    seconds = time.perf_counter() - start
    print(f"{seconds:.0f} s; {numbers}; {len(counts.errors)} lines with unexpected errors")  # noqa: T201
    return bool(counts.errors)


if __name__ == "__main__":
    sys.exit(main(__doc__, 10_000, calls=fuzz, files=fuzz_files))
