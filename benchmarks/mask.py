"""Cost of an attention mask: batches of equal size with and without one, by the length of their rows.

    python benchmarks/mask.py [--tokens 65536] [--lengths 30 76 150 270 400 511] [--json out.json]

`TransformerModel.mixed_length_penalty` on a GPU is chosen by these times.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from common import bert_base, new_parser, save
from torch.nn.attention import sdpa_kernel

from pertinent.models.tokens.attention_bias import hiding_bias
from pertinent.models.torch.devices import ATTENTION

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32


def milliseconds(model: Any, repeats: int, **inputs: torch.Tensor) -> float:
    """Return the mean time of a forward pass, after three for warm-up."""
    for rounds in (3, repeats):
        start = time.perf_counter()
        with torch.inference_mode(), sdpa_kernel(ATTENTION):
            for _ in range(rounds):
                logits = model(**inputs).logits
        logits.cpu()
    return (time.perf_counter() - start) / repeats * 1000


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--tokens", type=int, default=65_536, help="in a batch")
    parser.add_argument("--lengths", type=int, nargs="+", default=[30, 76, 150, 270, 400, 511])
    parser.add_argument("--repeats", type=int, default=8)
    arguments = parser.parse_args()
    model = bert_base(DTYPE, DEVICE)
    rows = []
    for length in arguments.lengths:
        ids = torch.randint(5, 30_000, (max(1, arguments.tokens // length), length), device=DEVICE)
        attend = torch.ones_like(ids)
        attend[len(ids) // 2 :, -1] = 0
        without = milliseconds(model, arguments.repeats, input_ids=ids)
        bias = hiding_bias(attend, DTYPE)
        masked = milliseconds(model, arguments.repeats, input_ids=ids, attention_mask=bias)
        rows.append(
            {
                "tokens in a row": length,
                "no mask, ms": round(without, 1),
                "with a mask, ms": round(masked, 1),
                "difference": f"{masked / without - 1:.0%}",
            }
        )
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
