"""The HTTP API's direct way into a queue: `SQS-SendMessage`, called by API Gateway itself, with no function on it.

What no documentation says is refused here, with a text that says so: see docs/local-runtime.md.
"""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from local.aws.calls import Caller
from local.aws.server import AwsServer
from local.events import http as gateway
from local.events.http import Answer, Request
from local.events.response_parameters import ResponseParameters
from local.events.routes import Route
from local.events.selection import Selection, View
from local.stack.errors import TemplateError
from local.stack.stack import Stack

SUBTYPE = "SQS-SendMessage"
CALLER = "apigateway"
"""Whose calls these are in `GET /_local/calls`."""

_log = logging.getLogger(__name__)
_PROPERTIES = frozenset(
    {
        "ApiId",
        "ConnectionType",
        "CredentialsArn",
        "Description",
        "IntegrationSubtype",
        "IntegrationType",
        "PayloadFormatVersion",
        "RequestParameters",
        "ResponseParameters",
        "TimeoutInMillis",
    }
)
_NEEDED = frozenset({"MessageBody", "QueueUrl"})
_PARAMETERS = _NEEDED | {"MessageAttributes", "MessageGroupId", "Region"}
_ATTRIBUTE_FIELDS = ("DataType", "StringValue", "BinaryValue")
_SQS_HEADERS = ("content-type", "x-amzn-requestid")
_UNDOCUMENTED = (
    "A body of the type {kind} through the SQS integration is undocumented, and refused on this machine: "
    "send text or JSON in UTF-8. See docs/local-runtime.md."
)


class SqsIntegration:
    """Sends the requests of one route to its queue. May be called from many threads."""

    def __init__(self, route: Route, stack: Stack, aws: AwsServer) -> None:
        """TemplateError for what API Gateway would not create, and for what is not played on this machine."""
        integration = route.integration
        _check_properties(integration)
        declared = integration.get("RequestParameters", {})
        _check_parameters(declared, stack)
        self._parameters = {name: Selection(str(text)) for name, text in declared.items() if name != "Region"}
        _check_attributes(self._parameters.get("MessageAttributes"))
        if not self._parameters["QueueUrl"].static:
            raise TemplateError("a QueueUrl that the request chooses is not played on this machine")
        self._responses = ResponseParameters(integration.get("ResponseParameters", {}))
        self._timeout_s = float(integration.get("TimeoutInMillis", 30_000)) / 1000
        self._address = urlsplit(aws.url)
        key = f"{CALLER}-{integration['CredentialsArn'].rpartition('/')[2]}"
        aws.callers.register(key, Caller(CALLER, integration["CredentialsArn"]))
        scope = f"{key}/20260101/{stack.region}/sqs/aws4_request"
        self._authorization = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=-"

    def answer(self, request: Request, parameters: Mapping[str, str], context: Mapping[str, str]) -> Answer:
        """SQS's answer as XML, or API Gateway's own where it does not come to calling SQS."""
        body = _text(request)
        if body is None:
            kind = request.headers.get("content-type") or "application/octet-stream"
            return gateway.message(415, _UNDOCUMENTED.format(kind=kind))
        view = View(request, parameters, context, body)
        fields = {"Action": "SendMessage", "Version": "2012-11-05"}
        for name, selection in self._parameters.items():
            found = _fields(name, selection, view)
            if found is None:
                return gateway.message(400, f"Unable to resolve property {name} from source {selection.text}.")
            fields |= found
        return self._responses.change(self._send(fields))

    def _send(self, fields: Mapping[str, str]) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded", "authorization": self._authorization}
        link = http.client.HTTPConnection(self._address.netloc, timeout=self._timeout_s)
        try:
            link.request("POST", "/", urlencode(fields), headers)
            answer = link.getresponse()
            kept = [(name, value) for name in _SQS_HEADERS if (value := answer.headers.get(name))]
            return Answer(answer.status, kept, answer.read())
        except (OSError, http.client.HTTPException) as error:
            _log.warning("the queue cannot be reached: %s", error)
            return gateway.message(503, "Service Unavailable")
        finally:
            link.close()


def _check_properties(integration: Mapping[str, Any]) -> None:
    unknown = sorted(set(integration) - _PROPERTIES)
    if unknown:
        raise TemplateError(f"{', '.join(unknown)} of an SQS integration is not played on this machine")
    if integration.get("IntegrationSubtype") != SUBTYPE:
        raise TemplateError(f"the integration {integration.get('IntegrationSubtype')} is not played on this machine")
    if integration.get("PayloadFormatVersion") != "1.0":
        raise TemplateError("integrations with AWS services have the payload format version 1.0")
    if not integration.get("CredentialsArn"):
        raise TemplateError(f"{SUBTYPE} needs the CredentialsArn of a role that API Gateway may assume")


def _check_parameters(declared: Mapping[str, Any], stack: Stack) -> None:
    unknown, missing = sorted(set(declared) - _PARAMETERS), sorted(_NEEDED - set(declared))
    if unknown:
        raise TemplateError(f"the request parameters {', '.join(unknown)} are not played on this machine")
    if missing:
        raise TemplateError(f"{SUBTYPE} needs the request parameters {', '.join(missing)}")
    if declared.get("Region", stack.region) != stack.region:
        raise TemplateError("a queue in another region is not played on this machine")
    if declared["QueueUrl"] not in [queue.ref for queue in stack.of_type("AWS::SQS::Queue")]:
        raise TemplateError(f"the QueueUrl {declared['QueueUrl']} is no queue of this stack")


def _check_attributes(selection: Selection | None) -> None:
    """A template that is no JSON even with the tamest of headers never is."""
    if selection is None:
        return
    if selection.expression is not None:
        raise TemplateError("MessageAttributes that one expression yields are not played on this machine")
    if _attributes(selection.sample("1")) is None:
        raise TemplateError("MessageAttributes must be JSON, each attribute with DataType and StringValue, all strings")


def _text(request: Request) -> str | None:
    """The body, or None for one of which nobody says what API Gateway makes of it."""
    if request.body and not gateway.is_text(request):
        return None
    try:
        return request.body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _fields(name: str, selection: Selection, view: View) -> dict[str, str] | None:
    """A parameter as SQS's query protocol carries it; None when it cannot be resolved."""
    value = selection.of(view)
    if value is None:
        return None
    return {name: value} if name != "MessageAttributes" else _attributes(value)


def _attributes(text: str) -> dict[str, str] | None:
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    fields = {}
    for number, (name, attribute) in enumerate(parsed.items(), 1):
        if not isinstance(attribute, dict) or not all(isinstance(value, str) for value in attribute.values()):
            return None
        if "DataType" not in attribute or not {"StringValue", "BinaryValue"} & set(attribute):
            return None
        fields[f"MessageAttribute.{number}.Name"] = name
        for field in _ATTRIBUTE_FIELDS:
            if field in attribute:
                fields[f"MessageAttribute.{number}.Value.{field}"] = attribute[field]
    return fields
