"""Hooks: functions that run before and after the methods of an agent.

``pre_reply`` gets ``(agent, arguments)`` and may return other arguments. ``post_reply`` gets
``(agent, arguments, output)`` and may return another output. The same holds for ``print``,
``observe`` and everything else in ``supported_hook_types``. Hooks may be functions or coroutine
functions.

A hook on an instance runs for that instance only. A hook on a class runs for it and its subclasses,
never for its parents or siblings. Instance hooks run first, then class hooks from the base class
down, each in the order of registration. A name registered again keeps its place, also if a subclass
registers a name of its parent. Each call runs its hooks once, however often the method calls
``super()``: only the outermost definition runs them, so concurrent and nested calls each run their
own.

Hooks receive copies of messages and plain data. Other objects, such as agents and models, are
passed as they are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from ..errors import InvalidInput
from ..message import Msg, thaw

Hook: TypeAlias = Callable[..., Any]
HooksByType: TypeAlias = dict[str, dict[str, Hook]]


class InvalidHook(InvalidInput, AssertionError):
    """A hook of an unknown type or name, or with an unusable result."""


class Hookable:
    """A class whose methods run hooks: ``pre_x`` and ``post_x`` around ``x`` or ``_x``."""

    supported_hook_types: ClassVar[Sequence[str]] = ()
    _class_hooks: ClassVar[HooksByType] = {}
    _instance_hooks: HooksByType

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._class_hooks = {}
        for kind in _kinds(cls.supported_hook_types):
            for name in (kind, f"_{kind}"):
                method = getattr(cls, name, None)  # its own, or that of a mixin
                if inspect.isfunction(method) and not hasattr(method, "runs_hooks"):
                    setattr(cls, name, _hooked(kind, name, method))

    def register_instance_hook(self, hook_type: str, hook_name: str, hook: Hook) -> None:
        """Register a hook on this object, and replace one of the same name.

        Args:
            hook_type: Such as ``"pre_reply"``; see ``supported_hook_types``.
            hook_name: A name to remove the hook by.
            hook: A function or coroutine function.

        Raises:
            InvalidHook: If the hook type is not supported.
        """
        _add(self._instance_hooks, self._checked(hook_type), hook_name, _without(self, hook))

    def remove_instance_hook(self, hook_type: str, hook_name: str) -> None:
        """Remove a hook of this object; an unknown name raises ``InvalidHook``."""
        _remove(self._instance_hooks, self._checked(hook_type), hook_name)

    def clear_instance_hooks(self, hook_type: str | None = None) -> None:
        """Remove all hooks of this object, or all of one type."""
        _clear(self._instance_hooks, None if hook_type is None else self._checked(hook_type))

    @classmethod
    def register_class_hook(cls, hook_type: str, hook_name: str, hook: Hook) -> None:
        """Register a hook for all objects of this class and its subclasses."""
        _add(cls._class_hooks, cls._checked(hook_type), hook_name, hook)

    @classmethod
    def remove_class_hook(cls, hook_type: str, hook_name: str) -> None:
        """Remove a hook of this class. Remove hooks of a parent class there."""
        _remove(cls._class_hooks, cls._checked(hook_type), hook_name)

    @classmethod
    def clear_class_hooks(cls, hook_type: str | None = None) -> None:
        """Remove all hooks of this class, or all of one type. Hooks of parent classes stay."""
        _clear(cls._class_hooks, None if hook_type is None else cls._checked(hook_type))

    @classmethod
    def _checked(cls, hook_type: str) -> str:
        if hook_type not in cls.supported_hook_types:
            known = ", ".join(cls.supported_hook_types)
            raise InvalidHook(f"{cls.__name__} has no hook type {hook_type!r}; it has {known}")
        return hook_type

    def _hooks(self, hook_type: str) -> list[Hook]:
        """Return the hooks that a call runs, in order."""
        named: dict[str, Hook] = {}
        for each in reversed(type(self).__mro__):
            own = each.__dict__.get("_class_hooks")
            if own:
                named.update(own.get(hook_type, {}))
        return [*self._instance_hooks.get(hook_type, {}).values(), *named.values()]


def _kinds(hook_types: Sequence[str]) -> Iterator[str]:
    """Yield the names of the hooked methods: ``reply`` for ``pre_reply`` and ``post_reply``."""
    yield from dict.fromkeys(each.partition("_")[2] for each in hook_types)


def _hooked(kind: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method wrapped in its hooks."""
    pre, post = f"pre_{kind}", f"post_{kind}"
    signature = _without_self(inspect.signature(method))

    @functools.wraps(method)
    async def run(self: Hookable, /, *args: Any, **kwargs: Any) -> Any:
        before, after = self._hooks(pre), self._hooks(post)
        outermost = getattr(type(self), name) is run
        if not outermost or not (before or after):
            return await method(self, *args, **kwargs)
        arguments = _arguments(signature, args, kwargs)
        for hook in before:
            arguments = await _before(hook, self, arguments)
        args, kwargs = _unpacked(signature, arguments)
        output = await method(self, *args, **kwargs)
        for hook in after:
            output = await _after(hook, self, arguments, output)
        return output

    run.runs_hooks = True  # type: ignore[attr-defined]  # so that it is wrapped only once
    return run


async def _before(hook: Hook, agent: Hookable, arguments: dict[str, Any]) -> dict[str, Any]:
    changed = await _result(hook(agent, copied(arguments)))
    if changed is None:
        return arguments
    if not isinstance(changed, dict):
        raise InvalidHook(
            f"a pre-hook must return None or a dict of arguments, not {type(changed).__name__}"
        )
    return changed


async def _after(hook: Hook, agent: Hookable, arguments: dict[str, Any], output: Any) -> Any:
    changed = await _result(hook(agent, copied(arguments), copied(output)))
    return output if changed is None else changed


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    """Remove the first parameter, whatever its name."""
    return signature.replace(parameters=[*signature.parameters.values()][1:])


def _arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return a call's arguments by name, defaults included."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _unpacked(
    signature: inspect.Signature, arguments: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments to call the method with; unknown names are passed as keywords."""
    unknown = {name: arguments[name] for name in arguments.keys() - signature.parameters.keys()}
    bound = inspect.BoundArguments(signature, arguments)
    return bound.args, {**bound.kwargs, **unknown}


def copied(value: Any) -> Any:
    """Copy messages and plain data; anything else is the same object."""
    if isinstance(value, Msg):
        return thaw(value)
    kind = type(value)
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind(copied(item) for item in value)
    return value


class _OwnMethod:
    """A bound method of the agent, stored unbound: a reference to the agent would be a cycle."""

    def __init__(self, function: Hook) -> None:
        self._function = function

    def __call__(self, agent: Hookable, *rest: Any) -> Any:
        return self._function(agent, agent, *rest)


def _without(owner: Hookable, hook: Hook) -> Hook:
    if inspect.ismethod(hook) and hook.__self__ is owner:
        return _OwnMethod(hook.__func__)
    return hook


def _add(hooks: HooksByType, hook_type: str, hook_name: str, hook: Hook) -> None:
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    hooks.setdefault(hook_type, {})[hook_name] = hook


def _remove(hooks: HooksByType, hook_type: str, hook_name: str) -> None:
    if hook_name not in hooks.get(hook_type, {}):
        raise InvalidHook(f"no hook {hook_name!r} of type {hook_type!r} is registered here")
    del hooks[hook_type][hook_name]


def _clear(hooks: HooksByType, hook_type: str | None) -> None:
    if hook_type is None:
        hooks.clear()
    else:
        hooks.pop(hook_type, None)
