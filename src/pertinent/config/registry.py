"""Registries of methods, metrics and removals, which register themselves by name."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any, Generic, TypeVar

from pertinent.config.settings_parser import read_settings, split_settings
from pertinent.errors import SettingError, unknown

T = TypeVar("T")

logger = logging.getLogger(__name__)

_place = attrgetter("__module__", "__qualname__")


class Registry(Generic[T]):
    """Classes of one kind by their kebab-case name.

    They come from one sub-package, where the file that registers a class is imported on first use, and from
    other packages' entry points in a group, by default the name of the sub-package.
    """

    def __init__(self, what: str, package: str, group: str | None = None) -> None:
        self.what = what
        self._package, self._group = package, group or package
        self._sources: dict[str, str] | None = None
        self._loaded = False
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Register the decorated class under `name`; a duplicate name raises an error."""

        def enter(cls: type[T]) -> type[T]:
            known = self._classes.get(name)
            if known is not None and _place(known) != _place(cls):
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
            for module in self._find_sources():
                importlib.import_module(module)
            for point in entry_points(group=self._group):
                try:
                    point.load()
                except Exception as error:  # noqa: BLE001  another package may raise anything
                    logger.warning("The %s %r could not be loaded: %s", self.what, point.name, error)
            self._loaded = True
        return dict(sorted(self._classes.items()))

    def get(self, name: str) -> type[T]:
        """The class called `name`; only the file that registers it is imported."""
        if name not in self._classes:
            for module, source in self._find_sources().items():
                if f'.register("{name}")' in source:
                    importlib.import_module(module)
        if name not in self._classes and name not in self.all():
            others = {each: own for own, cls in self._classes.items() for each in _other_names(cls)}
            raise unknown(self.what, name, self._classes, others.get(name.lower()))
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        """Whether a class is called `name`; imports every class if none of the sub-package is."""
        try:
            self.get(str(name))
        except SettingError:
            return False
        return True

    def _find_sources(self) -> dict[str, str]:
        """The source of each module of the sub-package, by the module's name, without importing it."""
        if self._sources is None:
            package = importlib.import_module(self._package)
            found = pkgutil.walk_packages(package.__path__, f"{self._package}.")
            finders: dict[str, Any] = {each.name: each.module_finder for each in found if not each.ispkg}
            self._sources = {
                name: finder.find_spec(name).loader.get_source(name) or "" for name, finder in finders.items()
            }
        return self._sources

    def parse(self, text: str) -> T:
        """An instance from ``name``, or from ``name:setting=value,setting=value``."""
        name, settings = split_settings(text, self.what)
        return self.make(name, read_settings(self.get(name), settings))

    def make(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """An instance of the class called `name`; an unknown setting raises an error."""
        cls = self.get(name)
        check_known(name, cls, settings or {})
        return cls(**(settings or {}))


def _other_names(cls: type[Any]) -> tuple[str, ...]:
    """What else a class is called in papers and other libraries."""
    return getattr(cls, "also_called", ())


def with_settings(thing: T, settings: Mapping[str, Any], *, also_known: Sequence[str] = ()) -> T:
    """An instance like another, with some settings changed; an unknown setting raises an error.

    The error suggests the settings, and the names that are `also_known`.
    """
    check_known(str(getattr(thing, "name", type(thing).__name__)), thing, settings, also_known)
    changed: T = replace(thing, **settings)  # type: ignore[type-var]
    return changed


def check_known(name: str, thing: Any, settings: Mapping[str, Any], also_known: Sequence[str] = ()) -> None:
    """Raise an error for a setting that a dataclass does not have."""
    for setting in settings:
        if setting not in settings_names(thing):
            raise unknown(f"setting of {name}", setting, [*settings_names(thing), *also_known])


def settings_names(thing: Any) -> list[str]:
    """The names of the settings of a dataclass or an instance of it."""
    return [f.name for f in fields(thing) if f.init and f.metadata.get("setting", True)]


def labels(named: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Labels for methods with settings: the name, and the settings in which methods of that name differ.

    >>> labels([("lime", {"samples": 5, "width": 2}), ("lime", {"width": 2}), ("random", {"seeds": 1})])
    ['lime samples=5', 'lime', 'random']
    """
    used: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, settings in named:
        used.setdefault(name, {})[repr(settings)] = settings
    differ = {
        name: {key for own in every for key in own if len({repr(each.get(key)) for each in every}) > 1}
        for name, every in ((name, own.values()) for name, own in used.items())
    }
    return [
        " ".join([name, *(f"{k}={v}" for k, v in settings.items() if k in differ[name])])
        for name, settings in named
    ]


def default_of(field: Field[Any]) -> Any:
    """The default of a dataclass field."""
    return field.default_factory() if field.default_factory is not MISSING else field.default


def settings_of(thing: Any) -> dict[str, Any]:
    """The settings of a registered dataclass instance that differ from their defaults."""
    changed = {}
    for f in fields(thing):
        value = getattr(thing, f.name)
        default = default_of(f)
        if f.init and (type(value) is not type(default) or value != default):
            changed[f.name] = value
    return changed
