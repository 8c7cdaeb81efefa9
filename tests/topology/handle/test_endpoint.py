"""Endpoints: what travels with them, what they show, and which URIs are refused."""

import base64
import pickle
from dataclasses import asdict

import pytest

from topology import Endpoint, InputError, InterlaceError
from topology.handle.endpoint import location_of
from topology.security.certificates import Credentials

TOKEN = "canary-token-4711"


@pytest.fixture(scope="module")
def root() -> str:
    made = Credentials().root
    assert made is not None
    return made


def test_an_endpoint_compares_hashes_and_pickles_with_its_token(root: str) -> None:
    endpoint = Endpoint("grpc+tls://10.0.0.5:31001", TOKEN, root)
    again = pickle.loads(pickle.dumps(endpoint))
    assert again == endpoint
    assert hash(again) == hash(endpoint)
    assert (again.location, again.token, again.root) == ("grpc+tls://10.0.0.5:31001", TOKEN, root)
    assert endpoint != Endpoint("grpc+tls://10.0.0.5:31001", "other", root)
    assert endpoint != Endpoint("grpc+tls://10.0.0.5:31001", TOKEN)
    assert endpoint != Endpoint("grpc+tls://10.0.0.5:31002", TOKEN, root)
    assert endpoint != "grpc+tls://10.0.0.5:31001"


def test_an_endpoint_does_not_show_its_token(root: str) -> None:
    endpoint = Endpoint("grpc+tls://10.0.0.5:31001", TOKEN, root)
    assert asdict(endpoint) == {"location": "grpc+tls://10.0.0.5:31001", "root": root, "schema": None, "needed": None}
    shown = [repr(endpoint), str(endpoint), f"{endpoint}", f"{endpoint!r:>200}", repr(vars(endpoint)), endpoint.uri,
             repr([endpoint.token]), repr({"endpoint": (endpoint, endpoint.token)})]  # fmt: skip
    assert [text for text in shown if TOKEN in text] == []
    assert str(endpoint.token) == TOKEN


def test_an_endpoint_is_frozen() -> None:
    endpoint = Endpoint("grpc://127.0.0.1:1", TOKEN)
    for name in ("location", "token", "root"):
        with pytest.raises(AttributeError):
            setattr(endpoint, name, "other")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_uri_holds_location_and_roots_and_no_token(count: int) -> None:
    roots = "".join(str(Credentials().root) for _ in range(count)) or None
    endpoint = Endpoint("grpc+tls://[fd00::2]:31001", TOKEN, roots)
    assert TOKEN not in endpoint.uri
    assert Endpoint.from_uri(endpoint.uri, TOKEN) == endpoint


def test_a_uri_holds_the_names_of_the_columns_that_are_read(root: str) -> None:
    names = ("id", "two words", "a&needed=b", "ü/?#")
    endpoint = Endpoint("grpc+tls://10.0.0.5:1", TOKEN, root).with_needed(names)
    assert Endpoint.from_uri(endpoint.uri, TOKEN).needed == names
    assert Endpoint.from_uri(endpoint.uri, TOKEN).root == root
    assert Endpoint("grpc://127.0.0.1:1", TOKEN).with_needed([]).uri == "grpc://127.0.0.1:1"


def test_a_uri_without_tls_is_the_location() -> None:
    assert Endpoint("grpc://127.0.0.1:1", TOKEN).uri == "grpc://127.0.0.1:1"
    assert Endpoint.from_uri("grpc://127.0.0.1:1/", TOKEN) == Endpoint("grpc://127.0.0.1:1", TOKEN)


@pytest.mark.parametrize(
    "uri",
    ["", "garbage", "127.0.0.1:80", "http://127.0.0.1:80", "grpc://127.0.0.1", "grpc://:80", "grpc://127.0.0.1:x",
     "grpc://127.0.0.1:99999", "grpc://user@127.0.0.1:80", "grpc://127.0.0.1:80/path", "grpc://127.0.0.1:80#part",
     "grpc+tls://[::1:80", "grpc+tls://10.0.0.5:1/?token=abc", "grpc+tls://10.0.0.5:1/?root=", "grpc+tls://h:1/?root",
     "grpc+tls://10.0.0.5:1/?root=%%%", "grpc+tls://10.0.0.5:1/?root=AAAA", "grpc+tls://10.0.0.5:1/?root=a",
     "grpc://10.0.0.5:1/?root=" + base64.urlsafe_b64encode(b"0123").decode(), "\0", "grpc://\udcff:1"],
)  # fmt: skip
def test_garbage_is_refused_with_an_error_of_ours(uri: str) -> None:
    with pytest.raises(InputError) as refused:
        Endpoint.from_uri(uri, TOKEN)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("wrong", ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----"])
def test_a_root_that_is_no_certificate_is_refused(wrong: str) -> None:
    with pytest.raises(InterlaceError, match="not a certificate in PEM format"):
        Endpoint("grpc+tls://10.0.0.5:1", TOKEN, wrong)


def test_addresses_of_either_version_become_locations() -> None:
    assert location_of("grpc", "127.0.0.1", 80) == "grpc://127.0.0.1:80"
    assert location_of("grpc+tls", "fd00::2", 80) == "grpc+tls://[fd00::2]:80"
