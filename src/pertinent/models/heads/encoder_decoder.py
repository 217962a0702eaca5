"""A head that scores an answer by a decoder of its own: T5, BART and their like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pertinent.errors import ModelError
from pertinent.models.heads.base import FollowedScores, HeadBatch, heads
from pertinent.models.heads.language_model import LanguageModelHead
from pertinent.models.tokens.batches import collate, one_row
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.removals.base import TokenRows


@heads.register("encoder-decoder")
class EncoderDecoderHead(LanguageModelHead):
    """The head of ``AutoModelForSeq2SeqLM``; an input is a `Prompt`.

    The encoder reads the prompt without what is removed, and the decoder scores the answer in one pass. An
    answer and the one it is compared with are scored after one pass of the encoder.
    """

    summary = "log-likelihood of an answer that a decoder writes"
    architectures = ("ForConditionalGeneration", "ForSeq2SeqLM", "MTModel")
    auto_class = "AutoModelForSeq2SeqLM"
    is_causal = False
    answers_apart = True

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether the model has a decoder, and reads neither images nor sounds."""
        arguments = signature(model.forward).parameters
        reads_text = "input_ids" in arguments and "pixel_values" not in arguments
        return reads_text and bool(getattr(model.config, "is_encoder_decoder", False))

    def network(self, model: Any) -> Any:
        """The encoder."""
        return model.get_encoder()

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Find the model, and the token with which its decoder begins."""
        self._model = encoder.model
        configs = (getattr(encoder.model, "generation_config", None), encoder.model.config)
        starts = (getattr(config, "decoder_start_token_id", None) for config in configs)
        self._start_id = next((own for own in starts if own is not None), None)
        if self._start_id is None:
            raise ModelError(
                f"{type(encoder.model).__name__} does not say with which token its decoder begins: set "
                "`decoder_start_token_id` in its config."
            )

    def answer_of(self, network_output: Any) -> Tensor:
        """The encoder's last hidden states (rows, tokens, width)."""
        return network_output.last_hidden_state  # type: ignore[no-any-return]

    def decoded_logits(self, states: Tensor, attend: Tensor, ids: Tensor) -> Tensor:
        """The logits of the tokens after each of these (rows, tokens, vocabulary)."""
        from transformers.modeling_outputs import BaseModelOutput

        found = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),  # type: ignore[arg-type]
            attention_mask=attend,
            decoder_input_ids=ids,
            use_cache=False,
        )
        return found.logits  # type: ignore[no-any-return]

    def _following(self, before: list[int], encoder: TransformerModel) -> Iterator[int]:
        """The most likely first token of the answer, the one after that, and so on."""
        batch = one_row(before)
        attend = devices.send(np.ones(batch.ids.shape, dtype=np.int64), encoder.device)
        with encoder.evaluating(batch.ids.shape), torch.inference_mode():
            states = encoder.answer(batch)
        ids = [self.start_id]
        while True:
            with encoder.evaluating((1, len(ids))), torch.inference_mode():
                logits = self.decoded_logits(states, attend, devices.send(np.array([ids]), encoder.device))
            ids.append(int(logits[0, -1].argmax()))
            yield ids[-1]

    @property
    def start_id(self) -> int:
        """The token with which the decoder begins."""
        assert self._start_id is not None
        return self._start_id

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """A batch of prompts whose answers are scored afterwards."""
        return _DecodedBatch(self, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """The log-likelihoods themselves."""
        batch = _DecodedBatch(self, seen())
        batch.lay_out([False] * len(batch.parts), encoder.device)

        def scores(states: Tensor, bias: Tensor | None) -> Tensor:
            if bias is not None:
                raise ModelError(
                    "Gradients along a mask do not reach the attention of a decoder: choose kernel-shap, or "
                    "gradients over word embeddings."
                )
            return batch.scores(states)

        return scores


class _DecodedBatch(HeadBatch):
    """Rows of prompts, with the answers that the decoder reads."""

    def __init__(self, head: EncoderDecoderHead, parts: Sequence[TokenRows]) -> None:
        super().__init__(parts)
        self._head = head

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Send the tokens of the answers, the rows they belong to, and what the encoder attended to."""
        batch = collate(self.parts, compact, 0)
        attend = np.ones(batch.ids.shape, dtype=np.int64) if batch.attend is None else batch.attend
        owners: list[int] = []
        answers: list[Any] = []
        rows: list[tuple[int, int, int, int]] = []
        first = 0
        for part in self.parts:
            own, n = part.tokens.answers, len(part.attend)
            others = [len(owners) + n + i if len(own) > 1 else -1 for i in range(n)]
            rows += [(len(owners) + i, other, *part.tokens.span) for i, other in enumerate(others)]
            for answer in own:
                owners += range(first, first + n)
                answers += [answer] * n
            first += n
        width = max(map(len, answers))
        ids = np.array([np.pad(answer, (0, width - len(answer))) for answer in answers])
        real = np.arange(width) < np.array([len(answer) for answer in answers])[:, None]
        self._ids, self._real = devices.send(np.stack([ids, real]), device)
        self._attend = devices.send(attend.astype(np.int64), device)
        self._owners, self._rows = (devices.send(np.array(own), device) for own in (owners, rows))

    def scores(self, answer: Tensor) -> Tensor:
        """The columns of each row (rows, most columns), NaN where an input has fewer."""
        starts = torch.full_like(self._ids[:, :1], self._head.start_id)
        shifted = torch.cat([starts, self._ids[:, :-1]], dim=1)
        logits = self._head.decoded_logits(answer[self._owners], self._attend[self._owners], shifted).float()
        chosen = logits.gather(2, self._ids[..., None])[..., 0]
        return self._head.columns(chosen - logits.logsumexp(dim=-1), self._real, self._rows)
