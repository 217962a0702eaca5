"""View of the quality of a model."""

from __future__ import annotations

import asyncio

from fastapi import Response

from pertinent.app.views import Routes, View, views


@views.register("model")
class ModelView(View):
    """Shows the accuracy of the model by class and by cohort."""

    title, path, order = "Model", "/model", 3

    @property
    def is_available(self) -> bool:
        """Whether true answers are available."""
        return self.site.saved is not None and self.site.saved.has_answers

    def routes(self) -> Routes:
        """Return the route of the page."""
        return {("GET", self.path): self.page}

    async def page(self, column: str = "", target: str = "") -> Response:
        """Return the page, for a column of a table and a class."""
        assert self.site.saved is not None
        context = await asyncio.to_thread(self.site.saved.model_view, column, target)
        return self.render("pertinent.app:model.html", **context)
