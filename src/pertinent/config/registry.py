"""Registries of methods, metrics, removals and other extensions, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import walk_packages
from typing import Any, Generic, TypeVar

from pertinent.config.settings import check_settings
from pertinent.config.settings_parser import read_settings, split_settings
from pertinent.errors import SettingError, unknown

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Registry(Generic[T]):
    """Classes of one kind, by their kebab-case names.

    Classes are registered by the files of one package and by entry points of other packages. Looking up a
    class with a file of the same name (``"kernel-shap"`` in ``kernel_shap.py``) imports only that file;
    looking up any other name imports all files.

    Parameters
    ----------
    what
        Kind of class for error messages, such as ``"method"``.
    package
        Package whose files register the built-in classes.
    group
        Group of entry points; by default the name of the package.
    attribute
        Class attribute that is set to the name.
    needs
        Class attributes that every class must define.
    """

    def __init__(
        self,
        what: str,
        package: str,
        group: str | None = None,
        *,
        attribute: str = "name",
        needs: tuple[str, ...] = ("summary",),
    ) -> None:
        self.what, self.group = what, group or package
        self._package, self._attribute, self._needs = package, attribute, needs
        self._is_complete = False
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a decorator that registers a class under `name`; a duplicate name raises an error."""

        def enter(cls: type[T]) -> type[T]:
            if not cls.__module__.startswith(f"{self._package}."):
                self._import_files()  # to recognise duplicates of built-in names
            other = self._classes.get(name, cls)
            # A module may be executed twice, for example by `importlib.reload` or in a notebook.
            if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
                raise SettingError(
                    f"The {self.what} {name!r} is already registered, by {other.__module__}."
                    f"{other.__qualname__}: choose another name."
                )
            for attribute in self._needs:
                if not hasattr(cls, attribute):
                    raise SettingError(f"The {self.what} {name!r} needs the class attribute `{attribute}`.")
            setattr(cls, self._attribute, name)
            self._classes[name] = cls
            return cls

        return enter

    def all(self) -> Mapping[str, type[T]]:
        """Import and return every registered class by name, in alphabetical order."""
        if not self._is_complete:
            self._import_files()
            for point in entry_points(group=self.group):
                try:
                    point.load()
                except Exception as error:  # noqa: BLE001  another package may raise anything
                    logger.warning("The %s %r could not be loaded: %s", self.what, point.name, error)
            self._is_complete = True
        return dict(sorted(self._classes.items()))

    def get(self, name: str) -> type[T]:
        """Return the class called `name`; an unknown name raises an error that suggests the closest name."""
        if name not in self._classes and not self._is_complete:
            self._import_files(name.replace("-", "_"))
        if name not in self._classes and name not in self.all():
            synonyms = {
                synonym: main
                for main, cls in self._classes.items()
                for synonym in getattr(cls, "also_called", ())
            }
            raise unknown(self.what, name, self._classes, synonyms.get(name.lower()))
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        """Return whether a class is registered under `name`."""
        try:
            self.get(str(name))
        except SettingError:
            return False
        return True

    def _import_files(self, stem: str | None = None) -> None:
        """Import the package's file called `stem`, or all its files."""
        package = import_module(self._package)
        for module in walk_packages(package.__path__, f"{self._package}."):
            if stem in (None, module.name.rpartition(".")[2]):
                import_module(module.name)

    def parse(self, text: str) -> T:
        """Create an instance from ``name`` or ``name:setting=value,setting=value``."""
        name, settings = split_settings(text, self.what)
        return self.make(name, read_settings(self.get(name), settings))

    def make(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """Create an instance of the class called `name`; an unknown setting raises an error."""
        cls = self.get(name)
        check_settings(name, cls, settings or {})
        return cls(**(settings or {}))
