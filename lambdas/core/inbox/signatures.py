"""Whether an event is its source's: a signature over the exact bytes that came, made with one of its secrets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence

from lambdas.contracts.sources import STANDARD_WEBHOOKS, TIMESTAMPED, Source

_WHSEC = "whsec_"
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_MOST = 20  # signatures in one header: a stranger decides how many there are


class UnusableSecret(ValueError):
    """A secret that cannot be a key of its scheme: a mistake of ours, for which no event may be refused."""


def is_signed(source: Source, secrets: Sequence[str], headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of the signatures is that of one of the secrets. `headers` by the attributes of the inbox
    (`signature`, `event_id`, `timestamp`). Raises UnusableSecret when none is and one of the secrets can be no key:
    it may have been the one."""
    keys, mistake = list[bytes](), None
    for secret in secrets:
        try:
            keys.append(_key(source.scheme, secret))
        except UnusableSecret as error:
            mistake = error
    content, claimed = _signed(source, headers, body)
    expected = [hmac.new(key, content, hashlib.sha256).digest() for key in keys]
    found = any(hmac.compare_digest(one, other) for one in claimed for other in expected)
    if mistake and not found:
        raise mistake
    return found


def time_in(source: Source, headers: Mapping[str, str]) -> str:
    """The time that a signature itself carries, as it stands there; "" where the scheme has none."""
    return _parts(headers.get("signature", "")).get("t", [""])[0] if source.scheme == TIMESTAMPED else ""


def _signed(source: Source, headers: Mapping[str, str], body: bytes) -> tuple[bytes, list[bytes]]:
    """What was signed, and the signatures that are claimed for it."""
    written = headers.get("signature", "")
    match source.scheme:
        case "standard-webhooks":
            prefix = f"{headers.get('event_id', '')}.{headers.get('timestamp', '')}."
            claimed = _base64_all(one.partition(",")[2] for one in written.split()[:_MOST] if one.startswith("v1,"))
        case "timestamped":
            parts = _parts(written)
            prefix = f"{parts.get('t', [''])[0]}."
            claimed = _hex_all(parts.get("v1", []))
        case _:
            prefix = ""
            claimed = _hex_all([written.strip().removeprefix("sha256=")])
    return prefix.encode() + body, claimed


def _parts(written: str) -> dict[str, list[str]]:
    """`t=1,v1=a,v1=b` by name."""
    found: dict[str, list[str]] = {}
    for part in written.split(",")[:_MOST]:
        name, _, value = part.strip().partition("=")
        found.setdefault(name, []).append(value)
    return found


def _hex_all(written: Iterable[str]) -> list[bytes]:
    return [bytes.fromhex(one) for one in written if _HEX.fullmatch(one)]


def _base64_all(written: Iterable[str]) -> list[bytes]:
    found = []
    for one in written:
        try:
            found.append(base64.b64decode(one, validate=True))
        except (binascii.Error, ValueError):
            continue
    return found


def _key(scheme: str, secret: str) -> bytes:
    """The bytes of a key; those of Standard Webhooks are written in base64, behind `whsec_`."""
    if scheme != STANDARD_WEBHOOKS:
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret.removeprefix(_WHSEC), validate=True)
        except (binascii.Error, ValueError) as error:
            raise UnusableSecret("a secret of standard-webhooks is base64 behind `whsec_`") from error
    if not key:
        raise UnusableSecret("a secret must not be empty")
    return key
