"""Safety lines of streamed text: what is shown is what is stored, and a broken stream is no answer."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ASKING = "core/asking.py"
BEDROCK = "adapters/bedrock.py"
CALL = "adapters/single_call.py"
LIFECYCLE = "core/lifecycle.py"
READING = "core/streaming/reading.py"
RECORDER = "core/streaming/recorder.py"
TEXT = "core/streaming/text.py"
I_STREAMS = "tests/integration/test_adapter_bedrock_streams.py"
U_EXECUTION = "tests/unit/test_execution_streams.py"
U_READING = "tests/unit/test_streaming_reading.py"
U_RECORDER = "tests/unit/test_streaming_recorder.py"

LINES = (
    SafetyLine(
        name="stream: an answer's text is all stored before the job can be complete",
        file=ASKING,
        line='        recorder.said(kept.value["text"])\n',
        without="",
        guards="a final record's chunks are complete: readers stop at it",
        tests=(
            f"{U_EXECUTION}::test_all_of_the_text_is_stored_before_the_job_is_complete",
            f"{U_EXECUTION}::test_an_answer_that_was_there_already_comes_as_text_too",
        ),
    ),
    SafetyLine(
        name="stream: while the model speaks, trouble with the table is put off",
        file=RECORDER,
        line="                self._silent = True\n                self.notice(\"chunk_put_off\", n=self._missing[0].n",
        without="                raise\n                self.notice(\"chunk_put_off\", n=self._missing[0].n",
        guards="paid once comes first: a chunk that cannot be stored does not cost the answer",
        tests=(f"{U_EXECUTION}::test_paid_once_comes_first_what_is_missing_is_stored_after_the_answer",),
    ),
    SafetyLine(
        name="stream: what could not be stored is told when the answer is safe",
        file=RECORDER,
        line="                if not repeats:\n                    raise\n",
        without="                if not repeats:\n                    return\n",
        guards="a job is not complete while a part of its text is missing",
        tests=(
            f"{U_RECORDER}::test_a_store_that_stays_away_is_told_once_the_answer_is_safe",
            f"{U_EXECUTION}::test_text_that_cannot_be_stored_costs_a_wait_and_no_second_call",
        ),
    ),
    SafetyLine(
        name="stream: another answer than the one that was heard is not shown after it",
        file=RECORDER,
        line="        if heard and heard != text:\n",
        without="        if False:\n",
        guards="the text of an attempt is its stored answer, never a mixture",
        tests=(f"{U_RECORDER}::test_another_answer_than_the_one_that_was_heard_is_never_mixed_with_it",),
    ),
    SafetyLine(
        name="stream: text that was cut has no continuation in its attempt",
        file=RECORDER,
        line="        self._torn = bool(self._heard)\n",
        without="",
        guards="the text of an attempt is its stored answer, never a mixture",
        tests=(f"{U_EXECUTION}::test_a_task_that_passes_over_a_broken_stream_does_not_mix_two_texts",),
    ),
    SafetyLine(
        name="stream: a pair of surrogates may be shared by two deltas",
        file=TEXT,
        line="        self._half = text[split:]\n        return clean(text[:split])\n",
        without="        return clean(text)\n",
        guards="what is heard is, to the byte, the text of the reply",
        tests=(f"{I_STREAMS}::test_env_04_a_pair_of_surrogates_that_two_deltas_share_is_its_character",),
    ),
    SafetyLine(
        name="stream: one without its end is no answer",
        file=BEDROCK,
        line="        if self._stop is None or self._usage is None:\n",
        without="        self._stop, self._usage = self._stop or {\"stopReason\": \"end_turn\"}, self._usage or "
        '{"inputTokens": 1, "outputTokens": 1}\n        if False:\n',
        guards="BED-09, BED-10: a job is never COMPLETED from a cut stream",
        tests=(f"{I_STREAMS}::test_bed_09_a_stream_that_is_not_whole_is_transient_and_maybe_billed",),
    ),
    SafetyLine(
        name="stream: a piece that cannot be read is not left out",
        file=BEDROCK,
        line='            case {"contentBlockDelta": part} if "delta" not in part:',
        without='            case {"contentBlockDelta": part} if False:',
        guards="BED-10: no answer with a gap in it",
        tests=(f"{I_STREAMS}::test_bed_09_a_stream_that_is_not_whole_is_transient_and_maybe_billed",),
    ),
    SafetyLine(
        name="stream: an error in mid-stream may have been billed",
        file=BEDROCK,
        line="maybe_billed=begun or code in MAYBE_BILLED)",
        without="maybe_billed=code in MAYBE_BILLED)",
        guards="G15, BED-21: what was billed for nothing is on the record",
        tests=(f"{I_STREAMS}::test_bed_08_an_error_in_mid_stream_is_told_by_its_code_in_its_other_spelling",),
    ),
    SafetyLine(
        name="stream: its codes begin with a small letter",
        file=BEDROCK,
        line="    code = code[:1].upper() + code[1:]",
        without="    code = code[:]",
        guards="BED-08: a throttle in mid-stream is a throttle",
        tests=(f"{I_STREAMS}::test_bed_08_an_error_in_mid_stream_is_told_by_its_code_in_its_other_spelling",),
    ),
    SafetyLine(
        name="call: every byte counts against one deadline",
        file=CALL,
        line="        self._sock.settimeout(_left(self._ends))\n        read: int",
        without="        read: int",
        guards="BED-01: a call ends in its time however it drips",
        tests=(f"{I_STREAMS}::test_bed_01_a_stream_that_drips_ends_at_the_deadline_of_the_whole_call",),
    ),
    SafetyLine(
        name="reading: a final job has said all only with its last text",
        file=READING,
        line="    final = found.is_final and not (texts and",
        without="    final = found.is_final and not (False and",
        guards="who stops at `final` has all of the text",
        tests=(f"{U_READING}::test_a_final_job_has_said_all_only_with_its_last_text",),
    ),
    SafetyLine(
        name="reading: text of an earlier attempt is void",
        file=READING,
        line="    first = 0 if restarted else place.first\n",
        without="    first = place.first\n",
        guards="who watched an attempt that died has in the end the text of the last one, from its beginning",
        tests=(
            f"{U_READING}::test_text_of_an_earlier_attempt_is_void_and_the_new_one_begins_at_its_beginning",
        ),
    ),
    SafetyLine(
        name="reading: a place behind the end is told as such",
        file=READING,
        line="    return texts[1:] if texts else None\n",
        without="    return texts[1:]\n",
        guards="who stops at `final` has the text of this job, and not of one that had its id before",
        tests=(
            f"{U_READING}::test_a_place_behind_the_end_is_none_of_this_text_which_is_told_from_its_beginning",
        ),
    ),
    SafetyLine(
        name="delete: streamed text goes with its job",
        file=LIFECYCLE,
        line="    office.chunks.delete_all(job_id)\n",
        without="",
        guards="row 9d: nothing is left of a deleted job but its tombstone",
        tests=("tests/unit/test_lifecycle.py::test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own",),
    ),
)  # fmt: skip
