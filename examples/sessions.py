"""Sessions: the clicks of a user that follow each other within half an hour, told when the session is over.

python -m examples.sessions
"""

import pyarrow as pa

import interlace as il


@il.bolt(window=il.Sessions("ts", gap=1800), key="user")
def session(window: il.Window, clicks: pa.RecordBatch) -> object:
    pages = clicks["page"].to_pylist()
    return {"user": window.key, "began": window.start, "over": window.end, "clicks": len(pages), "last": pages[-1]}


builder = il.TopologyBuilder("sessions")
builder.input("clicks", il.Input(event_time="ts", out_of_order=60, idle_after=30))
builder.bolt("sessions", session, parallelism=2).fields_grouping("clicks", "user")
builder.sink().global_grouping("sessions")
builder.sink("late", aside=True).global_grouping("sessions", "late")
topology = builder.build()

if __name__ == "__main__":
    clicks = {"user": ["ann", "bob", "ann", "ann"], "ts": [0, 10, 900, 4000], "page": ["/", "/", "/help", "/"]}
    print(il.testing.run(topology, {"clicks": clicks})["results"].to_pandas())
