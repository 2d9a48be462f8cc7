"""A cluster of Spark for the tests: two executors, each a process of its own, on the loopback alone."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tacit.engines.cluster import fitting
from tacit.errors import InvalidData

JAVA = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")

_places: dict[str, Path] = {}


def spark() -> Any:
    """The session; started once, stopped with the tests, and its folder with it."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if JAVA is None:
        pytest.skip("there is no Java")
    try:
        fitting()
    except InvalidData as refused:  # as with the oldest pyarrow that tacit takes
        pytest.skip(str(refused))
    return _started()


@lru_cache(1)
def _started() -> Any:
    import pyspark

    folder = Path(tempfile.mkdtemp(prefix="tacit-spark-"))
    installed, home = Path(pyspark.__file__).parent, folder / "home"
    home.mkdir()
    for part in ("bin", "jars", "sbin"):  # executors work in a folder of Spark's home
        (home / part).symlink_to(installed / part)
    os.environ |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",  # what a user's own session says by default
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.python.worker.faulthandler.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",  # a time without a zone is in the day that it names
        "spark.sql.session.timeZone": "Asia/Tokyo",  # which has no say in what day a time with one is in
    }
    builder = pyspark.sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests of tacit")
    for key, value in settings.items():
        builder = builder.config(key, value)
    _places["log"] = folder / "driver.log"
    with said_to(_places["log"]):
        session = builder.getOrCreate()

    def stopped() -> None:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stopped)
    return session


@contextmanager
def said_to(path: Path) -> Iterator[None]:
    """What a process that is started meanwhile will ever print goes to this file."""
    held = os.dup(1), os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for at, was in enumerate(held, 1):
            os.dup2(was, at)
            os.close(was)


def driver_log() -> str:
    """What the driver's Java has printed so far."""
    return _places["log"].read_text(errors="replace")


def executors(session: Any) -> list[int]:
    """The processes of this session's executors, and of nobody else's."""
    ours = session.sparkContext.applicationId.encode()
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:  # it has gone
            continue
        if words[0].endswith(b"java") and ours in words and b"--executor-id" in words:
            found.append(int(place.parent.name))
    return sorted(found)


def lose_an_executor(session: Any) -> int:
    """Kills one of the executors, which the cluster replaces in its time."""
    process = executors(session)[0]
    os.kill(process, signal.SIGKILL)
    return process


def wait_for(what: Any, seconds: float = 60) -> None:
    """Until it is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
