"""The setting `subscriptions`: who hears of what, with dead letters and alarms of its own; and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra import subscriptions
from infra.limits import problems
from infra.settings import Settings
from lambdas.core import routing
from tests.builders import NOW, final_job
from tests.infrastructure.conftest import ROOT, Synthesize
from tests.infrastructure.templates import Template, target

QUEUE = "arn:aws:sqs:eu-west-1:111122223333:billing"
DECLARED: dict[str, Any] = {
    "ops": {"protocol": "email", "endpoint": "ops@example.com", "filter": {"event_type": ["job.failed"]}},
    "billing": {
        "protocol": "sqs",
        "endpoint": QUEUE,
        "filter": {"tenant": ["acme", {"prefix": "shop-"}], "type": [{"anything-but": ["classify"]}]},
    },
    "crm-1": {"protocol": "https", "endpoint": "https://crm.example.com:8443/hooks?from=neverdrop"},
}


@pytest.fixture(scope="module")
def declared(synthesize: Synthesize) -> Template:
    return synthesize(subscriptions=DECLARED)


def of(template: Template, protocol: str) -> dict[str, Any]:
    topic = template.outputs["JobEventsTopicArn"]["Value"]["Ref"]
    (found,) = (
        one["Properties"]
        for one in template.of_type("SNS::Subscription").values()
        if one["Properties"]["Protocol"] == protocol
        and one["Properties"]["TopicArn"] == {"Ref": topic}
        and isinstance(one["Properties"]["Endpoint"], str)
    )
    return found  # type: ignore[no-any-return]


def test_each_subscription_hears_what_it_asks_for(declared: Template) -> None:
    mail, queue, web = (of(declared, protocol) for protocol in ("email", "sqs", "https"))
    assert (mail["Endpoint"], mail["FilterPolicy"]) == ("ops@example.com", {"event_type": ["job.failed"]})
    assert (queue["Endpoint"], queue["FilterPolicy"]) == (QUEUE, DECLARED["billing"]["filter"])
    assert queue["RawMessageDelivery"] is True
    assert (web["Endpoint"], "FilterPolicy" in web) == (DECLARED["crm-1"]["endpoint"], False)
    assert "RawMessageDelivery" not in web, "SNS's own signature stands in its wrapping alone"


def test_each_has_dead_letters_of_its_own_that_the_topic_alone_may_send_to(declared: Template) -> None:
    letters = [of(declared, one)["RedrivePolicy"]["deadLetterTargetArn"] for one in ("email", "sqs", "https")]
    queues = [target(one) for one in letters]
    assert len(set(queues)) == 3
    topic = declared.outputs["JobEventsTopicArn"]["Value"]["Ref"]
    for queue in queues:
        assert declared.resources[queue]["Properties"]["MessageRetentionPeriod"] == 14 * 86_400
        statements = [
            statement
            for policy in declared.of_type("SQS::QueuePolicy").values()
            if {"Ref": queue} in policy["Properties"]["Queues"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        (allowed,) = (one for one in statements if one["Effect"] == "Allow")
        assert (allowed["Action"], allowed["Principal"]) == ("sqs:SendMessage", {"Service": "sns.amazonaws.com"})
        assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": topic}}}
        assert any(one["Effect"] == "Deny" for one in statements), "without TLS nobody may send"


def test_letters_of_each_wake_somebody_and_more_of_them_again(declared: Template) -> None:
    for protocol in ("email", "sqs", "https"):
        queue = target(of(declared, protocol)["RedrivePolicy"]["deadLetterTargetArn"])
        watching = [
            one["Properties"]
            for one in declared.of_type("CloudWatch::Alarm").values()
            if f"'{queue}', 'QueueName'" in str(one["Properties"])
        ]
        assert len(watching) == 2
        assert all(one["AlarmActions"] for one in watching)


def test_without_any_nobody_else_is_subscribed(prod: Template) -> None:
    endpoints = [one["Properties"]["Endpoint"] for one in prod.of_type("SNS::Subscription").values()]
    assert not any(isinstance(endpoint, str) for endpoint in endpoints)


def test_names_that_differ_in_a_hyphen_are_two(synthesize: Synthesize) -> None:
    two = {
        name: {"protocol": "email", "endpoint": f"{number}@example.com"} for number, name in enumerate(("a-1", "a1"))
    }
    found = synthesize(subscriptions=two).of_type("SNS::Subscription").values()
    assert sum(one["Properties"]["Protocol"] == "email" for one in found) == 2


def test_the_attributes_are_those_that_an_event_has() -> None:
    event = routing.event(final_job(partial=True), NOW)
    assert event.attributes.keys() == subscriptions.ATTRIBUTES.keys()
    for name, known in subscriptions.ATTRIBUTES.items():
        assert not known or event.attributes[name] in known


# --- what is refused ---------------------------------------------------------------------------------------------
def refused(declared: Any) -> list[str]:
    return problems(Settings(subscriptions=declared, region="us-east-1"))


def test_what_is_right_is_taken() -> None:
    assert refused(DECLARED) == []
    assert refused({}) == []


GOOD = {
    "email": (
        "ops@example.com", "first.last+jobs@mail.example.co.uk", "o'neill@xn--exmple-cua.com", "a@1.example",
        f"{'x' * 64}@{'y' * 63}.example",
    ),
    "https": (
        "https://a.example.com", "https://a.example.com:1", "https://a.example.com:65535/x", "https://A.Example.com?q=%C3%A4",
        "https://a.example.com/x?y=/:@", "https://xn--exmple-cua.com/", f"https://{'a.' * 125}com",
    ),
}  # fmt: skip
BAD = {
    "email": (
        "", "ops", "@example.com", "ops@", "ops@example", "ops@exämple.com", "öps@example.com", "ops@-.com",
        "ops@a..com", "ops@.com", "ops@example.com.", "ops@10.0.0.1", "a b@c.de", "a@b.de,c@d.de", "ops@example.com\n",
        "ops@exa_mple.com", f"{'x' * 65}@example.com", f"ops@{'y' * 64}.example", f"ops@{'a.' * 126}com",
    ),
    "https": (
        "https://-/", "https://x", "https://x.y-", "https://.../", "https://a..de/", "https://a.de./", "https://a.de:0/",
        "https://a.de:65536", "https://a.de:99999", "https://a.de:080/", "https://a.de:/", "https://u:p@a.de/",
        "https://a.de/#f", "https://a.de/ä", "https://exämple.com/", "https://a.de/b c", "https://a.de\n", "HTTPS://a.de",
        "https://127.0.0.1/", "https://1.2.3.4:443", "https://[::1]/", "https://a_b.de/", f"https://{'a.' * 126}com/",
    ),
}  # fmt: skip


@pytest.mark.parametrize("protocol", GOOD)
def test_an_endpoint_that_can_be_there_is_taken(protocol: str) -> None:
    assert [one for one in GOOD[protocol] if refused({"x": {"protocol": protocol, "endpoint": one}})] == []


@pytest.mark.parametrize("protocol", BAD)
def test_an_endpoint_that_cannot_be_there_is_refused_before_anything_is_deployed(protocol: str) -> None:
    taken = [one for one in BAD[protocol] if not refused({"x": {"protocol": protocol, "endpoint": one}})]
    assert taken == []


@pytest.mark.parametrize("wanted", [{"prefix": "job.c"}, {"anything-but": ["job.completed", "job.cancelled"]}])
def test_a_matcher_that_some_event_fits_is_taken(wanted: Any) -> None:
    assert refused({"ops": {**OPS, "filter": {"event_type": [wanted]}}}) == []


@pytest.mark.parametrize("wanted", ["true", {"exists": False}])
def test_results_without_all_parts_can_be_had_apart(wanted: Any) -> None:
    assert refused({"ops": {**OPS, "filter": {"partial": [wanted]}}}) == []


def test_the_example_of_the_documents_is_taken() -> None:
    page = (ROOT / "docs" / "delivery.md").read_text("utf-8")
    written = page.partition('"subscriptions": ')[2].partition("\n```")[0]
    assert refused(json.loads(written)) == []


OPS = DECLARED["ops"]
WRONG: dict[str, tuple[str, Any, str]] = {
    "a name in capitals": ("Ops", OPS, "a subscription is named [a-z][a-z0-9-]{0,31}"),
    "a long name": ("x" * 33, OPS, "a subscription is named"),
    "no object": ("ops", "ops@example.com", "must be an object: protocol, endpoint, filter"),
    "a field that is not known": ("ops", {**OPS, "filters": {}}, ".filters is not known: a subscription has protocol"),
    "no protocol": ("ops", {"endpoint": "a@b.c"}, ".protocol is None, but must be one of email, https, sqs"),
    "plain HTTP": ("ops", {**OPS, "protocol": "http"}, ".protocol is 'http', but must be one of"),
    "a list of protocols": ("ops", {**OPS, "protocol": ["sqs"]}, ".protocol is ['sqs'], but must be"),
    "no endpoint": ("ops", {"protocol": "email"}, ".endpoint is None, but with email must be an address"),
    "no address": ("ops", {"protocol": "email", "endpoint": "ops"}, "must be an address, like ops@example.com"),
    "a URL without TLS": ("w", {"protocol": "https", "endpoint": "http://a.test"}, "begins with https://"),
    "a URL with a user": ("w", {"protocol": "https", "endpoint": "https://u:p@a.test/"}, "no user name in it"),
    "a queue's URL": ("q", {"protocol": "sqs", "endpoint": "https://sqs.x.amazonaws.com/1/q"}, "must be the ARN"),
    "a FIFO queue": ("q", {"protocol": "sqs", "endpoint": QUEUE + ".fifo"}, "feeds no .fifo"),
    "an empty filter": ("ops", {**OPS, "filter": {}}, "leave it out to hear of all"),
    "a filter that is a list": ("ops", {**OPS, "filter": ["job.failed"]}, ".filter must be an object of lists"),
    "an attribute that no event has": ("ops", {**OPS, "filter": {"job_id": ["a"]}}, "they are event_type, tenant,"),
    "a value without a list": ("ops", {**OPS, "filter": {"type": "a"}}, ".filter.type must be a list of at least one"),
    "no values": ("ops", {**OPS, "filter": {"type": []}}, ".filter.type must be a list of at least one"),
    "an event that is never sent": (
        "ops", {**OPS, "filter": {"event_type": ["job.done"]}}, "'job.done', which it never is: it is one of job.compl",
    ),
    "a status that is none": ("ops", {**OPS, "filter": {"status": ["failed"]}}, "one of COMPLETED, FAILED, CANCELLED"),
    "an empty text": ("ops", {**OPS, "filter": {"tenant": [""]}}, "an empty text, which it never is"),
    "a number": ("ops", {**OPS, "filter": {"tenant": [7]}}, '7, but must have a text, {"prefix": text} or'),
    "a matcher that is not known": ("ops", {**OPS, "filter": {"tenant": [{"exists": True}]}}, "but must have a text"),
    "parts that are always there": ("ops", {**OPS, "filter": {"tenant": [{"exists": False}]}}, "must have a text"),
    "whether it is partial in a word of one's own": ("ops", {**OPS, "filter": {"partial": ["false"]}}, "it never is"),
    "two matchers in one": ("ops", {**OPS, "filter": {"tenant": [{"prefix": "a", "suffix": "b"}]}}, "must have a text"),
    "a prefix of nothing": ("ops", {**OPS, "filter": {"tenant": [{"prefix": ""}]}}, "but must have a text"),
    "anything but nothing": ("ops", {**OPS, "filter": {"tenant": [{"anything-but": []}]}}, "but must have a text"),
    "anything but what is never sent": (
        "ops", {**OPS, "filter": {"event_type": [{"anything-but": ["job.failed", "job.nope"]}]}}, "what it never is",
    ),
    "anything but all there is": (
        "ops", {**OPS, "filter": {"partial": [{"anything-but": ["true"]}]}}, "or all that it can be: it is one of true",
    ),
    "a prefix of no event": (
        "ops", {**OPS, "filter": {"event_type": [{"prefix": "nope"}]}}, "it never begins with: it is one of job.compl",
    ),
    "whether it is partial as a number": ("ops", {**OPS, "filter": {"partial": [{"exists": 0}]}}, "must have a text"),
    "too many combinations": (
        "ops", {**OPS, "filter": {"tenant": list("abcdefghijklm"), "type": list("abcdefghijkl")}},
        "has 156 combinations of values, and SNS takes 150",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_with_what_to_do(case: str) -> None:
    name, one, words = WRONG[case]
    found = refused({name: one})
    assert len(found) == 1, found
    assert found[0].startswith(f"subscriptions.{name}")
    assert words in found[0]


def test_two_of_one_endpoint_and_more_than_may_be_are_refused() -> None:
    (twice,) = refused({"a": OPS, "b": {**OPS, "filter": {"event_type": ["job.completed"]}}})
    assert "subscriptions.b and .a have the same endpoint, which SNS subscribes once: join their filters" in twice
    many = {f"n{n}": {"protocol": "email", "endpoint": f"{n}@example.com"} for n in range(subscriptions.MOST + 1)}
    assert refused(many) == ["subscriptions has 21 entries, and 20 are the most: let one queue feed several readers"]


def test_they_can_be_said_on_the_command_line(synthesize: Synthesize) -> None:
    from infra.configuration import SettingsError

    with pytest.raises(SettingsError, match="subscriptions must be an object of objects"):
        synthesize(subscriptions=["ops@example.com"])
