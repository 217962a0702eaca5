"""A transformers reader that answers a question with a span of a context, with its tokenizer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from pertinent.array_types import Array
from pertinent.asks import MaskGradients, Part, PathGradients
from pertinent.errors import InputError, ModelError, require
from pertinent.inputs.base import Features, Input
from pertinent.inputs.text import Text, TextInput, Tokens
from pertinent.models.base import Answer, Handlers
from pertinent.models.torch import devices
from pertinent.models.torch.compaction import States
from pertinent.models.torch.spans import (
    CONTEXT,
    Candidates,
    best_spans,
    log_probabilities,
    overlaps,
    whole_row,
    whole_rows,
    whole_spans,
)
from pertinent.models.torch.token_gradients import token_mask_gradients, token_path_gradients
from pertinent.models.torch.tokens import TokenBatch, collate
from pertinent.models.transformer import TransformerModel
from pertinent.removal.base import Rows, TokenRows, kept_tokens
from pertinent.settings import Count, checked

OVERLAP = "answer overlap"
"""The name of its one value."""


def _mask_gradients(model: QuestionAnsweringModel, parts: Sequence[Part]) -> Answer:
    """Overlaps, and gradients of the answer's log-probability through the attention masks."""
    seen = []
    for part in parts:
        kept = kept_tokens(_text(part), part.question.masks[part.rows] > 0)
        hides = part.removal.hides == "tokens"
        everything = np.ones_like(kept)
        seen.append(TokenRows(_tokens(part), kept if hides else everything, zeroed=~kept))
    return token_mask_gradients(model.scoring(seen), parts)


def _path_gradients(model: QuestionAnsweringModel, parts: Sequence[Part]) -> Answer:
    """Overlaps, and gradients of the answer's log-probability at the word embeddings."""
    wholes = [whole_rows(_tokens(part), len(part.rows)) for part in parts]
    return token_path_gradients(model.scoring(wholes), parts)


class QuestionAnsweringModel(TransformerModel):
    """Wraps ``AutoModelForQuestionAnswering`` and a fast tokenizer; an input is (question, context).

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

    handlers: ClassVar[Handlers] = {
        **TransformerModel.handlers,
        MaskGradients: _mask_gradients,
        PathGradients: _path_gradients,
    }
    _scores: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] | None = None

    @checked
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        fix_question: bool = True,
        max_answer_length: Count = 30,
        no_answer: bool = False,
        max_length: Count | None = None,
        compaction: bool = True,
    ) -> None:
        self.fix_question = fix_question
        self.max_answer_length = max_answer_length
        self.no_answer = no_answer
        self._references: WeakKeyDictionary[Tokens, torch.Tensor] = WeakKeyDictionary()
        self._answers: WeakKeyDictionary[Tokens, Array] = WeakKeyDictionary()
        super().__init__(
            model, tokenizer, output="value", names=[OVERLAP], max_length=max_length, compaction=compaction
        )
        special = self._example["special_tokens_mask"]
        must = "False for a tokenizer whose texts begin with no special token"
        require(not no_answer or special[0] == 1, "no_answer", must, no_answer)

    def identity(self) -> object:
        """The weights, the vocabulary, how much is read, and which answers there may be."""
        return super().identity(), self.max_answer_length, self.no_answer

    def prepare(self, raw: Any, features: Features | None = None) -> TextInput:
        """Tokenise a question and a context; a `Text` says itself which of them is fixed."""
        text = Text.of(raw)
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
        self._check_room(text)
        input = super().prepare(text, features)
        assert input.tokens is not None and input.tokens.place is not None
        if not (input.tokens.place[:, 0] == CONTEXT).any():
            raise InputError(f"`max_length` = {self.max_length} tokens leave no room for the context.")
        return input

    def _check_room(self, text: Text) -> None:
        """A fixed text is not truncated, so it must leave at least a token for the other."""
        if text.fixed == "none":
            return
        is_context = text.fixed == "second"
        fixed, other = ("context", "question") if is_context else ("question", "context")
        own = self.tokenizer(text.segments[is_context], add_special_tokens=False, verbose=False)
        length = len(own["input_ids"]) + self.tokenizer.num_special_tokens_to_add(pair=True)
        if length >= self.max_length:
            raise InputError(
                f"The {fixed} is fixed and leaves no room for the {other}: with special tokens it has "
                f"{length} tokens, and the model reads {self.max_length}."
            )

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The pairs in `raw`, if it holds several; two strings are one pair, in a list too."""
        if isinstance(raw, list | tuple) and len(raw) == 2 and all(isinstance(own, str) for own in raw):
            return None
        return super().split(raw)

    def answer(self, input: Input) -> str:
        """The answer on the whole input, as it stands in the context; empty where there is none."""
        assert isinstance(input, TextInput)
        tokens = input.tokens
        if tokens is None:  # it was saved and read again
            tokens = self.prepare(input.text).tokens
        assert tokens is not None and tokens.place is not None and input.text.second is not None
        if tokens not in self._references:
            self.submit([whole_rows(tokens)]).outputs()
        if tokens not in self._answers:  # found on the device, but not fetched
            self._answers[tokens] = self._references[tokens].cpu().numpy()
        first, last = self._answers[tokens]
        if not first <= last:
            return ""
        return input.text.second[tokens.place[int(first), 1] : tokens.place[int(last), 2]]

    def details(self, input: Input) -> dict[str, str]:
        """What a person should be told of its prediction: the answer itself."""
        return {"answer": self.answer(input)}

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Overlaps of the rows of many inputs, whose own answers are found on the way if not known."""
        asked = [part for part in rows if isinstance(part, TokenRows)]
        wholes, added = self._wholes(asked)
        parts = [*asked, *added]
        compact = [self.compaction.holds(part.attend.shape[1]) for part in parts]
        batch = collate(parts, compact, self.pad_id)
        candidates = Candidates.of(parts, compact, self.device)

        def both() -> torch.Tensor:
            logits = _span_logits(self.forward(batch))
            spans = best_spans(logits, candidates, self.max_answer_length, no_answer=self.no_answer)
            answers = whole_spans(spans, candidates)
            for tokens, row in wholes.items():
                self._references[tokens] = answers[row].clone()
            found = overlaps(spans, candidates, self._references_of(parts))
            return torch.cat([found[:, None], answers], dim=1)

        with self.evaluating(batch.ids.shape):
            answer = devices.run(self.device, both)
        n_asked = sum(len(part.attend) for part in asked)

        def outputs() -> Array:
            found: Array = answer.outputs()
            for tokens, row in wholes.items():
                self._answers[tokens] = found[row, 1:].copy()
            return found[:n_asked, :1]

        return Answer(outputs, answer.seconds, answer.done)

    def forward(self, batch: TokenBatch, model: Any = None, **options: Any) -> Any:
        """Run the model; what it says of spans is also there as `logits`, as a classifier names them."""
        answer = super().forward(batch, model, **options)
        if hasattr(answer, "start_logits"):
            logits = _span_logits(answer)
            answer.logits = logits
            if self._scores is not None:
                answer.logits = self._scores(logits, options.get("attention_mask"))
        return answer

    def _states(self, batch: TokenBatch) -> States:
        answer = self.exactly(batch, output_hidden_states=True)
        logits = _span_logits(answer)
        return [*answer.hidden_states, logits, logits[:, 0]]

    def _wholes(self, parts: Sequence[TokenRows]) -> tuple[dict[Tokens, int], list[TokenRows]]:
        """The row that is the whole of each input whose answer is not known, and rows to add for it."""
        wholes: dict[Tokens, int] = {}
        added: list[TokenRows] = []
        first, end = 0, sum(len(part.attend) for part in parts)
        for part in parts:
            tokens = part.tokens
            if tokens not in self._references and tokens not in wholes:
                own = whole_row(part)
                wholes[tokens] = end + len(added) if own is None else first + own
                added += [whole_rows(tokens)] if own is None else []
            first += len(part.attend)
        return wholes, added

    def _references_of(self, parts: Sequence[TokenRows]) -> torch.Tensor:
        """The span of the answer on the whole input, for each row."""
        owner = np.repeat(np.arange(len(parts)), [len(part.attend) for part in parts])
        own = torch.stack([self._references[part.tokens] for part in parts])
        return own[devices.send(owner, self.device)]

    def scoring(self, seen: Sequence[TokenRows]) -> TransformerModel:
        """This model as one with a score per row: an overlap, whose gradient is the log-probability's."""
        wholes = [whole_rows(own.tokens, len(own.attend)) for own in seen]
        unknown = dict.fromkeys(own.tokens for own in wholes if own.tokens not in self._references)
        if unknown:
            self.submit([whole_rows(tokens) for tokens in unknown])
        padded = [False] * len(wholes)
        context = Candidates.of(wholes, padded, self.device)
        candidates = Candidates.of(seen, padded, self.device)
        references = self._references_of(wholes)

        def scores(logits: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            spans = best_spans(logits.detach(), candidates, self.max_answer_length, no_answer=self.no_answer)
            if bias is not None and bias.is_floating_point():  # the logarithms of the weights of tokens
                logits = logits + bias[:, 0, 0, :, None]
            logs = log_probabilities(logits, context, references, no_answer=self.no_answer)
            return (overlaps(spans, candidates, references) + (logs - logs.detach()))[:, None]

        scoring = copy.copy(self)
        scoring._scores = scores  # noqa: SLF001  of a copy of itself
        return scoring


def _span_logits(answer: Any) -> torch.Tensor:
    """The logits of each token as the start and as the end of the answer (rows, length, 2)."""
    if not hasattr(answer, "start_logits"):
        raise ModelError(
            "The model must give start_logits and end_logits of the answer, but gave "
            f"{type(answer).__name__}."
        )
    return torch.stack([answer.start_logits, answer.end_logits], dim=2)


def _text(part: Part) -> TextInput:
    assert isinstance(part.input, TextInput)
    return part.input


def _tokens(part: Part) -> Tokens:
    tokens = _text(part).tokens
    assert tokens is not None
    return tokens
