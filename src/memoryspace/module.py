"""``StateModule``: objects whose state can be saved as a dict and loaded again.

Loading is all or nothing: if any part of a state does not fit, nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Converter: TypeAlias = Callable[[Any], Any]


class StateModule:
    """Base class of memories, agents and other objects with state.

    A ``StateModule`` assigned to an attribute becomes a child and part of the state. Add other
    attributes with ``register_state``. Children inside lists or dicts are not tracked.

    Examples:
        >>> class Counter(StateModule):
        ...     def __init__(self) -> None:
        ...         super().__init__()
        ...         self.count = 0
        ...         self.register_state("count")
        >>> Counter().state_dict()
        {'count': 0}
    """

    _children: dict[str, StateModule]
    _states: dict[str, tuple[Converter | None, Converter | None]]

    def __init__(self) -> None:
        object.__setattr__(self, "_children", {})
        object.__setattr__(self, "_states", {})

    def __setattr__(self, name: str, value: Any) -> None:
        children = self.__dict__.get("_children")
        if isinstance(value, StateModule):
            if children is None:
                raise AttributeError(
                    f"call super().__init__() in {type(self).__name__} before setting {name!r}"
                )
            children[name] = value
            self._states.pop(name, None)
        elif children is not None:
            children.pop(name, None)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._children.pop(name, None)
        self._states.pop(name, None)

    def register_state(
        self,
        attr_name: str,
        custom_to_json: Converter | None = None,
        custom_from_json: Converter | None = None,
    ) -> None:
        """Make an attribute part of the state.

        Args:
            attr_name: The attribute, which must exist.
            custom_to_json: Converts its value for ``state_dict``; without it the value must be
                JSON-serializable.
            custom_from_json: Converts the saved value back for ``load_state_dict``.

        Raises:
            ValueError: If the attribute is a child module.
            TypeError: If its value is not JSON-serializable and there is no ``custom_to_json``.
        """
        value = getattr(self, attr_name)
        if attr_name in self._children:
            raise ValueError(f"{attr_name!r} is a child module and already part of the state")
        if custom_to_json is None:
            _check_json(attr_name, value)
        self._states[attr_name] = (custom_to_json, custom_from_json)

    def state_dict(self) -> dict[str, Any]:
        """Return the state: the children's states first, then the registered attributes."""
        state: dict[str, Any] = {name: child.state_dict() for name, child in self._children.items()}
        for name, (to_json, _) in self._states.items():
            value = getattr(self, name)
            state[name] = value if to_json is None else to_json(value)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state that ``state_dict`` returned.

        Args:
            state_dict: The state. Extra keys are ignored.
            strict: Whether a missing key is an error; otherwise the attribute keeps its value.

        Raises:
            KeyError: If ``strict`` and a key is missing.
        """
        self._check_keys(state_dict, strict)
        values = {
            name: state_dict[name] if from_json is None else from_json(state_dict[name])
            for name, (_, from_json) in self._states.items()
            if name in state_dict
        }
        before = {name: getattr(self, name) for name in values}
        try:
            _set_all(self, values)
            load_together(self._children, state_dict, strict=strict)
        except BaseException:
            _set_all(self, before)
            raise

    def _check_keys(self, state_dict: Mapping[str, Any], strict: bool) -> None:
        missing = [name for name in (*self._children, *self._states) if name not in state_dict]
        if strict and missing:
            raise KeyError(
                f"the state of {type(self).__name__} lacks {', '.join(missing)}; "
                f"load it with strict=False to keep the current values"
            )


def load_together(
    modules: Mapping[str, StateModule], states: Mapping[str, Any], *, strict: bool = True
) -> None:
    """Load each module's state by name; if one fails, restore the others."""
    done: list[_Snapshot] = []
    try:
        for name, module in modules.items():
            if name in states:
                done.append(_Snapshot(module))
                _load(module, states[name], strict)
    except BaseException:
        for before in reversed(done):
            before.restore()
        raise


class _Snapshot:
    """A module before a load: its state and the attribute values themselves.

    A value that can be written as JSON cannot always be read back from it.
    """

    def __init__(self, module: StateModule) -> None:
        self._module = module
        self._state = module.state_dict()
        self._values = {name: getattr(module, name) for name in module._states}
        self._children = [_Snapshot(child) for child in module._children.values()]

    def restore(self) -> None:
        _load(self._module, self._state, strict=False)
        _set_all(self._module, self._values)
        for child in self._children:
            child.restore()


def _load(module: StateModule, state: Any, strict: bool) -> None:
    """Load a state; a subclass may override ``load_state_dict`` without ``strict``."""
    if strict:
        module.load_state_dict(state)
    else:
        module.load_state_dict(state, strict=False)


def _set_all(module: StateModule, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(module, name, value)


def _check_json(name: str, value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name!r} cannot be written as JSON ({error}); pass custom_to_json"
        ) from error
