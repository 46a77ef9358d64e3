"""Measures a dataset of generated launches. scripts/bench-dataset starts it and describes what it does."""

import csv
import io
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import query as query_module

BUILDS = 10
# The method that is slower in the last build, and how much, percent: see tools/generate_launches.rs.
SLOW_METHOD, SLOW_PERCENT = "com.example.app.Feed.bind", 25
# A name is found if its p-value, times the number of names that are compared (Bonferroni), is below this.
SIGNIFICANT = 0.01
SCRIPTS = Path(__file__).parent
# So many launches have the figures of docs/dataset.md, which scripts/figures --from takes.
PUBLISHED_LAUNCHES = 1000


def run(*command):
    """Runs a command. Returns what it printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench-dataset: {command}: status {done.returncode}: {done.stderr}")
    return done.stdout


def measured(what, work):
    """Runs `work`, and prints its time. Returns its result, the wall seconds and the CPU seconds of its processes."""
    cpu = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    wall, used = time.monotonic(), cpu()
    result = work()
    wall, used = time.monotonic() - wall, cpu() - used
    print(f"{what}: {wall:.2f} s, {used:.2f} s of CPU", flush=True)
    return result, wall, used


def megabytes(directory):
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


def main():
    programs, directory, launches = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    tracebridge, inputs, dataset, out = programs / "tracebridge", directory / "in", directory / "set", directory / "out"
    for path in (inputs, dataset, out):
        if path.exists():
            sys.exit(f"bench-dataset: {path}: exists: name another directory, or remove it")
    out.mkdir(parents=True)
    print(f"load {os.getloadavg()}, {os.cpu_count()} processors")
    generate = [programs / "examples/generate_launches", inputs, launches, BUILDS, BUILDS - 1, SLOW_PERCENT]
    planted_ms = int(run(*generate)) / 1e6
    captures = sorted(inputs.glob("*.dat"))
    print(f"{launches} launches, {megabytes(inputs):.0f} MB; planted in build {BUILDS - 1}: {planted_ms:.3f} ms a launch")

    def add():
        for build in range(BUILDS):
            files = sorted(inputs.glob(f"{build:02}-*"))
            run(tracebridge, "dataset", "add", dataset, *files, "--tag", f"build={build}")

    def each(command):
        # As many processes as `dataset add` has threads.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda capture: run(*command(capture)), captures))

    merge = lambda file: [tracebridge, "merge", file, file.with_suffix(".trace"), "-o", out / f"{file.stem}.pftrace"]
    _, wall, cpu = measured("dataset add", add)
    figures = {"dataset.add": f"{wall:.1f} s", "dataset.add-cpu": f"{cpu:.1f} s", "dataset.planted": f"{planted_ms:.2f} ms"}
    _, merge_wall, merge_cpu = measured("merge to .pftrace, one launch after the other", lambda: each(merge))
    figures |= {"dataset.merge": f"{merge_wall:.1f} s", "dataset.merge-cpu": f"{merge_cpu:.1f} s"}
    figures |= {"dataset.speed": f"{merge_wall / wall:.2f}", "dataset.speed-cpu": f"{merge_cpu / cpu:.2f}"}
    print(f"speed of dataset add, where that of .pftrace is 1: {merge_wall / wall:.2f} by the clock, {merge_cpu / cpu:.2f} by CPU")
    sizes = megabytes(dataset), megabytes(out)
    print(f"size: dataset {sizes[0]:.1f} MB, .pftrace {sizes[1]:.1f} MB: {sizes[0] / sizes[1]:.2f}")
    figures |= {"dataset.size": f"{sizes[0]:.0f} MB", "dataset.pftrace-size": f"{sizes[1]:.0f} MB"}
    figures["dataset.size-ratio"] = f"{sizes[0] / sizes[1]:.2f}"
    print(run(tracebridge, "dataset", "check", dataset), end="")

    query = lambda name, *more: run(SCRIPTS / "query", dataset, name, *more)
    table, asked_wall, asked = measured("startup percentiles by build, scripts/query with DuckDB", lambda: query("startup-by-tag"))
    print(table, end="")
    wall, cpu = time.monotonic(), time.process_time()
    text = query_module.query_text(SCRIPTS.parent / "queries/startup-by-tag.sql")
    query_module.DuckDb(str(dataset), "build", "", "").run(text)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(f"the same in a process that has loaded DuckDB, and has not seen the dataset: {wall:.2f} s, {cpu:.2f} s of CPU")
    print(f"by CPU, converting each launch takes {merge_cpu / asked:.0f} times as long as scripts/query, ", end="")
    print(f"{merge_cpu / cpu:.0f} times as long as the question alone")
    figures |= {"dataset.query": f"{asked_wall:.2f} s", "dataset.query-cpu": f"{asked:.2f} s"}
    figures |= {"dataset.question": f"{wall:.2f} s", "dataset.question-cpu": f"{cpu:.2f} s"}
    figures |= {"dataset.query-times": f"{merge_cpu / asked:.0f}", "dataset.question-times": f"{merge_cpu / cpu:.0f}"}

    for name, what in [("slice-regression", SLOW_METHOD), ("methods-changed", SLOW_METHOD), ("launch-regression", "com.example.app")]:
        for old, new in [(BUILDS - 2, BUILDS - 1), (0, 1)]:
            text, _, _ = measured(f"{name} of builds {old} and {new}", lambda: query(name, "--old", old, "--new", new, "--csv"))
            rows = list(csv.DictReader(io.StringIO(text)))
            found = [row for row in rows if float(row["p_value"]) * len(rows) < SIGNIFICANT]
            names = [row["name"] for row in found]
            expected = [what] if new == BUILDS - 1 else []
            print(f"  found: {names}: {'as planted' if names == expected else 'NOT AS PLANTED'}")
            for row in found:
                change = float(row["change_ms"])
                off = 100 * change / planted_ms - 100
                print(f"  {row['name']}: {change:.3f} ms, {off:+.1f} % off what was planted")
                figures |= {f"dataset.{name}": f"{change:.2f} ms", f"dataset.{name}-off": f"{abs(off):.1f} %"}
    if launches == PUBLISHED_LAUNCHES:
        for name, value in figures.items():
            print(f"figure {name}={value}")


main()
