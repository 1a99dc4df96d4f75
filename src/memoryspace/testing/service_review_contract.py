"""The part of the service contract about reviews of derived facts."""

from __future__ import annotations

from ..errors import InvalidInput, UnknownMemory
from ..record import Origin
from ..service.base import MemoryService
from ..service.deriving.contract import Add, Decision, Job, Known, Supersede
from ..service.settings import ServiceSettings
from ..service.values.memory import Draft, MemoryItem
from ..service.values.review import Decided, Proposals
from .service_tools import ServiceCheck, ServiceMaker, fresh_user, refuses, said, texts

REVIEWED = ServiceSettings(embedder=None, review="facts")


class Homes:
    """Derives from each message the home it names, which supersedes every earlier one."""

    name, kinds, is_quick, is_about_people = "homes", ("fact",), True, True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return the homes that the messages name."""
        there = await known.of_kind("fact")
        decisions: list[Decision] = []
        for memory in job.memories:
            if "live" in memory.text:
                decisions += _new_home(memory, there)
        return decisions


def _new_home(memory: MemoryItem, there: list[MemoryItem]) -> list[Decision]:
    city = memory.text.split()[-1]
    text = f"home: {city}"
    details = {"subject": "user", "attribute": "home", "value": city, "exclusive": True}
    origin = Origin(derived_from=(memory.id,))
    until = memory.created_at
    draft = Draft(
        value=text,
        text=text,
        kind="fact",
        origin=origin,
        id=f"fact-{memory.id}",
        details=details,
        created_at=until,
    )
    former: list[Decision] = [Supersede(each.id, draft, until) for each in there]
    return former if former else [Add(draft)]


async def homes(service: MemoryService, user: str) -> list[str]:
    """Return the facts that hold."""
    return sorted(each.text for each in await service.facts(user))


async def proposals(service: MemoryService, user: str) -> list[str]:
    """Return what waits."""
    page = await service.waiting(user, limit=1000)
    return [each.memory.text for each in page.proposals]


async def check_a_fact_that_waits_is_seen_by_the_reviewer_alone(make: ServiceMaker) -> None:
    user = fresh_user()
    async with make(deriver=Homes(), settings=REVIEWED) as service:
        await service.add_memory(user, [said("I live in Rome", id="m")])
        assert texts(await service.search_memory(user, "Rome")) == ["I live in Rome"]
        [hit] = await service.search(user, "Rome")
        assert (hit.memory.kind, hit.facts) == ("memory", ())
        for found in (
            await service.facts(user),
            await service.facts(user, filters={"superseded": True, "quarantined": True}),
            await service.search(user, "home", filters={"kind": "fact"}),
            await service.search(user, "home", filters={"kind": "fact", "as_of": 2e10}),
            await service.list_memory(user, {"kind": "fact"}),
            (await service.page(user, filters={"kind": "fact"})).memories,
            (await service.page(user, filters={"kind": ["fact", "insight"]})).memories,
        ):
            assert list(found) == []
        assert await service.count(user, {"kind": "fact"}) == 0
        [proposal] = (await service.waiting(user)).proposals
        assert proposal.memory.text == "home: Rome"
        assert [each.text for each in proposal.sources] == ["I live in Rome"]
        assert (proposal.retires, proposal.superseded_by) == ((), None)
        assert (await service.status(user)).waiting == 1
        found_id = proposal.memory.id
        assert (await service.why_not(user, "home", found_id)).reason == "filtered"
        assert await service.approve(user, found_id) == Decided((found_id,))
        hits = await service.search(user, "Rome")
        [lent] = [each.facts for each in hits if each.memory.kind == "memory"]
        assert [each.text for each in lent] == ["home: Rome"]
        assert await homes(service, user) == ["home: Rome"]
        assert (await service.status(user)).waiting == 0
        versions = await service.history(user, found_id)
        assert [each.is_waiting for each in versions] == [True, False]


async def check_approval_retires_and_undoing_it_restores(make: ServiceMaker) -> None:
    user = fresh_user()
    async with make(deriver=Homes(), settings=REVIEWED) as service:
        await service.add_memory(user, [said("I live in Rome", id="1")], "one")
        await service.approve(user, "fact-1")
        await service.add_memory(user, [said("I live in Oslo", id="2")], "two")
        assert await homes(service, user) == ["home: Rome"]
        [proposal] = (await service.waiting(user)).proposals
        assert [each.text for each in proposal.retires] == ["home: Rome"]
        assert await service.approve(user, "fact-2") == Decided(("fact-2",))
        assert await service.approve(user, "fact-2") == Decided((), ("fact-2",))
        assert await homes(service, user) == ["home: Oslo"]
        former = await service.facts(user, filters={"superseded": True})
        ends = {each.text: each.valid_to for each in former}
        assert ends["home: Rome"] is not None
        assert ends["home: Oslo"] is None
        assert await service.undo(user, "fact-2") == Decided(("fact-2",))
        assert await homes(service, user) == ["home: Rome"]
        assert (await service.facts(user))[0].valid_to is None
        assert await service.undo(user, "fact-2") == Decided((), ("fact-2",))
        assert await service.reject(user, ["fact-2", "fact-1"]) == Decided(
            ("fact-2",), (), ("fact-1",)
        )
        assert await homes(service, user) == ["home: Rome"]
        assert await proposals(service, user) == []
        assert await service.get(user, "fact-2") is None
        assert await service.approve(user, "fact-2") == Decided((), (), ("fact-2",))
        assert await service.reject(user, "fact-2") == Decided((), ("fact-2",))
        assert await service.undo(user, "fact-2") == Decided(("fact-2",))
        assert await proposals(service, user) == ["home: Oslo"]


async def check_the_last_said_holds_in_whatever_order_it_is_approved(make: ServiceMaker) -> None:
    async with make(deriver=Homes(), settings=REVIEWED) as service:
        for order in ("312", "31"):
            user = fresh_user()
            for number, city in enumerate(("Rome", "Oslo", "Bergen"), 1):
                message = said(f"I live in {city}", id=str(number))
                await service.add_memory(user, [message], f"session {number}")
            for chosen in order:
                await service.approve(user, f"fact-{chosen}")
            last = ("Rome", "Oslo", "Bergen")[int(max(order)) - 1]
            assert await homes(service, user) == [f"home: {last}"], order
            former = await service.facts(user, filters={"superseded": True})
            assert len(former) == len(order)


async def check_what_was_rejected_stays_away_from_its_message(make: ServiceMaker) -> None:
    user = fresh_user()
    async with make(deriver=Homes(), settings=REVIEWED) as service:
        await service.add_memory(user, [said("I live in Rome", id="m")])
        await service.reject(user, "fact-m")
        await service.update(user, "m", said("As I said, I live in Rome"))
        assert (await service.settled(user)).is_settled
        assert await proposals(service, user) == []
        assert await service.undo(user, "fact-m") == Decided((), (), ("fact-m",))
        await service.update(user, "m", said("I live in Oslo"))
        assert await proposals(service, user) == ["home: Oslo"]
        await service.add_memory(user, [said("I live in Rome", id="n")])
        assert await proposals(service, user) == ["home: Oslo", "home: Rome"]
        deleted = await service.delete(user, "m")
        assert deleted.derived == ("fact-m",)
        assert await proposals(service, user) == ["home: Rome"]
        await service.delete(user, "n")
        assert await proposals(service, user) == []
        assert (await service.verify_erasure(user)).is_complete


async def check_what_was_deleted_or_corrected_stays_away_too(make: ServiceMaker) -> None:
    user = fresh_user()
    async with make(deriver=Homes()) as service:
        await service.add_memory(user, [said("I live in Rome", id="m")])
        assert (await service.delete(user, "fact-m")).derived == ("fact-m",)
        await service.update(user, "m", said("As I said, I live in Rome"))
        assert (await service.settled(user)).is_settled
        assert await homes(service, user) == []
        await service.add_memory(user, [said("I live in Oslo", id="n")])
        corrected = await service.update(user, "fact-n", "home: Bergen")
        assert (corrected.origin, corrected.version) == (Origin("homes", ("n",)), 2)
        assert [each.text for each in await service.history(user, "fact-n")] == [
            "home: Oslo",
            "home: Bergen",
        ]
        assert await homes(service, user) == ["home: Bergen"]
        await service.update(user, "n", said("Of course I live in Oslo"))
        assert (await service.settled(user)).is_settled
        assert await homes(service, user) == []
        await service.delete_memory(user)
        assert (await service.verify_erasure(user)).is_complete


async def check_reviews_end_with_the_session_and_go_on_without_the_setting(
    make: ServiceMaker,
) -> None:
    user = fresh_user()
    async with make(deriver=Homes(), settings=REVIEWED) as service:
        for number in range(5):
            message = said(f"I live in {number}", id=str(number))
            await service.add_memory(user, [message], f"session {number % 2}")
        await service.reject(user, "fact-0")
        first = await service.waiting(user, limit=2)
        assert first.cursor is not None
        assert Proposals.from_dict(first.to_dict()) == first
        rest = await service.waiting(user, limit=2, cursor=first.cursor)
        both = (*first.proposals, *rest.proposals)
        assert [each.memory.id for each in both] == [f"fact-{number}" for number in range(1, 5)]
        assert rest.cursor is None
        await service.delete_memory(user, "session 1")
        assert await proposals(service, user) == ["home: 2", "home: 4"]
    async with make(deriver=Homes()) as service:
        assert await proposals(service, user) == ["home: 2", "home: 4"]
        await service.add_memory(user, [said("I live in Oslo", id="5")])
        assert await homes(service, user) == ["home: Oslo"]
        await service.approve(user, ["fact-2", "fact-4"])
        assert await homes(service, user) == ["home: Oslo"]
        await service.delete_memory(user)
        assert (await service.verify_erasure(user)).is_complete


async def check_only_what_was_up_for_review_is_decided(make: ServiceMaker) -> None:
    user = fresh_user()
    async with make(deriver=Homes()) as service:
        await service.add_memory(user, [said("I live in Rome", id="m")])
        for decide in (service.approve, service.reject, service.undo):
            await refuses(decide(user, "nobody"), "nobody", kind=UnknownMemory)
            await refuses(decide(user, ["fact-m"]), "never up for review")
            await refuses(decide(user, "m"), "never up for review", kind=InvalidInput)
        await refuses(service.waiting(user, cursor="x"), "not a cursor")
        assert await homes(service, user) == ["home: Rome"]


REVIEW_CONTRACT: list[ServiceCheck] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_")
]
