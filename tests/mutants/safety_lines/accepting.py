"""Safety lines of accepting: nothing is acknowledged that is not stored."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ACCEPT = "handlers/accept.py"
IDS = "core/ids.py"
INTAKE = "core/intake.py"
I_ACCEPT = "tests/integration/test_handler_accept.py"
I_UPLOADS = "tests/integration/test_handler_accept_uploads.py"
S3 = "adapters/s3.py"
U_INTAKE = "tests/unit/test_intake.py"
U_REPEATS = "tests/unit/test_intake_repeats.py"

LINES = (
    SafetyLine(
        name="accept: a large input is stored before the record makes it count",
        file=INTAKE,
        line="""\
            door.inputs.put(ids.input_key(record["tenant"], record["pk"], record["body_sha"]), body.encode())
""",
        without="            pass\n",
        guards="G1, hole 1: no record points to an input that is not there",
        tests=(f"{U_INTAKE}::test_hole_1_the_large_input_is_stored_before_the_record_makes_it_count",),
    ),
    SafetyLine(
        name="accept: an input that could not be stored is not accepted",
        file=INTAKE,
        line="""\
        return _after_trouble(Unavailable(str(error), unknown=False), record, door)  # the record was not tried
""",
        without="        pass\n",
        guards="G1, G3: nothing is acknowledged that is not stored",
        tests=(f"{U_REPEATS}::test_an_input_that_could_not_be_stored_is_503_not_accepted_and_no_record_is_tried",),
    ),
    SafetyLine(
        name="accept: the body's hash is in the key of its input",
        file=IDS,
        line='    return f"{names.INPUTS_PREFIX}{tenant}/{job_id}/{body_sha}"',
        without='    return f"{names.INPUTS_PREFIX}{tenant}/{job_id}/input"',
        guards="hole 1: another body under the same key does not overwrite the accepted input",
        tests=(f"{U_REPEATS}::test_hole_1_another_body_under_the_same_key_does_not_overwrite_the_accepted_input",),
    ),
    SafetyLine(
        name="accept: the tenant is in the job's id",
        file=IDS,
        line="    return sha256_of([tenant, method, route, key])[:_JOB_ID_DIGITS]\n",
        without="    return sha256_of([method, route, key])[:_JOB_ID_DIGITS]\n",
        guards="G5, hole 3: another tenant's key is another job",
        tests=(f"{U_REPEATS}::test_api_08_another_tenant_has_its_own_job_under_the_same_key",),
    ),
    SafetyLine(
        name="accept: no split of tenant and key makes two jobs one",
        file=IDS,
        line="    return sha256_of([tenant, method, route, key])[:_JOB_ID_DIGITS]\n",
        without='    return sha256_of("|".join([tenant, method, route, key]))[:_JOB_ID_DIGITS]\n',
        guards="G5, hole 3: a separator in a tenant or a key moves nothing",
        tests=("tests/unit/test_ids.py::test_a_separator_moved_from_the_key_into_the_tenant_makes_another_job",),
    ),
    SafetyLine(
        name="accept: another tenant's record is never answered",
        file=INTAKE,
        line="""\
    if found.get("tenant") != record["tenant"]:
        raise ForeignRecord(job_id)
""",
        without="",
        guards="G5, hole 3: if ids ever collide, nothing of the other tenant is told",
        tests=(f"{U_REPEATS}::test_hole_3_another_tenants_record_under_our_id_is_never_answered",),
    ),
    SafetyLine(
        name="accept: a deleted job is not there again",
        file=INTAKE,
        line="""\
    if found.get("status") == DELETED:
        return gone(job_id)
""",
        without="",
        guards="N1: the key of a deleted job is 410, with whatever body",
        tests=(f"{U_REPEATS}::test_n1_a_deleted_job_is_gone_also_under_its_key_and_with_any_body",),
    ),
    SafetyLine(
        name="accept: another body under the same key is refused",
        file=INTAKE,
        line='    if found.get("body_sha") != record["body_sha"]:\n',
        without="    if False:\n",
        guards="G2: an event is not answered by another event's job",
        tests=(f"{U_REPEATS}::test_api_06_the_same_key_with_another_body_is_422",),
    ),
    SafetyLine(
        name="accept: an unknown outcome is looked at once more",
        file=INTAKE,
        line="""\
    if standing is not None:
        return _answer(record, standing)
""",
        without="",
        guards="G3, hole 4: a put that landed unheard is a 202, not a 503",
        tests=(f"{U_REPEATS}::test_an_unknown_outcome_that_a_read_decides_is_the_ordinary_answer",),
    ),
    SafetyLine(
        name="accept: what may have been recorded is not called not accepted",
        file=INTAKE,
        line="""\
    if error.unknown:
        return _unknown(job_id, str(error))
""",
        without="",
        guards="G3, hole 4: a 503 says what is known",
        tests=(f"{U_REPEATS}::test_an_unknown_outcome_that_a_read_does_not_find_stays_unknown_and_carries_the_job_id",),
    ),
    SafetyLine(
        name="accept: a record that cannot be read is no 202",
        file=INTAKE,
        line="""\
    except UnreadableRecord as error:
        return _unknown(record["pk"], str(error))
""",
        without="",
        guards="G4: whatever stands there, the answer is one of the contract",
        tests=(f"{U_REPEATS}::test_a_record_that_nobody_can_read_is_503_unknown_and_no_acknowledgement",),
    ),
    SafetyLine(
        name="accept: an event becomes a record",
        file=INTAKE,
        line="        return _answer(record, door.store.create(record))\n",
        without="        return _answer(record, None)\n",
        guards="G1: 202 means recorded",
        tests=(f"{U_INTAKE}::test_an_event_becomes_a_pending_record_in_one_write",),
    ),
    SafetyLine(
        name="accept: the deadline counts from when a job may start",
        file=INTAKE,
        line="    deadline = after(not_before, limits.deadline_s)\n",
        without="    deadline = after(now, limits.deadline_s)\n",
        guards="G7, N6: a job for in three days is not late before it may start",
        tests=(f"{U_INTAKE}::test_a_job_starts_no_earlier_than_asked_and_its_deadline_counts_from_there",),
    ),
    SafetyLine(
        name="accept: an open record is due",
        file=INTAKE,
        line='        "due_shard": ids.due_shard(job_id),\n',
        without="",
        guards="G11: a job whose stream record is lost is found by the sweep",
        tests=(f"{U_INTAKE}::test_an_event_becomes_a_pending_record_in_one_write",),
    ),
    SafetyLine(
        name="accept: the whole request is in the hash",
        file=INTAKE,
        line="record = new_record(submission, request, sha256(body), job_id=job_id,",
        without='record = new_record(submission, request, sha256(canonical(request["input"])), job_id=job_id,',
        guards="G2: another type or start under the same key is another request",
        tests=(f"{U_REPEATS}::test_api_06_the_same_key_with_another_body_is_422",),
    ),
    SafetyLine(
        name="accept: a key that is none is refused",
        file=INTAKE,
        line="    if submission.key is not None and not KEY.fullmatch(submission.key):\n",
        without="    if False:\n",
        guards="G2: a key that cannot be one is not taken for no key",
        tests=(f"{U_INTAKE}::test_a_key_that_is_no_visible_ascii_text_is_400",),
    ),
    SafetyLine(
        name="accept: 202 comes after the event is in the inbox",
        file=ACCEPT,
        line="    if not isinstance(message, Problem) and own.inbox.send([message]):\n",
        without="    if False:\n",
        guards="G1: an event of a binary source is acknowledged only when SQS has it",
        tests=(f"{I_UPLOADS}::test_the_exact_bytes_of_an_event_are_in_the_inbox_before_the_202",),
    ),
    SafetyLine(
        name="accept: an event that SQS did not take is 503",
        file=ACCEPT,
        line="""\
        message = Problem(503, "not-accepted", "The event was not accepted", "Send it again.", cause="SQS refused it")
""",
        without="        pass\n",
        guards="G1, G3: nothing is acknowledged that is not stored",
        tests=(f"{I_UPLOADS}::test_an_event_that_sqs_does_not_take_is_503_to_be_sent_again",),
    ),
    SafetyLine(
        name="accept: 202 is the answer to what was recorded alone",
        file=ACCEPT,
        line="            return _refused(problem, own.log, tenant)\n",
        without='            return http.answer(202, views.accepted(problem.job_id or ""))\n',
        guards="G1, G3: a refusal is no acknowledgement",
        tests=(f"{I_ACCEPT}::test_api_09_nothing_is_accepted_when_the_record_cannot_be_written",),
    ),
    SafetyLine(
        name="accept: the 202 names the job that was recorded",
        file=ACCEPT,
        line="""\
            return http.answer(202, views.accepted(accepted.job_id), Location=f"/jobs/{accepted.job_id}")
""",
        without="""\
            return http.answer(202, views.accepted(own.door.new_id()), Location=f"/jobs/{accepted.job_id}")
""",
        guards="G2: the same key gets the same 202",
        tests=(f"{I_ACCEPT}::test_an_event_is_recorded_and_then_answered_with_202",),
    ),
    SafetyLine(
        name="upload: a form names a job that is its tenant's and its type's",
        file=IDS,
        line="    return _JOB_ID.fullmatch(name) is not None and upload_id(tenant, type_, name) == name\n",
        without="    return _JOB_ID.fullmatch(name) is not None\n",
        guards="G24: an object that somebody put under a name of this look is not taken for the announced one",
        tests=("tests/unit/test_uploads.py::test_a_name_that_only_looks_given_out_is_a_foreign_one",),
    ),
    SafetyLine(
        name="upload: the very version is read that became the job",
        file=S3,
        line='        which = {"VersionId": version} if version else {"IfMatch": f\'"{etag}"\'}\n',
        without='        which = {} if version else {"IfMatch": f\'"{etag}"\'}\n',
        guards="G24, hole 39: every version is its own job, with its own content",
        tests=("tests/integration/test_adapter_uploads.py::test_the_very_version_is_read",),
    ),
    SafetyLine(
        name="upload: without versions the content must be the one that was announced",
        file=S3,
        line='        which = {"VersionId": version} if version else {"IfMatch": f\'"{etag}"\'}\n',
        without='        which = {"VersionId": version} if version else {}\n',
        guards="G24, hole 39: an upload that was overwritten before it was read ends visibly",
        tests=(
            "tests/integration/test_adapter_uploads.py::test_without_versions_the_content_must_be_the_one_that_was_announced",
        ),
    ),
)
