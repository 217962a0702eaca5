"""A head that scores the tokens of an answer: the next tokens of a language model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from pertinent.array_types import Floats
from pertinent.config.settings import Count, checked
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Features, Input
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt
from pertinent.inputs.text import TextInput
from pertinent.models.base import Model
from pertinent.models.heads.base import FollowedScores, Head, HeadBatch, heads
from pertinent.models.regeneration import RegeneratingModel, Value
from pertinent.models.tokens.batches import collate, one_row
from pertinent.models.tokens.generation import TransformerWriter
from pertinent.models.tokens.tokenize_prompt import check_room, decoded, prompt_tokens, tokenize_prompt
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import LogLikelihoods, Scale
from pertinent.outputs.log_likelihoods import PER_TOKEN, scaled_columns
from pertinent.removals.base import TokenRows

logger = logging.getLogger(__name__)


@heads.register("language-model")
class LanguageModelHead(Head):
    """The head of ``AutoModelForCausalLM``; an input is a `Prompt`.

    The log-likelihood of an answer a₁ … aₙ after a prompt x is Σ log p(aᵢ | x, a₁ … aᵢ₋₁), from one pass over
    prompt and answer. Logits are computed at the places of the answer alone. The columns are the contrast
    with another answer, or a span of the answer, if one is given; the whole answer; and each of its tokens.

    Parameters
    ----------
    max_new_tokens
        The most tokens of an answer that the model writes itself.
    length_normalised
        Whether the log-likelihood of an answer is divided by its number of tokens.
    value
        Instead of likelihoods, a value of the answers to what is left of a prompt: see `RegeneratingModel`.
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
    answers_apart = False
    """Whether a decoder of its own reads the answer."""
    default_removal = "slice-out"

    @checked
    def __init__(
        self, *, max_new_tokens: Count = 64, length_normalised: bool = False, value: str | Value | None = None
    ) -> None:
        self.max_new_tokens = max_new_tokens
        self.length_normalised = length_normalised
        self.output = LogLikelihoods(PER_TOKEN) if length_normalised else LogLikelihoods()
        self.value = value
        self.settings = (max_new_tokens,)
        self._to_logits: Any = None
        self._start_id: int | None = None

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether the model is a decoder only."""
        return not getattr(model.config, "is_encoder_decoder", False)

    def explained(self, model: TransformerModel) -> Model:
        """Return the transformer, or a model of the value of its answers."""
        return model if self.value is None else RegeneratingModel(TransformerWriter(model, self), self.value)

    @property
    def start(self) -> int | None:
        """The token that an empty prompt consists of, if there is one."""
        return self._start_id

    # -- the network ---------------------------------------------------------------------------------

    def network(self, model: Any) -> Any:
        """The network without the layer that makes logits, if that is a layer of its own."""
        return model if self._to_logits is None else model.base_model

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Find the layer that makes logits, and verify that nothing else is done to them."""
        model = encoder.model
        layer = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        if layer is None or not hasattr(model, "base_model") or model.base_model is model:
            raise ModelError(
                f"{type(model).__name__} has no language-model head: load it by AutoModelForCausalLM."
            )
        self._check_order(encoder)
        tokenizer = encoder.tokenizer
        starts = (getattr(tokenizer, name, None) for name in ("bos_token_id", "eos_token_id"))
        self._start_id = next((own for own in starts if own is not None), None)
        self._to_logits = layer if self._is_last(layer, encoder) else None
        if self._to_logits is None:
            logger.warning("Logits are computed for all tokens, because they are not made by one last layer.")

    @staticmethod
    def _check_order(encoder: TransformerModel) -> None:
        """Raise an error if a token's logits depend on later tokens."""
        whole, beginning = encoder.whole_text(8), encoder.whole_text(8).first(4)
        logits = encoder.exactly(whole).logits[:, :4]
        if not encoder.alike(encoder.exactly(beginning).logits, logits):
            raise ModelError(
                f"{type(encoder.model).__name__} attends to later tokens, so it gives answers no likelihood: "
                "load it with is_decoder=True if it was trained as a causal language model."
            )

    def _is_last(self, layer: Any, encoder: TransformerModel) -> bool:
        """Whether the logits are what this layer makes of the last hidden states, and no more."""
        batch = encoder.whole_text(8)
        logits = encoder.exactly(batch).logits
        self._to_logits = layer
        try:
            states = encoder.exactly(batch).last_hidden_state
            with torch.inference_mode():
                bias = getattr(layer, "bias", None)
                again = linear(
                    states, layer.weight.to(states.dtype), None if bias is None else bias.to(states.dtype)
                )
        except (AttributeError, TypeError, RuntimeError):
            return False
        return again.shape == logits.shape and encoder.alike(again, logits)

    def answer_of(self, network_output: Any) -> Tensor:
        """The last hidden states (rows, tokens, width), or the logits if these are not made by one layer."""
        if self._to_logits is None:
            return network_output.logits  # type: ignore[no-any-return]
        return network_output.last_hidden_state  # type: ignore[no-any-return]

    def logits(self, states: Tensor) -> Tensor:
        """The logits of what `answer_of` found for some tokens."""
        return states if self._to_logits is None else self._to_logits(states)

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None, encoder: TransformerModel) -> PromptInput:
        """Tokenise a prompt and its answer, which the model writes itself if none is given."""
        rendered = raw if isinstance(raw, RenderedPrompt) else self.rendered(Prompt.from_input(raw), encoder)
        if not rendered.answer:
            rendered = self._answered(rendered, encoder)
        reading = encoder.tokenizer, encoder.max_length
        return tokenize_prompt(rendered, features, *reading, apart=self.answers_apart)

    @staticmethod
    def rendered(prompt: Prompt, encoder: TransformerModel) -> RenderedPrompt:
        """The prompt as the model reads it: messages in the tokenizer's chat template."""
        tokenizer = encoder.tokenizer
        if getattr(tokenizer, "chat_template", None) is None:
            return prompt.rendered()
        return prompt.rendered(
            lambda own: tokenizer.apply_chat_template(own, tokenize=False, add_generation_prompt=True)
        )

    def _answered(self, prompt: RenderedPrompt, encoder: TransformerModel) -> RenderedPrompt:
        """The prompt with the model's greedy answer."""
        before = prompt_tokens(prompt, encoder.tokenizer, ends=self.answers_apart).ids.tolist()
        check_room(len(before), 1, encoder.max_length, apart=self.answers_apart)
        room = min(self.max_new_tokens, encoder.max_length - (0 if self.answers_apart else len(before)))
        ends, written = self._ends(encoder), []
        for following in self._following(before, encoder):
            if following in ends:
                break
            written.append(following)
            if len(written) == room:
                break
        # Decoded together: some tokenizers leave out a space at the beginning of a text.
        earlier = [] if self.answers_apart else before
        whole = decoded([*earlier, *written], encoder.tokenizer)
        answer = whole.removeprefix(decoded(earlier, encoder.tokenizer))
        if not answer.strip():
            raise InputError("The model's own answer to the prompt is empty: give an answer to explain.")
        how = f"greedy, at most {room} tokens{', not ended' if len(written) == room else ''}"
        return replace(prompt, answer=answer, answer_ids=tuple(written), generation=how)

    def _following(self, before: list[int], encoder: TransformerModel) -> Iterator[int]:
        """The most likely token after the prompt, the one after that, and so on."""
        ids, batch = list(before), one_row(before)
        options: dict[str, Any] = {"use_cache": True} if encoder.takes("use_cache") else {}
        while True:
            with encoder.evaluating(batch.ids.shape), torch.inference_mode():
                found = encoder.forward(batch, **options)
                ids.append(int(self.logits(self.answer_of(found)[:, -1])[0].argmax()))
            yield ids[-1]
            cache = getattr(found, "past_key_values", None)
            batch = one_row(ids if cache is None else ids[-1:])
            options |= {} if cache is None else {"past_key_values": cache}

    @staticmethod
    def _ends(encoder: TransformerModel) -> set[int]:
        """The ids of tokens that end an answer."""
        sources = (getattr(encoder.model, "generation_config", None), encoder.model.config, encoder.tokenizer)
        found = [getattr(source, "eos_token_id", None) for source in sources]
        several = [own if isinstance(own, list | tuple) else [own] for own in found if own is not None]
        return {number for own in several for number in own}

    def removal_of(self, input: TextInput) -> str:
        """The alternatives of slots that have some; else features are cut out."""
        return "alternatives" if input.tokens is not None and input.tokens.variants else self.default_removal

    # -- answers -------------------------------------------------------------------------------------

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """The contrast, if there is one, the whole answer, and each of its tokens."""
        assert isinstance(input, PromptInput)
        return input.text.columns

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """The log-odds of probabilities; a contrast, which is the log-odds of two answers, as it is."""
        return scaled_columns(self.output, self.columns_of(input), outputs, scale)

    def columns(self, logs: Tensor, real: Tensor, rows: Tensor) -> Tensor:
        """The columns of rows from the log-likelihoods of tokens: see `answer_columns`."""
        return answer_columns(logs, real, rows, mean=self.length_normalised)

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """A batch in which each row is followed by its answer, and in further rows by the other answer."""
        return _AnswerBatch(self, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """The log-likelihoods themselves."""
        batch = _AnswerBatch(self, seen())
        batch.lay_out([False] * len(batch.parts), encoder.device)
        return lambda states, _: batch.scores(states)

    def details(self, input: Any, encoder: TransformerModel) -> dict[str, str]:
        """The answers, and how the model found its own."""
        return input.text.details  # type: ignore[no-any-return]

    def started(self, part: TokenRows) -> TokenRows:
        """The rows, of which those with nothing before the answer begin with the tokenizer's first token.

        A tokenizer that adds no beginning token has one for empty texts, as GPT-2 its end-of-text token.
        """
        assert part.tokens.scored is not None
        bare = ~part.attend[:, ~part.tokens.scored].any(axis=1)
        if not bare.any():
            return part
        if self._start_id is None:
            raise InputError(
                "Nothing is left before the answer when all features are removed, as the tokenizer has no "
                "beginning token: choose the removal 'pad-token', or fix a part of the prompt by sources."
            )
        attend, ids = part.attend.copy(), np.broadcast_to(part.tokens.ids, part.attend.shape).copy()
        if part.ids is not None:
            ids[:] = part.ids
        attend[bare, 0], ids[bare, 0] = True, self._start_id
        return replace(part, attend=attend, ids=ids)


class _AnswerBatch(HeadBatch):
    """Rows of prompts with their answers."""

    def __init__(self, head: LanguageModelHead, parts: Sequence[TokenRows]) -> None:
        self._head = head
        self._asked = [(len(part.attend), len(part.tokens.windows), part.tokens.span) for part in parts]
        super().__init__([head.started(window) for part in parts for window in part.windows()])

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Find the slots before the answers' tokens, whose logits predict them, and the tokens' ids."""
        marked = [replace(part, ids=_numbers(part), zeroed=None) for part in self.parts]
        numbers = collate(marked, compact, -1).ids
        order = np.argsort(numbers < 0, axis=1, kind="stable")  # the slots that are attended to come first
        n_kept = (numbers >= 0).sum(axis=1)
        answers = [part.tokens.ids[part.tokens.scored] for part in self.parts]
        width = max(map(len, answers))
        n_rows = [len(part.attend) for part in self.parts]
        n_answer = np.repeat([len(own) for own in answers], n_rows)[:, None]
        real = np.arange(width) < n_answer
        before = (n_kept[:, None] - n_answer - 1 + np.arange(width)).clip(0, numbers.shape[1] - 1)
        slots = np.where(real, np.take_along_axis(order, before, axis=1), 0)
        ids = np.repeat([np.pad(own, (0, width - len(own))) for own in answers], n_rows, axis=0)
        self._slots, self._ids, self._real = devices.send(np.stack([slots, ids, real]), device)
        self._rows = devices.send(np.array(self._starts()), device)

    def _starts(self) -> list[tuple[int, int, int, int]]:
        """For each row that was asked for, the `rows` of `answer_columns`."""
        found, first = [], 0
        for n, n_answers, span in self._asked:
            found += [(row, row + n if n_answers > 1 else -1, *span) for row in range(first, first + n)]
            first += n * n_answers
        return found

    def scores(self, answer: Tensor) -> Tensor:
        """The columns of each row (rows, most columns), NaN where an input has fewer."""
        rows = torch.arange(len(answer), device=answer.device)[:, None]
        logits = self._head.logits(answer[rows, self._slots]).float()
        chosen = logits.gather(2, self._ids[..., None])[..., 0]
        return self._head.columns(chosen - logits.logsumexp(dim=-1), self._real, self._rows)


def answer_columns(logs: Tensor, real: Tensor, rows: Tensor, *, mean: bool = False) -> Tensor:
    """The columns of each row (rows, most columns), NaN where an input has fewer.

    `logs` are log-likelihoods of the tokens of answers (answers, most tokens), of which those are meant where
    `real` is not 0. `rows` are the number of each row's answer, that of the other one (−1: none), the first
    token of a span and the one after its last (the same: no span). The log-likelihood of an answer or of a
    span is the sum over its tokens, or their mean.
    """
    own, other, first, last = rows.T
    logs = logs.masked_fill(real == 0, torch.nan)
    total = _summed(logs, mean=mean)
    columns = torch.cat([total, logs], dim=1)[own]
    places = torch.arange(logs.shape[1], device=logs.device)
    inside = (places >= first[:, None]) & (places < last[:, None])
    span = _summed(logs[own].masked_fill(~inside, torch.nan), mean=mean)
    before = torch.where((other < 0)[:, None], span, columns[:, :1] - total[other])
    without = torch.cat([columns, torch.full_like(before, torch.nan)], dim=1)
    has_more = (other >= 0) | (first < last)
    return torch.where(has_more[:, None], torch.cat([before, columns], dim=1), without)


def _summed(logs: Tensor, *, mean: bool) -> Tensor:
    """The sum or the mean of each row, without NaN."""
    return logs.nanmean(dim=1, keepdim=True) if mean else logs.nansum(dim=1, keepdim=True)


def _numbers(part: TokenRows) -> Any:
    """The number of each token that is attended to, −1 for the others."""
    return np.where(part.attend, np.arange(part.attend.shape[1]), -1)
