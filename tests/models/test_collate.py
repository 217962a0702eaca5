"""The rows of many texts in one batch: laid out at once or part by part, they are the same."""

import numpy as np
import pytest

from pertinent.errors import InputError
from pertinent.inputs.tokens import Tokens
from pertinent.models.tokens.batches import collate
from pertinent.removals.base import TokenRows

PAD = 99


def part(n, length, seed):
    """Rows of a text whose first token is always kept."""
    rng = np.random.default_rng(seed)
    attend = rng.random((n, length)) < 0.5
    attend[:, 0] = True
    ids, types = rng.integers(0, 50, length), rng.integers(0, 2, length)
    return TokenRows(Tokens(ids, types, np.arange(length), None, None), attend)


def by_hand(parts):
    """Ids, types and positions of the kept tokens, row by row, padded to the longest."""
    rows = [(p.tokens, np.flatnonzero(row)) for p in parts for row in p.attend]
    longest = max(len(kept) for _, kept in rows)
    ids, types, positions = (np.full((len(rows), longest), fill) for fill in (PAD, 0, 0))
    for i, (tokens, kept) in enumerate(rows):
        ids[i, : len(kept)], types[i, : len(kept)] = tokens.ids[kept], tokens.types[kept]
        positions[i, : len(kept)] = kept
    return ids, types, positions, [len(kept) for _, kept in rows]


@pytest.mark.parametrize("shapes", [[(4, 6)], [(3, 5), (1, 9), (5, 2), (2, 9)]])
def test_kept_tokens_of_many_texts(shapes):
    parts = [part(n, length, seed) for seed, (n, length) in enumerate(shapes)]
    batch = collate(parts, [True] * len(parts), PAD)
    ids, types, positions, lengths = by_hand(parts)
    np.testing.assert_array_equal(batch.ids, ids)
    np.testing.assert_array_equal(batch.types, types)
    np.testing.assert_array_equal(batch.positions, positions)
    assert batch.attend.sum(axis=1).tolist() == lengths
    assert batch.zeroed is None


def test_rows_of_equal_length_need_no_mask():
    rows = part(3, 4, 0)
    rows.attend[:] = [True, False, True, False]
    assert collate([rows, rows], [True, True], PAD).attend is None


def test_a_row_without_tokens_is_refused():
    rows = part(2, 3, 0)
    rows.attend[1] = False
    with pytest.raises(InputError, match="No tokens of this text remain"):
        collate([rows], [True], PAD)
