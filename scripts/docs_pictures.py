"""Draw the pictures of the documentation (python scripts/docs_pictures.py docs/pictures).

Pictures of pages require Playwright, and Chromium on the path.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from rich.console import Console

import pertinent

if TYPE_CHECKING:
    from playwright.sync_api import Page

REVIEW = "The first half drags, but the acting is superb and the ending is a quiet triumph."
NEWS = "The chip maker's shares rose 4 percent after it raised its sales forecast for the year."
NOT_BAD = "The first half drags, but the acting is superb and the ending is not bad at all."
PAIR = ("The acting is superb.", "The ending drags, and the jokes are flat.")
SUBJECTS = ("The plot", "The acting", "The first hour", "The ending", "The score", "The script")
PRAISE = ("is a quiet joy from start to finish", "holds you until the very last scene")
BLAME = ("is a mess from start to finish", "is dull, slow and far too long")
OPINIONS = [f"{subject} {predicate}." for subject in SUBJECTS for predicate in (*PRAISE, *BLAME)]
LABELS = ["positive", "positive", "negative", "negative"] * len(SUBJECTS)

CALL = {"id": "1", "function": {"name": "search", "arguments": '{"query": "map"}'}}
RUN = [
    {"role": "system", "content": "Use tools, and be brief."},
    {"role": "user", "content": "Who keeps the map?"},
    {"role": "assistant", "content": "There is a list of things.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "Ann: key\n\nBob: map\n\nCarl: lamp"},
    {
        "role": "assistant",
        "reasoning_content": "Carl comes last.\nIt is Bob.",
        "content": "Bob keeps the map.",
    },
]


def draw_all(folder: Path) -> None:
    """Draw all pictures, except for those of pages without Chromium."""
    mpl.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    names = ("sentiment", "topics", "digits", "diabetes")
    sentiment, topics, digits, diabetes = map(pertinent.load, names)
    several = pertinent.explain(sentiment, [REVIEW, OPINIONS[3]])
    review = several[0]
    longer = [*OPINIONS, *map(" ".join, zip(OPINIONS, OPINIONS[5:], strict=False)), " ".join(OPINIONS[:4])]
    assert diabetes.background is not None
    patient = diabetes.background.values[0]
    figures: dict[str, Callable[[], Any]] = {
        "text": review.plot,
        "enough": lambda: pertinent.explain(sentiment, REVIEW, "parallel-local-search", budget=300).plot(),
        "table": lambda: pertinent.explain(diabetes, patient).plot(),
        "image": lambda: pertinent.explain(digits, eight(), features="pixels").plot(),
        "pair": lambda: pertinent.explain(sentiment, PAIR).plot(),
        "classes": lambda: pertinent.explain(topics, NEWS).by_class().plot(),
        "interactions": lambda: pertinent.explain(
            sentiment, NOT_BAD, "shapley-interactions", budget=400
        ).plot_interactions(top=8),
        "check": lambda: pertinent.check_removal(
            sentiment, OPINIONS, LABELS, removals=["attention-mask", "pad-token", "mask-token"]
        ).plot(),
        "errors": lambda: pertinent.explain(sentiment, REVIEW, "kernel-shap", budget=80).plot(),
        "compare": lambda: pertinent.compare(
            sentiment, OPINIONS, ["random", "leave-one-out", "integrated-gradients"], budget=100
        ).plot(),
        "stability": lambda: pertinent.stability(sentiment, longer, "shapley-sampling", samples=4).plot(
            pertinent.stability(sentiment, longer, "shapley-sampling", samples=25)
        ),
        "attack": lambda: pertinent.explain(digits, eight(), "greedy-as", features="pixels").plot(),
        "fitted": lambda: pertinent.explain(
            sentiment, OPINIONS[3], pertinent.fit(sentiment, longer, epochs=20, progress=False)
        ).plot(),
        "time-series": time_series,
        "study-report": lambda: example("study").main().plot(),
        "pareto": lambda: pertinent.compare(
            sentiment,
            OPINIONS,
            ["random", "leave-one-out", "lime:samples=50", "shapley", "integrated-gradients"],
            budget=100,
        ).plot_pareto("comprehensiveness"),
        "beeswarm": lambda: (
            pertinent.explain(diabetes, diabetes.background.values, "tree-shap")  # type: ignore[union-attr]
            .importance(top=8)
            .plot("beeswarm")
        ),
    }
    for name, figure in figures.items():
        figure().savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        print(name)
    console = Console(record=True, width=100, file=StringIO())
    console.print(review)
    console.save_svg(str(folder / "terminal.svg"), title="pertinent explain")
    if shutil.which("chromium") is None:
        print("Chromium is missing: pictures of pages are not updated.")
        return
    sources = ["Omar lives in Oslo. It rains today.", "Nora lives in Rome.", "Pia keeps the lamp."]
    prompt = pertinent.Prompt("Where does Nora live?", sources=sources)
    answer = pertinent.explain(pertinent.load("recall"), prompt, features="sentences")
    assert isinstance(answer, pertinent.Explanation)
    thinking = pertinent.explain_hops(pertinent.wrap(agent, value="exact-match"), RUN, "leave-one-out")
    cards(folder, {"explanation": review, "answer": answer, "agent": thinking})
    report(folder, several)
    web_pages(folder)
    study_page(folder)


@contextmanager
def browser_page(width: int, height: int, scheme: Literal["light", "dark"] = "light") -> Iterator[Page]:
    """Yield a page of a browser window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        browser.close()


def agent(messages: list[dict[str, Any]]) -> str:
    """Write the next step of `RUN`."""
    text = str(messages)
    if "It is Bob." in text:
        return "Bob keeps the map."
    if "Bob: map" in text:
        return "It is Bob."
    if "list of things" in text:
        return 'search({"query": "map"})'
    return "There is a list of things." if "tools" in text else "Somebody."


def cards(folder: Path, explanations: dict[str, pertinent.Explanation | pertinent.Hops]) -> None:
    """Draw single explanations as notebooks show them, without what is folded, in light and dark."""
    style = "<style>body { margin: 0 } .pertinent details { display: none }</style>"
    schemes: dict[str, Literal["light", "dark"]] = {"": "light", "-dark": "dark"}
    for name, explanation in explanations.items():
        for suffix, scheme in schemes.items():
            with browser_page(960, 420, scheme) as page:
                page.set_content(f"<!doctype html>{style}{explanation.to_html()}")
                page.screenshot(path=folder / f"{name}{suffix}.png", full_page=True)
        print(name)


def report(folder: Path, explanations: pertinent.Explanations) -> None:
    """Draw the beginning of a report."""
    with tempfile.TemporaryDirectory() as scratch, browser_page(1000, 1100) as page:
        path = Path(scratch) / "report.html"
        pertinent.save_report(explanations, path)
        page.goto(path.as_uri())
        page.screenshot(path=folder / "report.png")
    print("report")


def web_pages(folder: Path) -> None:
    """Draw the pictures of the web app."""

    def serve(saved: Path, **settings: Any) -> str:
        """Start the web app with saved explanations, and return its address."""
        addresses: Queue[str] = Queue()
        settings |= {"port": 0, "started": addresses.put, "browse": saved}
        Thread(target=pertinent.serve, kwargs=settings, daemon=True).start()
        return addresses.get(timeout=60)

    wines = import_module("pertinent.models.embedded.tables").wine_data()
    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch) / "reviews.parquet"
        pertinent.compare(pertinent.load("sentiment"), OPINIONS, ["shapley"], budget=200, out=saved)
        address = serve(saved)
        # Noise leads to wrong predictions, which the page shows.
        noise = np.random.default_rng(0).normal(size=wines.test_rows.shape) * wines.rows.std(axis=0)
        rows = Path(scratch) / "wines.parquet"
        pertinent.compare(pertinent.load("table"), wines.test_rows + noise, ["shapley"], budget=200, out=rows)
        judged = serve(rows, answers=wines.test_targets.tolist())
    with browser_page(900, 900) as page:
        page.goto(address)
        page.click("text=The best part was when it ended.")
        page.wait_for_selector("text=Done:")
        page.click(".text .w >> text=best")
        page.wait_for_selector("text=The prediction changes")
        page.screenshot(path=folder / "serve.png", full_page=True)
        page.select_option("[name=model]", "recall")
        page.wait_for_selector("[name=rather_than]")
        page.click(".chips button >> nth=0")
        page.wait_for_selector("text=Done:")
        page.locator(".answer .token").last.click()
        page.locator(".text .w").nth(1).click()
        page.wait_for_selector("text=Put back")
        page.screenshot(path=folder / "serve-answer.png", full_page=True)
        page.click("text=Browse")
        page.screenshot(path=folder / "browse.png")
        page.goto(judged)
        page.click("nav >> text=Model")
        page.screenshot(
            path=folder / "model.png", clip={"x": 0, "y": 0, "width": 900, "height": 1640}, full_page=True
        )
        print("serve, serve-answer, browse, model")


EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def example(name: str) -> Any:
    """Import an example of the documentation."""
    sys.path.append(str(EXAMPLES))
    return import_module(name)


def time_series() -> Any:
    """Draw the figure of the example of a custom modality."""
    with tempfile.TemporaryDirectory() as scratch:
        return example("time_series").main(Path(scratch)).plot()


def study_page(folder: Path) -> None:
    """Draw the picture of a question of the example study."""
    with tempfile.TemporaryDirectory() as scratch, browser_page(900, 420) as page:
        shutil.copytree(
            EXAMPLES / "study", f"{scratch}/study", ignore=shutil.ignore_patterns("answers", "*.txt")
        )
        addresses: Queue[str] = Queue()
        settings = {"study": f"{scratch}/study", "port": 0, "started": addresses.put}
        Thread(target=pertinent.serve_study, kwargs=settings, daemon=True).start()
        page.goto(addresses.get(timeout=60))
        page.fill("[name=name]", "Ada")
        page.click("text=Begin")
        while not page.locator(".two").count():
            question = page.locator("h1").inner_text()
            value = question[-2] if "Please choose" in question else None
            page.locator(f"[name=answer][value='{value}']" if value else "[name=answer]").last.check(
                force=True
            )
            with page.expect_navigation():
                page.click("text=Next")
        page.locator("[name=answer]").first.check()
        page.screenshot(path=folder / "study.png")
        print("study")


def eight() -> Any:
    """Return scikit-learn's first image of the digit 8."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return np.asarray(data.images[data.target == 8][0] / 16)


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]))
