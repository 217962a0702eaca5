"""A transformers model that reads texts: an encoder with its tokenizer, and a head."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import AttackRadii, MaskGradients, PathGradients, TokenPerplexity
from pertinent.config.settings import Count, checked
from pertinent.errors import ModelError
from pertinent.inputs.base import Features, Input, Truncation
from pertinent.inputs.segmentation import default_features, long_text_notes
from pertinent.inputs.text import TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.models.attacks.torch_attacks import token_attacks
from pertinent.models.base import Answer, Handlers, Model
from pertinent.models.gradients.token_gradients import token_mask_gradients, token_path_gradients
from pertinent.models.tokens.attention_bias import BiasCheck, hiding_bias
from pertinent.models.tokens.batches import TokenBatch, collate, without_needless_mask
from pertinent.models.tokens.compaction import Compaction, States, stretch
from pertinent.models.tokens.hidden_states import HiddenStates
from pertinent.models.tokens.prefixes import Prefixes
from pertinent.models.tokens.token_perplexity import prompt_surprises
from pertinent.models.tokens.tokenize_text import tokenize_text
from pertinent.models.tokens.windows import Windows
from pertinent.models.torch import devices
from pertinent.models.torch.inference import evaluating, n_weights, without_new_hooks
from pertinent.models.torch.rounding import TOLERANCES, relative_difference
from pertinent.outputs import Scale
from pertinent.removals.base import Removal, Rows, TokenRows

if TYPE_CHECKING:
    from pertinent.models.heads.base import Head

logger = logging.getLogger(__name__)

BERT_BASE = 85_000_000
"""Number of parameters in matrix products of an encoder for which a launch costs as much as 8192 tokens."""

MOST_COPIED = 300_000_000
"""Language models with more parameters are tested as they are: a copy in float32 may not fit beside them."""

PASS = 4
"""Number of the largest batches that one pass may hold. Only the windows of a long text are ever more."""


def _launch_overhead(model: Any, n_weights: float) -> int:
    """The tokens that a causal network computes while a batch is launched.

    A token of a larger network takes longer; a launch takes longer the more layers there are, and a decoder's
    layer launches about three times as many kernels as BERT's.
    """
    n_layers = getattr(model.config, "num_hidden_layers", None) or 12
    return min(8192, int(8192 * 3 * n_layers / 12 * BERT_BASE / n_weights))


class TransformerModel(Model):
    """Wraps a transformers model and a fast tokenizer; the head says what the model reads and answers.

    Removed tokens are not computed where that was verified to be exact (see `compaction`). The model is
    evaluated in eval mode, and afterwards in the mode it was in.
    """

    handlers: ClassVar[Handlers] = {
        MaskGradients: token_mask_gradients,
        PathGradients: token_path_gradients,
        AttackRadii: token_attacks,
        TokenPerplexity: prompt_surprises,
    }
    device: torch.device
    dtype: torch.dtype
    unit: ClassVar[str] = "tokens"
    first_batch = largest_batch = 1024
    hides_by_bias = False
    hidden_states: HiddenStates | None = None
    _warned_of_truncation = False

    @checked
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        head: Any,
        max_length: Count | None = None,
        long_texts: str = "truncate",
        compaction: bool = True,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                "The tokenizer must be a fast one: it has to say which characters a token covers."
            )
        self.model = self.module = self.wrapped = model
        self.tokenizer = tokenizer
        self.device, self.dtype = devices.device_and_dtype(model)
        self._n_weights = n_weights(model)
        if self.device.type == "cuda":
            self.first_batch = self.largest_batch = 65536
            self.launch_overhead = 8192
            self.mixed_length_penalty = 0.25  # a mask rules out flash attention: 25% slower at 511 tokens
            self.in_flight = 8
            self.hides_by_bias = True
            if head.is_causal:
                self.mixed_length_penalty = 0.0  # padding at the end needs no mask
                self.launch_overhead = _launch_overhead(model, self._n_weights)
        self.head: Head = head
        self.kind = head.kind
        self.hides_by_bias &= self.head.default_removal == "attention-mask"
        self.prefixes = Prefixes(self) if self.head.is_causal else None
        self.output, self.classes = self.head.output, self.head.classes
        self.columns_differ = self.head.columns_differ
        parameters = inspect.signature(model.forward).parameters
        self._arguments = set(parameters)
        takes_any = any(own.kind is inspect.Parameter.VAR_KEYWORD for own in parameters.values())
        self._tells_hidden_states = takes_any or self.takes("output_hidden_states")
        self._bias_check = BiasCheck(self)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.example = tokenizer("a", return_special_tokens_mask=True)
        if self.head.is_causal:
            self.example.pop("token_type_ids", None)  # which would be one more embedding in GPT-2
        self._position_base: int | None = None
        self.head.prepare_network(self)
        self._position_base = self._find_position_base()
        self.max_length = self._find_max_length(max_length)
        self.windows = Windows.from_setting(long_texts, self.max_length)
        if self.windows is not None and not self.head.reads_windows:
            raise ModelError(
                f"A model with a {type(self.head).__name__} cannot read long texts in windows, as the "
                "answers to windows have no mean: leave out long_texts."
            )
        if compaction and self._position_base is None and self.head.default_removal == "attention-mask":
            logger.warning("Removed tokens are computed too, because the model takes no position ids.")
        compaction &= self._position_base is not None
        self.compaction = Compaction(
            self._states, self._text_of, self.max_length, self.pad_id, self.rounding, compaction
        )
        if self.head.default_removal == "attention-mask":  # cutting tokens out needs no test
            self.compaction.holds(min(64, self.max_length))
        self.head.check_encoder(self)

    def identity(self) -> object:
        """The weights, the vocabulary, how much of a text is read, and the head's settings."""
        own = self.model, self.output.to_dict(), self.tokenizer.get_vocab(), self.max_length
        windows = () if self.windows is None else ("windows", self.windows.overlap)
        settings = (*self.head.settings, *windows)
        return (own, *settings) if settings else own

    def in_transformers(self) -> tuple[Any, Any]:
        """The network and the tokenizer as objects of transformers: those of the embedded models are not."""
        if not hasattr(self.model, "in_transformers"):
            return self.model, self.tokenizer
        return self.model.in_transformers(), self.tokenizer.in_transformers()

    def prepare(self, raw: Any, features: Features | None = None) -> TextInput:
        """Tokenise a text and find the tokens of each feature."""
        own = self.head.prepare(raw, features, self)
        if own is not None:
            return own
        text = self.head.text_of(raw, self)
        reading = self.tokenizer, self.max_length, self.windows
        input = tokenize_text(text, "words" if features is None else features, *reading)
        if features is None and (cut := default_features(n_words := input.n_features)) != "words":
            notes = long_text_notes(cut, n_words)
            input = replace(tokenize_text(text, cut, *reading), notes=notes)
        assert input.tokens is not None
        if input.tokens.lengths:
            input = replace(input, notes=(self._windows_note(input.tokens), *input.notes))
        self.head.check_input(input, self)
        if input.truncation is not None:
            self._warn_of_truncation(input.truncation)
        return input

    def _windows_note(self, tokens: Tokens) -> str:
        """What a text that is read in windows says of itself."""
        means = "values" if self.output.kind == "value" else "probabilities"
        windows = f"{len(tokens.lengths):,} windows of at most {self.max_length} tokens"
        return f"read in {windows}: the mean of their {means} is explained"

    def _warn_of_truncation(self, truncation: Truncation) -> None:
        """Log a warning for the first text that is truncated; each input says itself whether it is."""
        if self._warned_of_truncation:
            logger.debug("A text was %s.", truncation)
        else:
            way = "; long_texts='windows' reads all of it" if self.head.reads_windows else ""
            told = "A text was %s%s. There may be more: see `Explanation.notes`."
            logger.warning(told, truncation, way)
            self._warned_of_truncation = True

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The texts in `raw`, if it holds several."""
        return self.head.split(raw)

    def forget(self) -> None:
        """Forget what was derived from the parameters."""
        super().forget()
        self.head.forget()
        if self.prefixes is not None:
            self.prefixes.forget()

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """The names of the head's columns for this input."""
        return self.head.columns_of(input)

    def details(self, input: Any) -> dict[str, str]:
        """What the head adds to its prediction."""
        return self.head.details(input, self)

    def default_removal(self, input: Any) -> str:
        """That of the head."""
        return self.head.removal_of(input)

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """The head's rows for this input on the given scale."""
        return self.head.as_scale(input, outputs, scale)

    def cost(self, removal: Removal, input: Any, masks: Masks) -> Ints:
        """The number of tokens that will be computed for each mask."""
        if not self._drops(removal.hides, input.tokens.longest):
            return np.full(len(masks), len(input.tokens.ids) * removal.draws)
        counts = input.token_counts
        kept = masks.astype(np.float32) @ counts[:-1] + counts[-1]
        # At least 1: a row without tokens is rejected later, but until then it must count as a row.
        return np.asarray(np.maximum(1, kept).astype(np.int64))

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Run the model on the rows of many texts at once."""
        own = self.head.batch([part for part in rows if isinstance(part, TokenRows)])
        compact = [part.renumber or self.compaction.holds(part.attend.shape[1]) for part in own.parts]
        batch = collate(own.parts, compact, self.pad_id)
        own.lay_out(compact, self.device)
        with self.evaluating(batch.ids.shape):
            answer = devices.run(self.device, lambda: own.scores(self._answer_in_passes(batch, own.parts)))
        return Answer(lambda: own.collect(answer.outputs()), answer.seconds, answer.done)

    def answer(self, batch: TokenBatch, **options: Any) -> torch.Tensor:
        """The network's answer to a batch, before the head turns it into rows of numbers."""
        return self.head.answer_of(self.forward(batch, **options))

    @contextmanager
    def keeping_hidden_states(self) -> Iterator[None]:
        """Keep the last hidden states of whole texts that are answered, for a network that reads them."""
        if self.hidden_states is not None or self.prefixes is not None or not self._tells_hidden_states:
            yield
            return
        self.hidden_states = HiddenStates()
        try:
            yield
        finally:
            self.hidden_states = None

    def _answer_in_passes(self, batch: TokenBatch, parts: Sequence[TokenRows]) -> torch.Tensor:
        """The network's answer, in several passes if the windows of one text are far too many for one."""
        step = max(1, PASS * self.largest_batch // batch.ids.shape[1])
        rows = np.arange(len(batch.ids))
        passes = [rows[first : first + step] for first in range(0, len(rows), step)]
        answer = self.answer if self.prefixes is None else self.prefixes.answer
        if len(passes) == 1 and self.hidden_states is not None:
            found = self.forward(batch, output_hidden_states=True)
            if getattr(found, "hidden_states", None) is not None:
                self.hidden_states.keep(parts, found.hidden_states[-1])
            return self.head.answer_of(found)
        if len(passes) == 1:
            return answer(batch)
        return torch.cat([answer(batch.pick(own)) for own in passes])

    def evaluating(self, shape: Sequence[int]) -> AbstractContextManager[None]:
        """Evaluate a batch of this shape (rows, tokens …)."""
        work = self._n_weights * shape[0] * shape[1]
        return evaluating(self.model, work, partial(devices.disable_onednn, self.device, self.dtype))

    def gradient_cost(self, input: Input) -> int:
        """The number of all tokens: a gradient needs the removed ones, too."""
        return input.length

    def weighs_attention(self, length: int) -> bool:
        """Whether the attention to each token can be weighted, in texts of this length."""
        return self.dtype != torch.float16 and self._bias_check.holds(length, weighted=True)

    def _drops(self, hides: str, length: int) -> bool:
        return hides == "tokens and positions" or (hides == "tokens" and self.compaction.holds(length))

    def forward(self, batch: TokenBatch, model: Any = None, **options: Any) -> Any:
        """Run the model (or the given copy of it) with only the arguments it accepts."""
        by_bias = self.hides_by_bias and model is None
        model = self.model if model is None else model
        positions = batch.positions + (self._position_base or 0)
        ids, types, positions = devices.send(np.stack([batch.ids, batch.types, positions]), self.device)
        if batch.zeroed is not None:
            options.setdefault("inputs_embeds", self.embed(batch, model))
        if "inputs_embeds" not in options:
            options["input_ids"] = ids
        if self.head.is_causal:
            batch = without_needless_mask(batch)
            if self.takes("use_cache"):
                options.setdefault("use_cache", False)
        if batch.attend is not None and "attention_mask" not in options:
            options["attention_mask"] = self._attention_mask(batch.attend, by_bias)
        if self._position_base is not None and (batch.attend is not None or not self.head.is_causal):
            options["position_ids"] = positions
        if "token_type_ids" in self._arguments and "token_type_ids" in self.example:
            options["token_type_ids"] = types
        return self.head.network(model)(**options)

    def _attention_mask(self, attend: Masks, by_bias: bool) -> torch.Tensor:
        """A bias on attention scores if possible: transformers inspects a mask, so CUDA must synchronise.

        Not possible if all tokens of a row are hidden: it would attend to all equally, even to padding.
        """
        mask = devices.send(attend.astype(np.int64), self.device)
        by_bias = by_bias and bool(attend.any(axis=1).all())
        if by_bias and self._bias_check.holds(attend.shape[1], weighted=False):
            return hiding_bias(mask, self.dtype)
        return mask

    def takes(self, argument: str) -> bool:
        """Whether the network takes an argument of this name."""
        return argument in self._arguments

    def embed(self, batch: TokenBatch, model: Any = None) -> torch.Tensor:
        """The word embeddings of a batch (rows, tokens, width); those that a removal zeroes are zero."""
        model = self.model if model is None else model
        embeddings = model.get_input_embeddings()(devices.send(batch.ids, self.device))
        if batch.zeroed is None:
            return embeddings  # type: ignore[no-any-return]
        return embeddings * devices.send(~batch.zeroed, self.device)[..., None]  # type: ignore[no-any-return]

    @property
    def is_tested_as_it_is(self) -> bool:
        """Whether no copy in float32 is made for tests."""
        is_large = self.head.default_removal != "attention-mask" and self._n_weights > MOST_COPIED
        return self.dtype == torch.float32 or is_large

    def exactly(self, batch: TokenBatch, **options: Any) -> Any:
        """The network's output computed in float32, so that rounding does not hide differences.

        That of a large language model is computed as it is: see `alike`.
        """
        exact = self.model if self.is_tested_as_it_is else copy.deepcopy(self.model).float()
        work = self._n_weights * batch.ids.size
        with torch.inference_mode(), evaluating(exact, work, devices.in_full_precision):
            return self.forward(batch, exact, **options)

    @property
    def rounding(self) -> float:
        """The largest relative difference of two results of `exactly` that counts as rounding."""
        dtype = self.dtype if self.is_tested_as_it_is else torch.float32
        return TOLERANCES.get(dtype, TOLERANCES[torch.bfloat16])

    def alike(self, found: torch.Tensor, expected: torch.Tensor) -> bool:
        """Return whether two results of `exactly` are the same up to rounding."""
        return relative_difference(found, expected) <= self.rounding

    def _states(self, batch: TokenBatch) -> States:
        with without_new_hooks(self.model):
            found = self.exactly(batch, output_hidden_states=True)
        answer = self.head.answer_of(found)
        of_tokens = [answer, answer[:, 0]] if answer.ndim == 3 else [answer]
        return [*found.hidden_states, *of_tokens]

    def _find_position_base(self) -> int | None:
        """The position id of the first token (RoBERTa counts from pad_id + 1), if the model takes any."""
        if "position_ids" not in self._arguments:
            return None
        plain = self.whole_text(12)
        self._position_base = None
        default = self._states(plain)
        for base in (0, self.pad_id + 1):
            self._position_base = base
            try:
                found = self._states(plain)
            except (RuntimeError, IndexError):
                continue
            if all(self.alike(a, b) for a, b in zip(found, default, strict=True)):
                return base
        return None

    def _find_max_length(self, wanted: int | None) -> int:
        limits = [self.tokenizer.model_max_length]
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if positions is not None and positions > 0:
            limits.append(positions - (self._position_base or 0))
        longest = int(min(limits)) if min(limits) < 10**9 else 512
        if wanted is not None and not 4 <= wanted <= longest:
            raise ModelError(f"`max_length` must be between 4 and {longest}, but got {wanted}.")
        return wanted or longest

    def _text_of(self, length: int) -> Tokens:
        special = np.array(self.example["special_tokens_mask"], dtype=np.bool_)
        return stretch(np.array(self.example["input_ids"]), special, self.words, length)

    def whole_text(self, length: int) -> TokenBatch:
        """A batch of one text of that length, with nothing hidden."""
        text = self._text_of(length)
        return TokenBatch(text.ids[None], text.types[None], np.arange(len(text.ids))[None], None, None)

    @cached_property
    def words(self) -> Ints:
        """The ids of all tokens that are not special."""
        known = min(len(self.tokenizer), self.model.config.vocab_size)
        return np.setdiff1d(np.arange(known), self.tokenizer.all_special_ids)
