"""Jobs of the background compiler are done one by one, and nobody waits for them who need not."""

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

from indexes.kernels.background import BackgroundCompiler

REPOSITORY = Path(__file__).parents[3]


def test_jobs_are_done_in_the_order_of_their_requests() -> None:
    compiler, done, begin = BackgroundCompiler(), list[str](), threading.Event()

    def job(name: str) -> bool:
        begin.wait()
        done.append(name)
        return True

    for name in "abca":
        compiler.request(name, partial(job, name))
    assert compiler.busy
    begin.set()
    compiler.wait()
    assert done == ["a", "b", "c"]
    assert not compiler.busy


def test_a_job_that_another_process_does_is_asked_again_behind_the_others() -> None:
    compiler, asked, begin = BackgroundCompiler(), list[str](), threading.Event()

    def elsewhere() -> bool:
        begin.wait()
        asked.append("elsewhere")
        return len(asked) > 2

    def here() -> bool:
        asked.append("here")
        return True

    compiler.request("elsewhere", elsewhere)
    compiler.request("here", here)
    begin.set()
    compiler.wait()
    assert asked == ["elsewhere", "here", "elsewhere"]


def test_a_job_that_fails_is_noted_and_the_next_is_done() -> None:
    compiler, done = BackgroundCompiler(), list[int]()

    def good() -> bool:
        done.append(1)
        return True

    compiler.request("bad", lambda: 1 // 0 > 0)
    compiler.request("good", good)
    compiler.wait()
    assert compiler.failed("bad")
    assert not compiler.failed("good")
    assert done == [1]


def test_the_end_waits_for_the_job_under_way_and_drops_the_others() -> None:
    compiler, done, started, begin = BackgroundCompiler(), list[int](), threading.Event(), threading.Event()

    def job() -> bool:
        started.set()
        begin.wait()
        done.append(1)
        return True

    compiler.request("under way", job)
    compiler.request("dropped", job)
    started.wait()
    end = threading.Thread(target=compiler.stop)
    end.start()
    while compiler.busy:
        end.join(0.01)
    assert end.is_alive()
    begin.set()
    end.join()
    assert done == [1]


FORK = """
import os, threading, time
from indexes.kernels.background import BackgroundCompiler

compiler, done, begun, started = BackgroundCompiler(), [], 0, threading.Event()

def job():
    global begun
    begun += 1
    started.set()
    time.sleep(0.3)
    done.append("before")
    return True

compiler.request("job", job)
compiler.request("another", job)
started.wait()
child = os.fork()
if child == 0:
    assert done and begun == len(done) and not compiler.busy
    compiler.request("job", lambda: done.append("in the child") is None)
    compiler.wait()
    os._exit(0 if done[-1] == "in the child" else 1)
assert os.waitpid(child, 0)[1] == 0
compiler.wait()
assert done == ["before", "before"]
"""


def test_a_fork_waits_for_the_job_under_way_and_the_child_has_a_compiler_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=True)
