"""Workers that are killed, stopped and restarted at random: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable

import pytest

from collector_assets import pages
from collector_assets.contract import replace
from collector_assets.demo.arrivals import violations
from collector_tests.fixtures.workers import SOURCE_FILE, WINDOW, Crew, kill

GAP, SLOTS = 0.01, 4
SHOP_600 = (
    f'name="killed", start_urls=("http://killed.localhost:8765/catalogue/page-1.html",), '
    f"budget=Budget(gap=seconds({GAP}), slots={SLOTS}), in_flight=2, capacity=200, max_attempts=10, "
    f"lease=seconds(3), total_timeout=seconds(2), read_timeout=seconds(2), connect_timeout=seconds(2)"
)


def test_killed_workers_lose_nothing(crew: Callable[[str], Crew]) -> None:
    """Rules 1, 3, 4, 10: four workers, each killed with -9 at random moments and restarted."""
    _survive(crew(SHOP_600), books=120, kills=4, seed=1)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10))
def test_killed_workers_lose_nothing_in_600_books(crew: Callable[[str], Crew], seed: int) -> None:
    _survive(crew(SHOP_600), books=600, kills=16, seed=seed)


def _survive(crew: Crew, *, books: int, kills: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  repeatable on purpose
    crew.site.switch(books=books)
    crew.open()
    _work_under_fire(crew, kills=kills, chance=chance)
    _finish(crew)
    crew.read()
    _nothing_lost(crew, books)
    _budget_kept(crew)


def _work_under_fire(crew: Crew, *, kills: int, chance: random.Random) -> None:
    """Four workers; whoever's hour has come is killed in the middle of work and replaced."""
    alive = {crew.work(): _hour(chance) for _ in range(4)}
    while kills and crew.status().counts.to_fetch:
        for worker, hour in list(alive.items()):
            if worker.poll() is None and time.monotonic() < hour:
                continue
            kills -= worker.poll() is None
            kill(worker)
            del alive[worker]
            alive[crew.work()] = _hour(chance)
        time.sleep(0.02)
    crew.kill_all()
    time.sleep(5)
    assert crew.left_over() == []


def _hour(chance: random.Random) -> float:
    """A worker needs about two seconds before its first request."""
    return time.monotonic() + chance.uniform(1.5, 5)


def _finish(crew: Crew) -> None:
    last = crew.work()
    said, complaints = last.communicate(timeout=200)
    assert last.returncode == 0, complaints
    assert json.loads(said)["ending"] == "drained"
    own = f"%-{last.pid}-%"
    assert crew.scalar("SELECT count(*) FROM budget_slots WHERE holder LIKE %s", own) == 0, "it gave its slots back"


def _nothing_lost(crew: Crew, books: int) -> None:
    status = crew.status()
    counts = status.counts
    listings = books // 20
    assert (counts.planned, counts.done, counts.failed) == (books + listings, books + listings, 0)
    assert counts.planned == counts.done + counts.failed + counts.skipped + counts.outstanding
    good = crew.scalar("SELECT count(*) FROM pages WHERE outcome = 'ok'")
    assert good == books + listings, "one good page per request: done exactly once"
    assert crew.scalar("SELECT max(attempts - max_attempts) FROM requests") <= 0
    # A slot of the dead is free from then on, and loses its holder's name when somebody asks for one.
    assert crew.scalar("SELECT count(*) FROM budget_slots WHERE back_at > clock_timestamp()") == 0
    for kind in ("listing", "detail"):
        _all_bytes_there(crew, kind)


def _all_bytes_there(crew: Crew, kind: str) -> None:
    """Rule 10: no page row without its bytes (reading checks the digest)."""
    with crew.database.transaction() as connection:
        stored = pages.for_reading(
            connection, source=crew.source.name, window_start=WINDOW.start, kinds=[kind], limit=10_000
        )
    archive = crew.archive
    for page in stored:
        assert archive.read(page.location).status == 200


def _budget_kept(crew: Crew) -> None:
    """Rules 7 and 8, by the site's own log; a killed client's response ends a moment late, hence the tolerance."""
    arrivals = crew.site.arrivals(host="killed.localhost")
    assert violations(arrivals, gap=GAP, slots=SLOTS, tolerance=0.002) == []


RACE = (
    'name="raced", start_urls=("http://raced.localhost:8765/catalogue/page-1.html",), '
    "budget=Budget(gap=seconds(0), slots=20), in_flight=20, max_attempts=10, "
    "lease=seconds(2), total_timeout=seconds(6), read_timeout=seconds(6), connect_timeout=seconds(2)"
)


def test_a_stopped_worker_is_refused_when_it_comes_back(crew: Callable[[str], Crew]) -> None:
    """Rule 4: stopped past its lease with twenty answers on the way while another finishes: 20 of 20 refused."""
    # Mutation: without the fence and the expiry in the WHERE of sql/frontier.sql's finish its answers are applied.
    team = crew(RACE)
    team.site.switch(books=20)
    team.site.misbehave("delay", prefix="/catalogue/", arg="2.0", host="raced.localhost")
    team.open()
    first = team.work()
    leased = "SELECT count(*) FROM requests WHERE kind = 'detail' AND state = 'leased'"
    team.wait_until(lambda: team.scalar(leased) == 20 and team.site.state()["connections"] > 20)
    first.send_signal(19)  # SIGSTOP
    fences = team.scalar("SELECT min(fence) FROM requests WHERE kind = 'detail'")
    team.site.behave()
    second = team.work()
    said, complaints = second.communicate(timeout=60)
    assert second.returncode == 0, complaints
    assert json.loads(said)["outcomes"] == {"ok": 20}
    first.send_signal(18)  # SIGCONT
    said, complaints = first.communicate(timeout=60)
    assert json.loads(said)["refused"] == 20, complaints
    assert team.status().row.late_results == 20
    assert team.scalar("SELECT count(*) FROM pages WHERE kind = 'detail'") == 20
    assert team.scalar("SELECT min(fence) FROM pages WHERE kind = 'detail'") > fences, "only the second worker's pages"


PACED = (
    'name="paced", start_urls=("http://paced.localhost:8765/catalogue/page-1.html",), '
    "budget=Budget(gap=seconds(0.3)), {more}"
)


def test_ctrl_c_ends_a_collected_run_with_its_exit_code(crew: Callable[[str], Crew]) -> None:
    """What was under way is given back, and the shell hears that it was interrupted."""
    team = crew(PACED.format(more="capacity=100"))
    run = team.start("collect", "paced", WINDOW.key)
    team.wait_until(lambda: team.scalar("SELECT count(*) FROM pages") >= 2)
    run.send_signal(signal.SIGINT)
    said, complaints = run.communicate(timeout=60)
    assert run.returncode == 130, said + complaints
    assert team.scalar("SELECT count(*) FROM requests WHERE state = 'leased'") == 0
    assert team.scalar("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == 0


def test_late_work_is_refused_where_the_source_says_so(crew: Callable[[str], Crew]) -> None:
    """Rule 22: also for one more pair of hands."""
    team = crew(PACED.format(more="grace=seconds(0)"))
    team.open()
    team.source = replace(team.source, late="refuse")
    (team.folder / "sources" / "changed_shop_0.py").write_text(
        SOURCE_FILE.format(changes=PACED.format(more='grace=seconds(0), late="refuse"'))
    )
    worker = team.work()
    _, complaints = worker.communicate(timeout=60)
    assert worker.returncode == 4, complaints
    assert "late" in complaints
    assert team.site.arrivals(host="paced.localhost") == []
