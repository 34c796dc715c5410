"""The AWS API on 127.0.0.1: moto, with every call recognised, held back by one lock, and passed through the gates."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local.aws import patches
from local.aws.calls import Call, Caller, Callers, Gate, Refusal, Response
from local.aws.errors import render
from local.aws.identify import recognise
from local.aws.listener import Listener, NoReplyError
from local.aws.lock import MOTO, wake_receivers

__all__ = ["AwsServer", "Call", "Caller", "Callers", "Gate", "Refusal", "Response"]

_log = logging.getLogger(__name__)

Player = Callable[[Call], Callable[[], Response]]
"""Plays an operation in the place of moto. Called inside the lock, where a revoked caller has no effect any more: it
begins there, and must not wait. What it returns may wait for the answer: it is called outside of the lock."""

_REVOKED = {
    "s3": Refusal("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403),
    "sqs": Refusal("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    "sns": Refusal("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
}
_REVOKED_ELSEWHERE = Refusal("UnrecognizedClientException", "The security token included in the request is invalid.")


class AwsServer:
    """moto over HTTP in this process. One at a time: moto's stores and our patches of it belong to the process."""

    def __init__(self, port: int) -> None:
        """Binds 127.0.0.1 at once (0 picks a free port), serves after `start`. OSError if the port is taken."""
        self.callers = Callers(MOTO)
        self.gates: list[Gate] = []
        self.players: dict[tuple[str, str], Player] = {}
        """By service and operation, as a Call names them."""
        self._started = False
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._listener = Listener(port, self._answer)
        self.url = self._listener.url
        self.port: int = self._listener.port

    def start(self) -> None:
        """Begin with empty stores and patched moto, and serve."""
        patches.install()
        self._started = True
        self.reset()
        self._listener.start()

    def stop(self) -> None:
        """End every call, thread and socket; moto is left empty and as it was. Does no harm when repeated."""
        if not self._started:
            self._listener.server_close()
            return
        self._started = False
        patches.interrupt_receivers()
        self._listener.stop()
        self.reset()
        patches.remove()

    def reset(self) -> None:
        """Empty every store; callers and gates stay."""
        with MOTO:
            moto_api_backend.reset()
        wake_receivers()

    def repeat(self, call: Call) -> Response:
        """Carry a call out once more, by the rights of its caller, who may be gone: it is not his any more, so that it
        counts for nobody and nobody hears the answer."""
        ghost = replace(call, caller=None, signer=call.caller or call.signer, access_key_id="")
        return self._carry_out(ghost, dict(call.environ))

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body: bytes = environ["wsgi.input"].read()
        call = recognise(environ, body, self.callers)
        try:
            response = self._carry_out(call, environ)
        except Exception as error:  # a gate broke: whoever called must hear of it, and so must the log
            _log.exception("%s.%s", call.service, call.operation)
            response = render(call, _failure(error))
        if response.lost:
            raise NoReplyError
        status = f"{response.status} {HTTPStatus(response.status).phrase}"
        start_response(status, list(response.headers.items()))
        return [response.body]

    def _carry_out(self, call: Call, environ: dict[str, Any]) -> Response:
        gates = list(self.gates)
        player = self.players.get((call.service, call.operation))
        if player is not None:  # none of moto's state: nothing that an exclusive gate could see change
            return self._through(gates, call, lambda: self._play(player, call))
        inside = [gate for gate in gates if getattr(gate, "exclusive", False)]
        outside = [gate for gate in gates if gate not in inside]
        return self._through(outside, call, lambda: self._alone(inside, call, environ))

    def _alone(self, gates: list[Gate], call: Call, environ: dict[str, Any]) -> Response:
        with MOTO:
            return self._refuse_revoked(call) or self._through(gates, call, lambda: self._ask_moto(call, environ))

    def _play(self, player: Player, call: Call) -> Response:
        with MOTO:
            refused = self._refuse_revoked(call)
            if refused is not None:
                return refused
            wait = player(call)
        return wait()

    def _refuse_revoked(self, call: Call) -> Response | None:
        """Asked inside the lock: what was revoked before this moment must not change anything any more."""
        if not self.callers.is_revoked(call.access_key_id):
            return None
        return render(call, _REVOKED.get(call.service, _REVOKED_ELSEWHERE))

    @staticmethod
    def _through(gates: list[Gate], call: Call, proceed: Callable[[], Response]) -> Response:
        passed: list[Gate] = []
        for gate in gates:
            refusal = gate.before(call)
            if refusal is not None:
                response = render(call, refusal)
                break
            passed.append(gate)
        else:
            response = proceed()
        for gate in reversed(passed):
            response = gate.after(call, response)
        return response

    def _ask_moto(self, call: Call, environ: dict[str, Any]) -> Response:
        environ["wsgi.input"] = io.BytesIO(call.body)
        environ["local.call"] = call
        answer: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            answer[:] = [status, headers]

        try:
            chunks = self._moto(environ, start_response)
            body = b"".join(chunks)
        except Exception as error:  # moto raises where AWS would answer
            _log.exception("moto: %s.%s", call.service, call.operation)
            return render(call, _failure(error))
        return Response(int(answer[0].split()[0]), {name.lower(): value for name, value in answer[1]}, body)


def _failure(error: Exception) -> Refusal:
    return Refusal("InternalFailure", f"{type(error).__name__}: {error}", 500)
