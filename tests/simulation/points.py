"""Where a function can be struck: the calls that it makes for one job, and what can befall each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from local.faults import Fault

About = Literal["job", "answer", "failure", ""]


@dataclass(frozen=True)
class Point:
    """One AWS call of a function: the `nth` of its kind in an invocation that names the job, its answer, or the fact
    that it failed. Without `about`: whatever it names."""

    function: str
    name: str
    service: str
    operation: str
    about: About = "job"
    nth: int = 1


@dataclass(frozen=True)
class Strike:
    """What happens there. `calls`: so many in a row; the AWS SDK makes three attempts, at the door two."""

    kind: str
    when: str
    calls: int = 1

    def faults(self, point: Point, names: str | None) -> list[Fault]:
        return [
            Fault(
                point.function, self.kind, self.when, nth=point.nth + number, service=point.service,
                operation=point.operation, job_id=names,
            )
            for number in range(min(self.calls, 2 if point.function == "accept" else 3))
        ]  # fmt: skip


STRIKES = {
    "crash_before": Strike("crash", "before"),
    "crash_after": Strike("crash", "after"),
    "timeout_before": Strike("timeout", "before"),
    "timeout_after": Strike("timeout", "after"),
    "lost_reply": Strike("lost_reply", "after"),
    "throttle": Strike("throttle", "before"),
    "refused": Strike("throttle", "before", 3),  # for good, as far as this invocation is concerned
    "unheard": Strike("lost_reply", "after", 3),
}
MODEL_STRIKES = ("crash", "timeout", "lost_reply", "throttle")  # the model is no AWS call: see plays.strike_model
KILLS = ("crash_before", "crash_after", "timeout_before", "timeout_after")

ACCEPT = (Point("accept", "record", "dynamodb", "PutItem"),)
ACCEPT_LARGE = (Point("accept", "input", "s3", "PutObject"), *ACCEPT)

SEND = Point("dispatch", "send", "sqs", "SendMessageBatch")
LETTER = Point("dispatch", "letter", "sqs", "SendMessageBatch", "failure")
HAND_OVER = (
    Point("dispatch", "publish", "sns", "PublishBatch"),
    Point("dispatch", "mark", "dynamodb", "UpdateItem"),
)

CLAIM = Point("worker", "claim", "dynamodb", "UpdateItem")
INPUT = Point("worker", "input", "s3", "GetObject")
GUARD = Point("worker", "guard", "dynamodb", "PutItem", "answer")
ANSWER = Point("worker", "answer", "s3", "PutObject", "answer")
MODEL = Point("worker", "model", "bedrock", "Converse", "")
SAVE = Point("worker", "save", "dynamodb", "UpdateItem", "answer")
RESULT = Point("worker", "result", "s3", "PutObject")
COMPLETE = Point("worker", "complete", "dynamodb", "UpdateItem", nth=2)
FAIL = Point("worker", "fail", "dynamodb", "UpdateItem", nth=2)

WORKER = (CLAIM, GUARD, SAVE, RESULT, COMPLETE)
WORKER_LARGE = (CLAIM, INPUT, GUARD, ANSWER, SAVE, RESULT, COMPLETE)
WORKER_FAILING = (CLAIM, GUARD, Point("worker", "free", "dynamodb", "DeleteItem", "answer"), FAIL)

SWEEP_READ = Point("sweep", "read", "dynamodb", "GetItem")
SWEEP_SEND = Point("sweep", "send", "sqs", "SendMessageBatch")
SWEEP_PUSH = Point("sweep", "push", "dynamodb", "UpdateItem")
SWEEP_PUBLISH = Point("sweep", "publish", "sns", "PublishBatch")
SWEEP_MARK = Point("sweep", "mark", "dynamodb", "UpdateItem")
SWEEP_LETTER = Point("sweep", "letter", "sqs", "SendMessageBatch", "failure")
SWEEP_REAP = Point("sweep", "reap", "dynamodb", "UpdateItem")
SWEEP_EXPIRE = Point("sweep", "expire", "dynamodb", "UpdateItem")
SWEEP_LOOK = Point("sweep", "look", "dynamodb", "Query", "")
# its own bookkeeping, about no job; the UpdateItems are counted with those about jobs
SWEEP_OPEN = Point("sweep", "open", "dynamodb", "PutItem", "")
SWEEP_TAKE = Point("sweep", "take", "dynamodb", "UpdateItem", "")
SWEEP_BEGIN = Point("sweep", "begin", "dynamodb", "UpdateItem", "", nth=2)
SWEEP_CLOSE = Point("sweep", "close", "dynamodb", "UpdateItem", "", nth=4)
SWEEP_LOOK_BACK = Point("sweep", "look back", "dynamodb", "GetItem", "", nth=2)
SWEEP_CERTIFY = Point("sweep", "certify", "s3", "PutObject", "")
SWEEP_END = Point("sweep", "end", "dynamodb", "UpdateItem", "", nth=5)
SWEEP_GIVE_BACK = Point("sweep", "give back", "dynamodb", "UpdateItem", "", nth=6)
SWEEP_DEPTH = Point("sweep", "depth", "sqs", "GetQueueAttributes", "")
