"""The directory of compiled kernels belongs to the user, and nobody else can put code there."""

import os
from pathlib import Path

import pytest

from indexes.kernels.cache_directory import VARIABLE, cache_directory


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr("indexes.kernels.cache_directory.gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()


def test_kernels_are_kept_in_the_cache_directory_of_the_user(tmp_path: Path) -> None:
    assert cache_directory() == tmp_path / "caches" / "interlace" / "kernels"
    assert (tmp_path / "caches" / "interlace" / "kernels").stat().st_mode & 0o777 == 0o700


def test_the_variable_names_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine" / "kernels"))
    assert cache_directory() == tmp_path / "mine" / "kernels"
    assert (tmp_path / "mine" / "kernels").is_dir()


def test_a_variable_that_names_no_directory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError, match=f"{VARIABLE}=.*file: .*name a directory"):
        cache_directory()


def test_without_a_home_to_write_to_kernels_are_kept_among_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("a file where the cache directory should be")
    assert cache_directory() == tmp_path / "temporary" / f"interlace-{os.geteuid()}" / "kernels"


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    for parent in ("caches/interlace", f"temporary/interlace-{os.geteuid()}"):
        (tmp_path / parent / "kernels").mkdir(parents=True)
        (tmp_path / parent).chmod(mode)
    assert cache_directory() is None


def test_a_link_to_the_directory_of_another_is_not_used(tmp_path: Path) -> None:
    """Anybody may put such a link among temporary files before we come."""
    (tmp_path / "caches").write_text("")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "temporary" / f"interlace-{os.geteuid()}").symlink_to(tmp_path / "theirs")
    assert cache_directory() is None
