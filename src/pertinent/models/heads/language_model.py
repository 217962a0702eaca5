"""Head that scores the tokens of an answer: the next tokens of a language model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from pertinent.array_types import Floats, Ints, Masks
from pertinent.config.settings import Count, checked
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Features, Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt
from pertinent.inputs.text import TextInput
from pertinent.models.answer_spacing import spacing_notes
from pertinent.models.answer_values import Value
from pertinent.models.base import Model
from pertinent.models.heads.base import FollowedScores, Head, HeadBatch, heads
from pertinent.models.regeneration import RegeneratingModel
from pertinent.models.tokens.batches import lay_out_like_ids, order_first
from pertinent.models.tokens.generation import TransformerWriter
from pertinent.models.tokens.tokenize_prompt import tokenize_prompt
from pertinent.models.torch import devices
from pertinent.models.torch.rounding import log_softmax_at
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import LogLikelihoods, Scale
from pertinent.outputs.log_likelihoods import PER_TOKEN, scaled_columns
from pertinent.removals.base import TokenRows

logger = logging.getLogger(__name__)


@heads.register("language-model")
class LanguageModelHead(Head):
    """The head of ``AutoModelForCausalLM``; an input is a `Prompt`.

    The log-likelihood of an answer a₁ … aₙ to a prompt x is Σ log p(aᵢ | x, a₁ … aᵢ₋₁), from one pass over
    prompt and answer. Logits are computed only for the answer's tokens. The columns are the contrast with
    another answer or a span of the answer, if requested; the whole answer; and each of its tokens.

    Parameters
    ----------
    max_new_tokens
        Largest number of tokens in an answer that the model writes.
    length_normalised
        Whether to divide the log-likelihood of an answer by its number of tokens.
    value, encoder
        Value of newly written answers to explain instead of likelihoods: see `AnswerValues`.
    """

    summary = "log-likelihood of an answer to a prompt"
    tasks = ("text-generation",)
    architectures: ClassVar[tuple[str, ...]] = ("ForCausalLM", "LMHeadModel")
    auto_class = "AutoModelForCausalLM"
    kind = "prompt"
    reading = ("max_length", "compaction")
    classes = ()
    columns_differ = True
    is_causal = True
    has_decoder = False
    """Whether a separate decoder reads the answer."""
    default_removal = "slice-out"
    start_id: int | None = None
    """Token that stands for an empty prompt, if there is one."""

    @checked
    def __init__(
        self,
        *,
        max_new_tokens: Count = 64,
        length_normalised: bool = False,
        value: str | Value | None = None,
        encoder: Any = None,
    ) -> None:
        self.max_new_tokens = max_new_tokens
        self.length_normalised = length_normalised
        self.output = LogLikelihoods(PER_TOKEN) if length_normalised else LogLikelihoods()
        self.value = value
        self.encoder = encoder
        self.settings = (max_new_tokens,)
        self._to_logits: Any = None

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether the model has only a decoder."""
        return not getattr(model.config, "is_encoder_decoder", False)

    def finish(self, model: TransformerModel) -> Model:
        """Return the transformer, or the model of the value of newly written answers."""
        if self.value is None:
            return model
        return RegeneratingModel(TransformerWriter(model, self), self.value, encoder=self.encoder)

    # -- the network ---------------------------------------------------------------------------------

    def network(self, model: Any) -> Any:
        """Return the network without its final logits layer, if that is a separate layer."""
        return model if self._to_logits is None else model.base_model

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Find the layer that computes logits, and verify that nothing else changes them."""
        model, tokenizer = encoder.model, encoder.tokenizer
        layer = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        if layer is None or not hasattr(model, "base_model") or model.base_model is model:
            raise ModelError(
                f"{type(model).__name__} has no language-model head: load it with AutoModelForCausalLM."
            )
        self._check_order(encoder)
        self.start_id = first_set((tokenizer, "bos_token_id"), (tokenizer, "eos_token_id"))
        self._to_logits = layer if self._is_last(layer, encoder) else None
        if self._to_logits is None:
            logger.warning("Logits are computed for all tokens because no single final layer computes them.")

    @staticmethod
    def _check_order(encoder: TransformerModel) -> None:
        """Raise a `ModelError` if a token's logits depend on later tokens."""
        whole = encoder.whole_text(8)
        logits = encoder.exactly(whole).logits[:, :4]
        if not encoder.alike(encoder.exactly(whole[:, :4]).logits, logits):
            raise ModelError(
                f"{type(encoder.model).__name__} attends to later tokens, so the likelihood of an answer is "
                "undefined: load it with is_decoder=True if it was trained as a causal language model."
            )

    def _is_last(self, layer: Any, encoder: TransformerModel) -> bool:
        """Return whether this layer, applied to the last hidden states, returns the logits."""
        batch = encoder.whole_text(8)
        logits = encoder.exactly(batch).logits
        self._to_logits = layer
        try:
            states = encoder.exactly(batch).last_hidden_state
            with torch.inference_mode():
                bias = getattr(layer, "bias", None)
                bias = None if bias is None else bias.to(states.dtype)
                computed = linear(states, layer.weight.to(states.dtype), bias)
        except (AttributeError, TypeError, RuntimeError):
            return False
        return computed.shape == logits.shape and encoder.alike(computed, logits)

    def answer_of(self, network_output: Any) -> Tensor:
        """Return the last hidden states (rows, tokens, width), or logits if no single layer computes them."""
        if self._to_logits is None:
            return network_output.logits  # type: ignore[no-any-return]
        return network_output.last_hidden_state  # type: ignore[no-any-return]

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of some tokens from the tensor that `answer_of` returns."""
        return states if self._to_logits is None else self._to_logits(states)

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None, encoder: TransformerModel) -> PromptInput:
        """Tokenize a prompt and its answer; the model writes the answer if there is none."""
        writer = TransformerWriter(encoder, self)
        prompt = raw if isinstance(raw, RenderedPrompt) else writer.render(Prompt.from_input(raw))
        if not prompt.answer:
            (answer,) = writer.generate([prompt])
            if not answer.text.strip():
                has_chat = not prompt.template and getattr(encoder.tokenizer, "chat_template", None)
                chat = ", or chat=True to send the prompt as a chat message" if has_chat else ""
                raise InputError(
                    f"The model's answer to the prompt is empty: pass an answer to explain{chat}."
                )
            ending = "" if answer.ended else ", cut off"
            generation = f"greedy, at most {self.max_new_tokens} tokens{ending}"
            prompt = replace(prompt, answer=answer.text, answer_ids=answer.ids, generation=generation)
        reading = encoder.tokenizer, encoder.max_length
        input = tokenize_prompt(prompt, features, *reading, has_decoder=self.has_decoder)
        if self.has_decoder:
            return input

        def log_ratio(answer: str, other: str) -> float:
            pair = replace(prompt, answer=answer, rather_than=other, span=None)
            tokens = tokenize_prompt(pair, "tokens", *reading, has_decoder=False).tokens
            assert tokens is not None
            row = TokenRows(tokens, np.ones((1, len(tokens.ids)), dtype=np.bool_))
            return float(encoder.submit([row]).outputs()[0, 0])

        return replace(input, notes=(*input.notes, *spacing_notes(prompt, log_ratio)))

    def removal_of(self, input: TextInput) -> str:
        """Return ``"alternatives"`` for slots with alternatives, else ``"slice-out"``."""
        return "alternatives" if input.tokens is not None and input.tokens.variants else self.default_removal

    # -- answers -------------------------------------------------------------------------------------

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return the names of the contrast or span (if any), the whole answer, and each token."""
        assert isinstance(input, PromptInput)
        return input.text.columns

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Convert log-likelihoods to a scale; a contrast, the log-odds of two answers, is unchanged."""
        return scaled_columns(self.output, self.columns_of(input), outputs, scale)

    def batch(self, parts: Sequence[TokenRows]) -> AnswerBatch:
        """Return a batch in which each row is followed by its answer."""
        return _CausalBatch(self, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes the log-likelihoods."""
        batch = self.batch(seen())
        batch.lay_out([False] * len(batch.parts), encoder.device)
        return lambda states, _: batch.scores(states)

    def details(self, input: Any, encoder: TransformerModel) -> dict[str, str]:
        """Return the answers and how the model generated its answer."""
        return input.text.details  # type: ignore[no-any-return]

    def fill_empty_rows(self, part: TokenRows) -> TokenRows:
        """Insert the tokenizer's first token into rows that are otherwise empty before the answer.

        If the tokenizer adds no such token, it has one for empty texts, such as GPT-2's end-of-text token.
        """
        assert part.tokens.scored is not None
        empty = ~part.attend[:, ~part.tokens.scored].any(axis=1)
        if not empty.any():
            return part
        if self.start_id is None:
            raise InputError(
                "No text remains before the answer when all features are removed, because the tokenizer "
                "has no start token: choose the removal 'pad-token', or fix part of the prompt by using "
                "sources."
            )
        attend, ids = part.attend.copy(), np.broadcast_to(part.tokens.ids, part.attend.shape).copy()
        if part.ids is not None:
            ids[:] = part.ids
        attend[empty, 0], ids[empty, 0] = True, self.start_id
        return replace(part, attend=attend, ids=ids)


class AnswerBatch(HeadBatch):
    """Base class of batches of prompts whose answers are scored.

    Each requested part has `n_answers` answers: the explained one and, for a contrast, its rival.
    """

    def __init__(
        self, head: LanguageModelHead, requested: Sequence[TokenRows], read: Sequence[TokenRows]
    ) -> None:
        super().__init__(read)
        self.head = head
        self.requested = requested

    def send_answers(
        self, answers: Sequence[Ints], counts: Sequence[int], n_answers: Sequence[int], device: torch.device
    ) -> Masks:
        """Send the answers' tokens, and which answers belong to each requested row, to the device.

        Parameters
        ----------
        answers
            Tokens of each answer, with all answers of a part together.
        counts
            Number of rows that have each answer.
        n_answers
            Number of answers of each requested part.

        Returns
        -------
        Mask of the real tokens in the padded answers (rows of all answers, most tokens).
        """
        width = max(map(len, answers))
        ids = np.repeat([np.pad(answer, (0, width - len(answer))) for answer in answers], counts, axis=0)
        real = np.arange(width) < np.repeat([len(answer) for answer in answers], counts)[:, None]
        self.ids, self.real = devices.send(np.stack([ids, real]), device)
        rows, first = [], 0
        for part, n in zip(self.requested, n_answers, strict=True):
            n_rows, span = len(part.attend), part.tokens.span
            rows += [(first + i, first + n_rows + i if n > 1 else -1, *span) for i in range(n_rows)]
            first += n_rows * n
        self.rows = devices.send(np.array(rows), device)
        return real

    def columns(self, logits: Tensor) -> Tensor:
        """Return the columns of each requested row from the logits of all answers' tokens."""
        logs = log_softmax_at(logits, self.ids[..., None], dim=2)[..., 0]
        return answer_columns(logs, self.real, self.rows, mean=self.head.length_normalised)


class _CausalBatch(AnswerBatch):
    """Prompts followed by their answer, and in additional rows by the rival answer."""

    def __init__(self, head: LanguageModelHead, parts: Sequence[TokenRows]) -> None:
        windows = [head.fill_empty_rows(window) for part in parts for window in part.windows()]
        super().__init__(head, parts, windows)

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Find the slots before the answers' tokens, whose logits predict these tokens."""
        attended = lay_out_like_ids(
            self.parts, compact, [part.attend.astype(np.int64) for part in self.parts], 0
        )
        order = order_first(attended > 0)
        answers = [part.tokens.ids[part.tokens.scored] for part in self.parts]
        counts = [len(part.attend) for part in self.parts]
        n_answers = [len(part.tokens.windows) for part in self.requested]
        real = self.send_answers(answers, counts, n_answers, device)
        first = attended.sum(axis=1) - real.sum(axis=1) - 1
        before = (first[:, None] + np.arange(real.shape[1])).clip(0, attended.shape[1] - 1)
        self._slots = devices.send(np.where(real, np.take_along_axis(order, before, axis=1), 0), device)

    def scores(self, answer: Tensor) -> Tensor:
        """Return the columns of each row (rows, most columns), padded with NaN."""
        rows = torch.arange(len(answer), device=answer.device)[:, None]
        return self.columns(self.head.logits(answer[rows, self._slots]).float())


def first_set(*attributes: tuple[Any, str]) -> Any:
    """Return the first of these attributes (object, name) that exists and is not ``None``."""
    values = (getattr(owner, name, None) for owner, name in attributes)
    return next((value for value in values if value is not None), None)


def answer_columns(logs: Tensor, real: Tensor, rows: Tensor, *, mean: bool = False) -> Tensor:
    """Return the columns of each row (rows, most columns), padded with NaN.

    Parameters
    ----------
    logs
        Log-likelihoods of the answers' tokens (answers, most tokens).
    real
        0 for padding.
    rows
        For each row, the index of its answer, the index of the rival answer (−1: none), the first token of a
        span and the token after its last (equal: no span).
    mean
        Whether the log-likelihood of an answer or span is the mean over its tokens instead of the sum.
    """
    index, rival, first, last = rows.T
    logs = logs.masked_fill(real == 0, torch.nan)
    total = _sum(logs, mean=mean)
    columns = torch.cat([total, logs], dim=1)[index]
    tokens = torch.arange(logs.shape[1], device=logs.device)
    inside = (tokens >= first[:, None]) & (tokens < last[:, None])
    span = _sum(logs[index].masked_fill(~inside, torch.nan), mean=mean)
    before = torch.where((rival < 0)[:, None], span, columns[:, :1] - total[rival])
    without = torch.cat([columns, torch.full_like(before, torch.nan)], dim=1)
    has_more = (rival >= 0) | (first < last)
    return torch.where(has_more[:, None], torch.cat([before, columns], dim=1), without)


def _sum(logs: Tensor, *, mean: bool) -> Tensor:
    """Return the sum or the mean of each row, without NaN."""
    return logs.nanmean(dim=1, keepdim=True) if mean else logs.nansum(dim=1, keepdim=True)
