"""View of saved explanations: a searchable list, and a page for each input."""

from __future__ import annotations

import asyncio

from fastapi import Request, Response

from pertinent.app.explanation_browser import ExplanationBrowser, Filter
from pertinent.app.views import Routes, View, views


@views.register("browse")
class BrowseView(View):
    """Lists saved explanations."""

    title, path, order = "Browse", "/browse", 2

    @property
    def is_available(self) -> bool:
        """Whether there are saved explanations."""
        return self.site.saved is not None

    @property
    def saved(self) -> ExplanationBrowser:
        """Return the saved explanations."""
        assert self.site.saved is not None
        return self.site.saved

    def routes(self) -> Routes:
        """Return the routes of the list and of one explanation."""
        return {("GET", self.path): self.page, ("GET", "/browse/{number}"): self.one}

    async def page(self, request: Request) -> Response:
        """Return the list, filtered and sorted by the query."""
        filter = Filter.from_query(dict(request.query_params))
        context = await asyncio.to_thread(self.saved.list_view, filter)
        return self.render("pertinent.app:browse.html", **context)

    async def one(self, number: int) -> Response:
        """Return the page of one saved explanation."""
        return self.render("pertinent.app:one.html", **await asyncio.to_thread(self.saved.one_view, number))
