"""The REST API: tokens first, answers as its OpenAPI document says, and errors that say what to do."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from starlette.testclient import TestClient

import interlace as il
from interlace.web.access import cookie_name
from interlace.web.actions import ACTIONS
from interlace.web.api import application
from interlace.web.desk import Desk, HandleDesk
from interlace.web.openapi import openapi_document
from interlace.web.server import WebServer
from tests.topology.waiting import wait_for
from topology import LogLine, Status, TopologyError

TOKEN = "a-token-of-the-tests"
COOKIE = cookie_name(0)


@pytest.fixture(scope="module")
def running() -> Iterator[il.RunningJoin]:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(100))
    with join.launch(name="join of tests") as launched:
        launched.send("R", pa.table({"x": [1, 2]}))
        launched.send("S", pa.table({"x": [3, 4]}))
        wait_for(lambda: launched.metrics().total("results") > 0)
        yield launched


class KeptDesk(HandleDesk):
    """Does not stop what the other tests still need."""

    def stop(self, name: str) -> None:
        self.watch(name)


@pytest.fixture(scope="module")
def desk(running: il.RunningJoin) -> Iterator[Desk]:
    made = KeptDesk(running)
    yield made
    made.close()


NAME = "/api/v1/topologies/offers"


@pytest.fixture(scope="module")
def offers() -> Iterator[TestClient]:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(100))
    with join.launch(name="offers") as launched:
        launched.send("R", pa.table({"x": [1, 2]}))
        launched.send("S", pa.table({"x": [3, 4]}))
        wait_for(lambda: launched.metrics().total("results") > 0)
        made = KeptDesk(launched)
        yield TestClient(application(made, TOKEN), headers={"authorization": f"Bearer {TOKEN}"})
        made.close()


def validate(path: str, answer: Any, method: str = "get") -> None:
    """Compare an answer with what the document promises."""
    document = openapi_document()
    promised = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = {**promised, "components": document["components"]}
    Draft202012Validator(schema).validate(answer)


def test_nothing_is_answered_without_the_token(desk: Desk) -> None:
    stranger = TestClient(application(desk, TOKEN), follow_redirects=False)
    for path in ("/", "/page/page.js", "/metrics", "/api/v1/topologies", "/api/v1/openapi.json", "/nothing"):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"cookie": f"{COOKIE}=wrong"}):
            answer = stranger.get(path, headers=headers)
            assert answer.status_code == 401, (path, headers)
            assert TOKEN not in answer.text
    assert stranger.get("/?token=wrong").status_code == 401


def test_a_browser_gets_a_cookie_and_an_address_without_the_token(desk: Desk) -> None:
    browser = TestClient(application(desk, TOKEN), follow_redirects=False)
    entered = browser.get(f"/?view=x&token={TOKEN}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/?view=x")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    page = browser.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "https://" not in page.text.replace("http://www.w3.org", "")
    act = f"{NAME}/actions/stop"
    assert browser.post(act, headers={"origin": "http://evil.example"}).status_code == 401
    assert browser.post(act, headers={"origin": "http://testserver"}).status_code == 404


def test_answers_are_as_the_document_says(offers: TestClient) -> None:
    for path in ("", "/{name}", "/{name}/series", "/{name}/graph", "/{name}/explanation", "/{name}/logs"):
        answer = offers.get("/api/v1/topologies" + path.format(name="offers"))
        assert answer.status_code == 200, answer.text
        validate("/api/v1/topologies" + path, answer.json())
    shown = offers.get(NAME).json()
    assert shown["verdict"]["health"] == "well"
    assert shown["rows_in"] == 4
    assert "stop" in shown["actions"]
    assert "R.x < S.x" in offers.get(f"{NAME}/explanation").json()["text"]


def test_errors_say_what_to_do(offers: TestClient) -> None:
    unknown = offers.get("/api/v1/topologies/other")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "there is no topology 'other' here, only 'offers'"})
    assert offers.get(f"{NAME}/series?after=soon").json() == {"error": "after must be a number, not 'soon'"}
    assert offers.post(f"{NAME}/actions/dance").status_code == 404
    assert offers.get(f"{NAME}/actions/stop").status_code == 405
    wrong = offers.post(f"{NAME}/actions/rebalance", json={"tasks": {"mutable": 0}})
    assert wrong.status_code == 400
    assert "must be an object of component and number of tasks" in wrong.json()["error"]
    assert offers.post(f"{NAME}/actions/stop", content=b"{").json() == {"error": "the body is not JSON"}
    assert offers.post(f"{NAME}/actions/stop", json={"now": 1}).status_code == 400
    assert offers.post(f"{NAME}/actions/stop", content=b"x" * 100_000).status_code == 413


def test_actions_are_done(running: il.RunningJoin) -> None:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(100))
    with join.launch(name="mine") as launched:
        made = HandleDesk(launched)
        asked = TestClient(application(made, TOKEN), headers={"authorization": f"Bearer {TOKEN}"})
        for action, active in (("deactivate", False), ("activate", True)):
            assert action in asked.get("/api/v1/topologies/mine").json()["actions"]
            assert asked.post(f"/api/v1/topologies/mine/actions/{action}").status_code == 200
            made.watch("mine").look()
            shown = asked.get("/api/v1/topologies/mine").json()
            assert shown["active"] is active
            assert action not in shown["actions"]
            assert ("takes no rows until it is activated" in shown["verdict"]["summary"]) is not active
        done = asked.post("/api/v1/topologies/mine/actions/stop")
        assert done.json() == {"done": "stop", "result": None}
        validate("/api/v1/topologies/{name}/actions/stop", done.json(), "post")
        assert launched.status().state is il.State.STOPPED
        made.close()


def test_a_topology_that_has_failed_tells_why() -> None:
    class FailedDesk(Desk):
        def list(self) -> Sequence[Status]:
            return [self.status("doomed")]

        def watch(self, name: str) -> Any:
            raise TopologyError("it has failed")

        def status(self, name: str) -> Status:
            return Status(name, il.State.FAILED, (), "Traceback\nLookupError: no such rack")

        def logs(self, name: str, after: int) -> Sequence[LogLine]:
            return [LogLine(0.0, "ERROR", "no such rack")]

        def stop(self, name: str) -> None: ...

        def close(self) -> None: ...

    asked = TestClient(application(FailedDesk(), TOKEN), headers={"authorization": f"Bearer {TOKEN}"})
    shown = asked.get("/api/v1/topologies/doomed").json()
    validate("/api/v1/topologies/{name}", shown)
    assert shown["error"].endswith("no such rack")
    assert asked.get("/api/v1/topologies/doomed/logs").json()["lines"][0]["text"] == "no such rack"
    assert asked.get("/api/v1/topologies/doomed/graph").status_code == 409
    assert 'interlace_up{topology="doomed"} 0' in asked.get("/metrics").text  # so that the alert fires


def test_an_embedded_topology_that_has_failed_is_shown_and_may_be_stopped() -> None:
    def fails(rows: pa.RecordBatch) -> pa.RecordBatch:
        raise LookupError("no such rack")

    builder = il.TopologyBuilder("doomed")
    builder.input("in")
    builder.bolt("fails", il.MapBatches(fails)).shuffle_grouping("in")
    builder.sink().global_grouping("fails")
    launched = il.LocalRuntime().launch(builder.build())
    made = HandleDesk(launched, interval=0.05)
    asked = TestClient(application(made, TOKEN), headers={"authorization": f"Bearer {TOKEN}"})
    launched.send("in", [{"x": 1}])
    base = "/api/v1/topologies/doomed"
    wait_for(lambda: asked.get(base).json()["state"] == "failed")
    assert asked.get(base).json()["actions"] == ["stop"]
    assert 'interlace_up{topology="doomed"} 0' in asked.get("/metrics").text
    assert asked.post(f"{base}/actions/savepoint").status_code == 409
    assert asked.post(f"{base}/actions/stop").json() == {"done": "stop", "result": None}
    made.close()
    with pytest.raises(il.TaskError, match="no such rack"):
        launched.stop()


def test_only_the_page_of_a_notebook_may_be_framed_and_then_its_own_files_need_no_token(desk: Desk) -> None:
    framed = TestClient(application(desk, TOKEN, port=1, framed=True), follow_redirects=False)
    assert "frame-ancestors 'self' http://localhost:*" in framed.get("/").headers["content-security-policy"]
    assert framed.get("/page/page.js").status_code == 200
    for path in ("/metrics", "/api/v1/topologies", "/api/v1/openapi.json", "/nothing", "/page"):
        assert framed.get(path).status_code == 401, path
    assert framed.post("/").status_code == 401
    plain = TestClient(application(desk, TOKEN, port=2))
    assert "frame-ancestors 'self';" in plain.get("/").headers["content-security-policy"]
    names = {client.get(f"/?token={TOKEN}").headers["set-cookie"].partition("=")[0] for client in (framed,)}
    assert names == {cookie_name(1)} != {cookie_name(2)}


def test_every_action_is_in_the_document() -> None:
    paths = openapi_document()["paths"]
    assert {f"/api/v1/topologies/{{name}}/actions/{action}" for action in ACTIONS} <= set(paths)


@pytest.mark.filterwarnings("ignore")
def test_no_request_makes_the_server_fail_or_answer_what_it_does_not_document(offers: TestClient) -> None:
    import schemathesis

    schema = schemathesis.openapi.from_asgi(
        "/api/v1/openapi.json", offers.app, headers={"authorization": f"Bearer {TOKEN}"}
    )

    for operation in schema.get_all_operations():
        _fuzz(operation.ok().as_strategy())  # type: ignore[union-attr]


def _fuzz(strategy: Any) -> None:
    from schemathesis.specs.openapi.checks import ignored_auth

    @settings(
        max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
    )
    @given(case=strategy)
    def request(case: Any) -> None:
        answer = case.call(headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.status_code != 500, answer.text
        case.validate_response(answer, excluded_checks=[ignored_auth])  # the token is sent in place of what it made

    request()


def test_a_server_on_loopback_answers_and_closes(running: il.RunningJoin) -> None:
    server = il.ui(running)
    assert TOKEN not in repr(server)
    request = urllib.request.Request(server.url + "metrics", headers={"Authorization": f"Bearer {server.token!s}"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    server.close()
    server.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(request, timeout=5)


def test_beyond_loopback_everything_is_encrypted(running: il.RunningJoin) -> None:
    host = _own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    with WebServer(HandleDesk(running), host=host) as server:
        assert server.url.startswith(f"https://{host}:")
        request = urllib.request.Request(server.url + "metrics", headers={"Authorization": f"Bearer {server.token!s}"})
        trusting = ssl.create_default_context(cadata=server.root)
        with urllib.request.urlopen(request, context=trusting) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
            urllib.request.urlopen(request, timeout=5)  # nobody else signed it
    with pytest.raises(TopologyError, match=r"cannot listen on 192\.0\.2\.1"):
        WebServer(HandleDesk(running), host="192.0.2.1")


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if found.startswith("127.") else found
