"""Export of explanations to data frames, shap and heat maps."""

import json
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import pertinent
from pertinent.errors import SettingError
from pertinent.results.explanation import Explanation
from tests.stubs import sentiment

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # from the import of shap
    import shap

mpl.use("Agg")

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 60, 70, 80],
        "job": ["clerk", "cook", None, "cook", "clerk", "nurse"],
        "size": [1.5, np.nan, 2.5, 1.0, 0.5, 3.0],
    }
)
NUMBERS = FRAME[["age", "size"]].fillna(0.0)


def by_age(rows):
    p = (rows["age"].to_numpy(dtype=float) - 20) / 80
    return np.stack([1 - p, p], axis=1)


def by_pixel(images):
    p = images[:, :, 0, 0].mean(axis=1) / 2
    return np.stack([1 - p, p], axis=1)


def rows(frame=FRAME, method="exact-shapley", **options):
    return pertinent.explain(pertinent.wrap(by_age, background=frame, **options), frame, method)


def texts(method="kernel-shap"):
    return pertinent.explain(sentiment, ["so bad, really", "so good", "not bad"], method)


def images(shape=(3, 8, 8), n=2):
    model = pertinent.wrap(by_pixel, kind="image")
    return pertinent.explain(
        model, [np.linspace(1, 0, np.prod(shape)).reshape(shape) / (i + 1) for i in range(n)], "leave-one-out"
    )


@pytest.fixture(autouse=True)
def closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_a_frame_of_rows():
    result = rows()
    frame = result.to_dataframe()
    assert list(frame) == [
        "input", "method", "target", "prediction", "feature", "value", "score", "standard_error",
    ]  # fmt: skip
    assert frame["input"].tolist() == [i for i in range(6) for _ in range(3)]
    assert frame["value"][:3].tolist() == [30, "clerk", 1.5]
    assert pd.isna(frame["value"][4:6].tolist()).tolist() == [False, True]
    assert frame["prediction"][0] == result[0].prediction.values[result[0].target]
    pd.testing.assert_frame_equal(
        result[1].to_dataframe()["input"].to_frame(), pd.DataFrame({"input": [1] * 3})
    )


def test_a_frame_of_texts_and_images():
    frame = texts().to_dataframe()
    assert frame["value"].tolist() == frame["feature"].tolist()
    assert set(images().to_dataframe()["value"]) == {None}


def test_a_group_of_columns_is_one_value():
    encoded = pd.DataFrame({"age": [30.0, 40.0], "red": [0, 1], "blue": [1, 0]})
    result = rows(encoded, groups={"colour": ["red", "blue"]})
    assert result[0].to_dataframe()["value"].tolist() == [30.0, "blue=1"]
    assert result.to_shap().data[1].tolist() == [40.0, "red=1"]


def test_frames_have_the_index_and_id_of_inputs():
    result = pertinent.explain(sentiment, ["bad", "", "bad"], "leave-one-out")
    frame = result.to_dataframe()
    assert frame["input"].tolist() == [0, 2] and "id" not in frame
    named = pertinent.Explanations([replace(result[0], id="order-17"), result[1]]).to_dataframe()
    assert list(named)[:3] == ["input", "id", "method"]
    assert named["id"][0] == "order-17" and pd.isna(named["id"][1])


def test_sets_are_columns():
    frame = texts("exhaustive-search").to_dataframe()
    assert frame["chosen at 0.5"].dtype == bool


@pytest.mark.parametrize("method", ["exact-shapley", "leave-one-out", "lime"])
@pytest.mark.parametrize("frame", [FRAME, NUMBERS], ids=["mixed", "numbers"])
def test_shap_plots_rows(frame, method):
    result = rows(frame, method)
    many = result.to_shap()
    assert many.values.shape == frame.shape and many.feature_names == list(frame)
    ends = many.base_values + many.values.sum(axis=1)
    np.testing.assert_allclose(ends, [e.prediction.values[1] for e in result])
    shap.plots.beeswarm(many, show=False)
    shap.plots.bar(many, show=False)
    shap.plots.heatmap(many, show=False)
    shap.plots.waterfall(many[0], show=False)
    shap.plots.waterfall(result[0].to_shap(), show=False)
    shap.plots.bar(result[0].to_shap(), show=False)
    assert result[-1].target == 1
    np.testing.assert_array_equal(many[-1].values, result[-1].to_shap().values)
    assert many[-1].base_values == result[-1].to_shap().base_values


def test_shap_plots_texts():
    result = texts()
    one = result[0].to_shap()
    assert one.data.tolist() == ["so ", "bad", ", ", "really"]
    assert one.feature_names == ["so", "bad", ",", "really"]
    assert "really" in shap.plots.text(one, display=False)
    shap.plots.waterfall(one, show=False)
    many = result.to_shap()
    assert [len(values) for values in many.values] == [4, 2, 2]
    assert "really" in shap.plots.text(many, display=False)
    alike = pertinent.Explanations(result[1:]).to_shap()
    assert "good" in shap.plots.text(alike, display=False)
    pair = pertinent.explain(lambda pairs: [[0.5, 0.5]] * len(pairs), ("a b", "c d"), "leave-one-out")
    assert pair.to_shap().data.tolist() == ["a ", "b", "c ", "d"]


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 6, 9)])
def test_shap_plots_images(shape):
    result = images(shape)
    one = result[0].to_shap()
    assert one.values.shape == one.data.shape == (*shape[1:], shape[0])
    assert one.values.sum() == pytest.approx(result[0].scores.sum())
    shap.plots.image(one, show=False)
    shap.plots.image(result.to_shap(), show=False)
    together = pertinent.Explanations([*result, *images((shape[0], 4, 4))])
    assert together.to_shap().values[2].shape == (4, 4, shape[0])


def test_empty_explanations_are_refused():
    with pytest.raises(SettingError, match="at least one"):
        pertinent.Explanations([]).to_shap()
    assert len(pertinent.Explanations([]).to_dataframe()) == 0


def test_heat_maps():
    e = images()[0]
    heat = e.heatmap()
    assert heat.shape == (8, 8) and heat[0, 0] == e.scores[0] == heat.min() < 0
    for other, kind in ((texts()[0], "text"), (rows()[0], "table")):
        with pytest.raises(SettingError, match=f"the input is of kind {kind}: use `scores`"):
            other.heatmap()


def test_missing_values_are_saved(tmp_path):
    result = rows()
    assert json.loads(result[2].to_json())["input"]["values"] == [50, None, 2.5]
    result.save(tmp_path / "e.parquet")
    model = pertinent.wrap(by_age, background=FRAME)
    again = pertinent.read(tmp_path / "e.parquet")
    measured = pertinent.evaluate(model, again)
    assert not measured.failures
    assert measured.mean("exact-shapley", "sufficiency") == pertinent.evaluate(model, result).mean(
        "exact-shapley", "sufficiency"
    )
    assert [e.input.value_texts() for e in again] == [e.input.value_texts() for e in result]


def test_json_names_the_target():
    model = pertinent.wrap(lambda texts: [[0.3, 0.7] for _ in texts], classes=["no", "yes"])
    e = pertinent.explain(model, "a b", "leave-one-out")
    assert json.loads(e.to_json())["target_name"] == "yes"
    assert Explanation.from_dict(json.loads(e.for_class("no").to_json())).target_name == "no"
