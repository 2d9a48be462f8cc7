"""The Spark that there is: its session, its silence and its files."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidData

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = {  # of a session that we begin; what is configured for the cluster as a whole stays
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",  # its pages show what a failed task has said to whoever reaches the port
    "spark.ui.showConsoleProgress": "false",
}
OURS = {  # of the session in which files and tables are read
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # what a folder is called is a text
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(2**16),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**26),
}
SPEAKERS = "org.apache.spark"
TELLING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # pyspark's own, which print values to stderr


def current() -> SparkSession:
    """The session that is there, or one as the usual environment and spark-defaults have it."""
    if find_spec("pyspark") is None:
        raise InvalidData("Spark needs the package pyspark: pip install 'tacit[spark]'. Nothing was read.")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise InvalidData("Spark needs Java 17 or later, which is not on the path. Nothing was read.")
    session = None
    with suppress(Exception):  # its words are those of a cluster's settings, and long
        builder = SparkSession.builder.appName("tacit")
        for key, value in QUIET.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    if session is None:
        raise InvalidData("Spark could not be started; `spark-submit --version` may say why. Nothing was read.")
    if str(session.sparkContext.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = sys.executable
    return session


def fitting() -> None:
    """Refuses a pyspark that cannot send Arrow batches to Python, before anything is read."""
    from pyspark.sql.pandas.utils import require_minimum_pandas_version, require_minimum_pyarrow_version

    why = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            require_minimum_pandas_version()
            require_minimum_pyarrow_version()
    except Exception as error:
        why = str(error).partition(". ")[0][:200]
    if why:
        raise InvalidData(f"this pyspark cannot count: {why}. Nothing was read.")


def of_our_own(session: SparkSession) -> SparkSession:
    """A session on the same cluster with the same settings, but for those that decide what a file means."""
    ours = session.newSession()
    for key, value in {**session.conf.getAll, **OURS}.items():
        with suppress(Exception):  # most belong to the cluster
            if key in OURS or (ours.conf.isModifiable(key) and ours.conf.get(key, None) != value):
                ours.conf.set(key, value)
    return ours


class _Silence:
    """How many passes are under way, and what brings the loggers back after the last."""

    def __init__(self) -> None:
        self.lock, self.depth = Lock(), 0
        self.restore: Callable[[], None] = lambda: None


_silence = _Silence()


@contextmanager
def quiet(session: SparkSession) -> Iterator[None]:
    """Nothing that Spark says meanwhile reaches the log of this process: it would quote the value that a task died of.

    After a pass that failed its loggers stay off: some of its tasks may still be dying. Executors on other machines
    write their own logs, which are as confidential as the table.
    """
    with _silence.lock:
        _silence.depth += 1
        if _silence.depth == 1:
            _silence.restore = _silenced(session.sparkContext._jvm)
    heard = {name: getLogger(name).disabled for name in TELLING}
    done = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in TELLING:
                getLogger(name).disabled = True
            yield
        done = True
    finally:
        for name, was in heard.items():
            getLogger(name).disabled = was
        with _silence.lock:
            _silence.depth -= 1
            if _silence.depth == 0 and done:
                _silence.restore()


def _silenced(jvm: Any) -> Callable[[], None]:
    """Switches Spark's loggers off; what switches them on again."""
    with suppress(Exception):  # another way of logging than Spark's own
        logging = jvm.org.apache.logging.log4j
        context = logging.LogManager.getContext(False)
        loggers = context.getConfiguration()
        held = loggers.getLoggers().get(SPEAKERS)
        before = None if held is None else held.getLevel()
        logging.core.config.Configurator.setLevel(SPEAKERS, logging.Level.OFF)

        def restore() -> None:
            with suppress(Exception):
                if before is not None:
                    logging.core.config.Configurator.setLevel(SPEAKERS, before)
                else:
                    loggers.removeLogger(SPEAKERS)
                    context.updateLoggers()

        return restore
    return lambda: None


class Stamps:
    """The files that a frame reads, on whatever file system, with their lengths and the times of their last writing."""

    def __init__(self, session: SparkSession, listed: Callable[[], list[str]]) -> None:
        self._session, self._listed = session, listed
        self._seen = self._look()

    def same(self) -> bool:
        """Whether they are what they were."""
        try:
            return self._look() == self._seen
        except Exception:  # one has gone
            return False

    def _look(self) -> list[str]:
        jvm: Any = self._session.sparkContext._jvm
        settings = self._session._jsparkSession.sessionState().newHadoopConf()
        found = []
        for file in sorted(self._listed()):
            path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
            seen = path.getFileSystem(settings).getFileStatus(path).toString()
            found.append(re.sub(r" ?access_time=\d+;", "", seen))  # reading moves it
        return found


def first_bytes(session: SparkSession, file: str, size: int) -> bytes:
    """How a file begins."""
    jvm: Any = session.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
    stream = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).open(path)
    try:
        return bytes(stream.readNBytes(size))
    finally:
        stream.close()


def footer(session: SparkSession, file: str) -> str:
    """The columns of a Parquet file and their types, as it says itself."""
    jvm: Any = session.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
    settings = session._jsparkSession.sessionState().newHadoopConf()
    parquet = jvm.org.apache.parquet.hadoop
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, settings))
    try:
        return str(reader.getFileMetaData().getSchema().toString())
    finally:
        reader.close()
