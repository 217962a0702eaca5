"""The style sheet of HTML reports; fragments carry it, so that each looks right alone in a notebook.

A card has a ground and an ink of its own, and `light-dark` switches both together: as the notebook
says, where it says which theme it has, else as the system says.
"""

from __future__ import annotations

from pertinent.report.colours import DARK, LIGHT
from pertinent.report.markup import Markup

_RULES = Markup("""
.pertinent { color-scheme: light dark;
  --ground: light-dark(%(light.ground)s, %(dark.ground)s); --ink: light-dark(%(light.ink)s, %(dark.ink)s);
  --quiet: light-dark(#5c626d, #a3a9b4); --line: light-dark(#e3e5e9, #34373e);
  --support: light-dark(%(light.support)s, %(dark.support)s);
  --against: light-dark(%(light.against)s, %(dark.against)s); --warn: light-dark(#fff4d6, #453a17);
  background: var(--ground); color: var(--ink); box-sizing: border-box; max-width: 64rem;
  border: 1px solid var(--line); border-radius: 10px; padding: 1.4rem 1.6rem; margin: 0 0 1.5rem;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
/* JupyterLab and Notebook; VS Code; Colab. */
[data-jp-theme-light="true"] .pertinent, .vscode-light .pertinent, .vscode-high-contrast-light .pertinent,
  [theme="light"] .pertinent { color-scheme: light; }
[data-jp-theme-light="false"] .pertinent, .vscode-dark .pertinent,
  .vscode-high-contrast:not(.vscode-high-contrast-light) .pertinent,
  [theme="dark"] .pertinent { color-scheme: dark; }
@media print { .pertinent { color-scheme: light !important; break-inside: avoid; } }
.pertinent *, .pertinent *::before { box-sizing: border-box; }
.pertinent h3 { font-size: 1.25rem; line-height: 1.3; font-weight: 650; margin: 0; color: inherit; }
.pertinent h3 span, .pertinent .quiet { color: var(--quiet); font-weight: 400; }
.pertinent h4 { font-size: .74rem; font-weight: 600; letter-spacing: .05em; text-transform: uppercase;
  color: var(--quiet); margin: 1.5rem 0 .5rem; }
.pertinent header p { margin: .15rem 0 0; color: var(--quiet); font-size: .9rem; }
.pertinent .columns { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
.pertinent .columns > div { flex: 1 1 24rem; min-width: 0; }
.pertinent .columns > aside { flex: 1 1 13rem; max-width: 20rem; font-size: .86rem; }
.pertinent .text { font-size: 1.08rem; line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: 1rem 0 0; padding: 0; border: 0; color: inherit; }
.pertinent .text.fixed { color: var(--quiet); font-size: .95rem; line-height: 1.6; }
.pertinent .w { background: color-mix(in srgb, var(--support) var(--share, 0%%), var(--ground));
  border-radius: 4px; padding: .14em .12em;
  margin: 0 -.12em; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.pertinent .w.against { background: color-mix(in srgb, var(--against) var(--share), var(--ground)); }
.pertinent .unread { color: var(--quiet);
  text-decoration: line-through color-mix(in srgb, var(--quiet) 50%%, var(--ground)); }
.pertinent .w.in { text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: .28em; }
.pertinent .legend { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .6rem;
  margin: .8rem 0 0; font-size: .8rem; color: var(--quiet); }
.pertinent .scale { width: 7rem; height: .6rem; border-radius: 3px;
  background: linear-gradient(to right, var(--against), var(--ground), var(--support));
  border: 1px solid var(--line); }
.pertinent .scale.half { width: 4rem; background: linear-gradient(to right, var(--ground), var(--support)); }
.pertinent .key { display: inline-block; width: 1.2rem; height: .6rem; border-radius: 2px;
  background: var(--support); }
.pertinent .key.against { background: var(--against); }
/* Pictures have the colours of the light scale on every ground. */
.pertinent :is(.pictures, .classes:has(.pictures)) + .legend :is(.scale, .key) {
  --against: %(light.against)s; --support: %(light.support)s; --ground: %(light.ground)s; }
.pertinent .pictures { display: flex; flex-wrap: wrap; gap: 1rem 1.25rem; margin: 1rem 0 0; }
.pertinent figure { margin: 0; }
.pertinent figcaption { font-size: .8rem; color: var(--quiet); margin-top: .25rem; }
.pertinent img { display: block; margin: 0; width: 13rem; max-width: 100%%;
  height: auto; border-radius: 4px; }
.pertinent .small img { width: 5.5rem; }
.pertinent .coarse { image-rendering: pixelated; }
.pertinent table { border-collapse: collapse !important; border: 0 !important; width: 100%%; margin: 0;
  font-size: .88rem; line-height: 1.4; font-variant-numeric: tabular-nums; table-layout: auto; }
/* Notebooks stripe, align and frame tables with selectors that are hard to outdo. */
.pertinent tr, .pertinent th, .pertinent td { background: none !important; border: 0 !important;
  color: inherit; text-align: left !important; vertical-align: middle !important; }
.pertinent th, .pertinent td { padding: .16rem .8rem .16rem 0; font-weight: 400; }
.pertinent th:last-child, .pertinent td:last-child { padding-right: 0; }
.pertinent .name { max-width: 13rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.pertinent .bars th { max-width: 13rem; overflow: hidden; text-overflow: ellipsis; }
.pertinent .bars th, .pertinent .bars td { width: 1%%; white-space: nowrap; }
.pertinent .bars td { text-align: right !important; }
.pertinent .bars td.name { text-align: left !important; }
.pertinent .bars td:has(div) { width: auto; }
.pertinent .number { text-align: right !important; white-space: nowrap; }
.pertinent .scroll { overflow-x: auto; }
.pertinent .rows .quiet { white-space: nowrap; }
.pertinent .tight { width: 1%%; white-space: nowrap; }
.pertinent thead th { color: var(--quiet); font-size: .8rem; }
.pertinent .rows tbody tr { border-top: 1px solid var(--line) !important; }
.pertinent .rows td, .pertinent .rows th { padding-top: .4rem; padding-bottom: .4rem; }
.pertinent .track, .pertinent .bars div { position: relative; display: block;
  height: .85rem; min-width: 4rem; }
.pertinent .track i, .pertinent .bars i { position: absolute; top: 0; bottom: 0; border-radius: 2px; }
.pertinent .track .zero, .pertinent .bars div::after { width: 1px; background: var(--quiet); opacity: .5; }
.pertinent .bars div::after { content: ""; position: absolute;
  left: var(--zero); top: -.3rem; bottom: -.3rem; }
.pertinent .bars .support { background: var(--support); }
.pertinent .bars .against { background: var(--against); }
.pertinent .track .plain, .pertinent .bars .plain { background: var(--quiet); opacity: .45; }
.pertinent i.error { height: 2px; top: calc(50%% - 1px); bottom: auto; background: var(--ink);
  opacity: .75; }
.pertinent .track .dot { width: .5rem; height: .5rem; border-radius: 50%%; top: calc(50%% - .25rem);
  margin-left: -.25rem; background: var(--ink); }
.pertinent dl { display: grid; grid-template-columns: auto 1fr; gap: .15rem .9rem; margin: 0; }
.pertinent dt { color: var(--quiet); font-weight: 400; }
.pertinent dd { margin: 0; overflow-wrap: anywhere; }
.pertinent .classes { display: grid; gap: 0 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%%), 1fr)); }
.pertinent .classes > div { min-width: 0; overflow-x: auto; }
.pertinent .classes .text { font-size: .98rem; line-height: 1.8; margin: .3rem 0 .6rem; }
.pertinent .classes .pictures { margin: .3rem 0 .6rem; }
.pertinent .named { font-size: 1rem; letter-spacing: 0; text-transform: none; color: inherit; }
.pertinent .note { background: var(--warn); border-radius: 6px; padding: .45rem .8rem; margin: 1rem 0 0;
  font-size: .9rem; }
.pertinent .failures { margin: .5rem 0 0; padding-left: 1.2rem; }
.pertinent .failures li { margin: .25rem 0; overflow-wrap: anywhere; }
.pertinent details { margin: .5rem 0 0; font-size: .88rem; }
.pertinent summary { color: var(--quiet); cursor: pointer; }
@media (max-width: 40rem) { .pertinent { padding: 1rem; }
  .pertinent .columns > aside { max-width: none; } .pertinent .name { max-width: 8rem; }
  .pertinent th, .pertinent td { padding-right: .5rem; } .pertinent table { font-size: .82rem; } }
""")

_PAGE_RULES = Markup("""
:root { color-scheme: light dark; --quiet: light-dark(#5c626d, #a3a9b4); }
body { margin: 0; padding: 3rem 1.25rem 4rem;
  background: light-dark(#f6f7f9, #121317); color: light-dark(#1b1d22, #f4f5f7);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 64rem; margin: 0 auto; }
main.wide { max-width: 100rem; }
main .pertinent { max-width: none; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; font-weight: 700; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .9rem; font-weight: 650; overflow-wrap: anywhere; }
h2 small { font-size: .85rem; font-weight: 400; color: var(--quiet); margin-left: .5rem; }
h2 small a { color: inherit; }
.lead { margin: 0; color: var(--quiet); }
/* A long report stays quick, because only what is near the window is laid out. */
section { content-visibility: auto; contain-intrinsic-size: auto 34rem; }
.beside { display: grid; gap: 0 1.25rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%%), 1fr)); }
.given { width: 13rem; margin: 0 0 1rem; border: 0; padding: 0; background: none; }
.controls { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: 0 0 .9rem; }
.controls[hidden], [hidden] { display: none; }
.controls input, .controls select { font: inherit; padding: .3rem .5rem; max-width: 100%%; }
.controls input { flex: 1 1 16rem; }
.index .scroll { max-height: 30rem; overflow-y: auto; }
.index a { color: inherit; }
.index thead th { position: sticky; top: 0; background: var(--ground) !important; z-index: 1; }
.index td { white-space: nowrap; }
.pertinent.index thead th { white-space: normal; }
.index th button { all: unset; cursor: pointer; }
.index th button:focus-visible { outline: 2px solid; }
.index th[aria-sort="ascending"] button::after { content: " ▲"; }
.index th[aria-sort="descending"] button::after { content: " ▼"; }
.index .start { max-width: 24rem; overflow: hidden; text-overflow: ellipsis; }
.index img { width: 2rem; image-rendering: pixelated; }
@media print { body { background: none; padding: 0; } section { content-visibility: visible; }
  .controls { display: none; } .index .scroll { max-height: none; } }
""")

_COLOURS = {
    f"{name}.{part}": getattr(surface, part)
    for name, surface in (("light", LIGHT), ("dark", DARK))
    for part in ("ground", "ink", "support", "against")
}

FRAGMENT = Markup("<style>{}</style>").format(_RULES % _COLOURS)
PAGE = Markup("<style>{}</style>").format((_RULES + _PAGE_RULES) % _COLOURS)
