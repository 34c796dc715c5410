"""Safety lines of a tenant's own hand: whose job it is, cancelling, starting again, deleting."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CONTROL = "handlers/control.py"
IDENTITY = "core/identity.py"
LIFECYCLE = "core/lifecycle.py"
LOOKUP = "core/lookup.py"
S3 = "adapters/s3.py"
U_LIFECYCLE = "tests/unit/test_lifecycle.py"
VIEWS = "core/views.py"

LINES = (
    SafetyLine(
        name="delete: an object that S3 did not delete is told",
        file=S3,
        line="""\
    if refused:
        raise Unavailable(""",
        without="""\
    if False:
        raise Unavailable(""",
        guards="row 9d: a DELETE that left something behind is repeated, not acknowledged",
        tests=(
            "tests/integration/test_adapter_s3.py::test_one_object_that_cannot_be_deleted_is_told_though_s3_answers_200",
        ),
    ),
    SafetyLine(
        name="delete: of many objects those that S3 did not delete are told",
        file=S3,
        line="        _all_gone(answer)\n",
        without="        assert answer\n",
        guards="row 9d: a DELETE that left something behind is repeated, not acknowledged",
        tests=(
            "tests/integration/test_adapter_s3.py::test_one_object_that_cannot_be_deleted_is_told_though_s3_answers_200",
        ),
    ),
    SafetyLine(
        name="delete: a folder goes page by page to its end",
        file=S3,
        line="""\
            if not page["IsTruncated"]:
                return
""",
        without="            return\n",
        guards="row 9d: nothing of what a deleted job was about stays",
        tests=(
            "tests/integration/test_adapter_s3.py::test_a_folder_goes_with_all_that_is_in_it_and_nothing_beside_it",
        ),
    ),
    SafetyLine(
        name="delete: only a whole folder is deleted",
        file=S3,
        line='        if not prefix.endswith("/"):\n',
        without="        if False:\n",
        guards="G26: no job's objects go with those of another whose name begins so",
        tests=("tests/integration/test_adapter_s3.py::test_what_is_no_folder_is_not_deleted",),
    ),
    SafetyLine(
        name="delete: a version that S3 did not delete is told",
        file=S3,
        line="""\
                    _all_gone(
                        self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
                    )
""",
        without="""\
                    self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
""",
        guards="G26, row 9d: a DELETE that left something behind is repeated, not acknowledged",
        tests=(
            "tests/integration/test_adapter_uploads.py::test_a_version_that_cannot_be_deleted_is_told_though_s3_answers_200",
        ),
    ),
    SafetyLine(
        name="delete: the input goes",
        file=LIFECYCLE,
        line='    office.inputs.delete_many([ids.input_key(tenant, job_id, tombstone["body_sha"])])\n',
        without="",
        guards="G26: nothing of what a deleted job was about stays",
        tests=(f"{U_LIFECYCLE}::test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own",),
    ),
    SafetyLine(
        name="delete: the results of all attempts, runs and branches go",
        file=LIFECYCLE,
        line="    office.results.delete_folder(ids.job_objects(tenant, job_id))\n",
        without="",
        guards="G26: nothing of what a deleted job was about stays",
        tests=(f"{U_LIFECYCLE}::test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own",),
    ),
    SafetyLine(
        name="delete: only what is the job's own is deleted of its key",
        file=LIFECYCLE,
        line='        office.uploads.delete(upload["key"], "" if own else upload["version"])\n',
        without='        office.uploads.delete(upload["key"], "" if upload["version"] else upload["version"])\n',
        guards="G26, hole 39: the other versions of a key are other jobs' objects",
        tests=(f"{U_LIFECYCLE}::test_an_upload_goes_with_its_job_all_versions_of_it_where_the_name_was_given_out",),
    ),
    SafetyLine(
        name="store: an object that cannot be read is not missing",
        file=S3,
        line="""\
                if code_of(error) in {"NoSuchKey", "404"}:
                    raise Missing(key) from error
                raise
""",
        without="""\
                raise Missing(key) from error
""",
        guards="G13: a bucket that refuses makes a job wait; it does not fail it as INPUT_MISSING",
        tests=("tests/integration/test_adapter_s3.py::test_a_refusal_is_unavailable_and_never_missing",),
    ),
    SafetyLine(
        name="tenant: another tenant's job is not there",
        file=LOOKUP,
        line='    return record if record is not None and record.get("tenant") == tenant else None\n',
        without="    return record\n",
        guards="G5: another tenant's job is a 404",
        tests=(f"{U_LIFECYCLE}::test_what_is_not_the_tenants_is_not_there",),
    ),
    SafetyLine(
        name="tenant: another tenant's job is not listed",
        file=VIEWS,
        line="    return job(found) if wanted and found.tenant == tenant else None\n",
        without="    return job(found) if wanted else None\n",
        guards="G5: no tenant sees another's ids",
        tests=("tests/unit/test_views.py::test_tombstones_unreadable_and_foreign_records_are_not_listed",),
    ),
    SafetyLine(
        name="tenant: a token without a tenant does not fall back",
        file=IDENTITY,
        line='        return _valid((jwt.get("claims") or {}).get(CLAIM), f"the token\'s claim `{CLAIM}`")\n',
        without="""\
        return _valid((jwt.get("claims") or {}).get(CLAIM) or "default", f"the token's claim `{CLAIM}`")
""",
        guards="G5: the tenant is who the verified identity says",
        tests=("tests/unit/test_identity.py::test_a_claim_that_is_no_tenant_id_is_403",),
    ),
    SafetyLine(
        name="tenant: a tenant id is a plain name",
        file=IDENTITY,
        line="    if isinstance(tenant, str) and TENANT.fullmatch(tenant):\n",
        without="    if isinstance(tenant, str):\n",
        guards="G5: no tenant's name leads into another's folder or shard",
        tests=("tests/unit/test_identity.py::test_a_claim_that_is_no_tenant_id_is_403",),
    ),
    SafetyLine(
        name="cancel: what changed meanwhile is looked at again",
        file=LIFECYCLE,
        line="                found = job_in(record, job_id)\n",
        without="                return Cancelled(found)\n",
        guards="row 9: 202 means cancelled; a claim that came between is cancelled all the same",
        tests=(f"{U_LIFECYCLE}::test_a_claim_that_comes_between_is_seen_and_the_job_is_cancelled_all_the_same",),
    ),
    SafetyLine(
        name="cancel: a job that ended otherwise is not cancelled",
        file=LIFECYCLE,
        line="""\
        if found.is_final:
            return wrong_state(job_id, f"It is {found.status}: only an open job can be cancelled.")
""",
        without="",
        guards="G6: an end does not change",
        tests=(f"{U_LIFECYCLE}::test_a_job_that_ended_otherwise_cannot_be_cancelled",),
    ),
    SafetyLine(
        name="retry: only what failed or was cancelled starts again",
        file=LIFECYCLE,
        line="    if found.status not in (FAILED, CANCELLED):\n",
        without="    if False:\n",
        guards="G6: a completed job's result never changes, and an open job is not doubled",
        tests=(f"{U_LIFECYCLE}::test_a_job_that_neither_failed_nor_was_cancelled_is_not_started_again",),
    ),
    SafetyLine(
        name="retry: a lost reply that was claimed since counts as success",
        file=LIFECYCLE,
        line="""\
            if stands.run == found.run + 1:  # opened, and claimed before a lost reply was repeated
                return Reopened(stands)
""",
        without="",
        guards="hole 2: the tenant is not told 409 for an opening of its own",
        tests=(f"{U_LIFECYCLE}::test_a_lost_reply_whose_job_was_claimed_before_the_repeat_counts_as_success",),
    ),
    SafetyLine(
        name="retry: a late cost that comes at this moment is not lost",
        file=LIFECYCLE,
        line="""\
            if replace(found, late_cost=stands.late_cost) == stands:  # it was booked at this moment, and is so once
                return _reopen(stands, office)
""",
        without="",
        guards="G15, N16: it becomes part of the cost, and the retry succeeds",
        tests=(f"{U_LIFECYCLE}::test_what_comes_late_at_the_very_moment_of_the_retry_is_not_lost",),
    ),
    SafetyLine(
        name="delete: an open job is not deleted",
        file=LIFECYCLE,
        line="""\
    if not job.is_final:
        return wrong_state(job.id, f"It is {job.status}: only a final""",
        without="""\
    if False:
        return wrong_state(job.id, f"It is {job.status}: only a final""",
        guards="row 9d: nobody deletes what somebody works on",
        tests=(f"{U_LIFECYCLE}::test_an_open_job_is_not_deleted",),
    ),
    SafetyLine(
        name="delete: a job whose end nobody has heard of is not deleted",
        file=LIFECYCLE,
        line="    if not job.is_handed_over:\n",
        without="    if False:\n",
        guards="G9, N1: a DELETE does not swallow the notification",
        tests=(f"{U_LIFECYCLE}::test_a_job_whose_end_nobody_has_heard_of_is_not_deleted",),
    ),
    SafetyLine(
        name="delete: the tombstone stands before the first object goes",
        file=LIFECYCLE,
        line="""\
        buried = _bury(from_record(record), office)
        if isinstance(buried, Problem):
            return buried
        record = buried
    _remove_objects(record, office)
""",
        without="""\
        _remove_objects(record, office)
        buried = _bury(from_record(record), office)
        if isinstance(buried, Problem):
            return buried
""",
        guards="row 9d: no record points to objects that are gone",
        tests=(f"{U_LIFECYCLE}::test_the_tombstone_stands_before_the_first_object_goes",),
    ),
    SafetyLine(
        name="delete: a repeat finishes what was left",
        file=LIFECYCLE,
        line="""\
    if record.get("status") != DELETED:
        buried""",
        without="""\
    if record.get("status") == DELETED:
        return Deleted(job_id, record["attempt"])
    if True:
        buried""",
        guards="row 9d: a DELETE that was interrupted is finished by asking once more",
        tests=(f"{U_LIFECYCLE}::test_a_repeat_finishes_what_a_failure_has_left",),
    ),
    SafetyLine(
        name="delete: who was refused does not remove objects",
        file=LIFECYCLE,
        line="""\
        if isinstance(buried, Problem):
            return buried
        record = buried
""",
        without="        record = buried if not isinstance(buried, Problem) else record\n",
        guards="row 9d: a job that was opened meanwhile keeps its objects",
        tests=(f"{U_LIFECYCLE}::test_a_job_that_was_opened_meanwhile_is_not_deleted",),
    ),
    SafetyLine(
        name="control: a store that cannot be reached is no 202",
        file=CONTROL,
        line="""\
        return http.problem(Problem(503, "unavailable", "A store cannot be reached", detail), Retry_After="2")
""",
        without="        return http.nothing(202)\n",
        guards="G3: what may not have happened is not acknowledged",
        tests=(
            "tests/integration/test_handler_control.py::test_a_store_that_cannot_be_reached_is_503_and_the_same_request_repairs_it",
        ),
    ),
    SafetyLine(
        name="control: a refusal is no 202",
        file=CONTROL,
        line="""\
            log.notice("refused", tenant=tenant, status=problem.status, reason=problem.kind, job_id=problem.job_id)
            return http.problem(problem)
""",
        without="            return http.nothing(202)\n",
        guards="row 9, row 8: what the state forbids is not acknowledged",
        tests=("tests/integration/test_handler_control.py::test_what_the_state_forbids_is_409_and_changes_nothing",),
    ),
)
