"""Plants causes, records them, and counts what `tracebridge why` says about them. See scripts/why-truth."""

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

# Events that are recorded beside the categories.
EVENTS = ["task/task_newtask", "vmscan/mm_vmscan_memcg_reclaim_begin", "vmscan/mm_vmscan_memcg_reclaim_end"]
CATEGORIES = ["sched", "irq", "disk", "memreclaim"]
# Causes that are about sharing a CPU with others: they run as other programs do. All others run at real-time
# priority, so that what the machine does beside them is not counted as planted.
SHARING = {"hogs", "quota", "inversion", "inversion_of_three"}
# Causes that take time from work of the slice's own, which is the larger part: the largest other cause counts.
BESIDE_OWN_WORK = {"interrupts"}
CAUSES = [
    "none", "more_work", "sleep", "disk", "lock_computing", "lock_sleeping", "lock_reading", "lock_chain",
    "server", "server_busy", "hogs", "quota", "inversion", "inversion_of_three", "reclaim", "interrupts",
    "sleep_and_disk", "lock_and_work",
]
# Where groups with a quota are made; they stay until the recording has ended.
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")


def run_one(tool: Path, planter: Path, work: Path, cause: str, millis: float) -> tuple[dict, dict]:
    """Records one planted cause. Returns what was planted, and the span that `why` explains."""
    capture = work / "planted.dat"
    capture.unlink(missing_ok=True)
    command = [str(planter), cause, f"{millis:.1f}", "--dir", str(work)]
    if cause not in SHARING:
        command = ["chrt", "-f", "1", *command]
    record = [str(tool), "wrap", *CATEGORIES, *EVENTS, "-b", "16384", "-o", str(capture), "--", *command]
    try:
        said = subprocess.run(record, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    finally:
        for group in CPU_GROUPS.glob("planted-*"):
            group.rmdir()
    why = [str(tool), "why", str(capture), "--slice", "planted", "--json"]
    out = subprocess.run(why, stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout), json.loads(out.stdout)["spans"][0]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--planter", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--causes", nargs="*", default=CAUSES)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    found = defaultdict(Counter)
    right, near = Counter(), Counter()
    errors, foreign, unexplained = [], [], []
    # Of each run: the time that its cause says to be saved without it, and how long its slice took.
    removals, clean = [], []
    for cause in arguments.causes:
        for _ in range(arguments.n):
            planted, span = run_one(arguments.tool, arguments.planter, arguments.work, cause, draw.uniform(40, 200))
            times = Counter()
            for part in span["causes"]:
                times[" > ".join(hop["cause"] for hop in part["path"])] += part["ns"]
            if sum(times.values()) != span["duration_ns"]:
                print(f"{cause}: the causes do not add up to the span", file=sys.stderr)
                return 1
            ranked = [path for path, _ in times.most_common()]
            if cause in BESIDE_OWN_WORK:
                ranked.remove("running")
            unknown = sum(ns for path, ns in times.items() if path.endswith(("unexplained", "not_recorded")))
            unexplained.append(unknown / span["duration_ns"])
            if "pair" in planted:
                # Both are the two largest, and each has half of the size.
                pair = planted["pair"]
                found[cause][" and ".join(sorted(ranked[:2]))] += 1
                right[cause] += set(ranked[:2]) == set(pair)
                half = planted["ns"] // 2
                own = {"running": 5_000_000}
                error = max(abs(times[path] - own.get(path, 0) - half) for path in pair)
                near[cause] += error <= max(half // 10, 5_000_000)
                errors.append(error)
                removals.append((sum(times[path] - own.get(path, 0) for path in pair), span["duration_ns"]))
                continue
            expected = " > ".join(planted["path"])
            largest = ranked[0]
            found[cause][largest] += 1
            right[cause] += largest == expected
            if cause == "none":
                others = [ns for path, ns in times.items() if path != expected]
                foreign.append(max(others, default=0) / span["duration_ns"])
                near[cause] += foreign[-1] <= 0.05
                clean.append(span["duration_ns"])
                continue
            # The slice has 5 ms of its own work, which is not planted.
            own = 5_000_000 if expected == "running" else 0
            error = abs(times[expected] - own - planted["ns"])
            near[cause] += error <= max(planted["ns"] // 10, 5_000_000)
            errors.append(error)
            removals.append((times[expected] - own, span["duration_ns"]))
    print(f"| planted | largest cause found ({arguments.n} runs, seed {arguments.seed}) | right | size within 10 % or 5 ms |")
    print("| --- | --- | --- | --- |")
    for cause in arguments.causes:
        all_found = ", ".join(f"{path} {count}" for path, count in found[cause].most_common())
        print(f"| {cause} | {all_found} | {right[cause]} of {arguments.n} | {near[cause]} of {arguments.n} |")
    runs = arguments.n * len(arguments.causes)
    print(f"\nlargest cause right: {sum(right.values())} of {runs}; size near: {sum(near.values())} of {runs}")
    print(f"unexplained or not recorded, median run: {100 * statistics.median(unexplained):.2f} %")
    if foreign:
        print(f"largest foreign cause of clean runs: median {100 * statistics.median(foreign):.2f} %, most {100 * max(foreign):.2f} %")
    if clean and removals:
        # What a run took longer than the clean ones is what would be saved without its cause.
        base = statistics.median(clean)
        wrong = [abs(saved - (took - base)) / (took - base) for saved, took in removals if took > base]
        print(f"predicted against measured saving: median error {100 * statistics.median(wrong):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
