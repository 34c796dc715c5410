"""What the world outside does to a stack: posts signed events, uploads, puts objects; and what becomes of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lambdas.core import ids
from local.runtime import Runtime
from tests.e2e.target import Answer
from tests.signing import DECLARED, SECRETS, standard_webhooks
from tests.simulation.watch import Watch, poll

DECLARED_HERE = {
    **DECLARED,
    "forge": {**DECLARED["forge"], "binary": True},
    "slow": {**DECLARED["crm"], "rate": 1, "burst": 2},
}
SETTINGS = {
    "sources": json.dumps(DECLARED_HERE),
    "upload_max_bytes": "5000000",
}
FORM_TYPE = {"content-type": "multipart/form-data; boundary=between"}


class Outside(Watch):
    """Tenants are those of `tests.signing`; uploads are acme's."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        for name, secret in SECRETS.items():
            runtime.put_secret(name, secret)
        runtime.sources.schedules.switch("sweep", on=False)

    # --- events ----------------------------------------------------------------------------------------------

    def signed(self, body: bytes, id_: str, *, age_s: int = 0, **more: Any) -> dict[str, str]:
        return standard_webhooks(body, id_=id_, at_s=int(self.now()) - age_s, **more)

    def post(self, body: bytes, headers: Mapping[str, str], name: str = "crm") -> Answer:
        return self.target._request("POST", f"/events/{name}", body, {"content-type": "application/json", **headers})

    @staticmethod
    def event_job(id_: str, name: str = "crm") -> str:
        return ids.job_id_from_key(DECLARED[name]["tenant"], "POST", f"/events/{name}", id_)

    # --- uploads -----------------------------------------------------------------------------------------------

    def form(self, type_: str = "summarize", content_type: str = "text/plain", tenant: str = "acme") -> dict[str, Any]:
        answer = self.target.post("/uploads", {"type": type_, "content_type": content_type}, x_local_tenant=tenant)
        assert answer.status == 201, answer
        form: dict[str, Any] = answer.json()
        return form

    def fill(self, form: Mapping[str, Any], body: bytes, **changes: str) -> Answer:
        """A browser's upload: the fields as given, the file last."""
        parts = [
            f'--between\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in {**form["fields"], **changes}.items()
        ]
        file = b'--between\r\nContent-Disposition: form-data; name="file"; filename="call.txt"\r\n\r\n' + body
        return self.target._request(
            "POST", str(form["url"]), b"".join([*parts, file, b"\r\n--between--\r\n"]), FORM_TYPE
        )

    def put(self, key: str, body: bytes, content_type: str = "text/plain") -> str:
        """An object that somebody else puts there; the id of its job."""
        bucket = self.target.outputs["UploadsBucketName"]
        put = self.s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type)
        return ids.object_job_id(bucket, key, put["VersionId"])

    # --- what becomes of it --------------------------------------------------------------------------------------

    def final(self, job_id: str, tenant: str = "acme") -> dict[str, Any]:
        """The job when it is handed over; until it has come in there is none."""
        poll(lambda: self.exists(job_id), lambda: f"{job_id} does not come in")
        return self.target.final(job_id, tenant)

    def exists(self, job_id: str) -> bool:
        return self.jobs.read(job_id) is not None

    def letters(self) -> list[dict[str, Any]]:
        """What lies among the dead letters of the inbox; they are gone afterwards."""
        found = []
        url = self.target.outputs["InboxDlqUrl"]
        while messages := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages", []):
            for message in messages:
                found.append(message)
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def reasons(self) -> list[str]:
        return sorted(letter["MessageAttributes"]["reason"]["StringValue"] for letter in self.letters())


def at_once(count: int, action: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as threads:
        return [future.result() for future in [threads.submit(action) for _ in range(count)]]


def a_word() -> str:
    return uuid.uuid4().hex
