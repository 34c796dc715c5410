"""Two mappings on one stream: each has its own filters, its own place in the stream and its own troubles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.events.streams import StreamMapping
from local.runtime import Runtime
from local.stack.errors import TemplateError
from tests.integration.local_toys import Toy, eventually

FOLLOW = """
    def handler(event, context):
        keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]
        if "poison" in keys:
            raise ValueError
        return keys
"""


def only(**keys: Any) -> dict[str, Any]:
    return {"Filters": [{"Pattern": json.dumps({"dynamodb": {"Keys": {"pk": {"S": [keys]}}}})}]}


def toy_of(folder: Path, *roles: str) -> Toy:
    toy = Toy(folder)
    toy.table("Table")
    for role in roles:
        toy.function(role, FOLLOW)
    return toy


def seen(runtime: Runtime, role: str) -> list[str]:
    return [key for one in list(runtime.functions.history) if one.function == role and one.ok for key in one.result]


def test_each_goes_its_own_way(tmp_path):
    toy = toy_of(tmp_path, "first", "second")
    start = {"StartingPosition": "TRIM_HORIZON", "BatchSize": 1}
    toy.mapping("first", "Table", "StreamArn", **start)
    toy.mapping("second", "Table", "StreamArn", **start, FilterCriteria=only(prefix="chunk#"))
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        make: Any = boto3.client
        keys = {"aws_access_key_id": "developer", "aws_secret_access_key": "secret"}
        table = make("dynamodb", endpoint_url=runtime.aws, region_name="us-east-1", **keys)

        def write(*written: str) -> None:
            for key in written:
                table.put_item(TableName=runtime.outputs["Table"], Item={"pk": {"S": key}})

        write("a", "chunk#1", "poison", "b", "chunk#2")
        eventually(lambda: seen(runtime, "second") == ["chunk#1", "chunk#2"])  # though the first is stuck
        eventually(lambda: seen(runtime, "first") == ["a", "chunk#1"])
        runtime.functions.pause("second")
        write("chunk#3")
        by_role = {one.role: one for one in runtime.sources.mappings if isinstance(one, StreamMapping)}
        first, second = by_role["first"], by_role["second"]
        first.disable()
        # the stream keeps what the slower one has still to read
        assert int(first.done_up_to or 0) < int(second.done_up_to or 0)
        assert (first.describe()["busy"], second.describe()["busy"]) == (False, True)
        runtime.functions.resume("second")
        eventually(lambda: seen(runtime, "second") == ["chunk#1", "chunk#2", "chunk#3"])
        eventually(lambda: not second.describe()["busy"])
        table.close()


def test_third_reader_of_a_stream_is_refused(tmp_path):
    toy = toy_of(tmp_path, "first", "second", "third")
    for role in ("first", "second", "third"):
        toy.mapping(role, "Table", "StreamArn", StartingPosition="LATEST")
    with pytest.raises(TemplateError, match=r"\[ThirdTable\] more than 2 mappings"):
        Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None).start()
