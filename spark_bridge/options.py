"""What the data source is told: options of a query, and tokens in Spark's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark import SparkContext

from topology import InputError

TOKEN = "spark.interlace.token"
"""The setting with the token of the endpoint that a query calls; `spark.interlace.token.R` is that of stream or sink R.
A query keeps the value that was set when it was started."""


def option(options: Mapping[str, str], name: str, default: str | None = None) -> str:
    """Return an option; names are compared as Spark does, whatever their case."""
    found = {key.lower(): value for key, value in options.items()}.get(name.lower(), default)
    if not found:
        raise InputError(f'format("interlace") needs the option {name}: .option("{name}", ...)')
    return found


def keep_tokens_out_of_event_logs(names: Iterable[str]) -> None:
    """Let Spark know the keys of tokens, if a classic session runs in this process.

    Tasks get the settings of their session as properties, and Spark writes these into its event log. It hides values
    whose key looks like a secret, but only if the configuration of the application had the key from the start: a value
    that is set later, with `spark.conf.set`, is written as it is.
    """
    context = SparkContext._active_spark_context
    if context is not None:
        for name in {TOKEN, *names}:
            if not context._conf.contains(name):
                context._conf.set(name, "")
