"""A study's folder, who gets which questions, and answers that survive."""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent.errors import FileError, InputError, SettingError
from pertinent.study.answers import Answers, clean_name
from pertinent.study.design import Study
from tests.study.people import by_the_words, explained, predict, take_part, texts


@pytest.fixture(scope="module")
def explanations():
    return explained(16)


@pytest.fixture
def study(explanations, tmp_path):
    return pertinent.create_study(explanations, tmp_path / "study", checks=2)


# -- the design ------------------------------------------------------------------------------------


def test_every_question_is_asked_equally_often(study):
    asked = Counter(
        (q.kind, q.input, q.methods)
        for person in range(study.cycle)
        for q in study.questions(person)
        if q.kind != "check"
    )
    assert study.cycle == 4 * 6
    for kind, ways in {"guess": 3, "rate": 3, "mark": 1, "prefer": 6}.items():
        counts = [n for (own, _, _), n in asked.items() if own == kind]
        assert len(counts) == 16 * ways
        assert {*counts} == {study.cycle // 4 // ways}


def test_a_person_sees_each_text_once_and_each_method_about_equally_often(study):
    for person in range(6):
        questions = [q for q in study.questions(person) if q.kind != "check"]
        assert sorted(q.input for q in questions) == list(range(16))
        assert {*Counter(q.kind for q in questions).values()} == {4}
        for kind in ("guess", "rate"):
            counts = Counter(q.methods for q in questions if q.kind == kind)
            assert len(counts) == 3 and max(counts.values()) - min(counts.values()) <= 1


def test_questions_are_shuffled_but_kinds_stay_together_and_checks_are_never_first(study):
    orders = set()
    for person in range(12):
        questions = study.questions(person)
        assert questions == study.questions(person)
        assert Counter(q.kind for q in questions)["check"] == 2 and questions[0].kind != "check"
        kinds = [q.kind for q in questions if q.kind != "check"]
        assert sum(a != b for a, b in pairwise(kinds)) == 3
        orders.add(tuple(dict.fromkeys(kinds)))
    assert len(orders) > 5


def test_every_method_highlights_equally_many_words(study):
    for input in range(16):
        sizes = {len(study.highlighted(input, method)) for method in range(3)}
        assert sizes == {4}  # half of eight


# -- the folder ------------------------------------------------------------------------------------


def test_a_study_is_read_as_it_was_made(study):
    again = Study.read(study.folder)
    assert again.description == study.description
    assert again.questions(5) == study.questions(5)
    for own, other in zip(study.explanations, again.explanations, strict=True):
        assert [e.method for e in own] == [e.method for e in other]
        assert all(np.array_equal(a.scores, b.scores) for a, b in zip(own, other, strict=True))
    assert {path.suffix for path in study.folder.rglob("*") if path.is_file()} == {".json", ".parquet"}


def test_files_of_several_methods(explanations, tmp_path):
    for method in ("leave-one-out", "random"):
        own = pertinent.Explanations([e for e in explanations if e.method == method])
        own.save(tmp_path / f"{method}.parquet")
    files = [tmp_path / "leave-one-out.parquet", str(tmp_path / "random.parquet")]
    study = pertinent.create_study(files, tmp_path / "study", kinds=["guess"], limit=5)
    assert study.description.methods == ("leave-one-out", "random")
    assert study.description.inputs == 5 and study.cycle == 2


def test_a_folder_of_explanations_and_texts_that_only_one_method_explained(explanations, tmp_path, caplog):
    model = pertinent.wrap(predict, kind="text", classes=["bad", "good"])
    pertinent.explain(model, texts(7), "leave-one-out", out=tmp_path / "folder", progress=False)
    random = pertinent.Explanations([e for e in explanations if e.method == "random"])
    study = pertinent.create_study([tmp_path / "folder", random], tmp_path / "study")
    assert study.description.inputs == 7
    assert study.description.methods == ("leave-one-out", "random")
    assert "9 inputs were omitted" in caplog.text


def test_the_example_of_the_docs_is_a_study():
    study = Study.read(Path(__file__).parents[2] / "docs" / "examples" / "study")
    assert study.description.methods == ("shapley", "lime", "random")
    assert len(study.questions(0)) == 24 + 2


def test_what_a_study_cannot_be_made_of(explanations, tmp_path, study):
    out = tmp_path / "other"
    with pytest.raises(FileError, match="must be new or empty"):
        pertinent.create_study(explanations, study.folder)
    with pytest.raises(SettingError, match="Did you mean 'guess'"):
        pertinent.create_study(explanations, out, kinds=["gues"])
    with pytest.raises(SettingError, match="at least two methods"):
        pertinent.create_study(pertinent.Explanations([e for e in explanations if e.method == "random"]), out)
    with pytest.raises(InputError, match="got 2"):
        pertinent.create_study(explanations[:6], out)
    other = replace(explanations[0], target=1 - explanations[0].target)
    with pytest.raises(InputError, match="explain it without `target`"):
        pertinent.create_study(pertinent.Explanations([other]), out)
    rows = pertinent.explain(
        pertinent.wrap(lambda rows: [[0.5, 0.5]] * len(rows), kind="table"), [[1.0, 2.0]], "leave-one-out"
    )
    with pytest.raises(InputError, match="inputs of one kind, got text and table"):
        pertinent.create_study([explanations, rows], out)
    pixels = pertinent.explain(
        pertinent.wrap(lambda images: [[0.5, 0.5]] * len(images), kind="image"),
        np.zeros((1, 1, 30, 30)),
        "random",
        features="pixels",
    )
    with pytest.raises(InputError, match=r"at most 400 parts .* got 900"):
        pertinent.create_study(pixels, out, kinds=["mark"])
    values = pertinent.explain(
        pertinent.wrap(lambda texts: predict(texts)[:, 0], kind="text", output="value"),
        ["good film"],
        "leave-one-out",
    )
    with pytest.raises(InputError, match="explanations of values"):
        pertinent.create_study(values, out)
    assert not out.exists()


def test_what_is_no_study(tmp_path, study):
    with pytest.raises(FileError, match="pertinent study create"):
        pertinent.report_study(tmp_path)
    file = study.folder / "study.json"
    file.write_text(file.read_text().replace('"guess"', '"gues"'))
    with pytest.raises(FileError, match="damaged or not a study"):
        pertinent.report_study(study.folder)


# -- answers ---------------------------------------------------------------------------------------


def test_answers_are_on_disk_and_a_person_goes_on_where_they_stopped(study):
    answers = Answers(study)
    person = answers.enter("  Ada   L. ")
    assert person.name == "Ada L."
    for i in range(3):
        question = person.questions[i]
        given = question.grade if question.kind == "check" else by_the_words(study, question, None)
        assert answers.record(person, i, given)
        again = Answers(study).person("ada l.")  # read from disk, as another process would
        assert again.answers == person.answers and len(again.answers) == i + 1
        assert not answers.record(person, i, given)  # sent twice, kept once
    assert Answers(study).enter("ADA L.").number == person.number
    assert answers.enter("Grace").number == 1


def test_a_line_that_was_cut_off_is_dropped(study):
    take_part(study, 2, by_the_words)
    (path, _) = sorted((study.folder / "answers").iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    answers = Answers(study)
    person = answers.person("person 0")
    assert len(person.answers) == len(person.questions) - 1
    last = json.loads(whole.splitlines()[-1])
    assert answers.record(person, last["question"], last["answer"])
    assert path.read_bytes() == whole


def test_a_disk_that_fails_loses_no_answer_and_counts_none(study, monkeypatch):
    import os

    answers = Answers(study)
    person = answers.enter("Ada")
    (path,) = (study.folder / "answers").iterdir()
    before = path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:5]))
    question = person.questions[0]
    with pytest.raises(FileError, match="disk is full"):
        answers.record(person, 0, by_the_words(study, question, None))
    assert person.answers == [] and path.read_bytes() == before


def test_answers_that_are_none(study):
    answers = Answers(study)
    person = answers.enter("Ada")
    wrong = {"guess": "so-so", "prefer": 7, "mark": [99], "rate": 6, "check": "3"}
    for i, question in enumerate(person.questions):
        with pytest.raises(InputError):
            answers.record(person, i, wrong[question.kind])
        given = question.grade if question.kind == "check" else by_the_words(study, question, None)
        answers.record(person, i, given)
    assert person.is_done and person.failed_checks == 0
    for name in ("", "  ", "-", "a" * 41, "a\x00b", "<b>"):
        with pytest.raises(InputError, match="nickname"):
            clean_name(name)


def test_questions_stay_those_that_were_asked(study, monkeypatch):
    """Another version may deal out questions in another way: who has begun goes on with theirs."""
    answers = Answers(study)
    asked = answers.enter("Ada").questions
    monkeypatch.setattr(Study, "questions", lambda self, person: [])
    assert Answers(study).person("Ada").questions == asked


def test_a_flipped_bit_in_a_study_is_refused(study):
    path = study.folder / "study.json"
    whole, wanted = path.read_bytes(), Study.read(study.folder).description
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        path.write_bytes(data)
        with suppress(FileError):
            assert Study.read(study.folder).description == wanted
            assert whole[place : place + 1].isspace()  # nothing else can differ


def test_damaged_answers_are_reported_and_the_others_kept(study, caplog):
    take_part(study, 2, by_the_words)
    path, _ = sorted((study.folder / "answers").iterdir())
    whole = path.read_bytes()
    intact = dict(Answers(study).people)
    lines = whole.splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"answer": ', b'"answer": 7')
    path.write_bytes(b"".join(lines))
    answers = Answers(study)
    person, before = answers.person("person 0"), intact["person 0"]
    assert person.damaged == {2} and person.is_done
    assert list(person.answered) == [pair for i, pair in enumerate(before.answered) if i != 2]
    assert answers.person("person 1") == intact["person 1"]
    assert ["00000.jsonl, line 4" in line for line in answers.damaged] == [True]
    assert "00000.jsonl, line 4" in caplog.text
    report = pertinent.report_study(study.folder)
    assert report.damaged == tuple(answers.damaged)
    assert "00000.jsonl, line 4" in report.to_markdown()


def test_a_damaged_name_omits_this_person_only(study):
    take_part(study, 2, by_the_words)
    path, _ = sorted((study.folder / "answers").iterdir())
    path.write_bytes(path.read_bytes().replace(b"person 0", b"person 4", 1))
    answers = Answers(study)
    assert list(answers.people) == ["person 1"] and len(answers.damaged) == 1
    assert answers.enter("person 0").number == 2  # the damaged file stays


def test_the_question_of_a_damaged_last_line_is_asked_again(study):
    take_part(study, 1, by_the_words)
    (path,) = (study.folder / "answers").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"question", b"questiom")]))
    answers = Answers(study)
    person = answers.person("person 0")
    last = json.loads(lines[-1])
    assert not person.is_done and len(answers.damaged) == 1
    assert answers.record(person, last["question"], last["answer"])
    again = Answers(study).person("person 0")
    assert again.is_done and not again.damaged


@pytest.mark.parametrize("change", ["joined", "split", "twice", "no checksum"])
def test_no_answer_is_counted_for_another_question(study, change):
    take_part(study, 1, by_the_words)
    (path,) = (study.folder / "answers").iterdir()
    before = list(Answers(study).person("person 0").answered)
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "joined":
        lines[4] = lines[4].rstrip(b"\n") + b" "
    if change == "split":
        lines[4] = lines[4].replace(b"methods", b"met\nods")
    if change == "twice":
        lines.insert(4, lines[2])
    if change == "no checksum":
        plain = json.loads(lines[4])
        del plain["checksum"]
        lines[4] = json.dumps(plain).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    answers = Answers(study)
    person = answers.person("person 0")
    lost = {"joined": {3, 4}, "split": {3}, "twice": set(), "no checksum": {3}}[change]
    assert person.damaged == lost and answers.damaged
    assert list(person.answered) == [pair for i, pair in enumerate(before) if i not in lost]
