"""Item sizes and units by DynamoDB's published rules."""

from __future__ import annotations

import pytest

from local.aws.sizes import index_write_units, item_size, number_size, read_units, value_size, write_units


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "ä"}, 2),
        ({"S": "\U0001f600"}, 4),
        ({"B": "aGVsbG8="}, 5),
        ({"B": b"hello"}, 5),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["ab", "c"]}, 3),
        ({"NS": ["1", "22"]}, 4),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"BOOL": False}]}, 3 + 1 + 2 + 1 + 1),
        ({"M": {}}, 3),
        ({"M": {"key": {"S": "ab"}}}, 3 + 1 + 3 + 2),
        ({"M": {"k": {"L": [{"M": {}}]}}}, 3 + 1 + 1 + (3 + 1 + 3)),
    ],
)
def test_values_are_as_large_as_dynamodb_counts_them(value, size):
    assert value_size(value) == size


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("0", 1),
        ("7", 2),
        ("-7", 3),
        ("12", 2),
        ("123", 3),
        ("1000000", 2),
        ("0.001", 2),
        ("1.5", 2),
        ("9" * 38, 20),
        ("-" + "9" * 38, 21),
        ("1e10", 2),
    ],
)
def test_numbers_are_counted_by_their_significant_digits(number, size):
    assert number_size(number) == size


def test_an_item_is_its_names_and_values():
    assert item_size({"pk": {"S": "job-1"}, "naïve": {"N": "12"}}) == 2 + 5 + 6 + 2
    assert item_size({}) == 0


@pytest.mark.parametrize(
    ("sizes", "units"), [((), 1), ((0,), 1), ((1024,), 1), ((1025,), 2), ((10, 3000), 3), ((3000, 10), 3)]
)
def test_a_write_costs_the_larger_of_before_and_after(sizes, units):
    assert write_units(*sizes) == units
    assert write_units(*sizes, transactional=True) == 2 * units


@pytest.mark.parametrize(("size", "units"), [(0, 1), (4096, 1), (4097, 2), (9000, 3)])
def test_a_read_costs_by_4_kb_and_consistency(size, units):
    assert read_units(size, consistent=True) == units
    assert read_units(size) == units / 2
    assert read_units(size, transactional=True) == 2 * units


def test_an_index_entry_costs_when_it_is_put_changed_or_removed():
    entry, changed = {"pk": {"S": "a"}}, {"pk": {"S": "b" * 2000}}
    assert index_write_units(None, None) == 0
    assert index_write_units(entry, entry) == 0
    assert index_write_units(None, entry) == 1
    assert index_write_units(entry, None) == 1
    assert index_write_units(entry, changed) == 2
