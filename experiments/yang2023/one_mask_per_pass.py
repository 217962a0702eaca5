"""KernelSHAP as the authors ran it, for timing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BatchEncoding

from experiments.yang2023.padding import PLAYERS, captum_masks, captum_regression
from pertinent.array_types import Floats


class OneMaskPerPass:
    """captum's KernelSHAP of the authors' inputs: rows of 512 positions, one in each pass."""

    def __init__(self, folder: Path, device: str, samples: int = 200) -> None:
        self.network = AutoModelForSequenceClassification.from_pretrained(folder).to(device).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.device, self.samples = device, samples

    @torch.no_grad()
    def classify(self, text: dict[str, str]) -> None:
        """Run the classifier once."""
        self.network(**self._encode(text)).logits.cpu()

    @torch.no_grad()
    def explain(self, text: dict[str, str]) -> Floats:
        """Explain a text; special tokens and padding play, but are never replaced."""
        encoded = self._encode(text)
        ids = encoded.pop("input_ids")
        special = torch.tensor(
            self.tokenizer.get_special_tokens_mask(ids[0].tolist(), already_has_special_tokens=True)
        ).bool()
        masks = captum_masks(PLAYERS, self.samples, np.random.default_rng(0))
        values = []
        for mask in masks:
            kept = (torch.from_numpy(mask) | special).to(self.device)
            row = torch.where(kept, ids, self.tokenizer.pad_token_id)
            values.append(self.network(input_ids=row, **encoded).logits[0].float().cpu().numpy())
        return captum_regression(masks, np.stack(values))

    def _encode(self, text: dict[str, str]) -> BatchEncoding:
        options = {"padding": "max_length", "truncation": True, "max_length": PLAYERS}
        return self.tokenizer(*text.values(), return_tensors="pt", **options).to(self.device)
