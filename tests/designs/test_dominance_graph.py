"""The dominance graph of designs against that of the model."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.designs import dominance_graph
from steelyard.designs.dominance_graph import dominance_order
from steelyard.models.comparisons.dominance import Dominance
from tests.models.online_cases import comparisons_of

OUTCOMES = st.dictionaries(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]), st.sampled_from([-1, 0, 1])
)


@settings(deadline=None)
@given(OUTCOMES.filter(bool))
def test_dominance_and_cycles_are_those_of_the_model(outcomes):
    rows = [(str(a), str(b), outcome) for (a, b), outcome in outcomes.items()]
    comparisons = comparisons_of(rows)
    graphs = Dominance(count="vertices", source="items").graphs(comparisons)
    theirs = {int(comparisons.items[int(i)]): int(f) for i, f in zip(graphs.item, graphs.dominance, strict=True)}
    order = dominance_order(sorted(theirs), outcomes)
    ours = {
        item: order.dominates[vertex] - order.dominators[vertex]
        for vertex, tied_items in enumerate(order.members)
        for item in tied_items
    }
    assert ours == theirs


@given(OUTCOMES)
def test_edges_lead_to_lower_numbers_both_ways_alike(outcomes):
    order = dominance_order(range(9), outcomes)
    assert sorted(item for tied_items in order.members for item in tied_items) == list(range(9))
    edges = {(vertex, other) for vertex, below in enumerate(order.below) for other in below}
    assert edges == {(other, vertex) for vertex, above in enumerate(order.above) for other in above}
    assert all(one > other for one, other in edges)


def test_a_graph_larger_than_a_block_is_counted_whole(monkeypatch):
    outcomes = {(item, item + 1): 1 for item in range(99)}
    assert dominance_order(range(100), outcomes).dominates == list(range(100))
    monkeypatch.setattr(dominance_graph, "_BLOCK", 7)
    order = dominance_order(range(100), outcomes)
    assert order.dominates == list(range(100))
    assert order.dominators == list(range(99, -1, -1))


def test_a_long_chain_needs_no_deep_stack():
    n = 20_000
    rng = np.random.default_rng(0)
    outcomes = {(item, item + 1): 1 for item in range(n - 1)}
    outcomes |= {(0, int(item)): -1 for item in rng.integers(2, n, 1)}
    assert len(dominance_order(range(n), outcomes).members) < n
