"""What clients, operators and the world do in a scenario, each when its moment has come. True: it was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lambdas.core.policy import DAY_S
from tests.simulation.stage import Stage

if TYPE_CHECKING:
    from tests.simulation.proof.run import Run

Act = Callable[["Run"], bool]
SOURCE_GRACE_S = 900


def submit(run: Run) -> bool:
    run.submit()
    return True


def submit_again(run: Run) -> bool:
    """As soon as the first is accepted, or nobody knows."""
    if not run.is_known:
        return False
    run.submit()
    return True


def submit_again_when_done(run: Run) -> bool:
    return run.is_settled and submit(run)


def come_back_when_done(run: Run) -> bool:
    """Who left in the midst of the text opens another connection, and goes on where he stopped."""
    if not run.is_settled:
        return False
    run.come_back()
    return True


def provide_when_it_waits(run: Run) -> bool:
    """What it needs is put where it looks."""
    if not run.is_known or run.record.get("waits", 0) == 0:
        return False
    run.provide()
    return True


def mend_and_redrive_when_all_failed(run: Run) -> bool:
    """An operator mends what was wrong and moves all letters back: the console's "Redrive to custom destination"."""
    mates = [one for one in run.group if mend_and_redrive_when_all_failed in one.todo]
    if not all(mate.is_settled for mate in mates):
        return False
    for mate in mates:
        mate.provide()
        mate.todo.remove(mend_and_redrive_when_all_failed)
    move_letters_back(run.stage)
    return True


def move_letters_back(stage: Stage) -> None:
    urls = stage.dead_letter_queues["work"], stage.target.outputs["WorkQueueUrl"]
    source, destination = (
        stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        for url in urls
    )
    stage.sqs.start_message_move_task(SourceArn=source, DestinationArn=destination)


def upload_unheard(run: Run) -> bool:
    """An object is put; the notification is lost, and time goes by until the sweep may look at it."""
    run.upload()
    run.stage.advance(SOURCE_GRACE_S + 1)
    return True


def wait_a_day(run: Run) -> bool:
    """Until its deadline is over."""
    if not run.is_known:
        return False
    run.stage.advance(DAY_S)
    return True
