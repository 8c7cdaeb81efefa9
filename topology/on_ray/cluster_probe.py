"""Look at a Ray cluster before joining it, so that what is wrong is an error that says what to do.

`ray.init` takes a minute to notice a wrong port, a wrong token or a machine that is no node of the cluster, and some
wrong tokens end the whole process. So the same questions are asked first, from the cheapest to the dearest, each with a
deadline. All together take a few milliseconds where everything is right, and less than 15 seconds where it is not:

    can a connection be made?             TCP
    is a gRPC server there?               the first frame of HTTP/2, which a server sends unasked
    is there a token to show?             a missing one would end this process inside Ray
    is it the head of a cluster, and does it take the token?
    does it run our versions of Ray and Python?
    does a node of it run on this machine?

Ray has no public calls for most of these: this module is where its private ones are used.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import ray
from ray._common.usage import usage_lib
from ray._private import services
from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
from ray._private.utils import check_version_info
from ray._raylet import (  # type: ignore[attr-defined]  # compiled, without types
    AuthenticationTokenLoader,
    Config,
    GcsClient,
)

from topology.graph.errors import ClusterError

CONNECT_SECONDS = 4.0
GREET_SECONDS = 3.0
ANSWER_SECONDS = 4.0
NODE_SECONDS = 2.0
"""A node that was started just now may not be known to the head yet."""

GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2 begins: the preface and an empty SETTINGS frame (RFC 9113, 3.4)."""

FRAME_TYPE = 3
SETTINGS = 4
TLS_ALERT = 0x15

TOKEN_HELP = (
    "set RAY_AUTH_MODE=token and, to the token of the cluster, RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH to a file with "
    "it); `ray get-auth-token` on its head node prints it"
)

Answer = TypeVar("Answer")


def probe(address: str) -> None:
    """Raise a `ClusterError` if this process could not join the cluster at `host:port`."""
    host, port = split(address)
    within(CONNECT_SECONDS + GREET_SECONDS, f"'{address}' was not looked up", lambda: greet(host, port, address))
    check_token(address)
    head = within(ANSWER_SECONDS, f"the Ray cluster at {address} did not answer", lambda: ask(address))
    check_node(head, address)


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ClusterError(f"'{address}' is no address of a Ray cluster: write host:port, or 'auto', or 'local'")
    return host, int(port)


def greet(host: str, port: int, address: str) -> None:
    """Raise an error unless a gRPC server answers there."""
    advice = (
        "is the head node running, and is this its address? `ray start --head` prints it; the port is 6379 unless given"
    )
    try:
        connection = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
    except socket.gaierror:
        raise ClusterError(f"no machine is called '{host}', so there is no Ray cluster at {address}") from None
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address} ({_said(error)}): {advice}") from None
    encrypted = os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")
    with connection:
        if encrypted:
            return  # Ray itself shakes hands
        connection.settimeout(GREET_SECONDS)
        try:
            connection.sendall(GREETING)
            answer = connection.recv(FRAME_TYPE + 1)
        except OSError as error:
            raise ClusterError(f"what listens at {address} is no Ray cluster ({_said(error)}): {advice}") from None
    if answer[:1] == bytes([TLS_ALERT]):
        raise ClusterError(f"the Ray cluster at {address} uses TLS: set RAY_USE_TLS=1 and Ray's certificates here, too")
    if answer[FRAME_TYPE:] != bytes([SETTINGS]):
        raise ClusterError(f"what listens at {address} is no Ray cluster: {advice}")


def check_token(address: str) -> None:
    """Raise an error if Ray's settings ask for a token and there is none, or none that can be sent."""
    loader = AuthenticationTokenLoader.instance()
    Config.initialize("")  # the program may have set RAY_AUTH_MODE after it imported Ray
    loader.reset_cache()
    try:
        ensure_token_if_auth_enabled(create_token_if_missing=False)
        token = loader.get_raw_token(ignore_auth_mode=True)
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(f"no token for the Ray cluster at {address} ({error.message}): {TOKEN_HELP}") from None
    if not (token.isascii() and token.isprintable()):
        raise ClusterError(f"the token for the Ray cluster at {address} has characters that no token has: {TOKEN_HELP}")


def ask(address: str) -> Any:
    """A client of the head of the cluster, which has let this process in and runs its versions."""
    try:
        head = GcsClient(address=address)
    except ray.exceptions.AuthenticationError:
        raise ClusterError(f"the Ray cluster at {address} refuses the token of this program: {TOKEN_HELP}") from None
    except ray.exceptions.RayError:
        raise ClusterError(
            f"what listens at {address} is not the head of a Ray cluster; `ray start --head` prints the address to "
            f"use, and its port is 6379 unless given"
        ) from None
    try:
        check_version_info(usage_lib.get_cluster_metadata(head), "this machine")
    except RuntimeError as error:
        raise ClusterError(
            f"this program cannot join the Ray cluster at {address}: {error}Run it with the cluster's versions of Ray "
            f"and Python; `ray job submit` runs it on the cluster itself"
        ) from None
    return head


def check_node(head: Any, address: str) -> None:
    """Raise an error unless a node of the cluster runs on this machine."""
    deadline = time.monotonic() + NODE_SECONDS
    while True:
        known = {node.hex() for node in head.get_all_node_info(timeout=NODE_SECONDS)}
        if known & services.find_node_ids():
            return
        if time.monotonic() > deadline:
            raise ClusterError(
                f"this machine is no node of the Ray cluster at {address}, and a program joins a cluster through a "
                f"node on its own machine: run `ray start --address={address}` here first, or run the program on a "
                f"node of the cluster, for example with `ray job submit`"
            )
        time.sleep(0.2)


def within(seconds: float, complaint: str, question: Callable[[], Answer]) -> Answer:
    """The answer to a question, or a `ClusterError` if none comes in time: some calls have no deadline of their own."""
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            answers.append(question())
        except BaseException as error:  # raised again below, in the thread that asked
            errors.append(error)

    asking = threading.Thread(target=wait, name="asking a Ray cluster", daemon=True)
    asking.start()
    asking.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise ClusterError(f"{complaint} within {seconds:.0f} s: is it the right address, and is the cluster well?")
    return answers[0]


def _said(error: OSError) -> str:
    return "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
