"""A browser for tests; they are skipped, with the reason, where there is none."""

import shutil
from contextlib import contextmanager

import pytest

WIDTHS = (320, 1200)


@contextmanager
def chromium():
    """Debian's Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def new_page(browser, **settings):
    """A page; whatever its scripts or its policy complain of fails the test."""
    context = browser.new_context(**settings)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_default_timeout(20_000)
    try:
        yield page
    finally:
        context.close()
    assert not complaints
