"""The page of a study: its forms, who goes on where, what is refused, several people, a real browser."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import pertinent
from pertinent.app.participant_cookies import KEY, ParticipantCookies
from pertinent.app.study_site import COOKIE as PERSON
from pertinent.app.study_site import StudySite
from pertinent.app.token_auth import COOKIE
from pertinent.cli import main
from pertinent.errors import FileError, SettingError
from pertinent.study.answers import Answers
from pertinent.study.design import Study
from tests.app.browser import chromium, new_page
from tests.app.hostile import COOKIES, call, cut_off, whole
from tests.app.served import TOKEN, serving
from tests.study.people import by_the_words, explained, predict, take_part


@pytest.fixture(scope="module")
def explanations():
    return explained(8)


@pytest.fixture
def study(explanations, tmp_path):
    return pertinent.create_study(explanations, tmp_path / "study", top=3, checks=1)


@pytest.fixture
def address(study):
    with serving(StudySite(study).app(TOKEN)) as found:
        yield found


@pytest.fixture
def client(address):
    with visitor(address) as found:
        yield found


def visitor(address):
    return httpx.Client(base_url=address, cookies={COOKIE: TOKEN}, follow_redirects=True, timeout=30)


def answer(client, page):
    """Answer the question of a page by the first of its answers; the next page."""
    number = re.search(r'name="number" value="(\d+)"', page.text)[1]
    grade = re.search(r"Please choose (\d)", page.text)
    values = re.findall(r'name="answer" value="([^"]+)"', page.text)
    return client.post("/answer", data={"number": number, "answer": grade[1] if grade else values[0]})


def code(page):
    """The code with which the participant of a page goes on elsewhere."""
    return re.search(r"<code>((?:[A-Z2-7]{4}-){2}[A-Z2-7]{4})</code>", page.text)[1]


def test_a_person_answers_everything(client, study):
    assert "Nickname" in client.get("/").text
    page = client.post("/begin", data={"name": "Ada"})
    kinds = set()
    for i in range(9):
        assert f"Question {i + 1} of 9" in page.text
        kinds.add(Answers(study).person("ada").questions[i].kind)
        page = answer(client, page)
        assert len(Answers(study).person("ada").answers) == i + 1  # on disk before the next question
    assert "Thank you, Ada!" in page.text
    assert kinds == {"guess", "prefer", "mark", "rate", "check"}
    report = pertinent.report_study(study.folder)
    assert (report.people, report.finished, report.excluded) == (1, 1, ())


def test_nothing_says_which_method_it_is(client, study):
    page = client.post("/begin", data={"name": "Ada"})
    for _ in range(9):
        shown = page.text.casefold()
        for name in (*study.description.methods, "method"):
            assert name not in shown.replace('method="post"', "")
        page = answer(client, page)


def test_the_words_that_are_left_out_of_a_guess_are_not_in_the_page(client, study):
    page = client.post("/begin", data={"name": "Ada"})
    person = Answers(study).person("Ada")
    for question in person.questions:
        if question.kind == "guess":
            e = study.explanations[question.input][0]
            shown = study.highlighted(question.input, question.methods[0])
            for i, word in enumerate(e.features):
                assert (f"<mark>{word}</mark>" in page.text) == (i in shown)
                assert (word in page.text.replace(e.target_name, "")) == (i in shown) or word == e.target_name
        page = answer(client, page)


def test_who_comes_back_goes_on(client, address, study):
    page = answer(client, client.post("/begin", data={"name": "Ada"}))
    assert "Question 2 of 9" in client.get("/").text
    stale = answer(client, page)
    assert "Question 3 of 9" in stale.text
    assert "Question 3 of 9" in answer(client, page).text  # the same form again: it changes nothing
    with visitor(address) as other:
        asked = other.post("/begin", data={"name": "ada"})
        assert asked.status_code == 200 and 'name="code"' in asked.text
        found = other.post("/begin", data={"name": "ada", "code": code(page).lower().replace("-", " ")})
        assert "Question 3 of 9" in found.text
    left = client.post("/leave")
    assert 'name="name"' in left.text and code(page) in left.text
    assert 'name="name"' in client.get("/").text


def test_nobody_else_goes_on_as_a_participant(client, address, study):
    mine = client.post("/begin", data={"name": "Ada"})
    cookie = client.cookies[PERSON]
    with visitor(address) as other:
        theirs = other.post("/begin", data={"name": "Bob"})
        assert code(theirs) != code(mine)
        for wrong in ("", "yes", code(theirs)):
            refused = other.post("/begin", data={"name": "Ada", "again": "yes", "code": wrong})
            assert refused.status_code == (403 if wrong else 200) and 'name="number"' not in refused.text
        signature = other.cookies[PERSON].partition(".")[2]
        identity = study.description.id
        flipped = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
        for forged in (f"{identity}-0", f"{identity}.0", "0", "0.", f"0.{signature}", flipped, cookie + "0"):
            other.cookies.clear()
            other.cookies.set(COOKIE, TOKEN)
            other.cookies.set(PERSON, forged)
            assert 'name="name"' in other.get("/").text, forged
            other.post("/answer", data={"number": "0", "answer": "1"})
    assert not Answers(study).person("Ada").answers
    assert 'name="number" value="0"' in client.get("/").text


def test_the_cookie_of_a_participant_is_signed_by_the_study(address, explanations, study, tmp_path):
    with visitor(address) as client:
        answer = client.post("/begin", data={"name": "Ada"}, follow_redirects=False)
    set_cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in set_cookie and "samesite=lax" in set_cookie
    assert (study.folder / KEY).stat().st_mode & 0o777 == 0o600
    person = Answers(study).person("Ada")
    own = ParticipantCookies(study)
    assert answer.cookies[PERSON] == own.cookie(person)
    assert own.owner(own.cookie(person), [person]) is person
    other = pertinent.create_study(explanations, tmp_path / "other", top=3, checks=1)
    assert ParticipantCookies(other).owner(own.cookie(person), [person]) is None
    renamed = replace(person, name="Bob")  # a new participant with the number of a deleted one
    assert own.owner(own.cookie(person), [renamed]) is None


def test_an_answer_that_is_cut_off_is_not_kept(study):
    app = StudySite(study).app(TOKEN)
    entered = asyncio.run(call(app, "POST", "/begin", whole(b"name=Ada")))
    cookies = b"; ".join((COOKIES[1][1], f"{PERSON}={entered.cookie(PERSON)}".encode()))
    headers = (COOKIES[0], (b"cookie", cookies))
    person = Answers(study).person("Ada")
    values = {"check": person.questions[0].grade, "rate": 1, "guess": 0, "prefer": "first", "mark": "1,2"}
    body = f"number=0&answer={values[person.questions[0].kind]}".encode()
    cut = asyncio.run(call(app, "POST", "/answer", cut_off(body), headers=headers))
    assert cut.status is None
    longer = (*headers, (b"content-length", str(len(body) + 3).encode()))
    assert asyncio.run(call(app, "POST", "/answer", whole(body), headers=longer)).status == 400
    assert not Answers(study).person("Ada").answers
    assert asyncio.run(call(app, "POST", "/answer", whole(body), headers=headers)).status == 303
    assert len(Answers(study).person("Ada").answers) == 1


def test_what_is_wrong_is_said_and_not_kept(client, study):
    bad = client.post("/begin", data={"name": "<b>"})
    assert bad.status_code == 422 and "A nickname must be" in bad.text and "<b>" not in bad.text
    page = client.post("/begin", data={"name": "Ada"})
    for _ in range(9):
        number = re.search(r'name="number" value="(\d+)"', page.text)[1]
        for given in ({}, {"answer": "none of it"}, {"answer": "99999"}, {"answer": ["none", "1,2"]}):
            refused = client.post("/answer", data={"number": number, **given})
            if "none" in given.get("answer", ()) and 'value="none" required' in page.text:
                continue
            assert refused.status_code == 422 and 'role="alert"' in refused.text, given
            assert len(Answers(study).person("Ada").answers) == int(number)
        page = answer(client, page)


def test_a_disk_that_fails_is_said(client, monkeypatch, study):
    page = client.post("/begin", data={"name": "Ada"})

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused = answer(client, page)
    assert refused.status_code == 500 and "could not be saved" in refused.text
    monkeypatch.undo()
    assert "Question 2 of 9" in answer(client, page).text
    assert len(Answers(study).person("Ada").answers) == 1


def test_a_text_is_never_a_part_of_the_page(tmp_path):
    model = pertinent.wrap(predict, kind="text", classes=["<i>bad</i>", "<i>good</i>"])
    texts = [f"<script>alert({i})</script> & good <b>word</b> number {i} of them" for i in range(4)]
    compared = pertinent.compare(model, texts, ["leave-one-out", "random"], progress=False)
    explanations = pertinent.Explanations(compared.explanations)
    study = pertinent.create_study(explanations, tmp_path / "study", title="<u>Study</u>", checks=0)
    with serving(StudySite(study).app(TOKEN)) as address, visitor(address) as client:
        pages = [client.get("/"), client.post("/begin", data={"name": "O'Neill & Co"})]
        pages.append(client.post("/begin", data={"name": "O'Neill"}))
        while "Thank you" not in pages[-1].text:
            pages.append(answer(client, pages[-1]))
    for page in pages:
        assert not re.search("<(script|b|i|u)>", page.text)
    assert "O&#39;Neill" in pages[-1].text
    assert "only check" not in pages[0].text  # there are no checks


def test_several_people_at_once_are_not_mixed_up(address, study):
    def take_part(name):
        with visitor(address) as own:
            page = own.post("/begin", data={"name": name})
            while "Thank you" not in page.text:
                assert f"You answer as {name}" in page.text
                page = answer(own, page)

    people = [threading.Thread(target=take_part, args=(f"person {i}",)) for i in range(8)]
    for each in people:
        each.start()
    for each in people:
        each.join(60)
    found = Answers(study).people.values()
    assert sorted(person.number for person in found) == list(range(8))
    assert all(person.is_done and person.failed_checks == 0 for person in found)


def test_who_is_let_in(address, study):
    assert httpx.get(address).status_code == 403
    cookies = {COOKIE: TOKEN}
    with httpx.Client(cookies=cookies) as client:
        form = {"data": {"name": "Ada"}, "headers": {"Origin": "http://elsewhere.example"}}
        assert client.post(f"{address}/begin", **form).status_code == 403
        assert client.get(address, headers={"Host": "elsewhere.example"}).status_code == 403
        large = client.post(f"{address}/begin", data={"name": "a" * 1_100_000})
        assert large.status_code == 413
        client.cookies.set(PERSON, "another-study-0")
        assert "Nickname" in client.get(address).text
    assert not Answers(study).people


@contextmanager
def started(study, how):
    """A process that serves a study, ended by a signal; the address that it prints."""
    command = [sys.executable, "-m", "pertinent", "study", "serve", str(study.folder), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(pertinent.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            yield process.stdout.readline().split()[-1]
            process.send_signal(how)
            assert process.wait(20) == (-9 if how == signal.SIGKILL else 0), process.stderr.read()
        finally:
            process.kill()


def test_who_was_answering_goes_on_after_the_server_was_killed(study):
    with httpx.Client(follow_redirects=True, timeout=30) as client:
        with started(study, signal.SIGKILL) as address:
            client.base_url = address.partition("?")[0]
            page = client.get(address)
            assert "Nickname" in page.text
            page = answer(client, answer(client, client.post("/begin", data={"name": "Ada"})))
            assert "Question 3 of 9" in page.text
            with pytest.raises(FileError, match="served already"):
                pertinent.serve_study(study.folder, port=0)
        with started(study, signal.SIGINT) as again:
            assert again.partition("?")[2] == address.partition("?")[2]  # the same token
            client.base_url = again.partition("?")[0]
            assert "Question 3 of 9" in client.get("/").text
    assert len(Answers(study).person("Ada").answers) == 2
    assert (study.folder / "token.txt").stat().st_mode & 0o777 == 0o600


def test_settings_are_checked(study):
    with pytest.raises(SettingError, match="`host` must be the address"):
        pertinent.serve_study(study.folder, host="0.0.0.0")
    with pytest.raises(FileError, match="is not a study"):
        pertinent.serve_study(study.folder.parent)


def test_on_the_command_line(explanations, tmp_path, capsys):
    explanations.save(tmp_path / "compared.parquet")
    folder = tmp_path / "study"
    create = ["study", "create", str(tmp_path / "compared.parquet"), "--out", str(folder)]
    assert main([*create, "--kinds", "guess,rate"]) == 0
    said = capsys.readouterr().out
    assert "8 inputs, 3 methods (leave-one-out, random, shapley), 10 questions per participant." in said
    assert "with 6 participants" in said
    take_part(Study.read(folder), 6, by_the_words)
    picture, json = tmp_path / "study.png", tmp_path / "study.json"
    assert main(["study", "report", str(folder), "--plot", str(picture), "--json", str(json)]) == 0
    said = capsys.readouterr().out
    assert "6 participants, 6 finished." in said and "Krippendorff's alpha" in said
    assert picture.stat().st_size > 5000 and '"accuracy"' in json.read_text()
    assert main(["study"]) == 2
    assert main(["study", "creat"]) == 2
    assert "study create" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1200, "light")])
def test_in_a_browser_by_keyboard(browser, address, study, width, scheme):
    with new_page(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        page.goto(f"{address}/?token={TOKEN}")
        page.fill("[name=name]", "Ada")
        page.keyboard.press("Enter")
        for i in range(9):
            page.wait_for_selector(f"text=Question {i + 1} of 9")
            kind = Answers(study).person("Ada").questions[i].kind
            assert page.evaluate("document.documentElement.scrollWidth") == width, kind
            chosen = page.locator("[name=answer]").nth(1)
            if kind == "check":
                grade = Answers(study).person("Ada").questions[i].grade
                chosen = page.locator(f"[name=answer][value='{grade}']")
            chosen.focus()
            page.keyboard.press("Space")
            page.keyboard.press("Enter")
        page.wait_for_selector("text=Thank you, Ada!")
    person = Answers(study).person("Ada")
    assert person.is_done and person.failed_checks == 0
