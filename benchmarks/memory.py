"""Memory as the number of inputs grows: the peaks of 10 and of 1,000 inputs should be the same.

    python benchmarks/memory.py [--inputs 10 1000] [--tokens 40] [--evaluations 200] [--json PATH]

Kernel-shap on the 6-layer, 384-wide encoder of the CPU benchmark.
`streamed` drops every result as it comes, which leaves what the engine itself holds;
`kept` is `pertinent.explain`, results and all. Every measurement has a process of its own.
The texts are large enough for ten of them to fill batches.
`working` is the peak less what was held before the first input, after a few to warm up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import random_texts, table, word_tokenizer
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
MIB = 1024


def held(name: str) -> float:
    """MiB of memory: `VmRSS` now, `VmHWM` at its peak.

    Not `getrusage`, whose peak a new process inherits from the one that started it.
    """
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) / MIB


def stream(model: Any, n: int, tokens: int, evaluations: int) -> None:
    """Explain texts that come from a generator, and drop each result."""
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
    found = pertinent.explain(
        model, texts, "kernel-shap", features="tokens", budget=evaluations, progress=False
    )
    assert len(found) == n, found.failures[:1]


def measure(variant: str, n: int, tokens: int, evaluations: int) -> dict[str, Any]:
    """Run in this process."""
    case = load(1, evaluations)
    model = pertinent.wrap((case.model, word_tokenizer()))
    work = {"streamed": stream, "kept": keep}[variant]
    work(model, 3, tokens, evaluations)
    before, start = held("VmRSS"), time.perf_counter()
    work(model, n, tokens, evaluations)
    return {"peak": held("VmHWM"), "before": before, "seconds": time.perf_counter() - start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--tokens", type=int, default=40, help="of each text")
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--variant", choices=("streamed", "kept"), help="only this, in this process")
    parser.add_argument("--json", help="also keep the rows here")
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
            found = json.loads(done.stdout.strip().splitlines()[-1])
            first = first or found["peak"]
            ratio = found["peak"] / first
            met = ("yes" if ratio <= WITHIN else "NO") if variant == "streamed" else "results count"
            rows.append(
                {
                    "results": variant,
                    "inputs": n,
                    "peak MiB": f"{found['peak']:.1f}",
                    "working MiB": f"{found['peak'] - found['before']:.1f}",
                    "seconds": f"{found['seconds']:.1f}",
                    "x the first": f"{ratio:.3f}",
                    f"within {WITHIN}": met,
                }
            )
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print(f"\n{table(rows)}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
