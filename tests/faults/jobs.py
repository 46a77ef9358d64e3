"""The commands that faults are injected into: their inputs, their outputs, and what they do without a fault."""

import os
import random
import shutil
import struct

from tracefs import INSTANCE

OLD = b"an older file, which only a whole new one may replace\n"


class Job:
    """A command on files: what it writes is the same bytes every time."""

    kind = "files"
    until_signal = is_stream = False

    def __init__(self, name, arguments, inputs, outputs=(), program=None):
        self.name, self.arguments, self.inputs, self.outputs = name, arguments, inputs, list(outputs)
        # A program other than tracebridge; it finds tracebridge's path in TRACEBRIDGE.
        self.program = program
        self.status = self.stdout = self.seconds = None
        self.whole, self.calls = {}, {}

    def command(self, binary):
        """The command line."""
        return (self.program or [binary]) + self.arguments


def host_jobs(has_graphviz):
    """The commands that a host runs."""
    jobs = []
    endings = ["pftrace", "json", "firefox.json", "csv", "html", "txt", "dat", "pftrace.gz"]
    for ending in endings:
        for source in ("small.dat", "big.txt"):
            out = f"out/x.{ending}"
            jobs.append(Job(f"convert to {ending}", ["convert", f"in/{source}", "-o", out], [source], [out]))
    jobs.append(Job("convert to -", ["convert", "in/big.txt", "--format", "csv", "-o", "-"], ["big.txt"]))
    for ending in ("pftrace", "json", "txt", "zip"):
        out = f"out/m.{ending}"
        if ending != "zip":
            jobs.append(Job(f"convert methods to {ending}", ["convert", "in/m.trace", "-o", out], ["m.trace"], [out]))
        merge = ["merge", "in/small.dat", "in/m.trace", "--offset", "0", "-o", out]
        jobs.append(Job(f"merge to {ending}", merge, ["small.dat", "m.trace"], [out]))
    profiles = {"folded": "x.folded", "flamegraph": "x.svg", "dot": "x.dot", "speedscope": "x.speedscope.json",
                "firefox": "x.profile.json"}
    for flag, name in profiles.items():
        jobs.append(Job(f"profile --{flag}", ["profile", "in/m.trace", f"--{flag}", f"out/{name}"], ["m.trace"],
                        [f"out/{name}"]))
    every = [word for flag, name in profiles.items() for word in (f"--{flag}", f"out/{name}")]
    jobs.append(Job("profile, five outputs", ["profile", "in/m.trace", *every], ["m.trace"],
                    [f"out/{name}" for name in profiles.values()]))
    for flag in ("--json", "--csv", "--tree", "--bottom-up"):
        jobs.append(Job(f"profile {flag}", ["profile", "in/m.trace", flag], ["m.trace"]))
    jobs.append(Job("dmtracedump", ["dmtracedump", "in/m.trace"], ["m.trace"]))
    jobs.append(Job("dmtracedump -o", ["dmtracedump", "-o", "in/m.trace"], ["m.trace"]))
    jobs.append(Job("info", ["info", "--json", "in/big.txt"], ["big.txt"]))
    if has_graphviz:
        jobs.append(Job("profile --png", ["profile", "in/m.trace", "--png", "out/g.png"], ["m.trace"], ["out/g.png"]))
    names = ["a.dat", "b.txt", "c.trace"]
    loop = 'rc=0; for f in in/*; do "$TRACEBRIDGE" convert "$f" -o "out/${f#in/}.pftrace" || rc=$?; done; exit $rc'
    jobs.append(Job("a loop over files", ["-c", loop], names, [f"out/{name}.pftrace" for name in names], ["sh"]))
    return jobs


class RecordingJob:
    """A command that records: what it writes differs every time, and the kernel's settings are at stake."""

    kind = "recording"

    def __init__(self, name, arguments, output=None, before=(), after=(), **more):
        self.name, self.arguments, self.output = name, arguments, output
        # Commands that are run without a fault: before, and after.
        self.before, self.after = before, after
        self.seconds = more.get("seconds", 0.3)
        # Whether the command goes on until a signal comes. That is atrace, whose status is then 1, as AOSP's.
        self.until_signal = more.get("until_signal", False)
        # Whether the output is a stream that a reader takes from standard output.
        self.is_stream = more.get("is_stream", False)
        # The kind of output: a capture, or a text.
        self.text = more.get("text", False)
        self.uses_instance = more.get("instance", False)
        self.android = more.get("android", False)
        # Whether the command leaves the settings changed on purpose, until one of `after`.
        self.is_start = more.get("is_start", False)
        self.is_flight = more.get("is_flight", False)
        self.calls, self.outputs, self.inputs = {}, [output] if output else [], []
        self.passes_status = more.get("passes_status", False)
        # Whether everything of the recording's time is to be in the output, and is counted where it is not.
        self.keeps_all = not (self.text or self.is_flight or "--mode" in arguments)

    def command(self, binary):
        """The command line."""
        return [binary] + self.arguments


EVENTS = ["sched", "irq/*", "raw_syscalls/*"]
X = "out/x.dat"


def recording_jobs(tracefs):
    """The commands that record."""
    where = ["--tracefs", tracefs.root, "--state-dir", "state"]
    record = ["record", *where, *EVENTS, "--json", "-b", "64"]
    in_instance = ["--instance", INSTANCE]
    atrace = [*where, "atrace", "-b", "128"]

    def flight(command, *more):
        return [command, *where, *more]

    start, stop = flight("start", "sched", "-b", "64"), flight("stop", "-o", "out/stop.dat")
    launch = ["launch", *where, "--android-root", "android", "com.app/.Main", "sched", "-b", "64", "--settle", "0",
              "-t", "2", "--json", "-o", X]
    wrap = ["wrap", *where, "-b", "64", "-o", X, *EVENTS, "--", "sh", "-c", "sleep 0.15; exit 0"]
    jobs = [
        RecordingJob("record", [*record, "-t", "0.2", "-o", X], X),
        RecordingJob("record --mode ring", [*record, "--mode", "ring", "-t", "0.15", "-o", X], X),
        RecordingJob("record --mode fill", [*record, "--mode", "fill", "-t", "0.3", "-o", X], X),
        RecordingJob("record --compress", [*record, "--compress", "-t", "0.15", "-o", X], X),
        RecordingJob("record --instance", [*record, *in_instance, "-t", "0.15", "-o", X], X, instance=True),
        RecordingJob("record -o -", [*record, "-t", "0.2", "-o", "-"], "out/x.stream", is_stream=True),
        RecordingJob("start", start, None, after=[stop], seconds=0.1, is_start=True, is_flight=True),
        RecordingJob("dump", flight("dump", "-o", X), X, [start], [stop], seconds=0.15, is_start=True, is_flight=True),
        RecordingJob("stop", flight("stop", "--json", "-o", X), X, [start], seconds=0.15, is_flight=True),
        RecordingJob("launch", launch, X, android=True, seconds=0.6),
        RecordingJob("wrap", wrap, X, passes_status=True),
        RecordingJob("wrap --instance", [*wrap[:1], *in_instance, *wrap[1:]], X, instance=True, passes_status=True),
        RecordingJob("atrace", [*atrace, "-t", "1", "sched"], "out/x.txt", text=True, is_stream=True, seconds=1.1),
        RecordingJob("atrace -z -o", [*atrace, "-z", "-t", "1", "-o", "out/x.txt", "sched"], "out/x.txt", text=True,
                     seconds=1.1),
        RecordingJob("atrace --stream", [*atrace, "--stream", "sched"], "out/x.txt", text=True, is_stream=True,
                     until_signal=True),
    ]
    begin = [*atrace, "--async_start", "sched"]
    end = [*atrace, "--async_stop", "-o", "out/end.txt"]
    jobs += [
        RecordingJob("atrace --async_start", begin, None, (), [end], seconds=0.1, is_start=True, is_flight=True),
        RecordingJob("atrace --async_dump", [*atrace, "--async_dump", "-o", "out/x.txt"], "out/x.txt", [begin], [end],
                     seconds=0.1, is_start=True, is_flight=True, text=True),
        RecordingJob("atrace --async_stop", [*atrace, "--async_stop", "-o", "out/x.txt"], "out/x.txt", [begin],
                     seconds=0.1, is_flight=True, text=True),
    ]
    return jobs


def make_inputs(directory, golden):
    """Writes the inputs of the host's commands into a directory."""
    shutil.copy(os.path.join(golden, "v6.dat"), f"{directory}/small.dat")
    shutil.copy(os.path.join(golden, "v6.dat"), f"{directory}/a.dat")
    with open(f"{directory}/big.txt", "w") as file:
        file.write("# tracer: nop\n#\n" + "".join(_switches(6000)))
    with open(f"{directory}/b.txt", "w") as file:
        file.write("# tracer: nop\n#\n" + "".join(_switches(500)))
    for name, records in (("m.trace", 20000), ("c.trace", 2000)):
        with open(f"{directory}/{name}", "wb") as file:
            file.write(_method_trace(records))


def _switches(count):
    """Lines of an ftrace text: CPU 0 switches between two threads."""
    for n in range(count):
        one, other = (101, 102) if n % 2 else (102, 101)
        yield (f"    worker-{one}  [000] d..2.  {10 + n * 0.0001:.6f}: sched_switch: prev_comm=worker "
               f"prev_pid={one} prev_prio=120 prev_state=S ==> next_comm=worker next_pid={other} next_prio=120\n")


def _method_trace(records):
    """An ART method trace, version 3 with both clocks: one thread calls methods of random depth."""
    methods, choose = 300, random.Random(1)
    text = "*version\n3\ndata-file-overflow=false\nclock=dual\nelapsed-time-usec=9999999\n"
    text += f"num-method-calls={records}\nclock-call-overhead-nsec=100\nvm=art\npid=7\n*threads\n1\tmain\n*methods\n"
    for n in range(methods):
        text += f"{hex(n << 2)}\tcom.example.Class{n % 30}\tmethod{n}\t()V\tClass{n % 30}.java\n"
    data = bytearray(text.encode() + b"*end\n")
    data += struct.pack("<IHHQH", 0x574F4C53, 3, 32, 1_000_000, 14) + bytes(14)
    stack, time = [], 0
    for left in range(records, 0, -1):
        time += 10
        if stack and (len(stack) >= left or choose.random() < 0.5 or len(stack) > 40):
            word = stack.pop() << 2 | 1
        else:
            stack.append(choose.randrange(methods))
            word = stack[-1] << 2
        data += struct.pack("<HIII", 1, word, time, time)
    return bytes(data)


def read_counts(path):
    """How often each call was made, of a file of FAULTS_COUNTS: of several processes, the largest number."""
    calls = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                name, count = line.split()
                calls[name] = max(calls.get(name, 0), int(count))
        os.remove(path)
    return calls
