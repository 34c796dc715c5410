"""ministack on this machine: on loopback alone, with TLS, signatures and permissions as AWS has them."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.ministack.processes import EndedError, eventually, run, running

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
START_S = 60.0


@dataclass(frozen=True)
class Emulator:
    """Where it listens, and the certificate to trust it by."""

    port: int
    authority: Path

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    def environment(self, key: str = "test", secret: str = "test") -> dict[str, str]:
        """What a client here needs to speak to it and to nobody else. Its own key `test` may do everything."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        return ours | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_CA_BUNDLE": str(self.authority),
            "SSL_CERT_FILE": str(self.authority),
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            **_SECLUDED,
        }


_SECLUDED = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": f"{LOOPBACK},localhost",
    "no_proxy": f"{LOOPBACK},localhost",
}


@contextmanager
def started(home: Path, work: Path, model_url: str) -> Iterator[Emulator]:
    """ministack from the virtual environment `home`, until the block ends. Everything it writes is below `work`."""
    (work / "tmp").mkdir()
    tls = work / "tls"
    tls.mkdir()
    issue = ("-m", "trustme", "--quiet", "--dir", tls, "--identities", "localhost", LOOPBACK)
    run(home / "bin" / "python", *issue, env=dict(os.environ), cwd=work)
    emulator = Emulator(_free_port(), tls / "client.pem")
    environment = {
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(work),
        "TMPDIR": str(work / "tmp"),
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(emulator.port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "AUTH": "true",
        "USE_SSL": "1",
        "MINISTACK_SSL_CERT": str(tls / "server.pem"),
        "MINISTACK_SSL_KEY": str(tls / "server.key"),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        # functions inherit what follows: whom to trust, and the model, which is not ministack's but ours
        "AWS_CA_BUNDLE": str(emulator.authority),
        "SSL_CERT_FILE": str(emulator.authority),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": model_url,
        **_SECLUDED,
    }
    with running(home / "bin" / "ministack", env=environment, cwd=work, log=work / "ministack.log") as process:

        def answers() -> bool:
            if process.poll() is not None:
                raise EndedError(f"ministack ended with {process.returncode} before it answered")
            return _is_healthy(emulator)

        eventually(answers, patience_s=START_S)
        yield emulator


def _is_healthy(emulator: Emulator) -> bool:
    trusted = ssl.create_default_context(cafile=str(emulator.authority))
    try:
        with urlopen(f"{emulator.url}/_ministack/health", timeout=5, context=trusted) as answer:
            return bool(answer.status == 200)
    except (URLError, ConnectionError, TimeoutError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
