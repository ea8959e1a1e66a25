"""`asyncbench view` of a folder above several sweeps lists them. A page says how old its figures are."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from asyncbench.page.live.sweeps import MOST_OPEN, LiveSweeps
from asyncbench.store.folder import Store
from tests.page.conftest import PHONE, Opened, served
from tests.page.live.conftest import LiveClient
from tests.page.live.test_following import keep
from tests.page.made import problems_of
from tests.processes import until
from tests.reports.answered import Asked, folder_of

pytestmark = pytest.mark.long
AGE = "document.getElementById('age').textContent"


@pytest.fixture(scope="module")
def above(tmp_path_factory):
    """A folder above three sweeps, one of which cannot be read."""
    results = tmp_path_factory.mktemp("above") / "results"
    folder_of(results / "night", [Asked(model="mini", outcomes="+" * 20 + "-" * 5)])
    folder_of(results / "a group" / "50 % <b>", [Asked(model="big", outcomes="+" * 9)])
    (results / "torn").mkdir()
    (results / "torn" / "manifest.json").write_text("{")
    return results


def test_a_click_opens_a_sweep_and_there_is_a_way_back(above, tab):
    with served(above) as address:
        listed = Opened(tab(), address.partition("?")[0])
        page = listed.page
        page.goto(address)
        page.wait_for_selector("tr.unreadable")
        assert page.locator("tbody th").all_inner_texts() == ["a group/50 % <b>", "night", "torn"]
        assert page.locator("tr.unreadable a").count() == 0
        assert "Restore it from a backup" in page.locator("tr.unreadable").inner_text()
        for name, model in (("a group/50 % <b>", "big"), ("night", "mini")):
            page.get_by_role("link", name=name).click()
            page.wait_for_selector("html[data-drawn]")
            assert model in page.locator("#view").inner_text()
            page.reload()
            page.wait_for_selector("html[data-drawn]")
            page.get_by_role("link", name="Answers").click()
            page.wait_for_selector("#trial-list li")
            page.get_by_role("link", name="All sweeps").click()
            page.wait_for_selector("tr.unreadable")
        assert listed.told == []
        page.close()


def test_the_list_fits_a_phone(above, tab):
    with served(above) as address:
        page = tab(**PHONE)
        page.goto(address)
        page.wait_for_selector("tr.unreadable")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.close()


def test_a_sweep_is_counted_again_only_where_it_has_changed(above, tmp_path):
    results = shutil.copytree(above, tmp_path / "results")
    sweeps = LiveSweeps(above=results)
    first = sweeps.listed()
    assert (first["uncounted"], [row["cells"][0] for row in first["rows"]]) == (
        0,
        ["a group/50 % <b>", "night", "torn"],
    )
    kept = dict(sweeps._rows)
    with Store.open(results / "night", sweep="s"):
        again = sweeps.listed()
    assert again["rows"][0]["cells"][0] == "night"
    assert again["rows"][0]["cells"][-1] == "running"
    changed = {path.name for path, row in sweeps._rows.items() if row is not kept[path]}
    assert changed == {"night"}
    (results / "torn" / "manifest.json").unlink()
    assert [row["cells"][0] for row in sweeps.listed()["rows"]] == ["a group/50 % <b>", "night"]


def test_few_sweeps_are_open_at_once(tmp_path):
    for n in range(MOST_OPEN + 1):
        folder_of(tmp_path / f"s{n}", [Asked(model="mini", outcomes="+-")])
    with served(tmp_path) as address:
        server = LiveClient(address)
        versions = [server.get(f"/sweep/s{n}/now").value["version"] for n in range(MOST_OPEN + 1)]
        assert len(set(versions)) == MOST_OPEN + 1
        assert server.get("/sweep/s4/now").value["version"] == versions[4]  # it is still open
        assert server.get("/sweep/s0/now").value["version"] != versions[0]  # it was closed, and opened again
        assert server.get("/sweep/s9/now").status == 404
        assert server.get("/sweep/s0/now", stranger=True).status == 403


def test_the_page_says_how_old_its_figures_are(tmp_path, tab):
    folder = tmp_path / "night"
    with Store.open(folder, sweep="night") as store:
        problems = [*problems_of(folder)]
        keep(store, problems, first=0, trials=20)
        with served(folder) as address:
            live = Opened(tab(), address.partition("?")[0]).goto(address)
            live.until(f"{AGE} === 'live'")
            store.close()
            live.until(f"{AGE} === 'up to date'")
        live.until(f"{AGE}.startsWith('figures of ')")  # the server has ended
        live.page.close()


def test_a_file_says_how_old_it_is_when_it_is_opened(night, tab):
    page = tab()
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=3))
    opened = Opened(page).open(night)
    opened.until(f"{AGE} === 'figures of 3 days ago'")
    page.close()


def test_a_server_tells_when_the_folder_has_changed_since_its_figures(tmp_path):
    folder = folder_of(tmp_path / "night", [Asked(model="mini", outcomes="+-")])
    with served(folder) as address:
        server = LiveClient(address)
        until(lambda: server.get("/now").value["current"])
        assert server.block("head").value["made_at"] <= server.get("/now").value["clock"]
