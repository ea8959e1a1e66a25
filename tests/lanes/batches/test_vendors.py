"""Those who imitate OpenAI's batches: each as its documents have it, from a sweep to its answers."""

import pytest

from asyncbench.lanes.batches.ledger import Step
from asyncbench.providers.endpoints import known_endpoints
from asyncbench.run.summary import Exit

VENDORS = ("azure", "groq")
KEY = {"KEY": "sk-simulated"}
WITHOUT = ("without", "forbidding")  # 404 and 405 for all that is about batches


@pytest.fixture
def vendor_night(night, server):
    def made(vendor, *faults, **keys):
        asked = night(vendor, *faults, **keys)
        asked.raw["models"][0] |= {"base_url": f"{server.url}/{vendor}/v1", "key_env": "KEY"}
        return asked

    return made


def test_every_row_that_is_spoken_and_has_no_recording_is_played():
    rows = {name for name, row in known_endpoints().items() if row.batch_support == "unproven"}
    assert rows - {"http", "google"} == set(VENDORS)  # Gemini's are played in tests/providers/google


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_sweep_comes_back_whole_and_each_answer_is_paid_once(vendor_night, vendor):
    asked = vendor_night(vendor, batch={"max_requests": 8})
    assert asked.run(limit=10, env=KEY).exit is Exit.COMPLETE, asked.screen.lines
    assert asked.answers == asked.undisturbed(limit=10, env=KEY)
    assert asked.billed == dict.fromkeys(asked.answers, 1)
    assert {part.step for part in asked.parts} == {Step.CLEANED}
    assert {row["mode"] for row in asked.attempts} == {"batch"}
    assert any(f"batches of {vendor} are built by documents" in line for line in asked.screen.lines)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_whose_create_was_not_answered_is_found_again(vendor_night, vendor):
    asked = vendor_night(vendor, "create_reply_dropped=#1")
    assert asked.run(limit=6, env=KEY).exit is Exit.COMPLETE, asked.screen.lines
    assert any("found batch" in line for line in asked.screen.lines)
    assert len(asked.truth) == len(asked.parts) == 1
    assert asked.billed == dict.fromkeys(asked.answers, 1)


def without_batches(night, server, place, **keys):
    asked = night("http", batch={"max_requests": 2, **keys})
    asked.raw["models"][0] |= {"base_url": f"{server.url}/{place}/v1", "key_env": "KEY"}
    return asked


@pytest.mark.parametrize("place", WITHOUT)
def test_where_no_batch_api_answers_one_is_sought_once_and_trials_go_their_fallback(night, server, place):
    asked = without_batches(night, server, place)
    assert asked.run(limit=6, env=KEY).exit is Exit.COMPLETE, asked.screen.lines
    assert [part.step for part in asked.parts] == [Step.NEVER_CREATED]
    assert [row["mode"] for row in asked.attempts] == 6 * ["realtime"]
    [said] = [line for line in asked.screen.lines if "no batch API answers" in line]
    assert "in real time, at the full price" in said


@pytest.mark.parametrize("place", WITHOUT)
def test_where_anthropics_batches_are_not_there_the_model_is_not_blamed(night, server, place):
    asked = night("simulated-anthropic", batch={"max_requests": 2})
    asked.raw["models"][0] |= {"base_url": f"{server.url}/{place}"}
    assert asked.run(limit=6).exit is Exit.COMPLETE, asked.screen.lines
    assert [row["mode"] for row in asked.attempts] == 6 * ["realtime"]
    [said] = [line for line in asked.screen.lines if "no batch API answers" in line]
    assert "in real time, at the full price" in said
    assert not [line for line in asked.screen.lines if "does not know the model" in line]


def test_without_a_batch_api_and_a_fallback_the_trials_stay_open(night, server):
    asked = without_batches(night, server, "without", fallback="none")
    assert asked.run(limit=6, env=KEY).exit is Exit.UNFINISHED
    assert (asked.attempts, len(asked.parts)) == ([], 1)
    assert any("stay open" in line for line in asked.screen.lines)


def test_models_of_one_key_find_out_together_that_there_are_no_batches(night, server):
    asked = without_batches(night, server, "without")
    other = {**asked.raw["models"][0], "alias": "other", "model": f"http/{asked.model}-other"}
    asked.raw["models"].append(other)
    assert asked.run(limit=6, env=KEY).exit is Exit.COMPLETE, asked.screen.lines
    assert {row["mode"] for row in asked.attempts} == {"realtime"}
    assert sum("no batch API answers" in line for line in asked.screen.lines) == 2


@pytest.mark.long
def test_the_id_of_an_organization_does_not_get_to_the_disk(night):
    asked = night("simulated", "pool_full=#1:600")
    asked.run(limit=4)
    ledger = b"".join(path.read_bytes() for path in asked.out.glob("batches/ledger/*"))
    assert b"Enqueued token limit" in ledger
    assert b"org-simulated" not in ledger


@pytest.mark.long
def test_answers_whose_id_is_never_told_are_found_by_the_name_of_their_file(night):
    asked = night("simulated", "output_late=#1:9999999")
    assert asked.run(limit=6).exit is Exit.COMPLETE, asked.screen.lines
    assert asked.billed == dict.fromkeys(asked.answers, 1)


def test_an_upload_that_is_refused_for_good_stops_the_model_with_its_reason(night):
    asked = night("simulated", play={"max_bytes": 100})
    summary = asked.run(limit=6)
    assert summary.exit is Exit.UNFINISHED
    [model] = summary.models.values()
    assert "no file of requests could be uploaded" in model.suspended
    assert (asked.attempts, asked.truth) == ([], [])
