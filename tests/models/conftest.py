"""Servers of a tiny language model."""

import pytest

from pertinent.models import endpoint_client
from tests.models.lm_server import serving


@pytest.fixture
def serve(monkeypatch):
    """Return a function that starts a server; see `Server` for its options."""
    monkeypatch.setattr(endpoint_client, "FIRST_PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving() as start:
        yield start
