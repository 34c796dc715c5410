"""Receivers on loopback that do what a stranger's server may do, byte by byte."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATIENCE_S = 60.0  # for a peer that was expected, never for one that hangs


@dataclass
class Receiver:
    """What has come to it. `connections`: how many; `requests`: heads and bodies, byte by byte; `sent`: bytes of its
    answers that were taken; `names`: what TLS was asked for."""

    port: int
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    sent: int = 0
    names: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=1"


Behave = Callable[[Receiver, socket.socket], None]


@contextmanager
def receiving(behave: Behave, *, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """It listens on loopback and treats each connection so, one after the other; gone, with its thread, at the end."""
    listening = socket.create_server(("127.0.0.1", 0))
    own = Receiver(listening.getsockname()[1])
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: own.names.append(name)

    def serve() -> None:
        while not own.over.is_set():
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            own.connections += 1
            with peer, suppress(OSError):
                peer.settimeout(PATIENCE_S)
                talking = tls.wrap_socket(peer, server_side=True) if tls else peer
                with talking:
                    behave(own, talking)

    thread = threading.Thread(target=serve, name="receiver")
    thread.start()
    try:
        yield own
    finally:
        own.over.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a receiver must end with its test"


def read_request(own: Receiver, peer: socket.socket) -> None:
    """All of one request, by its Content-Length."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += _some(peer)
    head, _, body = found.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", b"0")):
        body += _some(peer)
    own.requests.append(head + b"\r\n\r\n" + body)


def _some(peer: socket.socket) -> bytes:
    found = peer.recv(65_536)
    if not found:
        raise ConnectionError("the peer has closed")
    return found


def saying(*parts: bytes) -> Behave:
    """Reads the request, says this, and closes."""

    def behave(own: Receiver, peer: socket.socket) -> None:
        read_request(own, peer)
        for part in parts:
            peer.sendall(part)
            own.sent += len(part)

    return behave


def never_closing(text: bytes = b"") -> Behave:
    """Says this, and then nothing, until the peer goes."""

    def behave(own: Receiver, peer: socket.socket) -> None:
        read_request(own, peer)
        peer.sendall(text)
        own.sent += len(text)
        peer.recv(1)

    return behave


def endless(head: bytes, block: bytes) -> Behave:
    """Says this, and then a gigabyte of blocks, as fast as they are taken."""

    def behave(own: Receiver, peer: socket.socket) -> None:
        read_request(own, peer)
        peer.sendall(head)
        while own.sent < 2**30:
            own.sent += peer.send(block)

    return behave


def ending(own: Receiver, peer: socket.socket) -> None:
    """Closes as soon as it was spoken to, without a word."""
    read_request(own, peer)


@dataclass(frozen=True)
class Authority:
    """A certificate authority of the test's own."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def trust(self) -> ssl.SSLContext:
        """What trusts this authority and no other."""
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self.certificate.public_bytes(serialization.Encoding.PEM).decode())
        return context

    def server(self, name: str, *, days: int = 1) -> ssl.SSLContext:
        """A server with a certificate for this name. Negative `days`: it ended so long ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, issuer=self.certificate, signer=self.key, days=days)
        path = self.folder / f"{name}.{days}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def authority(folder: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    return Authority(folder, key, _certificate("an authority", key, issuer=None, signer=key, days=1))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Certificate | None,
    signer: ec.EllipticCurvePrivateKey,
    days: int,
) -> x509.Certificate:
    now, subject = datetime.now(UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    found = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if issuer is None:
        usage = x509.KeyUsage(
            key_cert_sign=True, crl_sign=True, digital_signature=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        found = found.add_extension(usage, critical=True)
    else:
        found = found.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return found.sign(signer, hashes.SHA256())
