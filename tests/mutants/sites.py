"""Where lambdas/ writes under a condition, acknowledges or deletes: found in its sources, each must have its mutant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# arguments by which a write is made conditional
CONDITIONS = frozenset({"ConditionExpression", "IfMatch", "IfNoneMatch"})

# calls of a port by which something is written under a condition: (receiver, method)
WRITES = frozenset({
    *((store, write) for store in ("store", "_client") for write in ("apply", "apply_many", "create")),
    *(("ledger", write) for write in ("create", "save", "take", "keep", "give_back")),
    *(("_layer", write) for write in ("delete",)),
    *(("_effects", write) for write in ("intend", "once", "repeatable")),
    *((store, write) for store in ("deliveries", "_rows") for write in ("apply", "create")),
    *((store, "save") for store in ("store", "endpoints")),
    *(("connections", write) for write in ("open", "watch", "unwatch", "advance", "tell", "close")),
    ("tickets", "put"), ("tickets", "take"), ("chunks", "append"), ("chunks", "delete_all"),
})  # fmt: skip

# calls by which a letter or an object goes away, or is kept from others
REMOVALS = frozenset({
    ("box", "remove"), ("held", "remove"), ("_client", "delete_message_batch"), ("looking", "keep"),
    ("_client", "delete_objects"), ("inputs", "delete_many"), ("results", "delete_folder"), ("uploads", "delete"),
})  # fmt: skip

# calls whose answer says what was not taken: whoever does not look acknowledges what nobody has
SENDS = frozenset({"send", "send_work", "send_message_batch", "publish_batch", "_deliver"})

# what a message, a letter or an event has come to: whether it is acknowledged, hidden, buried or left
OUTCOMES = frozenset({"Acknowledge", "Done", "Failed", "Early", "NoSuchJob", "Buried", "Ignored"})
FAILURES = "batchItemFailures"
CURSOR = "cursor"


@dataclass(frozen=True)
class Site:
    """Something that must be guarded: in which function of which file, and what it is."""

    path: str
    function: str
    what: str
    lines: range


def sites(root: Path) -> Iterator[Site]:
    """All of them, in lambdas/ below this folder."""
    for path in sorted((root / "lambdas").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in _functions(tree):
            found = sorted({what for node in _own_nodes(function) for what in _what(node)})
            span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            yield from (Site(path.relative_to(root).as_posix(), function.name, what, span) for what in found)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Those of the function, without the functions inside it: they speak for themselves."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _what(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.keyword(arg=str() as name) if name in CONDITIONS:
            yield name
        case ast.Constant(value=str() as text) if text in CONDITIONS or text == FAILURES:
            yield text
        case ast.Call(func=ast.Attribute(attr=method) as called):
            yield from _called(_last_name(called.value), method, node.args)
        case ast.Call(func=ast.Name(id=name)) if name in OUTCOMES | SENDS | {"Change"}:
            yield name
        case ast.Return(value=ast.Tuple(elts=parts)) if _says(parts, 202):
            yield "202"
        case ast.Assign(targets=[*targets]) if any(_is_cursor(target) for target in targets):
            yield CURSOR


def _called(receiver: str, method: str, arguments: list[ast.expr]) -> Iterator[str]:
    if (receiver, method) in WRITES | REMOVALS or method in SENDS:
        yield f"{receiver}.{method}"
    elif method in OUTCOMES:
        yield method
    elif (receiver, method) == ("http", "answer") and _says(arguments, 202):
        yield "202"


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called):
            return _last_name(called)
    return ""


def _says(parts: list[ast.expr], status: int) -> bool:
    return bool(parts) and isinstance(parts[0], ast.Constant) and parts[0].value == status


def _is_cursor(target: ast.AST) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == CURSOR
