"""Simulated people with known behaviour: the tables and the agreement are theirs."""

import json

import numpy as np
import pytest

import pertinent
from pertinent.stats import bootstrap
from tests.study.people import WEIGHTS, by_chance, by_the_words, explained, predict, take_part


@pytest.fixture(scope="module")
def explanations():
    return explained()


@pytest.fixture
def study(explanations, tmp_path):
    return pertinent.create_study(explanations, tmp_path / "study", top=2, checks=1)


def alphas(report):
    return {each.kind: each.alpha for each in report.agreement}


def test_people_who_look_for_the_word_that_decides(study):
    take_part(study, study.cycle, by_the_words)
    report = pertinent.report_study(study.folder)
    assert (report.people, report.finished, report.excluded) == (study.cycle, study.cycle, ())
    shown = [
        np.mean([by_word(study, i, method) for i in range(study.description.inputs)]) for method in range(3)
    ]
    for name, share in zip(study.description.methods, shown, strict=True):
        assert report.mean(name, "accuracy") == pytest.approx(share)
        assert report.mean(name, "cannot tell") == pytest.approx(1 - share)
        assert report.mean(name, "rating") == pytest.approx(1 + 4 * share)
    # Both exact methods rank the decisive word first or last, random where it likes.
    assert shown[0] == shown[2] > shown[1]
    assert report.mean("leave-one-out", "preferred") > 0.6 > 0.4 > report.mean("random", "preferred")
    assert report.mean("leave-one-out", "average precision") > report.mean("random", "average precision")
    for alpha in alphas(report).values():
        assert alpha.mean == pytest.approx(1) and alpha.low == pytest.approx(1)
    found = {(d.measure, d.a, d.b): d.difference for d in report.differences}
    assert found["rating", "leave-one-out", "random"].p_value < 0.01
    assert found["rating", "leave-one-out", "shapley"].mean == 0
    assert found["preferred", "leave-one-out", "random"].mean == pytest.approx(shown[0] - shown[1])


def by_word(study, input, method):
    names = study.explanations[input][method].features
    return any(names[i] in WEIGHTS for i in study.highlighted(input, method))


def test_people_who_answer_by_chance(study):
    take_part(study, 3 * study.cycle, by_chance)
    report = pertinent.report_study(study.folder)
    for name in study.description.methods:
        accuracy = next(m.interval for m in report.measured if (m.method, m.measure) == (name, "accuracy"))
        assert accuracy.low < 0.5 < accuracy.high
        assert report.mean(name, "preferred") == pytest.approx(0.5, abs=0.06)
        assert report.mean(name, "rating") == pytest.approx(3, abs=0.2)
    for alpha in alphas(report).values():
        assert abs(alpha.mean) < 0.06
    # Average precision takes equal scores together, which leave-one-out has and random has not.
    judged = [d.difference for d in report.differences if d.measure != "average precision"]
    assert all(each.p_value > 0.01 for each in judged)


def test_somebody_who_always_picks_one_method(study):
    def picks_random(study, question, rng):
        if question.kind != "prefer":
            return by_chance(study, question, rng)
        random = study.description.methods.index("random")
        return random if random in question.methods else None

    take_part(study, study.cycle, picks_random)
    report = pertinent.report_study(study.folder)
    random = next(m for m in report.measured if (m.method, m.measure) == ("random", "preferred"))
    assert random.interval.mean == random.interval.high == 1
    assert random.interval.low < 1  # no more is known than that all agreed
    assert report.mean("shapley", "preferred") == pytest.approx(0.25)  # lost to one, drew with the other
    found = {(d.a, d.b): d.difference for d in report.differences if d.measure == "preferred"}
    assert found["leave-one-out", "random"].mean == -1
    assert found["leave-one-out", "shapley"].mean == 0
    assert alphas(report)["prefer"].mean == pytest.approx(1)


def test_the_side_does_not_matter(study):
    """Who always picks the left one prefers no method."""
    take_part(
        study,
        study.cycle,
        lambda s, q, rng: q.methods[0] if q.kind == "prefer" else by_chance(s, q, rng),
    )
    report = pertinent.report_study(study.folder)
    for name in study.description.methods:
        assert report.mean(name, "preferred") == pytest.approx(0.5)


def test_who_fails_checks_is_left_out(study):
    answers = take_part(study, 4, by_the_words)
    person = answers.enter("careless")
    rng = np.random.default_rng(0)
    for i, question in enumerate(person.questions):
        is_check = question.kind == "check"
        answers.record(person, i, question.grade % 5 + 1 if is_check else by_chance(study, question, rng))
    report = pertinent.report_study(study.folder)
    assert (report.people, report.excluded) == (4, ("careless",))
    assert pertinent.report_study(study.folder, failed_checks=1).people == 5


def test_marks_are_measured_as_the_metrics_do(study, explanations):
    take_part(study, 4, by_the_words)
    report = pertinent.report_study(study.folder)
    model = pertinent.wrap(predict, kind="text", classes=["bad", "good"])
    marked = {e.index: [i for i, f in enumerate(e.features) if f in WEIGHTS] for e in explanations}
    evaluation = pertinent.evaluate(
        model,
        explanations,
        ["average-precision", "precision-at-k:k=2"],
        annotations=[marked[i] for i in range(study.description.inputs)],
    )
    for name in study.description.methods:
        for metric, measure in zip(evaluation.better, ("average precision", "precision at k"), strict=True):
            assert report.mean(name, measure) == pytest.approx(evaluation.mean(name, metric))


def test_intervals_cover_the_mean_where_people_and_texts_differ(explanations, tmp_path):
    """Eight people, whose answers to the questions of one kind and method are drawn again and again."""
    study = pertinent.create_study(explanations, tmp_path / "study")
    seen = np.zeros((8, study.description.inputs), dtype=bool)
    for person in range(8):
        for question in study.questions(person):
            if (question.kind, question.methods) == ("rate", (0,)):
                seen[person, question.input] = True
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        people, texts, chance = (rng.normal(size=shape) for shape in ((8, 1), (1, 24), (8, 24)))
        found = bootstrap(np.where(seen, people + texts + chance, np.nan), resamples=400)
        hits += found.low <= 0 <= found.high
    assert hits >= 0.95 * 200


def test_tables_and_picture(study):
    take_part(study, 5, by_the_words)
    report = pertinent.report_study(study.folder)
    text = report.to_markdown()
    assert "5 participants, 5 finished." in text
    assert "| leave-one-out | " in text and "Krippendorff's alpha" in text
    assert "fewer than 20 inputs" in text
    lines = [line for line in text.splitlines() if " − " in line]
    assert all(line.endswith("| – |") for line in lines if "| rating |" in line)
    assert all("| 24 | p " in line for line in lines if "| precision at k |" in line)
    assert "fewer than 8 participants" in text and f"multiple of {study.cycle} participants" in text
    frame = report.to_dataframe()
    assert set(frame["measure"]) >= {"accuracy", "preferred", "precision at k", "rating"}
    assert len(report.plot().axes) == 6
    assert json.loads(report.to_json())["format"] == "pertinent study report 1"


def test_nobody_has_answered(study):
    report = pertinent.report_study(study.folder)
    assert report.people == 0 and report.measured == ()
    assert "0 participants" in report.to_markdown()
    with pytest.raises(pertinent.PertinentError, match="no answers"):
        report.plot()
