"""Where jobs are done: the worker on the work and the urgent queue, its model, and what it may touch."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import tasks
from infra.function import Function
from infra.packaging import Packaging
from infra.queues import Queues
from infra.settings import Settings
from infra.storage import Storage
from infra.workflows import Workflows
from lambdas.contracts import names


class Processing(Construct):
    """`worker`: claims a job, asks the model, stores the result; or starts the execution that does."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        queues: Queues,
        workflows: Workflows,
    ) -> None:
        super().__init__(scope, construct_id)
        self.worker = Function(
            self,
            "worker",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.worker_timeout_s,
            memory_mb=settings.worker_memory_mb,
            environment={
                **tasks.environment(storage, settings),
                **queues.of_work,
                **workflows.place,
                **_rules(settings),
            },
        )
        tasks.allow(self.worker, storage, settings, streams=True)
        self.worker.allow("dynamodb:PutItem", on=storage.jobs.table_arn)  # chunks of streamed text
        workflows.allow_starting(self.worker)
        workflows.allow_describing(self.worker)  # one of this name is there already: what became of it?
        letters = [queues.work_dead_letters.queue_arn, queues.urgent_dead_letters.queue_arn]
        self.worker.allow("sqs:SendMessage", on=letters)
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


def _rules(settings: Settings) -> dict[str, str]:
    return {
        names.MAX_ATTEMPTS: str(settings.max_attempts),
        names.RETRY_BASE_S: str(settings.retry_base_s),
        names.RETRY_CAP_S: str(settings.retry_cap_s),
        names.JITTER: settings.jitter,
        names.DEADLINE_S: str(settings.deadline_s),
        names.SWEEP_PERIOD_S: str(settings.sweep_period_s),
        names.CHUNK_MS: str(settings.chunk_ms),
        names.CHUNK_BYTES: str(settings.chunk_bytes),
    }
