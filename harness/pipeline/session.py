"""One Spark session: the Java that there is, quiet, on loopback where the master is this machine.

The output of a JVM goes to a log file, which is named in the error if it does not start. `spark://…`, `k8s://…` and
`yarn` masters work by plain Spark configuration: `conf` and SPARK_CONF_DIR are passed on, and the packages that workers
run are sent to them. They unpack each package to a folder of its own: a module finds the files beside it as in a
checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cluster.scratch import scratch
from harness.errors import HarnessError
from harness.pipeline import class_archive, java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MASTER = "local[*]"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a session that lives for seconds: a JVM that optimizes less starts working sooner."""
SHIPPED = ("checkers", "harness", "nodes")


class SparkError(HarnessError):
    """Spark did not start, or lost its master."""

    exit_code = 3


@contextmanager
def session(
    master: str = DEFAULT_MASTER,
    *,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    quick: bool = True,
    memory_mib: int | None = None,
) -> Iterator[SparkSession]:
    """The session, stopped at the end. `log`: where the JVM's output goes (default: a temporary file).

    Errors of Spark during the session are raised as SparkError.
    """
    jvm = java.find(os.environ)
    is_temporary = log is None
    log = log or Path(tempfile.gettempdir()) / f"qsync-spark-{os.getpid()}.log"
    with scratch("spark") as folder:
        words = f"-Djava.io.tmpdir={folder} {class_archive.options(jvm)}"
        settings = {**_settings(master, quick, memory_mib, words), **(conf or {})}
        with _environment(jvm, master), _stderr_to(log):
            spark = _started(master, settings, log)
        try:
            with in_one_line(SparkError, f"its own words are in {log}"):
                for package in () if master.startswith("local") else SHIPPED:
                    spark.sparkContext.addArchive(f"{packed(ROOT / package, folder)}#{package}")
                yield spark
        finally:
            with _stderr_to(log):
                _stop(spark)
    if is_temporary:
        log.unlink(missing_ok=True)  # of a session that broke it is kept


@contextmanager
def in_one_line(kind: type[HarnessError], then: str) -> Iterator[None]:
    """Reduce an error of Spark to one line, because its messages are pages of Java. This works only within a session:
    later the message cannot be read.

    `then`: the end of the message.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:  # the last one if the JVM is gone
        lines = [line.strip().removeprefix("Caused by: ") for line in str(error).strip().splitlines()]
        causes = [line for line in lines if _CAUSE.match(line)]
        why = (causes or lines or [type(error).__name__])[-1 if causes else 0]
        raise kind(f"Spark could not finish: {why[:300]}; {then}") from error


_CAUSE = re.compile(r"[\w.$]*(Error|Exception): (?!Traceback)")


def _started(master: str, settings: Mapping[str, str], log: Path) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("qsync").master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # py4j's, pyspark's and Python's own, all for "it did not start"
        kind = "" if isinstance(error, PySparkException) else f"{type(error).__name__}: "
        why = f"{kind}{str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
        raise SparkError(
            f"Spark did not start on {master}: {why[:300]}; its own words are in {log}"
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _stop(spark: SparkSession) -> None:
    """End the session and its JVM, which may have died: nothing of it is left for the next one."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    with suppress(Py4JError, ConnectionError):
        spark.stop()
    SparkContext._active_spark_context = None
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            _wait_for(process)
        SparkContext._gateway = None
        SparkContext._jvm = None


def _wait_for(process: Any) -> None:
    """Wait for the JVM; kill one that does not end: all its work is done. Writing a class archive may take longer."""
    try:
        process.wait(timeout=class_archive.TAKES_AT_MOST_S if class_archive.is_being_made() else 30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _settings(master: str, quick: bool, memory_mib: int | None, more: str) -> dict[str, str]:
    """`more`: options of the JVM."""
    log4j = Path(__file__).with_name("log4j2.properties")
    words = (f"-Dlog4j2.configurationFile={log4j.as_uri()}", QUICK_START if quick else "", more)
    java_options = " ".join(word for word in words if word)
    settings = {
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.memory": f"{memory_mib or _memory_mib()}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ui.explainMode": "simple",  # the page for which every plan is described is never opened
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else every column asks the JVM thrice for its caller
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # listing files is no work for workers
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # writing them is Spark's default
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.python.worker.reuse": "true",
        "spark.executorEnv.PYTHONHASHSEED": "0",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    return settings


def _memory_mib() -> int:
    """A quarter of the machine, between 1 and 4 GiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1024, min(4096, pages // 4 // 2**20))


@contextmanager
def _environment(jvm: java.Java, master: str) -> Iterator[None]:
    """Set the environment variables that Spark's scripts read. Workers run this Python. SPARK_HOME is unset, because
    it could start a different installation.
    """
    is_local = master.startswith("local")
    python = None if is_local else os.environ.get("PYSPARK_PYTHON")
    wanted = {"JAVA_HOME": str(jvm.home), "PYSPARK_PYTHON": python or sys.executable}
    if is_local and "SPARK_LOCAL_IP" not in os.environ:
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {name: os.environ.get(name) for name in (*wanted, "SPARK_HOME")}
    os.environ.update(wanted)
    os.environ.pop("SPARK_HOME", None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Point file descriptor 2 at the log, while a JVM starts that inherits it."""
    sys.stderr.flush()
    saved = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def packed(package: Path, folder: Path) -> Path:
    """A zip in `folder` of all files of a package, page.css and the like too; machine code is made where it runs."""
    path = folder / f"{package.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(package))
    return path
