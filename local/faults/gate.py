"""The gate of the AWS server that has calls of functions struck by faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.aws.calls import Call, Refusal, Response
from local.compute.environments import Functions
from local.faults import strikes
from local.faults.armed import Armed
from local.faults.boundaries import Boundaries
from local.faults.fault import AFTER, BEFORE, Fault
from local.faults.later import Later

_THROTTLES = {
    "apigatewaymanagementapi": Refusal("LimitExceededException", "Rate exceeded", 429),
    "dynamodb": Refusal("ProvisionedThroughputExceededException", "The level of configured provisioned throughput "
                        "for the table was exceeded. Consider increasing your provisioning level."),
    "lambda": Refusal("TooManyRequestsException", "Rate Exceeded.", 429),
    "s3": Refusal("SlowDown", "Please reduce your request rate.", 503),
    "sqs": Refusal("RequestThrottled", "Request is throttled."),
    "sns": Refusal("Throttling", "Rate exceeded", 400),
}  # fmt: skip
_THROTTLED_ELSEWHERE = Refusal("ThrottlingException", "Rate exceeded")
_NOTHING_HAPPENED = Refusal(lost=True)


class Faults:
    """A gate of the AWS server. Outermost, so that a call that it stops is neither metered nor checked."""

    def __init__(self, functions: Functions, repeat: Callable[[Call], Response]) -> None:
        """`repeat` carries a call out once more: AwsServer.repeat."""
        self._functions = functions
        self._repeat = repeat
        self._armed = Armed()
        self._boundaries = functions.boundaries = Boundaries(self._armed, functions)
        self._ghosts: Later[Call] = Later()

    def add(self, fault: Fault) -> None:
        """Have it happen. BadRequestError for one that means nothing."""
        self._armed.add(fault)

    def clear(self) -> None:
        """No more faults, and none of their consequences that are still to come."""
        self._armed.clear()
        self._boundaries.late.forget()
        self._ghosts.forget()

    def describe(self) -> list[dict[str, Any]]:
        """Those that were asked for, and how often each has happened."""
        return self._armed.describe()

    def haunt(self) -> int:
        """Carry out once more the calls that have a ghost, in their order; how many."""
        return self._ghosts.come(lambda call: self._repeat(call) is not None)

    def deliver_late(self) -> int:
        """Deliver once more the events that are to come late, in their order; how many."""
        return self._boundaries.deliver_late()

    def is_late(self, request_id: str) -> bool:
        """Whether the invocation is a late delivery, whose outcome no source waits for."""
        return request_id in self._boundaries.delivering

    # --- the gate ------------------------------------------------------------------------------------------

    def before(self, call: Call) -> Refusal | None:
        """Strike here, or remember what is to strike when the call has been carried out."""
        faults = self._armed.at_call(call)
        for fault in faults:
            refusal = self._strike(fault, call) if fault.when == BEFORE and self._armed.turn(fault) else None
            if refusal is not None:
                return refusal
        call.to_come.extend(fault for fault in faults if fault.when == AFTER)
        return None

    def after(self, call: Call, response: Response) -> Response:
        """The call had its effect: now its caller must not hear of it, or hears later, or it has a second one."""
        gone = False
        for fault in call.to_come:
            if fault.kind == "ghost":
                if response.carried_out and self._armed.turn(fault):
                    self._ghosts.keep(call)
            elif not gone and self._armed.turn(fault) and self._strike(fault, call) is not None:
                response = response.without_reply()
                gone = fault.kind in strikes.KINDS
        return response

    def _strike(self, fault: Fault, call: Call) -> Refusal | None:
        """None if the call goes on, with nothing but time lost."""
        if fault.kind == "throttle":
            return _THROTTLES.get(call.service, _THROTTLED_ELSEWHERE)
        environment = None if call.caller is None else self._functions.environment_of(call.caller.request_id)
        if environment is not None and fault.kind in strikes.KINDS:
            if strikes.strike(fault, environment):
                environment.wait_for_its_clock()
                return None
            environment.gone.wait()  # not even a lost connection may be noticed by somebody still alive
        return _NOTHING_HAPPENED
