"""Records to keep: counts instead of the words of texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.vo2023.extra import stays
from experiments.vo2023.form_tables import EXAMPLES, tuned_forms
from experiments.vo2023.forms import FORMS
from experiments.vo2023.results import count_words
from experiments.vo2023.sets import TEXTS


def condensed_fits(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield fits with counts instead of words; fits that are not in a table have only their means."""
    shown = {(dataset, form) for dataset in TEXTS for form in (*tuned_forms(made, dataset).values(), *FORMS)}
    for name, record in made.items():
        lists = ("words", "targets", "examples", "values", "pi", "kept by check", "failures")
        plain = {key: value for key, value in record.items() if key not in lists}
        dataset, _, form, _ = name.split(" | ")
        if "words" in record and (dataset, form) in shown:
            plain |= {"values": record["values"], "counted": count_words(record)}
        yield name, plain if "words" in record else record


def condensed_part(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the stage extra with counts instead of words; of some texts the words are kept."""
    dataset, _, part = name.partition(" ")
    if part == "classes":
        return {"values": record["values"]}
    if part == "sizes":
        n = EXAMPLES[dataset]
        words = {row: top[:n] for row, top in record["words"].items() if row.startswith("l2x")}
        plain = {"texts": record["texts"][:n], "words": words, "stay": stays(record)}
        return {"faithfulness": record["faithfulness"], **plain}
    return {
        setting: {
            "faithfulness": own["faithfulness"],
            "seconds": own["seconds"],
            "counted": count_words(own),
        }
        for setting, own in record.items()
        if setting != "finished"
    }
