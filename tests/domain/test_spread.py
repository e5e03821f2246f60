"""Numbers are spread evenly, and every node comes to the same answer."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.spread import share

nodes = st.sets(st.integers(1, 2**64).map(lambda n: UUID(int=n)), min_size=1, max_size=12)


@given(nodes, st.integers(0, 300))
def test_all_shares_add_up_and_differ_by_one_at_most(live: set[UUID], numbers: int) -> None:
    shares = [share(node, live, numbers) for node in live]
    assert sum(shares) == numbers
    assert max(shares) - min(shares) <= 1


@given(nodes, st.integers(0, 300))
def test_a_node_that_nobody_has_heard_of_yet_counts_itself(live: set[UUID], numbers: int) -> None:
    newcomer = UUID(int=2**100)
    assert share(newcomer, live, numbers) == share(newcomer, {*live, newcomer}, numbers)
