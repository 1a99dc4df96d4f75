"""``on``: makes a command of a function, with the options that all commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer
from msgspec import Struct
from msgspec.structs import replace as change

from .work import Work

P = ParamSpec("P")

_ADDRESS = "Where the memory is: a folder, or an address such as postgresql://…"
_USER = "Whose memory it is; by default the setting `user`, or else your login name."
_JSON = "Write JSON for programs."
_QUIET = "Write results and errors only."
_CONFIG = "A TOML file of settings, instead of memoryspace.toml."


class Options(Struct, frozen=True, kw_only=True):
    """The options that all commands have; ``moment`` is of ``at``."""

    address: str | None = None
    user: str | None = None
    json: bool = False
    quiet: bool = False
    config: Path | None = None
    moment: str | None = None

    def then(self, later: Options) -> Options:
        """Return these options, where ``later`` does not say otherwise."""
        said = {name: getattr(later, name) for name in self.__struct_fields__}
        return change(
            self, **{name: value for name, value in said.items() if value not in (None, False)}
        )


def shared(*, hidden: bool) -> dict[str, inspect.Parameter]:
    """Return the options that all commands have, as parameters of a function."""
    forms: dict[str, Any] = {
        "address": Annotated[
            str | None,
            typer.Option("--address", "-a", help=_ADDRESS, metavar="PLACE", hidden=hidden),
        ],
        "user": Annotated[
            str | None, typer.Option("--user", "-u", help=_USER, metavar="NAME", hidden=hidden)
        ],
        "json": Annotated[bool, typer.Option("--json", help=_JSON, hidden=hidden)],
        "quiet": Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET, hidden=hidden)],
        "config": Annotated[
            Path | None, typer.Option("--config", help=_CONFIG, metavar="FILE", hidden=hidden)
        ],
    }
    kind = inspect.Parameter.KEYWORD_ONLY
    return {
        name: inspect.Parameter(
            name, kind, default=False if form.__origin__ is bool else None, annotation=form
        )
        for name, form in forms.items()
    }


def on(
    *apps: typer.Typer, name: str
) -> Callable[[Callable[Concatenate[Work, P], None]], Callable[Concatenate[Work, P], None]]:
    """Register a function as a command of one or several groups; its first argument is the work.

    The options that all commands have may stand before the command or after it.
    """

    def register(
        function: Callable[Concatenate[Work, P], None],
    ) -> Callable[Concatenate[Work, P], None]:
        for app in apps:
            app.command(name)(_called(function))
        return function

    return register


def _called(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function as Typer calls it: with the context instead of the work."""
    own = shared(hidden=True)

    @wraps(function)
    def called(ctx: typer.Context, **given: Any) -> None:
        later = Options(**{name: given.pop(name) for name in own})
        options = ctx.obj.then(later) if isinstance(ctx.obj, Options) else later
        function(work_for(options), **given)

    _, *parameters = inspect.signature(function, eval_str=True).parameters.values()
    sign(called, [*parameters, *own.values()])
    return called


def sign(function: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Let Typer see a context and these parameters in a function."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    everything = [inspect.Parameter("ctx", kind, annotation=typer.Context), *parameters]
    function.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in everything}


def work_for(options: Options) -> Work:
    """Return the work of a command with these options."""
    return Work(
        address=options.address,
        user=options.user,
        as_json=options.json,
        quiet=options.quiet,
        config_file=options.config,
        moment=options.moment,
    )
