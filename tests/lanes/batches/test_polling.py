"""A batch that cannot be looked at holds up no other."""

import pytest

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.providers.openai.batches import OpenAIBatches
from asyncbench.providers.sdk_batches import SdkBatches
from asyncbench.run.summary import Exit
from tests.tiers import first_rows
from tests.world.batches import VENDORS

OPENAI, _ = VENDORS


def refuse_the_first(asked, patch, kind, status):
    """Let the first batch be missing from lists, and be refused where it is looked at."""
    retrieve, recent = OpenAIBatches.retrieve, SdkBatches.recent

    def first():
        return next((part.batch_id for part in asked.parts if part.batch_id), None)

    async def retrieved(self, batch_id):
        if batch_id == first():
            raise ProviderError(kind, "not this one", http_status=status)
        return await retrieve(self, batch_id)

    async def listed(self, since):
        return [batch for batch in await recent(self, since) if batch.id != first()]

    patch.setattr(OpenAIBatches, "retrieve", retrieved)
    patch.setattr(SdkBatches, "recent", listed)


@pytest.mark.long
def test_a_batch_that_always_fails_starves_no_other(night, monkeypatch):
    asked = night(OPENAI, batch={"max_requests": 5})
    with monkeypatch.context() as patch:
        refuse_the_first(asked, patch, ErrorKind.SERVER_ERROR, 500)
        asked.dies_after(6000, limit=15)
    assert len(asked.answers) == 10
    assert sum("cannot be looked at" in line for line in asked.screen.lines) == 1
    asked.completes(limit=15)


@pytest.mark.long
def test_a_batch_that_is_forbidden_blinds_no_model(night, monkeypatch):
    asked = night(OPENAI, batch={"max_requests": 5})
    with monkeypatch.context() as patch:
        refuse_the_first(asked, patch, ErrorKind.AUTH, 403)
        assert asked.run(limit=15).exit is Exit.UNFINISHED
    assert len(asked.answers) == 10
    asked.completes(limit=15)


@pytest.mark.long
@pytest.mark.parametrize("vendor", first_rows(1, VENDORS))
def test_a_batch_that_a_list_never_shows_as_ended_is_taken_by_its_own_word(night, vendor):
    asked = night(vendor, "list_behind=1")
    asked.completes(limit=6)
    assert len(asked.answers) == 6
    (said,) = [line for line in asked.screen.lines if "the provider's list has batch" in line]
    assert asked.parts[0].batch_id in said


@pytest.mark.long
def test_a_batch_that_never_ends_is_told_after_a_day(night):
    asked = night(OPENAI, "slow_start=1:9e9", "never_expires=1")
    asked.dies_after(30 * 3600, limit=6)
    (said,) = [line for line in asked.screen.lines if "should have ended within a day" in line]
    assert said.endswith(f"asyncbench cancel {asked.out}.")
