"""Removal checks: rows, verdicts, recommendations, files and displays."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import pertinent
from pertinent.cli import main
from pertinent.diagnostics.check_removal import majority, random_masks
from pertinent.diagnostics.removal_check import AblatedInput, RemovalCheck
from pertinent.errors import FileError, InputError, SettingError
from pertinent.inputs.background import Background
from pertinent.inputs.table import table_input
from pertinent.outputs import column_index
from pertinent.removals import Constant, FromBackground
from pertinent.rendering.html.page import report
from pertinent.results.failures import Failure
from tests import tiny
from tests.stubs import printed

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
TEXTS = [" ".join(np.random.default_rng(i).permutation(WORDS)) for i in range(40)]


def enough_words(texts):
    """Return class 1 for texts with at least half of the ten words, with uncertain probabilities."""
    n = [sum(word in WORDS for word in text.split()) for text in texts]
    return [[0.1, 0.9] if count >= 5 else [0.8, 0.2] for count in n]


def afraid_of_masks(texts):
    """Return class 1, except for texts with a mask token."""
    return [[0.7, 0.3] if "[MASK]" in text else [0.1, 0.9] for text in texts]


def rows_of(check, removal, share):
    return [row for row in check.rows if (row.removal, row.share) == (removal, share)]


# -- masks and votes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "share", "removed"),
    [
        *[(10, 0.2, 2), (10, 0.5, 5), (10, 0.8, 8), (5, 0.5, 3), (7, 0.2, 1), (50, 0.29, 15), (30, 0.1, 3)],
        *[(2, 0.2, 1), (2, 0.8, 1), (3, 0.99, 2), (3, 0.01, 1)],
    ],
)
def test_masks_remove_exactly_the_share(d, share, removed):
    given = table_input(np.arange(d, dtype=float))
    masks = random_masks(given, share, 25, seed=3)
    assert masks.dtype == bool
    assert set((~masks).sum(axis=1)) == {removed}


def test_masks_are_uniform_over_subsets():
    masks = random_masks(table_input(np.arange(5.0)), 0.4, 20_000, seed=0)
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    for mask in masks:
        counts[tuple(np.flatnonzero(~mask).tolist())] += 1
    expected = 20_000 / 10
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 27.9  # χ² with 9 degrees, 0.1%


def test_masks_depend_on_seed_and_input_and_fewer_draws_are_a_prefix():
    one, other = table_input(np.arange(9.0)), table_input(np.ones(9))
    masks = random_masks(one, 0.5, 10, seed=0)
    np.testing.assert_array_equal(masks[:4], random_masks(one, 0.5, 4, seed=0))
    assert (masks != random_masks(one, 0.5, 10, seed=1)).any()
    assert (masks != random_masks(other, 0.5, 10, seed=0)).any()


def test_majority_counts_votes_not_probability():
    assert majority(np.array([[0.6, 0.4], [0.6, 0.4], [0.0, 1.0]])) == 0


def test_ties_are_decided_by_mean_probability_then_by_order():
    assert majority(np.array([[0.6, 0.4], [0.1, 0.9]])) == 1
    assert majority(np.array([[0.9, 0.1], [0.4, 0.6]])) == 0
    assert majority(np.array([[0.7, 0.3], [0.3, 0.7]])) == 0
    # Class 2 is likely in all rows, but never the most likely.
    assert majority(np.array([[0.52, 0.0, 0.48], [0.0, 0.51, 0.49]])) == 0


def test_labels():
    classes = ("no", "yes", "7")
    result = [
        column_index(t, classes, "label")
        for t in ("yes", 1, 1.0, np.int64(1), "1", "7", np.float32(2.0), True)
    ]
    assert result == [1, 1, 1, 1, 1, 2, 2, 1]
    for bad in ("maybe", "-1"):
        with pytest.raises(SettingError, match=f"Unknown label '{bad}'"):
            column_index(bad, classes, "label")
    for bad in (3, -1, "3"):
        with pytest.raises(SettingError, match="`label` must be a name or a number from 0 to 2, but got "):
            column_index(bad, classes, "label")
    for bad in (1.5, float("nan"), float("inf"), None, [1]):
        with pytest.raises(InputError, match="A label must be a name or an index, but got "):
            column_index(bad, classes, "label")


# -- what is counted ---------------------------------------------------------------------------


def test_rows_equal_values_computed_by_hand():
    weights = np.array([2.0, -1.0, 0.5, 1.5, -0.7, 0.3])
    truth, shares = [1, 0, 1], (0.3, 0.7)
    inputs = np.random.default_rng(0).normal(size=(3, 6))

    def probabilities(rows):
        p = 1 / (1 + np.exp(-(np.asarray(rows) @ weights)))
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(probabilities, kind="table")
    check = pertinent.check_removal(
        model, inputs, truth, removals=["constant", Constant(value=2.0)], shares=shares, draws=7, seed=5
    )
    assert check.removals == ["constant", "constant value=2.0"]
    for number, row in enumerate(inputs):
        for removal, value in zip(check.removals, (0.0, 2.0), strict=True):
            for share in (0.0, *shares):
                masks = np.ones((1, 6), dtype=bool)
                if share:
                    masks = random_masks(model.prepare(row), share, 7, seed=5)
                p = probabilities(np.where(masks, row, value))
                votes = [int(q[1] > 0.5) for q in p]
                result = next(r for r in rows_of(check, removal, share) if r.input == number)
                assert result.predicted == int(sum(votes) > len(votes) / 2)
                assert result.right == (result.predicted == truth[number])
                assert result.hits == pytest.approx(np.mean([v == truth[number] for v in votes]))
                assert result.confidence == pytest.approx(np.mean([max(q) for q in p]))
                assert result.entropy == pytest.approx(-np.mean([sum(x * np.log(x) for x in q) for q in p]))


def test_accuracy_by_share():
    check = pertinent.check_removal(enough_words, TEXTS, [1] * len(TEXTS), shares=(0.2, 0.5, 0.6, 0.8))
    frame = check.to_dataframe()
    frame = frame[frame["removal"] == "slice-out"]
    assert frame["share"].tolist() == [0.0, 0.2, 0.5, 0.6, 0.8]
    assert frame["accuracy"].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert frame["confidence"].tolist() == pytest.approx([0.9, 0.9, 0.9, 0.8, 0.8])
    assert (check.measure, check.inputs, check.features) == ("accuracy", 40, "words")


def test_certain_predictions_have_zero_entropy():
    check = pertinent.check_removal(lambda texts: [[0.0, 1.0] for _ in texts], TEXTS[:3])
    assert {row.entropy for row in check.rows} == {0.0}


def test_accuracy_needs_labels_and_agreement_does_not():
    wrong = pertinent.check_removal(enough_words, TEXTS, [0] * len(TEXTS), shares=0.8)
    agreement = pertinent.check_removal(enough_words, TEXTS, shares=0.8)
    assert [wrong.score("slice-out", share).mean for share in (0.0, 0.8)] == [0.0, 1.0]
    assert [agreement.score("slice-out", share).mean for share in (0.0, 0.8)] == [1.0, 0.0]
    assert (agreement.measure, agreement.overconfidence) == ("agreement", None)


def test_all_removals_see_the_same_masks():
    seen = {"slice-out": [], "mask-token": []}

    def watch(texts):
        for text in texts:
            kept = text.replace("[MASK]", "").split()
            if len(kept) < 10:
                seen["mask-token" if "[MASK]" in text else "slice-out"].append(tuple(kept))
        return enough_words(texts)

    check = pertinent.check_removal(watch, TEXTS[:4])
    assert sorted(seen["slice-out"]) == sorted(seen["mask-token"])
    assert len(seen["slice-out"]) > 100
    assert check.removals == ["mask-token", "slice-out"]


# -- verdicts and advice -----------------------------------------------------------------------


def test_a_removal_that_breaks_the_model_is_badly_out():
    for labels in (None, [1] * len(TEXTS)):
        check = pertinent.check_removal(afraid_of_masks, TEXTS, labels)
        assert (check.best, check.default) == ("slice-out", "slice-out")
        assert check.verdict("slice-out") == "in distribution"
        assert check.verdict("mask-token") == "badly out"
        assert check.losses["mask-token"].mean == 1.0
        assert not check.needs_training
        assert "Use slice-out, the model's default" in check.recommendation
    with pytest.raises(SettingError, match="Did you mean 'mask-token'"):
        check.verdict("mask-tokens")


def test_a_better_removal_than_the_default_is_found():
    check = pertinent.check_removal(lambda t: [[0.9, 0.1] if len(x) < 50 else [0.2, 0.8] for x in t], TEXTS)
    assert (check.best, check.default) == ("mask-token", "slice-out")
    assert check.verdict("slice-out") == "badly out"
    assert check.recommendation.startswith(
        "Use mask-token: with 50% of the words removed, agreement is 1.000"
    )
    assert "agreement is 1.000 [1.000, 1.000] lower with slice-out" in check.recommendation


def of_rows(rows, **changes):
    fields = {"measure": "accuracy", "default": "a", "classes": ("no", "yes"), "features": "words"}
    return RemovalCheck(rows=tuple(rows), **fields | {"draws": 10, "seed": 0} | changes)


def made(right, *, measure="accuracy", confidence=0.9, default="a"):
    """Return a check with these scores at the shares 0 and 0.5, by removal."""
    rows = []
    for removal, (whole, half) in right.items():
        for share, own, sure in ((0.0, whole, 0.9), (0.5, half, confidence)):
            for i, value in enumerate(own):
                rows.append(AblatedInput(i, removal, share, int(value), bool(value), float(value), sure, 0.1))
    return of_rows(rows, measure=measure, default=default)


def share_right(n, k):
    return [1] * k + [0] * (n - k)


@pytest.mark.parametrize(
    ("other", "verdict"), [(990, "in distribution"), (970, "somewhat out"), (949, "badly out")]
)
def test_thresholds(other, verdict):
    ones = share_right(1000, 1000)
    check = made({"a": (ones, ones), "b": (ones, share_right(1000, other))})
    assert check.verdict("b") == verdict
    assert check.verdict("a") == "in distribution"


def test_differences_within_chance_prefer_the_default():
    ones = share_right(20, 20)
    check = made({"a": (ones, share_right(20, 18)), "b": (ones, share_right(20, 19))})
    assert check.best == "a"
    check = made({"a": (ones, share_right(20, 19)), "b": (ones, share_right(20, 18))})
    assert check.verdict("b") == "in distribution"
    check = made({"a": (ones, share_right(20, 8)), "b": (ones, share_right(20, 19))})
    assert check.best == "b"
    one = made({"a": ([1], [0]), "b": ([1], [1])})
    assert (one.best, one.needs_training) == ("a", False)


def test_training_is_recommended_for_loss_or_overconfidence():
    ones = share_right(200, 200)
    fine = made({"a": (ones, share_right(200, 190))}, confidence=0.85)
    assert not fine.needs_training
    assert "no sign that the model needs" in fine.recommendation
    lost = made({"a": (ones, share_right(200, 170))}, confidence=0.75)
    assert lost.lost.mean == pytest.approx(0.15)
    assert lost.needs_training
    assert "loses 0.150" in lost.recommendation
    sure = made({"a": (ones, share_right(200, 188))}, confidence=0.99)
    assert sure.overconfidence.mean == pytest.approx(0.15)
    assert sure.needs_training
    assert "confidence exceeds" in sure.recommendation
    assert not made({"a": (ones, share_right(200, 188))}, confidence=0.99, measure="agreement").needs_training


def test_training_is_recommended_only_for_text_models():
    def certain(rows):
        side = (np.asarray(rows)[:, :2].sum(axis=1) > 0).astype(float)
        return np.c_[1 - side, side]

    rows = np.random.default_rng(0).normal(size=(60, 4))
    model = pertinent.wrap(certain, background=rows)
    check = pertinent.check_removal(model, rows, (certain(rows)[:, 1] > 0).astype(int), progress=False)
    assert check.needs_training and not check.trainable
    assert "trained counterfactually" not in check.recommendation
    assert "refit the model on data in which columns are removed" in check.recommendation
    assert not type(check).from_dict(check.to_dict()).trainable


# -- invariance and failures -------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.fixture(scope="module")
def lines():
    return [tiny.text(n, seed=n) for n in (5, 9, 14, 14, 23)]


def test_batch_size_and_order_do_not_matter(bert, lines):
    whole = pertinent.check_removal(bert, lines, shares=(0.5,), draws=3, seed=2)
    assert whole.removals == ["attention-mask", "mask-token", "pad-token", "slice-out", "zero-vector"]
    assert (whole.features, whole.default, whole.skipped) == ("tokens", "attention-mask", {})
    small = pertinent.check_removal(bert, lines[::-1], shares=(0.5, 0.8), draws=3, seed=2, batch_size=40)
    mine = {(row.input, row.removal, row.share): row for row in whole.rows}
    for row in small.rows:
        if row.share < 0.8:
            twin = mine[len(lines) - 1 - row.input, row.removal, row.share]
            assert (row.predicted, row.right) == (twin.predicted, twin.right)
            assert row.confidence == pytest.approx(twin.confidence, abs=1e-5)


def test_the_seed_matters(bert, lines):
    one, other = (pertinent.check_removal(bert, lines, shares=0.5, draws=3, seed=s).rows for s in (0, 1))
    assert [r.confidence for r in one] != [r.confidence for r in other]


def test_one_failing_input_does_not_stop_the_others():
    def picky(texts):
        if any("theta" in text and "[MASK]" in text for text in texts):
            raise RuntimeError("no theta!")
        return enough_words(texts)

    texts = ["alpha beta gamma", "alpha theta gamma", "", "single", "beta gamma delta"]
    check = pertinent.check_removal(picky, texts, draws=4)
    assert {row.input for row in check.rows} == {0, 4}
    assert [f.index for f in check.failures] == [1, 2, 3]
    assert check.failures[0].reason == "mask-token: The model raised RuntimeError: no theta!"
    assert "at least 2 features" in check.failures[2].reason
    assert len(check.rows) == 2 * 2 * 4


def test_invalid_labels_are_failures_of_their_inputs():
    model = pertinent.wrap(enough_words, classes=["no", "yes"])
    check = pertinent.check_removal(model, TEXTS[:4], ["yes", "maybe", None, "1"])
    assert [f.index for f in check.failures] == [1, 2]
    unnamed = pertinent.check_removal(enough_words, TEXTS[:3], [1, 5, None])
    assert [f.index for f in unnamed.failures] == [1, 2]
    with pytest.raises(SettingError, match="as many as the 2 inputs, but got 1"):
        pertinent.check_removal(model, TEXTS[:2], ["yes"])


def test_nothing_to_check_raises():
    with pytest.raises(InputError, match="empty or blank"):
        pertinent.check_removal(enough_words, [""])
    with pytest.raises(SettingError, match=r"None of the 2 inputs could be checked.*transformer's tokens"):
        pertinent.check_removal(enough_words, TEXTS[:2], removals=["attention-mask"])
    for wrong in ({"shares": (0.0,)}, {"shares": (1.0,)}, {"shares": ()}, {"draws": 0}, {"removals": []}):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            pertinent.check_removal(enough_words, TEXTS[:2], **wrong)
    with pytest.raises(SettingError, match="different from each other"):
        pertinent.check_removal(enough_words, TEXTS[:2], removals=["slice-out", "slice-out"])


def test_inapplicable_removals_are_skipped_with_the_reason(lines):
    network, words = tiny.pair("bert")
    words.mask_token = None
    check = pertinent.check_removal((network, words), lines[:2], draws=2, shares=0.5)
    assert "mask-token" not in check.removals
    assert "with a mask token" in check.skipped["mask-token"]
    model = pertinent.wrap(lambda rows: [[0.4, 0.6] for _ in rows], kind="table")
    check = pertinent.check_removal(model, np.eye(4))
    assert check.removals == ["constant"]
    assert set(check.skipped) == {"background", "mean", "median-mode", "uniform-noise"}
    assert "background" in check.skipped["mean"]


def test_images_and_tables():
    def classify(images):
        p = 0.1 + 0.8 * np.asarray(images)[:, 0].mean(axis=(1, 2))
        return np.stack([1 - p, p], axis=1)

    pictures = np.random.default_rng(0).uniform(size=(5, 1, 8, 8)).astype(np.float32)
    check = pertinent.check_removal(pertinent.wrap(classify, kind="image"), pictures, features="patches:4")
    assert check.features == "patches"
    assert check.removals == ["blur", "constant", "mean", "uniform-noise"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("rows", "accuracy", "confidence"),
    [
        # 1, 2 or 3 of four ones become −1: the sum is 2, 0 or −2.
        ([[-1.0] * 4], [1.0, 1.0, 0.0, 0.0], [0.8, 0.8, 0.9, 0.9]),
        # −9 or 2: one answer of each kind, on the average (0.55, 0.45).
        ([[-9.0] * 4, [2.0] * 4], [1.0, 0.0, 0.0, 0.0], [0.8, 0.55, 0.55, 0.55]),
    ],
)
def test_a_removal_with_a_custom_background(rows, accuracy, confidence, first):
    """Compare the model's background (unit vectors), where sums stay above 0, with a custom one."""
    model = pertinent.wrap(
        lambda table: [[0.2, 0.8] if row.sum() > 0 else [0.9, 0.1] for row in table],
        kind="table",
        background=np.eye(4),
    )
    both = ["background", FromBackground(background=Background(rows))]
    inputs = np.ones((30, 4))
    check = pertinent.check_removal(model, inputs, [1] * 30, removals=both if first else both[::-1])
    names = ["background", "background background=its own"]
    assert check.removals == (names if first else names[::-1])
    for name, right, sure in zip(names, ([1.0] * 4, accuracy), ([0.8] * 4, confidence), strict=True):
        assert [check.score(name, share).mean for share in (0.0, 0.2, 0.5, 0.8)] == right
        frame = check.to_dataframe().query("removal == @name")
        assert frame["confidence"].tolist() == pytest.approx(sure)
    assert check.best == "background"
    assert check.verdict("background background=its own") == "badly out"


def test_one_input_is_enough():
    check = pertinent.check_removal(afraid_of_masks, TEXTS[0], 1)
    assert check.inputs == 1
    assert check.verdict("mask-token") == "too few inputs"


# -- files, displays, warnings -----------------------------------------------------------------


@pytest.fixture
def check():
    result = pertinent.check_removal(pertinent.wrap(afraid_of_masks, classes=["no", "yes"]), [*TEXTS, ""])
    assert result.failures
    return result


def test_save_and_read(check, tmp_path):
    path = tmp_path / "check.json"
    check.save(path)
    again = RemovalCheck.read(path)
    assert again == check
    assert again.recommendation == check.recommendation == json.loads(path.read_text())["recommendation"]
    assert list(tmp_path.iterdir()) == [path]
    for content, what in (
        ("", "not a JSON file"),
        (path.read_text()[:200], "not a JSON file"),
        ("[]", "contains no removal-check"),
        ("{}", "contains no removal-check"),
        ('{"format": "other"}', "contains no removal-check"),
    ):
        path.write_text(content)
        with pytest.raises(FileError, match=f"check.json' is damaged or {what}"):
            RemovalCheck.read(path)
    with pytest.raises(FileError, match="no file"):
        RemovalCheck.read(tmp_path / "missing.json")
    with pytest.raises(FileError, match="no folder"):
        check.save(tmp_path / "missing" / "check.json")


def test_displays(check):
    skipped = {"<b>x</b>": "[red]bad\x1b[0m"}
    nasty = replace(check, skipped=skipped, failures=(Failure(3, "<i>why</i>"),))
    for text in (printed(nasty, 80), nasty._repr_html_()):
        assert "badly out" in text
        assert "100" in text
        assert "Use slice-out" in text.replace("\n", " ")
    assert "\x1b[0m" not in printed(nasty)
    assert "[red]bad" in printed(nasty)
    assert "&lt;b&gt;x" in nasty._repr_html_() and "<i>why" not in nasty._repr_html_()
    assert "40 inputs" in repr(check)
    frame = check.to_dataframe()
    assert list(frame.columns[:5]) == ["removal", "share", "agreement", "low", "high"]
    assert len(frame) == 2 * 4


def test_plot(check, tmp_path):
    figure = check.plot()
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == [
        "mask-token, badly out",
        "slice-out, in distribution",
    ]
    assert axes.get_xticks().tolist() == [0, 20, 50, 80]
    np.testing.assert_allclose(axes.containers[0][0].get_ydata(), [100, 0, 0, 0])
    figure.savefig(tmp_path / "plot.png")
    assert pertinent.check_removal(afraid_of_masks, TEXTS[0]).plot().axes


def explained(removal, **options):
    model = pertinent.wrap(afraid_of_masks, classes=["no", "yes"])
    return pertinent.explain(model, TEXTS[:2], "leave-one-out", removal=removal, **options)


def test_explanations_warn(check, tmp_path):
    bad, good = explained("mask-token", check=check), explained("slice-out", check=check)
    assert [len(e.warnings) for e in (*bad, *good)] == [1, 1, 0, 0]
    assert "mask-token is badly out of distribution" in bad[0].warnings[0]
    assert check.attach(bad)[0].warnings == bad[0].warnings
    assert check.attach(bad[0]).warnings == bad[0].warnings
    assert "badly out of distribution" in json.loads(bad.to_json())["explanations"][0]["warnings"][0]
    for kept in (bad, good):
        kept.save(tmp_path / "e.parquet")
        assert [e.warnings for e in pertinent.read(tmp_path / "e.parquet")] == [e.warnings for e in kept]


def test_warnings_are_shown_and_escaped(check):
    rows = [
        AblatedInput(r.input, r.removal.replace("mask-token", "mask-token text=<b>[MASK]"), *_rest(r))
        for r in check.rows
    ]
    nasty = replace(check, rows=tuple(rows))
    from pertinent.removals import MaskToken

    e = explained(MaskToken(text="<b>[MASK]"), check=nasty)[0]
    assert "⚠ the removal mask-token text=<b>[MASK] is badly out" in printed(e, 300)
    for page in (e.to_html(), report(e)):
        assert "⚠ the removal mask-token text=&lt;b&gt;[MASK] is badly out" in page
        assert "<b>[MASK]" not in page


def _rest(row):
    return row.share, row.predicted, row.right, row.hits, row.confidence, row.entropy


def test_attach_warns_of_unchecked_removals(check, caplog):
    model = pertinent.wrap(afraid_of_masks, classes=["no", "yes"])
    from pertinent.removals import MaskToken

    e = pertinent.explain(model, TEXTS[0], "leave-one-out", removal=MaskToken(text="…"))
    assert check.attach(e).warnings == ()
    assert "was not checked" in caplog.text
    other = pertinent.explain(afraid_of_masks, TEXTS[0], "leave-one-out")
    with pytest.raises(InputError, match="run the check on the explained model"):
        check.attach(other)


# -- command line ------------------------------------------------------------------------------

REVIEWS = [("a wonderful film", "positive"), ("dull, and badly acted", "negative"), ("a quiet triumph", 1)]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": text, "label": label}) for text, label in REVIEWS]
    (tmp_path / "reviews.jsonl").write_text("\n".join(lines))
    (tmp_path / "reviews.csv").write_text(
        "label,review\n"
        + "\n".join(f'{label},"{text}"' for text, label in REVIEWS)
        + "\nunknown,what is it\n"
    )

    def go(*arguments):
        code = main(["check", *arguments, "--draws", "2"])
        return code, *capsys.readouterr()

    return go


def test_command(run, tmp_path):
    code, out, err = run(
        "--file", "reviews.jsonl", "--label-column", "label", "--plot", "p.png", "--json", "c.json"
    )
    assert (code, err) == (0, "")
    assert "attention-mask" in out and "3 inputs: too few" in out.replace("\n", " ")
    check = RemovalCheck.read(tmp_path / "c.json")
    assert (check.inputs, check.measure, check.draws) == (3, "accuracy", 2)
    assert check.classes == ("negative", "positive")
    assert {row.right for row in check.rows if not row.share} == {True}
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_command_on_a_table_with_a_bad_label_and_some_removals(run):
    code, out, err = run(
        "--file", "reviews.csv", "--column", "review", "--label-column", "label", "--json", "-",
        "--removals", "mask-token,slice-out", "--shares", ".5", "--features", "words",
    )  # fmt: skip
    assert code == 1
    plain = json.loads(out)
    assert (plain["features"], list(plain["verdicts"])) == ("words", ["mask-token", "slice-out"])
    assert "reviews.csv line 5: Unknown label 'unknown'" in err


def test_command_errors(run):
    for arguments, complaint in (
        (("--file", "missing.csv"), "There is no file"),
        (
            ("--file", "reviews.csv", "--column", "review", "--label-column", "lable"),
            "Did you mean 'label'",
        ),
        (("--file", "reviews.jsonl", "--removals", "mask-tokn"), "Did you mean 'mask-token'"),
        (("--file", "reviews.jsonl", "--plot", "p.txt"), "--plot must end in"),
        (("--file", "reviews.jsonl", "--plot", "nowhere/p.png"), "There is no folder"),
        (("--model", "digits", "--file", "reviews.jsonl"), "reads images: pass --image"),
        (("--file", "reviews.jsonl", "--shares", "1.5"), "above 0 and below 1"),
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert complaint in err, err


def test_command_on_rows(run, tmp_path):
    from pertinent.models.embedded.tables import example_row

    row = example_row()
    head, values = ",".join([*row, "cultivar"]), ",".join(map(str, row.values()))
    (tmp_path / "wines.csv").write_text(f"{head}\n{values},cultivar 1\n{values},0\n")
    labels = ["--label-column", "cultivar", "--json", "-"]
    code, out, err = run("--model", "table", "--file", "wines.csv", *labels)
    assert (code, err) == (0, "")
    assert json.loads(out)["features"] == "columns"


def test_explain_requires_a_check():
    model = pertinent.wrap(lambda texts: [[0.4, 0.6]] * len(texts))
    with pytest.raises(SettingError, match="`check` must be a RemovalCheck or None, but got 5"):
        pertinent.explain(model, "some text", check=5)
