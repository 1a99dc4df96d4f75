"""``repair``: do what an examination says that can be done, and lose nothing on the way.

Before anything is changed or given up, what is there is copied into ``quarantine`` in the folder
and synced. A repair that is killed can be run again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from os import PathLike
from pathlib import Path

import msgspec
from msgspec.structs import replace as change

from ..embedding import Embedder, best_embedder, embed_texts
from ..errors import CorruptData, InvalidInput
from ..files import sync_folder, write_atomic
from ..kernel import Durability, FolderLock, ObjectHandles
from ..kernel.durable.image import Image, ImageTooNew
from ..portable import Portable
from ..service.deriving.jobs import Jobs
from ..service.search.keeping import RecordText, VectorKeeper
from ..store import KeepsVectors, SpaceStore, Store, open_store
from ..store.space.damage import DamagedObject, damaged_in
from .doctor import EmbedderChoice, examine
from .findings import Examination
from .folder_checks import QUARANTINE, folder_of
from .manifest import Progress
from .replaying import users_of
from .store_checks import jobs_in, texts_in

_EMBEDDED_AT_ONCE = 256


class Repair(Portable, frozen=True):
    """What a repair did.

    Attributes:
        done: What was done, one sentence each.
        before: What was found before.
        after: What is found now.
    """

    done: tuple[str, ...]
    before: Examination
    after: Examination


async def repair(
    place: Store | str | PathLike[str],
    *,
    embedder: EmbedderChoice = "best",
    progress: Progress | None = None,
) -> Repair:
    """Repair what can be repaired safely.

    * A journal or a cold tier that lost a part: the files are copied into ``quarantine``, and what
      is intact goes on. A damaged checkpoint is moved there.
    * Records that cannot be read: their bytes are copied into ``quarantine``, then they are freed.
    * The saved index is removed, to be built again; failed derivation jobs start over with the next
      service; missing vectors are embedded; ledgers beside backups catch up.

    Args:
        place: As for ``examine``. Files can only be repaired while the folder is closed.
        embedder: As for ``examine``.
        progress: As for ``examine``.

    Raises:
        InvalidInput: The files of an open store are damaged: close it and pass its folder.
        FolderInUse: Another process uses the folder.
        CorruptData: What is damaged can only be restored from a backup.
        StoreUnavailable: There is no room for the copies; nothing was changed.

    Example::

        repaired = await repair("memory")
        print(*repaired.done, repaired.after, sep="\\n")
    """
    before = found = await examine(place, embedder=embedder, progress=progress)
    store = place if isinstance(place, Store) else open_store(place)  # opens nothing yet
    folder = folder_of(store)
    done: list[str] = []
    if folder is not None:
        done += await _repair_files(folder, before, is_open=store is place)
        if done:  # more can be seen now
            found = await examine(place, embedder=embedder, progress=progress)
    chosen = best_embedder() if embedder == "best" else embedder
    try:
        done += await _repair_contents(store, found, chosen)
    finally:
        if store is not place:
            await store.close()
    after = await examine(place, embedder=embedder, progress=progress)
    return Repair(tuple(done), before, after)


# -- files -----------------------------------------------------------------------------------------


async def _repair_files(folder: Path, found: Examination, *, is_open: bool) -> list[str]:
    wanted = found.remedies & {"salvage", "set aside", "rebuild"}
    if not wanted:
        return []
    if is_open:
        raise InvalidInput(
            f"the files in {folder} are damaged and can only be repaired while nobody uses them: "
            "close the store, then repair the folder"
        )
    done: list[str] = []
    if "rebuild" in wanted:
        done.append(await asyncio.to_thread(_remove_index, folder))
    if "salvage" in wanted:
        done.append(await _salvage(folder))
    if "set aside" in wanted:
        done.append(await _set_checkpoints_aside(folder))
    return done


def _remove_index(folder: Path) -> str:
    with FolderLock(folder):
        shutil.rmtree(folder / "index")
    return "removed the saved index, which is built again when the space is opened"


async def _salvage(folder: Path) -> str:
    """Copy the damaged files, continue with what is intact, and write it anew."""
    aside = await asyncio.to_thread(_copied_aside, folder)
    async with SpaceStore(folder, durability=Durability(salvage=True)) as store:
        await store.users()  # opens it
        damaged = await asyncio.to_thread(lambda: list(damaged_in(store.space)))
        await asyncio.to_thread(_quarantine, store, folder, damaged)
        await store.scrub()  # leaves no damaged segment behind
    lost = f"; {len(damaged)} records were lost" if damaged else ""
    return f"copied the damaged files to {aside} and went on with what is intact{lost}"


def _copied_aside(folder: Path) -> Path:
    """Copy everything but the quarantine, durably; free nothing before that."""
    with FolderLock(folder):
        aside = _new(folder, "files")
        for part in ("journal", "checkpoints", "cold"):
            if (folder / part).is_dir():
                shutil.copytree(folder / part, aside / part)
        _sync_files(aside)
    return aside


async def _set_checkpoints_aside(folder: Path) -> str:
    """Copy damaged checkpoints, recover without them, write a new one, and remove them."""
    aside = await asyncio.to_thread(_copy_damaged, folder)
    async with SpaceStore(folder) as store:
        await asyncio.to_thread(lambda: store.space.checkpoint())
    await asyncio.to_thread(_remove_damaged, folder)
    return f"moved damaged checkpoints to {aside}, and wrote a new one"


def _copy_damaged(folder: Path) -> Path:
    with FolderLock(folder):
        aside = _new(folder, "checkpoints")
        for path in _damaged_images(folder):
            shutil.copy(path, aside / path.name)
        _sync_files(aside)
    return aside


def _remove_damaged(folder: Path) -> None:
    with FolderLock(folder):
        for path in _damaged_images(folder):
            path.unlink()
        sync_folder(folder / "checkpoints")


def _damaged_images(folder: Path) -> list[Path]:
    damaged = []
    for path in sorted((folder / "checkpoints").glob("*.image")):
        try:
            with Image(path):
                pass
        except ImageTooNew:
            raise
        except CorruptData:
            damaged.append(path)
    return damaged


# -- contents --------------------------------------------------------------------------------------


async def _repair_contents(
    store: Store, found: Examination, embedder: Embedder | None
) -> list[str]:
    done: list[str] = []
    if "quarantine" in found.remedies and isinstance(store, SpaceStore):
        damaged = await asyncio.to_thread(lambda: list(damaged_in(store.space)))
        where = _home_of(store)
        await asyncio.to_thread(_quarantine, store, where, damaged)
        done.append(f"moved {len(damaged)} unreadable records to {where / QUARANTINE}")
    if "retry" in found.remedies:
        done.append(f"started {await _retry(store)} derivation jobs over")
    if "embed" in found.remedies and embedder is not None and isinstance(store, KeepsVectors):
        done.append(f"embedded {await _embed(store, embedder)} memories")
    if "catch up" in found.remedies and store.erasures is not None:
        for backup in store.erasures.backups():
            if await asyncio.to_thread(backup.is_dir):
                await asyncio.to_thread(store.erasures.copy_to, backup)
        done.append("told the backups of all erasures")
    return done


def _home_of(store: SpaceStore) -> Path:
    folder = folder_of(store)
    if folder is not None:
        return folder
    opened = store.space.engine.folder
    if opened is None:
        raise InvalidInput("this space has no folder to copy damaged records to; open it in one")
    return opened.path


def _quarantine(store: SpaceStore, folder: Path, damaged: list[DamagedObject]) -> None:
    """Copy what is left of objects, durably, and only then free them."""
    if not damaged:
        return
    aside = _new(folder, "records")
    space = ObjectHandles(store.space)
    for each in damaged:
        with space.lock:
            data = space.raw(each.handle) if space.is_living(each.handle) else None
        note = msgspec.json.encode(each._asdict())
        write_atomic(aside / f"{each.seq}.json", note)
        write_atomic(aside / f"{each.seq}.bytes", b"" if data is None else data)
    with space.lock:
        living = [each.handle for each in damaged if space.is_living(each.handle)]
        if living:
            space.free(living, "damaged")
        lsn = space.last_lsn
    store.space.engine.wait_for(lsn)


async def _retry(store: Store) -> int:
    jobs, done = Jobs(store), 0
    async for _, job, _ in jobs_in(store):
        if job.state.is_given_up:
            state = change(job.state, attempts=0, is_given_up=False)
            done += await jobs.revise(job, state) is not None
    return done


async def _embed(store: Store, embedder: Embedder) -> int:
    assert isinstance(store, KeepsVectors)
    keeper, done = VectorKeeper(store, embedder), 0
    async for user in users_of(store):
        async for texts in texts_in(store, user):
            missing = keeper.missing(texts, await keeper.known(user, texts))
            for start in range(0, len(missing), _EMBEDDED_AT_ONCE):
                await _embed_some(keeper, user, missing[start : start + _EMBEDDED_AT_ONCE])
            done += len(missing)
    return done


async def _embed_some(keeper: VectorKeeper, user: str, texts: list[RecordText]) -> None:
    made = await asyncio.to_thread(embed_texts, keeper.embedder, [each.text for each in texts])
    await keeper.keep(user, dict(zip(texts, made, strict=True)))


# -- setting aside ---------------------------------------------------------------------------------


def _new(folder: Path, what: str) -> Path:
    """Create a folder in the quarantine."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for number in range(1000):
        aside = folder / QUARANTINE / f"{stamp}-{what}-{number}"
        if not aside.exists():
            aside.mkdir(parents=True)
            sync_folder(aside.parent)
            sync_folder(folder)
            return aside
    raise InvalidInput(f"{folder / QUARANTINE} is full of folders of this second; try again")


def _sync_files(folder: Path) -> None:
    for path in folder.glob("**/*"):
        if path.is_dir():
            sync_folder(path)
            continue
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    sync_folder(folder)
