"""Flags, types, ranges and help come from the signatures and docstrings of the public functions."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

import pytest

import pertinent
from pertinent.cli.cluster_flags import ClusterFlags
from pertinent.cli.command_output import CommandOutput
from pertinent.cli.commands import COMMANDS, ELSEWHERE, READERS
from pertinent.cli.input_flags import InputFlags
from pertinent.cli.loading import ModelFlags
from pertinent.cli.parser import command_parser
from pertinent.cli.signatures import options_of, parameter_texts, summary_of, texts
from pertinent.config.settings import Count, ProperShare
from pertinent.errors import SettingError

NO_COMMAND = {
    "adapt": "methods of a description, as package.module:name",
    "benchmark": "`pertinent benchmark --file`, which reads a description",
    "estimate_requests": "Python, where the model is wrapped",
    "explain_iter": "`pertinent explain --out` keeps each explanation as it is finished",
    "load": "--model NAME",
    "load_explainer": "--method FOLDER",
    "read": "`pertinent evaluate FILE`",
    "save_report": "--html PATH",
    "wrap": "--model package.module:name",
    "wrap_endpoint": "--model ADDRESS#NAME, or package.module:name, which calls it",
}
"""Public functions without a command, and the replacement on the command line."""

FUNCTIONS = [name for name in pertinent.__all__ if not inspect.isclass(getattr(pertinent, name))]
VERBS = {name: command for name, command in COMMANDS.items() if command.function is not None}
TERMINAL_ONLY = {
    *inspect.signature(InputFlags).parameters,
    *inspect.signature(ModelFlags).parameters,
    *inspect.signature(ClusterFlags).parameters,
    *inspect.signature(CommandOutput).parameters,
    "help",
    "debug",
    "set",
}


def flags(name):
    """Return the actions of a command by the name of the flag."""
    return {action.dest: action for action in command_parser(name)._actions}


def parameters(command):
    """Return the parameters of a command's function; ``**words`` stands for parameters of `explain`."""
    if command.function is None:
        return {}
    own = dict(inspect.signature(getattr(pertinent, command.function)).parameters)
    if "words" in own:
        words = inspect.signature(pertinent.Request.from_method).parameters
        own |= {name: words[name] for name in words if name not in ("method", "settings", "metrics")} | own
    return own


# -- every function has its command, every parameter its flag --------------------------------------


def test_every_public_function_is_a_command_or_has_a_reason_not_to_be():
    commands = {command.function for command in VERBS.values()}
    assert commands | set(NO_COMMAND) == set(FUNCTIONS)
    assert not commands & set(NO_COMMAND)
    assert all(NO_COMMAND.values())


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_is_a_flag_or_is_given_in_a_way_that_is_named(name):
    elsewhere = {**ELSEWHERE, **VERBS[name].elsewhere}
    for parameter in parameters(VERBS[name]):
        assert parameter in flags(name) or elsewhere[parameter], parameter


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_is_a_parameter_or_is_named_as_the_terminals_own(name):
    command = COMMANDS[name]
    own = inspect.signature(resolve_name(f"pertinent.cli.{command.runs}")).parameters
    known = {*parameters(command), *own, *TERMINAL_ONLY}
    assert not {*flags(name)} - known


@pytest.mark.parametrize("name", VERBS)
def test_defaults_and_choices_are_those_of_python(name):
    result = flags(name)
    for parameter in set(parameters(VERBS[name])) & set(result) - {*ELSEWHERE}:
        default = VERBS[name].defaults.get(parameter, parameters(VERBS[name])[parameter].default)
        action = result[parameter]
        assert action.required or action.default in (default, None), parameter
        assert action.required == (default is inspect.Parameter.empty or parameter in VERBS[name].required)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_says_what_it_is_for(name):
    for dest, action in flags(name).items():
        assert action.help and len(action.help) > 5, dest
        assert "`explain`" not in action.help and "As in" not in action.help, dest
    assert f"  {name} " in texts()["commands"]


def test_parameters_that_are_read_are_parameters():
    every = {parameter for command in VERBS.values() for parameter in parameters(command)}
    assert set(READERS) <= every


# -- from a signature ------------------------------------------------------------------------------


def example(
    rows: Any,
    *,
    count: Count = 3,
    share: ProperShare | Sequence[ProperShare] = (0.2, 0.5),
    norm: Literal["l2", "linf"] = "l2",
    names: Sequence[str] | None = None,
    fast: bool = False,
    checked: bool = True,
    out: Path | None = None,
    mark: Annotated[str, "MARK"] = "",
    options: Mapping[str, Any] | None = None,
    budget: Count | None = None,
) -> None:
    """Do something, see `list_methods()`.

    More about it, with :math:`x` in it.

    Parameters
    ----------
    rows
        What to read. It has lines.
    count, share
        How many of ``"these"``, at most 100% of Hase et al. 2021. By default three.
    norm
        Of `rows`: ``"l2"`` or ``"linf"``.
    checked
        Check them.
    budget
        As in `explain`.
    """


OPTIONS = {option.name: option for option in options_of(example, {"rows"})}


def test_help_is_the_first_sentence_and_the_default():
    assert OPTIONS["count"].help == "how many of these, at most 100%% of Hase et al. 2021 (3)"
    assert OPTIONS["norm"].help == "of --rows: l2 or linf (l2)"
    assert OPTIONS["share"].help.endswith("2021 (0.2,0.5)")
    assert (OPTIONS["checked"].flag, OPTIONS["checked"].help) == ("--no-checked", "do not check them")
    assert OPTIONS["budget"].text == parameter_texts(pertinent.explain)["budget"]
    assert summary_of(example) == ["Do something, see `pertinent methods`."]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "7", 7),
        ("share", ".3", (0.3,)),
        ("share", ".3,.4", (0.3, 0.4)),
        ("norm", "linf", "linf"),
        ("names", "a, b", ("a", "b")),
        ("names", "none", None),
        ("out", "a.txt", Path("a.txt")),
        ("mark", "x", "x"),
        ("options", ["a=1", "b=c"], {"a": 1, "b": "c"}),
    ],
)
def test_texts_are_read_as_the_declared_type(name, text, value):
    assert OPTIONS[name].convert(text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "0", "`--count` must be at least 1, but got 0"),
        ("count", "many", "`--count` must be a whole number, but got 'many'"),
        ("share", ".3,2", "`--share` must be above 0 and below 1"),
        ("norm", "lnf", "Did you mean 'linf'"),
        ("options", ["a"], "--options must be NAME=VALUE"),
    ],
)
def test_what_the_range_or_the_choices_do_not_allow_is_named(name, text, message):
    with pytest.raises(SettingError, match=message):
        OPTIONS[name].convert(text)


def test_metavars_come_from_types():
    shown = {option.name: option._metavar for option in OPTIONS.values()}
    assert shown | {"fast": "", "checked": ""} == {
        "count": "N",
        "share": "X,X,…",
        "norm": "{l2,linf}",
        "names": "A,B,…",
        "fast": "",
        "checked": "",
        "out": "PATH",
        "mark": "MARK",
        "options": "NAME=VALUE",
        "budget": "N",
    }
