"""With Ray's own TLS, as the documentation advises, neither rows nor tokens nor keys can be read on the wire."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import secrets
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.cluster import join_program
from tests.cluster.conftest import MakeNetwork
from tests.cluster.ray_nodes import start_nodes
from tests.cluster.waiting import Recording

LONG = 300
TOKEN = secrets.token_hex(32)


def encrypted_ray(addresses: list[str], folder: Path) -> dict[str, str]:
    """Ray's settings for one certificate that all nodes share: each is a server and a client of the others."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nodes of a test")])
    now = dt.datetime.now(dt.UTC)
    hosts = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", *addresses)]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), *hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "certificate.pem", folder / "key.pem"
    chain.write_bytes(certificate.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(chain),
        "RAY_TLS_SERVER_KEY": str(private),
        "RAY_TLS_CA_CERT": str(chain),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
    }


@pytest.mark.slow  # Ray's own encryption, not ours; a minute
def test_no_secret_crosses_in_clear(machines: MakeNetwork, tmp_path: Path) -> None:
    network = machines(2)
    settings = encrypted_ray([machine.address for machine in network.machines], tmp_path)
    for stream, seed in (("R", 1), ("S", 2)):
        table = join_program.rows(seed, 500)
        with pa.ipc.new_file(tmp_path / stream, table.schema) as file:
            file.write_table(table)
    recording = Recording(network, tmp_path)
    start_nodes(network.machines, tmp_path, lambda _: settings)
    program = network.machines[0].start(
        "python", join_program.__file__, "collect", tmp_path, tmp_path / "results",
        output=tmp_path / "output", settings=settings,
    )  # fmt: skip
    assert program.wait(LONG) == 0, program.output
    packets = recording.end()
    facts = json.loads(next(line for line in program.output.splitlines() if line.startswith("{")))
    assert len(facts["nodes"]) == 2
    assert len(packets) > 100_000
    for secret in [*facts["tokens"], TOKEN, "PRIVATE KEY", "canary"]:
        assert secret.encode() not in packets
