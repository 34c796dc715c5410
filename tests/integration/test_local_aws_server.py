"""The server recognises every call, keeps calls apart, lets gates in, and ends cleanly."""

from __future__ import annotations

import http.client
import io
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from local.aws.listener import Listener
from local.aws.server import AwsServer, Call, Caller, Refusal, Response
from tests.integration.local_aws import Aws, endless_polls, error_code, sent_and_answered, serving

WORKER = Caller(function="worker", role_arn="arn:aws:iam::123456789012:role/worker", request_id="r-1")


class Recorder:
    """Remembers calls, and does what a test wants before and after them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.calls: list[Call] = []
        self.responses: list[Response] = []
        self.refusal: Refusal | None = None
        self.lose_reply = False

    def before(self, call: Call) -> Refusal | None:
        self.calls.append(call)
        return self.refusal

    def after(self, call: Call, response: Response) -> Response:
        self.responses.append(response)
        return response.without_reply() if self.lose_reply else response


RECORDER = Recorder()


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving(RECORDER) as running:
        yield running


@pytest.fixture(autouse=True)
def _empty(aws: Aws) -> None:
    aws.server.reset()
    aws.server.gates[:] = [RECORDER]
    RECORDER.clear()


def test_calls_are_recognised_by_service_and_operation(aws):
    aws.table()
    aws.client("dynamodb").put_item(TableName="things", Item={"pk": {"S": "a"}})
    aws.client("dynamodbstreams").list_streams()
    url = aws.queue()
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="hello")
    arn = aws.client("sns").create_topic(Name="facts")["TopicArn"]
    aws.client("sns").publish(TopicArn=arn, Message="hello")
    aws.client("cloudwatch").describe_alarms()
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="box")
    s3.put_object(Bucket="box", Key="a/b c", Body=b"x")
    s3.get_object(Bucket="box", Key="a/b c")
    s3.head_object(Bucket="box", Key="a/b c")
    s3.list_objects_v2(Bucket="box", Prefix="a/")
    s3.delete_object(Bucket="box", Key="a/b c")
    assert [(call.service, call.operation) for call in RECORDER.calls] == [
        ("dynamodb", "CreateTable"),
        ("dynamodb", "PutItem"),
        ("dynamodbstreams", "ListStreams"),
        ("sqs", "CreateQueue"),
        ("sqs", "SendMessage"),
        ("sns", "CreateTopic"),
        ("sns", "Publish"),
        ("cloudwatch", "DescribeAlarms"),
        ("s3", "CreateBucket"),
        ("s3", "PutObject"),
        ("s3", "GetObject"),
        ("s3", "HeadObject"),
        ("s3", "ListObjectsV2"),
        ("s3", "DeleteObject"),
    ]


def test_a_call_does_not_make_moto_look_at_its_own_folder(aws, monkeypatch):
    """Stock lists it twice for each call."""
    sqs, looked = aws.client("sqs"), list[str]()

    def isdir(path: str) -> bool:
        looked.append(path)
        return False

    sqs.list_queues()
    monkeypatch.setattr("moto.backends.os.path.isdir", isdir)
    sqs.list_queues()
    assert looked == []


def test_parameters_of_json_and_query_calls_have_their_api_names(aws):
    url = aws.queue()
    attributes = {"tenant": {"DataType": "String", "StringValue": "acme"}}
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="hello", MessageAttributes=attributes)
    arn = aws.client("sns").create_topic(Name="facts")["TopicArn"]
    aws.client("sns").publish(TopicArn=arn, Message="hello", MessageAttributes=attributes)
    sent = next(call for call in RECORDER.calls if call.operation == "SendMessage")
    published = next(call for call in RECORDER.calls if call.operation == "Publish")
    assert sent.parameters == {"QueueUrl": url, "MessageBody": "hello", "MessageAttributes": attributes}
    assert published.parameters["MessageAttributes"] == attributes
    assert published.parameters["Message"] == "hello"


def test_a_registered_key_is_its_function_and_any_other_key_the_developer(aws):
    aws.server.callers.register("KEY-OF-WORKER", WORKER)
    aws.client("sqs", "KEY-OF-WORKER").list_queues()
    aws.client("sqs").list_queues()
    assert [call.caller for call in RECORDER.calls] == [WORKER, None]


def test_presigned_urls_work_and_say_who_signed_them(aws):
    aws.server.callers.register("KEY-OF-QUERY", Caller("query", WORKER.role_arn))
    aws.client("s3").create_bucket(Bucket="box")
    aws.client("s3").put_object(Bucket="box", Key="result", Body=b"large")
    url = aws.client("s3", "KEY-OF-QUERY").generate_presigned_url(
        "get_object", Params={"Bucket": "box", "Key": "result"}
    )
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"large"
    call = RECORDER.calls[-1]
    assert (call.service, call.operation, call.signer and call.signer.function) == ("s3", "GetObject", "query")
    assert (call.caller, call.access_key_id) == (None, "")


@pytest.mark.parametrize("size", [0, 1, 200_000, 3_000_000])
def test_streamed_uploads_arrive_without_their_chunk_frames(aws, size):
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="box")
    s3.put_object(Bucket="box", Key="plain", Body=content)
    s3.put_object(Bucket="box", Key="stream", Body=io.BytesIO(content), ChecksumAlgorithm="SHA256")
    for key in ("plain", "stream"):
        stored = s3.get_object(Bucket="box", Key=key)
        assert stored["Body"].read() == content
        assert "aws-chunked" not in stored.get("ContentEncoding", "")


def test_chunk_signed_trailers_are_no_part_of_the_object(aws):
    aws.client("s3").create_bucket(Bucket="box")
    body = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=dev/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
        "Signature=0",
        "Content-Encoding": "aws-chunked",
        "X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "X-Amz-Decoded-Content-Length": "5",
        "X-Amz-Trailer": "x-amz-checksum-crc32",
    }
    connection = http.client.HTTPConnection("127.0.0.1", aws.server.port)
    connection.request("PUT", "/box/key", body, headers)
    assert connection.getresponse().status == 200
    connection.close()
    assert aws.client("s3").get_object(Bucket="box", Key="key")["Body"].read() == b"hello"


def test_calls_of_a_revoked_key_are_refused_and_have_no_effect(aws):
    aws.table()
    url = aws.queue()
    aws.client("s3").create_bucket(Bucket="box")
    aws.server.callers.register("DEAD", WORKER)
    aws.server.callers.revoke("DEAD")
    refused = []
    attempts: tuple[Callable[[], object], ...] = (
        lambda: aws.client("dynamodb", "DEAD").put_item(TableName="things", Item={"pk": {"S": "late"}}),
        lambda: aws.client("sqs", "DEAD").send_message(QueueUrl=url, MessageBody="late"),
        lambda: aws.client("s3", "DEAD").put_object(Bucket="box", Key="late", Body=b""),
        lambda: aws.client("sns", "DEAD").create_topic(Name="late"),
    )
    for attempt in attempts:
        with pytest.raises(ClientError) as error:
            attempt()
        refused.append(error_code(error.value))
    assert refused == [
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
    ]
    assert aws.client("dynamodb").scan(TableName="things")["Count"] == 0
    assert "Messages" not in aws.client("sqs").receive_message(QueueUrl=url)
    assert aws.client("s3").list_objects_v2(Bucket="box")["KeyCount"] == 0
    assert aws.client("sns").list_topics()["Topics"] == []


def test_a_repeated_call_has_its_effect_again_by_the_rights_of_a_caller_who_is_gone(aws):
    aws.table()
    aws.client("s3").create_bucket(Bucket="box")
    url = aws.queue()
    aws.server.callers.register("FIRST", WORKER)
    RECORDER.clear()
    aws.client("dynamodb", "FIRST").put_item(TableName="things", Item={"pk": {"S": "one"}})
    aws.client("s3", "FIRST").put_object(Bucket="box", Key="one", Body=b"body")
    aws.client("sqs", "FIRST").send_message(QueueUrl=url, MessageBody="one")
    aws.server.callers.revoke("FIRST")
    made = list(RECORDER.calls)
    aws.client("dynamodb").delete_item(TableName="things", Key={"pk": {"S": "one"}})
    aws.client("s3").delete_object(Bucket="box", Key="one")
    RECORDER.clear()
    assert [aws.server.repeat(call).status for call in made] == [200, 200, 200]
    assert [(call.caller, call.signer) for call in RECORDER.calls] == [(None, WORKER)] * 3
    assert aws.client("dynamodb").scan(TableName="things")["Count"] == 1
    assert aws.client("s3").get_object(Bucket="box", Key="one")["Body"].read() == b"body"
    assert len(aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 2


def test_a_revoked_key_cannot_be_registered_again(aws):
    aws.server.callers.revoke("GONE")
    with pytest.raises(ValueError, match="revoked"):
        aws.server.callers.register("GONE", WORKER)


def test_revoke_waits_for_the_call_that_is_being_carried_out(aws):
    inside, go_on = threading.Event(), threading.Event()

    class Slow:
        exclusive = True

        def before(self, call: Call) -> Refusal | None:
            inside.set()
            assert go_on.wait(240)
            return None

        def after(self, call: Call, response: Response) -> Response:
            return response

    aws.server.callers.register("SLOW", WORKER)
    aws.server.gates[:] = [Slow()]
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(aws.client("sqs", "SLOW").list_queues)
        assert inside.wait(60)
        revoking = pool.submit(aws.server.callers.revoke, "SLOW")
        time.sleep(0.05)
        revoked = revoking.done()
        go_on.set()
        assert not revoked
        call.result(60)
        revoking.result(60)


def test_refusals_arrive_as_the_exceptions_of_each_service(aws):
    aws.table()
    url = aws.queue()
    dynamodb, sqs, sns, s3 = (aws.client(one) for one in ("dynamodb", "sqs", "sns", "s3"))
    RECORDER.refusal = Refusal("ProvisionedThroughputExceededException", "slow down")
    with pytest.raises(dynamodb.exceptions.ProvisionedThroughputExceededException, match="slow down"):
        dynamodb.get_item(TableName="things", Key={"pk": {"S": "a"}})
    RECORDER.refusal = Refusal("QueueDoesNotExist", "no queue")
    with pytest.raises(sqs.exceptions.QueueDoesNotExist, match="no queue"):
        sqs.send_message(QueueUrl=url, MessageBody="x")
    RECORDER.refusal = Refusal("Throttled", "<slow> & down", 429)
    with pytest.raises(ClientError, match="<slow> & down") as error:
        sns.list_topics()
    assert error_code(error.value) == "Throttled"
    RECORDER.refusal = Refusal("SlowDown", "Please reduce your request rate.", 503)
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket="box", Key="x")
    assert error_code(error.value) == "SlowDown"
    with pytest.raises(ClientError) as error:
        s3.head_object(Bucket="box", Key="x")
    assert error_code(error.value) == "503"


def test_a_lost_reply_leaves_the_effect_and_the_caller_without_an_answer(aws):
    aws.table()
    RECORDER.lose_reply = True
    with pytest.raises(ConnectionClosedError):
        aws.client("dynamodb").put_item(TableName="things", Item={"pk": {"S": "a"}})
    RECORDER.lose_reply = False
    assert aws.client("dynamodb").scan(TableName="things")["Count"] == 1


def test_a_refusal_may_cut_the_connection_before_any_effect(aws):
    aws.table()
    RECORDER.refusal = Refusal(lost=True)
    with pytest.raises(ConnectionClosedError):
        aws.client("dynamodb").put_item(TableName="things", Item={"pk": {"S": "a"}})
    RECORDER.refusal = None
    assert aws.client("dynamodb").scan(TableName="things")["Count"] == 0


def test_gates_that_passed_are_told_when_a_later_one_refuses(aws):
    refusing = Recorder()
    refusing.refusal = Refusal("Throttled", "no")
    aws.server.gates[:] = [RECORDER, refusing]
    with pytest.raises(ClientError):
        aws.client("sqs").list_queues()
    assert [response.carried_out for response in RECORDER.responses] == [False]
    assert refusing.responses == []


def test_one_of_many_racing_conditional_puts_wins(aws):
    aws.table()

    def put(number: int) -> bool:
        try:
            aws.client("dynamodb").put_item(
                TableName="things",
                Item={"pk": {"S": "one"}, "by": {"N": str(number)}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(40))) == 1


def test_long_polling_holds_nobody_up_and_ends_when_a_message_arrives(aws):
    url = aws.queue()
    sqs = aws.client("sqs")
    with endless_polls() as waits, ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=20)
        assert waits.wait(60)
        aws.table()
        assert not receiving.done()
        aws.client("sqs", "other").send_message(QueueUrl=url, MessageBody="hello")
        assert receiving.result(120)["Messages"][0]["Body"] == "hello"


def test_a_connection_serves_many_requests(aws):
    connection = http.client.HTTPConnection("127.0.0.1", aws.server.port)
    for _ in range(3):
        connection.request("GET", "/")
        assert connection.getresponse().read()
        assert connection.sock is not None
    connection.close()


def test_what_moto_lacks_is_an_internal_failure_with_its_name(aws):
    with pytest.raises(ClientError, match=r"NotImplementedError") as error:
        aws.client("sns").get_data_protection_policy(ResourceArn="arn:aws:sns:us-east-1:123456789012:facts")
    assert error_code(error.value) == "InternalFailure"


def test_a_gate_that_breaks_is_an_internal_failure_with_its_reason(aws):
    class Broken:
        def before(self, call: Call) -> Refusal | None:
            raise KeyError("no such thing")

        def after(self, call: Call, response: Response) -> Response:
            return response

    aws.server.gates[:] = [Broken()]
    with pytest.raises(ClientError, match="KeyError: 'no such thing'") as error:
        aws.client("sqs").list_queues()
    assert error_code(error.value) == "InternalFailure"


def test_an_application_that_breaks_is_answered_with_500():
    def broken(environ, start_response):
        raise KeyError("no such thing")

    listener = Listener(0, broken)
    listener.start()
    connection = http.client.HTTPConnection("127.0.0.1", listener.port)
    connection.request("GET", "/")
    assert connection.getresponse().status == 500
    connection.close()
    listener.stop()


def test_a_request_whose_sender_dies_is_no_request(aws):
    """Cut between head and body, which the SDK sends one after the other, it had no parameters: refused as a call on
    anything. Cut in the body, half an object was stored."""
    aws.client("s3").create_bucket(Bucket="box")
    url = aws.client("s3").generate_presigned_url("put_object", Params={"Bucket": "box", "Key": "a"})
    RECORDER.clear()
    request = b"PUT " + url.removeprefix(aws.server.url).encode()
    request += b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n0123456789"
    for sent in range(len(request)):
        assert sent_and_answered(aws.server.port, request[:sent]) == b""
    chunked = request.replace(b"Content-Length: 10", b"Transfer-Encoding: chunked")[:-10] + b"a\r\n0123456789\r\n"
    for sent in range(len(chunked) - 15, len(chunked)):
        assert sent_and_answered(aws.server.port, chunked[:sent]) == b""
    assert RECORDER.calls == []
    assert "Contents" not in aws.client("s3").list_objects_v2(Bucket="box")
    for whole in (request, chunked + b"0\r\n\r\n"):
        assert sent_and_answered(aws.server.port, whole).startswith(b"HTTP/1.1 200")
    assert aws.client("s3").get_object(Bucket="box", Key="a")["Body"].read() == b"0123456789"


def test_a_taken_port_is_an_error(aws):
    with pytest.raises(OSError, match="in use"):
        AwsServer(aws.server.port)


def test_one_server_at_a_time_in_a_process(aws):
    second = AwsServer(0)
    with pytest.raises(RuntimeError, match="one AwsServer per process"):
        second.start()
    second.stop()
