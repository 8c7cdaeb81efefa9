"""A metrics consumer that hands what it sees to Ray, which shows it to whatever reads Ray's own metrics."""

from __future__ import annotations

from ray.util.metrics import Counter, Gauge

from interlace.watching.exposition import FAMILIES, histograms, measured
from interlace.watching.look import Look


class RayMetrics:
    """Give it to `Watch(running, consumers=(RayMetrics(),))` in a program that is connected to a cluster.

    Names and labels are those of `/metrics`, behind Ray's own prefix `ray_`. The series of the histogram (`_bucket`,
    `_sum`, `_count`) are gauges, because a histogram of Ray takes single values only; `histogram_quantile` reads them
    alike.
    """

    def __init__(self) -> None:
        self._counters = {
            family.name: Counter(family.name, description=family.help, tag_keys=family.labels)
            for family in FAMILIES
            if family.kind == "counter"
        }
        self._gauges = {
            family.name: Gauge(family.name, description=family.help, tag_keys=family.labels)
            for family in FAMILIES
            if family.kind == "gauge"
        }
        for family in FAMILIES:
            for name in family.series if family.kind == "histogram" else ():
                labels = (*family.labels, "le") if name.endswith("_bucket") else family.labels
                self._gauges[name] = Gauge(name, description=family.help, tag_keys=labels)
        self._labels = {family.name: family.labels for family in FAMILIES}
        self._last: dict[tuple[str, tuple[str, ...]], float] = {}

    def __call__(self, look: Look) -> None:
        for name, values in measured([look]).items():
            for labels, value in values:
                tags = dict(zip(self._labels[name], labels, strict=True))
                if name in self._gauges:
                    self._gauges[name].set(value, tags)
                elif (grown := value - self._known(name, labels, value)) > 0:
                    self._counters[name].inc(grown, tags)
        for name, names, labels, value in histograms(look):
            self._gauges[name].set(value, dict(zip(names, labels, strict=True)))

    def _known(self, name: str, labels: tuple[str, ...], value: float) -> float:
        """The last value of a counter; 0 if it began anew."""
        last = self._last.get((name, labels), 0.0)
        self._last[name, labels] = value
        return last if last <= value else 0.0
