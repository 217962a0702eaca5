"""Model of a function from inputs to rows of numbers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import AttackRadii
from pertinent.config.settings import checked
from pertinent.errors import InputError, ModelError, PertinentError, as_text, require
from pertinent.inputs.base import Features, Input
from pertinent.inputs.image_files import is_image_file
from pertinent.inputs.modality import Modality, modality_named, modality_of, split_collection
from pertinent.inputs.rows import Frame, extra_columns, is_frame, missing, select_columns
from pertinent.inputs.table import Columns
from pertinent.inputs.text import Text, is_pair, texts_in
from pertinent.models.attacks.decision_attack import decision_attacks
from pertinent.models.base import Answer, Handlers, Model, answer_now
from pertinent.outputs import Output, output_named
from pertinent.removals.base import Removal, Rows

logger = logging.getLogger(__name__)

ROW_BYTES = 16 * 1024
"""Number of bytes that cost one row; a large image costs several rows, so batches fit into memory."""


class FunctionModel(Model):
    """A function of a list of strings (or pairs), or of an array whose first axis is rows.

    If the background is a data frame, the function is called with frames with its columns and dtypes.
    """

    handlers: ClassVar[Handlers] = {AttackRadii: decision_attacks}

    @checked
    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        kind: str | None = None,
        classes: Sequence[Any] = (),
        names: Sequence[Any] = (),
        output: str | None = None,
        unit: str | None = None,
        background: Any = None,
        columns: Sequence[Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.function = self.wrapped = function
        self.output = output_named(output or "probability", unit)
        self.classes = column_names(classes, names, self.output)
        self._is_meaning_known = output is not None or len(self.classes) > 0
        columns = None if columns is None else [as_text(name, "columns") for name in columns]
        self.frame: Frame | None = None
        self._ignored: set[str] = set()
        if is_frame(background):
            if columns is not None:
                background, extra = select_columns(background, columns)
                self._warn_of_ignored(extra)
            self.frame = Frame.from_data_frame(background)
            columns = [str(label) for label in background.columns]
        self.columns = None if columns is None else Columns(tuple(columns), groups)
        if self.columns is not None:
            self.columns.features()  # raises an error for invalid groups
        if kind is None and background is not None:
            kind = "image" if _holds_images(background) else "table"
        self.kind = "table" if kind is None and self.columns is not None else kind
        self.modality = None
        if self.kind is not None:
            self.modality = modality_named(self.kind).with_columns(self.columns)
        if self.modality is not None and background is not None:
            self.background = self.modality.make_background(background, self.prepare)
            if self.columns is not None:
                self.background.check_width(len(self.columns.names), "table")

    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide a text into words, an image into patches, or a row into columns."""
        input = self.cut(self.modality or modality_of(raw), raw, features)
        if self.columns is not None and input.has_columns:
            self._warn_of_ignored(extra_columns(raw, self.columns.names))
        return input

    def cut(self, modality: Modality, raw: Any, features: Features | None) -> Input:
        """Divide an input of this modality into features, as the function reads it."""
        return modality.prepare(raw, features)

    def _warn_of_ignored(self, extra: Iterable[str]) -> None:
        """Log each column that the model does not read, such as a label or an id, once."""
        new = [name for name in extra if name not in self._ignored]
        if new:
            self._ignored.update(new)
            logger.warning("The model does not use these columns, so they are ignored: %s.", ", ".join(new))

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or ``None`` if `raw` is a single input."""
        return split_any(raw) if self.modality is None else self.modality.split(raw)

    def default_removal(self, input: Input) -> str:
        """Return the default removal of the input's modality."""
        return modality_named(input.kind).default_removal_for(self.background)

    def identity(self) -> object:
        """Return the function, whose digest includes its code and the variables it closes over."""
        return self.function, self.output.to_dict(), self.kind, self.columns, self.frame

    def cost(self, removal: Removal, input: Input, masks: Masks) -> Ints:
        """Return the number of rows for each mask; a large image counts as several."""
        return np.full(len(masks), removal.draws * self.gradient_cost(input))

    def gradient_cost(self, input: Input) -> int:
        """Return the number of rows that an input counts as: 1, or more for a large image."""
        return max(1, input.nbytes // ROW_BYTES)

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Call the function once for the whole batch."""
        batch = self._batch(rows)
        is_table = isinstance(batch, np.ndarray) and batch.ndim == 2
        frame = self.frame if is_table else None
        try:
            answer = answer_now(lambda: self._evaluate(batch if frame is None else frame.from_array(batch)))
        except Exception as error:
            missing_values = self._describe_missing(batch) if is_table else ""
            if not missing_values or isinstance(error, PertinentError) or self.is_out_of_memory(error):
                raise
            message = next(iter(str(error).splitlines()), "")
            raise InputError(
                f"{missing_values}; the model does not accept it: {type(error).__name__}: {message}"
            ) from error
        outputs = answer.outputs()
        if is_table and outputs.dtype.kind == "f" and outputs.ndim and np.isnan(outputs).any():
            missing_values = self._describe_missing(batch)
            if missing_values:
                raise InputError(f"{missing_values}; the model does not accept it, it answers NaN.")
        return answer

    def checked(self, outputs: Array, n: int) -> Floats:
        """Check the answer; log once how a single number is interpreted if the user did not specify it."""
        if not self._is_meaning_known and outputs.shape in ((n,), (n, 1)):
            logger.warning(
                "The function returns one number, which is interpreted as the probability of the second of "
                "two classes: wrap it with output='probability', or with output='value' if it is a "
                "regressor."
            )
        self._is_meaning_known = True
        return super().checked(outputs, n)

    def _describe_missing(self, batch: Array) -> str:
        """Return the start of a message about columns with missing values; empty if there are none."""
        columns = np.flatnonzero(missing(batch).any(axis=0)).tolist()
        if not columns:
            return ""
        in_background = self.background is not None and missing(self.background.values[:, columns]).any()
        names = ", ".join(self.columns.names[i] if self.columns else f"column {i}" for i in columns)
        return f"The row{' (or the background)' if in_background else ''} has no value (NaN) in: {names}"

    def _evaluate(self, batch: Any) -> Array:
        answer = self._order_columns(self.function(batch))
        return np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)

    def _order_columns(self, answer: Any) -> Any:
        """Return rows of numbers in the order of the model's classes, from an answer with named columns.

        Such answers are data frames, mappings from labels to scores, and outputs of transformers pipelines.
        """
        if hasattr(answer, "columns") and hasattr(answer, "to_dict"):
            answer = answer.to_dict("records")
        if not isinstance(answer, list) or not answer:
            return answer
        if isinstance(answer[0], list) and answer[0] and isinstance(answer[0][0], Mapping):
            answer = [{entry["label"]: entry["score"] for entry in row} for row in answer]
        if not isinstance(answer[0], Mapping):
            return answer
        if set(answer[0]) == {"label", "score"}:
            raise ModelError(
                "The model returned only the best label of each input, but the scores of all labels are "
                "needed: call a pipeline with top_k=None."
            )
        names = self.classes or tuple(map(str, answer[0]))
        rows = [{str(name): value for name, value in row.items()} for row in answer]
        for row in rows:
            if set(row) != set(names):
                self.forget_guess()
                expected = ", ".join(names)
                raise ModelError(f"The model must score {expected} for every input, but scored {list(row)}.")
        if not self.classes:
            self.guess_names(names)
        return [[row[name] for name in names] for row in rows]

    def _batch(self, rows: Sequence[Rows]) -> Any:
        if isinstance(rows[0], list):
            texts: Any = chain(*rows)  # type: ignore[arg-type]
            return [text.first if text.second is None else text.segments for text in texts]
        return np.concatenate(rows)  # type: ignore[arg-type]


def split_any(raw: Any) -> Iterable[Any] | None:
    """Return the inputs in a collection of any kind, or ``None`` if `raw` is a single input."""
    texts = texts_in(raw)
    if texts is not None:
        return texts
    if len(getattr(raw, "shape", ())) == 2 and not hasattr(raw, "iterrows") and not hasattr(raw, "tocsr"):
        raise InputError(
            "A two-dimensional array may be one image or several table rows: wrap the model with "
            "kind='image' or kind='table'."
        )
    if is_pair(raw):
        return raw if all(map(is_image_file, raw)) else None
    is_row = isinstance(raw, list | tuple) and all(isinstance(v, int | float | np.number) for v in raw)
    if isinstance(raw, Text) or (is_row and raw):
        return None
    return split_collection(raw, (1, 3))


def column_names(classes: Sequence[str], names: Sequence[str], output: Output) -> tuple[str, ...]:
    """Return the column names: `classes` of a classifier, `names` of a regressor's values."""
    wrong, right = ("classes", "names") if output.kind == "value" else ("names", "classes")
    chosen = {"classes": classes, "names": names}
    must = f"omitted for output={output.name!r}, use `{right}`"
    require(len(chosen[wrong]) == 0, wrong, must, chosen[wrong])
    texts = tuple(as_text(name, right) for name in chosen[right])
    require(len(set(texts)) == len(texts), right, "different from each other", texts)
    return texts


def _holds_images(background: Any) -> bool:
    """Return whether a background is an array of images or a list of arrays, files or PIL images."""
    is_list = isinstance(background, Sequence) or len(getattr(background, "shape", ())) > 2
    return is_list and len(background) > 0 and modality_named("image").recognises(background[0])
