"""Makes certificates: an authority per topology, and from it a certificate for each host that listens.

Whoever starts a topology (its controller) makes `Credentials`: the key of the authority stays there. Each worker gets a
`Certificate` for the address of its own node, and clients get the root. Certificates are valid for ten years, because
the tokens, not the certificates, end with a topology; they begin a day ago, because the clocks of machines differ.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from typing import NoReturn, Protocol

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from topology.graph.errors import TopologyError
from topology.security.tls import Certificate

VALID_BEFORE = dt.timedelta(days=1)
VALID_FOR = dt.timedelta(days=3653)

_DNS_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
_LOCAL = ("localhost", "127.0.0.1", "::1")

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


class IssuesCertificates(Protocol):
    """What a controller needs: the root for clients, and a certificate for each host that listens."""

    @property
    def root(self) -> str | None:
        """What clients have to trust, as PEM; None: what their system trusts."""
        ...

    def issue(self, host: str) -> Certificate:
        """Return the certificate for a host: an IP address or a DNS name."""
        ...


class Credentials:
    """A certificate authority. It cannot be pickled: its key stays in the process that made it."""

    def __init__(self) -> None:
        self._key: SigningKey = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _self_signed(self._key)
        self._chain = ""
        self.root: str | None = pem_of(self._certificate)

    @classmethod
    def signed_by(cls, chain: list[x509.Certificate], key: SigningKey, root: str | None) -> Credentials:
        """Return an authority whose certificate is the first of `chain`."""
        made = cls.__new__(cls)
        made._key, made._certificate, made.root = key, chain[0], root
        made._chain = "".join(pem_of(certificate) for certificate in chain if certificate.issuer != certificate.subject)
        return made

    def issue(self, host: str) -> Certificate:
        """Make a key and a certificate for a host, which hold for connections from the same machine too."""
        key = ec.generate_private_key(ec.SECP256R1())
        begin = max(now() - VALID_BEFORE, self._certificate.not_valid_before_utc)
        end = min(now() + VALID_FOR, self._certificate.not_valid_after_utc)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(f"interlace {host}"[:64]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(usage, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, _hash_for(self._key))
        )
        chain = pem_of(certificate) + self._chain
        return Certificate(chain, _key_pem(key), self.root, identifies_clients=self.root is not None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the key of a certificate authority stays in its process: issue a certificate and send that")

    def __repr__(self) -> str:
        return f"Credentials({self._certificate.subject.rfc4514_string()!r})"


def _self_signed(key: SigningKey) -> x509.Certificate:
    name = _name("interlace topology")
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - VALID_BEFORE)
        .not_valid_after(now() + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, _hash_for(key))
    )


def _names(host: str) -> list[x509.GeneralName]:
    return [general_name(name) for name in dict.fromkeys([host, *_LOCAL])]


def general_name(host: str) -> x509.GeneralName:
    """Return a host as certificates name it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not _DNS_NAME.fullmatch(host):
            raise TopologyError(f"tls: {host!r} is neither an IP address nor a DNS name") from None
        return x509.DNSName(host)


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _hash_for(key: SigningKey) -> hashes.SHA256 | None:
    return hashes.SHA256() if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) else None


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def pem_of(certificate: x509.Certificate) -> str:
    """Return a certificate as PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def now() -> dt.datetime:
    """Return the time, by which certificates are valid or not."""
    return dt.datetime.now(dt.UTC)
