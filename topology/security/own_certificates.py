"""The certificates of a topology by the user's setting: made here, or the user's own, checked before anything starts.

The checks are those that would otherwise show as a failed handshake in some other process: each says what is wrong.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from topology.graph.errors import TopologyError
from topology.security.certificates import Credentials, IssuesCertificates, SigningKey, general_name, now, pem_of
from topology.security.tls import Certificate, Tls


def credentials(tls: Tls | bool | None = None) -> IssuesCertificates:
    """Return what issues the certificates of a topology: a new authority, or the user's own certificates, checked."""
    if tls is None or tls is True:
        return Credentials()
    if not isinstance(tls, Tls):
        raise TopologyError(
            f"tls={tls!r}: give None (encrypt what leaves this machine), True (encrypt everything) or Tls(...), your "
            f"own certificates; encryption cannot be switched off"
        )
    tls = tls.read()
    chain = _certificates("certificate", str(tls.certificate))
    key = _private_key(str(tls.key))
    own = chain[0]
    if _public_bytes(own.public_key()) != _public_bytes(key.public_key()):
        raise TopologyError(
            f"tls: the key does not fit the certificate of {own.subject.rfc4514_string()!r}: they must be a pair"
        )
    root = None if tls.root is None else str(tls.root)
    if root is None and own.issuer == own.subject:
        root = pem_of(own)
    for certificate in chain:
        _check_dates(certificate)
    if root is not None:
        _check_dates(_root_of(chain, _certificates("root certificate", root)))
    if _may_sign(own):
        return Credentials.signed_by(chain, key, root)
    return GivenCertificate(Certificate(str(tls.certificate), str(tls.key), root), own)


class GivenCertificate:
    """One certificate of the user's for all hosts."""

    def __init__(self, certificate: Certificate, own: x509.Certificate) -> None:
        self._certificate = certificate
        self._own = own
        self.root = certificate.root

    def issue(self, host: str) -> Certificate:
        """Return the certificate; raises a `TopologyError` if clients that connect to `host` would not accept it."""
        if not _covers(self._own, host):
            named = ", ".join(str(name.value) for name in _alternative_names(self._own)) or "no address"
            raise TopologyError(
                f"tls: the certificate does not hold for {host}, where a worker listens; it names {named}: use one "
                f"that names all nodes, or give an authority's certificate and key, and each node gets one of its own"
            )
        return self._certificate


def _certificates(what: str, pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        raise TopologyError(f"tls: the {what} cannot be read: it must be one or more certificates as PEM") from None


def _private_key(pem: str) -> SigningKey:
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except TypeError:
        raise TopologyError("tls: the key has a passphrase: give one without") from None
    except ValueError:
        raise TopologyError("tls: the key cannot be read: it must be a private key as PEM") from None
    if not isinstance(key, SigningKey):
        raise TopologyError("tls: the key is of a kind that TLS cannot use: give an EC, RSA or Ed25519 key")
    return key


def _check_dates(certificate: x509.Certificate) -> None:
    name = certificate.subject.rfc4514_string()
    if certificate.not_valid_after_utc < now():
        raise TopologyError(f"tls: the certificate of {name!r} expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    if certificate.not_valid_before_utc > now():
        raise TopologyError(
            f"tls: the certificate of {name!r} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d}"
        )


def _root_of(chain: list[x509.Certificate], roots: list[x509.Certificate]) -> x509.Certificate:
    """Follow the issuers from the certificate to one of the roots."""
    last = chain[0]
    for _ in chain:
        for root in roots:
            if root == last or _signs(root, last):
                return root
        last = next((certificate for certificate in chain if _signs(certificate, last)), last)
    raise TopologyError(
        f"tls: the root certificate does not sign {last.subject.rfc4514_string()!r}: its issuer is "
        f"{last.issuer.rfc4514_string()!r}; give that one's certificate as root, or add it to the chain"
    )


def _signs(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except x509.ExtensionNotFound:
        return False


def _alternative_names(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _covers(certificate: x509.Certificate, host: str) -> bool:
    wanted = general_name(host)
    for name in _alternative_names(certificate):
        if name == wanted:
            return True
        if isinstance(name, x509.DNSName) and isinstance(wanted, x509.DNSName):
            pattern, text = name.value.lower(), wanted.value.lower()
            if pattern == text or (pattern.startswith("*.") and text.partition(".")[2] == pattern[2:]):
                return True
    return False


def _public_bytes(key: object) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return encoded
