"""Page views of the web app, one registered class per file.

A view has a title in the navigation, a path, and routes. To add one from another package:

1. Write a class and register it::

       from pertinent.app.views import View, views

       @views.register("drift")
       class DriftView(View):
           title = "Drift"
           path = "/drift"

           @property
           def is_available(self) -> bool:
               return self.site.saved is not None

           def routes(self) -> Routes:
               return {("GET", self.path): self.page}

           async def page(self) -> Response:
               return self.render("my_package:drift.html", explanations=self.site.saved.explanations)

2. Put the template ``drift.html`` into the folder ``templates`` of ``my_package``. It begins with
   ``{% extends "pertinent.app:site.html" %}`` and fills the blocks ``title`` and ``main``.
3. Name the module in the entry points of the package, so that ``pertinent serve`` finds it::

       [project.entry-points."pertinent.app.views"]
       drift = "my_package.drift"

Templates escape values. Files that a page loads, such as scripts, are named in `View.files` and served under
``/static/``. A view may read the models (``site.models``) and the saved explanations (``site.saved``); run
slow work with ``asyncio.to_thread``. An error of this package is answered with its message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from fastapi import Response
from fastapi.responses import HTMLResponse

from pertinent.config.registry import Registry
from pertinent.rendering.html import from_template

if TYPE_CHECKING:
    from pertinent.app.site import Site

Routes: TypeAlias = Mapping[tuple[str, str], Callable[..., Coroutine[Any, Any, Response]]]
"""Endpoints by HTTP method and path."""


class View(ABC):
    """A page view of the web app.

    Attributes
    ----------
    title
        The name of the view in the navigation.
    path
        The path of its page.
    order
        Views with lower numbers come first in the navigation.
    files
        The files that its page loads from ``/static/``, as ``"package:file"``; the file is in the package.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    path: ClassVar[str]
    order: ClassVar[int] = 100
    files: ClassVar[tuple[str, ...]] = ()

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def is_available(self) -> bool:
        """Whether the site has the data that the view shows."""
        return True

    @abstractmethod
    def routes(self) -> Routes:
        """Return the endpoints of the view."""

    def render(self, template: str, **context: Any) -> Response:
        """Return a page from a template, ``package:file``, with the navigation."""
        return HTMLResponse(from_template(template, views=self.site.views, view=self, **context))


views: Registry[View] = Registry("page view", "pertinent.app.views", needs=("title", "path"))
