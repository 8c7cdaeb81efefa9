"""Word count: lines are split by any task, and each word is counted by one (python -m examples.words)."""

import pyarrow as pa

import interlace as il


@il.bolt
def split(lines: pa.RecordBatch) -> object:
    return {"word": " ".join(lines["line"].to_pylist()).lower().split()}


@il.bolt(key="word")
def count(key: il.Key, words: pa.RecordBatch) -> object:
    key.state["n"] = key.state.get("n", 0) + words.num_rows
    return {"word": key.value, "count": key.state["n"]}


builder = il.TopologyBuilder("words")
builder.input("lines")
builder.bolt("split", split, parallelism=2).shuffle_grouping("lines")
builder.bolt("count", count, parallelism=2).fields_grouping("split", "word")
builder.sink().global_grouping("count")
topology = builder.build()

if __name__ == "__main__":
    print(il.testing.run(topology, {"lines": {"line": ["to be or not to be", "that is the question"]}})["results"])
