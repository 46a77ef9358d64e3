"""Plants causes, records them, and counts what `tracebridge why` says about them. See scripts/why-truth."""

import argparse
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

# Events that are recorded beside the categories.
EVENTS = ["task/task_newtask", "vmscan/mm_vmscan_memcg_reclaim_begin", "vmscan/mm_vmscan_memcg_reclaim_end"]
CATEGORIES = ["sched", "irq", "disk", "memreclaim"]
# Causes that are about sharing a CPU with others: they run as other programs do. All others run at real-time
# priority, so that what the machine does beside them is not counted as planted.
SHARING = {"hogs", "quota", "inversion", "inversion_of_three"}
# Causes that take time from work of the slice's own, which is the larger part: the largest other cause counts.
BESIDE_OWN_WORK = {"interrupts", "reclaim"}
CAUSES = [
    "none", "more_work", "sleep", "disk", "lock_computing", "lock_sleeping", "lock_reading", "lock_chain",
    "lock_with_time_outs", "lock_beside_broadcasts",
    "server", "server_busy", "hogs", "quota", "inversion", "inversion_of_three", "reclaim", "interrupts",
    "sleep_and_disk", "lock_and_work",
]
# Causes that a program on a real Android runtime plants (tools/art/causes).
ART_CAUSES = [
    "monitor", "pool_queue", "stopped", "own_collection", "awaited_collection", "verification", "interpreted",
]
# Where groups with a quota are made; they stay until the recording has ended.
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")


class ThisMachine:
    """Records on this machine."""

    def __init__(self, arguments: argparse.Namespace):
        self.tool, self.planter, self.work = str(arguments.tool), str(arguments.planter), arguments.work

    def before_others(self, command: list[str]) -> list[str]:
        """The command at real-time priority."""
        return ["chrt", "-f", "1", *command]

    def planting(self, cause: str, millis: float, without: bool) -> list[str]:
        """The command that plants a cause, or does the same work without it."""
        command = [self.planter, cause, f"{millis:.1f}", "--dir", str(self.work)]
        return command + (["--without", "yes"] if without else [])

    def recording(self) -> list[str]:
        """The command that records the command behind it."""
        return [self.tool, "wrap", *CATEGORIES, *EVENTS, "-b", "16384"]

    def record(self, command: list[str], capture: Path) -> str:
        """Runs a command of the recorder, which ends with `-o`'s file, and returns what the planter printed."""
        capture.unlink(missing_ok=True)
        try:
            said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        finally:
            for group in CPU_GROUPS.glob("planted-*"):
                group.rmdir()
        return said.stdout.decode()


class RealRuntime(ThisMachine):
    """Records a Java program on the runtime that scripts/art has made, in a trace instance that its markers go to."""

    def __init__(self, arguments: argparse.Namespace):
        super().__init__(arguments)
        self.launcher = str(arguments.art / "art")
        self.instance = f"why-truth-{os.getpid()}"
        os.environ["ART_TRACE_MARKER"] = f"/sys/kernel/tracing/instances/{self.instance}/trace_marker"

    def planting(self, cause: str, millis: float, without: bool) -> list[str]:
        return [self.launcher, "-Xmx256m", self.planter, "Causes", cause, f"{millis:.1f}", "/dev/shm"]

    def recording(self) -> list[str]:
        return [*super().recording(), "--instance", self.instance, "--state-dir", str(self.work)]


class Device(ThisMachine):
    """Records on a device, and fetches the capture."""

    def __init__(self, arguments: argparse.Namespace):
        super().__init__(arguments)
        self.serial, self.host_work = arguments.device, arguments.work
        self.work = Path("/data/local/tmp/why-truth")
        self.tool, self.planter = "/data/local/tmp/tracebridge", "/data/local/tmp/planted_cause"
        self.adb("shell", "-n", f"mkdir -p {self.work}")

    def adb(self, *words: str) -> str:
        return subprocess.run(["adb", "-s", self.serial, *words], stdout=subprocess.PIPE, check=True).stdout.decode()

    def before_others(self, command: list[str]) -> list[str]:
        # Android's toybox has chrt. The emulated device has none, and nothing that is in the way.
        return ["sh", "-c", 'if command -v chrt >/dev/null; then exec chrt -f 1 "$@"; fi; exec "$@"', "sh", *command]

    def record(self, command: list[str], capture: Path) -> str:
        groups = f"rmdir {CPU_GROUPS}/planted-* 2>/dev/null"
        script = f"rm -f {self.work}/*; {shlex.join(command)} 2>/dev/null; s=$?; {groups}; exit $s"
        said = self.adb("shell", "-n", script)
        self.adb("pull", str(self.work / capture.name), str(capture))
        return said


def run_one(
    place: ThisMachine, arguments: argparse.Namespace, cause: str, millis: float, without: bool = False
) -> tuple[dict, dict]:
    """Records one planted cause, or the same work without it. Returns what was planted, and the span that `why`
    explains."""
    capture = arguments.work / "planted.dat"
    command = place.planting(cause, millis, without)
    if cause not in SHARING:
        command = place.before_others(command)
    output = str(place.work / capture.name)
    said = place.record([*place.recording(), "-o", output, "--", *command], capture)
    why = [str(arguments.tool), "why", str(capture), "--slice", "planted", "--json"]
    out = subprocess.run(why, stdout=subprocess.PIPE, check=True)
    return json.loads(said), json.loads(out.stdout)["spans"][0]


class Assistant:
    """A client of `tracebridge mcp`, which asks what an assistant would, in a fixed order."""

    def __init__(self, tool: Path, root: Path):
        command = [str(tool), "mcp", "--root", str(root)]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "why-truth", "version": "1"}}
        self.request("initialize", hello)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict) -> None:
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        self.server.stdin.flush()

    def request(self, method: str, params: dict) -> dict:
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            message = json.loads(self.server.stdout.readline())
            if message.get("id") == self.last:
                return message["result"]

    def ask(self, tool: str, **arguments) -> str:
        """The text of an answer."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]


def ask_as_an_assistant(place: ThisMachine, arguments: argparse.Namespace) -> int:
    """Plants each cause once, and asks `info`, `why`, and one question further. Prints how often the cause is the first
    one of the answer to `why`."""
    draw = random.Random(arguments.seed)
    assistant = Assistant(arguments.tool, arguments.work)
    print("| planted | first cause of the answer | right | bytes of info, why, thread_states | ms |")
    print("| --- | --- | --- | --- | --- |")
    right = 0
    for cause in arguments.causes:
        planted, _ = run_one(place, arguments, cause, draw.uniform(40, 200))
        begin = time.monotonic()
        texts = [assistant.ask("info", files=["planted.dat"]), assistant.ask("why", files=["planted.dat"], slice="planted")]
        span = json.loads(texts[1])["spans"][0]
        texts.append(assistant.ask("thread_states", files=["planted.dat"], process="planted_cause"))
        took = time.monotonic() - begin
        paths = [part["cause"] for part in span["by_cause"]]
        if cause in BESIDE_OWN_WORK:
            paths.remove("running")
        if "pair" in planted:
            told, wanted = set(paths[:2]), set(planted["pair"])
        else:
            told, wanted = {paths[0]}, {" > ".join(planted["path"])}
        right += told == wanted
        sizes = ", ".join(str(len(text.encode())) for text in texts)
        print(f"| {cause} | {' and '.join(sorted(told))} | {'yes' if told == wanted else 'no'} | {sizes} | {1000 * took:.0f} |")
    print(f"\nthe planted cause comes first in {right} of {len(arguments.causes)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", action="store_true")
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--planter", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--device", metavar="SERIAL")
    parser.add_argument("--art", type=Path, metavar="DIRECTORY")
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--causes", nargs="*")
    arguments = parser.parse_args()
    arguments.causes = arguments.causes or (ART_CAUSES if arguments.art else CAUSES)
    kind = Device if arguments.device else RealRuntime if arguments.art else ThisMachine
    place = kind(arguments)
    if arguments.agent:
        return ask_as_an_assistant(place, arguments)
    draw = random.Random(arguments.seed)
    found = defaultdict(Counter)
    right, near = Counter(), Counter()
    # Of each cause: the runs whose explanation names all that it should.
    named = Counter()
    foreign, unexplained = [], []
    # Of each run of a cause: the size that was found, and the planted one, ns.
    totals = defaultdict(list)
    # Of each run: the time that its cause says to be saved without it, and how long its slice took, and takes without
    # the cause, if that is not what a clean slice takes.
    removals, clean = [], []
    for cause in arguments.causes:
        for _ in range(arguments.n):
            millis = draw.uniform(40, 200)
            planted, span = run_one(place, arguments, cause, millis)
            without = None
            if cause in SHARING:
                without = run_one(place, arguments, cause, millis, without=True)[1]["duration_ns"]
            times = Counter()
            for part in span["causes"]:
                path = " > ".join(hop["cause"] for hop in part["path"])
                # Waiting for the collection of another thread is a collection, too.
                times[re.sub("gc( > gc)+", "gc", path)] += part["ns"]
            named[cause] += all(text in json.dumps(span) for text in planted.get("named", []))
            if sum(times.values()) != span["duration_ns"]:
                print(f"{cause}: the causes do not add up to the span", file=sys.stderr)
                return 1
            ranked = [path for path, _ in times.most_common()]
            if cause in BESIDE_OWN_WORK:
                ranked.remove("running")
            unknown = sum(ns for path, ns in times.items() if path.endswith(("unexplained", "not_recorded")))
            unexplained.append(unknown / span["duration_ns"])
            if "pair" in planted:
                # Both are the two largest.
                pair = dict(zip(planted["pair"], planted["sizes"]))
                found[cause][" and ".join(sorted(ranked[:2]))] += 1
                right[cause] += set(ranked[:2]) == set(pair)
                own = {"running": 5_000_000}
                sizes = {path: times[path] - own.get(path, 0) for path in pair}
                near[cause] += all(abs(sizes[path] - ns) <= max(ns // 10, 5_000_000) for path, ns in pair.items())
                totals[cause].append((sum(sizes.values()), sum(pair.values())))
                removals.append((cause, sum(sizes.values()), span["duration_ns"], without))
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
            totals[cause].append((times[expected] - own, planted["ns"]))
            removals.append((cause, times[expected] - own, span["duration_ns"], without))
    print(f"| planted | largest cause found ({arguments.n} runs, seed {arguments.seed}) | right | size within 10 % or 5 ms | found of planted, all runs |")
    print("| --- | --- | --- | --- | --- |")
    for cause in arguments.causes:
        all_found = ", ".join(f"{path} {count}" for path, count in found[cause].most_common())
        sizes, planted = (sum(column) for column in zip(*totals[cause] or [(0, 0)]))
        share = f"{100 * sizes / planted:.1f} %" if planted else "-"
        counts = f"{right[cause]} of {arguments.n} | {near[cause]} of {arguments.n}"
        print(f"| {cause} | {all_found} | {counts} | {share} |")
    runs = arguments.n * len(arguments.causes)
    if arguments.art:
        print("\nall is named that should be: " + ", ".join(f"{cause} {named[cause]}" for cause in arguments.causes))
    print(f"\nlargest cause right: {sum(right.values())} of {runs}; size near: {sum(near.values())} of {runs}")
    print(f"unexplained or not recorded, median run: {100 * statistics.median(unexplained):.2f} %")
    if foreign:
        print(f"largest foreign cause of clean runs: median {100 * statistics.median(foreign):.2f} %, most {100 * max(foreign):.2f} %")
    if clean and removals:
        # What a run took longer than those without its cause is what would be saved.
        base = statistics.median(clean)
        errors = defaultdict(list)
        for cause, saved, took, without in removals:
            longer = took - (base if without is None else without)
            if longer > 0:
                errors[cause].append(abs(saved - longer) / longer)
        every = [error for list_ in errors.values() for error in list_]
        print(f"predicted against measured saving: median error {100 * statistics.median(every):.1f} %; of each cause:")
        print(", ".join(f"{cause} {100 * statistics.median(list_):.1f} %" for cause, list_ in errors.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
