"""Starts a Spark cluster of a master and two workers on the loopback address, adds traces to a dataset on it, kills a
worker in the middle, and compares the dataset with one that a single process has made.

usage: spark_cluster.py SPARK_INGEST TRACEBRIDGE EXPECTED_DATASET INPUT...
Ends everything that it has started. Prints what was found; fails where that is wrong."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyspark

DEADLINE_S = 300
# As many tasks have begun when the worker is killed; the later ones wait for it.
TASKS_BEFORE_KILL = 4
TASKS = 20
# The code of the executors: it notes that it has begun, and from the TASKS_BEFORE_KILL-th on waits for the kill.
PROGRAM = """#!/bin/sh
mktemp "{state}/begun.XXXXXX" >/dev/null
if [ "$(ls "{state}" | wc -l)" -ge {before} ]; then
    while [ ! -e "{killed}" ] && [ -d "{state}" ]; do sleep 0.05; done
fi
exec "{binary}" "$@"
"""
TABLES = """trace source tag process thread slice sched thread_state counter method_profile method_call launch event
rejected""".split()


class Cluster:
    """The processes of a cluster, each the leader of a group of its own, with whatever it starts."""

    def __init__(self, directory, deadline):
        self.directory, self.deadline, self.started = directory, deadline, []

    def java(self, name, main, *arguments):
        """Starts a Java program of Spark. Returns the process and the file of what it says."""
        home = Path(pyspark.__file__).parent
        log = self.directory / f"{name}.log"
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["SPARK_LOCAL_DIRS"] = str(self.directory / "local")
        command = [home / "bin/spark-class", f"org.apache.spark.deploy.{main}", "--host", "127.0.0.1"]
        process = subprocess.Popen(
            [*command, *arguments], env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )
        self.started.append(process)
        return process, log

    def wait(self, what, ready):
        """Waits until `ready` returns something, and returns that."""
        while not (found := ready()):
            if time.monotonic() > self.deadline:
                sys.exit(f"waited too long for {what}\n{self.said()}")
            time.sleep(0.05)
        return found

    def said(self):
        """The last words of every process."""
        logs = [*self.directory.glob("*.log"), *self.directory.glob("work*/*/*/stderr")]
        return "".join(f"{log}:\n{log.read_text(errors='replace')[-3000:]}\n" for log in logs)

    def start(self):
        """Starts the cluster. Returns the master's URL and the workers."""
        _, log = self.java("master", "master.Master", "--port", "0", "--webui-port", "0")
        master = self.wait("the master", lambda: re.search(r"spark://127\.0\.0\.1:\d+", log.read_text()))[0]
        workers = []
        for number in range(2):
            arguments = ["--cores", "1", "--memory", "1g", "--port", "0", "--webui-port", "0"]
            arguments += ["--work-dir", str(self.directory / f"work{number}"), master]
            worker, log = self.java(f"worker{number}", "worker.Worker", *arguments)
            self.wait("a worker", lambda: "Successfully registered with master" in log.read_text())
            workers.append(worker)
        return master, workers

    def end(self):
        for process in self.started:
            kill(process)


def kill(process):
    """Kills a process and what it has started. Python's workers have groups of their own."""
    for pid in [*descendants(process.pid), process.pid]:
        try:
            os.killpg(os.getpgid(int(pid)), signal.SIGKILL)
        except ProcessLookupError:
            # It has ended meanwhile.
            pass
    process.wait()


def descendants(pid):
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return children + [grandchild for child in children for grandchild in descendants(child)]


def differences(one, other):
    """The tables in which two datasets have different rows, with the numbers of these rows."""
    connection, found = duckdb.connect(), []
    for table in TABLES:
        rows = [f"SELECT * FROM read_parquet('{place}/day=*/part=*/{table}.parquet', hive_partitioning = false)" for place in (one, other)]
        count = lambda a, b: connection.execute(f"SELECT count(*) FROM ({a} EXCEPT ALL {b})").fetchone()[0]
        if (more := (count(*rows), count(*rows[::-1]))) != (0, 0):
            found.append(f"{table}: {more[0]} rows only in {one}, {more[1]} only in {other}")
    return found


def main():
    # What has been started ends with this process, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    ingest, binary, expected, *inputs = sys.argv[1:]
    deadline = time.monotonic() + DEADLINE_S
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        directory = Path(name)
        state, killed, program = directory / "begun", directory / "killed", directory / "tracebridge"
        state.mkdir()
        program.write_text(PROGRAM.format(state=state, killed=killed, before=TASKS_BEFORE_KILL, binary=binary))
        program.chmod(0o755)
        cluster = Cluster(directory, deadline)
        try:
            master, workers = cluster.start()
            (directory / "list").write_text("\n".join(inputs))
            dataset = directory / "set"
            command = [ingest, "--master", master, "--binary", program, "--list", directory / "list", "--tasks", str(TASKS)]
            log = directory / "ingest.log"
            environment = os.environ | {"TRACEBRIDGE_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
            job = subprocess.Popen(
                [*command, dataset], env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT, start_new_session=True
            )
            cluster.started.append(job)
            begun = lambda: job.poll() is not None or len(list(state.iterdir())) > TASKS_BEFORE_KILL
            cluster.wait("the tasks", begun)
            if job.poll() is not None:
                sys.exit(f"the job ended before a worker was killed\n{cluster.said()}")
            staged = len(list(directory.glob("set.staging-*/*")))
            kill(workers[1])
            killed.touch()
            status = job.wait(max(1, deadline - time.monotonic()))
            if status != 0:
                sys.exit(f"spark-ingest ended with {status}\n{cluster.said()}")
            print(f"datasets of tasks when the worker was killed: {staged}; tasks begun: {len(list(state.iterdir()))}")
            left = [path.name for path in directory.glob("set.staging-*")]
            found = differences(expected, dataset) + [f"left: {path}" for path in left]
            check = subprocess.run([binary, "dataset", "check", dataset], capture_output=True, text=True)
            print(check.stdout, end="")
            if found or check.returncode != 0:
                sys.exit("\n".join(found) + check.stderr)
        finally:
            cluster.end()


main()
