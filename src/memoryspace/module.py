"""``StateModule``: objects whose state can be taken out as a dict and put back.

Loading is all or nothing: if any part of a state does not fit, everything is as it was before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Converter: TypeAlias = Callable[[Any], Any]


class StateModule:
    """Base of memories, agents and whatever else has a state.

    A ``StateModule`` assigned to an attribute becomes a child and part of the state; other
    attributes join by ``register_state``. Children inside lists or dicts are not tracked.
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
        """Make an attribute part of the state, through the converters where given."""
        value = getattr(self, attr_name)
        if attr_name in self._children:
            raise ValueError(f"{attr_name!r} is a child module and part of the state already")
        if custom_to_json is None:
            _check_json(attr_name, value)
        self._states[attr_name] = (custom_to_json, custom_from_json)

    def state_dict(self) -> dict[str, Any]:
        """Return the state: first the children's, then the registered attributes."""
        state: dict[str, Any] = {name: child.state_dict() for name, child in self._children.items()}
        for name, (to_json, _) in self._states.items():
            value = getattr(self, name)
            state[name] = value if to_json is None else to_json(value)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Put a state back. A missing key raises ``KeyError`` if ``strict``; extra ones do not."""
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
                f"load it with strict=False to keep what is there"
            )


def load_together(
    modules: Mapping[str, StateModule], states: Mapping[str, Any], *, strict: bool = True
) -> None:
    """Load each module's state by name; if one fails, put the others back as they were."""
    done: list[_AsItWas] = []
    try:
        for name, module in modules.items():
            if name in states:
                done.append(_AsItWas(module))
                _load(module, states[name], strict)
    except BaseException:
        for before in reversed(done):
            before.put_back()
        raise


class _AsItWas:
    """A module before a load: its state, and its attributes as such.

    An attribute that can be written as JSON need not be readable from it.
    """

    def __init__(self, module: StateModule) -> None:
        self._module = module
        self._state = module.state_dict()
        self._values = {name: getattr(module, name) for name in module._states}
        self._children = [_AsItWas(child) for child in module._children.values()]

    def put_back(self) -> None:
        _load(self._module, self._state, strict=False)
        _set_all(self._module, self._values)
        for child in self._children:
            child.put_back()


def _load(module: StateModule, state: Any, strict: bool) -> None:
    """Load a state; a module may have a ``load_state_dict`` that knows no ``strict``."""
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
