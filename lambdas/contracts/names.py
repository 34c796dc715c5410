"""Names that the deployed stack and the running code must agree on: environment, attributes, indexes, statuses."""

from __future__ import annotations

from typing import Final

# --- status of a job -----------------------------------------------------------------------------
PENDING: Final = "PENDING"
PROCESSING: Final = "PROCESSING"
WAITING: Final = "WAITING"
COMPLETED: Final = "COMPLETED"
FAILED: Final = "FAILED"
CANCELLED: Final = "CANCELLED"
DELETED: Final = "DELETED"  # a tombstone, not a state of work

FINAL: Final = (COMPLETED, FAILED, CANCELLED)
OPEN: Final = (PENDING, PROCESSING, WAITING)
HEARD: Final = (
    PENDING,
    *FINAL,
)  # somebody must hear of a job in one of these: what the stream mapping lets through

# --- the Jobs table ------------------------------------------------------------------------------
JOB_SK: Final = "job"
TTL_ATTRIBUTE: Final = "expires_at"
DUE_INDEX: Final = "due"
DUE_SHARD: Final = "due_shard"
DUE_AT: Final = "due_at"
TENANT_INDEX: Final = "by_tenant"
TENANT_SHARD: Final = "tenant_shard"
CREATED_AT: Final = "created_at"

# --- the answers (idempotency) table -------------------------------------------------------------
ANSWER_KEY: Final = "id"
ANSWER_TTL_ATTRIBUTE: Final = "expiration"

# --- S3 prefixes ---------------------------------------------------------------------------------
INPUTS_PREFIX: Final = "inputs/"
CONTEXT_PREFIX: Final = "context/"
RESULTS_PREFIX: Final = "results/"
ANSWERS_PREFIX: Final = "answers/"

# --- environment variables: where things are -----------------------------------------------------
JOBS_TABLE: Final = "JOBS_TABLE"
ANSWERS_TABLE: Final = "ANSWERS_TABLE"
INPUTS_BUCKET: Final = "INPUTS_BUCKET"
RESULTS_BUCKET: Final = "RESULTS_BUCKET"
WORK_QUEUE_URL: Final = "WORK_QUEUE_URL"
WORK_DLQ_URL: Final = "WORK_DLQ_URL"
DISPATCH_DLQ_URL: Final = "DISPATCH_DLQ_URL"
JOB_EVENTS_TOPIC_ARN: Final = "JOB_EVENTS_TOPIC_ARN"

# --- environment variables: settings (whole seconds and days) ------------------------------------
TENANTS: Final = "TENANTS"  # JSON object {principal ARN: tenant id}; with IAM, who is not named is its account
WAIT_MAX_S: Final = "WAIT_MAX_S"
DEADLINE_S: Final = "DEADLINE_S"
NOT_BEFORE_MAX_S: Final = "NOT_BEFORE_MAX_S"  # how far ahead `not_before` may lie: inputs in S3 are kept for that
DUE_GRACE_S: Final = "DUE_GRACE_S"
SWEEP_PERIOD_S: Final = "SWEEP_PERIOD_S"
RECORD_DAYS: Final = "RECORD_DAYS"
ANSWER_DAYS: Final = "ANSWER_DAYS"
MODEL_ID: Final = "MODEL_ID"
MODEL_TIMEOUT_S: Final = "MODEL_TIMEOUT_S"
MAX_ATTEMPTS: Final = "MAX_ATTEMPTS"
MAX_SAMPLES: Final = "MAX_SAMPLES"
RETRY_BASE_S: Final = "RETRY_BASE_S"
RETRY_CAP_S: Final = "RETRY_CAP_S"
MAIL_FROM: Final = "MAIL_FROM"  # the sender of tasks' e-mails, verified with SES; absent = no e-mail
JITTER: Final = "JITTER"  # full | equal | decorrelated

# --- metrics (CloudWatch embedded metric format) -------------------------------------------------
METRIC_NAMESPACE: Final = "Neverdrop"
METRIC_DIMENSION: Final = "service"  # what Powertools adds by itself; its value is POWERTOOLS_SERVICE_NAME
# emitted by every sweep, 0 when nothing is due, and by workers, for the jobs that they put off
OLDEST_OPEN_JOB: Final = "OldestOpenJobSeconds"
# jobs that a sweep could not read or write, and one more when it did not get to the end
SWEEP_TROUBLES: Final = "SweepTroubles"
