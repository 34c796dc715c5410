"""Safety lines of what was never recorded: the account of a source, and how far it has come."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ACCOUNTS = "core/sweeping/accounts.py"
DRIFT = "core/sweeping/drift.py"
LISTED = "core/sweeping/listed.py"
PIPELINE = "adapters/pipeline.py"
TRIGGERS = "core/sweeping/triggers.py"
UPLOADS = "core/sweeping/uploads.py"
U_DRIFT = "tests/unit/test_sweep_drift.py"
U_LISTED = "tests/unit/test_sweep_listed.py"
U_UPLOADS = "tests/unit/test_sweep_uploads.py"

LINES = (
    SafetyLine(
        name="uploads: the cursor moves only past a key that is done",
        file=UPLOADS,
        line="""\
            if key and one.object.key != key:
                report.cursor = key
                turn.save()
            key = one.object.key
""",
        without="""\
            if key and one.object.key != key:
                report.cursor = one.object.key
                turn.save()
            key = one.object.key
""",
        guards="G31, G32: every point at which it may be saved is one to go on from",
        tests=(f"{U_UPLOADS}::test_every_point_at_which_it_may_be_saved_is_one_to_go_on_from",),
    ),
    SafetyLine(
        name="uploads: the index is not trusted to say that a record is missing",
        file=TRIGGERS,
        line="        case Accepted(job_id, new=True):\n",
        without="        case Accepted(job_id):\n",
        guards="G31: a record that the index has not yet is no lost event",
        tests=(f"{U_UPLOADS}::test_an_index_that_is_behind_is_not_trusted_to_say_that_a_record_is_missing",),
    ),
    SafetyLine(
        name="uploads: young objects may still be on their way",
        file=UPLOADS,
        line="        return self.since < one.object.modified <= self.until\n",
        without="        return self.since < one.object.modified\n",
        guards="G31: what is still in the inbox is not counted as lost",
        tests=(
            f"{U_UPLOADS}::test_young_objects_may_still_be_in_the_inbox_and_old_ones_may_have_outlived_their_record",
        ),
    ),
    SafetyLine(
        name="uploads: what could not be settled leaves the account open",
        file=ACCOUNTS,
        line='            report.trouble()\n            report.note("not_settled"',
        without='            report.note("not_settled"',
        guards="G31: a certificate that does not add up says so",
        tests=(
            "tests/unit/test_sweep_report.py::test_an_event_that_could_not_be_settled_leaves_the_account_open_and_is_a_trouble",
        ),
    ),
    SafetyLine(
        name="listed: it goes on from the source's cursor",
        file=LISTED,
        line="""\
            report.cursor = cursor = page.cursor
            turn.save()
""",
        without="""\
            cursor = page.cursor
            turn.save()
""",
        guards="G32: who is killed leaves a cursor, and the next one goes on from there",
        tests=(f"{U_LISTED}::test_it_goes_on_from_the_sources_own_cursor",),
    ),
    SafetyLine(
        name="listed: the cursor moves only past a page that is settled",
        file=LISTED,
        line="""\
            self._settle(report, page)
            if not page.cursor:
                return True
            if page.cursor == cursor:
                raise PartFailed("the source's list goes on from where it was: the same cursor twice")
            report.cursor = cursor = page.cursor
            turn.save()
""",
        without="""\
            if page.cursor and page.cursor != cursor:
                report.cursor = page.cursor
                turn.save()
            self._settle(report, page)
            if not page.cursor:
                return True
            if page.cursor == cursor:
                raise PartFailed("the source's list goes on from where it was: the same cursor twice")
            cursor = page.cursor
""",
        guards="G31, G32: a kill in the middle of a page loses no event of it",
        tests=(f"{U_LISTED}::test_wherever_it_may_be_killed_the_pages_before_its_cursor_are_settled",),
    ),
    SafetyLine(
        name="listed: an event that its page could not tell is in the account",
        file=LISTED,
        line="            accounts.settle(report, None, Unusable(why), name=name, notice=self.notice)\n",
        without="            continue\n",
        guards="G31: an event that nobody can read is no event that nobody hears of",
        tests=(f"{U_LISTED}::test_an_event_that_its_page_could_not_tell_costs_none_of_the_others",),
    ),
    SafetyLine(
        name="drift: it goes on from its cursor",
        file=DRIFT,
        line="""\
            report.cursor = following
            turn.save()
""",
        without="""\
            turn.save()
            return False
""",
        guards="G32: who is killed leaves a cursor, and the next one goes on from there",
        tests=(f"{U_DRIFT}::test_it_goes_on_from_its_cursor",),
    ),
    SafetyLine(
        name="drift: a job that was run again meanwhile has lost nothing",
        file=DRIFT,
        line='        return record.get("status") == COMPLETED and record.get("result_key") == job.result_key\n',
        without="        return bool(record) or True\n",
        guards="G31: only a COMPLETED record whose result is gone is drift",
        tests=(f"{U_DRIFT}::test_a_job_that_was_deleted_or_run_again_meanwhile_has_lost_nothing",),
    ),
    SafetyLine(
        name="pipeline: what was begun is seen through",
        file=PIPELINE,
        line="""\
        while queue:
            yield queue.popleft().told()
        if source.failed""",
        without="        if source.failed",
        guards="G31: every item that was begun is in the account",
        tests=("tests/integration/test_adapter_pipeline.py",),
    ),
    SafetyLine(
        name="pipeline: no thread is left behind",
        file=PIPELINE,
        line="            threads.shutdown(wait=True, cancel_futures=True)\n",
        without="            threads.shutdown(wait=False, cancel_futures=False)\n",
        guards="hole 10: no thread of a frozen environment goes on with the next invocation's time",
        tests=(
            "tests/integration/test_adapter_pipeline.py::test_no_thread_is_left_behind_when_the_caller_stops_in_the_middle",
        ),
    ),
)
