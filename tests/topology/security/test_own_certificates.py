"""Certificates of the user's own: used as they are, or to sign one per node; mistakes are named before a launch."""

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from topology import Authority, Certificate, Credentials, Grant, Right, Tls, TopologyError, connect
from topology.flight.call_options import action_options
from topology.flight.client_port import ClientPort
from topology.flight.operations import action
from topology.security.certificates import IssuesCertificates, SigningKey
from topology.security.own_certificates import credentials

NOW = dt.datetime.now(dt.UTC)
LOOPBACK: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName("*.cluster.local")]


class Issuer:
    """A name with a key and a certificate, as a company's own tool would make them."""

    def __init__(
        self,
        name: str,
        by: "Issuer | None" = None,
        ca: bool = False,
        days: tuple[int, int] = (-1, 30),
        key: SigningKey | None = None,
    ) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = by or self
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW + dt.timedelta(days=days[0]))
            .not_valid_after(NOW + dt.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName(LOOPBACK), critical=False)
        )
        plain = isinstance(signer.key, ed25519.Ed25519PrivateKey)
        self.certificate = builder.sign(signer.key, None if plain else hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(scope="module")
def root() -> Issuer:
    return Issuer("root", ca=True)


def handshake(made: IssuesCertificates, host: str = "localhost") -> Certificate:
    """Listen with the certificate for a host, connect to it and return it."""
    authority = Authority()
    token = authority.issue(Grant(Right.READ, "x"))
    certificate = made.issue(host)
    port = ClientPort(authority, host, certificate)
    port.actions["greet"] = lambda call, path, body: b"hello"
    endpoint = port.endpoint(token)
    client = connect(endpoint)
    try:
        assert list(client.do_action(action("greet"), action_options(endpoint.token)))
    finally:
        client.close()
        port.close()
    return certificate


@pytest.mark.parametrize("setting", [None, True])
def test_without_certificates_there_is_a_new_authority_each_time(setting: bool | None) -> None:
    assert credentials(setting).root != credentials(setting).root
    handshake(credentials(setting), "127.0.0.1")


@pytest.mark.parametrize("setting", [False, "cluster.pem", 1])
def test_a_setting_of_another_kind_is_refused(setting: Any) -> None:
    with pytest.raises(TopologyError, match=f"tls={setting!r}: give None .* cannot be switched off"):
        credentials(setting)


def test_a_certificate_of_a_company_is_used_as_it_is(root: Issuer) -> None:
    worker = Issuer("worker", by=root)
    made = credentials(Tls(worker.pem, worker.key_pem, root.pem))
    assert handshake(made) == Certificate(worker.pem, worker.key_pem, root.pem)
    assert made.issue("node-7.cluster.local").chain_pem == worker.pem


@pytest.mark.parametrize("host", ["10.0.0.5", "node.elsewhere", "a.node-7.cluster.local", "cluster.local"])
def test_a_certificate_that_does_not_name_a_node_is_refused(host: str, root: Issuer) -> None:
    worker = Issuer("worker", by=root)
    with pytest.raises(TopologyError, match=rf"does not hold for {host}.*localhost, \*\.cluster\.local: use one that"):
        credentials(Tls(worker.pem, worker.key_pem, root.pem)).issue(host)


def test_a_chain_may_have_certificates_in_between(root: Issuer) -> None:
    between = Issuer("between", by=root, ca=True)
    worker = Issuer("worker", by=between)
    handshake(credentials(Tls(worker.pem + between.pem, worker.key_pem, root.pem)))


def test_a_certificate_that_signed_itself_is_its_own_root() -> None:
    worker = Issuer("worker")
    made = credentials(Tls(worker.pem, worker.key_pem))
    assert made.root == worker.pem
    handshake(made)


def test_an_authority_signs_a_certificate_per_node(root: Issuer) -> None:
    made = credentials(Tls(root.pem, root.key_pem))
    assert made.root == root.pem
    first, second = handshake(made, "127.0.0.1"), handshake(made, "127.0.0.2")
    assert first.key_pem != second.key_pem
    assert str(root.key_pem).splitlines()[1] not in pickle.dumps([first, second]).decode("latin1")
    until = x509.load_pem_x509_certificate(first.chain_pem.encode()).not_valid_after_utc
    assert until <= root.certificate.not_valid_after_utc


def test_an_authority_below_another_sends_itself_in_the_chain(root: Issuer) -> None:
    between = Issuer("between", by=root, ca=True)
    assert between.pem in handshake(credentials(Tls(between.pem, between.key_pem, root.pem)), "127.0.0.1").chain_pem


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_keys_of_other_kinds_sign_too(kind: str) -> None:
    made = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ed25519.Ed25519PrivateKey.generate()
    own = Issuer("root", ca=True, key=made)
    handshake(credentials(Tls(own.pem, own.key_pem)), "127.0.0.1")


def test_files_are_read_once_and_travel_as_text(tmp_path: Path, root: Issuer) -> None:
    worker = Issuer("worker", by=root)
    paths = [tmp_path / name for name in ("worker.pem", "worker.key", "root.pem")]
    for path, content in zip(paths, [worker.pem, worker.key_pem, root.pem], strict=True):
        path.write_text(content)
    given = Tls(paths[0], str(paths[1]), paths[2])
    read = given.read()
    for path in paths:
        path.unlink()
    assert read == Tls(worker.pem, worker.key_pem, root.pem)
    handshake(credentials(pickle.loads(pickle.dumps(read))))


# mistakes


def mistaken(tls: Tls) -> str:
    with pytest.raises(TopologyError) as refused:
        credentials(tls)
    assert "PRIVATE" not in str(refused.value)
    return str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path, root: Issuer) -> None:
    missing = tmp_path / "missing.pem"
    assert f"the certificate file '{missing}' cannot be read: No such file" in mistaken(Tls(missing, root.key_pem))
    assert f"the key file '{missing}' cannot be read: No such file" in mistaken(Tls(root.pem, missing))
    assert f"the root certificate file '{missing}'" in mistaken(Tls(root.pem, root.key_pem, missing))
    assert "cannot be read: Is a directory" in mistaken(Tls(tmp_path, root.key_pem))


def test_a_file_of_another_kind_is_named(tmp_path: Path, root: Issuer) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"\xff\xfe\x00")
    assert f"the certificate file '{other}' is not in PEM format" in mistaken(Tls(other, root.key_pem))
    assert "the certificate cannot be read" in mistaken(Tls(root.key_pem, root.key_pem))
    assert "the key cannot be read" in mistaken(Tls(root.pem, root.pem))
    assert "the root certificate cannot be read" in mistaken(Tls(root.pem, root.key_pem, root.key_pem))


def test_a_key_that_does_not_fit_is_refused(root: Issuer) -> None:
    assert "the key does not fit the certificate of 'CN=root'" in mistaken(Tls(root.pem, Issuer("other").key_pem))


def test_a_key_with_a_passphrase_is_refused(root: Issuer) -> None:
    locked = root.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()
    assert "has a passphrase" in mistaken(Tls(root.pem, locked))


def test_a_certificate_out_of_its_time_is_refused(root: Issuer) -> None:
    old, young = Issuer("old", by=root, days=(-9, -2)), Issuer("young", by=root, days=(2, 9))
    assert f"the certificate of 'CN=old' expired on {NOW - dt.timedelta(2):%Y-%m-%d}" in mistaken(
        Tls(old.pem, old.key_pem, root.pem)
    )
    assert "the certificate of 'CN=young' is valid only from" in mistaken(Tls(young.pem, young.key_pem, root.pem))
    ended = Issuer("ended", ca=True, days=(-9, -2))
    worker = Issuer("worker", by=ended)
    assert "the certificate of 'CN=ended' expired" in mistaken(Tls(worker.pem, worker.key_pem, ended.pem))


def test_a_root_that_does_not_sign_the_certificate_is_refused(root: Issuer) -> None:
    worker = Issuer("worker", by=root)
    namesake = Issuer("root", ca=True)
    for other in (Credentials().root, namesake.pem):
        assert "does not sign 'CN=worker': its issuer is 'CN=root'" in mistaken(Tls(worker.pem, worker.key_pem, other))


def test_a_root_among_others_is_found(root: Issuer) -> None:
    worker, ended = Issuer("worker", by=root), Issuer("ended", ca=True, days=(-9, -2))
    handshake(credentials(Tls(worker.pem, worker.key_pem, ended.pem + root.pem)))
