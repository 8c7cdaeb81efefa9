"""The user's code reaches a process that cannot import it, with the values it refers to."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import cloudpickle
import pytest

from topology.graph.by_value import dumps, travels_by_value

FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": """
        import enum
        import functools
        import threading

        import numba
        import pyarrow.compute as pc

        from operators import function
        from shop import rebates

        LIMIT = 3
        lock = threading.Lock()

        class Colour(enum.Enum):
            RED = 1

        @functools.cache
        def steps(n):
            return 0 if n == 0 else steps(n - 1) + LIMIT

        @numba.njit
        def plus_one(n):
            return n + 1

        @function
        def near(left, right):
            return pc.less(pc.abs(pc.subtract(left, right)), LIMIT)

        def locked():
            with lock:
                return LIMIT

        def total(n):
            return rebates.halved(n) + steps(2) + plus_one(0), Colour(1) is Colour.RED
        """,
    "shop/rebates.py": """
        from shop import prices

        def halved(n):
            return n // 2 + prices.LIMIT

        def both(n):
            return prices.total(n)
        """,
}

CHECKS = """
    import pickle, sys
    import pyarrow as pa

    sent = pickle.load(sys.stdin.buffer)
    left, right = pa.array([1, 5]), pa.array([2, 9])
    assert "shop" not in sys.modules
    assert sent["near"].compute(left, right).to_pylist() == [True, False], sent["near"]
    assert sent["prices"].near is sent["near"]
    assert sent["lambda"](10) == sent["total"](10) == sent["prices"].rebates.both(10) == (15, True)
    assert sent["red"] is sent["prices"].Colour.RED
    assert sent["changed"]() == 7
    refused = {"lock": "'shop.prices.lock' could not be sent", "locked": "lock", "nothing": "no attribute"}
    for name, said in refused.items():
        try:
            getattr(sent["prices"], name)
        except AttributeError as error:
            assert said in str(error), error
        else:
            raise AssertionError(f"{name} was sent")
    print("all is here")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The modules of a user's project, imported from a folder."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("shop", "shop.prices", "shop.rebates"):
        sys.modules.pop(name, None)


def test_code_of_a_project_reaches_a_process_without_its_files(project: Path) -> None:
    import shop.prices  # type: ignore[import-not-found]
    import shop.rebates  # type: ignore[import-not-found]

    amount = 3

    def changed() -> int:
        return amount + 4

    sent = {
        "near": shop.prices.near,
        "prices": shop.prices,
        "total": shop.prices.total,
        "lambda": lambda n: shop.rebates.both(n + 0),
        "red": shop.prices.Colour.RED,
        "changed": changed,
    }
    registered = cloudpickle.list_registry_pickle_by_value()
    data = dumps(sent)
    assert cloudpickle.list_registry_pickle_by_value() == registered
    receiver = subprocess.run(
        [sys.executable, "-c", dedent(CHECKS)], input=data, capture_output=True, check=False, timeout=300
    )
    assert receiver.returncode == 0, receiver.stderr.decode()
    assert receiver.stdout.decode().strip() == "all is here"


def test_code_that_holds_a_lock_cannot_be_sent(project: Path) -> None:
    from shop.prices import locked

    with pytest.raises(TypeError, match="lock"):
        dumps(locked)
    assert "shop.prices" not in cloudpickle.list_registry_pickle_by_value()


def test_what_every_machine_has_is_sent_by_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json.decoder

    import numpy.ma
    import shop.prices

    import operators.query.functions
    import topology.graph.by_value as ours

    for module in (json.decoder, numpy.ma, pytest, sys, operators.query.functions, ours):
        assert not travels_by_value(module.__name__)
    for name in ("__main__", "shop", "shop.prices", __name__):
        assert travels_by_value(name)
    linked = project / "lib/site-packages/linked.py"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(project / "shop/prices.py")
    monkeypatch.setattr(shop.prices, "__file__", str(linked))
    assert not travels_by_value("shop.prices")
    assert not travels_by_value("never.imported")
    assert not travels_by_value(None)
    assert len(dumps(ours.dumps)) < 100
    assert shop.prices.LIMIT == 3
