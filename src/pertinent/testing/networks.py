"""Small networks with fixed weights, for methods that need gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pertinent.testing.row_log import RowLog


def text_network(words: Sequence[str], classes: Sequence[str]) -> tuple[Any, Any]:
    """Return a random two-layer BERT that reads these words, and its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special = dict(zip(names, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), strict=True))
    vocabulary = {token: i for i, token in enumerate([*special.values(), *words])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    raw.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=64, **special)  # type: ignore[no-untyped-call]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.24,
        id2label=dict(enumerate(classes)),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network: Any = BertForSequenceClassification
        return network(config).eval(), tokenizer


class RowNetwork(torch.nn.Module):
    """The logits of `examples.probabilities` for table rows of any length, with a log of the rows."""

    def __init__(self, log: RowLog) -> None:
        super().__init__()
        self.log = log

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, 3)."""
        self.log.add(x.detach().numpy(), gradient=x.requires_grad)
        i = torch.arange(x.shape[1])
        classes = torch.eye(3)
        single = (x * (1.0 + 0.5 * torch.sin(i))) @ classes[i % 3]
        joint = torch.tanh(x * x.roll(1, dims=1)) @ classes[(i + 1) % 3]
        return torch.tensor([0.0, 0.3, -0.2]) + single + joint


class ImageNetwork(torch.nn.Module):
    """A convolution, and the mean of its maps over the image."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 3, 3, padding=1)
        weights = torch.linspace(-2, 2, self.convolution.weight.numel())
        self.convolution.weight.data = torch.sin(5 * weights).reshape(self.convolution.weight.shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (images, 3)."""
        maps: torch.Tensor = self.convolution(x)
        return 5 * torch.tanh(maps).mean(dim=(2, 3))


class OneColumnNetwork(torch.nn.Module):
    """Logits of two classes that depend on one column of a table row."""

    def __init__(self, column: int) -> None:
        super().__init__()
        self.column = column

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, 2)."""
        values = rows[:, self.column]
        return torch.stack([3 * values - 1, 0 * values], dim=1)
