"""Head that answers a question with a span of a context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Array, Ints
from pertinent.config.settings import Count, checked
from pertinent.errors import InputError, ModelError, require
from pertinent.inputs.text import Text, TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.models.heads.base import FollowedScores, Head, HeadBatch, heads
from pertinent.models.tokens.batches import lay_out_like_ids, order_first, whole_rows
from pertinent.models.torch import devices
from pertinent.models.torch.rounding import log_softmax_at
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import PlainValues
from pertinent.removals.base import TokenRows

CONTEXT = 1
"""Segment that contains the answer; segment 0 is the question."""

OVERLAP = "answer overlap"
"""Name of the only column."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The context tokens kept in each row, in order, as arrays (rows, most candidates).

    Attributes
    ----------
    slots
        Their positions in the batch.
    indices
        Their positions in the whole input; −1 for padding.
    unchanged
        1 for a token of the input, 0 for a token that was replaced or zeroed.
    """

    slots: Tensor
    indices: Tensor
    unchanged: Tensor

    @classmethod
    def from_rows(
        cls, parts: Sequence[TokenRows], compact: Sequence[bool], device: torch.device
    ) -> Candidates:
        """Return the candidates in the batch that `collate` creates from these parts."""
        indices = lay_out_like_ids(parts, compact, [_candidate_indices(part) for part in parts], -1)
        changed = lay_out_like_ids(parts, compact, [part.changed().astype(np.int64) for part in parts], 0)
        width = max(1, int((indices >= 0).sum(axis=1).max()))
        slots = order_first(indices >= 0)[:, :width]
        indices, changed = (np.take_along_axis(array, slots, axis=1) for array in (indices, changed))
        return cls(*devices.send(np.stack([slots, indices, 1 - changed]), device))

    def logits(self, logits: Tensor) -> Tensor:
        """Return the candidates' logits (rows, candidates, 2), padded with −∞."""
        logits = logits.float().gather(1, self.slots[..., None].expand(-1, -1, 2))
        return logits.masked_fill(self.indices[..., None] < 0, -torch.inf)


def best_spans(logits: Tensor, candidates: Candidates, longest: int, *, no_answer: bool) -> Tensor:
    """Return the first and last candidate of each row's answer (rows, 2), from logits (rows, length, 2).

    The answer is the span of at most `longest` tokens with the largest sum of start and end logits. It is
    empty (its last token precedes its first) if no candidate remains, or if `no_answer` is set and the sum
    for the input's first token, which stands for no answer, is larger. It is NaN if a logit is.
    """
    start, end = candidates.logits(logits).unbind(dim=2)
    window = min(longest, start.shape[1])
    ends = torch.nn.functional.pad(end, (0, window - 1), value=-torch.inf).unfold(1, window, 1)
    best_ends, steps = ends.max(dim=2)
    scores, first = (start + best_ends).max(dim=1)
    last = first + steps.gather(1, first[:, None])[:, 0]
    empty = scores == -torch.inf
    if no_answer:
        empty |= logits[:, 0].float().sum(dim=1) > scores
    spans = torch.stack([first, torch.where(empty, first - 1, last)], dim=1).float()
    return spans.masked_fill(scores.isnan()[:, None], torch.nan)


def overlaps(spans: Tensor, candidates: Candidates, references: Tensor) -> Tensor:
    """Return the Jaccard index between each row's span and a reference span of its whole input (rows,).

    |A ∩ B| / |A ∪ B| as sets of tokens; replaced tokens are not in the reference. Two empty spans are equal.
    """
    number = torch.arange(candidates.indices.shape[1], device=spans.device)
    is_shared = _within(number, spans) & _within(candidates.indices, references) & candidates.unchanged.bool()
    n_shared = is_shared.sum(dim=1)
    n_union = (spans[:, 1] - spans[:, 0] + 1) + (references[:, 1] - references[:, 0] + 1) - n_shared
    return torch.where(n_union == 0, 1.0, n_shared / n_union)


def log_probabilities(logits: Tensor, context: Candidates, references: Tensor, *, no_answer: bool) -> Tensor:
    """Return the log-probabilities of reference spans of whole inputs, log p(start) + log p(end) (rows,).

    Both are softmax over the context and, with `no_answer`, the input's first token.
    """
    choices = context.logits(logits)
    if no_answer:
        choices = torch.cat([choices, logits[:, :1].float()], dim=1)
    at = (references - context.indices[:, :1]).nan_to_num(0).long()
    at = torch.where((at[:, 1] < at[:, 0])[:, None], choices.shape[1] - 1, at)
    return log_softmax_at(choices, at[:, None], dim=1).sum(dim=(1, 2))


def _within(numbers: Tensor, spans: Tensor) -> Tensor:
    return (numbers >= spans[:, :1]) & (numbers <= spans[:, 1:])


def _candidate_indices(part: TokenRows) -> Ints:
    """Return the position of each candidate token, −1 for other tokens (rows, length)."""
    char_spans = part.tokens.char_spans
    assert char_spans is not None
    return np.where(part.attend & (char_spans[:, 0] == CONTEXT), np.arange(len(char_spans)), -1)


@heads.register("question-answering")
class ReaderHead(Head):
    """The head of ``AutoModelForQuestionAnswering``; an input is (question, context).

    Its value is the overlap of the answer with the answer to the whole input: the Jaccard index of the two as
    sets of tokens (MAGNEx, Sec. 3.5). It is 1 for equal answers, including two missing answers, and 0 if they
    share no token or no context remains. The first batch with rows of an input also answers the whole input.

    An overlap has no gradient. Gradients are those of the log-probability of the answer to the whole input,
    log p(start) + log p(end); mask gradients use softmax × mask, renormalised, in attention.

    Parameters
    ----------
    fix_question
        Whether to keep the words of the question always, so that only the context is explained.
    max_answer_length
        Largest number of tokens in an answer.
    no_answer
        Whether the model may return no answer, based on the logits of the first token, as models trained on
        SQuAD 2 do.
    """

    summary = "overlap of the answer span with the answer to the whole input"
    tasks = ("question-answering",)
    architectures = ("ForQuestionAnswering",)
    auto_class = "AutoModelForQuestionAnswering"
    segments = ("question", "context")
    output = PlainValues()
    classes = (OVERLAP,)

    @checked
    def __init__(
        self, *, fix_question: bool = True, max_answer_length: Count = 30, no_answer: bool = False
    ) -> None:
        self.fix_question = fix_question
        self.max_answer_length = max_answer_length
        self.no_answer = no_answer
        self.settings = (max_answer_length, no_answer)
        self.references: WeakKeyDictionary[Tokens, Tensor] = WeakKeyDictionary()
        """Answer to each whole input, on the device."""
        self.answers: WeakKeyDictionary[Tokens, Array] = WeakKeyDictionary()
        """The same answers on the host, once fetched."""

    def check_encoder(self, encoder: TransformerModel) -> None:
        """Raise an error if the first token, which stands for no answer, would be a token of the text."""
        must = "False for a tokenizer that adds no special token at the start"
        special = encoder.example["special_tokens_mask"]
        require(not self.no_answer or special[0] == 1, "no_answer", must, self.no_answer)

    def forget(self) -> None:
        """Discard the answers to whole inputs."""
        self.references.clear()
        self.answers.clear()

    def text_of(self, raw: Any, encoder: TransformerModel) -> Text:
        """Return a question and a context; a `Text` specifies which of the two is fixed."""
        text = Text.from_input(raw)
        if text.second is None:
            raise InputError(
                "The model answers a question about a context: pass (question, context) or "
                "{'question': …, 'context': …}, not a single text."
            )
        for name, segment in zip(self.segments, text.segments, strict=True):
            if not segment.strip():
                raise InputError(f"The {name} is empty or blank.")
        if not isinstance(raw, Text):
            text = replace(text, fixed="first" if self.fix_question else "none")
        if text.fixed != "none":
            self._check_fixed_length(text, encoder)
        return text

    def _check_fixed_length(self, text: Text, encoder: TransformerModel) -> None:
        """Raise an `InputError` if the fixed text, which is not truncated, leaves no token for the other."""
        segment = int(text.fixed == "second")
        encoded = encoder.tokenizer(text.segments[segment], add_special_tokens=False, verbose=False)
        length = len(encoded["input_ids"]) + encoder.tokenizer.num_special_tokens_to_add(pair=True)
        if length >= encoder.max_length:
            fixed, other = self.segments[segment], self.segments[1 - segment]
            raise InputError(
                f"The {fixed} is fixed and too long: with special tokens it has {length} tokens, and the "
                f"model reads {encoder.max_length}, which leaves none for the {other}."
            )

    def check_input(self, input: TextInput, encoder: TransformerModel) -> None:
        """Raise an `InputError` if truncation leaves no token of the context."""
        assert input.tokens is not None and input.tokens.char_spans is not None
        if not (input.tokens.char_spans[:, 0] == CONTEXT).any():
            raise InputError(f"`max_length` = {encoder.max_length} tokens leave none for the context.")

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the pairs in a collection; two strings are one pair, also in a list."""
        if isinstance(raw, list | tuple) and len(raw) == 2 and all(isinstance(text, str) for text in raw):
            return None
        return super().split(raw)

    def answer_of(self, network_output: Any) -> Tensor:
        """Return each token's logits as the start and the end of the answer (rows, tokens, 2)."""
        if not hasattr(network_output, "start_logits"):
            raise ModelError(
                "The model must return start_logits and end_logits of the answer, but returned "
                f"{type(network_output).__name__}."
            )
        return torch.stack([network_output.start_logits, network_output.end_logits], dim=2)

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """Return a batch that also answers those whole inputs that have not been answered yet."""
        return _ReaderBatch(self, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes overlaps with the gradients of log-probabilities."""
        rows = seen()
        wholes = [whole_rows(part.tokens, len(part.attend)) for part in rows]
        unanswered = dict.fromkeys(part.tokens for part in wholes if part.tokens not in self.references)
        if unanswered:
            encoder.submit([whole_rows(tokens) for tokens in unanswered])
        padded = [False] * len(wholes)
        context = Candidates.from_rows(wholes, padded, encoder.device)
        candidates = Candidates.from_rows(rows, padded, encoder.device)
        references = self.references_of(wholes, encoder.device)

        def scores(logits: Tensor, bias: Tensor | None) -> Tensor:
            spans = self.spans(logits.detach(), candidates)
            if bias is not None and bias.is_floating_point():  # log-weights of the tokens
                logits = logits + bias[:, 0, 0, :, None]
            logs = log_probabilities(logits, context, references, no_answer=self.no_answer)
            return (overlaps(spans, candidates, references) + (logs - logs.detach()))[:, None]

        return scores

    def details(self, input: TextInput, encoder: TransformerModel) -> dict[str, str]:
        """Return the answer to the whole input, as written in the context; empty if there is none."""
        tokens = input.tokens or encoder.prepare(input.text).tokens  # a saved input has no tokens
        assert tokens is not None and tokens.char_spans is not None and input.text.second is not None
        if tokens not in self.references:
            encoder.submit([whole_rows(tokens)]).outputs()
        if tokens not in self.answers:
            self.answers[tokens] = self.references[tokens].cpu().numpy()
        first, last = self.answers[tokens]
        if not first <= last:
            return {"answer": ""}
        return {
            "answer": input.text.second[tokens.char_spans[int(first), 1] : tokens.char_spans[int(last), 2]]
        }

    def spans(self, logits: Tensor, candidates: Candidates) -> Tensor:
        """Return the answer span of each row."""
        return best_spans(logits, candidates, self.max_answer_length, no_answer=self.no_answer)

    def references_of(self, parts: Sequence[TokenRows], device: torch.device) -> Tensor:
        """Return the answer span of the whole input, for each row (rows, 2)."""
        owners = np.repeat(np.arange(len(parts)), [len(part.attend) for part in parts])
        spans = torch.stack([self.references[part.tokens] for part in parts])
        return spans[devices.send(owners, device)]


class _ReaderBatch(HeadBatch):
    """Rows whose answers are compared with those to whole inputs; unanswered whole inputs are added."""

    def __init__(self, head: ReaderHead, parts: Sequence[TokenRows]) -> None:
        self._head = head
        self._n_requested = sum(len(part.attend) for part in parts)
        self._wholes: dict[Tokens, int] = {}  # row of each whole input not yet answered
        added: list[TokenRows] = []
        first = 0
        for part in parts:
            tokens = part.tokens
            if tokens not in head.references and tokens not in self._wholes:
                row = part.whole_row()
                self._wholes[tokens] = self._n_requested + len(added) if row is None else first + row
                added += [whole_rows(tokens)] if row is None else []
            first += len(part.attend)
        super().__init__([*parts, *added])

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Find the tokens of the context."""
        self._candidates = Candidates.from_rows(self.parts, compact, device)

    def scores(self, answer: Tensor) -> Tensor:
        """Return the overlap of each row, and its answer as a span of the whole input (rows, 3)."""
        spans = self._head.spans(answer, self._candidates)
        answers = spans + self._candidates.indices[:, :1]  # valid only for whole inputs
        for tokens, row in self._wholes.items():
            self._head.references[tokens] = answers[row].clone()
        references = self._head.references_of(self.parts, answer.device)
        return torch.cat([overlaps(spans, self._candidates, references)[:, None], answers], dim=1)

    def collect(self, scores: Array) -> Array:
        """Return the overlaps of the requested rows, and store the answers to whole inputs."""
        for tokens, row in self._wholes.items():
            self._head.answers[tokens] = scores[row, 1:].copy()
        return scores[: self._n_requested, :1]
