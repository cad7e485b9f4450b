"""Workers in processes of their own: they survive the studio, are found again, and stop on SIGINT."""

import os
import signal
import subprocess
import sys
import time

import pytest
from stage import confirmed, planned, prepared, spent

from sidelight.studio import jobs, store, worker
from sidelight.studio.jobs import Job, Jobs, Phase, State
from sidelight.studio.process import Process


def until(is_so, seconds=90):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_a_process_is_known_by_its_number_and_its_start():
    own = Process.own()
    assert own.is_alive
    assert own.is_here
    assert not Process(host=own.host, pid=own.pid, started="another moment").is_alive
    assert not Process(host=own.host, pid=2**22 + 7, started=own.started).is_alive
    elsewhere = Process(host="another machine", pid=own.pid, started="?")
    assert elsewhere.is_alive
    assert not elsewhere.is_here


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_process_that_has_ended_and_was_not_asked_after_is_dead():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        alive = Process(host=Process.own().host, pid=child.pid, started=_started(child.pid))
        assert alive.is_alive
        child.kill()
        until(lambda: not alive.is_alive)  # a zombie, until somebody waits for it
    finally:
        child.kill()
        child.wait()
    assert not alive.is_alive


def _started(pid):
    from sidelight.studio import process

    return process._started(pid)


def test_progress_is_told_phase_by_phase(tmp_path):
    told = worker.Told(tmp_path)
    with told.phase("read"):
        told.step("half", share=0.5)
        with told.phase("within"):
            told.step("x" * 1000 + "\n", share=7.0)
            told.turn("fit")
    for number in range(60):
        with told.phase(f"phase {number}"):
            pass
    told.ended("done", "", ["a", "a", "b"])

    state = store.read(State, tmp_path / "state.json")
    assert state.status == "done"
    assert state.remarks == ("a", "b")
    assert len(state.phases) == 40
    assert all(phase.is_over and phase.share == 1.0 for phase in state.phases)
    assert (tmp_path / "state.json").stat().st_mode & 0o077 == 0


def test_a_phase_that_is_open_is_told_of_however_many_come_within_it(tmp_path):
    told = worker.Told(tmp_path)
    with told.phase("release"):
        for number in range(100):
            with told.phase(f"count {number}"):
                told.step("counting", share=0.5)
            told.step(f"round {number}", share=number / 100)
    told.ended("done", "", [])

    state = store.read(State, tmp_path / "state.json")
    assert [phase.name for phase in state.phases] == ["release", *(f"count {n}" for n in range(61, 100))]
    assert state.phases[0].what == "round 99"
    assert all(phase.is_over for phase in state.phases)


def test_an_unexpected_error_of_a_worker_does_not_say_its_text(stage, monkeypatch):
    from sidelight.studio import tasks

    curator = prepared(stage)

    def fails(*_):
        raise ValueError("4711 is somebody's value")

    monkeypatch.setitem(tasks.TASKS, "check", fails)
    curator.post("/p/people/schema/check")
    assert stage.work() == [1]

    page = curator.get("/p/people/schema").text
    assert "ValueError" in page
    assert "4711" not in page


def test_few_jobs_are_kept_and_few_run_at_once(stage, monkeypatch):
    monkeypatch.setattr(jobs, "_KEPT", 3)
    place = stage.studio.create("People")
    at_work = Jobs(place)
    for _ in range(4):
        at_work.start("check", "Ada", private="x.csv")
    with pytest.raises(jobs.InputError, match="under way"):
        at_work.start("check", "Ada", private="x.csv")
    for job in at_work.all():
        store.write(job.folder / "state.json", State(status="refused", phases=(Phase(name="x"),)))
    at_work.start("check", "Ada", private="x.csv")

    assert len(list(at_work.all())) == 4


def test_a_worker_that_never_starts_is_given_up(stage, monkeypatch):
    place = stage.studio.create("People")
    job = Jobs(place).start("check", "Ada", private="x.csv")
    assert job.state().status == "starting"
    os.utime(job.folder, (0, 0))

    assert job.state().status == "died"
    assert not job.cancel()


def test_a_worker_that_begins_when_it_may_be_taken_for_dead_does_nothing(stage):
    place = stage.studio.create("People")
    job = Jobs(place).start("check", "Ada", private="x.csv")
    late = time.time() - jobs.STARTS_WITHIN + 5
    os.utime(job.folder, (late, late))
    assert job.state().status == "starting"

    assert stage.work() != [0]

    assert not (job.folder / "state.json").exists()


@pytest.mark.parametrize("name", ["../x", "", ".", "a/b", "20260101-000000-000000-abcd", "é\0"])
def test_other_names_are_no_jobs(stage, name):
    assert Jobs(stage.studio.create("People")).get(name) is None


# In real processes -----------------------------------------------------------------------------------

SLOWLY = """
import sys, time
import sidelight.curator.journal as journal
write = journal.Journal.append
def slow(self, event, output, ticket):
    write(self, event, output, ticket)
    time.sleep(0.7)
journal.Journal.append = slow
from pathlib import Path
from sidelight.studio import worker
sys.exit(worker.main(Path(sys.argv[1])))
"""


@pytest.fixture
def slow_workers(monkeypatch):
    """Real processes that take their time between two answers; those still at work are ended."""
    started = []

    def spawn(folder, home):
        nowhere = subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", SLOWLY, str(folder)]
        started.append(
            subprocess.Popen(
                command, cwd=home, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
        )

    yield lambda: monkeypatch.setattr(jobs, "spawn", spawn)
    for child in started:
        child.kill()
        child.wait()


def running(stage):
    return next(Jobs(stage.place()).all("release"))


@pytest.fixture
def under_way(stage, slow_workers):
    curator = prepared(stage)
    planned(curator)
    slow_workers()
    curator.post("/p/people/release", confirmed(curator))
    job = running(stage)
    until(lambda: any(phase.name == "mst" and phase.what for phase in job.state().phases))
    return curator, job


@pytest.mark.slow
def test_a_run_survives_the_studio_and_is_found_again(stage, under_way):
    curator, job = under_way
    restarted = stage.again()
    again = restarted.browser(role=None)
    again.client.cookies = curator.client.cookies

    assert "The release is under way" in again.get("/p/people/release").text
    told = again.get(f"/p/people/jobs/{job.id}").json()
    assert told["status"] == "running"
    assert [phase["name"] for phase in told["phases"]][:2] == ["plan", "read"]
    until(lambda: Job(job.folder, job.request).is_over)
    assert "Released" in again.get("/p/people/release").text
    assert spent(stage) == 1


@pytest.mark.slow
def test_a_run_is_stopped_from_the_page_and_resumed(stage, under_way):
    curator, job = under_way
    assert "said=cancelling" in curator.post("/p/people/release/cancel", {"plan": "1"}).headers["location"]
    until(lambda: job.is_over)

    assert job.state().status == "cancelled"
    page = curator.get("/p/people/release").text
    assert "You stopped the run" in page
    assert "Resume the release" in page
    curator.post("/p/people/release", confirmed(curator))
    until(lambda: running(stage).is_over)
    assert "Released" in curator.get("/p/people/release").text
    assert spent(stage) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_is_seen_to_be_dead_at_once(stage, under_way):
    curator, job = under_way
    os.kill(job.state().process.pid, signal.SIGKILL)
    until(lambda: job.is_over)

    assert job.state().status == "died"
    assert "The worker was killed" in curator.get("/p/people/release").text
    curator.post("/p/people/release", confirmed(curator))
    until(lambda: running(stage).is_over)
    assert "Released" in curator.get("/p/people/release").text
    assert spent(stage) == 1


@pytest.mark.slow
def test_a_second_worker_of_one_plan_is_kept_out_by_the_journal(stage, under_way):
    _, job = under_way
    second = Jobs(stage.place()).start("release", "Ada Lovelace", plan="1")
    until(lambda: second.is_over)

    assert second.state().status == "refused"
    assert "another process is running" in second.state().message
    until(lambda: job.is_over)
    assert job.state().status == "done"
    assert spent(stage) == 1


@pytest.mark.slow
def test_the_worker_itself_runs_and_takes_no_module_from_the_project(stage, monkeypatch):
    """The real command, with a module of the project's that would be taken for numpy."""
    curator = prepared(stage)
    place = stage.place()
    (place.path / "numpy.py").write_text("raise SystemExit(9)\n")
    monkeypatch.undo()
    curator.post("/p/people/schema/check")
    job = next(Jobs(place).all("check"))
    until(lambda: job.is_over)

    assert job.state().status == "done", job.state()
    for child in jobs._children:
        child.wait()
    jobs._reap()
    assert jobs._children == []
