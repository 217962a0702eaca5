"""Methods, metrics and removals register themselves by name; nobody keeps a list by hand."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

from pertinent.errors import SettingError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes of one kind by their kebab-case name, loaded from one sub-package on first use."""

    def __init__(self, what: str, package: str) -> None:
        self.what = what
        self._package = package
        self._loaded = False
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Decorate a class to enter it under `name`; a name taken by another class raises."""

        def enter(cls: type[T]) -> type[T]:
            known = self._classes.get(name)
            if known is not None and (known.__module__, known.__qualname__) != (
                cls.__module__,
                cls.__qualname__,
            ):
                raise SettingError(f"The {self.what} {name!r} is registered twice.")
            if not hasattr(cls, "summary"):
                raise SettingError(
                    f"The {self.what} {name!r} must have a `summary`: what it does, in a line."
                )
            cls.name = name  # type: ignore[attr-defined]
            self._classes[name] = cls
            return cls

        return enter

    def all(self) -> Mapping[str, type[T]]:
        """Every registered class by name, in alphabetical order."""
        if not self._loaded:
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
            self._loaded = True
        return dict(sorted(self._classes.items()))

    def make(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """An instance of the class called `name`, its settings checked by name."""
        classes = self.all()
        if name not in classes:
            raise unknown(self.what, name, classes)
        cls = classes[name]
        known = {f.name for f in fields(cls) if f.init}  # type: ignore[arg-type]
        for setting in settings or {}:
            if setting not in known:
                raise unknown(f"setting of {name}", setting, known)
        return cls(**(settings or {}))


def settings_of(thing: Any) -> dict[str, Any]:
    """The settings of a registered dataclass instance that differ from their defaults."""
    changed = {}
    for f in fields(thing):
        value = getattr(thing, f.name)
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if f.init and (type(value) is not type(default) or value != default):
            changed[f.name] = value
    return changed
