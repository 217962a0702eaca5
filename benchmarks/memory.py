"""Memory by the number of inputs: the peaks for 10 and for 1,000 inputs should be equal.

    python benchmarks/memory.py [--inputs 10 1000] [--tokens 40] [--evaluations 200] [--json PATH]

Kernel-shap on the 6-layer, 384-wide encoder of the CPU benchmark. `streamed` drops every result, so that only
the engine's memory is measured; `kept` is `pertinent.explain` with all results. Every measurement runs in a
new process. The texts are long enough that ten of them fill batches. `working` is the peak minus the memory
before the first input, after a few inputs for warm-up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from common import new_parser, random_texts, resident_memory, save, seconds_of, table, word_tokenizer
from peers import load

import pertinent
from pertinent.asks import Algorithm, Values
from pertinent.config.fingerprints import generator
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job, JobResult
from pertinent.explainers.base import Task
from pertinent.masks import full_mask
from pertinent.removals.base import removals
from pertinent.runs.request import make_explainer

WITHIN = 1.10


def stream(model: Any, n: int, tokens: int, evaluations: int) -> None:
    """Explain texts from a generator, and drop each result."""
    explainer = make_explainer("kernel-shap")
    engine = Engine(model)

    def steps(input: Any) -> Algorithm:
        prediction = (yield Values(full_mask(input.n_features)))[0]
        rng = generator(0, explainer.name, input.fingerprint)
        return (yield from explainer.explain(Task(input.n_features, 0, prediction, evaluations, (0.1,), rng)))

    def jobs() -> Iterator[Job | JobResult]:
        removal = removals.make("attention-mask").bind(model)
        for number in range(n):
            input = model.prepare(random_texts(1, tokens, number)[0], "tokens")
            yield Job(number, input, removal, steps(input))

    for done in engine.run(jobs(), n):
        assert done.error is None, done.error


def keep(model: Any, n: int, tokens: int, evaluations: int) -> None:
    """Explain a list of texts, and keep all results."""
    texts = [random_texts(1, tokens, number)[0] for number in range(n)]
    explanations = pertinent.explain(
        model, texts, "kernel-shap", features="tokens", budget=evaluations, progress=False
    )
    assert len(explanations) == n, explanations.failures[:1]


def measure(variant: str, n: int, tokens: int, evaluations: int) -> dict[str, Any]:
    """Run in this process."""
    case = load(1, evaluations)
    model = pertinent.wrap((case.model, word_tokenizer()))
    work = {"streamed": stream, "kept": keep}[variant]
    work(model, 3, tokens, evaluations)
    before = resident_memory()
    seconds = seconds_of(work, model, n, tokens, evaluations)
    return {"peak": resident_memory(name="VmHWM"), "before": before, "seconds": seconds}


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--inputs", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--tokens", type=int, default=40, help="of each text")
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--variant", choices=("streamed", "kept"), help="measure only this, in this process")
    arguments = parser.parse_args()
    if arguments.variant:
        sizes = (arguments.inputs[0], arguments.tokens, arguments.evaluations)
        print(json.dumps(measure(arguments.variant, *sizes)))
        return
    rows = []
    for variant in ("streamed", "kept"):
        first = None
        for n in arguments.inputs:
            command = [sys.executable, __file__, "--variant", variant, "--inputs", str(n)]
            command += ["--tokens", str(arguments.tokens), "--evaluations", str(arguments.evaluations)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            result = json.loads(done.stdout.strip().splitlines()[-1])
            first = first or result["peak"]
            ratio = result["peak"] / first
            met = ("yes" if ratio <= WITHIN else "NO") if variant == "streamed" else "results count"
            rows.append(
                {
                    "results": variant,
                    "inputs": n,
                    "peak MiB": f"{result['peak']:.1f}",
                    "working MiB": f"{result['peak'] - result['before']:.1f}",
                    "seconds": f"{result['seconds']:.1f}",
                    "x the first": f"{ratio:.3f}",
                    f"within {WITHIN}": met,
                }
            )
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
