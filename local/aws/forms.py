"""A browser's upload to S3: the fields of a `multipart/form-data` body, read as S3 reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from pathlib import PurePosixPath

KIND = "multipart/form-data"
_FILENAME = "${filename}"


@dataclass(frozen=True)
class Form:
    """What came before the file, and the file; whatever comes after it is ignored, as by S3."""

    fields: Mapping[str, str]
    """By their names in lower case: S3 does not distinguish."""
    content: bytes | None = None
    """None when there was no file."""

    @cached_property
    def key(self) -> str:
        """The object's key, or an empty string."""
        return self.fields.get("key", "")


def parse(content_type: str, body: bytes) -> Form | None:
    """The form in a request's body; None when it holds none."""
    kind = _header("content-type", content_type)
    boundary = kind.get_param("boundary")
    if kind.get_content_type() != KIND or not isinstance(boundary, str):
        return None
    fields: dict[str, str] = {}
    for part in _parts(body, boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        disposition = _disposition(head)
        name = str(disposition.get_param("name", "", "content-disposition")).lower()
        if name == "file":
            filename = PurePosixPath(disposition.get_filename("").replace("\\", "/")).name
            if "key" in fields:
                fields["key"] = fields["key"].replace(_FILENAME, filename)
            return Form(fields, content)
        fields.setdefault(name, content.decode("utf-8", "replace"))
    return Form(fields)


def _parts(body: bytes, boundary: str) -> list[bytes]:
    """Between the first boundary and the last, without the line ends that belong to the boundaries."""
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary.encode())
    return [piece.removeprefix(b"\r\n") for piece in pieces[1:] if not piece.startswith(b"--")]


def _disposition(head: bytes) -> Message:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            return _header("content-disposition", value.strip())
    return Message()


def _header(name: str, value: str) -> Message:
    message = Message()
    message[name] = value
    return message
