"""The certificates of a topology: made for every host, valid for years, signed by its own authority only."""

import datetime as dt
import ipaddress
import pickle
from dataclasses import asdict
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from topology import TopologyError
from topology.security.certificates import Credentials

HOSTS = ["10.0.0.5", "192.0.2.7", "fd00::2", "worker-3.cluster.local", "localhost", "127.0.0.1"]


def parsed(pem: str | None) -> x509.Certificate:
    assert pem is not None
    return x509.load_pem_x509_certificate(pem.encode())


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


@pytest.mark.parametrize("host", HOSTS)
def test_a_certificate_names_its_host_and_the_loopback(host: str, credentials: Credentials) -> None:
    names = parsed(credentials.issue(host).chain_pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    known = {str(name.value) for name in names.value}
    assert known == {host, "localhost", "127.0.0.1", "::1"}
    addresses = names.value.get_values_for_type(x509.IPAddress)
    assert (ipaddress.ip_address(host) in addresses) if host[0] in "1f" else host not in map(str, addresses)


def test_the_root_signs_what_it_issued_and_no_other_root_does(credentials: Credentials) -> None:
    certificate = parsed(credentials.issue("10.0.0.5").chain_pem)
    certificate.verify_directly_issued_by(parsed(credentials.root))
    with pytest.raises(Exception, match=r".*"):
        certificate.verify_directly_issued_by(parsed(Credentials().root))


def test_certificates_hold_for_ten_years_and_since_yesterday(credentials: Credentials) -> None:
    now = dt.datetime.now(dt.UTC)
    for certificate in (parsed(credentials.root), parsed(credentials.issue("10.0.0.5").chain_pem)):
        assert certificate.not_valid_before_utc <= now - dt.timedelta(hours=23)
        assert certificate.not_valid_after_utc >= now.replace(month=1, day=1, year=now.year + 10)


def test_keys_and_serial_numbers_are_new_each_time(credentials: Credentials) -> None:
    issued = [credentials.issue("10.0.0.5") for _ in range(20)]
    assert len({certificate.key_pem for certificate in issued}) == 20
    assert len({parsed(certificate.chain_pem).serial_number for certificate in issued}) == 20
    key = parsed(credentials.root).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_only_the_root_may_sign(credentials: Credentials) -> None:
    for pem, may in [(credentials.root, True), (credentials.issue("10.0.0.5").chain_pem, False)]:
        assert parsed(pem).extensions.get_extension_for_class(x509.BasicConstraints).value.ca is may
        assert parsed(pem).extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is may


def test_the_key_of_the_authority_stays_where_it_was_made(credentials: Credentials) -> None:
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(credentials)
    certificate = credentials.issue("10.0.0.5")
    sent = pickle.dumps(certificate)
    assert pickle.loads(sent) == certificate
    assert sent.count(b"PRIVATE KEY") == 2  # the begin and the end of the host's own key


def test_private_keys_are_not_shown_and_not_written(
    credentials: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    certificate = credentials.issue("10.0.0.5")
    secret = certificate.key_pem.splitlines()[1]
    for shown in (repr(certificate), str(certificate), repr(asdict(certificate)), repr(credentials), str(credentials)):
        assert secret not in shown
        assert "PRIVATE" not in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["größe.example", ""])
def test_a_host_that_no_certificate_can_name_is_refused(host: str, credentials: Credentials) -> None:
    with pytest.raises(TopologyError, match="neither an IP address nor a DNS name"):
        credentials.issue(host)
