"""steps: rows in steps where no gate makes them, so that a topology of bolts and joins can be repeated.

In: rows in the order in which they happen to come. Out: steps, the same for every task, and snapshots between them.
Imports graph, durable, tasks and journal.

Read in this order: sequencer (which rows make a step), sequenced (how it gets into a topology), aligned (how a task
takes steps from several inputs), ticks (which of them a task is called for), inner (how marks pass through a join),
leaving (what comes out of one).
"""
