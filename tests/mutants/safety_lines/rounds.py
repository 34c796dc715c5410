"""Safety lines of how a sweep goes on: leases, cursors, certificates."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ASKING = "core/sweeping/asking.py"
ROUNDS = "core/sweeping/rounds.py"
LISTENERS = "core/sweeping/listeners.py"
U_LISTENERS = "tests/unit/test_sweep_listeners.py"
U_ROUNDS = "tests/unit/test_sweep_rounds.py"

LINES = (
    SafetyLine(
        name="sweep: a part is held before it is begun",
        file=ROUNDS,
        line="""\
        if state is None:
            by = """,
        without="""\
        if False:
            by = """,
        guards="G32: one sweep of a part at a time",
        tests=(f"{U_ROUNDS}::test_a_second_sweep_of_a_part_that_is_under_way_says_which_one_covers_it",),
    ),
    SafetyLine(
        name="sweep: who has lost its lease stops",
        file=ROUNDS,
        line="""\
        if not self.ledger.keep(lease, self.holder, self.until, report.kept()):
            raise LeaseLost(report.part)
""",
        without="        self.ledger.keep(lease, self.holder, self.until, report.kept())\n",
        guards="G32: a frozen sweep does not go on beside its successor",
        tests=(f"{U_ROUNDS}::test_who_has_lost_its_lease_stops_and_leaves_the_rest_to_its_successor",),
    ),
    SafetyLine(
        name="sweep: a left-over cursor is gone on with",
        file=ROUNDS,
        line="        left_over = report_of(state) if state else None\n",
        without="        left_over = None\n",
        guards="G32: who is killed leaves a cursor, and the next one goes on from there under its certificate",
        tests=(f"{U_ROUNDS}::test_a_killed_sweeps_successor_goes_on_from_its_saved_cursor_under_its_certificate",),
    ),
    SafetyLine(
        name="sweep: a part without time leaves its cursor in its lease",
        file=ROUNDS,
        line="""\
            self.ledger.give_back(lease, self.holder, report.kept())
            return False
""",
        without="""\
            self.ledger.give_back(lease, self.holder, {})
            return False
""",
        guards="G32: what was not got to is gone on with, not begun anew",
        tests=(f"{U_ROUNDS}::test_when_nobody_can_be_started_the_next_schedule_goes_on_first_and_sweeps_then",),
    ),
    SafetyLine(
        name="sweep: its cursor is saved on the way",
        file=ROUNDS,
        line="            self.rounds.keep(self.report, self.lease)\n",
        without="            pass\n",
        guards="G32: a kill costs a few seconds of a sweep",
        tests=(f"{U_ROUNDS}::test_a_killed_sweeps_successor_goes_on_from_its_saved_cursor_under_its_certificate",),
    ),
    SafetyLine(
        name="sweep: a part that dies at one place each time is given up",
        file=ROUNDS,
        line="        if report.starts > STARTS_MAX:\n",
        without="        if False:\n",
        guards="G32: one place that kills does not end all sweeping",
        tests=(f"{U_ROUNDS}::test_what_dies_at_one_place_again_and_again_is_given_up_and_begun_anew",),
    ),
    SafetyLine(
        name="sweep: a part that fails leaves the others theirs",
        file=ROUNDS,
        line="        except (Unavailable, PartFailed, UnreadableRecord) as trouble:\n",
        without="        except ZeroDivisionError as trouble:\n",
        guards="G32: a source that does not answer stops no repair",
        tests=(f"{U_ROUNDS}::test_a_part_that_fails_says_why_and_the_others_do_theirs",),
    ),
    SafetyLine(
        name="sweep: the lease of a part that is over is given back",
        file=ROUNDS,
        line="""\
        if done:
            self.ledger.give_back(lease, self.holder, {})
        return done
""",
        without="        return done\n",
        guards="G32: the next sweep does not wait for a lease that nobody holds",
        tests=(f"{U_ROUNDS}::test_a_sweep_that_is_killed_at_any_of_its_calls_is_gone_on_with_by_the_next",),
    ),
    SafetyLine(
        name="sweep: a part's report is recorded",
        file=ROUNDS,
        line='        self.ledger.save(item_of(report.sweep_id), SWEEP_SK, {f"{PART}{report.part}": report.kept()})\n',
        without="",
        guards="G32: the certificate has every part, whoever has ended it",
        tests=(f"{U_ROUNDS}::test_a_sweep_ends_in_a_certificate_that_says_what_was_repaired",),
    ),
    SafetyLine(
        name="sweep: the certificate is stored before it is marked",
        file=ROUNDS,
        line="""\
        self.certificates.put(certificate_key(sweep_id), json.dumps(told, indent=1).encode())
        ended =""",
        without="        ended =",
        guards="G32: a sweep that says it has ended has its certificate",
        tests=(f"{U_ROUNDS}::test_a_sweep_ends_in_a_certificate_that_says_what_was_repaired",),
    ),
    SafetyLine(
        name="sweep: the end of a sweep is marked",
        file=ROUNDS,
        line="        self.ledger.save(item_of(sweep_id), SWEEP_SK, ended)\n",
        without="",
        guards="G32: who asks for a sweep that has ended gets its certificate",
        tests=(f"{U_ROUNDS}::test_a_sweep_ends_in_a_certificate_that_says_what_was_repaired",),
    ),
    SafetyLine(
        name="sweep: no mark before the certificate is there",
        file=ROUNDS,
        line="""\
        self.certificates.put(certificate_key(sweep_id), json.dumps(told, indent=1).encode())
        ended = {"status": told["status"], "finished_at": times.text(now), "key": certificate_key(sweep_id)}
        self.ledger.save(item_of(sweep_id), SWEEP_SK, ended)
""",
        without="""\
        ended = {"status": told["status"], "finished_at": times.text(now), "key": certificate_key(sweep_id)}
        self.ledger.save(item_of(sweep_id), SWEEP_SK, ended)
        self.certificates.put(certificate_key(sweep_id), json.dumps(told, indent=1).encode())
""",
        guards="G32: a certificate that could not be stored is stored by the next sweep",
        tests=(f"{U_ROUNDS}::test_a_certificate_that_cannot_be_stored_is_stored_by_the_next_sweep",),
    ),
    SafetyLine(
        name="sweep: what was left is gone on with in a new invocation",
        file=ROUNDS,
        line="            self.start(following.event())\n",
        without="            pass\n",
        guards="G32: a large sweep goes on",
        tests=(f"{U_ROUNDS}::test_a_sweep_without_time_goes_on_in_a_new_invocation_under_the_same_certificate",),
    ),
    SafetyLine(
        name="sweep: one that goes on without end is ended",
        file=ROUNDS,
        line="""\
        if following.round > ROUNDS_MAX:
            return
""",
        without="",
        guards="G32: a function that calls itself has an end",
        tests=(f"{U_ROUNDS}::test_a_sweep_that_goes_on_without_end_is_ended_by_the_number_of_its_rounds",),
    ),
    SafetyLine(
        name="sweep: it is on record before it is started",
        file=ASKING,
        line="""\
    open_sweep(order, now=now, ledger=ledger)
    start(order.event())
""",
        without="    start(order.event())\n",
        guards="G32: who asked for a sweep can ask how far it is",
        tests=(f"{U_ROUNDS}::test_a_sweep_that_was_asked_for_is_known_at_once_and_started",),
    ),
    SafetyLine(
        name="sweep: its record is made, with its end",
        file=ASKING,
        line="    return ledger.create(\n",
        without="    return ledger.save(\n",
        guards="G32: a sweep has a record from its beginning, and is gone on with under it",
        tests=(f"{U_ROUNDS}::test_a_sweep_that_was_asked_for_is_known_at_once_and_started",),
    ),
    SafetyLine(
        name="sweep: a dry run holds nobody up",
        file=ASKING,
        line='    return f"sweep/dry/{part}" if dry_run else f"sweep/{part}"\n',
        without='    return f"sweep/{part}"\n',
        guards="G32: a dry run takes nothing over and leaves nothing behind",
        tests=(f"{U_ROUNDS}::test_a_dry_run_holds_nobody_up_takes_nothing_over_and_tells_no_metric",),
    ),
    SafetyLine(
        name="listeners: who has not the lease compares nothing",
        file=LISTENERS,
        line="    state = ledger.take(NAME, holder, now(), times.after(now(), HELD_S))\n"
        "    if state is None:\n        return None\n",
        without="    state = ledger.take(NAME, holder, now(), times.after(now(), HELD_S)) or {}\n",
        guards="a listener that is gone is not taken for one that never was",
        tests=(f"{U_LISTENERS}::test_of_two_sweeps_at_once_one_tells",),
    ),
    SafetyLine(
        name="listeners: what was known is kept",
        file=LISTENERS,
        line="    ledger.give_back(NAME, holder, seen)\n",
        without="",
        guards="a listener that is gone is missing until it is back",
        tests=(f"{U_LISTENERS}::test_what_is_missing",),
    ),
)
