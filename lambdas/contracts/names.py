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
UPLOAD_INDEX: Final = "by_upload"  # sparse: jobs that an object in the uploads bucket became, in the order of its keys
UPLOAD_SHARD: Final = "upload_shard"
UPLOAD_KEY: Final = "upload_key"
STATUS: Final = "status"
STREAM: Final = "stream"  # a job whose text is streamed
PROGRESS_AT: Final = "progress_at"  # of a workflow: when one of its branches was last over, or tried again

# --- items beside a job's record, in its partition: `due` and the stream tell them by their `sk` ---------------
CHUNK_SK: Final = "chunk#"  # chunk#<attempt>#<n>, six digits each: streamed text, never changed
DELIVERY_SK: Final = "delivery#"  # delivery#<endpoint>#<event id>: a webhook's delivery, with a protocol like a job's
PING_PK: Final = "ping#"  # a test of an endpoint is a delivery without a job

# --- a tenant's endpoints: pk `tenant#<tenant>` -----------------------------------------------------
TENANT_PK: Final = "tenant#"
ENDPOINT_SK: Final = "endpoint#"  # endpoint#<id>
CALLBACK: Final = "callback"  # the id of what stands for all callback URLs of a tenant: its secret
CIRCUIT_SK: Final = "circuit#"  # circuit#<endpoint id>: who is calling it, and whether it may be called

# --- the connections table: tickets, connections and what they watch; nothing that must survive ------------
CONNECTIONS_TTL_ATTRIBUTE: Final = "expires_at"
TICKET_PK: Final = "ticket#"  # ticket#<sha256 of the ticket>, sk `ticket`
TICKET_SK: Final = "ticket"
CONNECTION_PK: Final = "conn#"  # conn#<connection id>: sk `conn` itself, sk `job#<job id>` what it watches
CONNECTION_SK: Final = "conn"
WATCHED_PK: Final = "job#"  # job#<job id>, sk `conn#<connection id>`: who watches a job

# --- the answers (idempotency) table -------------------------------------------------------------
ANSWER_KEY: Final = "id"
ANSWER_TTL_ATTRIBUTE: Final = "expiration"

# --- items of operations: never `sk = job`, so that the stream's filter passes them by ---------------
LEASE_SK: Final = "lease"  # pk `lease#<name>`: one at a time, and where the last one stopped
SWEEP_SK: Final = "sweep"  # pk `sweep#<id>`
REDRIVE_SK: Final = "redrive"  # pk `redrive#<id>`
REVIEW_PK: Final = "review"  # sk: the letter's id; what an operator decided about it, and why

# --- sources of events ---------------------------------------------------------------------------
UPLOADS: Final = "uploads"  # the source that every deployment has
# attributes of a message in the inbox; API Gateway writes them, or `admin` for a repaired one, never the sender
INBOX_SOURCE: Final = "source"
INBOX_REQUEST: Final = "request_id"
INBOX_RECEIVED: Final = "received_ms"  # epoch milliseconds at the door
INBOX_HEADERS: Final = ("signature", "event_id", "timestamp")  # the source's own headers, as far as it declares them
INBOX_ENCODING: Final = "encoding"  # "base64" where the body's bytes are no text
INBOX_REVIEW: Final = "review_id"  # an operator repaired it: checked for its schema, not for its signature
REVIEWED: Final = (INBOX_SOURCE, "event_id")  # attributes of an event that its review has, beside the body's hash
INBOX_RETURNS: Final = "returns"  # how often the sweep has put it back from the dead letters

# --- the parts that every sweep has, beside those of sources: no source may be named so ---------------
SWEEP_PARTS: Final = ("stuck", "deliveries", "letters", UPLOADS, "drift")

# --- S3 prefixes ---------------------------------------------------------------------------------
INPUTS_PREFIX: Final = "inputs/"
CONTEXT_PREFIX: Final = "context/"
RESULTS_PREFIX: Final = "results/"
ANSWERS_PREFIX: Final = "answers/"
UPLOADS_PREFIX: Final = "uploads/"
CERTIFICATES_PREFIX: Final = "sweeps/"

# --- environment variables: where things are -----------------------------------------------------
JOBS_TABLE: Final = "JOBS_TABLE"
ANSWERS_TABLE: Final = "ANSWERS_TABLE"
INPUTS_BUCKET: Final = "INPUTS_BUCKET"
RESULTS_BUCKET: Final = "RESULTS_BUCKET"
WORK_QUEUE_URL: Final = "WORK_QUEUE_URL"
WORK_DLQ_URL: Final = "WORK_DLQ_URL"
URGENT_QUEUE_URL: Final = "URGENT_QUEUE_URL"
URGENT_DLQ_URL: Final = "URGENT_DLQ_URL"
INBOX_QUEUE_URL: Final = "INBOX_QUEUE_URL"
INBOX_DLQ_URL: Final = "INBOX_DLQ_URL"
UPLOADS_BUCKET: Final = "UPLOADS_BUCKET"
DISPATCH_DLQ_URL: Final = "DISPATCH_DLQ_URL"
JOB_EVENTS_TOPIC_ARN: Final = "JOB_EVENTS_TOPIC_ARN"
CONNECTIONS_TABLE: Final = "CONNECTIONS_TABLE"
DELIVERIES_QUEUE_URL: Final = "DELIVERIES_QUEUE_URL"
DELIVERIES_DLQ_URL: Final = "DELIVERIES_DLQ_URL"
WEBHOOK_SECRET: Final = "WEBHOOK_SECRET"  # noqa: S105 - the name of a variable; it has the ARN of the master secret
WEBSOCKET_URL: Final = "WEBSOCKET_URL"  # wss://… with the stage: where a ticket is shown
# boto3's own name for it: the WebSocket API's address for those who push, https://… with the stage
PUSH_URL: Final = "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"
# set by the runtime of this machine alone, never by a template: receivers may be on loopback, without TLS
LOCAL: Final = "NEVERDROP_LOCAL"

REDRIVE_FUNCTION: Final = "REDRIVE_FUNCTION"  # its name, to start it
SWEEP_FUNCTION: Final = "SWEEP_FUNCTION"  # its name, for whoever starts one

WORKFLOWS: Final = "WORKFLOWS"  # JSON object: the state machine's ARN by the workflow's type
SOURCES: Final = "SOURCES"  # JSON object: the declared sources of events by name

# --- environment variables: settings (whole seconds and days) ------------------------------------
TENANTS: Final = "TENANTS"  # JSON object {principal ARN: tenant id}; with IAM, who is not named is its account
WAIT_MAX_S: Final = "WAIT_MAX_S"
UPLOAD_MAX_BYTES: Final = "UPLOAD_MAX_BYTES"
DEADLINE_S: Final = "DEADLINE_S"
NOT_BEFORE_MAX_S: Final = "NOT_BEFORE_MAX_S"  # how far ahead `not_before` may lie: inputs in S3 are kept for that
DUE_GRACE_S: Final = "DUE_GRACE_S"
SWEEP_PERIOD_S: Final = "SWEEP_PERIOD_S"
SWEEP_WINDOW_DAYS: Final = "SWEEP_WINDOW_DAYS"  # how far back sources are compared with the records
SOURCE_GRACE_S: Final = "SOURCE_GRACE_S"  # younger events may still be on their way
SWEEP_WIDTH: Final = "SWEEP_WIDTH"  # what a sweep does at once
SWEEP_RATE: Final = "SWEEP_RATE"  # and in a second, at most
SWEEP_PAGE: Final = "SWEEP_PAGE"  # objects and items listed at once
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
CHUNK_MS: Final = "CHUNK_MS"  # streamed text is stored when the oldest of it has waited so long,
CHUNK_BYTES: Final = "CHUNK_BYTES"  # or when there is so much of it
WEBHOOK_TIMEOUT_S: Final = "WEBHOOK_TIMEOUT_S"  # for one attempt, from the lookup of the name to the answer's end
WEBHOOK_HOURS: Final = "WEBHOOK_HOURS"  # how long a delivery is tried
WEBHOOK_CONCURRENCY: Final = "WEBHOOK_CONCURRENCY"  # attempts at once to one endpoint

# --- metrics (CloudWatch embedded metric format) -------------------------------------------------
METRIC_NAMESPACE: Final = "Neverdrop"
METRIC_DIMENSION: Final = "service"  # what Powertools adds by itself; its value is POWERTOOLS_SERVICE_NAME
# emitted by every sweep, 0 when nothing is due, and by workers, for the jobs that they put off
OLDEST_OPEN_JOB: Final = "OldestOpenJobSeconds"
# what a part of a sweep could not read, write or account for, and one more when it failed
SWEEP_TROUBLES: Final = "SweepTroubles"
# one number for each part of a sweep that has ended: what it put back
SWEEP_REPAIRED: Final = "SweepRepaired"
# one number for each sweep of its kind that got to its end, 0 when all is well: their absence is an alarm, too
DUE_JOBS: Final = "DueJobs"
SOURCE_MISSING: Final = "SourceMissing"
DRIFT_FOUND: Final = "DriftFound"
# records that were removed while something was still due: open jobs, or ends that nobody was told of
RECORDS_LOST: Final = "RecordsLost"
# subscriptions of job events that are missing, told by each sweep of what is due
LISTENERS_LOST: Final = "ListenersLost"
# deliveries that were given up: the endpoint has not taken them in all their time, or refused them for good
DELIVERIES_FAILED: Final = "DeliveriesFailed"
# branches whose function ended without a word, each time that it was called: killed, or it could not start
PARTS_LOST: Final = "PartsLost"
