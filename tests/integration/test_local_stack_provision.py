"""A provisioned stack is what its template says: nothing left out, nothing made up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.stack.errors import TemplateError
from local.stack.provision import Stack, provision
from local.stack.template import parse
from tests.integration.local_aws import Aws, serving
from tests.integration.stock_moto import stock


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    return running


def provisioned(aws: Aws, resources: dict[str, Any], **more: Any) -> Stack:
    document = {"Resources": resources, **more}
    return provision(parse(document, name="test"), aws.server.url)


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


TABLE = resource(
    "DynamoDB::Table",
    KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "due")],
    BillingMode="PAY_PER_REQUEST",
    GlobalSecondaryIndexes=[
        {
            "IndexName": "due",
            "KeySchema": [{"AttributeName": "due", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    StreamSpecification={"StreamViewType": "NEW_AND_OLD_IMAGES"},
    TimeToLiveSpecification={"AttributeName": "expires_at", "Enabled": True},
    PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    DeletionProtectionEnabled=True,
)


def test_a_table_has_its_indexes_stream_ttl_and_recovery(aws):
    stack = provisioned(aws, {"Jobs": TABLE})
    jobs = stack.resources["Jobs"]
    dynamodb = aws.client("dynamodb")
    table = dynamodb.describe_table(TableName=jobs.ref)["Table"]
    assert table["TableArn"] == jobs.attributes["Arn"]
    assert table["LatestStreamArn"] == jobs.attributes["StreamArn"]
    assert table["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["due"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["DeletionProtectionEnabled"] is True
    ttl = dynamodb.describe_time_to_live(TableName=jobs.ref)["TimeToLiveDescription"]
    assert (ttl["AttributeName"], ttl["TimeToLiveStatus"]) == ("expires_at", "ENABLED")
    recovery = dynamodb.describe_continuous_backups(TableName=jobs.ref)["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_queues_have_their_attributes_dead_letters_and_policy(aws):
    stack = provisioned(
        aws,
        {
            "Work": resource(
                "SQS::Queue",
                VisibilityTimeout=720,
                MessageRetentionPeriod=345600,
                DelaySeconds=3,
                ReceiveMessageWaitTimeSeconds=20,
                SqsManagedSseEnabled=True,
                RedrivePolicy={"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 5},
            ),
            "Dead": resource("SQS::Queue", MessageRetentionPeriod=1209600),
            "Policy": resource(
                "SQS::QueuePolicy",
                Queues=[{"Ref": "Work"}],
                PolicyDocument={"Statement": [{"Effect": "Deny", "Action": "sqs:*", "Principal": "*"}]},
            ),
        },
    )
    work = stack.resources["Work"]
    found = aws.client("sqs").get_queue_attributes(QueueUrl=work.ref, AttributeNames=["All"])["Attributes"]
    assert {
        "VisibilityTimeout": "720",
        "MessageRetentionPeriod": "345600",
        "DelaySeconds": "3",
        "ReceiveMessageWaitTimeSeconds": "20",
        "SqsManagedSseEnabled": "true",
        "QueueArn": work.attributes["Arn"],
    }.items() <= found.items()
    assert stack.resources["Dead"].attributes["Arn"] in found["RedrivePolicy"]
    assert "Deny" in found["Policy"]
    assert work.ref.startswith(f"{aws.server.url}/123456789012/test-Work-")
    assert work.attributes["QueueName"] == work.ref.rsplit("/", 1)[-1]


def test_subscriptions_deliver_raw_filtered_and_with_dead_letters(aws):
    stack = provisioned(
        aws,
        {
            "Facts": resource("SNS::Topic", DisplayName="facts"),
            "Inbox": resource("SQS::Queue"),
            "Dead": resource("SQS::Queue"),
            "Subscription": resource(
                "SNS::Subscription",
                TopicArn={"Ref": "Facts"},
                Protocol="sqs",
                Endpoint={"Fn::GetAtt": ["Inbox", "Arn"]},
                RawMessageDelivery=True,
                FilterPolicy={"status": ["COMPLETED"]},
                RedrivePolicy={"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}},
            ),
            "ByMail": resource(
                "SNS::Subscription", TopicArn={"Ref": "Facts"}, Protocol="email", Endpoint="ops@example.com"
            ),
        },
    )
    for status in ("FAILED", "COMPLETED"):
        aws.client("sns").publish(
            TopicArn=stack.resources["Facts"].ref,
            Message=status,
            MessageAttributes={"status": {"DataType": "String", "StringValue": status}},
        )
    found = aws.client("sqs").receive_message(QueueUrl=stack.resources["Inbox"].ref, MaxNumberOfMessages=10)
    assert [message["Body"] for message in found["Messages"]] == ["COMPLETED"]
    attributes = aws.client("sns").get_subscription_attributes(SubscriptionArn=stack.resources["Subscription"].ref)[
        "Attributes"
    ]
    assert stack.resources["Dead"].attributes["Arn"] in attributes["RedrivePolicy"]


def test_buckets_have_versioning_lifecycle_cors_and_a_policy_that_does_not_lock_us_out(aws):
    stack = provisioned(
        aws,
        {
            "Inputs": resource(
                "S3::Bucket",
                VersioningConfiguration={"Status": "Enabled"},
                LifecycleConfiguration={
                    "Rules": [
                        {"Id": "old", "Status": "Enabled", "Prefix": "inputs/", "ExpirationInDays": 150},
                        {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}},
                    ]
                },
                CorsConfiguration={
                    "CorsRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://x"], "MaxAge": 60}]
                },
                PublicAccessBlockConfiguration={"BlockPublicAcls": True},
            ),
            "Policy": resource(
                "S3::BucketPolicy",
                Bucket={"Ref": "Inputs"},
                PolicyDocument={
                    "Statement": [
                        {
                            "Effect": "Deny",
                            "Action": "s3:*",
                            "Principal": {"AWS": "*"},
                            "Resource": {"Fn::Sub": "${Inputs.Arn}/*"},
                            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                        }
                    ]
                },
            ),
        },
    )
    name = stack.resources["Inputs"].ref
    assert name == name.lower()
    assert len(name) <= 63
    s3 = aws.client("s3")
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    rules = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]
    assert rules[0]["Expiration"] == {"Days": 150}
    assert rules[0]["Filter"] == {"Prefix": "inputs/"}
    assert rules[1]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert s3.get_bucket_cors(Bucket=name)["CORSRules"][0]["MaxAgeSeconds"] == 60
    assert "SecureTransport" in s3.get_bucket_policy(Bucket=name)["Policy"]
    s3.put_object(Bucket=name, Key="inputs/1", Body=b"x")
    assert s3.get_object(Bucket=name, Key="inputs/1")["Body"].read() == b"x"
    with stock("FakeBucket.get_permission"), pytest.raises(ClientError, match="403"):
        s3.put_object(Bucket=name, Key="inputs/1", Body=b"x")
    plain_deny = '{"Statement": [{"Effect": "Deny", "Action": "s3:*", "Principal": "*", "Resource": "*"}]}'
    s3.put_bucket_policy(Bucket=name, Policy=plain_deny)
    with pytest.raises(ClientError, match="403"):
        s3.put_object(Bucket=name, Key="inputs/1", Body=b"x")


def test_versions_that_are_no_longer_current_expire(aws):
    noncurrent = {"NoncurrentDays": 30, "NewerNoncurrentVersions": 2}
    rules = [{"Status": "Enabled", "NoncurrentVersionExpiration": noncurrent, "ExpiredObjectDeleteMarker": True}]
    stack = provisioned(aws, {"Uploads": resource("S3::Bucket", LifecycleConfiguration={"Rules": rules})})
    found = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=stack.resources["Uploads"].ref)["Rules"][0]
    assert found["NoncurrentVersionExpiration"]["NoncurrentDays"] == 30
    assert found["Expiration"] == {"ExpiredObjectDeleteMarker": True}


def test_monitoring_and_secrets_exist(aws):
    stack = provisioned(
        aws,
        {
            "Logs": resource("Logs::LogGroup", RetentionInDays=30),
            "Alarm": resource(
                "CloudWatch::Alarm",
                AlarmActions=["arn:aws:sns:us-east-1:123456789012:alerts"],
                MetricName="Age",
                Namespace="AWS/SQS",
                Period=60,
                Statistic="Maximum",
                Threshold=1,
                EvaluationPeriods=1,
                ComparisonOperator="GreaterThanThreshold",
                TreatMissingData="notBreaching",
            ),
            "Secret": resource(
                "SecretsManager::Secret",
                GenerateSecretString={"SecretStringTemplate": '{"user": "x"}', "GenerateStringKey": "key"},
            ),
            "Parameter": resource("SSM::Parameter", Name="/p", Type="String", Value="v"),
        },
        Outputs={"Value": {"Value": {"Fn::GetAtt": ["Parameter", "Value"]}}},
    )
    (group,) = aws.client("logs").describe_log_groups()["logGroups"]
    assert (group["logGroupName"], group["retentionInDays"]) == (stack.resources["Logs"].ref, 30)
    (alarm,) = aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert alarm["AlarmName"] == stack.resources["Alarm"].ref
    assert alarm["AlarmActions"] == ["arn:aws:sns:us-east-1:123456789012:alerts"]
    value = aws.client("secretsmanager").get_secret_value(SecretId=stack.resources["Secret"].ref)["SecretString"]
    assert '"user": "x"' in value
    assert stack.outputs == {"Value": "v"}


ROLE = resource(
    "IAM::Role",
    AssumeRolePolicyDocument={},
    ManagedPolicyArns=["arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"],
    Policies=[{"PolicyName": "own", "PolicyDocument": {"Statement": [{"Sid": "own"}]}}],
)


def test_a_role_has_its_own_its_attached_and_its_managed_policies(aws):
    attached = {"PolicyName": "p", "PolicyDocument": {"Statement": [{"Sid": "attached", "Resource": {"Ref": "Q"}}]}}
    stack = provisioned(
        aws,
        {
            "Q": resource("SQS::Queue"),
            "Role": ROLE,
            "Other": resource("IAM::Role", AssumeRolePolicyDocument={}),
            "Policy": resource("IAM::Policy", Roles=[{"Ref": "Role"}], **attached),
        },
    )
    own, added, managed = stack.role_policies(stack.resources["Role"].attributes["Arn"])
    assert own["Statement"][0]["Sid"] == "own"
    assert added["Statement"][0]["Resource"] == stack.resources["Q"].ref
    assert "logs:PutLogEvents" in managed["Statement"][0]["Action"]
    assert stack.role_policies(stack.resources["Other"].attributes["Arn"]) == []


def test_a_managed_policy_that_nobody_here_knows_is_an_error(aws):
    stack = provisioned(
        aws, {"Role": resource("IAM::Role", ManagedPolicyArns=["arn:aws:iam::aws:policy/PowerUserAccess"])}
    )
    with pytest.raises(TemplateError, match=r"\[Role\].*PowerUserAccess"):
        stack.role_policies(stack.resources["Role"].attributes["Arn"])


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (resource("EC2::Instance"), r"\[Broken\] AWS::EC2::Instance is not played"),
        (resource("SQS::Queue", Colour="red"), r"\[Broken\] AWS::SQS::Queue: Colour"),
        (resource("SQS::Queue", QueueName={"Fn::Cidr": []}), r"\[Broken\] unknown intrinsic"),
        (resource("SQS::Queue", QueueName={"Ref": "Nobody"}), r"\[Broken\] Ref to Nobody"),
        (resource("SQS::Queue", QueueName={"Fn::GetAtt": ["Nobody", "Arn"]}), r"\[Broken\] Fn::GetAtt to Nobody"),
        (resource("SQS::Queue", QueueName={"Fn::GetAtt": ["Fine", "Taste"]}), r"\[Broken\].*no attribute Taste"),
        (resource("SQS::Queue", QueueName="no spaces allowed"), r"\[Broken\].*alphanumeric"),
    ],
)
def test_what_cannot_be_created_is_an_error_with_its_logical_id(aws, broken, words):
    with pytest.raises(TemplateError, match=words):
        provisioned(aws, {"Fine": resource("SQS::Queue"), "Broken": broken})


def mapping(
    aws: Aws, queue: dict[str, Any] | None = None, function: dict[str, Any] | None = None, **properties: Any
) -> Stack:
    source = properties.pop("EventSourceArn", {"Fn::GetAtt": ["Queue", "Arn"]})
    return provisioned(
        aws,
        {
            "Queue": resource("SQS::Queue", **{"VisibilityTimeout": 60, **(queue or {})}),
            "Jobs": TABLE,
            "Worker": resource("Lambda::Function", **{"Timeout": 10, **(function or {})}),
            "Mapping": resource(
                "Lambda::EventSourceMapping", EventSourceArn=source, FunctionName={"Ref": "Worker"}, **properties
            ),
        },
    )


def test_moto_22_a_visibility_below_the_function_timeout_is_refused(aws):
    with pytest.raises(TemplateError, match=r"\[Mapping\] Queue visibility timeout: 9 seconds is less than Function"):
        mapping(aws, queue={"VisibilityTimeout": 9})


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"BatchSize": 11}, "MaximumBatchingWindowInSeconds must be greater than 0"),
        ({"BatchSize": 0}, "BatchSize"),
        ({"BatchSize": 10_001, "MaximumBatchingWindowInSeconds": 1}, "BatchSize"),
        ({"MaximumBatchingWindowInSeconds": 301}, "MaximumBatchingWindowInSeconds"),
        ({"ScalingConfig": {"MaximumConcurrency": 1}}, "between 2 and 1000"),
        ({"EventSourceArn": {"Fn::GetAtt": ["Jobs", "StreamArn"]}}, "StartingPosition"),
        (
            {
                "EventSourceArn": {"Fn::GetAtt": ["Jobs", "StreamArn"]},
                "StartingPosition": "LATEST",
                "MaximumRecordAgeInSeconds": 30,
            },
            "MaximumRecordAgeInSeconds",
        ),
    ],
)
def test_moto_22_mappings_that_aws_would_refuse_are_refused(aws, properties, words):
    with pytest.raises(TemplateError, match=rf"\[Mapping\].*{words}"):
        mapping(aws, **properties)


def test_a_concurrency_above_the_functions_own_is_refused(aws):
    with pytest.raises(TemplateError, match="more than the function's reserved 3"):
        mapping(aws, function={"ReservedConcurrentExecutions": 3}, ScalingConfig={"MaximumConcurrency": 5})


def test_a_sound_mapping_is_kept_with_its_properties(aws):
    stack = mapping(aws, BatchSize=100, MaximumBatchingWindowInSeconds=5, ScalingConfig={"MaximumConcurrency": 2})
    (found,) = stack.of_type("AWS::Lambda::EventSourceMapping")
    assert found.properties["EventSourceArn"] == stack.resources["Queue"].attributes["Arn"]
    assert stack.by_arn(found.properties["EventSourceArn"]) is stack.resources["Queue"]
    assert found.properties["FunctionName"] == stack.resources["Worker"].ref


def test_an_api_says_where_the_gateway_listens(aws):
    document = {
        "Resources": {"Api": resource("ApiGatewayV2::Api", Name="x", ProtocolType="HTTP")},
        "Outputs": {"Url": {"Value": {"Fn::GetAtt": ["Api", "ApiEndpoint"]}}},
    }
    template = parse(document, name="test")
    assert provision(template, aws.server.url).outputs["Url"].endswith(".execute-api.us-east-1.amazonaws.com")
    assert provision(template, aws.server.url, "http://127.0.0.1:8000").outputs["Url"] == "http://127.0.0.1:8000"


def test_the_real_stack_is_provisioned_whole(aws, synthesized):
    stack = provision(synthesized, aws.server.url)
    assert set(stack.resources) == set(synthesized.resources)
    assert "{" not in "".join(stack.outputs.values())
    for function in stack.of_type("AWS::Lambda::Function"):
        assert stack.asset_of(function).exists()
        assert stack.role_policies(function.properties["Role"])
    queue = aws.client("sqs").get_queue_attributes(QueueUrl=stack.outputs["WorkQueueUrl"], AttributeNames=["All"])
    assert "maxReceiveCount" in queue["Attributes"]["RedrivePolicy"]
    table = aws.client("dynamodb").describe_table(TableName=stack.outputs["JobsTableName"])["Table"]
    assert {index["IndexName"] for index in table["GlobalSecondaryIndexes"]} == {"due", "by_tenant", "by_upload"}
    bucket = stack.outputs["InputsBucketName"]
    aws.client("s3").put_object(Bucket=bucket, Key="inputs/x", Body=b"x")
    assert aws.client("s3").get_object(Bucket=bucket, Key="inputs/x")["Body"].read() == b"x"
