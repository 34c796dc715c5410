"""The inbox with fakes behind it: what the tests of ingest put messages into."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote_plus

from lambdas.contracts.sources import Source
from lambdas.core.inbox.ingest import Ingest, ingest
from lambdas.core.inbox.message import Incoming
from lambdas.core.inbox.uploads import Yard
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.ports import Stored
from tests.builders import NOW
from tests.fakes import FakeLedger, FakeSecrets, FakeSender, FakeUploaded, Notices
from tests.signing import DECLARED, SECRETS, any_source, attributes, standard_webhooks
from tests.unit.entrance import Entrance

BUCKET = "the-uploads"
BODY = b'{"text":"Houston, we have had a problem."}'


def an_event(body: bytes = BODY, name: str = "crm", headers: Mapping[str, str] | None = None, **over: Any) -> Incoming:
    """An event as the gateway puts it into the inbox: signed rightly, just now, unless the headers say otherwise."""
    source: Source = over.pop("source", None) or any_source(name)
    sent_at: datetime = over.pop("sent_at", NOW)
    found = dict(headers) if headers is not None else standard_webhooks(body)
    return Incoming(body.decode(), attributes(name, found, source, **over), sent_at)


def a_record(stored: Stored, *, bucket: str = BUCKET, name: str = "ObjectCreated:Put", **over: Any) -> dict[str, Any]:
    """One record of a notification; the key is encoded as S3 does."""
    told = {
        "key": quote_plus(stored.key, safe="/"),
        "size": stored.bytes,
        "eTag": stored.etag,
        "versionId": stored.version,
        "sequencer": "0055AED6DCD90281E5",
        **over,
    }
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": "2026-11-29T15:30:44.000Z",
        "eventName": name,
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": bucket}, "object": told},
    }


def notification(*records: Any) -> Incoming:
    return Incoming(json.dumps({"Records": list(records)}), {}, NOW)


class Mailroom:
    """The inbox and all that is behind it."""

    def __init__(self, **sources: Source) -> None:
        self.entrance = Entrance()
        self.store, self.clock = self.entrance.store, self.entrance.clock
        self.secrets = FakeSecrets(self.clock, **{name: (secret,) for name, secret in SECRETS.items()})
        self.ledger, self.uploaded, self.letters = FakeLedger(), FakeUploaded(), FakeSender()
        self.notices = Notices()
        self.sources = {**{name: any_source(name) for name in DECLARED}, **sources}

    @property
    def yard(self) -> Yard:
        return Yard(self.entrance.door, self.uploaded, BUCKET)

    @property
    def reception(self) -> Reception:
        return Reception(self.entrance.door, self.sources, self.secrets, self.ledger)

    def take(self, *messages: Incoming) -> None:
        for message in messages:
            ingest(message, Ingest(self.reception, self.yard, self.letters), self.notices)

    def notified(self, *stored: Stored) -> None:
        self.take(notification(*map(a_record, stored)))

    @property
    def jobs(self) -> list[dict[str, Any]]:
        return list(self.store.records.values())

    @property
    def job(self) -> dict[str, Any]:
        """The only one, of which nothing lies among the dead letters."""
        assert self.letters.sent == []
        (record,) = self.jobs
        return record

    @property
    def letter(self) -> dict[str, Any]:
        """The only dead letter, of which there is no job."""
        assert self.jobs == []
        (message,) = self.letters.sent
        found: dict[str, Any] = json.loads(message.body)
        assert message.attributes["reason"] == found["payload"]["reason"]
        return found

    @property
    def reason(self) -> str:
        assert self.jobs == []
        (message,) = self.letters.sent
        return message.attributes["reason"]
