"""Commands that find memories, and explain what was found."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import on
from .exits import NothingFound
from .groups import app, past
from .options import (
    Filter,
    Kind,
    Limit,
    Question,
    Relevance,
    Session,
    Since,
    Until,
    When,
    conditions,
)
from .texts import whole
from .work import Work


@on(app, past, name="search")
def search(
    work: Work,
    question: Question,
    limit: Limit = 10,
    session: Session = None,
    kind: Kind = None,
    since: Since = None,
    until: Until = None,
    filters: Filter = None,
    min_relevance: Relevance = None,
    when: When = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each is there.")] = False,
) -> None:
    """Show the memories that answer a question, best first.

    The score is the chance that a memory answers it.
    """
    from .views import hits_grid

    asked = whole(question)
    with work.memory() as memory:
        hits = memory.search(
            asked, limit=limit, session=session, kind=kind, min_relevance=min_relevance,
            filters=conditions(filters, since, until), when=when, explain=explain,
        )  # fmt: skip
    if hits or work.screen.as_json:
        work.screen.show(hits.to_dict(), hits_grid(hits, explain=explain))
    if not hits:
        raise NothingFound("nothing found")


@on(app, past, name="context")
def context(
    work: Work,
    question: Question,
    max_tokens: Annotated[
        int | None, typer.Option(help="The most tokens of the text.", metavar="NUMBER", min=100)
    ] = None,
    session: Session = None,
    since: Since = None,
    until: Until = None,
    filters: Filter = None,
    min_relevance: Relevance = None,
    when: When = None,
) -> None:
    """Show the text to put into a prompt that asks a question.

    Memories are quoted as data, with who said them and when. The text is empty if nothing is
    relevant.
    """
    asked = whole(question)
    with work.memory() as memory:
        made = memory.context(
            asked, max_tokens=max_tokens, session=session, min_relevance=min_relevance,
            filters=conditions(filters, since, until), when=when,
        )  # fmt: skip
    if made or work.screen.as_json:
        work.screen.show(made.to_dict(), made.text)
    if not made:
        raise NothingFound("nothing relevant")


@on(app, past, name="facts")
def facts(
    work: Work,
    as_of: Annotated[
        str | None,
        typer.Option(help="What was believed at this time, instead of now.", metavar="TIME"),
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="What is no longer believed, instead.")
    ] = False,
    limit: Limit = 100,
) -> None:
    """Show what is believed about the user, newest first."""
    from .views import memories_grid

    with work.memory() as memory:
        found = memory.facts(as_of=as_of, superseded=superseded, limit=limit)
    work.screen.show(found.to_dict(), memories_grid(found))


@on(app, past, name="why-not")
def why_not(
    work: Work,
    memory_id: Annotated[str, typer.Argument(help="The id of a memory.", metavar="ID")],
    question: Question,
    limit: Limit = 10,
    session: Session = None,
    filters: Filter = None,
    when: When = None,
) -> None:
    """Explain why a search does not find a memory.

    It names what ranks above it.
    """
    from .views import why_not_fields

    asked = whole(question)
    with work.memory() as memory:
        found = memory.why_not(
            asked, memory_id, limit=limit, session=session, when=when,
            filters=conditions(filters, None, None),
        )  # fmt: skip
    work.screen.show(found.to_dict(), why_not_fields(found))
    if found.reason == "unknown":
        raise NothingFound(f"no memory {memory_id!r}")


@on(app, name="recalls")
def recalls(
    work: Work,
    limit: Limit = 20,
    never: Annotated[
        bool, typer.Option("--never", help="Show what was never found, instead.")
    ] = False,
) -> None:
    """Show what was asked and found, and what of it helped."""
    from .views import memories_grid, recalls_grid

    with work.memory() as memory:
        if never:
            forgotten = memory.never_recalled(limit=limit)
            work.screen.show(forgotten.to_dict(), memories_grid(forgotten))
            return
        log = memory.recalls(limit=limit)
    work.screen.show(log.to_dict(), recalls_grid(log))
    work.screen.note(
        f"{log.count} recalls; {log.silent} found nothing; {log.answered} have feedback, "
        f"{log.helped} of them helped"
    )


@on(app, name="feedback")
def feedback(
    work: Work,
    recall_id: Annotated[
        str, typer.Argument(help="The id of a recall; `recalls` shows them.", metavar="RECALL")
    ],
    used: Annotated[
        list[str] | None,
        typer.Argument(
            help="The ids of the memories that helped; none says that none did.", metavar="ID"
        ),
    ] = None,
) -> None:
    """Say which memories of a search or context helped."""
    with work.memory() as memory:
        told = memory.feedback(recall_id, used or [])
    work.screen.show(told.to_dict(), f"noted: {len(told.used or ())} of {len(told.ids)} helped")
