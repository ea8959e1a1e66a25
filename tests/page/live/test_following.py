"""A server of `asyncbench view` follows a sweep that is running."""

import pytest

from asyncbench.store.folder import Store
from tests.page.conftest import served
from tests.page.live.conftest import LiveClient
from tests.page.live.test_answers_served import ids_by_sql, ids_served
from tests.page.made import events, problems_of, trial_of
from tests.processes import until
from tests.store import made
from tests.store.made import AT

pytestmark = pytest.mark.long


def keep(store, problems, *, first, trials, model="large", right=True):
    for n in range(first, first + trials):
        problem = problems[n % len(problems)]
        reply = problem.expected if right else "7" + problem.expected
        made.keep(store, *events(trial_of(n, problem, model=model), reply, at=AT + n / 4))


def trials_in_all(server):
    return server.block("head").value["trials_in_all"]


def test_it_follows_a_sweep_until_its_end(tmp_path):
    folder = tmp_path / "night"
    with Store.open(folder, sweep="night") as store:
        problems = [*problems_of(folder)]
        keep(store, problems, first=0, trials=20)
        with served(folder) as address:
            server = LiveClient(address)
            assert trials_in_all(server) == 20
            before = server.get("/now").value["version"]
            until(lambda: server.get("/now").value["running"])
            keep(store, problems, first=20, trials=15, right=False)
            until(lambda: trials_in_all(server) == 35)
            assert server.get("/now").value["version"] != before
            until(lambda: server.get("/now").value["trials"]["done"] == 35)
            assert ids_served(server, "outcome=wrong") == ids_by_sql(folder, "outcome = 'wrong'")
            store.close()
            until(lambda: not server.get("/now").value["running"])
            assert trials_in_all(server) == 35
