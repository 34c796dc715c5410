"""What runs tasks, on the real ports: the same for the worker and for the branches of workflows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.bedrock import BedrockModel
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import brief_client, client, model_client, single_attempt_client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.effects import DynamoEffects
from lambdas.adapters.environment import Environment
from lambdas.adapters.idempotency import PowertoolsAnswers
from lambdas.adapters.s3 import S3Objects, S3Uploads
from lambdas.adapters.ses import NoMailer, SesMailer
from lambdas.contracts import names
from lambdas.core.execution import Worker
from lambdas.core.tasks import Task


@dataclass(frozen=True)
class Working:
    """`answers` and `effects` are the worker's own: they must hear of each invocation."""

    worker: Worker
    answers: PowertoolsAnswers
    effects: DynamoEffects

    def invocation_started(self, context: Any) -> None:
        """To be told before anything is asked for: what is under way is so until this invocation ends."""
        self.answers.invocation_started(context)
        self.effects.invocation_started(context)


def working(environment: Environment, tasks: Mapping[str, Task]) -> Working:
    limits, s3 = environment.limits, client("s3")
    results = S3Objects(s3, environment.text(names.RESULTS_BUCKET))
    kept = client("dynamodb"), environment.text(names.ANSWERS_TABLE)
    keep_days = environment.number(names.ANSWER_DAYS, limits.record_days)
    answers = PowertoolsAnswers(*kept, results, keep_days=keep_days)
    effects = DynamoEffects(*kept, keep_days=keep_days)
    sender = environment.text(names.MAIL_FROM) if environment.has(names.MAIL_FROM) else ""
    worker = Worker(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        inputs=S3Objects(s3, environment.text(names.INPUTS_BUCKET)),
        uploads=S3Uploads(s3, environment.text(names.UPLOADS_BUCKET)),
        results=results,
        answers=answers,
        effects=effects,
        mailer=SesMailer(single_attempt_client("sesv2", 10), sender) if sender else NoMailer(),
        model=BedrockModel(model_client(limits.model_timeout_s)),
        model_id=environment.text(names.MODEL_ID),
        chunks=DynamoChunks(brief_client("dynamodb"), environment.text(names.JOBS_TABLE)),
        tasks=tasks,
        limits=limits,
        now=clock.now,
        draw=random.random,
    )
    return Working(worker, answers, effects)
