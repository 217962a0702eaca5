"""Present and absent features are shown apart: in the terminal, in HTML and in plots."""

from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console
from tests.explanations import changed

import pertinent
from pertinent.rendering import wording as say
from pertinent.rendering.colours import LIGHT
from pertinent.rendering.panels import panel


class Cross(torch.nn.Module):
    """White above speaks for the first class, white below for the second."""

    def forward(self, x):
        rows = x.reshape(len(x), 2, -1).sum(dim=2)
        return torch.stack([4 * rows[:, 0] - 3 * rows[:, 1] - 1, torch.zeros(len(x))], dim=1)


def explained(kind, **options):
    model = pertinent.wrap(Cross(), kind=kind, output="logit", classes=["up", "<down> $x$"])
    values = np.array([1.0, 1.0, 0.0, 0.0])
    raw = values.reshape(1, 2, 2) if kind == "image" else values
    features = "pixels" if kind == "image" else None
    return pertinent.explain(model, raw, "counterfactual", features=features, progress=False, **options)


def printed(e, **options):
    console = Console(width=100, record=True, file=StringIO(), **options)
    console.print(e)
    return console.export_text()


def test_heat_is_above_zero_where_present_and_below_where_absent():
    e = explained("image")
    found = panel(e).share[e.input.labels]
    assert (found[0] > 0).all()
    assert (found[1] < 0).all()


@pytest.mark.parametrize("colour", ["truecolor", None])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("image", ("present, must go for", "absent, must appear for", "must go", "must come")),
        ("table", ("towards its absent value for", "away from its absent value for", "towards", "away")),
    ],
)
def test_in_the_terminal(kind, words, colour):
    shown = printed(explained(kind), color_system=colour, force_terminal=colour is not None)
    lines = [line for line in shown.splitlines() if "pixel at" in line or "column" in line]
    assert all(word in shown for word in words)
    assert "another class" in shown
    assert sum(words[2] in line for line in lines) == 2
    assert sum(words[3] in line for line in lines) == 2


def test_the_class_aimed_at_is_named():
    for toward in (1, "<down> $x$"):
        e = explained("image", toward=toward)
        assert say.directions(e) == ("present, must go for <down> $x$", "absent, must appear for <down> $x$")
        page = e.to_html()
        assert "present, must go for &lt;down&gt; $x$" in page
        assert "<down>" not in page


@pytest.mark.parametrize("kind", ["image", "table"])
def test_in_html(kind):
    page = explained(kind).to_html()
    support, against = say.directions(explained(kind))
    assert f'<i class="key"></i> {support}' in page
    assert f'<i class="key against"></i> {against}' in page
    assert page.count('<i class="support"') == 2
    assert page.count('<i class="against"') == 2
    assert 'class="scale' not in page
    assert "What would have to change for <strong>another class</strong>" in page


@pytest.mark.parametrize("kind", ["image", "table"])
def test_in_plots(kind):
    from matplotlib.colors import to_hex

    e = explained(kind)
    figure = e.plot()
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == list(say.directions(e))
    assert [to_hex(patch.get_facecolor()) for patch in key.get_patches()] == [LIGHT.support, LIGHT.against]
    if kind == "table":
        bars = {
            name.get_text(): to_hex(bar.get_facecolor())
            for name, bar in zip(figure.axes[0].get_yticklabels(), figure.axes[0].patches, strict=True)
        }
        towards = {name for name, colour in bars.items() if colour == LIGHT.support}
        assert towards == {"column 0 = 1", "column 1 = 1"}
    figure.canvas.draw()


@pytest.mark.parametrize("method", ["counterfactual", "greedy"])
def test_attacks_on_texts_do_not_speak_for_a_class(method):
    e = pertinent.explain(pertinent.load("sentiment"), "slow but wonderful", method, progress=False)
    assert say.directions(e) == ("needed by an attack", "not needed by an attack")
    for shown in (printed(e), e.to_html()):
        assert "needed by an attack" in shown
        assert "opposes" not in shown


def test_other_explanations_are_as_they_were():
    model = pertinent.wrap(Cross(), kind="table", output="logit", classes=["up", "down"])
    e = pertinent.explain(model, np.array([1.0, 1.0, 0.5, 0.0]), "leave-one-out", progress=False)
    assert e.pertinence is None
    assert say.directions(e) == ("supports up", "opposes up")
    assert "must" not in printed(e)
    assert e.plot().legends == []


@pytest.mark.parametrize(
    ("toward", "named"), [(1, "b"), ("1", "b"), ("b", "b"), (None, "another class"), (7, "7"), ([1], "[1]")]
)
def test_the_aim_of_an_attack_is_named(toward, named):
    model = pertinent.wrap(lambda texts: [[0.6, 0.4] for _ in texts], kind="text", classes=["a", "b"])
    e = pertinent.explain(model, "some text", "leave-one-out", progress=False)
    assert say.attack_target(changed(e, settings={"toward": toward})) == named
