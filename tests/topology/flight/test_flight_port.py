"""Where a port listens: loopback without TLS, any address of this machine with it, nowhere else."""

import socket
from collections.abc import Callable, Iterator

import pytest

from topology import Authority, Certificate, Grant, Right, TopologyError, connect
from topology.flight.call_options import action_options
from topology.flight.client_port import ClientPort
from topology.flight.operations import action
from topology.handle.endpoint import Endpoint, Secret
from topology.security.certificates import Credentials

Listen = Callable[..., tuple[ClientPort, Secret]]


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Make a port that answers the action `greet`, and a token for it."""
    ports = []

    def make(host: str = "127.0.0.1", certificate: Certificate | None = None) -> tuple[ClientPort, Secret]:
        authority = Authority()
        token = authority.issue(Grant(Right.WRITE, "x"))
        port = ClientPort(authority, host, certificate)
        port.actions["greet"] = lambda call, path, body: b"hello"
        ports.append(port)
        return port, token

    yield make
    for port in ports:
        port.close()


def greeting(endpoint: Endpoint) -> bytes:
    client = connect(endpoint)
    try:
        return b"".join(r.body.to_pybytes() for r in client.do_action(action("greet"), action_options(endpoint.token)))
    finally:
        client.close()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as attempt:
            attempt.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_loopback_needs_no_certificate(host: str, listen: Listen) -> None:
    port, token = listen(host)
    assert port.location == f"grpc://{host}:{port.port}"
    assert port.endpoint(token).root is None
    assert greeting(port.endpoint(token)) == b"hello"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_with_a_certificate_everything_is_encrypted(host: str, listen: Listen, credentials: Credentials) -> None:
    port, token = listen(host, credentials.issue(host))
    assert port.location == f"grpc+tls://{host}:{port.port}"
    assert port.endpoint(token).root == credentials.root
    assert greeting(port.endpoint(token)) == b"hello"


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_works_with_and_without_tls(listen: Listen, credentials: Credentials) -> None:
    for certificate in (None, credentials.issue("::1")):
        port, token = listen("::1", certificate)
        assert port.location.endswith(f"://[::1]:{port.port}")
        assert greeting(Endpoint.from_uri(port.endpoint(token).uri, token)) == b"hello"


def test_an_address_that_other_machines_reach_works_with_a_certificate_only(
    listen: Listen, credentials: Credentials
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing; tells the address that would be used
        except OSError:
            pytest.skip("this machine has no address beyond loopback")
        host = probe.getsockname()[0]
    with pytest.raises(TopologyError, match="without a certificate"):
        listen(host)
    port, token = listen(host, credentials.issue(host))
    assert port.location == f"grpc+tls://{host}:{port.port}"
    assert greeting(port.endpoint(token)) == b"hello"


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.5", "fd00::99"])
def test_nothing_listens_beyond_loopback_without_a_certificate(host: str, listen: Listen) -> None:
    with pytest.raises(TopologyError, match=f"cannot listen on {host} without a certificate"):
        listen(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_addresses_at_once_are_refused(host: str, listen: Listen, credentials: Credentials) -> None:
    with pytest.raises(TopologyError, match=f"cannot listen on {host}: name the address"):
        listen(host, credentials.issue(host))


@pytest.mark.parametrize("host", ["203.0.113.77", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_named(host: str, listen: Listen, credentials: Credentials) -> None:
    with pytest.raises(TopologyError, match=f"cannot listen on {host}: .*; use an address of this machine"):
        listen(host, credentials.issue(host))


def test_a_damaged_certificate_is_refused(listen: Listen, credentials: Credentials) -> None:
    good = credentials.issue("127.0.0.1")
    with pytest.raises(TopologyError, match=r"cannot listen on 127\.0\.0\.1: .* is its key that of the certificate"):
        listen("127.0.0.1", Certificate(good.chain_pem, "no key"))
