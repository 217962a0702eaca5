"""Head that scores an answer with a separate decoder, as in T5 and BART."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pertinent.errors import ModelError
from pertinent.models.heads.base import FollowedScores, heads
from pertinent.models.heads.language_model import AnswerBatch, LanguageModelHead, first_set
from pertinent.models.tokens.batches import collate
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.removals.base import TokenRows


@heads.register("encoder-decoder")
class EncoderDecoderHead(LanguageModelHead):
    """The head of ``AutoModelForSeq2SeqLM``; an input is a `Prompt`.

    The encoder reads the remaining prompt, and the decoder scores the answer in one pass. An answer and its
    rival share a single encoder pass.
    """

    summary = "log-likelihood of an answer written by a decoder"
    architectures = ("ForConditionalGeneration", "ForSeq2SeqLM", "MTModel")
    auto_class = "AutoModelForSeq2SeqLM"
    is_causal = False
    has_decoder = True

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether the model has a decoder and reads neither images nor audio."""
        arguments = signature(model.forward).parameters
        reads_text = "input_ids" in arguments and "pixel_values" not in arguments
        return reads_text and bool(getattr(model.config, "is_encoder_decoder", False))

    def network(self, model: Any) -> Any:
        """Return the encoder."""
        return model.get_encoder()

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Find the token that the decoder starts with."""
        self._model, name = encoder.model, "decoder_start_token_id"
        generation_config = getattr(encoder.model, "generation_config", None)
        self.start_id = first_set((generation_config, name), (encoder.model.config, name))
        if self.start_id is None:
            raise ModelError(
                f"The config of {type(encoder.model).__name__} does not define the decoder's start token: "
                f"set `{name}`."
            )

    def answer_of(self, network_output: Any) -> Tensor:
        """Return the encoder's last hidden states (rows, tokens, width)."""
        return network_output.last_hidden_state  # type: ignore[no-any-return]

    def decode(self, states: Tensor, attend: Tensor, ids: Tensor) -> Tensor:
        """Return the logits of the token after each of these (rows, tokens, vocabulary)."""
        from transformers.modeling_outputs import BaseModelOutput

        output = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),  # type: ignore[arg-type]
            attention_mask=attend,
            decoder_input_ids=ids,
            use_cache=False,
        )
        return output.logits  # type: ignore[no-any-return]

    def batch(self, parts: Sequence[TokenRows]) -> AnswerBatch:
        """Return a batch of prompts whose answers are scored after the encoder pass."""
        return _DecodedBatch(self, parts, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes the log-likelihoods."""
        follow = super().followed_scores(seen, encoder)

        def scores(states: Tensor, bias: Tensor | None) -> Tensor:
            if bias is not None:
                raise ModelError(
                    "Mask gradients do not reach the attention of a decoder: choose kernel-shap, or "
                    "gradients with respect to word embeddings."
                )
            return follow(states, bias)

        return scores


class _DecodedBatch(AnswerBatch):
    """Prompts with the answers that the decoder reads."""

    head: EncoderDecoderHead

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Send the answers, their encoder rows, and the encoder's attention mask to the device."""
        batch = collate(self.parts, compact, 0)
        attend = np.ones(batch.ids.shape, dtype=np.int64) if batch.attend is None else batch.attend
        self._attend = devices.send(attend.astype(np.int64), device)
        n_answers = [len(part.tokens.answers) for part in self.parts]
        counts = np.repeat([len(part.attend) for part in self.parts], n_answers).tolist()
        answers = [answer for part in self.parts for answer in part.tokens.answers]
        self.send_answers(answers, counts, n_answers, device)
        ends = np.cumsum([len(part.attend) for part in self.parts]).tolist()
        owners = [
            np.tile(np.arange(end - len(part.attend), end), len(part.tokens.answers))
            for part, end in zip(self.parts, ends, strict=True)
        ]
        self._owners = devices.send(np.concatenate(owners), device)

    def scores(self, answer: Tensor) -> Tensor:
        """Return the columns of each row (rows, most columns), padded with NaN."""
        starts = torch.full_like(self.ids[:, :1], self.head.start_id)  # type: ignore[arg-type]
        shifted = torch.cat([starts, self.ids[:, :-1]], dim=1)
        logits = self.head.decode(answer[self._owners], self._attend[self._owners], shifted)
        return self.columns(logits.float())
