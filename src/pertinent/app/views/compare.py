"""View that compares methods by metrics and cost."""

from __future__ import annotations

import asyncio
from functools import cached_property

from fastapi import Response

from pertinent.app.method_comparison import MethodComparison
from pertinent.app.views import Routes, View, views


@views.register("compare")
class CompareView(View):
    """Compares the methods of saved explanations."""

    title, path, order = "Compare", "/compare", 4

    @cached_property
    def comparison(self) -> MethodComparison | None:
        """Return the comparison, if there are saved explanations."""
        return None if self.site.saved is None else MethodComparison(self.site.saved.explanations)

    @property
    def is_available(self) -> bool:
        """Whether several methods were measured."""
        return self.comparison is not None and self.comparison.is_available

    def routes(self) -> Routes:
        """Return the route of the page."""
        return {("GET", self.path): self.page}

    async def page(self, metric: str = "") -> Response:
        """Return the page, with a plot of one metric."""
        assert self.comparison is not None
        context = await asyncio.to_thread(self.comparison.view, metric)
        return self.render("pertinent.app:compare.html", **context)
