"""Runs one command with one fault, and keeps what is to be judged."""

import contextlib
import fcntl
import os
import resource
import select
import shutil
import signal
import stat
import subprocess
import time

from jobs import OLD, read_counts

# A command that is told to end does so at once. More than a second is counted, because the load of the machine
# may be the reason; more than this is a failure, and much less than what the command would take by itself.
SLOW_SECONDS = 1.0
MAX_SECONDS_TO_END = 120.0
SECONDS_WITHOUT_END = 6000
# `launch` waits 30 s for a method trace, which never comes where the disk is full.
MAX_SECONDS = 240.0
# The processes that a command has started are given this time to end; none of them ends by itself so soon.
MAX_SECONDS_TO_FOLLOW = 60.0
VICTIM = b"a file that no command has been told of\n"


def contents(path):
    """The bytes of a regular file; None if there is none."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def members(session, before):
    """The processes of a session that started before this time of CLOCK_MONOTONIC, and what they are called.
    A later one is another's, which got the same id."""
    found = {}
    to_boottime = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    try:
        os.killpg(session, 0)
    except OSError:
        return found
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK") - to_boottime
        if int(fields[3]) == session and fields[0] not in "ZX" and started <= before:
            found[int(pid)] = f"{name} ({fields[0]})"
    return found


class Run:
    """One command, one fault, one directory."""

    def __init__(self, job, fault, choose, setup):
        self.job, self.fault, self.choose = job, fault, choose
        self.binary, self.shim, self.tracefs = setup.binary, setup.shim, setup.tracefs
        self.directory = setup.fresh_directory()
        self.setup = setup
        self.state = "state"
        self.limits, self.problems = [], []
        self.reader = self.reader_bytes = None
        self.process = self.struck_at = None
        self.is_slow = False
        self.had_old = choose.random() < 0.5

    def prepare(self):
        """Makes the directory, and arms the fault."""
        for name in ("in", "out", "state"):
            os.makedirs(f"{self.directory}/{name}", mode=0o700)
        for name in self.job.inputs:
            shutil.copy(f"{self.setup.inputs}/{name}", f"{self.directory}/in/{name}")
        with open(f"{self.directory}/victim", "wb") as file:
            file.write(VICTIM)
        self.plain_env = self.setup.env(self.directory)
        self.env = {**self.plain_env, "LD_PRELOAD": self.shim, "FAULTS_DONE": f"{self.directory}/done"}
        self.place_old()
        if self.fault:
            self.fault.arm(self)

    def place_old(self):
        """Puts older files where the outputs go, in half of all runs."""
        for name in self.job.outputs if self.had_old and not self.job.is_stream else ():
            with open(f"{self.directory}/{name}", "wb") as file:
                file.write(OLD)

    def command(self):
        """The command line of this run: a command that is to be ended at a moment goes on for long."""
        words = self.job.command(self.binary)
        if self.job.kind == "recording":
            words = [self.state if word == "state" else word for word in words]
            # A signal at a call comes with that call, which may be at the command's end.
            if self.fault and self.fault.must_end and self.fault.moment is not None and "-t" in words:
                words[words.index("-t") + 1] = str(SECONDS_WITHOUT_END)
        return words

    def is_running(self):
        """Whether the command has not ended."""
        return self.process.poll() is None

    def signal(self, number):
        """Sends the command a signal; returns whether the command was running."""
        if not self.is_running():
            return False
        # A shell and its command get the signal together, as from a terminal.
        to_all = getattr(self.job, "program", None) or number == signal.SIGSTOP or number == signal.SIGCONT
        try:
            (os.killpg if to_all else os.kill)(self.process.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _limit(self):
        for kind, value in self.limits:
            resource.setrlimit(kind, (value, value))

    def start(self):
        """Starts the command."""
        is_stream = self.reader or self.job.is_stream
        stdout = subprocess.PIPE if is_stream else open(f"{self.directory}/stdout", "wb")
        with open(f"{self.directory}/stderr", "wb") as stderr:
            self.began = time.monotonic()
            self.process = subprocess.Popen(
                self.command(), cwd=self.directory, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=stderr, start_new_session=True, preexec_fn=self._limit if self.limits else None)
        self.pipe = self.process.stdout
        self.sink = None
        if self.pipe:
            fcntl.fcntl(self.pipe, fcntl.F_SETFL, os.O_NONBLOCK)
            # A command that has filled the pipe already keeps the larger one.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, 4096 if self.reader else 65536)
            name = self.job.output if self.job.kind == "recording" else "stdout"
            self.sink = open(f"{self.directory}/{name}", "wb")
        else:
            stdout.close()

    def pump(self, at_end=False):
        """Takes what the command has written to standard output."""
        taken = 0
        while self.pipe:
            if self.reader in ("gone", "stalled") and self.sink.tell() >= self.reader_bytes and not at_end:
                if self.reader == "gone":
                    self.pipe.close()
                    self.pipe = None
                return
            piece = self.pipe.read(4096 if self.reader else 1 << 16)
            if not piece:
                return
            self.sink.write(piece)
            taken += len(piece)
            if self.reader == "slow" and taken >= 16384 and not at_end:
                return

    def wait(self):
        """Waits for the end of the command, and injects the fault at its moment."""
        fault = self.fault
        moment = None if not fault or fault.moment is None else self.began + fault.moment * (
            self.job.seconds if fault.kind != "reader stalled, SIGTERM" else 1)
        give_up = self.began + MAX_SECONDS
        stop_at = self.began + self.job.seconds if self.job.until_signal else None
        pause = 0.0005
        while self.is_running():
            now = time.monotonic()
            if moment is not None and now >= moment:
                fault.has_struck = fault.strike(self)
                moment, self.struck_at = None, time.monotonic()
                if fault.must_end and fault.has_struck:
                    give_up = self.struck_at + MAX_SECONDS_TO_END
            if moment is None and self.struck_at is None and fault and os.path.exists(self.env["FAULTS_DONE"]):
                self.struck_at = now
                if fault.must_end and (fault.signals and not fault.kills):
                    give_up = now + MAX_SECONDS_TO_END
            # A fault that is to end the command may not come: the call is not made this time.
            patience = 2.0 if fault and fault.must_end else 0.0
            if stop_at is not None and now > stop_at + patience and not (patience and self.struck_at):
                stop_at = None
                self.signal(signal.SIGINT)
            if now > give_up:
                self.problems.append(f"still runs {now - (self.struck_at or self.began):.1f} s after the fault")
                self.process.kill()
                self.process.wait()
                break
            self.pump()
            # A reader in order takes what comes at once.
            if self.pipe and not self.reader:
                select.select([self.pipe], [], [], pause)
            else:
                time.sleep(pause)
            pause = min(pause * 1.2, 0.01)
        self.ended = time.monotonic()
        self.status = self.process.returncode
        if fault and fault.must_end and self.struck_at and self.ended - self.struck_at > SLOW_SECONDS:
            self.is_slow = True
        self.pump(at_end=True)
        if self.pipe:
            self.pipe.close()
        if self.sink:
            self.sink.close()
        if fault and not fault.has_struck:
            fault.has_struck = os.path.exists(self.env["FAULTS_DONE"])
        self._check_group()

    def end(self):
        """Ends the command if it still runs, because this program was interrupted."""
        if self.process and self.is_running():
            self.process.kill()
            self.process.wait()
            for pid in members(self.process.pid, time.monotonic()):
                os.kill(pid, signal.SIGKILL)

    def _check_group(self):
        """Nothing that the command has started may go on."""
        end = time.monotonic() + MAX_SECONDS_TO_FOLLOW
        while left := members(self.process.pid, self.ended):
            if time.monotonic() > end:
                break
            time.sleep(0.01)
        # A child of a command that was killed at once goes on, as everywhere.
        if left and not (self.fault and self.fault.kills and self.status < 0):
            self.problems.append(f"something that it has started still runs: {', '.join(left.values())}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)

    def other(self, arguments, timeout=200):
        """Runs another command of the product, without a fault."""
        words = [self.state if word == "state" else word for word in arguments]
        return subprocess.run([self.binary, *words], cwd=self.directory, env=self.plain_env, timeout=timeout,
                              capture_output=True, stdin=subprocess.DEVNULL)

    def text(self, name):
        """The text of a file of the run's directory."""
        try:
            with open(f"{self.directory}/{name}", "rb") as file:
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def find_calls(self):
        """Runs a recording command without a fault, to count its calls."""
        self.env["FAULTS_COUNTS"] = f"{self.directory}/counts"
        for words in self.job.before:
            self.other(words)
        self.start()
        self.wait()
        for words in self.job.after:
            self.other(words)
        self.job.calls = read_counts(self.env["FAULTS_COUNTS"])
        self.job.seconds = max(self.job.seconds, self.ended - self.began)

    def find_reference(self):
        """Runs a command on files without a fault. Returns its status and what it wrote, and counts its calls."""
        counts = self.env["FAULTS_COUNTS"] = f"{self.directory}/counts"
        self.start()
        self.wait()
        self.job.calls, self.job.seconds = read_counts(counts), self.ended - self.began
        written = {name: contents(f"{self.directory}/{name}") for name in self.job.outputs}
        return self.status, contents(f"{self.directory}/stdout"), written
