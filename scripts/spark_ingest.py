"""Adds traces to a dataset on a Spark cluster. scripts/spark-ingest starts it and describes the arguments; the inputs
come on standard input, each with a NUL behind it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkFiles
from pyspark.errors import PySparkException
from spark_session import spark_session

# Exit statuses of `dataset add`: complete, and done, but some files were rejected.
COMPLETE, REJECTED = 0, 3
# A part of a dataset has at most so many traces.
PART_TRACES = 64
# So many of the tasks' datasets are named on one command line.
DATASETS_AT_ONCE = 500
# The last characters of what a program has said that an error repeats.
SAID = 2000


def stem(path):
    """The path without its ending: the files of one trace have one stem. What is packed has one ending more."""
    return re.sub(r"\.[^./]*$", "", re.sub(r"\.(gz|zst)$", "", path))


def add(binary, dataset, inputs, options, directory=None):
    """Runs `dataset add`. Returns its exit status and what it said."""
    command = [binary, "dataset", "add", dataset, *options, "--", *inputs]
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
    said = (done.stderr + done.stdout).decode(errors="replace")
    if done.returncode not in (COMPLETE, REJECTED):
        raise RuntimeError(f"tracebridge dataset add: status {done.returncode}: {said[-SAID:]}")
    return done.returncode, said


def fetched(files, directory):
    """The names of a task's files: those that Spark has read (path, time, bytes) are written to the directory."""
    for file in files:
        if isinstance(file, str):
            yield file
            continue
        url, seconds, content = file
        name = os.path.join(*[part for part in re.split("[/:]+", url) if part not in ("", ".", "..")])
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        # Where a trace does not tell the wall clock, this time says its day.
        os.utime(path, (seconds, seconds))
        yield name


def task(binary_name, staging, options):
    """What a task does: a dataset of its traces under a name that no other attempt has. Returns this name, the exit
    status, and what the program said. Whatever an attempt has written that Spark does not take is removed with the
    staging directory."""

    def run(groups):
        files = [file for _, group in groups for file in group]
        if not files:
            return
        dataset = os.path.join(staging, str(uuid.uuid4()))
        with tempfile.TemporaryDirectory() as directory:
            # A file of the executors has the name that the user gave; one that Spark read, its name below `directory`.
            is_local = isinstance(files[0], str)
            names = list(fetched(files, directory))
            status, said = add(SparkFiles.get(binary_name), dataset, names, options, None if is_local else directory)
        yield dataset, status, said

    return run


def stage(session, binary, staging, tasks, inputs, options):
    """Has the cluster write the rows of all inputs. Returns the results of the tasks."""
    context = session.sparkContext
    context.addFile(binary)
    run = task(os.path.basename(binary), staging, options)
    results = []
    urls = [path for path in inputs if "://" in path]
    paths = [os.path.abspath(path) for path in inputs if "://" not in path]
    groups = {}
    for path in paths:
        groups.setdefault(stem(path), []).append(path)
    usual = 4 * context.defaultParallelism
    count = lambda traces: tasks or min(traces, max(usual, -(-traces // PART_TRACES)))
    if groups:
        results += context.parallelize(list(groups.items()), count(len(groups))).mapPartitions(run).collect()
    if urls:
        read = session.read.format("binaryFile").load(urls)
        pairs = read.rdd.map(lambda row: (stem(row.path), (row.path, row.modificationTime.timestamp(), bytes(row.content))))
        results += pairs.groupByKey(count(len(urls))).mapPartitions(run).collect()
    return results


def main():
    master, binary, dataset, staging, tasks, *options = sys.argv[1:]
    inputs = list(dict.fromkeys(os.fsdecode(path) for path in sys.stdin.buffer.read().split(b"\0") if path))
    staging = os.path.abspath(staging or f"{dataset.rstrip('/')}.staging-{uuid.uuid4()}")
    if os.path.exists(staging):
        sys.exit(f"spark-ingest: {staging}: exists: name another staging directory, or remove it")
    session = spark_session("tracebridge ingest", master)
    try:
        os.makedirs(staging)
        results = stage(session, os.path.abspath(binary), staging, int(tasks), inputs, options)
        datasets = sorted(result[0] for result in results)
        rejected = any(result[1] == REJECTED for result in results)
        for line in sorted(line for result in results if result[1] == REJECTED for line in result[2].splitlines()):
            if line.startswith("tracebridge: "):
                print(line, file=sys.stderr)
        for first in range(0, len(datasets), DATASETS_AT_ONCE):
            _, said = add(binary, dataset, datasets[first : first + DATASETS_AT_ONCE], [])
            print(said, end="")
    except (PySparkException, Py4JJavaError, RuntimeError, OSError) as error:
        sys.exit(f"spark-ingest: {error}")
    finally:
        # Before the tasks that are still at work are gone, they may make new files.
        session.stop()
        shutil.rmtree(staging, ignore_errors=True)
    sys.exit(REJECTED if rejected else COMPLETE)


main()
