"""The S3 server that the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3_server import s3_server


@pytest.fixture(scope="session")
def s3_uri() -> Iterator[str]:
    with s3_server() as uri:
        yield uri
