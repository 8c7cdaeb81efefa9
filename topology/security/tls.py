"""What TLS needs: the certificate that a port shows, and a user's own certificates as a setting.

Light on purpose: a worker gets its `Certificate` and imports no cryptography. `topology/flight/certificates.py` makes
and checks certificates.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from topology.graph.errors import TopologyError
from topology.handle.endpoint import Secret

_PEM_BEGINS = "-----BEGIN"


@dataclass(frozen=True)
class Certificate:
    """The certificate of one port and its private key, as PEM.

    chain_pem: the port's own certificate, followed by those between it and the root.
    key_pem:   its private key; kept in memory only, and masked in a repr.
    root:      what clients have to trust; None: what their system trusts.
    identifies_clients: whether it also proves who a client is: those that our own authority issues do.
    """

    chain_pem: str
    key_pem: str
    root: str | None = None
    identifies_clients: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key_pem", Secret(self.key_pem))


@dataclass(frozen=True)
class Tls:
    """Certificates of your own, for `RayRuntime(tls=Tls(...))`. Each is a path, or the text of a PEM file.

    certificate: the certificate of all workers, with its chain; it must name the address of every node. Or that of an
                 authority (a certificate that may sign others): then each worker gets one of its own, signed by it.
    key:         the private key of `certificate`, without a passphrase.
    root:        what clients have to trust. None: the certificate itself if it is its own issuer, otherwise the roots
                 that the clients' system trusts.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    root: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.key, str) and _PEM_BEGINS in self.key:
            object.__setattr__(self, "key", Secret(self.key))

    def read(self) -> Self:
        """Return the same with the contents of the files, for processes that do not see them."""
        root = None if self.root is None else _content("root certificate", self.root)
        return type(self)(_content("certificate", self.certificate), _content("key", self.key), root)


def _content(what: str, given: str | os.PathLike[str]) -> str:
    if isinstance(given, str) and _PEM_BEGINS in given:
        return given
    try:
        text = Path(given).read_text("ascii")
    except OSError as error:
        raise TopologyError(f"tls: the {what} file {os.fspath(given)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        text = ""
    if _PEM_BEGINS not in text:
        raise TopologyError(f"tls: the {what} file {os.fspath(given)!r} is not in PEM format") from None
    return text
