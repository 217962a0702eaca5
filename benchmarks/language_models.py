"""Speed of explaining a language model's answer, compared with plain loops and other libraries.

    python benchmarks/language_models.py --device cuda    # 1.1 billion parameters, bfloat16: under 2 minutes
    OMP_NUM_THREADS=1 python benchmarks/language_models.py --device cpu    # with captum and context-cite

All use the same number of evaluations of a model in the shape of Llama with random weights. On a GPU: a
prompt of 512 tokens, an answer of 32, and 512 masks that keep half of the tokens; and leave-one-out over all
tokens. One plain loop evaluates one row at a time with all logits; the other evaluates the whole padded
prompt, with an attention mask and only the answer's logits, in the best batch size.

On the CPU, with a small model: captum's LLMAttribution, which evaluates one mask at a time, with its default
(token by token) and with one pass per mask; and the loop of context-cite 0.0.4 (kept tokens, left padding,
all logits), with its default batch size of 1 and with the best. The loop is reimplemented here because the
package needs spacy, nltk and a download. Each time is the best of `--repeats` after a warm-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from common import WORDS, new_parser, random_texts, save, synchronise, word_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

import pertinent
from pertinent.array_types import Masks

SHAPES: dict[str, dict[str, Any]] = {
    "cuda": {"num_hidden_layers": 22, "hidden_size": 2048, "intermediate_size": 5632, "heads": 32},
    "cpu": {"num_hidden_layers": 6, "hidden_size": 256, "intermediate_size": 704, "heads": 8},
}
SIZES = {"cuda": (512, 32, 512), "cpu": (64, 8, 32)}
"""The number of tokens of the prompt, of tokens of the answer, and of masks."""

BATCHES = {"cuda": (16, 32, 64, 128), "cpu": (4, 16)}
"""Batch sizes of a padded loop, of which the best is used."""


class Case:
    """A model, a prompt with its answer, and masks over its tokens."""

    def __init__(self, device: str, n_prompt: int, n_answer: int, n_masks: int) -> None:
        self.device, self.n_answer = torch.device(device), n_answer
        self.tokenizer = word_tokenizer(n_prompt + n_answer + 2)
        self.tokenizer.backend_tokenizer.post_processor = None  # no special tokens
        self.tokenizer.padding_side = "left"
        self.model = llama(device, n_prompt + n_answer + 2)
        self.prompt, self.answer = random_texts(1, n_prompt + 2)[0], " " + random_texts(1, n_answer + 2, 1)[0]
        self.ids = np.array(self.tokenizer(self.prompt)["input_ids"])
        self.answer_ids = np.array(self.tokenizer(self.answer)["input_ids"])
        self.masks = np.random.default_rng(0).random((n_masks, n_prompt)) < 0.5
        self.wrapped = pertinent.wrap((self.model, self.tokenizer))

    def explain(self, method: str, **settings: Any) -> Any:
        """Explain the answer by the tokens of the prompt."""
        prompt = pertinent.Prompt(self.prompt, answer=self.answer, fixed="none")
        options: dict[str, Any] = {"features": "tokens", "progress": False, **settings}
        return pertinent.explain(self.wrapped, prompt, method, **options)

    def kept(self, mask: Masks) -> list[int]:
        """Return the ids of the kept tokens and of the answer."""
        return [*self.ids[mask].tolist(), *self.answer_ids.tolist()]

    def log_likelihoods(self, logits: torch.Tensor) -> torch.Tensor:
        """Compute the answer's log-likelihood from its logits, (rows, answer, vocabulary)."""
        answer = torch.tensor(self.answer_ids, device=self.device)
        logs = logits.float().log_softmax(dim=-1)
        return logs.gather(2, answer[None, :, None].expand(len(logs), -1, 1)).sum(dim=(1, 2))


def llama(device: str, longest: int) -> Any:
    """Return a language model with random weights."""
    torch.manual_seed(0)
    shape = dict(SHAPES[device])
    heads = shape.pop("heads")
    config = LlamaConfig(
        vocab_size=32_000,
        num_attention_heads=heads,
        num_key_value_heads=heads // 8,
        max_position_embeddings=longest,
        **shape,
    )
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        model: Any = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]
    return model.to(dtype).eval()


# -- plain loops -----------------------------------------------------------------------------------


def one_at_a_time(case: Case, masks: Masks) -> torch.Tensor:
    """Evaluate kept tokens, one row at a time, with all logits."""
    values = []
    for mask in masks:
        logits = case.model(input_ids=torch.tensor([case.kept(mask)], device=case.device)).logits
        values.append(case.log_likelihoods(logits[:, -case.n_answer - 1 : -1]))
    return torch.cat(values).cpu()


def left_padded(case: Case, masks: Masks, size: int) -> torch.Tensor:
    """Evaluate kept tokens in batches, padded on the left, with all logits, as context-cite does."""
    values = []
    for some in _parts(masks, size):
        rows = [case.kept(mask) for mask in some]
        batch = case.tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(case.device)
        logits = case.model(**batch).logits
        values.append(case.log_likelihoods(logits[:, -case.n_answer - 1 : -1]))
    return torch.cat(values).cpu()


def whole_padded(case: Case, masks: Masks, size: int) -> torch.Tensor:
    """Evaluate the whole prompt in batches, with removed tokens masked, and only the answer's logits."""
    ids = torch.tensor([*case.ids, *case.answer_ids], device=case.device)
    values = []
    for some in _parts(masks, size):
        attend = np.concatenate([some, np.ones((len(some), case.n_answer), dtype=bool)], axis=1)
        mask = torch.tensor(attend.astype(np.int64), device=case.device)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        logits = case.model(
            input_ids=ids.expand(len(some), -1),
            attention_mask=mask,
            position_ids=positions,
            logits_to_keep=case.n_answer + 1,
        ).logits
        values.append(case.log_likelihoods(logits[:, :-1]))
    return torch.cat(values).cpu()


def _parts(masks: Masks, size: int) -> Iterator[Masks]:
    return (masks[first : first + size] for first in range(0, len(masks), size))


# -- measuring -------------------------------------------------------------------------------------


def seconds(case: Case, work: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time of several calls, after one for warm-up."""
    times = []
    for _ in range(repeats + 1):
        synchronise(case.device)
        start = time.perf_counter()
        work()
        synchronise(case.device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def best(case: Case, loop: Any, masks: Masks, sizes: tuple[int, ...], repeats: int) -> tuple[float, int]:
    """Return the shortest time of a loop over batch sizes, and the size."""
    return min((seconds(case, lambda: loop(case, masks, size), repeats), size) for size in sizes)  # noqa: B023


@torch.inference_mode()
def on_gpu(case: Case, repeats: int) -> list[dict[str, Any]]:
    """Measure masks that remove half of the tokens, and masks that remove one token."""
    n, sizes = len(case.masks), BATCHES["cuda"]
    one = np.ones((case.masks.shape[1],) * 2, dtype=bool)
    np.fill_diagonal(one, val=False)
    rows = []
    for name, method, masks, settings, goal in (
        ("half of the tokens removed", "banzhaf", case.masks, {"samples": n}, "at most 0.90 s"),
        ("one token removed", "leave-one-out", one, {}, "at most 0.6 of the padded loop"),
    ):
        padded, size = best(case, whole_padded, masks, sizes, repeats)
        loop = seconds(case, lambda: one_at_a_time(case, masks), 1)  # noqa: B023
        case.explain(method, **settings)  # the engine finds its batch size
        ours = seconds(case, lambda: case.explain(method, **settings), repeats + 2)  # noqa: B023
        rows.append(
            {
                "masks": f"{len(masks)}, {name}",
                "one row at a time, all logits": f"{loop:.2f} s",
                f"whole prompt padded, best batch of {sizes}": f"{padded:.2f} s ({size})",
                "pertinent": f"{method} {ours:.3f} s",
                "/ padded": f"{ours / padded:.2f}",
                "goal": goal,
            }
        )
        print(rows[-1], flush=True)
    return rows


@torch.inference_mode()
def on_cpu(case: Case, repeats: int) -> list[dict[str, Any]]:
    """Compare with captum and the loop of context-cite."""
    from captum.attr import FeatureAblation, KernelShap, LLMAttribution, TextTokenInput

    n = len(case.masks)

    def captum(method: Any, *, by_token: bool, **settings: Any) -> Callable[[], Any]:
        return lambda: LLMAttribution(method(case.model), case.tokenizer).attribute(
            TextTokenInput(case.prompt, case.tokenizer),
            target=case.answer,
            forward_in_tokens=by_token,
            **settings,
        )

    half = seconds(case, lambda: case.explain("banzhaf", samples=n), repeats)
    each = seconds(case, lambda: case.explain("leave-one-out"), repeats)
    padded, size = best(case, left_padded, case.masks, BATCHES["cpu"], repeats)
    some = {"n_samples": n}
    timed = {
        "captum KernelShap, default": (captum(KernelShap, by_token=True, **some), half),
        "captum KernelShap, one pass per mask": (captum(KernelShap, by_token=False, **some), half),
        "captum FeatureAblation, default": (captum(FeatureAblation, by_token=True), each),
        "captum FeatureAblation, one pass per mask": (captum(FeatureAblation, by_token=False), each),
        "loop of context-cite, batch of 1": (lambda: left_padded(case, case.masks, 1), half),
    }
    peers = [(f"loop of context-cite, best batch ({size})", padded, half)]
    for peer, (work, ours) in timed.items():
        peers.append((peer, seconds(case, work, 1), ours))
        print(f"{peer}: {peers[-1][1]:.2f} s, pertinent {ours:.2f} s", flush=True)
    return [
        {
            "peer": name,
            "peer, s": f"{theirs:.2f}",
            "pertinent, s": f"{ours:.2f}",
            "ratio": f"{theirs / ours:.2f}",
        }
        for name, theirs, ours in peers
    ]


def agreement(case: Case) -> float:
    """Return the largest difference of log-likelihoods from a plain loop, in nats."""
    plain = one_at_a_time(case, case.masks[:8]).numpy()
    prompt = pertinent.Prompt(case.prompt, answer=case.answer, fixed="none")
    input: Any = case.wrapped.prepare(prompt, "tokens")
    rows = pertinent.removals.SliceOut()(input, case.masks[:8], 0)
    return float(np.abs(case.wrapped.submit([rows]).outputs()[:, 0] - plain).max())


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu")
    parser.add_argument("--sizes", type=int, nargs=3, help="tokens of prompt and answer, masks")
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    assert len(WORDS) < 32_000
    case = Case(arguments.device, *(arguments.sizes or SIZES[arguments.device]))
    n_weights = sum(weights.numel() for weights in case.model.parameters())
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {n_weights / 1e6:,.0f} million parameters", flush=True)
    with torch.inference_mode():
        print(f"largest difference from a plain loop: {agreement(case):.2g} nats", flush=True)
    run = on_gpu if arguments.device == "cuda" else on_cpu
    save(run(case, arguments.repeats), arguments.json)


if __name__ == "__main__":
    main()
