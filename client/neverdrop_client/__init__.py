"""Neverdrop's client: jobs submitted once, waited for and streamed through every cut; webhooks verified."""

from neverdrop_client.auth import BearerAuth, SigV4
from neverdrop_client.client import Client
from neverdrop_client.errors import (
    BadArgument,
    Conflict,
    Gone,
    Invalid,
    JobFailed,
    NeverdropError,
    NoAnswer,
    NoCredentials,
    NoRegion,
    NoSuchRoute,
    NotFound,
    NotPermitted,
    NotYet,
    Refused,
    StreamClosed,
    Throttled,
    Unavailable,
    Unexpected,
    WebhookRefused,
)
from neverdrop_client.events import Event, Final, Progress, Restarted, Text
from neverdrop_client.http import Retry
from neverdrop_client.shapes import Accepted, Endpoint, Job, Redelivery, Secret
from neverdrop_client.streaming import Stream
from neverdrop_client.verification import WebhookEvent, verify_webhook

__version__ = "0.1.0"
__all__ = [
    "Accepted", "BadArgument", "BearerAuth", "Client", "Conflict", "Endpoint", "Event", "Final", "Gone", "Invalid",
    "Job", "JobFailed", "NeverdropError", "NoAnswer", "NoCredentials", "NoRegion", "NoSuchRoute", "NotFound",
    "NotPermitted", "NotYet", "Progress", "Redelivery", "Refused", "Restarted", "Retry", "Secret", "SigV4", "Stream",
    "StreamClosed", "Text", "Throttled", "Unavailable", "Unexpected", "WebhookEvent", "WebhookRefused",
    "verify_webhook",
]  # fmt: skip
