"""How many numbers each live node should own: pure, and the same answer on every node."""

from collections.abc import Collection
from uuid import UUID


def share(node: UUID, live: Collection[UUID], numbers: int) -> int:
    """Numbers that `node` should own: all shares add up to `numbers`, and no two differ by more than one.

    A node that is not counted as live yet (its heartbeat was not seen) gets what it would get as one more.
    """
    ordered = sorted({*live, node})
    each, rest = divmod(numbers, len(ordered))
    return each + (1 if ordered.index(node) < rest else 0)
