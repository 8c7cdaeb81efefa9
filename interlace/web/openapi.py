"""The description of the REST API, as OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from interlace import __version__
from interlace.web.actions import ACTIONS

_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


def _or_null(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


def _object(properties: dict[str, Any], required: bool = True) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(properties)} if required else {})}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_LOAD = {
    "component": _TEXT,
    "tasks": {"type": "integer"},
    "rows_in": {"type": "integer"},
    "rows_out": {"type": "integer"},
    "rows_in_per_second": _NUMBER,
    "rows_out_per_second": _NUMBER,
    "busy": _SHARE,
    "busiest": _SHARE,
    "blocked": _SHARE,
    "idle": _SHARE,
    "waiting_bytes": {"type": "integer"},
    "state_bytes": _NUMBER,
    "age_seconds": _object({"p50": _or_null("number"), "p95": _or_null("number"), "p99": _or_null("number")}),
}

_STATUS = {
    "name": _TEXT,
    "state": {"enum": ["starting", "running", "recovering", "failed", "stopped"]},
    "active": {"type": "boolean"},
    "detached": {"type": "boolean"},
    "encrypted": {"type": "boolean"},
    "error": _or_null("string"),
    "trouble": _or_null("string"),
    "recoveries": {"type": "integer"},
    "workers": _array(
        _object(
            {
                "name": _TEXT,
                "node": _TEXT,
                "process": {"type": "integer"},
                "silent_seconds": _NUMBER,
                "tasks": _array(_TEXT),
                "memory_bytes": _or_null("integer"),
                "free_memory_bytes": _or_null("integer"),
                "free_disk_bytes": _or_null("integer"),
                "log_bytes": _or_null("integer"),
                "checkpoint_bytes": _or_null("integer"),
                "free_state_bytes": _or_null("integer"),
            }
        )
    ),
    "events": _array(_object({"at": _NUMBER, "state": _TEXT, "text": _or_null("string"), "task": _or_null("string")})),
}

SCHEMAS: dict[str, Any] = {
    "Error": _object({"error": _TEXT}),
    "Status": _object(_STATUS),
    "Report": {
        "allOf": [
            _ref("Status"),
            {
                "type": "object",
                "required": ["actions"],
                "properties": {
                    "actions": _array({"enum": list(ACTIONS)}),
                    "at": _NUMBER,
                    "age_seconds": _NUMBER,
                    "verdict": _object(
                        {
                            "health": {"enum": ["well", "attention", "failed", "recovering", "starting", "stopped"]},
                            "summary": _TEXT,
                            "speed": _TEXT,
                            "bottleneck": _TEXT,
                            "component": _or_null("string"),
                            "loss": _TEXT,
                            "outlook": _TEXT,
                        }
                    ),
                    "log_bytes": {"type": "integer"},
                    "checkpoint_bytes": {"type": "integer"},
                    "window_fill": _or_null("number"),
                    "components": _array(_object({**_LOAD, "kind": _TEXT, "class": _TEXT, "note": _TEXT})),
                    "edges": _array(
                        _object(
                            {
                                "from": _TEXT,
                                "to": _TEXT,
                                "rows": {"type": "integer"},
                                "bytes": {"type": "integer"},
                                "rows_per_second": _NUMBER,
                                "bytes_per_second": _NUMBER,
                                "waiting_bytes": {"type": "integer"},
                            }
                        )
                    ),
                    "placed_edges": _array({"type": "object"}),
                    "critical_path": _object(
                        {
                            "summary": _TEXT,
                            "hops": _array(_object({"from": _TEXT, "to": _TEXT, "seconds": _NUMBER})),
                        }
                    ),
                    "sources": _array({"type": "object"}),
                    "late": {"type": "object"},
                    "waiting_for": _or_null("string"),
                },
            },
        ]
    },
    "Line": _object(
        {
            "number": {"type": "integer"},
            "at": _NUMBER,
            "level": _TEXT,
            "text": _TEXT,
            "topology": _or_null("string"),
            "component": _or_null("string"),
            "task": _or_null("integer"),
            "worker": _or_null("string"),
            "repeated": {"type": "integer"},
        }
    ),
}


def _answer(description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema or {"type": "object"}}}}


def _get(summary: str, schema: dict[str, Any], *parameters: dict[str, Any], named: bool = True) -> dict[str, Any]:
    answers = {"200": _answer(summary, schema), "401": _answer("no token", _ref("Error"))}
    if named:
        answers["404"] = _answer("there is no such topology", _ref("Error"))
    if parameters:
        answers["400"] = _answer("an argument is wrong", _ref("Error"))
    answers["409"] = _answer("the topology has failed or is being stopped", _ref("Error"))
    answers["503"] = _answer("the cluster or the topology's controller does not answer", _ref("Error"))
    shown = [_NAME, *parameters] if named else list(parameters)
    return {"get": {"summary": summary, "parameters": shown, "responses": answers}}


def _query(name: str, kind: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": {"type": kind}}


GRAPHS = ("component", "node")
"""By what the graph may be drawn."""

_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def openapi_document() -> dict[str, Any]:
    """The whole document."""
    base = "/api/v1/topologies"
    paths: dict[str, Any] = {
        base: _get("All topologies.", _object({"topologies": _array(_ref("Status"))}), named=False),
        f"{base}/{{name}}": _get("How a topology is, and what its components do.", _ref("Report")),
        f"{base}/{{name}}/series": _get(
            "Numbers of the last quarter of an hour, for charts.",
            _object({"interval_seconds": _NUMBER, "points": _array({"type": "object"})}),
            _query("after", "number", "only looks after this moment, in seconds since 1970"),
        ),
        f"{base}/{{name}}/graph": _get(
            "The components and edges, with places for a picture.",
            _object({"width": _NUMBER, "height": _NUMBER, **dict.fromkeys(("groups", "boxes", "edges"), _array({}))}),
            {**_query("by", "string", "component, or node for a column of each"), "schema": {"enum": [*GRAPHS]}},
        ),
        f"{base}/{{name}}/explanation": _get("What runs and why, as text.", _object({"text": _TEXT})),
        f"{base}/{{name}}/logs": _get(
            "What its processes have logged and printed.",
            _object({"lines": _array(_ref("Line"))}),
            _query("after", "number", "only lines after this number"),
            _query("component", "string", "only lines of this component"),
        ),
    }
    for action in ACTIONS.values():
        paths[f"{base}/{{name}}/actions/{action.name}"] = _action(action.name, action.title)
    paths["/metrics"] = {
        "get": {
            "summary": "What Prometheus reads.",
            "responses": {
                "200": {"description": "metrics", "content": {"text/plain": {"schema": _TEXT}}},
                "401": _answer("no token", _ref("Error")),
                "503": _answer("the cluster does not answer", _ref("Error")),
            },
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Interlace", "version": __version__, "description": "Running topologies."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _action(name: str, title: str) -> dict[str, Any]:
    action = ACTIONS[name]
    kinds = {
        "number": _NUMBER,
        "counts": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer", "minimum": 1}},
    }
    body = {
        "type": "object",
        "properties": {argument: kinds[kind] for argument, kind in action.arguments.items()},
        "required": list(action.required),
        "additionalProperties": False,
    }
    return {
        "post": {
            "summary": f"{title}.",
            "parameters": [_NAME],
            "requestBody": {"required": bool(action.required), "content": {"application/json": {"schema": body}}},
            "responses": {
                "200": _answer("it is done", _object({"done": _TEXT, "result": {}})),
                "400": _answer("an argument is wrong", _ref("Error")),
                "401": _answer("no token", _ref("Error")),
                "404": _answer("there is no such topology", _ref("Error")),
                "409": _answer("the topology is in no state for this", _ref("Error")),
                "413": _answer("the body is too large", _ref("Error")),
                "503": _answer("the cluster or the topology's controller does not answer", _ref("Error")),
            },
        }
    }
