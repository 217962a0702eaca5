"""The embedded text classifiers in plain torch, because most of the time to load transformers is its imports.

They read the files of transformers, have its names of parameters, and compute the same numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from pertinent.models.tokens import attention_bias
from pertinent.models.torch import devices

ATTENTION = "_attn_implementation"
"""The setting with which `attention_bias` is chosen."""


@dataclass(frozen=True)
class BertOutput:
    """The last hidden states (rows, tokens, width), those of all layers, and a classifier's logits."""

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

    def forward(  # noqa: PLR0917  the arguments of transformers
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> BertOutput:
        """The hidden states; a mask (rows, tokens) hides tokens, one of four dimensions is a bias."""
        words = self.embeddings["word_embeddings"](input_ids) if inputs_embeds is None else inputs_embeds
        places = torch.arange(words.shape[1], device=words.device) if position_ids is None else position_ids
        types = torch.zeros_like(places) if token_type_ids is None else token_type_ids
        x = words + self.embeddings["token_type_embeddings"](types)
        x = x + self.embeddings["position_embeddings"](places)
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
        """The next hidden states."""
        parts: Any = self.attention
        x = parts["output"]["LayerNorm"](parts["output"]["dense"](self._attended(x, mask)) + x)
        inner = gelu(self.intermediate["dense"](x))
        found: Tensor = self.output["LayerNorm"](self.output["dense"](inner) + x)
        return found

    def _attended(self, x: Tensor, mask: Tensor | None) -> Tensor:
        shape, heads = (*x.shape[:2], self.config.num_attention_heads, -1), list[Tensor]()
        for part in self.attention["self"].children():
            heads.append(part(x).view(shape).transpose(1, 2))
        query, key, value = heads
        if mask is not None and getattr(self.config, ATTENTION) == attention_bias.NAME:
            mixed, _ = attention_bias.attend(self, query, key, value, mask)
        else:
            mixed = scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
        return mixed.reshape(x.shape)


class BertClassifier(nn.Module):
    """BERT with a linear layer on the first token's pooled state.

    It has no dropout, as it is not trained itself: see `in_transformers`.
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.bert = BertEncoder(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    @classmethod
    def from_folder(cls, folder: Path, dtype: torch.dtype) -> BertClassifier:
        """The classifier in a folder of transformers' format."""
        from safetensors.torch import load_file

        plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        plain["id2label"] = {int(i): name for i, name in plain["id2label"].items()}
        own = {"plain": plain, "num_labels": len(plain["id2label"]), "problem_type": None, ATTENTION: "sdpa"}
        with torch.random.fork_rng(devices=[]):  # not on the meta device, which imports torch's compiler
            made = cls(SimpleNamespace(**plain, **own))
        made.load_state_dict(load_file(folder / "model.safetensors"))
        return made.to(dtype).eval()

    def in_transformers(self) -> Any:
        """The same classifier as an object of transformers, for what trains or saves it."""
        from transformers import BertConfig, BertForSequenceClassification

        kind: Any = BertForSequenceClassification
        made = kind(BertConfig(**self.config.plain))
        made.load_state_dict(self.state_dict())
        return made.to(*devices.device_and_dtype(self)).train(self.training)

    @property
    def base_model(self) -> BertEncoder:
        """The encoder."""
        return self.bert

    def get_input_embeddings(self) -> Any:
        """The word embeddings."""
        return self.bert.embeddings["word_embeddings"]

    def forward(  # noqa: PLR0917  the arguments of transformers
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> BertOutput:
        """Hidden states and logits."""
        found = self.bert(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        pooled = torch.tanh(self.bert.pooler["dense"](found.last_hidden_state[:, 0]))
        return BertOutput(found.last_hidden_state, found.hidden_states, self.classifier(pooled))
