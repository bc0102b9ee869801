"""ONNX files of absurd counts and depths: small to write, and dear to a careless reader."""

from __future__ import annotations

from collections.abc import Callable

from hostile import field, nested, varint, with_graph, with_node

MANY = 1_000_000
EMPTY_NODE = field(1, b"")
NAME = b"n" * 1_000_000
TENSOR_FIELD, INPUT, VALUE_INFO = 5, 11, 13


def value_info(name: bytes, type_fields: bytes) -> bytes:
    return field(VALUE_INFO, field(1, name) + field(2, type_fields))


COSTLY: dict[str, Callable[[], bytes]] = {
    "nodes": lambda: with_graph(EMPTY_NODE * MANY),
    "nodes_in_functions": lambda: with_graph(b"") + field(25, field(7, b"") * 100_001),
    "attributes": lambda: with_node(field(5, b"") * MANY),
    "attributes_of_one_name": lambda: with_node(field(5, field(1, b"a") + b"\x18\x00\xa0\x01\x02") * 200_000),
    "inputs_of_a_node": lambda: with_node(field(1, b"x") * 300_000),
    "outputs_of_a_node": lambda: with_node(field(2, b"") * MANY),
    "metadata": lambda: with_graph(field(16, b"") * MANY),
    "initializers": lambda: with_graph(field(TENSOR_FIELD, b"") * MANY),
    "inputs": lambda: with_graph(field(INPUT, field(1, b"a")) * MANY),
    "dimensions": lambda: with_graph(value_info(b"v", field(1, field(2, field(1, b"") * MANY)))),
    "functions": lambda: with_graph(b"") + field(25, b"") * MANY,
    "opsets": lambda: with_graph(b"") + field(8, b"\x10\x11") * MANY,
    "dims": lambda: with_graph(field(TENSOR_FIELD, b"\x10\x01" + b"\x08\x01" * MANY)),
    "packed_dims": lambda: with_graph(field(TENSOR_FIELD, field(1, b"\x01" * 20 * MANY))),
    "pieces_of_elements": lambda: with_graph(field(TENSOR_FIELD, b"\x10\x07" + b"\x38\x00" * 2 * MANY)),
    "packed_elements": lambda: with_graph(field(TENSOR_FIELD, b"\x08" + varint(20 * MANY) + b"\x10\x07"
                                                + field(7, b"\x00" * 20 * MANY))),
    "external_entries": lambda: with_graph(field(TENSOR_FIELD, b"\x10\x01" + field(13, b"") * MANY)),
    "ints": lambda: with_node(field(5, field(1, b"a") + field(8, b"\x01" * 10 * MANY))),
    "strings": lambda: with_node(field(5, field(1, b"a") + field(9, b"") * MANY)),
    "tensors": lambda: with_node(field(5, field(1, b"a") + field(10, b"") * MANY)),
    "fields_inside_fields": lambda: with_graph(nested(1, 100_000)),
    "long_name_of_a_type_inside_types": lambda: with_graph(value_info(NAME, nested(4, 200))),
    "unknown_fields": lambda: with_graph(b"\x18\x00" * 3 * MANY),
    "more_unknown_fields": lambda: with_graph(b"\x18\x00" * 12 * MANY),
    "unknown_fields_inside": lambda: with_graph(nested(31, 100_000)),
}

# Those that cost no more than they may: they are read.
WITHIN_BOUNDS = ("inputs_of_a_node", "outputs_of_a_node", "dimensions", "strings", "long_name_of_a_type_inside_types",
                 "unknown_fields", "unknown_fields_inside")


def deep_graphs(depth: int) -> bytes:
    """If bodies inside one another."""
    body = field(12, field(1, b"x"))
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, body) + b"\xa0\x01\x05"
        body = field(12, field(1, b"x")) + field(1, field(1, b"x") + field(4, b"If") + field(5, attribute))
    return with_node(field(5, field(1, b"then_branch") + field(6, body) + b"\xa0\x01\x05"))
