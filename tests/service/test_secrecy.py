"""What becomes of messages with secrets: policies, derivation, contexts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as change

from memoryspace import MemoryStore, Msg
from memoryspace.errors import InvalidInput, SecretRefused
from memoryspace.model import Completion
from memoryspace.record import Origin, Scope
from memoryspace.service import (
    InMemoryMemoryService,
    PersonalMemoryService,
    ServiceSettings,
    TaskMemoryService,
    ToolMemoryService,
)
from memoryspace.service.deriving.contract import Add, Decision, Job, Known
from memoryspace.service.long_term import ServiceLongTermMemory
from memoryspace.service.schema import Message, TextContent
from memoryspace.service.stored import StoredMemoryService
from memoryspace.service.values.memory import Draft

WORDS = ServiceSettings(embedder=None)
MASKING = ServiceSettings(embedder=None, secrets="mask")
REFUSING = ServiceSettings(embedder=None, secrets="refuse")

SECRETS = ["Tulip!929", "4929 1180 5533 7742", "60831975", "GB29NWBK60161331926819"]
TELLING = [
    "I live in Rome and my pw is Tulip!929",
    "my card is 4929 1180 5533 7742. I work as a nurse.",
    "我的取款密码是 60831975，我住在上海",
    {"role": "user", "content": "pay rent to GB29NWBK60161331926819, I love opera"},
]


class Echo:
    """A deriver that repeats all it sees, and looks for more."""

    name = "echo"
    kinds = ("remark",)
    is_quick = True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        seen = [*job.memories]
        for memory in job.memories:
            seen += [each for each, _ in await known.similar(memory.text, kinds=["memory"])]
        texts = [f"{each.text} {each.value} {each.metadata} {job.details}" for each in seen]
        origin = Origin("echo", tuple(each.id for each in job.memories))
        return [Add(Draft(value=text, text=text, kind="remark", origin=origin)) for text in texts]


class Blabber:
    """A deriver that makes up a secret."""

    name = "blabber"
    kinds = ("remark",)
    is_quick = True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        draft = Draft(
            value="their pin is 60831975",
            text="their pin is 60831975",
            kind="remark",
            title="pin 60831975",
            details={"pin": "60831975", "nested": [{"password": "Tulip!929"}]},
        )
        return [Add(draft)]


class Copyist:
    """A model that notes down every message as a fact, word for word."""

    name = "copyist"

    def __init__(self) -> None:
        self.asked = ""

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked += str(messages)
        shown = messages[1]["content"].split('<data name="messages">\n')[1].split("\n</data>")[0]
        facts = [{"source": each["id"], "text": each["text"]} for each in json.loads(shown)]
        return Completion(json.dumps({"facts": facts}), 1, 1)


async def derived(service: StoredMemoryService, kind: str) -> str:
    page = await service.page("ann", limit=100, filters={"kind": kind, "superseded": True})
    assert page.memories
    return str(page.memories)


def holds_none(text: str) -> bool:
    return not any(secret in text for secret in SECRETS)


async def test_rules_derive_facts_from_such_a_message_but_not_the_secret() -> None:
    async with PersonalMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", TELLING)
        facts = await derived(service, "fact")
        assert "Rome" in facts
        assert holds_none(facts)
        assert await service.count("ann", {"kind": "memory", "marks": "secret"}) == len(TELLING)


async def test_a_model_that_derives_sees_no_secret() -> None:
    model = Copyist()
    async with PersonalMemoryService(model=model, settings=WORDS) as service:
        await service.add_memory("ann", TELLING)
        await service.settled("ann")
        assert "Rome" in model.asked
        assert holds_none(model.asked)
        assert holds_none(await derived(service, "fact"))


async def test_no_deriver_sees_a_secret_nor_finds_one_in_older_messages() -> None:
    async with StoredMemoryService(MemoryStore(), settings=WORDS, deriver=Echo()) as service:
        for said in TELLING:
            await service.add_memory("ann", [said])
        await service.update(
            "ann", (await messages(service))[0].id, "my pw is Tulip!929, as before"
        )
        assert holds_none(await derived(service, "remark"))


async def messages(service: StoredMemoryService) -> Sequence[Any]:
    return (await service.page("ann", filters={"kind": "memory"})).memories


async def test_a_secret_that_a_deriver_makes_up_is_masked() -> None:
    async with StoredMemoryService(MemoryStore(), settings=WORDS, deriver=Blabber()) as service:
        await service.add_memory("ann", ["hello"])
        assert holds_none(await derived(service, "remark"))
        note = (await service.page("ann")).memories[0]
        changed = await service.update("ann", note.id, "the pin is 60831975")
        assert changed.text == "the pin is •••"
        assert not changed.holds_secret


async def test_lessons_and_guidelines_hold_no_secret() -> None:
    run = [
        {"role": "user", "content": "log in, the password is Tulip!929"},
        {"role": "assistant", "content": "done with Tulip!929"},
    ]
    async with TaskMemoryService(settings=WORDS) as service:
        await service.add_trajectory("ann", run, score=1.0, task="log in with password Tulip!929")
        lessons = [each.text for each in (await service.page("ann")).memories]
        assert lessons
        assert holds_none(str(lessons))
    async with ToolMemoryService(settings=WORDS) as tools:
        call = {"tool_name": "login", "input": {"password": "Tulip!929"}, "output": "ok"}
        await tools.add_tool_call_results("ann", [call])
        assert holds_none(str(await tools.guidelines("ann", ["login"])))


VALUES = st.from_regex(r"[A-Za-z]{3,6}[!@#][0-9]{3,6}[a-z]", fullmatch=True)
FRAMES = st.sampled_from(
    [
        "my password is {}",
        "pw: {}. I live in Rome.",
        "I am Ann. {} is my password",
        "密码是{}，我住上海",
        "I changed my password to {}",
    ]
)


@given(VALUES, FRAMES)
def test_derivation_never_leaks(value: str, frame: str) -> None:
    async def story() -> None:
        async with StoredMemoryService(MemoryStore(), settings=WORDS, deriver=Echo()) as service:
            await service.add_memory("ann", [frame.format(value)])
            assert value not in await derived(service, "remark")

    asyncio.run(story())


# -- policies --------------------------------------------------------------------------------------


async def test_a_mark_says_which_kinds_and_comes_and_goes_with_them() -> None:
    async with InMemoryMemoryService(settings=WORDS) as service:
        [told] = await service.add_memory(
            "ann", ["pin 60831975 and my pw is Tulip!929"], marks="bank"
        )
        memory = await service.get("ann", told)
        assert memory is not None
        assert memory.marks == {"secret", "bank"}
        assert memory.details["secrets"] == ["PIN", "password"]
        assert memory.text == "pin 60831975 and my pw is Tulip!929"
        later = await service.update("ann", told, "all changed")
        assert later.marks == {"bank"}
        assert "secrets" not in later.details


async def test_a_secret_is_one_in_all_messages_of_a_call() -> None:
    said = ["done with Tulip!929", "what is Tulip?", "my pw is Tulip!929"]
    async with InMemoryMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", said)
        assert await service.list_memory("ann", {"marks": "secret"}) == [said[0], said[2]]


@pytest.mark.parametrize(
    "said",
    [
        "my pw is Tulip!929",
        {"role": "user", "content": "hello", "metadata": {"pw": "Tulip!929"}},
        {"role": "user", "content": "my pw is Tulip!929", "note": ["Tulip!929 again"]},
        Msg("ann", "my pw is Tulip!929", "user", metadata={"title": "pw: Tulip!929"}),
        Msg("ann", [{"type": "text", "text": "my pw is"}, {"type": "text", "text": "Tulip!929"}],
            "user"),
        Message(role="user", content=[TextContent(text="my pw is Tulip!929")]),
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "function": {"name": "login", "arguments": '{"password": "Tulip!929"}'}}]},
    ],
)  # fmt: skip
async def test_masked_nothing_of_a_secret_is_stored_in_any_form(said: Any) -> None:
    async with InMemoryMemoryService(settings=MASKING) as service:
        [told] = await service.add_memory("ann", [said])
        assert "Tulip" not in str(await service.store.select(Scope("ann")))
        memory = await service.get("ann", told)
        assert memory is not None
        assert type(memory.value) is type(said)
        assert "•••" in f"{memory.text} {memory.metadata}"
        assert not memory.holds_secret


async def test_ids_and_times_are_nobodys_secret() -> None:
    said = {"role": "user", "content": "hello", "id": "4111111111111111", "timestamp": 1.7e9}
    async with InMemoryMemoryService(settings=MASKING) as service:
        assert await service.add_memory("ann", [said]) == ["4111111111111111"]
        assert await service.list_memory("ann") == [said]


async def test_a_refusal_says_which_and_what_to_do_and_stores_nothing() -> None:
    said = ["hello", "the pin is 60831975", "bye", "my pw is Tulip!929"]
    async with InMemoryMemoryService(settings=REFUSING) as service:
        with pytest.raises(SecretRefused) as refused:
            await service.add_memory("ann", said)
        assert refused.value.messages == (1, 3)
        assert "messages[1] holds a PIN; messages[3] holds a password" in str(refused.value)
        assert "'mask'" in str(refused.value)
        assert holds_none(str(refused.value))
        assert await service.count("ann") == 0
        [told] = await service.add_memory("ann", ["hello"])
        with pytest.raises(SecretRefused, match="PIN"):
            await service.update("ann", told, metadata={"pin": 60831975})


async def test_who_repeats_an_id_with_a_secret_marks_nothing() -> None:
    async with InMemoryMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", [{"role": "user", "content": "hello", "id": "m"}])
        again = {"role": "user", "content": "my pin is 60831975", "id": "m"}
        assert await service.add_memory("ann", [again]) == []
        memory = await service.get("ann", "m")
        assert memory is not None
        assert not memory.holds_secret


def test_a_policy_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'keep', 'mask', 'refuse'"):
        ServiceSettings(secrets="hide")  # type: ignore[arg-type]  # what is tested


# -- contexts --------------------------------------------------------------------------------------


async def test_contexts_leave_out_what_holds_a_secret_unless_it_is_wanted() -> None:
    async with InMemoryMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", ["the pin is 60831975", "the pin on the map is in Rome"])
        for wanted in (False, True):
            agent = ServiceLongTermMemory(service, "ann", with_secrets=wanted)
            told = await agent.retrieve(Msg("ann", "pin", "user"), limit=1 + wanted)
            assert "map" in told
            assert ("60831975" in told) is wanted
            assert ("60831975" in (await agent.retrieve_from_memory(["pin"])).text) is wanted
        assert len(await service.search("ann", "pin")) == 2


async def test_what_was_stored_before_there_were_marks_stays_out_of_contexts_too() -> None:
    async with InMemoryMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", ["the pin on the map"])
        [record] = await service.store.select(Scope("ann"))
        old = change(record, id="old", text="the pin is 60831975")
        await service.store.append(Scope("ann", "default"), [old])
        agent = ServiceLongTermMemory(service, "ann")
        assert "60831975" not in await agent.retrieve(Msg("ann", "pin", "user"))


async def test_an_agent_records_the_rest_where_secrets_are_refused() -> None:
    async with InMemoryMemoryService(settings=REFUSING) as service:
        agent = ServiceLongTermMemory(service, "ann")
        said = [Msg("ann", text, "user") for text in ("hello", "my pin is 60831975", "bye")]
        assert await agent.record([*said]) == [said[0].id, said[2].id]
        told = await agent.record_to_memory("", ["their pin is 60831975"])
        assert "SecretRefused" in told.text
        assert await service.count("ann") == 2
