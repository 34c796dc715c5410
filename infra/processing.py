"""Where jobs are done: the worker on the work and the urgent queue, its model, and what it may touch."""

from __future__ import annotations

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.function import Function
from infra.models import Route
from infra.packaging import Packaging
from infra.queues import Queues
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

_ASKING = ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")  # Converse, ConverseStream


class Processing(Construct):
    """`worker`: claims a job, asks the model, stores the result."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        queues: Queues,
    ) -> None:
        super().__init__(scope, construct_id)
        self.worker = Function(
            self,
            "worker",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.worker_timeout_s,
            memory_mb=settings.worker_memory_mb,
            environment=_places(storage, queues) | _rules(settings),
        )
        _allow_records(self.worker, storage)
        _allow_objects(self.worker, storage)
        letters = [queues.work_dead_letters.queue_arn, queues.urgent_dead_letters.queue_arn]
        self.worker.allow("sqs:SendMessage", on=letters)
        for route in settings.model_routes:
            _allow_model(self.worker, route)
        if settings.mail_from:
            _allow_mail(self.worker, settings.mail_from)
        served = (queues.work.queue_arn, queues.urgent.queue_arn)
        self.worker.allow_serving(*served)
        self.worker.allow("sqs:ChangeMessageVisibility", on=list(served))  # it hides what comes too early
        self._serve("Work", queues.work, settings.max_concurrency, settings)
        # a share of its own: however long the work queue is, an urgent job finds a worker
        self._serve("Urgent", queues.urgent, settings.urgent_concurrency, settings)

    def _serve(self, name: str, queue: sqs.Queue, max_concurrency: int, settings: Settings) -> None:
        lambda_.EventSourceMapping(
            self,
            name,
            target=self.worker.resource,
            event_source_arn=queue.queue_arn,
            batch_size=settings.batch_size,
            max_batching_window=Duration.seconds(settings.batch_window_s),
            max_concurrency=max_concurrency,
            report_batch_item_failures=True,
        )


def _places(storage: Storage, queues: Queues) -> dict[str, str]:
    return {
        names.JOBS_TABLE: storage.jobs.table_name,
        names.ANSWERS_TABLE: storage.answers.table_name,
        names.INPUTS_BUCKET: storage.inputs.bucket_name,
        names.RESULTS_BUCKET: storage.results.bucket_name,
        names.UPLOADS_BUCKET: storage.uploads.bucket_name,
        **queues.of_work,
    }


def _rules(settings: Settings) -> dict[str, str]:
    return {
        names.MODEL_ID: settings.model_routes[0].model_id,
        names.MODEL_TIMEOUT_S: str(settings.model_timeout_s),
        names.UPLOAD_MAX_BYTES: str(settings.upload_max_bytes),
        names.MAX_ATTEMPTS: str(settings.max_attempts),
        names.RETRY_BASE_S: str(settings.retry_base_s),
        names.RETRY_CAP_S: str(settings.retry_cap_s),
        names.JITTER: settings.jitter,
        names.MAX_SAMPLES: str(settings.max_samples),
        names.ANSWER_DAYS: str(settings.answer_days),
        names.RECORD_DAYS: str(settings.record_days),
        names.DEADLINE_S: str(settings.deadline_s),
        names.DUE_GRACE_S: str(settings.due_grace_s),
        names.SWEEP_PERIOD_S: str(settings.sweep_period_s),
        names.CHUNK_MS: str(settings.chunk_ms),
        names.CHUNK_BYTES: str(settings.chunk_bytes),
        **({names.MAIL_FROM: settings.mail_from} if settings.mail_from else {}),
    }


def _allow_records(worker: Function, storage: Storage) -> None:
    worker.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
    worker.allow("dynamodb:PutItem", on=storage.jobs.table_arn)  # chunks of streamed text
    worker.allow(
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        on=storage.answers.table_arn,
    )


def _allow_objects(worker: Function, storage: Storage) -> None:
    inputs, results = storage.inputs.arn_for_objects, storage.results.arn_for_objects
    worker.allow("s3:GetObject", on=[inputs(f"{names.INPUTS_PREFIX}*"), inputs(f"{names.CONTEXT_PREFIX}*")])
    worker.allow("s3:PutObject", on=results(f"{names.RESULTS_PREFIX}*"))
    worker.allow("s3:GetObject", "s3:PutObject", "s3:DeleteObject", on=results(f"{names.ANSWERS_PREFIX}*"))
    uploads = storage.uploads.arn_for_objects(f"{names.UPLOADS_PREFIX}*")
    worker.allow("s3:GetObject", "s3:GetObjectVersion", on=uploads)
    # without it a missing object is 403, which looks like a lost permission
    buckets = (storage.inputs, storage.results, storage.uploads)
    worker.allow("s3:ListBucket", on=[bucket.bucket_arn for bucket in buckets])


def _allow_mail(worker: Function, sender: str) -> None:
    """From this address alone; SES asks for the identity that it has verified: the address, or its domain."""
    identities = [
        Stack.of(worker).format_arn(service="ses", resource="identity", resource_name=name)
        for name in (sender, sender.partition("@")[2])
    ]
    worker.allow("ses:SendEmail", on=identities, when={"StringEquals": {"ses:FromAddress": sender}})


def _allow_model(worker: Function, route: Route) -> None:
    """The profile itself, and the model in each region it routes to, but there only through the profile."""
    stack = Stack.of(worker)
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
        worker.allow(*_ASKING, on=served)
        return
    profile = stack.format_arn(
        service="bedrock",
        resource="inference-profile",
        resource_name=route.model_id,
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )
    worker.allow(*_ASKING, on=profile)
    worker.allow(*_ASKING, on=served, when={"StringEquals": {"bedrock:InferenceProfileArn": profile}})
