"""A head that answers a question with a span of a context, and the spans of many rows at once."""

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
from pertinent.models.tokens.batches import collate, whole_rows
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import PlainValues
from pertinent.removals.base import TokenRows

CONTEXT = 1
"""The segment that answers are found in: a question comes first."""


OVERLAP = "answer overlap"
"""The name of the only column of a reader."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The tokens of the context that each row still has, in order: arrays (rows, most candidates).

    Attributes
    ----------
    slots
        Where in the batch each of them is.
    places
        Where in the whole input it is; −1 where a row has fewer.
    unchanged
        Whether it is still the input's own token, neither replaced nor set to zero.
    """

    slots: Tensor
    places: Tensor
    unchanged: Tensor

    @classmethod
    def from_rows(
        cls, parts: Sequence[TokenRows], compact: Sequence[bool], device: torch.device
    ) -> Candidates:
        """The candidates in the batch that `collate` makes of these parts."""
        # Laid out like the batch itself, with the place of each candidate instead of its id.
        marked = [
            TokenRows(part.tokens, part.attend, _places(part), part.changed(), part.renumber)
            for part in parts
        ]
        laid = collate(marked, compact, -1)
        assert laid.zeroed is not None
        width = max(1, int((laid.ids >= 0).sum(axis=1).max()))
        slots = np.argsort(laid.ids < 0, axis=1, kind="stable")[:, :width]
        places, changed = (np.take_along_axis(own, slots, axis=1) for own in (laid.ids, laid.zeroed))
        return cls(*devices.send(np.stack([slots, places, 1 - changed]), device))


def best_spans(logits: Tensor, candidates: Candidates, longest: int, *, no_answer: bool) -> Tensor:
    """The first and last candidate of each row's answer (rows, 2), from logits (rows, length, 2).

    It is the span of at most `longest` tokens with the largest sum of its start's and its end's logits.
    It is empty, its last before its first, where no candidate is left; and, with `no_answer`, where the
    sum for the first token of all, which stands for no answer, is larger. NaN where a logit is.
    """
    start, end = _of_candidates(logits, candidates).unbind(dim=2)
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
    """The Jaccard index of each row's span and a span of places in its whole input (rows,).

    |A ∩ B| / |A ∪ B|, as sets of tokens: a token that was replaced is not the input's own. Two empty
    spans are the same.
    """
    number = torch.arange(candidates.places.shape[1], device=spans.device)
    shared = _within(number, spans) & _within(candidates.places, references) & candidates.unchanged.bool()
    n_shared = shared.sum(dim=1)
    n_together = (spans[:, 1] - spans[:, 0] + 1) + (references[:, 1] - references[:, 0] + 1) - n_shared
    return torch.where(n_together == 0, 1.0, n_shared / n_together)


def log_probabilities(logits: Tensor, context: Candidates, references: Tensor, *, no_answer: bool) -> Tensor:
    """The log-probabilities of spans of places in whole inputs, log p(start) + log p(end) (rows,).

    Both are softmax over the context, and with `no_answer` the first token of all.
    """
    chances = _of_candidates(logits, context)
    if no_answer:
        chances = torch.cat([chances, logits[:, :1].float()], dim=1)
    at = (references - context.places[:, :1]).nan_to_num(0).long()
    at = torch.where((at[:, 1] < at[:, 0])[:, None], chances.shape[1] - 1, at)
    return chances.log_softmax(dim=1).gather(1, at[:, None]).sum(dim=(1, 2))


def _of_candidates(logits: Tensor, candidates: Candidates) -> Tensor:
    """The logits (rows, candidates, 2), −∞ where there is none."""
    found = logits.float().gather(1, candidates.slots[..., None].expand(-1, -1, 2))
    return found.masked_fill(candidates.places[..., None] < 0, -torch.inf)


def _within(numbers: Tensor, spans: Tensor) -> Tensor:
    return (numbers >= spans[:, :1]) & (numbers <= spans[:, 1:])


def _places(part: TokenRows) -> Ints:
    """The place of each token that is a candidate, −1 for the others."""
    place = part.tokens.place
    assert place is not None
    return np.where(part.attend & (place[:, 0] == CONTEXT), np.arange(len(place)), -1)


@heads.register("question-answering")
class ReaderHead(Head):
    """The head of ``AutoModelForQuestionAnswering``; an input is (question, context).

    Its value is the overlap of the answer with the answer on the whole input: the Jaccard index of the two
    as sets of tokens (MAGNEx, Sec. 3.5), 1 for the same answer, also if both are no answer, 0 if they have no
    token in common or none of the context is left. The answer on the whole input is found in the first batch
    that has a row of it.

    An overlap has no gradient. Gradients are those of the log-probability of the answer on the whole input,
    log p(start) + log p(end); along a mask, of softmax × mask, renormalised, as in attention.

    Parameters
    ----------
    fix_question
        Whether the words of the question are kept, so that only those of the context are features.
    max_answer_length
        The most tokens of an answer.
    no_answer
        Whether the model may answer that there is no answer, by the first token's logits, as those trained on
        SQuAD 2 do.
    """

    summary = "overlap of the span that answers a question with the first answer"
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
        self.references: WeakKeyDictionary[Tokens, torch.Tensor] = WeakKeyDictionary()
        self.answers: WeakKeyDictionary[Tokens, Array] = WeakKeyDictionary()

    def check_encoder(self, encoder: TransformerModel) -> None:
        """Raise an error if the first token, which stands for no answer, would be one of the text."""
        must = "False for a tokenizer whose texts begin with no special token"
        special = encoder.example["special_tokens_mask"]
        require(not self.no_answer or special[0] == 1, "no_answer", must, self.no_answer)

    def forget(self) -> None:
        """Forget the answers on whole inputs."""
        self.references.clear()
        self.answers.clear()

    def text_of(self, raw: Any, encoder: TransformerModel) -> Text:
        """A question and a context; a `Text` says itself which of them is fixed."""
        text = Text.from_input(raw)
        if text.second is None:
            raise InputError(
                "The model answers a question about a context: give (question, context) or "
                "{'question': …, 'context': …}, but got one text."
            )
        for name, segment in zip(("question", "context"), text.segments, strict=True):
            if not segment.strip():
                raise InputError(f"The {name} is empty or blank.")
        if not isinstance(raw, Text):
            text = replace(text, fixed="first" if self.fix_question else "none")
        _check_room(text, encoder)
        return text

    def check_input(self, input: TextInput, encoder: TransformerModel) -> None:
        """Raise an error if no token of the context is left after truncation."""
        assert input.tokens is not None and input.tokens.place is not None
        if not (input.tokens.place[:, 0] == CONTEXT).any():
            raise InputError(f"`max_length` = {encoder.max_length} tokens leave no room for the context.")

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The pairs in `raw`, if it holds several; two strings are one pair, in a list too."""
        if isinstance(raw, list | tuple) and len(raw) == 2 and all(isinstance(own, str) for own in raw):
            return None
        return super().split(raw)

    def answer_of(self, network_output: Any) -> torch.Tensor:
        """The logits of each token as the start and as the end of the answer (rows, tokens, 2)."""
        if not hasattr(network_output, "start_logits"):
            raise ModelError(
                "The model must give start_logits and end_logits of the answer, but gave "
                f"{type(network_output).__name__}."
            )
        return torch.stack([network_output.start_logits, network_output.end_logits], dim=2)

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """A batch that also answers the whole inputs whose answers are not known yet."""
        return _ReaderBatch(self, parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Overlaps, whose gradients are those of the log-probability of the answer on the whole input."""
        rows = seen()
        wholes = [whole_rows(own.tokens, len(own.attend)) for own in rows]
        unknown = dict.fromkeys(own.tokens for own in wholes if own.tokens not in self.references)
        if unknown:
            encoder.submit([whole_rows(tokens) for tokens in unknown])
        padded = [False] * len(wholes)
        context = Candidates.from_rows(wholes, padded, encoder.device)
        candidates = Candidates.from_rows(rows, padded, encoder.device)
        references = self.references_of(wholes, encoder.device)

        def scores(logits: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            spans = self.spans(logits.detach(), candidates)
            if bias is not None and bias.is_floating_point():  # the logarithms of the weights of tokens
                logits = logits + bias[:, 0, 0, :, None]
            logs = log_probabilities(logits, context, references, no_answer=self.no_answer)
            return (overlaps(spans, candidates, references) + (logs - logs.detach()))[:, None]

        return scores

    def details(self, input: TextInput, encoder: TransformerModel) -> dict[str, str]:
        """The answer on the whole input, as it stands in the context; empty where there is none."""
        tokens = input.tokens or encoder.prepare(input.text).tokens  # none if it was saved and read again
        assert tokens is not None and tokens.place is not None and input.text.second is not None
        if tokens not in self.references:
            encoder.submit([whole_rows(tokens)]).outputs()
        if tokens not in self.answers:  # found on the device, but not fetched
            self.answers[tokens] = self.references[tokens].cpu().numpy()
        first, last = self.answers[tokens]
        if not first <= last:
            return {"answer": ""}
        return {"answer": input.text.second[tokens.place[int(first), 1] : tokens.place[int(last), 2]]}

    def spans(self, logits: torch.Tensor, candidates: Candidates) -> torch.Tensor:
        """The span that each row is answered with."""
        return best_spans(logits, candidates, self.max_answer_length, no_answer=self.no_answer)

    def references_of(self, parts: Sequence[TokenRows], device: torch.device) -> torch.Tensor:
        """The span of the answer on the whole input, for each row."""
        owner = np.repeat(np.arange(len(parts)), [len(part.attend) for part in parts])
        own = torch.stack([self.references[part.tokens] for part in parts])
        return own[devices.send(owner, device)]


class _ReaderBatch(HeadBatch):
    """Rows whose answers are compared with those on whole inputs, which are added if not answered yet."""

    def __init__(self, head: ReaderHead, parts: Sequence[TokenRows]) -> None:
        self._head = head
        self._n_asked = sum(len(part.attend) for part in parts)
        self._wholes: dict[Tokens, int] = {}  # the row that is the whole of each input not yet answered
        added: list[TokenRows] = []
        first = 0
        for part in parts:
            tokens = part.tokens
            if tokens not in head.references and tokens not in self._wholes:
                own = part.whole_row()
                self._wholes[tokens] = self._n_asked + len(added) if own is None else first + own
                added += [whole_rows(tokens)] if own is None else []
            first += len(part.attend)
        super().__init__([*parts, *added])

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Find the tokens of the context."""
        self._candidates = Candidates.from_rows(self.parts, compact, device)

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """The overlap of each row, and its answer as a span of the whole input (rows, 3)."""
        spans = self._head.spans(answer, self._candidates)
        answers = spans + self._candidates.places[:, :1]  # right where a row is a whole input: no gaps
        for tokens, row in self._wholes.items():
            self._head.references[tokens] = answers[row].clone()
        found = overlaps(spans, self._candidates, self._head.references_of(self.parts, answer.device))
        return torch.cat([found[:, None], answers], dim=1)

    def collect(self, scores: Array) -> Array:
        """The overlaps of the rows that were asked for; the answers on whole inputs are kept."""
        for tokens, row in self._wholes.items():
            self._head.answers[tokens] = scores[row, 1:].copy()
        return scores[: self._n_asked, :1]


def _check_room(text: Text, encoder: TransformerModel) -> None:
    """Raise an error if a fixed text, which is not truncated, leaves no token for the other text."""
    if text.fixed == "none":
        return
    is_context = text.fixed == "second"
    fixed, other = ("context", "question") if is_context else ("question", "context")
    own = encoder.tokenizer(text.segments[is_context], add_special_tokens=False, verbose=False)
    length = len(own["input_ids"]) + encoder.tokenizer.num_special_tokens_to_add(pair=True)
    if length >= encoder.max_length:
        raise InputError(
            f"The {fixed} is fixed and leaves no room for the {other}: with special tokens it has "
            f"{length} tokens, and the model reads {encoder.max_length}."
        )
