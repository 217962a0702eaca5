"""The web page of a study: one question after the other, each answer on disk before the next."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from pertinent.app.participant_cookies import ParticipantCookies
from pertinent.app.token_auth import LOCAL, TokenAuth
from pertinent.errors import FileError, InputError
from pertinent.inputs.modality import modality_named
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.html import from_template, read_asset, style
from pertinent.study.answers import Answers, Person
from pertinent.study.design import GRADES, Study, StudyQuestion

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_PACKAGE = "pertinent.app"
COOKIE = "pertinent-person"
_DAYS = 60
_LARGEST_FORM = 1_000_000

UNDECIDED = "none"
SIDES = ("first", "second")
"""What forms send where none of the answers is chosen, and for the explanation on the left or right."""

_Form = Mapping[str, Sequence[str]]


class StudySite:
    """The page of a study: people enter by a nickname, and answer forms that need no script."""

    def __init__(self, study: Study) -> None:
        self.study, self.answers, self.passes = study, Answers(study), ParticipantCookies(study)
        self._entering = asyncio.Lock()
        sheets = (
            str(style("page.css")),
            *(read_asset(f"static/{name}.css", _PACKAGE) for name in ("app", "study")),
        )
        self.style = "\n".join(sheets)

    def app(self, token: str, names: Sequence[str] = LOCAL) -> ASGIApp:
        """The application, behind its guard."""
        app = FastAPI(openapi_url=None, redirect_slashes=False)
        app.get("/")(self.page)
        app.post("/begin")(self.begin)
        app.post("/answer")(self.answer)
        app.post("/leave")(self.leave)
        app.get("/static/study.css")(self.sheet)
        return TokenAuth(app, token, _LARGEST_FORM, names)

    async def sheet(self) -> Response:
        """The style sheet."""
        return Response(self.style, media_type="text/css")

    async def page(self, request: Request) -> Response:
        """The question to be answered next; the first page for who is new, and thanks for who is done."""
        person = self._person(request)
        return self._start() if person is None else await asyncio.to_thread(self._question, person)

    async def begin(self, request: Request) -> Response:
        """Enter with a new nickname, or with the nickname and code of a participant who has begun."""
        form = await _form(request)
        name, code = _one(form, "name"), _one(form, "code")
        try:
            async with self._entering:  # two people who choose the same nickname at the same time
                person = self.answers.person(name)
                if person is None:
                    person = await asyncio.to_thread(self.answers.enter, name)
                elif not self.passes.accepts(person, code):
                    problem = f"This is not the code of {person.name}." if code else ""
                    return self._start(name, problem, 403 if code else 200, is_known=True)
        except InputError as error:
            return self._start(name, str(error), 422)
        except FileError as error:
            return self._start(name, str(error), 500)
        response = RedirectResponse("/", 303)
        value = self.passes.cookie(person)
        response.set_cookie(COOKIE, value, max_age=_DAYS * 86_400, httponly=True, samesite="lax")
        return response

    async def answer(self, request: Request) -> Response:
        """Keep an answer; then the next question comes, also if this one was answered before."""
        person, form = self._person(request), await _form(request)
        if person is None:
            return RedirectResponse("/", 303)
        number = _one(form, "number")
        if number != str(len(person.answers)) or person.is_done:
            return RedirectResponse("/", 303)
        try:
            await asyncio.to_thread(self._record, person, int(number), form.get("answer", ()))
        except FileError:
            problem = "Your answer could not be saved. Please send it again, or tell who runs the study."
            return await asyncio.to_thread(self._question, person, problem, 500)
        except InputError as error:
            return await asyncio.to_thread(self._question, person, str(error), 422)
        return RedirectResponse("/", 303)

    async def leave(self, request: Request) -> Response:
        """Forget the participant at this browser, and show the code to go on with; the answers are kept."""
        response = self._start(left=self._person(request))
        response.delete_cookie(COOKIE)
        return response

    def _person(self, request: Request) -> Person | None:
        return self.passes.owner(request.cookies.get(COOKIE, ""), self.answers.people.values())

    def _record(self, person: Person, number: int, values: Sequence[str]) -> None:
        self.answers.record(person, number, _given(self.study, person.questions[number], values))

    def _start(
        self,
        name: str = "",
        problem: str = "",
        status: int = 200,
        *,
        is_known: bool = False,
        left: Person | None = None,
    ) -> Response:
        """Return the first page; `left` is a participant who stops for now."""
        checks = self.study.description.checks
        counts = {
            "n": self.study.description.inputs + checks,
            "checks": checks,
            "plural": modality_named(self.study.explanations[0][0].input.kind).plural,
        }
        code = None if left is None or left.is_done else self.passes.code(left)
        entry = {"name": name, "problem": problem, "is_known": is_known, "left": left, "code": code}
        return self._made("study_start.html", status, **entry, **counts)

    def _question(self, person: Person, problem: str = "", status: int = 200) -> Response:
        if person.is_done:
            return self._made("study_end.html", status, person=person)
        question = person.questions[len(person.answers)]
        shown = question_view(self.study, question)
        code = self.passes.code(person)
        return self._made("study_question.html", status, person=person, code=code, problem=problem, **shown)

    def _made(self, file: str, status: int, **content: Any) -> Response:
        title, (thing, part) = self.study.description.title, self.study.nouns
        return HTMLResponse(
            from_template(f"{_PACKAGE}:{file}", title=title, thing=thing, part=part, **content), status
        )


def question_view(study: Study, question: StudyQuestion) -> dict[str, Any]:
    """Return what the page of a question shows: nothing in it tells which methods are shown."""
    e = study.explanations[question.input][0]
    drawing, none = drawing_of(e.input), np.zeros(e.input.n_features, dtype=np.bool_)
    chosen = [study.highlighted(question.input, method) for method in question.methods]
    masks = [np.isin(np.arange(e.input.n_features), features) for features in chosen]
    alone = question.kind == "guess"
    return {
        "kind": question.kind,
        "answered": e.target_name,
        "classes": e.classes,
        "grade": question.grade,
        "grades": GRADES,
        "sides": SIDES,
        "undecided": UNDECIDED,
        "shown": [drawing.html_study(e.input, mask, alone=alone) for mask in masks],
        "markable": drawing.html_study(e.input, none, can_mark=True) if question.kind == "mark" else "",
    }


def _given(study: Study, question: StudyQuestion, values: Sequence[str]) -> Any:
    """The answer that a form holds."""
    if not values:
        what = study.nouns[1]
        raise InputError(
            f"Mark at least one {what}, or “none”." if question.kind == "mark" else "Choose an answer."
        )
    if question.kind == "mark":
        if UNDECIDED in values:
            if len(values) > 1:
                raise InputError(f"A {study.nouns[1]} is marked and “none” is, too: choose one of them.")
            return []
        return [_number(each) for value in values for each in value.split(",")]
    value = values[0]
    if question.kind in ("rate", "check"):
        return _number(value)
    if value == UNDECIDED:
        return None
    if question.kind == "prefer":
        if value not in SIDES:
            raise InputError("Choose one of the two, or that there is no difference.")
        return question.methods[SIDES.index(value)]
    classes = study.explanations[question.input][0].classes
    if _number(value) >= len(classes):
        raise InputError("Choose one of the classes.")
    return classes[int(value)]


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise InputError("The answer must be a number.")
    return int(text)


async def _form(request: Request) -> dict[str, list[str]]:
    body = (await request.body()).decode("utf-8", "replace")
    return await asyncio.to_thread(parse_qs, body, keep_blank_values=True)


def _one(form: _Form, name: str) -> str:
    return form.get(name, [""])[0]
