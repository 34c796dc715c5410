"""What moto 5.2.5 does differently from AWS, put right: installed while our server runs, taken back afterwards.

Each module replaces private parts of moto and says why. `tests/integration/test_local_aws_patches.py` shows for each
that stock moto still needs it; when such a test fails after an upgrade, its patch can go.
"""

from __future__ import annotations

from local.aws.patches import (
    dynamodb_comparisons,
    dynamodb_query,
    dynamodb_streams,
    dynamodb_writes,
    memory,
    s3,
    s3_listing,
    s3_notifications,
    s3_pages,
    s3_post,
    sns,
    speed,
    sqs,
    sqs_depth,
    sqs_handles,
    sqs_moves,
)
from local.aws.patches.patch import Patch

PATCHES: tuple[Patch, ...] = (
    *memory.PATCHES,
    *speed.PATCHES,
    *dynamodb_streams.PATCHES,
    *dynamodb_writes.PATCHES,
    *dynamodb_query.PATCHES,
    *dynamodb_comparisons.PATCHES,
    *sqs_depth.PATCHES,
    *sqs.PATCHES,
    *sqs_handles.PATCHES,
    *sqs_moves.PATCHES,
    *s3.PATCHES,
    *s3_listing.PATCHES,
    *s3_notifications.PATCHES,
    *s3_pages.PATCHES,
    *s3_post.PATCHES,
    *sns.PATCHES,
)


def install() -> None:
    """Patch moto in this process. RuntimeError when it already is: one server at a time."""
    if any(patch.installed for patch in PATCHES):
        raise RuntimeError("moto is patched already: one AwsServer per process")
    sqs.RECEIVERS.open()
    for patch in PATCHES:
        patch.install()


def remove() -> None:
    """Give moto back as it was."""
    for patch in reversed(PATCHES):
        patch.remove()


def interrupt_receivers() -> None:
    """Let every long-polling receive return empty now, and those that come later too."""
    sqs.RECEIVERS.close()
