"""The REST API: what a server answers under `/api/v1`, and what Prometheus reads under `/metrics`.

`interlace/web/openapi.py` describes it. Handlers run in threads, because a topology on a cluster may take its time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from interlace.watching.exposition import CONTENT_TYPE, exposition
from interlace.watching.physical import physical_graph
from interlace.watching.report import graph, line_as_json, report, status_as_json
from interlace.watching.watch import Watch, jsonable
from interlace.web.access import TokenRequired
from interlace.web.actions import ACTIONS, DRAIN_AND_STOP, Action, ActionError, offered
from interlace.web.desk import Desk
from interlace.web.openapi import GRAPHS, openapi_document
from topology import (
    ClusterError,
    ConnectionLostError,
    InterlaceError,
    StoppedError,
    TaskError,
    TopologyError,
    UnknownTopologyError,
)

PAGE = Path(__file__).parent / "page"
MOST_BODY = 64 * 1024
Handler = Callable[[Request], Awaitable[Response]]


def application(desk: Desk, token: str, *, port: int = 0, framed: bool = False) -> TokenRequired:
    """The web application over a desk, for a server on a port; `framed`: pages of this machine may frame its page."""
    api = Api(desk)
    routes: list[BaseRoute] = [
        Route("/api/v1/openapi.json", api.document),
        Route("/api/v1/topologies", api.list),
        Route("/api/v1/topologies/{name}", api.show),
        Route("/api/v1/topologies/{name}/series", api.series),
        Route("/api/v1/topologies/{name}/graph", api.graph),
        Route("/api/v1/topologies/{name}/explanation", api.explanation),
        Route("/api/v1/topologies/{name}/logs", api.logs),
        Route("/api/v1/topologies/{name}/actions/{action}", api.act, methods=["POST"]),
        Route("/metrics", api.metrics),
        Route("/", page),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    handlers = {HTTPException: _http_error, InterlaceError: _our_error, ClientDisconnect: _gone}
    return TokenRequired(Starlette(routes=routes, exception_handlers=handlers), token, port, framed)  # type: ignore[arg-type]


async def page(request: Request) -> Response:
    """The live page."""
    return FileResponse(PAGE / "index.html")


class Api:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def document(self, request: Request) -> Response:
        return JSONResponse(openapi_document())

    async def list(self, request: Request) -> Response:
        found = await run_in_threadpool(self._desk.list)
        return JSONResponse(jsonable({"topologies": [status_as_json(status) for status in found]}))

    async def show(self, request: Request) -> Response:
        name = request.path_params["name"]
        return JSONResponse(await run_in_threadpool(self._shown, name))

    async def series(self, request: Request) -> Response:
        watch = await self._watch(request)
        after = _number(request, "after", 0.0)
        return JSONResponse({"interval_seconds": watch.interval, "points": [*watch.series(after)]})

    async def graph(self, request: Request) -> Response:
        by = request.query_params.get("by", GRAPHS[0])
        if by not in GRAPHS:
            raise HTTPException(400, f"by must be {' or '.join(GRAPHS)}, not '{by}'")
        watch = await self._watch(request)
        drawn = graph(watch.running.topology) if by == "component" else physical_graph(watch.now()[0])
        return JSONResponse(jsonable(drawn))

    async def explanation(self, request: Request) -> Response:
        watch = await self._watch(request)
        return JSONResponse({"text": await run_in_threadpool(_explained, watch)})

    async def logs(self, request: Request) -> Response:
        after = int(_number(request, "after", -1.0))
        component = request.query_params.get("component")
        lines = await run_in_threadpool(self._desk.logs, request.path_params["name"], after)
        shown = [line_as_json(line) for line in lines if component in (None, line.component)]
        return JSONResponse(jsonable({"lines": shown}))

    async def act(self, request: Request) -> Response:
        name, action = request.path_params["name"], request.path_params["action"]
        chosen = ACTIONS.get(action)
        if chosen is None:
            raise HTTPException(404, f"there is no action '{action}'; actions: {', '.join(ACTIONS)}")
        arguments = await _body(request)
        return JSONResponse(jsonable(await run_in_threadpool(self._acted, name, chosen, arguments)))

    async def metrics(self, request: Request) -> Response:
        text = await run_in_threadpool(self._exposed)
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    async def _watch(self, request: Request) -> Watch:
        return await run_in_threadpool(self._desk.watch, request.path_params["name"])

    def _shown(self, name: str) -> dict[str, Any]:
        try:
            watch = self._desk.watch(name)
            return {**report(watch), "actions": offered(watch.now()[0].status)}
        except UnknownTopologyError:
            raise
        except InterlaceError:  # one that has failed tells only its status
            status = self._desk.status(name)
            return {**jsonable(status_as_json(status)), "actions": ["stop"]}

    def _acted(self, name: str, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
        if action.name == "stop":
            action.checked(arguments)
            self._desk.stop(name)
            return {"done": "stop", "result": None}
        running = self._desk.watch(name).running
        result = action.run(running, arguments)
        if action.name == DRAIN_AND_STOP:
            self._desk.stop_when_read(name, running, float(arguments.get("seconds", math.inf)))
        return {"done": action.name, "result": result}

    def _exposed(self) -> str:
        return exposition(*self._desk.looks())


def _explained(watch: Watch) -> str:
    explain = getattr(watch.running, "explain", None)
    return str(explain() if callable(explain) else watch.running.topology.plan())


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; an empty body is an empty one."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY:
            raise HTTPException(413, f"the body has more than {MOST_BODY} bytes")
    if not content:
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return value


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise HTTPException(400, f"{name} must be a number, not '{text}'")
    return value


async def _http_error(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


async def _our_error(request: Request, error: InterlaceError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=status_code(error))


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=499)


def status_code(error: InterlaceError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, UnknownTopologyError):
        return 404
    if isinstance(error, ActionError):
        return 400
    if isinstance(error, ClusterError | ConnectionLostError):
        return 503
    if isinstance(error, TopologyError | StoppedError | TaskError):
        return 409
    return 500
