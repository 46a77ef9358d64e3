"""The faults: each is armed before a command starts, and strikes at a moment while it runs."""

import contextlib
import errno
import functools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from checks import MARK
from tracefs import INSTANCE, read, write

# Signals by which a command may be ended in order.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
CPU1 = "/sys/devices/system/cpu/cpu1/online"


class Fault:
    """A fault of one kind. The attributes say what a command may do after it."""

    # The line of the table that this fault counts for.
    kind = ""
    # The kinds of jobs that this fault is for.
    jobs = ("files", "recording")
    # How often this fault is chosen, compared with the others.
    weight = 1
    # The command must do all that it does without the fault.
    is_harmless = False
    # The command cannot put anything in order any more.
    kills = False
    # Signals that may end the command.
    signals = ()
    # The command must end at once, also one that would go on for long.
    must_end = False
    # The inputs change, so the output is not that of the reference.
    changes_input = False
    # The output's directory or name is somebody else's now, so nothing is said about it.
    changes_output = False
    # Settings that another program has changed.
    foreign = ()
    # The fault is of the whole machine: only with --machine-wide.
    is_machine_wide = False
    # The fault needs a job whose attribute of this name is true.
    needs = None
    # Numbered markers are written meanwhile, so that what is missing of them can be compared with what is told.
    writes_marks = False

    def __init__(self, choose):
        self.choose = choose
        self.details, self.filler = "", None
        self.moment = choose.random() * 1.1
        self.has_struck = False

    def arm(self, run):
        """Prepares the fault before the command starts."""

    def strike(self, run):
        """Injects the fault into the running command; returns whether it did."""
        return False

    def disarm(self, run):
        """Cleans up after the command."""


class Signal(Fault):
    """A signal at a random moment."""

    weight = 4

    def strike(self, run):
        sent = self.number.name
        self.details = f"{sent} after {time.monotonic() - run.began:.3f} s"
        return run.signal(self.number)


def _signal(name, ending):
    number = getattr(signal, name)
    return type(name, (Signal,), {"kind": f"{name} at a moment", "number": number, "signals": (number,),
                                  "must_end": ending, "kills": not ending})


SIGNALS = [_signal("SIGKILL", False)] + [_signal(s.name, True) for s in ENDING]


class TwiceHup(Signal):
    """Two SIGHUP, as from a terminal and from its shell."""

    kind, number, signals, must_end, weight = "SIGHUP twice", signal.SIGHUP, (signal.SIGHUP,), True, 3

    def strike(self, run):
        first = super().strike(run)
        time.sleep(self.choose.random() * 0.01)
        run.signal(self.number)
        return first


class StopContinue(Fault):
    """SIGSTOP, and SIGCONT a moment later."""

    kind, is_harmless, weight = "SIGSTOP, SIGCONT", True, 3
    # The shortest and the longest pause, seconds.
    pauses = (0.02, 0.17)

    def strike(self, run):
        if not run.signal(signal.SIGSTOP):
            return False
        pause = self.choose.uniform(*self.pauses)
        self.details = f"stopped for {pause:.3f} s"
        time.sleep(pause)
        run.signal(signal.SIGCONT)
        return True


class Marked(Fault):
    """A fault of a recording, during which numbered markers are written."""

    jobs, writes_marks = ("recording",), True
    # Between two markers, seconds.
    pause = 0.001

    def arm(self, run):
        root = run.tracefs.instance() if run.job.uses_instance else run.tracefs.root
        self.has_ended = threading.Event()
        self.writer = threading.Thread(target=self.write_marks, args=(f"{root}/trace_marker",), daemon=True)
        self.writer.start()

    def write_marks(self, path):
        number = 0
        while not self.has_ended.wait(self.pause):
            # Before the recording and behind it the buffer takes none.
            number += write(path, f"{MARK}{number}\n")

    def disarm(self, run):
        self.has_ended.set()
        self.writer.join()


class LongStop(Marked, StopContinue):
    """SIGSTOP for longer than the buffer holds what a busy machine does."""

    kind, weight, pauses = "SIGSTOP, SIGCONT after 5 s", 1, (5.0, 5.0)


class Starved(Marked):
    """Busy loops are on every CPU from this moment on, and the command has lost its priority over them."""

    kind, is_harmless, weight, loops = "starved", True, 2, ()

    def strike(self, run):
        try:
            threads = [int(tid) for tid in os.listdir(f"/proc/{run.process.pid}/task")]
        except OSError:
            return False
        # That of the loops, which have it from this script.
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        for tid in threads:
            # A thread that has just ended has no priority.
            with contextlib.suppress(OSError):
                os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, tid, priority)
        # Should this script be killed, they end by themselves.
        loop = ["timeout", "60", "sh", "-c", "while :; do :; done"]
        self.loops = [subprocess.Popen(loop) for _ in range(8)]
        self.details = f"{len(threads)} threads, {len(self.loops)} busy loops"
        return run.is_running()

    def disarm(self, run):
        super().disarm(run)
        for loop in self.loops:
            loop.terminate()
            loop.wait()


class Call(Fault):
    """A call of the C library that fails, is short, or brings a signal: one of those that the command makes."""

    weight = 4
    calls = ()
    actions = ()
    sticks = False

    def arm(self, run):
        made = {call: count for call, count in run.job.calls.items() if call in self.calls and count > 0}
        if not made:
            self.moment = None
            return
        call = self.choose.choice(sorted(made))
        number = 1 + int(self.choose.random() * made[call])
        action = self.choose.choice(self.actions)
        on = ":on" if self.sticks and self.choose.random() < 0.5 else ""
        rule = f"{call}:{number}:{action}{on}"
        self.details = rule
        run.env["FAULTS_RULE"] = rule
        self.moment = None

    def happened(self, run):
        """Whether the call came."""
        return os.path.exists(run.env["FAULTS_DONE"])


def _call(kind, calls, actions, **more):
    codes = [getattr(errno, a) if a.startswith("E") else a for a in actions]
    return type("Call", (Call,), {"kind": kind, "calls": calls, "actions": codes, **more})


EVERY_CALL = ("open", "read", "pread", "write", "pwrite", "print", "fsync", "rename", "truncate", "fallocate",
              "unlink", "mkdir", "chmod", "poll")
MOVING_CALLS = ("read", "pread", "write", "pwrite", "print")
CALLS = [
    _call("EIO in a read", ("read", "pread"), ["EIO"], sticks=True),
    _call("EIO in a write", ("write", "pwrite", "print"), ["EIO"], sticks=True),
    _call("ENOSPC in a write", ("write", "pwrite", "print"), ["ENOSPC", "EDQUOT"], sticks=True),
    _call("EINTR", MOVING_CALLS + ("poll",), ["EINTR"], is_harmless=True),
    _call("a short read", ("read", "pread", "copy"), ["short"], is_harmless=True),
    _call("a short write", ("write", "pwrite", "print"), ["short"], is_harmless=True),
    _call("fsync fails", ("fsync",), ["EIO", "ENOSPC"]),
    _call("rename fails", ("rename",), ["EIO", "ENOSPC", "EACCES", "EXDEV"]),
    # Not EACCES and ENOENT: a setting that may not be written, or is gone, is given up (docs/recording.md).
    _call("open fails", ("open",), ["EMFILE", "ENFILE", "ENOMEM", "EIO"], sticks=True),
    _call("mmap fails", ("mmap",), ["ENOMEM", "ENODEV"]),
    _call("truncate, fallocate, copy fail", ("truncate", "fallocate", "copy"), ["EIO", "ENOSPC", "EOPNOTSUPP"]),
    _call("unlink, mkdir, chmod fail", ("unlink", "mkdir", "chmod"), ["EIO", "EPERM", "EROFS"]),
    _call("SIGKILL at a call", EVERY_CALL, [f"signal{signal.SIGKILL.value}"], kills=True, signals=(signal.SIGKILL,)),
    _call("SIGTERM at a call", EVERY_CALL, [f"signal{signal.SIGTERM.value}"], signals=(signal.SIGTERM,),
          must_end=True),
    _call("SIGHUP at a call", EVERY_CALL, [f"signal{signal.SIGHUP.value}"], signals=(signal.SIGHUP,), must_end=True),
]


class Limit(Fault):
    """A resource limit, in force from the start."""

    weight = 2

    def arm(self, run):
        self.value = self.choose_value(run)
        self.details = f"{self.kind} {self.value}"
        run.limits.append((self.resource, self.value))
        self.moment, self.has_struck = None, True


class FileSize(Limit):
    """A process may write files of this size only."""

    kind, resource = "RLIMIT_FSIZE", resource.RLIMIT_FSIZE

    def choose_value(self, run):
        largest = max([len(whole) for whole in getattr(run.job, "whole", {}).values()] + [4096])
        return int(self.choose.random() * (largest if run.job.kind == "files" else 3 << 20))


class OpenFiles(Limit):
    """A process may open this many files only."""

    kind, resource = "RLIMIT_NOFILE", resource.RLIMIT_NOFILE

    def choose_value(self, run):
        return self.choose.randrange(4, 24)


class Memory(Limit):
    """A process may have this much address space only. Rust ends a program that gets no memory by SIGABRT."""

    kind, resource, signals, kills = "RLIMIT_AS", resource.RLIMIT_AS, (signal.SIGABRT,), True

    def choose_value(self, run):
        return self.choose.randrange(least_memory(run.binary), 400) << 20


@functools.cache
def least_memory(binary):
    """The address space in MiB that the system's loader needs to start the program: below, nothing of it runs."""
    for mib in range(20, 200, 4):
        size = mib << 20
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (size, size))
        if not subprocess.run([binary, "--version"], capture_output=True, preexec_fn=limit, timeout=60).returncode:
            # Some more for a library that is preloaded.
            return mib + 8
    raise RuntimeError(f"{binary} does not start in 200 MiB")


class Disk(Fault):
    """The output's directory is a disk of its own."""

    weight, needs = 2, "outputs"

    def arm(self, run):
        run.disk = f"{run.directory}/out"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=0700,{self.options(run)}", "faults", run.disk],
                       check=True, timeout=60)
        run.place_old()
        self.after_mount(run)
        self.moment, self.has_struck = None, True

    def after_mount(self, run):
        """Changes the disk once it has its old files."""

    def disarm(self, run):
        if subprocess.run(["umount", run.disk], capture_output=True, timeout=60).returncode:
            subprocess.run(["umount", "-l", run.disk], check=True, timeout=60)


class FullDisk(Disk):
    """A disk that has no room for all of the output."""

    kind = "full disk"

    def options(self, run):
        largest = max([len(whole) for whole in getattr(run.job, "whole", {}).values()] + [4096])
        kb = 8 + int(self.choose.random() * (largest if run.job.kind == "files" else 2 << 20) / 1024)
        self.details = f"{kb} KB"
        if run.job.kind == "recording" and self.choose.random() < 0.5:
            # As on a phone, where saved settings and captures are in one directory.
            run.state = "out"
            self.details += ", with the saved settings"
        return f"size={kb}k"


class ReadOnlyDisk(Disk):
    """A disk that takes no writes."""

    kind = "read-only disk"

    def options(self, run):
        return "size=1m"

    def after_mount(self, run):
        subprocess.run(["mount", "-o", "remount,ro", run.disk], check=True, timeout=60)


class FilledDisk(Marked, Disk):
    """A disk that another program fills while the recording goes on."""

    kind, weight = "disk filled while recording", 2

    def options(self, run):
        if self.choose.random() < 0.5:
            run.state = "out"
            self.details = "with the saved settings, "
        return "size=24m"

    def arm(self, run):
        moment = self.moment
        Disk.arm(self, run)
        self.moment, self.has_struck = moment, False
        Marked.arm(self, run)

    def strike(self, run):
        self.details += f"after {time.monotonic() - run.began:.3f} s"
        is_running = run.is_running()
        # Without a name: the disk's directory stays as it is.
        self.filler = tempfile.TemporaryFile(dir=run.disk, buffering=0)
        with contextlib.suppress(OSError):
            while True:
                self.filler.write(bytes(1 << 16))
        return is_running

    def disarm(self, run):
        Marked.disarm(self, run)
        if self.filler:
            self.filler.close()
        Disk.disarm(self, run)


class PulledDisk(Disk):
    """A disk that is pulled out: an ext4 on a loop device whose blocks are gone from one moment on. What it held
    is gone too, so nothing is said about the outputs, and nothing can be removed from it."""

    kind, changes_output = "disk pulled", True

    def arm(self, run):
        run.disk, self.image = f"{run.directory}/out", f"{run.directory}/disk"
        with open(self.image, "wb") as image:
            image.truncate(24 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", self.image], check=True, timeout=60)
        subprocess.run(["mount", "-o", "loop,errors=remount-ro", self.image, run.disk], check=True, timeout=60)
        os.rmdir(f"{run.disk}/lost+found")
        run.place_old()

    def strike(self, run):
        self.details = f"after {time.monotonic() - run.began:.3f} s"
        os.truncate(self.image, 0)
        return run.is_running()


class Input(Fault):
    """An input changes while it is read."""

    jobs, changes_input, weight, needs = ("files",), True, 2, "inputs"

    def strike(self, run):
        path = f"{run.directory}/in/{self.choose.choice(run.job.inputs)}"
        size = os.path.getsize(path)
        self.details = f"{path} after {time.monotonic() - run.began:.3f} s"
        self.change(path, size)
        return run.is_running()


class Truncated(Input):
    """It is cut."""

    kind, weight = "input truncated", 4

    def change(self, path, size):
        os.truncate(path, int(size * self.choose.random()))


class Replaced(Input):
    """Another file takes its name."""

    kind = "input replaced"

    def change(self, path, size):
        with open(path + ".new", "wb") as file:
            file.write(self.choose.randbytes(size))
        os.rename(path + ".new", path)


class Grown(Input):
    """More is written to its end."""

    kind = "input grown"

    def change(self, path, size):
        with open(path, "ab") as file:
            file.write(self.choose.randbytes(5000))


class Overwritten(Input):
    """Its bytes become others."""

    kind = "input overwritten"

    def change(self, path, size):
        with open(path, "r+b") as file:
            file.seek(int(size * self.choose.random()))
            file.write(self.choose.randbytes(5000))


class DirectoryRemoved(Fault):
    """The output's directory is removed."""

    kind, changes_output, needs = "output directory removed", True, "outputs"

    def strike(self, run):
        shutil.rmtree(f"{run.directory}/out", ignore_errors=True)
        return run.is_running()


class TargetSymlink(Fault):
    """The output's name becomes a symbolic link to another file, which must stay as it is."""

    kind, changes_output, needs = "output becomes a symlink", True, "outputs"

    def strike(self, run):
        path = f"{run.directory}/{self.choose.choice(run.job.outputs)}"
        with contextlib.suppress(OSError):
            os.symlink(f"{run.directory}/victim", path + ".link")
            os.replace(path + ".link", path)
        return run.is_running()


class Reader(Fault):
    """What reads standard output."""

    weight = 6

    def arm(self, run):
        run.reader = self.reader
        run.reader_bytes = int(self.choose.random() * 60000)
        self.details = f"after {run.reader_bytes} bytes"
        self.moment, self.has_struck = None, True


class ReaderGone(Reader):
    """The reader closes the pipe."""

    kind, reader, signals = "reader gone", "gone", (signal.SIGPIPE,)


class ReaderStalled(Reader):
    """The reader stops reading; then the command is told to end."""

    kind, reader, must_end, signals = "reader stalled, SIGTERM", "stalled", True, (signal.SIGTERM,)

    def arm(self, run):
        super().arm(run)
        self.has_struck = False
        self.moment = 0.5 + self.choose.random()

    def strike(self, run):
        return run.signal(signal.SIGTERM)


class ReaderSlow(Reader):
    """The reader is slow."""

    kind, reader, is_harmless, weight = "reader slow", "slow", True, 3


class ClockStep(Fault):
    """The time of day is set forwards or back, and put back a moment later."""

    kind, is_machine_wide, is_harmless = "clock step", True, True

    def strike(self, run):
        step = self.choose.choice([-2.0, -0.5, 0.5, 2.0])
        self.details = f"{step:+} s"
        # CLOCK_MONOTONIC does not step: it tells what the time of day is without the step.
        before = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        try:
            time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + step)
            time.sleep(0.05)
        finally:
            time.clock_settime_ns(time.CLOCK_REALTIME, before + time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        return run.is_running()


class CpuOffline(Fault):
    """A CPU goes offline and comes back."""

    kind, is_machine_wide, is_harmless, jobs = "CPU offline", True, True, ("recording",)

    def strike(self, run):
        if not write(CPU1, "0"):
            return False
        try:
            time.sleep(0.05)
        finally:
            end = time.monotonic() + 60
            while read(CPU1) != "1" and time.monotonic() < end:
                write(CPU1, "1")
        return run.is_running()


class Foreign(Fault):
    """Another program changes the trace buffer."""

    jobs, weight = ("recording",), 3

    def strike(self, run):
        root = run.tracefs.instance() if run.job.uses_instance else run.tracefs.root
        self.value = self.choose.choice(self.values)
        self.details = f"{self.foreign[0]}={self.value}"
        return write(f"{root}/{self.foreign[0]}", self.value) and run.is_running()


class TracingOff(Foreign):
    """It switches tracing off."""

    kind, foreign, values = "tracing switched off by another", ("tracing_on",), ["0"]


class BufferResized(Foreign):
    """It gives the buffer another size."""

    kind, values = "buffer resized by another", ["900", "3000"]
    foreign = ("buffer_size_kb", "per_cpu/cpu0/buffer_size_kb", "per_cpu/cpu1/buffer_size_kb")


class StarvedResized(Starved):
    """Beside busy loops, another program gives the buffer another size, and then another one."""

    kind, is_harmless, foreign = "starved, and buffer resized by another", False, BufferResized.foreign

    def strike(self, run):
        starved = super().strike(run)
        sizes = self.choose.sample(BufferResized.values, 2)
        for size in sizes:
            write(f"{run.tracefs.root}/{self.foreign[0]}", size)
            time.sleep(self.choose.random() * 0.05)
        self.details += f", {self.foreign[0]}={', '.join(sizes)}"
        return starved


class ClockChanged(Foreign):
    """It changes the clock of the events."""

    kind, foreign, values = "trace clock changed by another", ("trace_clock",), ["local", "global"]


class InstanceRemoved(Fault):
    """Another program removes the instance, as far as the kernel lets it."""

    kind, jobs, needs, weight = "instance removed by another", ("recording",), "uses_instance", 20

    def strike(self, run):
        end = time.monotonic() + 0.1
        while run.is_running() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                os.rmdir(run.tracefs.instance())
                self.details = f"removed after {time.monotonic() - run.began:.3f} s"
                return True
        self.details = "the kernel refused"
        return True


class SecondRecorder(Fault):
    """Another recorder starts."""

    kind, jobs, weight, force = "second recorder", ("recording",), 4, []

    def strike(self, run):
        second = [run.binary, "record", "--tracefs", run.tracefs.root, "--state-dir", run.state, "sched", "-b", "64",
                  "-t", "0.05", "-o", "second.dat", *self.force]
        if run.job.uses_instance:
            second += ["--instance", INSTANCE]
        if not run.is_running():
            return False
        done = subprocess.run(second, cwd=run.directory, env=run.plain_env, capture_output=True, timeout=200)
        self.details = f"its exit status: {done.returncode}"
        if done.returncode not in (0, 1, 3) or b"panicked" in done.stderr:
            run.problems.append(f"the second recorder: status {done.returncode}: {done.stderr[-300:]!r}")
        return True


class SecondRecorderForce(SecondRecorder):
    """Another recorder starts and takes the buffer over. It ends the first one, and `wrap` then its command, by
    SIGTERM."""

    kind, force, weight, signals = "second recorder --force", ["--force"], 2, (signal.SIGTERM,)


FAULTS = SIGNALS + CALLS + [
    TwiceHup, StopContinue, LongStop, Starved, StarvedResized, FileSize, OpenFiles, Memory, FullDisk, FilledDisk,
    ReadOnlyDisk, PulledDisk,
    Truncated, Replaced, Grown, Overwritten, DirectoryRemoved, TargetSymlink, ReaderGone, ReaderStalled, ReaderSlow,
    ClockStep, CpuOffline, TracingOff, BufferResized, ClockChanged, InstanceRemoved, SecondRecorder,
    SecondRecorderForce,
]


def applies(fault, job, machine_wide):
    """Whether this fault can be injected into this command."""
    if job.kind not in fault.jobs or (fault.is_machine_wide and not machine_wide):
        return False
    if fault.needs and not getattr(job, fault.needs):
        return False
    if issubclass(fault, Reader):
        # Only output that goes to standard output has a reader.
        return job.is_stream if job.kind == "recording" else not job.outputs
    if issubclass(fault, Disk) and os.geteuid() != 0:
        return False
    if fault.needs == "outputs" and job.is_stream:
        return False
    # The settings that another has changed are those at the top.
    if fault.foreign == BufferResized.foreign and job.uses_instance:
        return False
    if issubclass(fault, Call):
        return job.kind == "recording" or any(job.calls.get(call) for call in fault.calls)
    return True
