"""Safety lines of what comes from outside: signatures, times, reviews, and which object is which job."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

BINARY = "core/inbox/binary_events.py"
INGEST = "core/inbox/ingest.py"
SIGNATURES = "core/inbox/signatures.py"
UPLOADED = "core/inbox/uploaded_inputs.py"
UPLOADS = "core/inbox/uploads.py"
U_SIGNATURES = "tests/unit/test_signatures.py"
U_UPLOADS = "tests/unit/test_uploads.py"
U_WEBHOOKS = "tests/unit/test_webhooks.py"
WEBHOOKS = "core/inbox/webhooks.py"

LINES = (
    SafetyLine(
        name="webhook: its signature is checked",
        file=WEBHOOKS,
        line="""\
    if not reviewed:
        _authenticate(incoming, source, reception.secrets, body)
""",
        without="",
        guards="G22: an event becomes a job only if its source signed these very bytes",
        tests=(f"{U_WEBHOOKS}::test_a_wrong_signature_is_a_letter_and_no_job",),
    ),
    SafetyLine(
        name="webhook: its time is checked",
        file=WEBHOOKS,
        line="""\
    if not reviewed:
        _refuse_the_wrong_hour(event, incoming.received_at)
""",
        without="",
        guards="G22: an old event that is replayed is refused",
        tests=(f"{U_WEBHOOKS}::test_an_old_event_and_one_from_the_future_are_refused",),
    ),
    SafetyLine(
        name="webhook: the source is in the job's id",
        file=WEBHOOKS,
        line='    job_id = ids.job_id_from_key(source.tenant, METHOD, f"{ROUTE}{name}", event_id)\n',
        without="    job_id = ids.job_id_from_key(source.tenant, METHOD, ROUTE, event_id)\n",
        guards="G22: the same id of another source is another job",
        tests=(f"{U_WEBHOOKS}::test_the_same_id_of_another_source_is_another_job",),
    ),
    SafetyLine(
        name="webhook: the event's own id is in the job's id",
        file=WEBHOOKS,
        line='    job_id = ids.job_id_from_key(source.tenant, METHOD, f"{ROUTE}{name}", event_id)\n',
        without='    job_id = ids.job_id_from_key(source.tenant, METHOD, f"{ROUTE}{name}", door.new_id())\n',
        guards="G22: however often an event is delivered, it is one job",
        tests=(f"{U_WEBHOOKS}::test_an_event_that_is_sent_again_is_the_same_job",),
    ),
    SafetyLine(
        name="webhook: an attribute alone proves no review",
        file=WEBHOOKS,
        line="""\
    if review is None or review.get("status") != REPAIRED:
        return False
""",
        without="""\
    if review is None or review.get("status") != REPAIRED:
        return bool(review_id)
""",
        guards="G22: a header that breaks out of its quotes gains nothing",
        tests=(f"{U_WEBHOOKS}::test_an_attribute_alone_proves_nothing",),
    ),
    SafetyLine(
        name="webhook: a review is of this very body",
        file=WEBHOOKS,
        line='    return same and bool(review.get("body_sha") == sha256(incoming.body))\n',
        without="    return same\n",
        guards="G22: a review of something else proves nothing",
        tests=(f"{U_WEBHOOKS}::test_a_review_of_something_else_proves_nothing",),
    ),
    SafetyLine(
        name="webhook: a review is of this very source and time",
        file=WEBHOOKS,
        line='    return same and bool(review.get("body_sha") == sha256(incoming.body))\n',
        without='    return bool(review.get("body_sha") == sha256(incoming.body))\n',
        guards="G22: a review of something else proves nothing",
        tests=(f"{U_WEBHOOKS}::test_a_review_of_something_else_proves_nothing",),
    ),
    SafetyLine(
        name="webhook: a rotated secret counts at once",
        file=WEBHOOKS,
        line="    for age_s in (KEPT_S, DOUBTED_S):\n",
        without="    for age_s in (KEPT_S,):\n",
        guards="G22: a secret can be changed while events come",
        tests=(f"{U_WEBHOOKS}::test_a_rotated_secret_counts_at_once",),
    ),
    SafetyLine(
        name="webhook: a secret that can be no key refuses nothing",
        file=WEBHOOKS,
        line='            raise Unavailable(f"the secret {source.secret}: {mistake}", unknown=False) from mistake\n',
        without="            pass\n",
        guards="G23: a mistake of ours keeps the event; it does not bury it",
        tests=(f"{U_WEBHOOKS}::test_a_secret_that_can_be_no_key_keeps_its_events",),
    ),
    SafetyLine(
        name="signature: it is over the exact bytes",
        file=SIGNATURES,
        line="    return prefix.encode() + body, claimed\n",
        without="    return prefix.encode() + body.strip(), claimed\n",
        guards="G22: any changed byte undoes a signature",
        tests=(f"{U_SIGNATURES}::test_any_changed_byte_of_the_body_undoes_it",),
    ),
    SafetyLine(
        name="signature: the time is signed along",
        file=SIGNATURES,
        line="            prefix = f\"{parts.get('t', [''])[0]}.\"\n",
        without='            prefix = ""\n',
        guards="G22: the time in a signature cannot be changed",
        tests=(f"{U_SIGNATURES}::test_a_right_signature_is_one",),
    ),
    SafetyLine(
        name="signature: one that is claimed must be one",
        file=SIGNATURES,
        line="    found = any(hmac.compare_digest(one, other) for one in claimed for other in expected)\n",
        without="    found = bool(claimed) and bool(expected)\n",
        guards="G22: an event becomes a job only if its source signed it",
        tests=(f"{U_SIGNATURES}::test_another_secret_undoes_it",),
    ),
    SafetyLine(
        name="signature: an empty secret is no key",
        file=SIGNATURES,
        line="""\
    if not key:
        raise UnusableSecret("a secret must not be empty")
""",
        without="",
        guards="G22: nobody can sign with nothing",
        tests=(f"{U_SIGNATURES}::test_a_secret_that_can_be_no_key_is_our_mistake_and_refuses_nothing",),
    ),
    SafetyLine(
        name="upload: an object lies where its tenant and type stand",
        file=UPLOADS,
        line="    if not TENANT.fullmatch(parts[0]):\n",
        without="    if False:\n",
        guards="G5: no key makes a job of a tenant that cannot be one",
        tests=(f"{U_UPLOADS}::test_an_object_in_the_wrong_place_is_a_letter",),
    ),
    SafetyLine(
        name="upload: an object of another bucket is none of ours",
        file=INGEST,
        line="    if bucket != yard.bucket:\n",
        without="    if False:\n",
        guards="G23: a notification about a foreign bucket makes no job",
        tests=(f"{U_UPLOADS}::test_a_record_that_is_none_of_our_bucket_is_a_letter",),
    ),
    SafetyLine(
        name="upload: the first object under a form is its job",
        file=UPLOADS,
        line="    first = yard.objects.first(stored.key) or stored\n",
        without="    first = stored\n",
        guards="G24: the first upload counts, even if S3 tells of the second first",
        tests=(f"{U_UPLOADS}::test_the_first_upload_counts_even_if_the_second_is_told_first",),
    ),
    SafetyLine(
        name="upload: every version is a job of its own",
        file=UPLOADS,
        line="    return stored.version or stored.etag\n",
        without='    return "" if stored.version else stored.etag\n',
        guards="G24, hole 39: no version is dropped because of another",
        tests=(f"{U_UPLOADS}::test_hole_39_every_version_is_a_job_in_whatever_order_they_are_told",),
    ),
    SafetyLine(
        name="upload: without versions each content is a job",
        file=UPLOADS,
        line="    return stored.version or stored.etag\n",
        without="    return stored.version\n",
        guards="G24, hole 39: an overwritten object is not taken for the one before",
        tests=(f"{U_UPLOADS}::test_without_versions_each_content_is_a_job",),
    ),
    SafetyLine(
        name="upload: one that was overwritten ends visibly",
        file=UPLOADED,
        line='        raise Permanent(said, "OVERWRITTEN") from error\n',
        without='        return {"text": said}\n',
        guards="G24: a job does not run on another content than its own",
        tests=(
            "tests/unit/test_uploaded_inputs.py::test_an_upload_that_was_overwritten_before_it_could_be_read_fails_visibly",
        ),
    ),
    SafetyLine(
        name="upload: a large one is not read",
        file=UPLOADED,
        line="""\
    if upload["bytes"] > limits.upload_bytes:
        raise _too_large(limits)
""",
        without="",
        guards="G16: an object that would fill the memory fails alone, before it is read",
        tests=("tests/unit/test_uploaded_inputs.py::test_a_large_object_fails_before_it_is_read",),
    ),
    SafetyLine(
        name="binary: an event without its signature's headers is refused at the door",
        file=BINARY,
        line="    if missing:\n",
        without="    if False:\n",
        guards="G22: what can never be verified is not acknowledged",
        tests=("tests/integration/test_handler_accept_uploads.py::test_an_event_without_a_declared_header_is_refused",),
    ),
)
