"""A modality from outside the package, that of docs/examples, does what the built-in ones do."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from rich.console import Console

import pertinent
from pertinent.cli import main
from pertinent.errors import InputError, SettingError
from pertinent.inputs.modality import modalities, modality_named
from pertinent.removals import removals
from pertinent.rendering.colours import LIGHT

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "time_series.py"
TIME = np.arange(120)
SERIES = np.sin(TIME / 9) / 2 + 2.5 * np.exp(-(((TIME - 72) / 2) ** 2))
QUIET = {"progress": False}


@pytest.fixture(scope="module")
def example():
    kept = [(registry, dict(registry.all())) for registry in (modalities, removals)]
    spec = spec_from_file_location("time_series", EXAMPLE)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
    for registry, classes in kept:
        registry._classes = classes
    modality_named.cache_clear()


@pytest.fixture
def model(example):
    return pertinent.wrap(example.pulse, kind="time-series", classes=["calm", "pulse"])


class Height(torch.nn.Module):
    def forward(self, x):
        height = (x - x.mean(dim=1, keepdim=True)).abs().amax(dim=1)
        return torch.stack([torch.full_like(height, 3.0), 4 * height - 3], dim=1)


def test_it_is_saved_read_and_drawn(example, tmp_path):
    e = example.main(tmp_path)
    assert e.input.kind == "time-series"
    page = (tmp_path / "series.html").read_text(encoding="utf-8")
    picture = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
    shades = [part.get("fill") for part in ET.fromstring(picture).findall("rect")]
    assert len(shades) == 12
    assert shades[e.ranking[0]] == LIGHT.support
    figure = e.plot()
    assert [len(axes.lines) > 0 or len(axes.patches) > 0 for axes in figure.axes] == [True, True]
    for colour in ("truecolor", None):
        console = Console(file=StringIO(), color_system=colour, width=60, force_terminal=True)
        console.print(e)
        shown = console.file.getvalue()
        assert "█" in shown
        assert ("####" in shown) == (colour is None)
    report = tmp_path / "report.html"
    pertinent.save_report([e], report)
    assert "<svg" in report.read_text(encoding="utf-8")
    assert len(e.by_class().plot().axes) == 2


def test_several_series_are_several_inputs_and_may_differ_in_length(model):
    by_stack = pertinent.explain(model, np.stack([SERIES, np.roll(SERIES, 20)]), method="lime", **QUIET)
    assert [e.top(1)[0][0] for e in by_stack] == ["70–79", "90–99"]
    by_list = pertinent.explain(model, [SERIES, SERIES[:100]], method="leave-one-out", **QUIET)
    assert [len(e.input.values) for e in by_list] == [120, 100]
    assert by_list.to_dataframe()["value"].iloc[0] == pytest.approx(SERIES[:10].mean())


@pytest.mark.parametrize("removal", ["interpolation", "mean", "constant", "uniform-noise:low=0,high=0.1"])
def test_removals_that_fill_arrays_suit_it(model, removal):
    e = pertinent.explain(model, SERIES, method="leave-one-out", removal=removal, **QUIET)
    assert e.top(1)[0][0] == "70–79"
    assert "time-series" in removals.parse(removal).kinds()


def test_removals_of_other_kinds_do_not(model):
    with pytest.raises(SettingError, match="'blur' supports image, but the input is time-series"):
        pertinent.explain(model, SERIES, removal="blur", **QUIET)


def test_gradients_attacks_and_neighbours_follow_its_values(example, model):
    del example
    module = pertinent.wrap(Height(), kind="time-series", classes=["calm", "pulse"], output="logit")
    for method in ("integrated-gradients", "expected-gradients", "counterfactual"):
        assert pertinent.explain(module, SERIES, method, **QUIET).top(1)[0][0] == "70–79"
    attacked = pertinent.attack_radius(module, SERIES, **QUIET)
    assert attacked.succeeded.all()
    assert attacked.perturbed.shape == (1, 120)
    found = pertinent.sensitivity(model, [SERIES], "leave-one-out", sparsity=0.05, samples=3, **QUIET)
    assert found.mean("leave-one-out", "set-sensitivity") == 0


def test_a_modality_without_a_network_cannot_be_learned(model):
    with pytest.raises(InputError, match="has no `scorer`"):
        pertinent.fit(model, [SERIES + i / 100 for i in range(20)], method="amortized-shapley", **QUIET)


def test_the_command_line_reads_it_for_a_model_of_the_users_own(example, tmp_path, monkeypatch, capsys):
    del example
    own = (
        "from time_series import pulse\nimport pertinent\nmodel = pertinent.wrap(pulse, kind='time-series')\n"
    )
    (tmp_path / "own_series_model.py").write_text(own)
    (tmp_path / "series.jsonl").write_text("\n".join(json.dumps(list(SERIES[:n])) for n in (120, 100)))
    monkeypatch.syspath_prepend(tmp_path)
    explain = ["explain", "--model", "own_series_model:model", "--quiet", "--method", "leave-one-out"]
    for given in (["--row", json.dumps(list(SERIES))], ["--file", str(tmp_path / "series.jsonl")]):
        assert main([*explain, *given, "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main([*explain, "a text"]) != 0
    assert "reads time-series inputs: pass --row JSON, or --file" in capsys.readouterr().err


def test_a_saved_series_needs_its_modality_to_be_read(model, monkeypatch):
    plain = pertinent.explain(model, SERIES, method="leave-one-out", **QUIET).to_dict()
    assert pertinent.Explanation.from_dict(plain).input.features_argument == "segments:12"
    known = {name: cls for name, cls in modalities.all().items() if name != "time-series"}
    monkeypatch.setattr(modalities, "_classes", known)
    with pytest.raises(
        InputError, match="`kind` must be one of image, prompt, table, text, but got 'time-series'"
    ):
        pertinent.Explanation.from_dict(plain)


def test_it_works_on_the_page(example, model):
    from tests.app.browser import chromium, new_page
    from tests.app.served import TOKEN, serving, site

    values = " ".join(f"{value:.3f}" for value in SERIES)
    with (
        serving(site({"series": model}).app(TOKEN)) as address,
        chromium() as browser,
        new_page(browser, viewport={"width": 1280, "height": 800}) as page,
    ):
        page.goto(f"{address}/?token={TOKEN}")
        page.fill("[name=values]", values)
        page.click(".go")
        page.wait_for_selector(".status:has-text('Done:')")
        best = page.locator("svg [data-features='7']")
        assert best.get_attribute("fill") == LIGHT.support
        assert page.locator(".bars tr").first.inner_text().startswith("70–79")
        best.click()
        page.wait_for_selector("text=Without “70–79”. The prediction changes to calm.")
        page.select_option("[name=removal]", "mean", force=True)
        page.fill("[name=values]", "[1, 2, oops]")
        page.click(".go")
        page.wait_for_selector(".status.error:has-text('`values` must be numbers or JSON')")


def test_it_works_in_a_study(example, model, tmp_path):
    from pertinent.app.study_site import StudySite
    from pertinent.study.answers import Answers
    from tests.app.browser import chromium, new_page
    from tests.app.served import TOKEN, serving

    series = [np.roll(SERIES, 10 * i) for i in range(4)]
    compared = pertinent.compare(model, series, ["leave-one-out", "random"], **QUIET)
    explanations = pertinent.Explanations(compared.explanations)
    study = pertinent.create_study(explanations, tmp_path / "study", top=2, checks=0)
    with (
        serving(StudySite(study).app(TOKEN)) as address,
        chromium() as browser,
        new_page(browser, viewport={"width": 600, "height": 700}) as page,
    ):
        page.goto(f"{address}/?token={TOKEN}")
        page.fill("[name=name]", "Ada")
        page.click("text=Begin")
        for i in range(4):
            page.wait_for_selector(f"text=Question {i + 1} of 4")
            if page.locator("text=No segment matters").count():
                page.locator(".look label").nth(5).click()
            else:
                page.locator("[name=answer]").first.check()
            page.click("text=Next")
        page.wait_for_selector("text=Thank you, Ada!")
    person = Answers(study).person("Ada")
    marked = [a for q, a in zip(person.questions, person.answers, strict=True) if q.kind == "mark"]
    assert marked == [[5]]
