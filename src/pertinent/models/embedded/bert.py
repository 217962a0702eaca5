"""BERT in plain torch for the embedded text classifiers, because importing transformers takes seconds.

It reads the files of transformers, has the same parameter names, and computes the same numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from pertinent.models.tokens import attention_bias
from pertinent.models.torch import devices

ATTENTION = "_attn_implementation"
"""Setting that selects weighted attention, as in transformers (see `attention_bias`)."""


@dataclass(frozen=True)
class BertOutput:
    """The last hidden states (rows, tokens, width), the hidden states of all layers, and the logits."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]
    logits: Tensor | None = None


class BertEncoder(nn.Module):
    """The encoder of BERT (Devlin et al. 2019)."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id),
                "position_embeddings": nn.Embedding(config.max_position_embeddings, width),
                "token_type_embeddings": nn.Embedding(config.type_vocab_size, width),
                "LayerNorm": nn.LayerNorm(width, eps=config.layer_norm_eps),
            }
        )
        layers = [BertLayer(config) for _ in range(config.num_hidden_layers)]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)})

    def forward(  # noqa: PLR0917  same arguments as transformers
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> BertOutput:
        """Return the hidden states; a mask (rows, tokens) hides tokens, a 4-dimensional mask is a bias."""
        words = self.embeddings["word_embeddings"](input_ids) if inputs_embeds is None else inputs_embeds
        if position_ids is None:
            position_ids = torch.arange(words.shape[1], device=words.device)
        types = torch.zeros_like(position_ids) if token_type_ids is None else token_type_ids
        x = words + self.embeddings["token_type_embeddings"](types)
        x = x + self.embeddings["position_embeddings"](position_ids)
        states = [self.embeddings["LayerNorm"](x)]
        if attention_mask is not None and attention_mask.ndim == 2:
            attention_mask = (attention_mask != 0)[:, None, None]
        layers: Any = self.encoder["layer"]
        for layer in layers:
            states.append(layer(states[-1], attention_mask))
        return BertOutput(states[-1], tuple(states))


class BertLayer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and a normalisation."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, width, inner = config, config.hidden_size, config.intermediate_size
        heads = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
        self.attention = nn.ModuleDict({"self": heads, "output": self._residual(width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = self._residual(inner)

    def _residual(self, width: int) -> nn.ModuleDict:
        norm = nn.LayerNorm(self.config.hidden_size, eps=self.config.layer_norm_eps)
        return nn.ModuleDict({"dense": nn.Linear(width, self.config.hidden_size), "LayerNorm": norm})

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the next hidden states."""
        output: Any = self.attention["output"]
        x = output["LayerNorm"](output["dense"](self._attend(x, mask)) + x)
        inner = gelu(self.intermediate["dense"](x))
        states: Tensor = self.output["LayerNorm"](self.output["dense"](inner) + x)
        return states

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        shape, heads = (*x.shape[:2], self.config.num_attention_heads, -1), list[Tensor]()
        for projection in self.attention["self"].children():
            heads.append(projection(x).view(shape).transpose(1, 2))
        query, key, value = heads
        if mask is not None and getattr(self.config, ATTENTION) == attention_bias.NAME:
            mixed, _ = attention_bias.attend(self, query, key, value, mask)
        else:
            mixed = scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
        return mixed.reshape(x.shape)


class BertClassifier(nn.Module):
    """BERT with a linear layer on the pooled state of the first token.

    It has no dropout, because it is never trained; for training, see `in_transformers`.
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.bert = BertEncoder(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    @classmethod
    def from_folder(cls, folder: Path, dtype: torch.dtype) -> BertClassifier:
        """Read the classifier from a transformers folder."""
        from safetensors.torch import load_file

        plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        plain["id2label"] = {int(i): name for i, name in plain["id2label"].items()}
        n_labels = len(plain["id2label"])
        extra = {"plain": plain, "num_labels": n_labels, "problem_type": None, ATTENTION: "sdpa"}
        with torch.random.fork_rng(devices=[]):  # the meta device would import torch's compiler
            classifier = cls(SimpleNamespace(**plain, **extra))
        classifier.load_state_dict(load_file(folder / "model.safetensors"))
        return classifier.to(dtype).eval()

    def in_transformers(self) -> Any:
        """Return the same classifier as a transformers object, for training and saving."""
        from transformers import BertConfig, BertForSequenceClassification

        model_class: Any = BertForSequenceClassification
        model = model_class(BertConfig(**self.config.plain))
        model.load_state_dict(self.state_dict())
        return model.to(*devices.device_and_dtype(self)).train(self.training)

    @property
    def base_model(self) -> BertEncoder:
        """Return the encoder."""
        return self.bert

    def get_input_embeddings(self) -> Any:
        """Return the layer of word embeddings."""
        return self.bert.embeddings["word_embeddings"]

    @wraps(BertEncoder.forward)  # same signature
    def forward(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> BertOutput:
        """Return the hidden states and logits."""
        output = self.bert(*args, **kwargs)
        pooled = torch.tanh(self.bert.pooler["dense"](output.last_hidden_state[:, 0]))
        return BertOutput(output.last_hidden_state, output.hidden_states, self.classifier(pooled))
