"""What a function has that runs tasks, worker or branch: places, rules, the model, mail, and what it may touch."""

from __future__ import annotations

from aws_cdk import ArnFormat, Stack

from infra.function import Function
from infra.models import Route
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

_ASKING, _STREAMING = "bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"  # Converse, ConverseStream


def environment(storage: Storage, settings: Settings) -> dict[str, str]:
    """Where inputs, answers and results lie, and the rules of asking."""
    return {
        names.JOBS_TABLE: storage.jobs.table_name,
        names.ANSWERS_TABLE: storage.answers.table_name,
        names.INPUTS_BUCKET: storage.inputs.bucket_name,
        names.RESULTS_BUCKET: storage.results.bucket_name,
        names.UPLOADS_BUCKET: storage.uploads.bucket_name,
        names.MODEL_ID: settings.model_routes[0].model_id,
        names.MODEL_TIMEOUT_S: str(settings.model_timeout_s),
        names.UPLOAD_MAX_BYTES: str(settings.upload_max_bytes),
        names.MAX_SAMPLES: str(settings.max_samples),
        names.ANSWER_DAYS: str(settings.answer_days),
        names.RECORD_DAYS: str(settings.record_days),
        names.DUE_GRACE_S: str(settings.due_grace_s),
        **({names.MAIL_FROM: settings.mail_from} if settings.mail_from else {}),
    }


def allow(function: Function, storage: Storage, settings: Settings, *, streams: bool = False) -> None:
    """To read what a task may read, to ask, to keep answers and results, and to write what became of the job.
    `streams`: answers may be shown while they come."""
    _allow_records(function, storage)
    _allow_objects(function, storage)
    for route in settings.model_routes:
        _allow_model(function, route, *((_ASKING, _STREAMING) if streams else (_ASKING,)))
    if settings.mail_from:
        _allow_mail(function, settings.mail_from)


def _allow_records(function: Function, storage: Storage) -> None:
    function.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
    function.allow(
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        on=storage.answers.table_arn,
    )


def _allow_objects(function: Function, storage: Storage) -> None:
    inputs, results = storage.inputs.arn_for_objects, storage.results.arn_for_objects
    function.allow("s3:GetObject", on=[inputs(f"{names.INPUTS_PREFIX}*"), inputs(f"{names.CONTEXT_PREFIX}*")])
    function.allow("s3:PutObject", on=results(f"{names.RESULTS_PREFIX}*"))
    function.allow("s3:GetObject", "s3:PutObject", "s3:DeleteObject", on=results(f"{names.ANSWERS_PREFIX}*"))
    uploads = storage.uploads.arn_for_objects(f"{names.UPLOADS_PREFIX}*")
    function.allow("s3:GetObject", "s3:GetObjectVersion", on=uploads)
    # without it a missing object is 403, which looks like a lost permission
    buckets = (storage.inputs, storage.results, storage.uploads)
    function.allow("s3:ListBucket", on=[bucket.bucket_arn for bucket in buckets])


def _allow_mail(function: Function, sender: str) -> None:
    """From this address alone; SES asks for the identity that it has verified: the address, or its domain."""
    identities = [
        Stack.of(function).format_arn(service="ses", resource="identity", resource_name=name)
        for name in (sender, sender.partition("@")[2])
    ]
    function.allow("ses:SendEmail", on=identities, when={"StringEquals": {"ses:FromAddress": sender}})


def _allow_model(function: Function, route: Route, *asking: str) -> None:
    """The profile itself, and the model in each region it routes to, but there only through the profile."""
    stack = Stack.of(function)
    served = [
        stack.format_arn(
            service="bedrock",
            region=region,
            account="",
            resource="foundation-model",
            resource_name=route.foundation_model,
        )
        for region in route.regions
    ]
    if not route.is_profile:
        function.allow(*asking, on=served)
        return
    profile = stack.format_arn(
        service="bedrock",
        resource="inference-profile",
        resource_name=route.model_id,
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )
    function.allow(*asking, on=profile)
    function.allow(*asking, on=served, when={"StringEquals": {"bedrock:InferenceProfileArn": profile}})
