"""Model of a transformers network that reads text: an encoder with its tokenizer, and a head."""

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
from pertinent.asks import AttackRadii, MaskGradients, PathGradients, Question, TokenPerplexity
from pertinent.config.settings import Count, checked
from pertinent.errors import ModelError
from pertinent.inputs.base import Features, Input, Truncation
from pertinent.inputs.segmentation import default_features, long_text_notes
from pertinent.inputs.text import TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.models.attacks.torch_attacks import token_attacks
from pertinent.models.base import Answer, Handlers, Model
from pertinent.models.gradients.token_gradients import (
    make_filler,
    token_mask_gradients,
    token_path_gradients,
)
from pertinent.models.tokens.attention_bias import BiasCheck, hiding_bias
from pertinent.models.tokens.batches import TokenBatch, collate, without_needless_mask
from pertinent.models.tokens.compaction import Compaction, States, stretch
from pertinent.models.tokens.hidden_states import HiddenStates
from pertinent.models.tokens.prefixes import Prefixes
from pertinent.models.tokens.relative_positions import original_positions
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
"""Number of matrix parameters of an encoder for which a launch costs as much as 8192 tokens."""

MAX_COPIED = 500_000_000
"""Largest number of parameters of a network that is copied to float32 for tests, to limit memory."""

MAX_BATCHES = 4
"""Largest size of one pass, in units of the largest batch. Only the windows of a long text exceed it."""

DEFAULT_LENGTH = 512
"""Number of tokens to read if neither the tokenizer nor the network has a limit."""


def _launch_overhead(model: Any, n_weights: float) -> int:
    """Return the number of tokens that a causal network computes in the time it takes to launch a batch.

    A token takes longer in a larger network. A launch takes longer with more layers, and a decoder's layer
    launches about three times as many kernels as BERT's.
    """
    n_layers = getattr(model.config, "num_hidden_layers", None) or 12
    return min(8192, int(8192 * 3 * n_layers / 12 * BERT_BASE / n_weights))


class TransformerModel(Model):
    """A transformers network with a fast tokenizer, and a head that defines the inputs and answers.

    Removed tokens are not computed if that is exact (see `Compaction`). The network is evaluated in eval mode
    and then restored to its previous mode.
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
                "The tokenizer must be a fast tokenizer, which provides the characters of each token."
            )
        self.model = self.module = self.wrapped = model
        self.tokenizer = tokenizer
        self.device, self.dtype = devices.device_and_dtype(model)
        self._n_weights = n_weights(model)
        self.head: Head = head
        self.kind = head.kind
        self.output, self.classes, self.columns_differ = head.output, head.classes, head.columns_differ
        if self.device.type == "cuda":
            self._set_cuda_batches()
        self.prefixes = Prefixes(self) if self.head.is_causal else None
        parameters = inspect.signature(model.forward).parameters.values()
        self._arguments = {parameter.name: parameter.kind for parameter in parameters}
        self._bias_check = BiasCheck(self)
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.example = tokenizer("a", return_special_tokens_mask=True)
        if self.head.is_causal:
            self.example.pop("token_type_ids", None)  # which would add an embedding in GPT-2
        self._position_base: int | None = None
        self.head.prepare_network(self)
        self._position_base = self._find_position_base()
        self.max_length = self._find_max_length(max_length)
        self.windows = Windows.from_setting(long_texts, self.max_length)
        if self.windows is not None and not self.head.reads_windows:
            raise ModelError(
                f"A model with a {type(self.head).__name__} cannot read long texts in windows, because "
                "answers to windows cannot be averaged: omit `long_texts`."
            )
        hides_tokens = self.head.default_removal == "attention-mask"
        if compaction and self._position_base is None and hides_tokens:
            logger.warning("Removed tokens are also computed because the model does not accept position ids.")
        compaction &= self._position_base is not None
        self.compaction = Compaction(
            self._states, self._text_of, self.max_length, self.pad_id, self.rounding, compaction
        )
        if hides_tokens:  # dropping tokens needs no test
            self.compaction.holds(min(64, self.max_length))
        self.head.check_encoder(self)

    def _set_cuda_batches(self) -> None:
        self.first_batch = self.largest_batch = 65536
        self.in_flight = 8
        if self.head.is_causal:  # padding at the end needs no mask
            self.launch_overhead = _launch_overhead(self.model, self._n_weights)
        else:
            self.launch_overhead = 8192
            self.mixed_length_penalty = 0.25  # a mask excludes flash attention: 25% slower at 511 tokens
        self.hides_by_bias = self.head.default_removal == "attention-mask"

    def identity(self) -> object:
        """Return the weights, the vocabulary, the maximum number of tokens, and the head's settings."""
        network = self.model, self.output.to_dict(), self.tokenizer.get_vocab(), self.max_length
        windows = () if self.windows is None else ("windows", self.windows.overlap)
        settings = (*self.head.settings, *windows)
        return (network, *settings) if settings else network

    def in_transformers(self) -> tuple[Any, Any]:
        """Return the network and the tokenizer as transformers objects, also for an embedded model."""
        if not hasattr(self.model, "in_transformers"):
            return self.model, self.tokenizer
        return self.model.in_transformers(), self.tokenizer.in_transformers()

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None = None) -> TextInput:
        """Tokenize a text and assign its tokens to features."""
        prepared = self.head.prepare(raw, features, self)
        if prepared is not None:
            return prepared
        text = self.head.text_of(raw, self)
        reading = self.tokenizer, self.max_length, self.windows
        input = tokenize_text(text, "words" if features is None else features, *reading)
        if features is None and (coarser := default_features(n_words := input.n_features)) != "words":
            notes = long_text_notes(coarser, n_words)
            input = replace(tokenize_text(text, coarser, *reading), notes=notes)
        assert input.tokens is not None
        if n_windows := len(input.tokens.lengths):
            values = "values" if self.output.kind == "value" else "probabilities"
            windows = f"{n_windows:,} windows of at most {self.max_length} tokens"
            note = f"read in {windows}: the mean of their {values} is explained"
            input = replace(input, notes=(note, *input.notes))
        self.head.check_input(input, self)
        if input.truncation is not None:
            self._warn_of_truncation(input.truncation)
        return input

    def _warn_of_truncation(self, truncation: Truncation) -> None:
        """Log a warning for the first truncated text; each input's notes tell whether it is truncated."""
        if self._warned_of_truncation:
            logger.debug("A text was %s.", truncation)
        else:
            hint = "; long_texts='windows' reads the whole text" if self.head.reads_windows else ""
            logger.warning(
                "A text was %s%s. More texts may be affected: see `Explanation.notes`.", truncation, hint
            )
            self._warned_of_truncation = True

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or ``None`` if `raw` is a single input."""
        return self.head.split(raw)

    def default_removal(self, input: Any) -> str:
        """Return the head's default removal."""
        return self.head.removal_of(input)

    # -- answers -------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Discard everything derived from the parameters, because they have changed."""
        super().forget()
        self.head.forget()
        if self.prefixes is not None:
            self.prefixes.forget()

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return the names of the head's columns for this input."""
        return self.head.columns_of(input)

    def details(self, input: Any) -> dict[str, str]:
        """Return the head's facts about the prediction."""
        return self.head.details(input, self)

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Convert the head's rows for this input to the scale."""
        return self.head.as_scale(input, outputs, scale)

    def cost(self, removal: Removal, input: Any, masks: Masks) -> Ints:
        """Return the number of tokens computed for each mask."""
        drops = removal.hides == "tokens and positions" or (
            removal.hides == "tokens" and self.compaction.holds(input.tokens.longest)
        )
        if not drops:
            return np.full(len(masks), len(input.tokens.ids) * removal.draws)
        counts = input.token_counts
        kept = masks.astype(np.float32) @ counts[:-1] + counts[-1]
        # At least 1: a row without tokens is rejected later, but until then it must count as a row.
        return np.asarray(np.maximum(1, kept).astype(np.int64))

    def check_question(self, kind: type[Question], input: Input, removal: Removal) -> None:
        """Raise a `SettingError` for mask gradients if the removal has none."""
        if kind is MaskGradients:
            make_filler(input, removal.bind(self))

    def gradient_cost(self, input: Input) -> int:
        """Return the number of tokens, including removed ones, which a gradient needs too."""
        return input.length

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Run the network on rows of many texts together."""
        head_batch = self.head.batch([part for part in rows if isinstance(part, TokenRows)])
        parts = head_batch.parts
        compact = [part.renumber or self.compaction.holds(part.attend.shape[1]) for part in parts]
        batch = collate(parts, compact, self.pad_id)
        head_batch.lay_out(compact, self.device)
        with self.evaluating(batch.ids.shape):
            answer = devices.run(self.device, lambda: head_batch.scores(self._answer_in_passes(batch, parts)))
        return Answer(lambda: head_batch.collect(answer.outputs()), answer.seconds, answer.done)

    def answer(self, batch: TokenBatch, **options: Any) -> torch.Tensor:
        """Return the network's answer to a batch, before the head converts it to rows of numbers."""
        return self.head.answer_of(self.forward(batch, **options))

    @contextmanager
    def keeping_hidden_states(self) -> Iterator[None]:
        """Cache the last hidden states of evaluated whole texts, for a network that reads them."""
        takes_any = inspect.Parameter.VAR_KEYWORD in self._arguments.values()
        has_states = self.takes("output_hidden_states") or takes_any
        if self.hidden_states is not None or self.prefixes is not None or not has_states:
            yield
            return
        self.hidden_states = HiddenStates()
        try:
            yield
        finally:
            self.hidden_states = None

    def _answer_in_passes(self, batch: TokenBatch, parts: Sequence[TokenRows]) -> torch.Tensor:
        """Return the network's answer, using several passes if a text has too many windows for one."""
        step = max(1, MAX_BATCHES * self.largest_batch // batch.ids.shape[1])
        answer = self.answer if self.prefixes is None else self.prefixes.answer
        if len(batch.ids) > step:
            firsts = range(0, len(batch.ids), step)
            return torch.cat([answer(batch[first : first + step]) for first in firsts])
        if self.hidden_states is None:
            return answer(batch)
        output = self.forward(batch, output_hidden_states=True)
        if getattr(output, "hidden_states", None) is not None:
            self.hidden_states.keep(parts, output.hidden_states[-1])
        return self.head.answer_of(output)

    def evaluating(self, shape: Sequence[int]) -> AbstractContextManager[None]:
        """Return the context for evaluating a batch of this shape (rows, tokens, …)."""
        work = self._n_weights * shape[0] * shape[1]
        return evaluating(self.model, work, partial(devices.disable_onednn, self.device, self.dtype))

    def weighs_attention(self, length: int) -> bool:
        """Return whether the attention to each token can be weighted in texts of this length."""
        return self.dtype != torch.float16 and self._bias_check.holds(length, weighted=True)

    # -- the network ---------------------------------------------------------------------------------

    def forward(self, batch: TokenBatch, model: Any = None, **options: Any) -> Any:
        """Run the network, or a copy of it, with only the arguments it accepts."""
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
        if self.takes("token_type_ids") and "token_type_ids" in self.example:
            options["token_type_ids"] = types
        network = self.head.network(model)
        with original_positions(network, batch.positions, partial(devices.send, device=self.device)):
            return network(**options)

    def _attention_mask(self, attend: Masks, by_bias: bool) -> torch.Tensor:
        """Return a mask, or a bias if possible: transformers inspects a mask, which makes CUDA synchronise.

        A bias is impossible if all tokens of a row are hidden: it would attend to all tokens equally,
        including padding.
        """
        mask = devices.send(attend.astype(np.int64), self.device)
        by_bias = by_bias and bool(attend.any(axis=1).all())
        if by_bias and self._bias_check.holds(attend.shape[1], weighted=False):
            return hiding_bias(mask, self.dtype)
        return mask

    def takes(self, argument: str) -> bool:
        """Return whether the network has an argument with this name."""
        return argument in self._arguments

    def embed(self, batch: TokenBatch, model: Any = None) -> torch.Tensor:
        """Return the word embeddings of a batch (rows, tokens, width); zero where `batch.zeroed`."""
        model = self.model if model is None else model
        embeddings: torch.Tensor = model.get_input_embeddings()(devices.send(batch.ids, self.device))
        if batch.zeroed is None:
            return embeddings
        return embeddings * devices.send(~batch.zeroed, self.device)[..., None]

    # -- tests of the network ------------------------------------------------------------------------

    @property
    def is_tested_as_it_is(self) -> bool:
        """Return whether tests use the network itself instead of a copy in float32."""
        return self.dtype == torch.float32 or self._n_weights > MAX_COPIED

    def exactly(self, batch: TokenBatch, **options: Any) -> Any:
        """Return the network's output computed in float32, so rounding does not hide differences.

        A large network is computed in its own dtype: see `alike`.
        """
        exact = self.model if self.is_tested_as_it_is else copy.deepcopy(self.model).float()
        work = self._n_weights * batch.ids.size
        with torch.inference_mode(), evaluating(exact, work, devices.in_full_precision):
            return self.forward(batch, exact, **options)

    @property
    def rounding(self) -> float:
        """Return the largest relative difference between two results of `exactly` that counts as rounding."""
        dtype = self.dtype if self.is_tested_as_it_is else torch.float32
        return TOLERANCES.get(dtype, TOLERANCES[torch.bfloat16])

    def alike(self, actual: torch.Tensor, expected: torch.Tensor) -> bool:
        """Return whether two results of `exactly` are equal up to rounding."""
        return relative_difference(actual, expected) <= self.rounding

    def _states(self, batch: TokenBatch) -> States:
        with without_new_hooks(self.model):
            output = self.exactly(batch, output_hidden_states=True)
        answer = self.head.answer_of(output)
        answers = [answer, answer[:, 0]] if answer.ndim == 3 else [answer]
        return [*output.hidden_states, *answers]

    def _find_position_base(self) -> int | None:
        """Return the position id of the first token if there are position ids (RoBERTa: pad_id + 1)."""
        if not self.takes("position_ids"):
            return None
        plain = self.whole_text(12)
        default = self._states(plain)
        for base in dict.fromkeys((0, self.pad_id + 1, 2)):  # MPNet: 2
            self._position_base = base
            try:
                states = self._states(plain)
            except (RuntimeError, IndexError):
                continue
            if all(self.alike(a, b) for a, b in zip(states, default, strict=True)):
                return base
        return None

    def _find_max_length(self, max_length: int | None) -> int:
        """Return the largest number of tokens in a text."""
        limits = [self.tokenizer.model_max_length]
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if positions is not None and positions > 0:
            limits.append(positions - (self._position_base or 0))
        limit = int(min(limits))
        if limit >= 10**9:  # transformers uses a larger value for no limit
            if max_length is None:
                logger.info(
                    "The model has no token limit: at most %d tokens are read; set `max_length` to change "
                    "it.",
                    DEFAULT_LENGTH,
                )
            return max_length or DEFAULT_LENGTH
        if max_length is not None and not 4 <= max_length <= limit:
            raise ModelError(f"`max_length` must be between 4 and {limit}, got {max_length}.")
        return max_length or limit

    def _text_of(self, length: int) -> Tokens:
        special = np.array(self.example["special_tokens_mask"], dtype=np.bool_)
        return stretch(np.array(self.example["input_ids"]), special, self.words, length)

    def whole_text(self, length: int) -> TokenBatch:
        """Return a batch with one text of this length, with nothing hidden."""
        text = self._text_of(length)
        return TokenBatch(text.ids[None], text.types[None], np.arange(len(text.ids))[None], None, None)

    @cached_property
    def words(self) -> Ints:
        """Return the ids of all non-special tokens."""
        n_ids = min(len(self.tokenizer), self.model.config.vocab_size)
        return np.setdiff1d(np.arange(n_ids), self.tokenizer.all_special_ids)
