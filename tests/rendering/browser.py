"""A page as a browser sees it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no browser")


def dumped(page, folder, *options):
    """The elements of a page after its scripts have run."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={folder}/user",
    ]
    command = [CHROMIUM, *flags, *options, "--virtual-time-budget=3000", "--dump-dom", path.as_uri()]
    run = subprocess.run(command, capture_output=True, timeout=90, check=True)
    return run.stdout.decode()
