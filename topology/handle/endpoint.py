"""Where another process reaches a topology: an address, the certificate to trust there, and a token.

The token is a secret. It is no field of the dataclass, so it is in no repr, no `asdict` and no URI; it still takes part
in comparisons and travels in a pickle, because an endpoint without it is of no use elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, quote, urlsplit

from topology.graph.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = "grpc"
ENCRYPTED = "grpc+tls"
LOOPBACK = "127.0.0.1"

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.S)
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[A-Za-z0-9._-]+):\d+", re.A)
_DER_SEQUENCE = 0x30
_ROOT = "root"
_COLUMNS = "columns"
_NEEDED = "needed"
_MAX_COLUMNS_BYTES = 4 * 1024 * 1024


class Secret(str):
    """A text that containers, tracebacks with values and debuggers do not show; `str()` gives it to those who ask."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Endpoint:
    """Where other processes reach one stream over Arrow Flight, and the token that lets them in.

    location: the address, `grpc://host:port`, or `grpc+tls://host:port` where everything is encrypted.
    root:     the certificates that sign the server's, as PEM; None: those that the system trusts.
    schema:   of a sink: the columns of its rows, if they were known when this was made; for readers that must name
              them before any row has come.
    needed:   of an input: the names of the columns that are read there, for writers that can leave out the others;
              None: all are read, or nobody knows.
    """

    location: str
    root: str | None
    schema: pa.Schema | None
    needed: tuple[str, ...] | None

    def __init__(
        self,
        location: str,
        token: str,
        root: str | None = None,
        schema: pa.Schema | None = None,
        needed: tuple[str, ...] | None = None,
    ) -> None:
        _check_location(location)
        if root is not None:
            if not location.startswith(f"{ENCRYPTED}://"):
                raise InputError(f"{location} has a root certificate, but is not encrypted: use {ENCRYPTED}://")
            _bodies(root)
        object.__setattr__(self, "location", location)
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "needed", needed)
        object.__setattr__(self, "_token", Secret(token))

    @property
    def token(self) -> str:
        """The secret that calls present. Its repr is masked; `str(endpoint.token)` is the text itself."""
        token: Secret = self.__dict__["_token"]
        return token

    @property
    def uri(self) -> str:
        """All but the token in one line of text; with the token it is enough to connect."""
        parts = [] if self.root is None else [f"{_ROOT}={_encoded(der)}" for der in _bodies(self.root)]
        if self.schema is not None:
            parts.append(f"{_COLUMNS}={_encoded(zlib.compress(bytes(self.schema.serialize()), 9))}")
        parts += [f"{_NEEDED}={quote(name, safe='')}" for name in self.needed or ()]
        return f"{self.location}/?{'&'.join(parts)}" if parts else self.location

    def with_schema(self, schema: pa.Schema) -> Self:
        """Return the same endpoint with the columns of its rows."""
        return type(self)(self.location, self.token, self.root, schema, self.needed)

    def with_needed(self, names: Sequence[str]) -> Self:
        """Return the same endpoint with the names of the columns that are read there."""
        return type(self)(self.location, self.token, self.root, self.schema, tuple(names))

    @classmethod
    def from_uri(cls, uri: str, token: str) -> Self:
        """Return the endpoint whose `uri` this is; raises an `InputError` if it is not one."""
        try:
            parts = urlsplit(uri)
            given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            raise InputError(f"'{uri[:80]}' is not the URI of an endpoint") from None
        roots = [value for name, value in given if name == _ROOT]
        columns = [value for name, value in given if name == _COLUMNS]
        needed = tuple(value for name, value in given if name == _NEEDED)
        others = len(given) - len(roots) - len(columns) - len(needed)
        if parts.path not in ("", "/") or parts.fragment or len(columns) > 1 or others:
            raise InputError(
                f"'{uri[:40]}' is not the URI of an endpoint: it has parts other than address, root certificates "
                f"and columns"
            )
        root = "".join(map(_pem, roots)) or None
        schema = _schema(columns[0]) if columns else None
        return cls(f"{parts.scheme}://{parts.netloc}", token, root, schema, needed or None)

    def __repr__(self) -> str:
        root = "" if self.root is None else ", root=..."
        return f"Endpoint({self.location!r}, token=...{root})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Endpoint):
            return NotImplemented
        return (self.location, self.root, self.token) == (other.location, other.root, other.token)

    def __hash__(self) -> int:
        return hash((self.location, self.root, self.token))


def location_of(scheme: str, host: str, port: int) -> str:
    """Return the location of a port; IPv6 addresses get their brackets."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _check_location(location: str) -> None:
    try:
        parts = urlsplit(location)
        complete = parts.scheme in (PLAIN, ENCRYPTED) and bool(parts.hostname) and parts.port is not None
        bare = location == f"{parts.scheme}://{parts.netloc}" and _HOST_AND_PORT.fullmatch(parts.netloc) is not None
    except ValueError:
        complete = bare = False
    if not (complete and bare):
        raise InputError(
            f"'{location[:80]}' is not the location of an endpoint: it has the form {PLAIN}://host:port or "
            f"{ENCRYPTED}://host:port"
        )


def _bodies(pem: str) -> list[bytes]:
    """The certificates in a PEM text, each as DER."""
    try:
        found = [base64.b64decode("".join(body.split()), validate=True) for body in _CERTIFICATE.findall(pem)]
    except binascii.Error:
        found = []
    if not found or any(der[:1] != bytes([_DER_SEQUENCE]) for der in found):
        raise InputError("the root certificate is not a certificate in PEM format")
    return found


def _encoded(content: bytes) -> str:
    return quote(base64.urlsafe_b64encode(content).decode().rstrip("="))


def _decoded(encoded: str) -> bytes:
    """What `_encoded` wrote; `ValueError` if it did not write this."""
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)


def _schema(encoded: str) -> pa.Schema:
    import pyarrow as pa  # the controller of a topology has endpoints, and does without Arrow

    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(_decoded(encoded), _MAX_COLUMNS_BYTES)
        return pa.ipc.read_schema(pa.py_buffer(content))
    except (ValueError, zlib.error, pa.ArrowException, OSError):
        raise InputError("the columns in the endpoint's URI are damaged") from None


def _pem(encoded: str) -> str:
    try:
        der = _decoded(encoded)
    except ValueError:
        raise InputError("the root certificate in the endpoint's URI is damaged") from None
    if der[:1] != bytes([_DER_SEQUENCE]):
        raise InputError("the root certificate in the endpoint's URI is damaged")
    text = base64.b64encode(der).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])
