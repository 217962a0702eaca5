"""The web app of a study: one question per page, each answer saved before the next question."""

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
"""Form values for an undecided answer, and for the explanation on the left or right."""

_Form = Mapping[str, Sequence[str]]


class StudySite:
    """Web app of a study: participants enter a nickname and answer forms that need no JavaScript."""

    def __init__(self, study: Study) -> None:
        self.study, self.answers, self.cookies = study, Answers(study), ParticipantCookies(study)
        self._entering = asyncio.Lock()
        sheets = (
            str(style("page.css")),
            *(read_asset(f"static/{name}.css", _PACKAGE) for name in ("app", "study")),
        )
        self.style = "\n".join(sheets)

    def app(self, token: str, names: Sequence[str] = LOCAL) -> ASGIApp:
        """Return the ASGI application, which answers only clients with the token."""
        app = FastAPI(openapi_url=None, redirect_slashes=False)
        app.get("/")(self.page)
        app.post("/begin")(self.begin)
        app.post("/answer")(self.answer)
        app.post("/leave")(self.leave)
        app.get("/static/study.css")(self.style_sheet)
        return TokenAuth(app, token, _LARGEST_FORM, names)

    async def style_sheet(self) -> Response:
        """Return the style sheet."""
        return Response(self.style, media_type="text/css")

    async def page(self, request: Request) -> Response:
        """Return the next question, the first page for new participants, or the last page at the end."""
        person = self._person(request)
        return self._start() if person is None else await asyncio.to_thread(self._question, person)

    async def begin(self, request: Request) -> Response:
        """Register a new nickname, or continue with the nickname and code of a participant."""
        form = await _form(request)
        name, code = _one(form, "name"), _one(form, "code")
        try:
            async with self._entering:  # two people may choose the same nickname simultaneously
                person = self.answers.person(name)
                if person is None:
                    person = await asyncio.to_thread(self.answers.enter, name)
                elif not self.cookies.accepts(person, code):
                    problem = f"This is not the code of {person.name}." if code else ""
                    return self._start(name, problem, 403 if code else 200, is_taken=True)
        except InputError as error:
            return self._start(name, str(error), 422)
        except FileError as error:
            return self._start(name, str(error), 500)
        response = RedirectResponse("/", 303)
        value = self.cookies.cookie(person)
        response.set_cookie(COOKIE, value, max_age=_DAYS * 86_400, httponly=True, samesite="lax")
        return response

    async def answer(self, request: Request) -> Response:
        """Save an answer and redirect to the next question; ignore answers to other questions."""
        person, form = self._person(request), await _form(request)
        if person is None:
            return RedirectResponse("/", 303)
        number = _one(form, "number")
        if number != str(len(person.answers)) or person.is_done:
            return RedirectResponse("/", 303)
        try:
            await asyncio.to_thread(self._record, person, int(number), form.get("answer", ()))
        except FileError:
            problem = (
                "Your answer could not be saved. Please send it again, or tell the organizer of the study."
            )
            return await asyncio.to_thread(self._question, person, problem, 500)
        except InputError as error:
            return await asyncio.to_thread(self._question, person, str(error), 422)
        return RedirectResponse("/", 303)

    async def leave(self, request: Request) -> Response:
        """Delete the cookie of the participant and show the code to continue with; keep the answers."""
        response = self._start(left=self._person(request))
        response.delete_cookie(COOKIE)
        return response

    def _person(self, request: Request) -> Person | None:
        return self.cookies.owner(request.cookies.get(COOKIE, ""), self.answers.people.values())

    def _record(self, person: Person, number: int, values: Sequence[str]) -> None:
        self.answers.record(person, number, _decode_answer(self.study, person.questions[number], values))

    def _start(
        self,
        name: str = "",
        problem: str = "",
        status: int = 200,
        *,
        is_taken: bool = False,
        left: Person | None = None,
    ) -> Response:
        """Return the first page; `left` is a participant who stopped."""
        checks = self.study.description.checks
        counts = {
            "n": self.study.description.inputs + checks,
            "checks": checks,
            "plural": modality_named(self.study.explanations[0][0].input.kind).plural,
        }
        code = None if left is None or left.is_done else self.cookies.code(left)
        entry = {"name": name, "problem": problem, "is_taken": is_taken, "left": left, "code": code}
        return self._render("study_start.html", status, **entry, **counts)

    def _question(self, person: Person, problem: str = "", status: int = 200) -> Response:
        if person.is_done:
            return self._render("study_end.html", status, person=person)
        question = person.questions[len(person.answers)]
        shown = question_view(self.study, question)
        code = self.cookies.code(person)
        return self._render("study_question.html", status, person=person, code=code, problem=problem, **shown)

    def _render(self, file: str, status: int, **content: Any) -> Response:
        title, (thing, part) = self.study.description.title, self.study.nouns
        return HTMLResponse(
            from_template(f"{_PACKAGE}:{file}", title=title, thing=thing, part=part, **content), status
        )


def question_view(study: Study, question: StudyQuestion) -> dict[str, Any]:
    """Return the context of a question's page, which does not reveal the methods."""
    e = study.explanations[question.input][0]
    drawing, none = drawing_of(e.input), np.zeros(e.input.n_features, dtype=np.bool_)
    chosen = [study.highlighted(question.input, method) for method in question.methods]
    masks = [np.isin(np.arange(e.input.n_features), features) for features in chosen]
    is_guess = question.kind == "guess"
    return {
        "kind": question.kind,
        "answered": e.target_name,
        "classes": e.classes,
        "grade": question.grade,
        "grades": GRADES,
        "sides": SIDES,
        "undecided": UNDECIDED,
        "shown": [drawing.html_study(e.input, mask, alone=is_guess) for mask in masks],
        "markable": drawing.html_study(e.input, none, can_mark=True) if question.kind == "mark" else "",
    }


def _decode_answer(study: Study, question: StudyQuestion, values: Sequence[str]) -> Any:
    """Return the answer in the values of a form."""
    if question.kind == "mark":
        return _decode_marks(study.nouns[1], values)
    if not values:
        raise InputError("Choose an answer.")
    value = values[0]
    if question.kind in ("rate", "check"):
        return _number(value)
    if value == UNDECIDED:
        return None
    if question.kind == "prefer":
        if value not in SIDES:
            raise InputError("Choose one of the two versions, or “No difference”.")
        return question.methods[SIDES.index(value)]
    classes = study.explanations[question.input][0].classes
    if _number(value) >= len(classes):
        raise InputError("Choose one of the classes.")
    return classes[int(value)]


def _decode_marks(part: str, values: Sequence[str]) -> list[int]:
    if not values:
        raise InputError(f"Mark at least one {part}, or choose “No {part} matters”.")
    if UNDECIDED not in values:
        return [_number(number) for value in values for number in value.split(",")]
    if len(values) > 1:
        raise InputError(f"Mark {part}s or choose “No {part} matters”, not both.")
    return []


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise InputError("The answer must be a number.")
    return int(text)


async def _form(request: Request) -> dict[str, list[str]]:
    body = (await request.body()).decode("utf-8", "replace")
    return await asyncio.to_thread(parse_qs, body, keep_blank_values=True)


def _one(form: _Form, name: str) -> str:
    return form.get(name, [""])[0]
