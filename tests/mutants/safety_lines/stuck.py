"""Safety lines of the sweep of what is stuck: reaped, ended, sent again, handed over."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

BATCHES = "core/sweeping/batches.py"
MACHINES = "core/sweeping/machines.py"
PLAN = "core/sweeping/plan.py"
STUCK = "core/sweeping/stuck.py"
U_EXECUTIONS = "tests/unit/test_sweep_executions.py"
U_PLAN = "tests/unit/test_sweep_plan.py"
U_SWEEP = "tests/unit/test_sweep.py"

LINES = (
    SafetyLine(
        name="sweep: a live lease is left alone",
        file=PLAN,
        line="    if job.status == PROCESSING and not held:\n",
        without="    if job.status == PROCESSING:\n",
        guards="row 15: nobody is reaped who may still be at work",
        tests=(f"{U_PLAN}::test_swp_01_a_live_lease_that_ends_before_the_next_sweep_is_left_alone",),
    ),
    SafetyLine(
        name="sweep: a holder is not failed at the deadline",
        file=PLAN,
        line="    if not held and (job.deadline_at <= now or job.tries >= max_tries):\n",
        without="    if job.deadline_at <= now or job.tries >= max_tries:\n",
        guards="row 7: who may still be at work ends its job itself",
        tests=(f"{U_PLAN}::test_a_live_lease_is_left_alone_even_by_a_used_up_or_late_job",),
    ),
    SafetyLine(
        name="sweep: what is past its deadline ends",
        file=PLAN,
        line="(job.deadline_at <= now or job.tries >= max_tries)",
        without="(job.tries >= max_tries)",
        guards="G7: the end comes by the deadline, with the table and the sweep alone",
        tests=(f"{U_PLAN}::test_swp_03_a_used_up_or_late_job_is_failed",),
    ),
    SafetyLine(
        name="sweep: what has used its tries ends",
        file=PLAN,
        line="(job.deadline_at <= now or job.tries >= max_tries)",
        without="(job.deadline_at <= now)",
        guards="G14: a job that crashes each time is not sent for ever",
        tests=(f"{U_PLAN}::test_swp_03_a_used_up_or_late_job_is_failed",),
    ),
    SafetyLine(
        name="sweep: a final job is left to the dispatcher at first",
        file=PLAN,
        line="seconds_between(job.finished_at, now) >= HAND_OVER_AGE_S",
        without="seconds_between(job.finished_at, now) >= 0",
        guards="hole 26: sweep and dispatcher do not race for each end",
        tests=(f"{U_PLAN}::test_a_younger_final_job_is_left_to_the_dispatcher",),
    ),
    SafetyLine(
        name="sweep: a final job that nobody was told of is handed over",
        file=PLAN,
        line="        return HandOver(job) if old and not job.is_handed_over else Leave()\n",
        without="        return Leave()\n",
        guards="G9, G11: a lost stream record of an end is made good",
        tests=(f"{U_PLAN}::test_a_final_job_two_minutes_old_is_handed_over",),
    ),
    SafetyLine(
        name="sweep: looks lie further and further apart",
        file=PLAN,
        line="after(now, max(SEND_AGAIN_MIN_S, age))",
        without="after(now, SEND_AGAIN_MIN_S)",
        guards="G20, hole 24: a backlog is not sent again at each sweep",
        tests=(f"{U_PLAN}::test_a_claimable_job_is_sent_again_and_looked_at_later_and_later",),
    ),
    SafetyLine(
        name="sweep: the record decides and not the index",
        file=STUCK,
        line="""\
            record = self.own.store.read(due.job_id)
            if record is None:""",
        without="""\
            record = next(iter(self.own.store.read_many([due.job_id])), None)
            if record is None:""",
        guards="G11, swp-05: it trusts no index, and no eventually consistent read",
        tests=(f"{U_SWEEP}::test_swp_05_the_record_is_read_again_before_anything_is_done",),
    ),
    SafetyLine(
        name="sweep: what somebody else was faster with is not sent",
        file=STUCK,
        line="""\
        if looked.after is None and not self.report.dry_run:
            return
""",
        without="",
        guards="row 15: a refused reap is nobody's repair",
        tests=(f"{U_SWEEP}::test_a_reap_that_somebody_else_was_faster_with_sends_nothing",),
    ),
    SafetyLine(
        name="sweep: what was reaped is sent by the sweep itself",
        file=STUCK,
        line="            self.batches.reaped += [looked.after] if looked.after is not None else []\n",
        without="            pass\n",
        guards="G8, G11, N5: a crashed job runs again, the stream alive or not",
        tests=(
            f"{U_SWEEP}::test_n5_a_crashed_job_runs_again_within_its_lease_and_one_sweep_though_the_stream_is_dead",
        ),
    ),
    SafetyLine(
        name="sweep: what was reaped is sent although time is over",
        file=STUCK,
        line="""\
        self.batches.send_reaped()
        self.batches.hand_over()
        self.batches.send_again()
""",
        without="""\
        self.batches.hand_over()
        self.batches.send_again()
""",
        guards="G8: a job that was reaped is pending and without a message: it must not be left so",
        tests=(f"{U_SWEEP}::test_what_was_reaped_is_sent_although_time_is_over",),
    ),
    SafetyLine(
        name="sweep: one record that cannot be read stops no other",
        file=STUCK,
        line="""\
        except UnreadableRecord as broken:
            return broken
""",
        without="""\
        except ZeroDivisionError:
            return None
""",
        guards="G11: a spoilt record keeps the sweep from no other",
        tests=(f"{U_SWEEP}::test_an_unreadable_record_is_counted_told_and_passed_over",),
    ),
    SafetyLine(
        name="sweep: the cursor moves only past what is done",
        file=STUCK,
        line="""\
        if self.batches.empty:
            at =""",
        without="""\
        if True:
            at =""",
        guards="G32: what is gathered and not sent is not passed over by the next sweep",
        tests=(f"{U_SWEEP}::test_wherever_a_sweep_may_be_killed_its_cursor_has_passed_over_nothing_that_is_not_sent",),
    ),
    SafetyLine(
        name="sweep: it goes on from its cursor",
        file=STUCK,
        line='            self.report.cursor = {"first": self.first, **at}\n',
        without="",
        guards="G32: who is killed leaves a cursor, and the next one goes on from there",
        tests=(f"{U_SWEEP}::test_jobs_that_need_nothing_do_not_keep_the_next_round_at_the_same_place",),
    ),
    SafetyLine(
        name="sweep: a dry run writes nothing",
        file=STUCK,
        line="        if self.report.dry_run or not isinstance(found, Reap | Expire | Look | Extend | Conclude):\n",
        without="        if not isinstance(found, Reap | Expire | Look | Extend | Conclude):\n",
        guards="G32: a dry run only says what it would do",
        tests=(f"{U_SWEEP}::test_a_dry_run_says_the_same_and_writes_and_sends_nothing",),
    ),
    SafetyLine(
        name="sweep: an execution is asked for before its job is taken for dead",
        file=STUCK,
        line="            if described:\n",
        without="            if False:\n",
        guards="row 15, N9: nobody is reaped or failed whose execution runs, or has its result",
        tests=(f"{U_EXECUTIONS}::test_n9_a_job_whose_execution_runs_is_neither_reaped_nor_failed",),
    ),
    SafetyLine(
        name="sweep: only of a run that was prepared",
        file=MACHINES,
        line="        prepared = job.parts is not None and job.parts_run == job.run\n",
        without="        prepared = True\n",
        guards="row 15: one question for each lapsed workflow, and none for plain jobs",
        tests=(f"{U_EXECUTIONS}::test_the_execution_of_another_run_is_nobodys_business",),
    ),
    SafetyLine(
        name="sweep: a job whose execution runs keeps its holder",
        file=MACHINES,
        line="                return _runs(job, since, workflow.timeout_s, now)\n",
        without="                return found if since else _runs(job, since, workflow.timeout_s, now)\n",
        guards="N9, hole 36: no second execution pays for the same job",
        tests=(f"{U_EXECUTIONS}::test_n9_a_job_whose_execution_runs_is_neither_reaped_nor_failed",),
    ),
    SafetyLine(
        name="sweep: no lease in the past",
        file=MACHINES,
        line="lease=max(lease, after(now, changes.LEASE_MARGIN_S))",
        without="lease=lease",
        guards="row 13: who runs on is not claimed by somebody else at the same moment",
        tests=(f"{U_EXECUTIONS}::test_an_execution_that_outlives_its_timeout_gets_a_margin_and_no_lease_in_the_past",),
    ),
    SafetyLine(
        name="sweep: a job that waits is left to its execution",
        file=MACHINES,
        line="""\
    if job.status != PROCESSING:
        return Leave()
""",
        without="",
        guards="row 15: a lease belongs to a job that is held",
        tests=(f"{U_EXECUTIONS}::test_a_job_that_waits_and_is_used_up_is_left_to_the_execution_that_runs_for_it",),
    ),
    SafetyLine(
        name="sweep: a job that runs again is sent by the sweep itself",
        file=STUCK,
        line='SENT_AT_ONCE = ("reaped", "run_again")\n',
        without='SENT_AT_ONCE = ("reaped",)\n',
        guards="G8, G11, N5: it runs again, the stream alive or not",
        tests=(
            f"{U_EXECUTIONS}::test_a_job_whose_execution_ended_badly_runs_again_and_its_message_is_sent_in_the_same_sweep",
        ),
    ),
    SafetyLine(
        name="sweep: the message is sent before the next look is pushed away",
        file=BATCHES,
        line="""\
        sent = self._taken([again for again in batch if not gated or again.urgent])
        self._push([*held, *sent])
""",
        without="""\
        self._push([*held, *(again for again in batch if not gated or again.urgent)])
        sent = self._taken([again for again in batch if not gated or again.urgent])
""",
        guards="G11, hole 25: a crash in between repeats a hint; it loses none",
        tests=(f"{U_SWEEP}::test_a_job_without_a_message_is_sent_again_first_and_pushed_then",),
    ),
    SafetyLine(
        name="sweep: what the queue refused stays due",
        file=BATCHES,
        line="        return [again for again in batch if again.job.id in taken]\n",
        without="        return list(batch) if taken is not None else []\n",
        guards="G11: a lost hint stays due",
        tests=(f"{U_SWEEP}::test_a_hint_that_the_queue_refused_keeps_its_job_due",),
    ),
    SafetyLine(
        name="sweep: the next look is pushed away",
        file=BATCHES,
        line="            for job_id, trouble in self.store.apply_many(pushes).items():\n",
        without="            for job_id, trouble in dict[str, str](pushes[:0]).items():\n",
        guards="G20, hole 24: what was sent, or is held back, is not looked at by each sweep",
        tests=(f"{U_SWEEP}::test_a_job_without_a_message_is_sent_again_first_and_pushed_then",),
    ),
    SafetyLine(
        name="sweep: the depth gate holds a crowd back",
        file=BATCHES,
        line="        gated = found >= CROWD and slow\n",
        without="        gated = False\n",
        guards="G20: while the queue holds a message for each waiting job nothing more is sent",
        tests=(f"{U_SWEEP}::test_the_depth_gate_holds_a_crowd_back_when_the_queue_has_a_message_for_each_of_them",),
    ),
    SafetyLine(
        name="sweep: the depth gate does not hold back who surely has no message",
        file=BATCHES,
        line="""\
        held = [again for again in batch if gated and not again.urgent]
        sent = self._taken([again for again in batch if not gated or again.urgent])
""",
        without="""\
        held = list(batch) if gated else []
        sent = self._taken([again for again in batch if not gated])
""",
        guards="G20: nobody is held back for ever by the messages of others",
        tests=(
            f"{U_SWEEP}::test_who_certainly_has_no_message_or_has_waited_an_hour_is_sent_while_the_crowd_is_held_back",
        ),
    ),
    SafetyLine(
        name="sweep: what was not told is not counted as handed over",
        file=BATCHES,
        line="        return [job for position, job in enumerate(jobs) if position not in failed]\n",
        without="        return list(jobs) if failed is not None else []\n",
        guards="G11: a letter or event that was refused keeps its job due, and the certificate says so",
        tests=(f"{U_SWEEP}::test_a_letter_that_was_refused_keeps_its_job_due",),
    ),
)
