"""A card in a notebook is readable in every theme: its ground and its ink switch together."""

from __future__ import annotations

import re

import pytest

from pertinent.rendering.colours import DARK, LIGHT

from .browser import dumped, needs_browser
from .contrast import contrast

THEMES = {
    "": None,
    'data-jp-theme-light="true"': LIGHT,
    'data-jp-theme-light="false"': DARK,
    'class="vscode-light"': LIGHT,
    'class="vscode-dark"': DARK,
    'theme="dark"': DARK,
}
COLOURS = """<script>
const frames = [...document.querySelectorAll("div[data-theme]")].map((frame) => {
  const of = (selector) => getComputedStyle(frame.querySelector(selector));
  const word = [...frame.querySelectorAll(".w[style]")].find((w) => w.style.cssText.includes("100%"));
  const parts = [of(".pertinent").backgroundColor, of(".pertinent").color, of("dt").color,
    getComputedStyle(word).backgroundColor, getComputedStyle(word).color];
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  return parts.map((colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return "#" + [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)]
      .map((b) => b.toString(16).padStart(2, "0")).join("");
  }).join(" ");
});
document.title = frames.join("|");
</script>"""


@needs_browser
@pytest.mark.parametrize(("system", "setting"), [(LIGHT, 1), (DARK, 0)], ids=["light", "dark"])
def test_ground_and_ink_switch_together(text, system, setting, tmp_path):
    frames = "".join(f"<div data-theme {theme}>{text.to_html()}</div>" for theme in THEMES)
    page = f"<!doctype html><meta charset='utf-8'><body>{frames}{COLOURS}"
    seen = dumped(page, tmp_path, f"--blink-settings=preferredColorScheme={setting}")
    found = re.search("<title>(.*?)</title>", seen)[1].split("|")
    for theme, colours in zip(THEMES.values(), found, strict=True):
        ground, ink, quiet, word, word_ink = colours.split()
        surface = theme or system
        assert (ground, ink, word, word_ink) == (surface.ground, surface.ink, surface.support, surface.ink)
        assert contrast(quiet, ground) > 4.5
