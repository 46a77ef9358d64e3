"""Cuts between the desk and a device: a cable that ends at a byte, the commands of `adb` over it, and what must hold
afterwards: every recording is on the desk, verified, or still on the device."""

import collections
import contextlib
import hashlib
import json
import os
import random
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from tracefs import alone

DIR = "/data/local/tmp"
SESSIONS = f"{DIR}/tracebridge.d"
BINARY = f"{DIR}/tracebridge"
# How long the host waits for a device that is away, seconds.
PATIENCE = 4
# The same over a whole cable, where only a busy machine keeps a device from answering.
LONG_PATIENCE = 30
# No command takes longer than this, whatever happens to the cable, seconds.
MAX_SECONDS = 90.0
# How long the cable is out after a cut, seconds; None is until the command has ended.
OUTAGES = (0.0, 0.0, 0.3, 1.5, None)
# A file that is pulled and pushed.
PAYLOAD = random.Random(7).randbytes(300_000)
MINE = b"a file of the user's\n"
SETTINGS = ("tracing_on", "current_tracer", "trace_clock", "buffer_size_kb", "set_event", "events/enable")
COLUMNS = ("cuts", "too late", "on the desk", "fetched later", "still there", "never begun", "failures")


class Cable:
    """A port whose connections lead to another one, and end when so many bytes have passed."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.sockets = set()
        self.mend()
        threading.Thread(target=self._accept, daemon=True).start()

    def mend(self, cut_at=None, outage=0.0):
        """Counts from 0 on, and cuts at this byte. The cable is out for so long then."""
        with self.lock:
            self.cut_at, self.outage = cut_at, outage
            self.passed, self.marks, self.sent = 0, [], bytearray()
            self.out_until = 0.0
            self.was_cut = False

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            if time.monotonic() < self.out_until:
                near.close()
                continue
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        try:
            far = socket.create_connection(self.target, timeout=10)
        except OSError:
            near.close()
            return
        pair = (near, far)
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(None)
        with self.lock:
            self.sockets.update(pair)
        try:
            peers, reading = {near: far, far: near}, [near, far]
            while reading:
                for end in select.select(reading, [], [])[0]:
                    piece = end.recv(65536)
                    if not piece:
                        reading.remove(end)
                        with contextlib.suppress(OSError):
                            peers[end].shutdown(socket.SHUT_WR)
                    elif not self._pass(piece, peers[end], end is near):
                        return
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.sockets.difference_update(pair)
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _pass(self, piece, to, is_outward):
        """Passes bytes on. Returns whether the cable is whole."""
        with self.lock:
            left = len(piece) if self.cut_at is None else min(len(piece), self.cut_at - self.passed)
            is_cut = left < len(piece) and not self.was_cut
            self.passed += left
            self.marks.append(self.passed)
            if is_outward:
                self.sent += piece[:left]
            if is_cut:
                self.was_cut = True
                self.cut_at = None
                self.out_until = float("inf") if self.outage is None else time.monotonic() + self.outage
                others = list(self.sockets)
        if left:
            to.sendall(piece[:left])
        if is_cut:
            for end in others:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return not is_cut


class Job:
    """A command of `adb`: what it makes on the desk, and what is on the device before it."""

    def __init__(self, name, words, output=None, before="", weight=1):
        self.name, self.words, self.output, self.before, self.weight = name, words.split(), output, before, weight
        self.marks = {}


JOBS = (
    Job("record to .dat", "record sched -t 300ms -o x.dat", "x.dat", weight=4),
    Job("record to .pftrace", "record sched -t 300ms -o x.pftrace", "x.pftrace", weight=3),
    Job("record --stream", "record sched -t 300ms --stream -o s.dat", weight=2),
    Job("pull FILE", "pull payload.bin", "payload.bin", before="payload", weight=2),
    Job("pull --resume", "pull --resume", before="recording", weight=3),
    Job("push", "push", before="no binary", weight=2),
    Job("devices", "devices"),
    Job("mark", "mark instant cut"),
    Job("clean", "clean", before="recording"),
    Job("dump", "dump -o f.dat", "f.dat", before="flight", weight=2),
)


class Campaign:
    """Cut after cut, and the table of what became of the recordings."""

    def __init__(self, binary, serial, options, say):
        self.binary, self.serial, self.options, self.say = binary, serial, options, say
        self.port = os.environ.get("ANDROID_ADB_SERVER_PORT", "5037")
        self.place = tempfile.mkdtemp(prefix="tracebridge-cable-")
        self.table = collections.defaultdict(collections.Counter)
        self.failures = []
        host, _, port = serial.rpartition(":")
        # The desk's end of the cable is at the adb server, or at the device's adbd.
        self.cables = {"adb server": Cable(("127.0.0.1", int(self.port)))}
        if host:
            self.cables["adbd"] = Cable((host, int(port)))
        self.abi = "arm64-v8a" if "aarch64" in self.shell("uname -m") else "x86_64"
        self.binaries = os.environ.get("TRACEBRIDGE_DEVICE_BINARIES", "out/android")
        with open(f"{self.binaries}/{self.abi}/tracebridge", "rb") as file:
            self.hash = hashlib.sha256(file.read()).hexdigest()

    # What is said to the device past the cable.

    def adb(self, *words, timeout=60):
        """Runs the platform's own adb."""
        return subprocess.run(["adb", *words], capture_output=True, text=True, timeout=timeout, check=False)

    def shell(self, script):
        """Runs a script on the device."""
        for _ in range(20):
            done = self.adb("-s", self.serial, "shell", script)
            if done.returncode != 1 or "device" not in done.stderr:
                return done.stdout
            self.adb("connect", self.serial)
            time.sleep(0.3)
        raise OSError(f"the device does not answer: {done.stderr}")

    def tracebridge(self, words, directory, serial, port, patience=PATIENCE):
        """Runs `tracebridge adb`, and returns status and messages; the status None means that it did not end."""
        timeout = MAX_SECONDS * patience / PATIENCE
        env = {**os.environ, "ANDROID_SERIAL": serial, "ANDROID_ADB_SERVER_PORT": str(port),
               "TRACEBRIDGE_ADB_TIMEOUT": str(patience),
               "TRACEBRIDGE_DEVICE_BINARIES": os.path.abspath(self.binaries)}
        try:
            done = subprocess.run([self.binary, "adb", *words], cwd=directory, env=env, capture_output=True,
                                  timeout=timeout, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            return None, (late.stderr or b"").decode(errors="replace")
        return done.returncode, (done.stderr + done.stdout).decode(errors="replace")

    def look(self, before="true"):
        """Finds what is on the device: recordings and their files, files of tracebridge and their hashes, the settings that a
        recording changes, and the recorders at work. The script `before` runs first: each shell takes its time."""
        found = {"sessions": {}, "files": {}, "settings": [], "running": []}
        script = (f"cd {SESSIONS} 2>/dev/null && for s in *; do [ -d $s ] || continue; echo sessions $s $(ls $s); "
                  "[ -e $s/pid ] && [ ! -e $s/status ] && [ -d /proc/$(cat $s/pid) ] && echo running $s; done; "
                  f"cd {DIR}; for f in tracebridge tracebridge.*.part payload.bin; do [ -f $f ] && "
                  "echo files $f $(sha256sum <$f); done; "
                  f"cd /sys/kernel/tracing && for f in {' '.join(SETTINGS)}; do echo settings $f $(cat $f); done; "
                  "echo settings $(ls instances)")
        for line in self.shell(f"({before}) >/dev/null 2>&1; {script}").splitlines():
            kind, *words = line.split()
            if kind == "sessions":
                found[kind][words[0]] = words[1:]
            elif kind == "files":
                # Without a checksum it was removed while the device looked.
                if len(words) > 1:
                    found[kind][words[0]] = words[1]
            else:
                found[kind].append(" ".join(words))
        return found

    def prepare(self, job):
        """Puts on the device what the command is to find there. Returns the recordings among it."""
        if job.before == "payload":
            with open(f"{self.place}/payload.bin", "wb") as file:
                file.write(PAYLOAD)
            self.adb("-s", self.serial, "push", f"{self.place}/payload.bin", f"{DIR}/payload.bin")
        elif job.before == "no binary":
            self.shell(f"rm -f {BINARY}")
        elif job.before == "flight":
            self.shell(f"{BINARY} start sched </dev/null >/dev/null 2>&1")
        elif job.before == "recording":
            one = f"{random.getrandbits(64):016x}"
            session = f"{SESSIONS}/{one}"
            self.shell(f"mkdir -p {session} && cd {session} && echo left.dat >output && {BINARY} record sched -t 100ms "
                       "-o capture.dat --json >summary.json 2>log; echo $? >status; echo 1 >pid")
            return {one}
        return set()

    # One cut.

    def run(self, job, end, cut_at, outage):
        """Runs a command over the cable, which is cut there. Returns what is wrong afterwards."""
        # A device that is a container of this machine has its tracefs, and so have other tests.
        with alone(None, self.options.lock):
            if self.options.lock:
                self.usual = self.look()["settings"]
            return self.run_alone(job, end, cut_at, outage)

    def run_alone(self, job, end, cut_at, outage):
        """The same, while no other program records on the device."""
        cable = self.cables[end]
        serial, port = self.serial, self.port
        directory = tempfile.mkdtemp(dir=self.place)
        for name in ("trace.dat", "package.json"):
            with open(f"{directory}/{name}", "wb") as file:
                file.write(MINE)
        before = self.prepare(job)
        cable.mend()
        if end == "adbd":
            serial = f"127.0.0.1:{cable.port}"
            self.adb("connect", serial)
        else:
            port = cable.port
        cable.mend(cut_at, outage)
        began = time.monotonic()
        status, said = self.tracebridge(job.words, directory, serial, port)
        took = time.monotonic() - began
        marks, sent, was_cut = list(cable.marks), bytes(cable.sent), cable.was_cut
        cable.mend()
        if end == "adbd":
            self.adb("disconnect", serial)
        problems, became = self.judge(job, directory, before, status, said, sent)
        if cut_at is None:
            job.marks[end] = marks
        else:
            row = self.table[f"{job.name}, cut at the {end}"]
            row["cuts"] += was_cut
            row["too late"] += not was_cut
            row["failures"] += bool(problems)
            row.update(became)
        if problems and not self.options.keep:
            problems.append(f"status {status} after {took:.1f} s: {said[-600:]!r}")
        if not (problems and self.options.keep):
            shutil.rmtree(directory, ignore_errors=True)
        return problems

    def judge(self, job, directory, before, status, said, sent):
        """Finds what is wrong after a command, and what became of the recordings."""
        problems, became = [], []
        if status not in (0, 1, 3):
            problems.append("it did not end" if status is None else f"status {status}")
        if "panicked" in said or status == 1 and not said.strip():
            problems.append("a panic, or no message")
        names = set(os.listdir(directory))
        for name in ("trace.dat", "package.json"):
            if name not in names or open(f"{directory}/{name}", "rb").read() != MINE:
                problems.append(f"{name} of the user was changed")
        made = names - {"trace.dat", "package.json"}
        hidden = {name for name in made if name.startswith(".")}
        if hidden:
            problems.append(f"left on the desk: {hidden}")
        whole = {name for name in made - hidden if self.is_whole(f"{directory}/{name}")}
        # A stream that was cut holds what came until then.
        if made - hidden - whole:
            problems.append(f"not whole on the desk: {made - hidden - whole}")
        if status == 0 and job.output and job.output not in whole:
            problems.append(f"status 0 without {job.output}")
        state = self.look()
        for _ in range(60):
            # A recording that goes on without its cable ends by itself.
            if not state["running"]:
                break
            time.sleep(0.3)
            state = self.look()
        else:
            problems.append(f"a recorder goes on for ever: {state['running']}")
        there = state["sessions"]
        begun = {match.decode() for match in re.findall(rb"mkdir \$d/([0-9a-f]{16}) ", sent)} | before
        removed = {match.decode() for match in re.findall(rb"rm -r [^ ]*tracebridge\.d/([0-9a-f]{16})", sent)}
        for one in begun:
            if one in there:
                continue
            if one in removed:
                became.append("on the desk")
                if not whole:
                    problems.append(f"the recording {one} was removed from the device and is not on the desk")
            elif one in before:
                problems.append(f"the recording {one} is gone")
            else:
                became.append("never begun")
        self.judge_files(job, state["files"], whole, problems)
        if there:
            state = self.fetch_later(there, problems, became)
        self.put_back(state, problems)
        return problems, collections.Counter(became)

    def is_whole(self, path):
        """Whether a file on the desk is a whole one of its kind."""
        if path.endswith("payload.bin"):
            return open(path, "rb").read() == PAYLOAD
        info = subprocess.run([self.binary, "info", "--json", path], capture_output=True, timeout=60, check=False)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return info.returncode in (0, 3) and json.loads(info.stdout)["events"] > 0
        return False

    def fetch_later(self, there, problems, became):
        """Fetches the recordings that are still on the device, over a whole cable. Returns what is there afterwards."""
        directory = tempfile.mkdtemp(dir=self.place)
        status, said = self.tracebridge(["pull", "--resume"], directory, self.serial, self.port, LONG_PATIENCE)
        fetched = [name for name in os.listdir(directory) if self.is_whole(f"{directory}/{name}")]
        state = self.look()
        empty = {one for one in state["sessions"] if not {"capture.dat", "summary.json"} & set(there.get(one, ()))}
        became += ["fetched later"] * len(fetched) + ["never begun"] * len(empty)
        if len(fetched) < len(set(there) - empty):
            problems.append(f"of {there} only {fetched} can be fetched (status {status}): {said[-400:]!r}")
        shutil.rmtree(directory, ignore_errors=True)
        return state

    def judge_files(self, job, files, whole, problems):
        """Checks that what was pulled is here or there, and what was pushed is whole or not there."""
        if job.before == "payload":
            is_there = files.get("payload.bin") == hashlib.sha256(PAYLOAD).hexdigest()
            if not is_there and "payload.bin" not in whole:
                problems.append("the pulled file is neither here nor there")
        if files.get("tracebridge", self.hash) != self.hash:
            problems.append("the binary on the device is another one")

    def put_back(self, state, problems):
        """Makes the device what it was. Its settings must be so by themselves, but for those of a flight recorder."""
        for _ in range(20):
            if self.is_usual(state):
                return
            if "tracebridge" not in state["files"]:
                self.tracebridge(["push"], self.place, self.serial, self.port, LONG_PATIENCE)
            state = self.look(f"[ -x {BINARY} ] && {BINARY} stop -o /dev/null; rm -f {DIR}/payload.bin "
                              f"{DIR}/tracebridge.*.part; rm -rf {SESSIONS}")
        problems.append(f"settings: {state['settings']!r}, not {self.usual!r}")
        self.shell(f"pkill -9 tracebridge; {BINARY} restore --flight")

    def is_usual(self, state):
        """Whether the device is as it was before the command."""
        return (state["settings"] == self.usual and not state["sessions"]
                and state["files"] == {"tracebridge": self.hash})

    def choose(self, number):
        """The command, the end of the cable, the byte and the outage of this number."""
        choose = random.Random(f"{self.options.seed}/{number}")
        jobs = [job for job in JOBS if not self.options.only or any(text in job.name for text in self.options.only)]
        job = choose.choices(jobs, [job.weight for job in jobs])[0]
        end = choose.choice(sorted(self.cables))
        return job, end, choose

    def go(self):
        """Runs every command once without a cut, then cuts."""
        with alone(None, self.options.lock):
            self.make_usual()
        began = time.monotonic()
        number = self.options.at or 0
        while not self.is_over(began):
            job, end, choose = self.choose(number)
            if not self.is_known(job, end):
                return 1
            marks = [0] + job.marks[end]
            # As many cuts between small messages as inside of large files.
            if choose.random() < 0.5:
                cut_at = choose.randrange(marks[-1])
            else:
                at = choose.randrange(len(marks) - 1)
                cut_at = choose.randint(marks[at], marks[at + 1])
            outage = choose.choice(OUTAGES)
            problems = self.run(job, end, cut_at, outage)
            if problems:
                failure = {"seed": self.options.seed, "at": number, "job": job.name, "end": end, "byte": cut_at,
                           "outage": outage, "problems": problems}
                self.failures.append(failure)
                self.say(f"FAILED (--seed {self.options.seed} --at {number}): {json.dumps(failure)}")
            number += 1
            if number % 50 == 0:
                self.say(f"{self.cuts()} cuts in {time.monotonic() - began:.0f} s, {len(self.failures)} failures")
            if self.options.at is not None:
                break
        self.seconds = time.monotonic() - began
        return 0

    def make_usual(self):
        """Puts the binary on the device, and learns its settings."""
        self.tracebridge(["push"], self.place, self.serial, self.port, LONG_PATIENCE)
        self.shell(f"{BINARY} restore --flight >/dev/null 2>&1; rm -rf {SESSIONS}")
        # The kernel makes its buffers at the first recording after a boot, and no one can unmake them.
        self.shell(f"{BINARY} record sched -t 50ms -o {DIR}/first.dat >/dev/null 2>&1; rm -f {DIR}/first.dat")
        self.usual = self.look()["settings"]

    def is_known(self, job, end):
        """Whether it is known what the command sends without a cut. On a busy machine it may take too long, once."""
        for _ in range(3):
            if job.marks.get(end):
                return True
            problems = self.run(job, end, None, 0.0)
            if problems:
                job.marks.pop(end, None)
                self.say(f"{job.name} fails without a cut: {problems}")
        return bool(job.marks.get(end))

    def cuts(self):
        """How often the cable was cut while a command ran."""
        return sum(row["cuts"] for row in self.table.values())

    def is_over(self, began):
        """Whether enough was cut."""
        if self.options.minutes:
            return time.monotonic() - began > self.options.minutes * 60
        return self.cuts() >= self.options.count

    def print_table(self):
        """Prints the table as text that Markdown understands."""
        print("| command, and where it was cut | " + " | ".join(COLUMNS) + " |")
        print("| --- |" + " ---: |" * len(COLUMNS))
        total = collections.Counter()
        for kind, row in sorted(self.table.items()):
            print(f"| {kind} | " + " | ".join(str(row[c]) for c in COLUMNS) + " |")
            total.update(row)
        print("| all | " + " | ".join(str(total[c]) for c in COLUMNS) + " |", flush=True)


def run_campaign(binary, options, say):
    """Cuts the cable of the device `options.cable`. Returns the exit status."""
    campaign = Campaign(binary, options.cable, options, say)
    try:
        status = campaign.go()
    except KeyboardInterrupt:
        status = 1
    campaign.print_table()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"seed": options.seed, "cuts": campaign.table, "failures": campaign.failures}, file, indent=1)
    say(f"{campaign.cuts()} cuts, {len(campaign.failures)} failures, seed {options.seed}")
    if not options.keep:
        shutil.rmtree(campaign.place, ignore_errors=True)
    return 1 if status or campaign.failures else 0
