"""Digests of content, and random generators seeded by them."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from types import CodeType, ModuleType
from typing import Any

import numpy as np

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Folders of the standard library and of installed packages."""


def digest(*parts: object) -> bytes:
    """Return a digest of the contents of `parts` that is equal on every machine.

    Arrays, mappings, sequences and objects are digested recursively. An object with a `fingerprint` is
    represented by it. A function is represented by its code, its defaults, its closure variables and, unless
    it belongs to a library, the global functions and values that it uses; a torch module by its structure,
    its tensors and its plain attributes.

    >>> digest(1, "a") == digest(1, "a"), digest(1, "a") == digest("1", "a")
    (True, False)
    """
    h = blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            h.update(f"{part.dtype.str}{part.shape}".encode())
        data = _bytes_of(part, ())
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.digest()


def generator(seed: int, *parts: object) -> np.random.Generator:
    """Return a random generator seeded by `seed` and the digest of `parts`."""
    words = np.frombuffer(digest(*parts), dtype=np.uint32)
    return np.random.default_rng([seed, *words.tolist()])


def _is_plain(part: object) -> bool:
    """Return whether `repr` describes the value completely."""
    if type(part) is tuple:
        return all(map(_is_plain, part))
    return part is None or type(part) in (bool, int, float, complex, str)


def _bytes_of(part: object, above: tuple[int, ...]) -> bytes:  # noqa: PLR0911
    """Return the content of one object; `above` holds the ids of its containers, to detect cycles."""
    if isinstance(part, bytes | bytearray):
        return bytes(part)
    if _is_plain(part):
        return repr(part).encode()
    if id(part) in above:
        return b"cycle"
    inside = partial(_bytes_of, above=(*above, id(part)))
    if isinstance(part, np.ndarray):
        data = inside(part.tolist()) if part.dtype == object else part.tobytes()
        return data if not above else _join(f"{part.dtype.str}{part.shape}", [data])
    if isinstance(part, np.generic):
        return inside(np.asarray(part))
    if isinstance(part, Mapping):
        items = sorted((inside(key), inside(value)) for key, value in part.items())
        return _join("mapping", (data for item in items for data in item))
    if isinstance(part, set | frozenset):
        return _join("set", sorted(map(inside, part)))
    if isinstance(part, list | tuple):
        return _join("sequence", map(inside, part))
    return _join(f"{type(part).__module__}.{type(part).__qualname__}", map(inside, _state(part)))


def _state(part: Any) -> Iterable[object]:  # noqa: C901, PLR0911  one case for each kind of object
    """Return the values that make up the state of an object."""
    if isinstance(getattr(part, "fingerprint", None), bytes):
        return (part.fingerprint,)
    if _is_tensor(part):
        return (_array(part),)
    if isinstance(part, CodeType):
        return (part.co_code, part.co_consts, part.co_names)
    if isinstance(part, type):
        return (part.__module__, part.__qualname__)
    if isinstance(part, partial):
        return (part.func, part.args, part.keywords)
    if hasattr(part, "__self__") and hasattr(part, "__func__"):
        return (part.__self__, part.__func__)
    if isinstance(getattr(part, "__code__", None), CodeType):
        cells = []
        for cell in part.__closure__ or ():
            with suppress(ValueError):  # a variable without a value
                cells.append(cell.cell_contents)
        defaults = (part.__defaults__, part.__kwdefaults__)
        return (part.__module__, part.__qualname__, part.__code__, defaults, cells, dict(_globals_of(part)))
    if hasattr(part, "state_dict"):
        saved = {k: _array(v) for k, v in part.state_dict().items()}
        return (repr(part), saved, dict(_unsaved_state(part)) if hasattr(part, "named_buffers") else {})
    try:
        reduced = part.__reduce_ex__(4)
    except Exception:  # noqa: BLE001  an object that cannot be inspected is represented by its name
        return (getattr(part, "__module__", ""), getattr(part, "__qualname__", ""))
    return (reduced,) if isinstance(reduced, str) else reduced[1:3]


def _globals_of(function: Any) -> Iterator[tuple[str, object]]:
    """Yield the global names that a function uses, with their values; none for a library function.

    Modules, classes and mutable collections, which may be caches or counters, are omitted.
    """
    if function.__code__.co_filename.startswith(_LIBRARIES):
        return
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for name in sorted({name for code in codes for name in code.co_names}):
        value = function.__globals__.get(name)
        if value is not None and not isinstance(value, type | ModuleType | list | dict | set):
            yield name, value


def _unsaved_state(module: Any) -> Iterator[tuple[str, object]]:
    """Yield what ``state_dict`` omits: unsaved buffers, and attributes that are numbers, flags or tensors."""
    import torch

    saved = module.state_dict()
    yield from ((f"buffer {n}", _array(v)) for n, v in module.named_buffers() if n not in saved)
    standard = vars(torch.nn.Module())
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name in standard or name.startswith("_"):
                continue
            if isinstance(value, torch.Tensor):
                yield f"{path}.{name}", _array(value)
            elif _is_plain(value) and not isinstance(value, str | None):
                yield f"{path}.{name}", value


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _array(value: Any) -> object:
    """Return the dtype, shape and bytes of a tensor, and any other value unchanged."""
    if not _is_tensor(value):
        return value
    import torch

    flat = value.detach().cpu().contiguous().flatten()
    return (str(value.dtype), tuple(value.shape), flat.view(torch.uint8).numpy())


def _join(name: str, parts: Iterable[bytes]) -> bytes:
    h = blake2b(name.encode(), digest_size=16)
    for part in parts:
        h.update(len(part).to_bytes(8, "little"))
        h.update(part)
    return h.digest()
