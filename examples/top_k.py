"""The top k: the three pages with the most views in each minute (python -m examples.top_k)."""

import pyarrow as pa

import interlace as il


@il.bolt(window=il.Tumbling("ts", 60), key="page")
def views(window: il.Window, rows: pa.RecordBatch) -> object:
    return {"minute": window.end, "page": window.key, "views": rows.num_rows}


@il.bolt(window=il.Tumbling("minute", 60))
def top(window: il.Window, counts: pa.RecordBatch) -> object:
    return sorted(counts.to_pylist(), key=lambda row: (-row["views"], row["page"]))[:3]


builder = il.TopologyBuilder("top k")
builder.input("clicks", il.Input(event_time="ts"))
builder.bolt("views", views, parallelism=2).fields_grouping("clicks", "page")
builder.bolt("top", top).global_grouping("views")
builder.sink().global_grouping("top")
topology = builder.build()

if __name__ == "__main__":
    clicks = {"ts": [1, 2, 3, 4, 59, 61], "page": ["a", "b", "a", "c", "d", "b"]}
    print(il.testing.run(topology, {"clicks": clicks})["results"].to_pandas())
