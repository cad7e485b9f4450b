"""One confirmed POST, one spend: whatever is reloaded, sent twice, killed, full or empty in between."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from stage import ASK, Browser, confirmed, planned, prepared, spent

from sidelight.curator.journal import Journal
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.studio import store
from sidelight.studio.jobs import Jobs, State
from sidelight.studio.plans import Plans
from sidelight.studio.process import Process


@pytest.fixture
def curator(stage):
    browser = prepared(stage)
    planned(browser)
    return browser


def ledger(stage):
    return SqlLedger.open(stage.place().path / "people.ledger")


def plan(stage):
    return Plans(stage.place()).latest()


def spend(browser, form):
    return browser.post("/p/people/release", form)


def interrupt_after(monkeypatch, outputs, stop):
    """Call ``stop`` once so many outputs are on disk."""
    append, kept = Journal.append, []

    def counting(journal, event, output, ticket):
        append(journal, event, output, ticket)
        kept.append(event)
        if len(kept) == outputs:
            stop()

    monkeypatch.setattr(Journal, "append", counting)


def test_a_confirmed_post_releases_once(curator, stage):
    form = confirmed(curator)
    assert spend(curator, form).status_code == 303
    assert stage.work() == [0]

    assert spent(stage) == 1
    assert plan(stage).stage() == "done"
    (run,) = ledger(stage).runs()
    assert run.approval.asked_by == "Ada Lovelace"
    assert run.approval.digest == plan(stage).made().digest
    assert not plan(stage).checkpoint.exists()


def test_looking_reloading_and_going_back_spend_nothing(curator, stage):
    for _ in range(3):
        assert curator.get("/p/people/release").status_code == 200
    assert not stage.pending
    form = confirmed(curator)
    spend(curator, form)
    assert stage.work() == [0]

    # Back, and the same form again; then reloading the POST.
    for _ in range(2):
        assert "said=used" in spend(curator, form).headers["location"]
    assert not stage.pending
    assert spent(stage) == 1


def test_two_tabs_two_people_and_two_studios_start_one_run(curator, stage):
    other = stage.again().browser("curator", "Grace Hopper")
    forms = [(browser, confirmed(browser)) for browser in (curator, curator, other)]
    assert len({form["number"] for _, form in forms}) == 1

    answers = [spend(browser, form).headers["location"] for browser, form in forms]

    assert sum("said=used" not in where for where in answers) == 1
    assert len(stage.pending) == 1
    stage.work()
    assert spent(stage) == 1


def test_fifty_clicks_at_once_start_one_run(curator, stage, monkeypatch):
    take = store.take

    def late(path, to):
        time.sleep(0.02)  # so that others look at the plan meanwhile
        return take(path, to)

    monkeypatch.setattr(store, "take", late)
    form, ready = confirmed(curator), threading.Barrier(8)
    person = stage.people.of(next(iter(curator.client.cookies.values())))
    frozen = [Plans(stage.again().place()).latest() for _ in range(8)]

    def click(one):
        ready.wait()
        return sum(one.spend(form["number"], form["digest"], person) is not None for _ in range(7))

    with ThreadPoolExecutor(8) as clicking:
        started = sum(clicking.map(click, frozen))

    assert started == 1
    assert len(stage.pending) == 1


def test_there_is_no_new_number_before_the_run_of_the_last_one_has_begun(curator, stage, monkeypatch):
    form, got, seen, start = confirmed(curator), [], [], Jobs.start
    looking = threading.Thread(target=lambda: got.append(plan(stage).spending_number()))

    def watched(*asked, **more):
        looking.start()
        looking.join(0.5)
        seen.extend(got)
        return start(*asked, **more)

    monkeypatch.setattr(Jobs, "start", watched)
    spend(curator, form)
    looking.join()

    assert (seen, got) == ([], [None])
    assert len(stage.pending) == 1


@pytest.mark.parametrize("change", ["number", "digest", "plan", "confirm", "token"])
def test_every_part_of_the_form_is_needed(curator, stage, change):
    form = confirmed(curator)
    if change == "confirm":
        del form["confirm"]
    elif change == "token":
        assert curator.post("/p/people/release", form, token="x").status_code == 403
        del form["confirm"]
    else:
        form[change] = {"number": "x" * 32, "digest": "0" * 64, "plan": "7"}[change]
    spend(curator, form)

    assert not stage.pending
    assert spent(stage) == 0


def test_the_number_of_an_older_plan_does_not_start_a_newer_one(curator, stage):
    old = confirmed(curator)
    planned(curator, epsilon="0.5")
    new = confirmed(curator)

    assert "said=used" in spend(curator, new | {"number": old["number"]}).headers["location"]
    assert not stage.pending


def test_while_a_run_is_under_way_there_is_no_number(curator, stage):
    spend(curator, confirmed(curator))
    job = next(Jobs(stage.place()).all("release"))
    store.write(job.folder / "state.json", State(status="running", process=Process.own()))

    page = curator.get("/p/people/release").text

    assert "The release is under way" in page
    assert 'name="number"' not in page
    assert plan(stage).spending_number() is None


def test_a_table_that_does_not_fit_costs_nothing_and_can_be_tried_again(curator, stage):
    private = stage.place().path / "private.csv"
    good = private.read_text()
    private.write_text(good + "F,1,attic\n")
    first = confirmed(curator)
    spend(curator, first)
    assert stage.work() == [2]

    page = curator.get("/p/people/release").text
    assert "Nothing was released, and nothing was spent" in page
    assert "attic" not in page
    assert spent(stage) == 0

    private.write_text(good)
    second = confirmed(curator)
    assert second["number"] != first["number"]
    spend(curator, second)
    assert stage.work() == [0]
    assert spent(stage) == 1


def test_a_ledger_that_was_exhausted_meanwhile_says_no(curator, stage):
    from commands import sidelight

    form = confirmed(curator)
    done = sidelight("release", "private.csv", "--schema", "schema.toml", "--ledger", "people.ledger",
                     "--epsilon", 0.97, "--workload", "1-way", "--mechanism", "mst", "--out", "elsewhere",
                     folder=stage.place().path)  # fmt: skip
    assert done.returncode == 0, done.said
    before = ledger(stage).spent

    spend(curator, form)
    assert stage.work() == [3]

    page = curator.get("/p/people/release").text
    assert "Nothing was released, and nothing was spent" in page
    assert "this release needs" in page.lower()
    assert ledger(stage).spent == before


def test_a_stopped_run_says_what_it_spent_and_resumes_without_paying_twice(curator, stage, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2, lambda: signal.raise_signal(signal.SIGINT))
        spend(curator, confirmed(curator))
        assert stage.work() == [130]

    assert plan(stage).stage() == "resumable"
    page = curator.get("/p/people/release").text
    assert "You stopped the run" in page
    assert "paid for 2 answers" in page
    assert "0.4" in page
    run = ledger(stage).runs()[0]
    assert (run.is_open, run.events) == (True, 2)

    spend(curator, confirmed(curator))
    assert stage.work() == [0]
    (run,) = ledger(stage).runs()
    assert (run.is_open, run.repeats) == (False, 0)
    assert plan(stage).stage() == "done"


def test_a_killed_worker_is_found_dead_and_resumed(curator, stage, monkeypatch):
    class Killed(BaseException):
        """As kill -9: nobody gets to say anything."""

    def die():
        raise Killed

    with monkeypatch.context() as patch:
        interrupt_after(patch, 2, die)
        spend(curator, confirmed(curator))
        with pytest.raises(Killed):
            stage.work()
    job = next(Jobs(stage.place()).all("release"))
    state = store.read(State, job.folder / "state.json")
    assert state.status == "running"
    gone = Process(host=state.process.host, pid=state.process.pid, started="another moment")
    store.write(job.folder / "state.json", State(status="running", process=gone))

    assert job.state().status == "died"
    page = curator.get("/p/people/release").text
    assert "The worker was killed" in page
    assert "paid for 2 answers" in page

    # A restarted studio finds the same.
    again = stage.again().browser()
    spend(again, confirmed(again))
    assert stage.work() == [0]
    (run,) = ledger(stage).runs()
    assert (run.is_open, run.repeats) == (False, 0)


def test_a_full_disk_stops_the_run_and_nothing_is_lost(curator, stage, monkeypatch):
    write, full = Journal._write, []

    def refusing(journal, entry):
        if len(full) == 2:
            raise OSError(28, "No space left on device")
        full.append(entry)
        write(journal, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_write", refusing)
        spend(curator, confirmed(curator))
        assert stage.work() == [130]

    page = curator.get("/p/people/release").text
    assert "The machine stopped the run" in page
    assert "No space left on device" in page
    assert plan(stage).stage() == "resumable"

    spend(curator, confirmed(curator))
    assert stage.work() == [0]
    assert len(ledger(stage).runs()) == 1


def test_a_release_that_cannot_be_written_is_kept_and_written_later(curator, stage, monkeypatch):
    from sidelight.releases.release import Release

    def full(release, folder):
        from sidelight.errors import ReleaseError

        raise ReleaseError("the release could not be written: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr(Release, "save", full)
        spend(curator, confirmed(curator))
        assert stage.work() == [130]
    paid = ledger(stage).spent

    assert "No space left on device" in curator.get("/p/people/release").text
    spend(curator, confirmed(curator))
    assert stage.work() == [0]
    assert ledger(stage).spent == paid
    assert plan(stage).stage() == "done"


def test_a_full_disk_under_the_studio_is_said_and_spends_nothing(curator, stage, monkeypatch):
    form = confirmed(curator)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        answer = spend(curator, form)

    assert answer.status_code == 422
    assert "No space left on device" in answer.text
    assert spent(stage) == 0
    assert not stage.pending
    spend(curator, confirmed(curator))
    assert len(stage.pending) == 1


def test_progress_that_cannot_be_written_does_not_stop_a_run(curator, stage, monkeypatch):
    from sidelight.studio import worker

    write = store.write

    def full(path, value):
        from sidelight.errors import InputError

        if path.name == "state.json" and value.status == "running":
            raise InputError("no space")
        write(path, value)

    monkeypatch.setattr(worker.store, "write", full)
    spend(curator, confirmed(curator))

    assert stage.work() == [0]
    assert plan(stage).stage() == "done"


def test_a_run_can_be_given_up(curator, stage, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        spend(curator, confirmed(curator))
        stage.work()
    held = ledger(stage).spent

    assert curator.post("/p/people/release/close", {"plan": "1"}).status_code == 303
    assert plan(stage).stage() == "resumable"
    curator.post("/p/people/release/close", {"plan": "1", "confirm_close": "yes"})

    assert plan(stage).stage() == "closed"
    assert ledger(stage).spent < held
    assert not ledger(stage).runs()[0].is_open
    assert plan(stage).spending_number() is None
    assert "This run was given up" in curator.get("/p/people/release").text


# A second person ---------------------------------------------------------------------------------------


@pytest.fixture
def waiting(curator):
    planned(curator, second_person="yes")
    return curator


def verdict(browser, **said):
    page = browser.get("/p/people/approve").text
    form = {name: Browser.field(page, name) for name in ("plan", "digest")}
    return browser.post("/p/people/approve", {**form, "do": "approve", "read": "yes", **said})


def test_nothing_runs_before_somebody_else_has_approved(waiting, stage):
    page = waiting.get("/p/people/release").text
    made = plan(stage).made()

    assert "Waiting for approval" in page
    assert 'name="number"' not in page
    assert plan(stage).spend("", made.digest, stage.people.of(None)) is None
    assert not stage.pending


def test_both_names_stand_in_the_ledger(waiting, stage):
    approver = stage.browser("approver", "Grace Hopper")
    assert verdict(approver).headers["location"] == "/p/people/approve?said=approved&plan=2"

    spend(waiting, confirmed(waiting))
    assert stage.work() == [0]

    (run,) = ledger(stage).runs()
    assert (run.approval.asked_by, run.approval.names) == ("Ada Lovelace", ("Grace Hopper",))
    page = waiting.get("/p/people/ledger").text
    assert "Grace Hopper" in page
    told = json.loads(waiting.get("/p/people/ledger/statement.json").text)
    assert told["runs"][0]["approved_by"] == "Grace Hopper"


@pytest.mark.parametrize("name", ["Ada Lovelace", "ada  lovelace"])
@pytest.mark.parametrize("role", ["curator", "approver"])
def test_nobody_approves_their_own_plan(waiting, stage, role, name):
    same = stage.browser(role, name)
    made = plan(stage).made()
    answer = same.post(
        "/p/people/approve",
        {"plan": plan(stage).number, "digest": made.digest, "do": "approve", "read": "yes"},
    )

    assert answer.status_code == 422
    assert "somebody else must approve" in answer.text
    assert plan(stage).stage() == "waiting"


def test_another_curator_may_approve(waiting, stage):
    verdict(stage.browser("curator", "Grace Hopper"))

    assert plan(stage).stage() == "ready"


def test_what_was_looked_at_is_what_is_approved(waiting, stage):
    approver = stage.browser("approver", "Grace Hopper")
    assert verdict(approver, digest="0" * 64).status_code == 422
    assert verdict(approver, read="").status_code == 303  # the box is there, whatever it holds
    page = approver.get("/p/people/approve").text
    assert "Approved by Grace Hopper" in page


def test_a_plan_is_sent_back_with_a_remark(waiting, stage):
    approver = stage.browser("approver", "Grace Hopper")
    assert verdict(approver, do="return").status_code == 422
    verdict(approver, do="return", remark="Fewer bins, please.\n<script>alert(1)</script>")

    page = waiting.get("/p/people/release").text
    assert "Sent back by Grace Hopper" in page
    assert "Fewer bins, please." in page
    assert "<script>alert" not in page
    assert plan(stage).spending_number() is None
    late = approver.post(
        "/p/people/approve",
        {"plan": plan(stage).number, "digest": plan(stage).made().digest, "do": "approve", "read": "yes"},
    )
    assert late.status_code == 422


@pytest.mark.parametrize("change", ["schema", "public", "epsilon", "approval", "ledger"])
def test_what_was_changed_after_its_approval_does_not_run(waiting, stage, change):
    planned(waiting, second_person="yes", mechanism="jam", with_public="yes")
    verdict(stage.browser("approver", "Grace Hopper"))
    form, frozen = confirmed(waiting), plan(stage)
    if change == "schema":
        frozen.schema.write_text(frozen.schema.read_text().replace("bins = 8", "bins = 7"))
    elif change == "public":
        path = stage.place().path / "public" / "old.csv"
        path.write_text(path.read_text() + "F,1,north\n")
    elif change == "epsilon":
        path = frozen.folder / "proposal.json"
        path.write_text(path.read_text().replace('"epsilon": 0.4', '"epsilon": 0.9'))
    elif change == "approval":
        path = frozen.folder / "approval.json"
        path.write_text(path.read_text().replace(frozen.made().digest, "0" * 64))
    else:
        from commands import sidelight

        (stage.place().path / "people.ledger").unlink()
        sidelight("ledger", "open", "people.ledger", "--epsilon", 1, "--delta", "1e-9", "--name", "people",
                  folder=stage.place().path)  # fmt: skip

    spend(waiting, form)
    assert stage.work() == [2]

    assert spent(stage) == 0
    page = waiting.get("/p/people/release").text
    assert "not what was approved" in page or "Nobody has approved" in page or "nobody has approved" in page


def test_a_studio_for_two_people_lets_no_plan_pass_without(tmp_path, monkeypatch):
    from stage import Stage, hold_workers

    stage = Stage(tmp_path, settings={"two_people": True})
    hold_workers(monkeypatch, stage)
    curator = prepared(stage)
    planned(curator)

    assert plan(stage).stage() == "waiting"


def test_a_plan_that_was_made_before_two_people_were_demanded_does_not_run(curator, stage):
    from stage import Stage

    form = confirmed(curator)
    strict = Stage(stage.root, stage.origin, {"two_people": True})
    browser = strict.browser()

    page = browser.get("/p/people/release").text
    refused = spend(browser, form)

    assert "Somebody else must approve" in page
    assert 'name="number"' not in page
    assert refused.status_code == 422
    assert "Make the plan again" in refused.text
    assert not stage.pending
    assert not strict.pending
    spend(curator, form)  # the number was not used up
    assert len(stage.pending) == 1


def test_the_command_that_is_shown_carries_out_the_same_plan(waiting, stage):
    import shlex

    from commands import sidelight
    from sidelight.studio.recipe import release_command

    verdict(stage.browser("approver", "Grace Hopper"))
    command = shlex.split(release_command(plan(stage)).replace("\\\n", ""))
    assert command[0] == "sidelight"

    done = sidelight(*command[1:], folder=stage.place().path)

    assert done.returncode == 0, done.said
    (run,) = ledger(stage).runs()
    assert run.approval == plan(stage).approval()
    assert plan(stage).stage() == "done"


def test_a_run_that_was_stopped_is_found_again_beside_newer_plans(curator, stage, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        spend(curator, confirmed(curator))
        stage.work()
    planned(curator, epsilon="0.2")

    page = curator.get("/p/people/release").text
    assert "You stopped the run" in page
    assert "Look at plan 2" in page
    other = curator.get("/p/people/release?plan=2").text
    assert "Spend ε = 0.2 and release" in other
    assert "Look at plan 1" in other
    spend(curator, confirmed(curator))
    assert stage.work() == [0]
    assert Plans(stage.place()).get("1").stage() == "done"


def test_the_same_question_asked_again_is_a_new_plan(curator, stage):
    spend(curator, confirmed(curator))
    stage.work()
    curator.post("/p/people/plan", ASK)
    assert stage.work() == [0]

    assert plan(stage).number == "2"
    assert plan(stage).release == "release-2"
    assert plan(stage).made().digest != Plans(stage.place()).get("1").made().digest
    spend(curator, confirmed(curator))
    assert stage.work() == [0]
    assert spent(stage) == 2


def test_what_was_approved_once_runs_once(waiting, stage):
    import shlex

    from commands import sidelight
    from sidelight.studio.recipe import release_command

    verdict(stage.browser("approver", "Grace Hopper"))
    command = shlex.split(release_command(plan(stage)).replace("\\\n", ""))
    spend(waiting, confirmed(waiting))
    assert stage.work() == [0]
    out = command.index("--out") + 1
    command[out] += "-again"

    again = sidelight(*command[1:], folder=stage.place().path)

    assert again.returncode == 3
    assert "an approval serves one run" in again.said
    assert spent(stage) == 1


def test_a_policy_that_names_projects_is_met_by_a_plan_that_names_one(curator, stage):
    import shlex

    from commands import sidelight
    from sidelight.studio.recipe import release_command, release_python

    ledger(stage).set_policy({"projects": {"flu": True}})
    refused = curator.post("/p/people/plan", {**ASK, "project": "postgresql://bob:4711@host/db"})
    assert refused.status_code == 422
    planned(curator, project="fly")
    assert "'fly' is not one of flu" in plan(stage).made().facts["refusal"]
    planned(curator, project="flu")
    assert plan(stage).made().facts["refusal"] is None
    assert "project='flu'" in release_python(plan(stage))
    assert "<dt>Project</dt><dd>flu</dd>" in curator.get("/p/people/release").text
    command = shlex.split(release_command(plan(stage)).replace("\\\n", ""))
    other = ["census" if part == "flu" else part for part in command]

    assert "not what was approved" in sidelight(*other[1:], folder=stage.place().path).said
    spend(curator, confirmed(curator))
    assert stage.work() == [0]

    (run,) = ledger(stage).runs()
    assert run.purpose.project == "flu"


def test_a_run_that_is_resumed_meanwhile_is_not_given_up(curator, stage, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        spend(curator, confirmed(curator))
        stage.work()
    frozen, form, closed, start = plan(stage), confirmed(curator), [], Jobs.start
    closing = threading.Thread(target=lambda: closed.append(frozen.close()))

    def watched(*asked, **more):
        closing.start()
        closing.join(0.5)
        return start(*asked, **more)

    monkeypatch.setattr(Jobs, "start", watched)
    spend(curator, form)
    closing.join()

    assert closed == [False]
    assert stage.work() == [0]
    assert plan(stage).stage() == "done"
