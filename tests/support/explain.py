"""What Postgres really does for a statement: its plan, run for real inside a transaction that is rolled back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from asyncpg import Connection, Record
from asyncpg.pool import PoolConnectionProxy
from asyncpg.prepared_stmt import PreparedStatement

Node = dict[str, Any]
Session: TypeAlias = "Connection[Record] | PoolConnectionProxy[Record]"

_NAME = "explained"


@dataclass(frozen=True, slots=True)
class Plan:
    """One executed plan. Every figure is of the run itself, not an estimate."""

    root: Node

    def nodes(self) -> Iterator[Node]:
        """Every node of the tree: subplans and CTEs too."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.get("Plans", ()))

    @property
    def types(self) -> set[str]:
        """The kinds of nodes: `Index Scan`, `Seq Scan`, `Hash Join`, `ModifyTable`, …"""
        return {node["Node Type"] for node in self.nodes()}

    @property
    def indexes(self) -> set[str]:
        """The names of the indexes that were used."""
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}

    @property
    def scanned_whole(self) -> set[str]:
        """The tables that were read from end to end; empty ones are none."""
        scans = (node for node in self.nodes() if node["Node Type"] == "Seq Scan")
        return {node["Relation Name"] for node in scans if _looked_at(node)}

    def rows(self, relation: str) -> int:
        """How many rows of a table (or partition) were looked at, those that a filter threw away included."""
        return sum(_looked_at(node) for node in self.nodes() if node.get("Relation Name") == relation)

    @property
    def buffers(self) -> int:
        """8 kB pages touched, hit or read, by the whole statement."""
        return int(self.root.get("Shared Hit Blocks", 0) + self.root.get("Shared Read Blocks", 0))


async def explain(
    connection: Session, sql: str, *args: object, generic: bool = False, setting: str | None = None
) -> Plan:
    """Run `sql` (it may change data) under EXPLAIN ANALYZE and roll back.

    `generic`: with the plan for any arguments, which a server switches to by itself after five runs. An EXPLAIN
    with parameters is always planned for its arguments, so the statement is prepared on the server and executed
    with literals. `setting`: a SET LOCAL that the statement is run under.
    Needs a connection of its own, outside a transaction.
    """
    types, values = await _literals(connection, sql, args)
    declared = f"({', '.join(types)})" if types else ""
    given = f"({', '.join(values)})" if values else ""
    mode = "force_generic_plan" if generic else "force_custom_plan"
    await connection.execute(f"PREPARE {_NAME} {declared} AS {sql}")
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
        if setting:
            await connection.execute(setting)
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {_NAME} {given}")
    finally:
        await transaction.rollback()
        await connection.execute(f"DEALLOCATE {_NAME}")
    return Plan(msgspec.json.decode(text)[0]["Plan"])


async def _literals(connection: Session, sql: str, args: tuple[object, ...]) -> tuple[list[str], list[str]]:
    """The parameters' types as SQL, and the arguments as typed literals, both by the server's own reckoning."""
    statement: PreparedStatement[Record] = await connection.prepare(sql)
    types = [
        await connection.fetchval("SELECT format_type($1, NULL)", parameter.oid)
        for parameter in statement.get_parameters()
    ]
    values = [
        await connection.fetchval(f"SELECT quote_nullable($1::{kind}::text) || '::' || $2::text", value, kind)
        for kind, value in zip(types, args, strict=True)
    ]
    return types, values


def _looked_at(node: Node) -> int:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round(float(node["Actual Rows"] + removed) * float(node["Actual Loops"]))
