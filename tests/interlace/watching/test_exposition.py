"""What Prometheus reads is well-formed and true, and dashboards and alerts ask only for what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import yaml
from prometheus_client.parser import text_string_to_metric_families

import interlace as il
import interlace.web
from interlace.watching.exposition import FAMILIES, exposition
from interlace.watching.watch import Watch
from tests.topology.waiting import wait_for

GRAFANA = Path(interlace.web.__file__).parent / "grafana"
KNOWN = {name for family in FAMILIES for name in family.series}


def test_the_text_has_every_metric_with_its_labels_and_the_right_values() -> None:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(100))
    with join.launch(name='odd "name"\n') as running:
        running.send("R", pa.table({"x": [1, 2]}))
        running.send("S", pa.table({"x": [3, 4]}))
        running.finish()
        wait_for(lambda: running.metrics().of("results")[0].rows_in == 4)
        look = Watch(running).look()
        found = {family.name: family for family in text_string_to_metric_families(exposition([look]))}
    assert {family.name.removesuffix("_total") for family in FAMILIES} == set(found)
    for family in FAMILIES:
        parsed = found[family.name.removesuffix("_total")]
        assert parsed.type == family.kind
        for sample in parsed.samples:
            assert sample.name in family.series
            assert set(sample.labels) - {"le"} == set(family.labels)
            assert sample.labels["topology"] == 'odd "name"\n'
    rows = {sample.labels["component"]: sample.value for sample in found["interlace_rows_in"].samples}
    assert (rows["R"], rows["S"], rows["results"]) == (2, 2, 4)
    samples = found["interlace_latency_seconds"].samples
    latency = {(sample.name, sample.labels.get("le")): sample.value for sample in samples}
    assert latency["interlace_latency_seconds_count", None] == latency["interlace_latency_seconds_bucket", "+Inf"] > 0
    assert found["interlace_up"].samples[0].value == 1


def test_names_follow_the_conventions() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"interlace(_[a-z]+)+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total"), family.name
        assert family.help.endswith(".")


def test_dashboard_and_alerts_ask_for_metrics_that_exist_by_labels_that_they_have() -> None:
    dashboard = json.loads((GRAFANA / "dashboard.json").read_text())
    alerts = yaml.safe_load((GRAFANA / "alerts.yaml").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    asked += [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    labels = {name: {*family.labels, "le"} for family in FAMILIES for name in family.series}
    assert len(asked) > 20
    used: set[str] = set()
    for expression in asked:
        names = set(re.findall(r"interlace_[a-z_]+", expression))
        assert names, expression
        assert names <= KNOWN, expression
        used |= names
        for grouped in re.findall(r"by \(([^)]*)\)", expression):
            for name in names:
                assert {label.strip() for label in grouped.split(",")} <= labels[name], expression
        for label in re.findall(r"[{,] ?(\w+)=", expression):
            assert all(label in labels[name] for name in names), expression
    assert len(used) > 10
