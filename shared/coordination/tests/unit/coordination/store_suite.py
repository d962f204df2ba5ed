"""What every document store does, whatever it keeps documents in: one suite for all.

Subclasses are named Test… and come with the fixture `store`, and `space`, a prefix that nothing is under.
"""

import asyncio

import pytest

from sluice_coordination import Leases, LeaseSettings, Semaphore
from sluice_coordination.document import MAX_BODY_BYTES, Version
from sluice_coordination.errors import ConflictError
from sluice_coordination.store import DocumentStore

RACERS = 8
ROUNDS = 5


class DocumentStoreSuite:
    async def test_what_is_put_is_got(self, store: DocumentStore, space: str) -> None:
        body = {"text": 'grüße \\ " \n\u2028', "numbers": [1, -2.5, 2**53, None, True], "inner": {"": {}, "a.b": []}}
        version = await store.put(f"{space}/a", body, None)
        found = await store.get(f"{space}/a")
        assert found is not None and found == (body, version)

    async def test_what_is_not_there_is_none(self, store: DocumentStore, space: str) -> None:
        assert await store.get(f"{space}/a") is None
        assert await store.under(f"{space}/") == {}

    async def test_a_document_is_created_once(self, store: DocumentStore, space: str) -> None:
        version = await store.put(f"{space}/a", {"n": 1}, None)
        with pytest.raises(ConflictError):
            await store.put(f"{space}/a", {"n": 2}, None)
        assert await store.get(f"{space}/a") == ({"n": 1}, version)

    async def test_only_the_version_that_is_there_is_replaced(self, store: DocumentStore, space: str) -> None:
        first = await store.put(f"{space}/a", {"n": 1}, None)
        second = await store.put(f"{space}/a", {"n": 2}, first)
        for wrong in (first, second._replace(number=second.number + 1), second._replace(number=0)):
            with pytest.raises(ConflictError):
                await store.put(f"{space}/a", {"n": 3}, wrong)
        assert await store.get(f"{space}/a") == ({"n": 2}, second)

    async def test_what_is_not_there_is_not_replaced(self, store: DocumentStore, space: str) -> None:
        version = await store.put(f"{space}/a", {}, None)
        await store.delete(f"{space}/a", version)
        with pytest.raises(ConflictError):
            await store.put(f"{space}/a", {}, version)
        assert await store.get(f"{space}/a") is None

    async def test_only_the_version_that_is_there_is_deleted(self, store: DocumentStore, space: str) -> None:
        first = await store.put(f"{space}/a", {"n": 1}, None)
        second = await store.put(f"{space}/a", {"n": 2}, first)
        with pytest.raises(ConflictError):
            await store.delete(f"{space}/a", first)
        await store.delete(f"{space}/a", second)
        assert await store.get(f"{space}/a") is None
        with pytest.raises(ConflictError):
            await store.delete(f"{space}/a", second)

    async def test_versions_rise_even_over_deletions(self, store: DocumentStore, space: str) -> None:
        versions: list[Version] = []
        for _ in range(3):
            versions.append(await store.put(f"{space}/a", {}, None))
            versions.append(await store.put(f"{space}/a", {}, versions[-1]))
            await store.delete(f"{space}/a", versions[-1])
        assert versions == sorted(set(versions))

    async def test_of_many_at_once_one_wins(self, store: DocumentStore, space: str) -> None:
        version: Version | None = None
        for number in range(ROUNDS):
            puts = [store.put(f"{space}/a", {"round": number, "by": by}, version) for by in range(RACERS)]
            ended = await asyncio.gather(*puts, return_exceptions=True)
            won = [by for by, end in enumerate(ended) if isinstance(end, Version)]
            assert len(won) == 1 and sum(isinstance(end, ConflictError) for end in ended) == RACERS - 1
            found = await store.get(f"{space}/a")
            assert found is not None and found.body == {"round": number, "by": won[0]}
            version = found.version

    async def test_a_list_has_what_is_under_the_prefix(self, store: DocumentStore, space: str) -> None:
        ids = [f"{space}/b/{name}" for name in ("2", "10", "a~", "a-b", "a.b", "a_b", "A")]
        versions = {id: await store.put(id, {"id": id}, None) for id in ids}
        for outside in (f"{space}/a/1", f"{space}/b", f"{space}/bb/1", f"{space}/c/1"):
            await store.put(outside, {}, None)
        found = await store.under(f"{space}/b/")
        assert list(found) == sorted(ids)
        assert found == {id: ({"id": id}, versions[id]) for id in ids}

    async def test_a_list_shows_every_write_before_it(self, store: DocumentStore, space: str) -> None:
        version: Version | None = None
        for number in range(ROUNDS):
            version = await store.put(f"{space}/a", {"n": number}, version)
            assert await store.under(f"{space}/") == {f"{space}/a": ({"n": number}, version)}
        assert version is not None
        await store.delete(f"{space}/a", version)
        assert await store.under(f"{space}/") == {}

    async def test_many_documents_are_listed(self, store: DocumentStore, space: str) -> None:
        ids = [f"{space}/{number:04}" for number in range(300)]
        for start in range(0, len(ids), 20):
            await asyncio.gather(*(store.put(id, {"id": id}, None) for id in ids[start : start + 20]))
        found = await store.under(f"{space}/")
        assert list(found) == ids and all(document.body == {"id": id} for id, document in found.items())

    async def test_what_is_read_belongs_to_the_reader(self, store: DocumentStore, space: str) -> None:
        given = {"list": [1]}
        await store.put(f"{space}/a", given, None)
        given["list"].append(2)
        found = await store.get(f"{space}/a")
        assert found is not None and found.body == {"list": [1]}
        found.body["list"].append(3)
        again = await store.get(f"{space}/a")
        assert again is not None and again.body == {"list": [1]}

    async def test_a_semaphore_lets_in_as_many_as_it_has_permits(self, store: DocumentStore, space: str) -> None:
        settings = LeaseSettings(lease_s=4 * store.timeout_s, margin_s=store.timeout_s)
        here, there = (Semaphore(Leases(store, settings), f"{space}/imports", 2) for _ in range(2))
        first, second = await here.try_acquire(), await there.try_acquire()
        assert first is not None and second is not None
        assert await here.try_acquire() is None and await there.try_acquire() is None
        await first.release()
        third = await there.try_acquire()
        assert third is not None and await here.try_acquire() is None
        for permit in (second, third):
            await permit.release()
        assert await store.under(f"{space}/") == {}

    @pytest.mark.parametrize("id", ["", "/a", "a/", "a//b", "a b", "ä", "a*", "a" * 401, "a\n"])
    async def test_other_ids_are_refused(self, store: DocumentStore, id: str) -> None:
        with pytest.raises(ValueError, match="id"):
            await store.put(id, {}, None)
        with pytest.raises(ValueError, match="id"):
            await store.get(id)

    async def test_too_large_a_body_is_refused(self, store: DocumentStore, space: str) -> None:
        with pytest.raises(ValueError, match="bytes"):
            await store.put(f"{space}/a", {"text": "x" * MAX_BODY_BYTES}, None)
        version = await store.put(f"{space}/a", {"text": "x" * (MAX_BODY_BYTES // 2)}, None)
        found = await store.get(f"{space}/a")
        assert found is not None and found.version == version and len(found.body["text"]) == MAX_BODY_BYTES // 2
