"""Stores of finished explanations, from which an interrupted run can resume."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm, RepeatedValues, Values
from pertinent.config.fingerprints import digest
from pertinent.engine.job import Job, JobResult
from pertinent.errors import FileError, PertinentError
from pertinent.files import file_exists
from pertinent.inputs.base import Input
from pertinent.inputs.image_files import is_image_file
from pertinent.masks import full_mask
from pertinent.results.explanation import Explanation
from pertinent.results.journal import Key, differences
from pertinent.runs.executor import Block, Item, RunTask, Workers
from pertinent.runs.explain import ExplainTask, check_lengths
from pertinent.runs.explanation_steps import REPEATED
from pertinent.runs.request import Request
from pertinent.runs.run import DeferredError, Run
from pertinent.runs.session import Session

FORMAT = 2
"""Version of the journal format."""

Header: TypeAlias = dict[str, Any]
"""Identity of a run apart from its inputs: the format, the model, the shard and the requests."""


class Store(ABC):
    """The finished parts of a run; a part holds the explanations of one block of inputs by one request.

    Attributes
    ----------
    path
        The file or folder.
    finished
        Digest of the inputs of each finished part, by the indices of its block and its request.
    n_results
        Number of explanations and failures in finished parts.
    """

    path: Path
    finished: dict[Key, str | None]
    n_results: int

    @abstractmethod
    def open(self, header: Header, requests: Sequence[Request]) -> AbstractContextManager[Sequence[Request]]:
        """Open the store for a run, and return its stored requests followed by the new ones.

        Raise a `FileError` if the store belongs to another run.
        """

    @abstractmethod
    def blocks(self, items: Iterable[Item]) -> Iterator[Block]:
        """Divide the inputs of a run into blocks."""

    @abstractmethod
    def explanations(self) -> Iterator[Explanation]:
        """Yield the finished explanations in the order of their inputs."""

    @abstractmethod
    def add(self, workers: Workers, task: ExplainTask, blocks: UnfinishedBlocks, total: int | None) -> None:
        """Run a task on unfinished blocks, adding each part when it is available."""

    @abstractmethod
    def finish(self, warnings: Sequence[str]) -> None:
        """Mark the run as finished; `warnings` apply to all explanations."""


def fill(store: Store, run: Run, requests: Sequence[Request]) -> None:
    """Explain every input of a run with every request, skipping the parts in a store."""
    check_lengths(run, requests)
    run.model.forget()  # the model may have changed since it was wrapped
    with run.executor.open(run) as workers:
        header: Header = {"format": FORMAT, "model": workers.fingerprint}
        if run.shard is not None:
            header["shard"] = str(run.shard)
        header["requests"] = plain_requests(requests)
        with store.open(header, requests) as every:
            task = ExplainTask.from_run(run, every)
            source = DeferredError(store.blocks(run.items(len(every))))
            blocks = UnfinishedBlocks(source, store, len(every))
            check_model(workers, task, store, blocks)
            total = run.count_results(len(every))
            store.add(workers, task, blocks, None if total is None else max(0, total - store.n_results))
            source.check()
            blocks.check_all_read()
            store.finish(run.warnings)


def plain_requests(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return requests in JSON form."""
    plain: list[dict[str, Any]] = json.loads(json.dumps([request.to_dict() for request in requests]))
    return plain


def add_requests(
    path: Path, stored: Header | None, header: Header, requests: Sequence[Request], *, is_finished: bool
) -> tuple[Header, Sequence[Request]]:
    """Return the header and the requests of a stored run after adding requests.

    Stored requests keep their indices. Raise a `FileError` if the stored run differs.
    """
    if stored is None:
        return header, requests
    then: Any = stored.get("requests")
    now = header["requests"]
    same = isinstance(then, list) and {**stored, "requests": now} == header
    if not same or not any(plain in then for plain in now):
        raise FileError(
            f"{str(path)!r} contains another run, which differs in {'; '.join(differences(stored, header))}. "
            "Use the same arguments to resume it, or choose another `out`."
        )
    omitted = [plain for plain in then if plain not in now]
    if omitted and not is_finished:
        names = ", ".join(dict.fromkeys(str(plain["method"]) for plain in omitted))
        raise FileError(
            f"{str(path)!r} was started with {names} as well, and is not finished: also pass "
            f"{'it' if len(omitted) == 1 else 'them'}, or choose another `out`."
        )
    every = [requests[now.index(plain)] if plain in now else _restore_request(plain, path) for plain in then]
    added = [number for number, plain in enumerate(now) if plain not in then]
    every += [requests[number] for number in added]
    return {**header, "requests": [*then, *(now[number] for number in added)]}, every


def _restore_request(plain: Mapping[str, Any], path: Path) -> Request:
    """Return a stored request; folders in it are not opened, because a file must not determine them."""
    with suppress(PertinentError):
        if "fitted" not in plain:
            return Request.from_dict(plain)
    raise FileError(
        f"{str(path)!r} also contains explanations by {plain.get('method')}, which cannot be recreated from "
        "a file: pass the method as well, or choose another `out`."
    )


class UnfinishedBlocks:
    """Iterator over the blocks of a run that lack parts, whose items list the missing requests.

    A finished block must contain the same inputs as before.

    Attributes
    ----------
    digests
        Digest of the inputs of each unfinished block.
    n_read
        Number of blocks read so far.
    """

    def __init__(self, blocks: Iterable[Block], store: Store, n_requests: int) -> None:
        self._blocks, self._store, self._requests = iter(blocks), store, range(n_requests)
        self._waiting: deque[Block] = deque()
        self._n_stored = self.n_read = 0
        self.digests: dict[int, str] = {}

    def find(self, indexes: Mapping[int, Any]) -> list[Item]:
        """Read blocks until they contain the inputs with these indices, and return the inputs."""
        items: list[Item] = []
        while len(items) < len(indexes) and (block := self._read()) is not None:
            items += [item for item in block.items if item.index in indexes]
        return items

    def __iter__(self) -> Iterator[Block]:
        while self._waiting or self._read() is not None:
            while self._waiting:
                yield self._waiting.popleft()

    def _read(self) -> Block | None:
        """Read the next block and check that its inputs match the stored digest."""
        block = next(self._blocks, None)
        if block is None:
            return None
        self.n_read += 1
        inputs = digest([(item.index, item.id, _content(item.raw)) for item in block.items]).hex()
        finished = self._store.finished
        missing = tuple(n for n in self._requests if (block.number, n) not in finished)
        stored = {finished[block.number, n] for n in self._requests if n not in missing}
        if stored:
            self._n_stored += 1
            if stored != {inputs}:
                which = f"input {block.items[0].index}" if len(block.items) == 1 else f"block {block.number}"
                raise self.other_inputs(f"{which} has changed")
        if missing:
            self.digests[block.number] = inputs
            items = [replace(item, request_indexes=missing) for item in block.items]
            self._waiting.append(replace(block, items=items))
        return block

    def check_all_read(self) -> None:
        """Raise a `FileError` if the run ended before all finished blocks were read."""
        if self._n_stored < len({number for number, _ in self._store.finished}):
            raise self.other_inputs("there are fewer inputs")

    def other_inputs(self, difference: str) -> FileError:
        """Return the error for inputs that differ from the stored ones."""
        return FileError(
            f"{str(self._store.path)!r} was started with other inputs: {difference}. Pass the same inputs "
            "in the same order to resume, or choose another `out`."
        )


def _content(raw: Any) -> Any:
    """Return an input as a value whose digest does not depend on its representation."""
    if isinstance(raw, Exception):
        return f"unreadable: {raw}"
    if (isinstance(raw, Path) or is_image_file(raw)) and file_exists(Path(raw)):
        return Path(raw).read_bytes()
    is_row = hasattr(raw, "to_dict") and not isinstance(raw, Input)
    return raw.to_dict() if is_row else raw  # a row of a data frame


def check_model(workers: Workers, task: ExplainTask, store: Store, blocks: UnfinishedBlocks) -> None:
    """Re-predict the first finished inputs; raise a `FileError` if the model has changed.

    A model that answers the same question differently each time is random: it gets a warning and may proceed.
    """
    predictions: dict[int, Floats] = {}
    for explanation in store.explanations():
        predictions.setdefault(explanation.index, explanation.prediction.values)
        if len(predictions) == REPEATED:
            break
    items, path = blocks.find(predictions), store.path
    ended: JobResult
    for ended in workers.results(PredictTask(task, predictions), items, len(items), quiet=True):
        index, prediction = ended.key, ended.result
        if ended.error is not None:
            raise FileError(
                f"The model fails for input {index}, which is already explained in {str(path)!r}: "
                f"{ended.error}"
            ) from ended.error
        if prediction is not None:
            raise FileError(
                f"The model has changed since {str(path)!r} was started: it predicts {_round(prediction)} "
                f"for input {index}, but the stored prediction is {_round(predictions[index])}. Use the "
                "same model to resume, or choose another `out`."
            )


def _round(prediction: Floats) -> list[float]:
    rounded: list[float] = np.asarray(prediction).round(4).tolist()
    return rounded


@dataclass(frozen=True)
class PredictTask(RunTask):
    """Task that re-predicts inputs; the result is the prediction if it has changed, else None."""

    explaining: ExplainTask
    predictions: Mapping[int, Floats]

    def job(self, session: Session, item: Item, key: int) -> Job:
        """Return the job that predicts an input."""
        request = self.explaining.requests[0]
        input = self.explaining.prepare(session, item, request)
        steps = _predict(session, self.predictions[key], input.n_features)
        return session.job(key, input, lambda *_: steps, request.removal, request.seed)


def _predict(session: Session, before: Floats, n_features: int) -> Algorithm:
    """Return the prediction if it differs from `before` and the model is not random, else None."""
    now = (yield Values(full_mask(n_features)))[0]
    if session.difference(before, now) is None:
        return None
    again = (yield RepeatedValues(full_mask(n_features)))[0]
    session.compare(now, again)
    return now if session.difference(now, again) is None else None
