"""``MemoryServiceFactory``: creates and starts a service by the name of its backend.

Options come from keywords or from the environment. ``MEMORY_BACKEND`` names the backend, and
``MEMORY_<BACKEND>_<OPTION>`` sets one of its options, converted to its type. An option that
the backend does not have is an error, wherever it comes from.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, ClassVar, get_type_hints

from ..configuring import from_text
from ..embedding import E5Embedder, MiniLMEmbedder, StaticEmbedder
from ..errors import InvalidInput
from .base import MemoryService
from .settings import ServiceSettings

Maker = Callable[..., MemoryService]

_EMBEDDERS: Mapping[str, Callable[[], Any]] = {
    "best": lambda: "best",
    "none": lambda: None,
    "static": StaticEmbedder,
    "minilm": MiniLMEmbedder,
    "e5": E5Embedder,
}


class MemoryServiceFactory:
    """Creates services by name. Add your own backends with ``register_backend``.

    Example::

        service = await MemoryServiceFactory.create("sql", bind="sqlite:///memories.db")
        await service.stop()
    """

    _own: ClassVar[dict[str, Maker]] = {}

    _built_in: ClassVar[Mapping[str, tuple[str, str]]] = {
        "in_memory": ("in_memory", "InMemoryMemoryService"),
        "redis": ("redis", "RedisMemoryService"),
        "sql": ("sql", "SQLMemoryService"),
        "space": ("space", "SpaceMemoryService"),
        "mem0": ("mem0", "Mem0MemoryService"),
        "tablestore": ("tablestore", "TablestoreMemoryService"),
        "personal": ("personal", "PersonalMemoryService"),
        "task": ("task", "TaskMemoryService"),
        "tool": ("tool", "ToolMemoryService"),
        "reme_personal": ("personal", "PersonalMemoryService"),
        "reme_task": ("task", "TaskMemoryService"),
    }

    @classmethod
    def register_backend(cls, name: str, maker: Maker) -> None:
        """Add a backend.

        Args:
            name: The name to pass to ``create``.
            maker: A service class, or a function that returns a service.

        Raises:
            InvalidInput: ``name`` is not an identifier.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput(f"the name of a backend must be an identifier, got {name!r}")
        cls._own[name.lower()] = maker

    @classmethod
    async def create(cls, backend_type: str | None = None, **options: Any) -> MemoryService:
        """Create and start a service.

        Args:
            backend_type: The name of the backend; if ``None``, that of ``MEMORY_BACKEND``, or
                ``"in_memory"``.
            **options: Arguments of the service's class and fields of ``ServiceSettings``. They take
                precedence over the environment.

        Returns:
            The started service; call ``stop`` when done.

        Raises:
            InvalidInput: The backend or an option is unknown, or a variable has the wrong type.
            MissingExtra: The extra of the backend is not installed.
        """
        name = (
            os.environ.get("MEMORY_BACKEND", "in_memory") if backend_type is None else backend_type
        )
        name = name.lower()
        maker, known = cls._maker(name), {*cls._built_in, *cls._own}
        service = maker(**_arguments(name, maker, {**_environment(name, maker, known), **options}))
        await service.start()
        return service

    @classmethod
    def _maker(cls, name: str) -> Maker:
        if name in cls._own:
            return cls._own[name]
        if name not in cls._built_in:
            known = ", ".join(sorted({*cls._built_in, *cls._own}))
            raise InvalidInput(f"unknown backend {name!r}; choose from {known}")
        module, kind = cls._built_in[name]
        _ = getattr(import_module(__package__), kind)  # raises MissingExtra if one is missing
        found: Maker = getattr(import_module(f".{module}", __package__), kind)
        return found


def _arguments(name: str, maker: Maker, options: dict[str, Any]) -> dict[str, Any]:
    """Collect options that are settings into ``settings``; raise on unknown options."""
    known = inspect.signature(maker).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return options
    settings = {key: options.pop(key) for key in list(options) if _is_setting(key, known)}
    unknown = [key for key in options if key not in known]
    if unknown:
        there = ", ".join(sorted({*known, *(_settings() if "settings" in known else ())}))
        raise InvalidInput(f"the backend {name!r} has no option {unknown[0]!r}; it has {there}")
    if settings:
        if options.get("settings") is not None:
            raise InvalidInput(
                f"pass {', '.join(settings)} inside settings=, or leave settings= out"
            )
        options["settings"] = ServiceSettings(**settings)
    return options


def _is_setting(key: str, known: Mapping[str, Any]) -> bool:
    return "settings" in known and key not in known and key in _settings()


def _settings() -> tuple[str, ...]:
    return ServiceSettings.__struct_fields__


def _environment(name: str, maker: Maker, others: Collection[str]) -> dict[str, Any]:
    """Return a backend's options in the environment; skip backends with a longer name."""
    prefix = f"MEMORY_{name.upper()}_"
    longer = [f"MEMORY_{each.upper()}_" for each in others if each.startswith(f"{name}_")]
    types = _types(maker)
    found = {}
    for variable, text in os.environ.items():
        if variable.startswith(prefix) and not variable.startswith(tuple(longer)):
            option = variable.removeprefix(prefix).lower()
            found[option] = _read(variable, text, option, types.get(option, str))
    return found


def _types(maker: Maker) -> dict[str, Any]:
    target = maker.__init__ if inspect.isclass(maker) else maker
    try:
        own = get_type_hints(target)
    except NameError:  # a type imported for checkers only: read the option as text
        own = {}
    return {**get_type_hints(ServiceSettings), **own}


def _read(variable: str, text: str, option: str, kind: Any) -> Any:
    if option == "embedder" and text.lower() in _EMBEDDERS:
        return _EMBEDDERS[text.lower()]()
    return from_text(variable, text, kind)
