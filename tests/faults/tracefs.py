"""The machine's tracefs: the settings that tracebridge changes, their baseline, and the lock that keeps other
tests away."""

import contextlib
import fcntl
import os
import subprocess
import time

# In the name of every directory of a run of tests, and in its mounts and instances.
RUN_PREFIX = "tracebridge-test-"
INSTANCE = f"{RUN_PREFIX}faults-{os.getpid()}"
# Longest wait for other tests, which let others have the tracefs after each recording or a few of them.
TURN_SECONDS = 1800
# Files at the top of the buffer that are no settings: the trace, counts, lists, and files that only take writes.
NO_SETTINGS = {
    "trace", "trace_pipe", "trace_marker", "trace_marker_raw", "free_buffer", "stats", "saved_cmdlines",
    "saved_tgids", "README", "available_events", "available_filter_functions",
    "available_filter_functions_addrs", "available_tracers", "printk_formats", "error_log", "snapshot",
    "touched_functions", "enabled_functions", "dyn_ftrace_total_info", "function_profile_enabled",
    "buffer_total_size_kb", "buffer_subbuf_size_kb", "timestamp_mode", "user_events_status", "user_events_data",
    "stack_max_size", "stack_trace", "set_ftrace_notrace_pid", "kprobe_profile", "uprobe_profile",
}
# Groups of events whose every event is looked at; of the others the group's own `enable` is.
GROUPS = ("sched", "irq", "raw_syscalls", "task")
# Settings of the baseline that are not the kernel's own values, so that restoring differs from resetting.
UNUSUAL = {
    "trace_clock": "mono", "buffer_size_kb": "1600", "options/overwrite": "0", "tracing_on": "0",
    "events/irq/softirq_raise/enable": "1",
}


def read(path):
    """The text of a file, or None."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(1 << 16).decode(errors="replace").strip()
    except OSError:
        return None


def write(path, text):
    """Writes to a setting; returns whether the kernel accepted the value."""
    try:
        fd = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def value_of(shown):
    """What has to be written to a setting for it to show this text."""
    if "[" in shown and "]" in shown:
        return shown.split("[", 1)[1].split("]", 1)[0]
    # A buffer that was never used shows the size that it will have: `7 (expanded: 1408)`.
    if "(expanded: " in shown:
        return shown.split("(expanded: ", 1)[1].rstrip(")")
    # A remark stands for the filter of a group, or for an empty list.
    if shown.startswith("#"):
        return "0" if shown.startswith("### global filter") else ""
    return "0" if shown == "none" else shown


class Tracefs:
    """A mounted tracefs."""

    def __init__(self, root):
        self.root = root
        self.files = self._settings()
        # The lock of this directory keeps all test programs on this kernel apart: it is that of every mount
        # (tests/tracefs/tracefs_fixture.rs).
        self.directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    @staticmethod
    def find(place):
        """The tracefs of this machine, mounted in `place` if it is not; None without root or without a tracefs."""
        if os.geteuid() != 0:
            return None
        with open("/proc/self/mounts") as mounts:
            for line in mounts:
                words = line.split(" ")
                # What another run of tests has mounted goes when that ends.
                if words[2] == "tracefs" and RUN_PREFIX not in words[1] and os.access(words[1] + "/tracing_on", os.W_OK):
                    return Tracefs(words[1])
        root = os.path.join(place, "tracefs")
        os.makedirs(root)
        if subprocess.run(["mount", "-t", "tracefs", "nodev", root], capture_output=True, timeout=60).returncode:
            return None
        return Tracefs(root)

    def _settings(self):
        names = [n for n in os.listdir(self.root) if os.path.isfile(f"{self.root}/{n}") and n not in NO_SETTINGS]
        names += [f"options/{n}" for n in os.listdir(self.root + "/options")]
        names += [f"per_cpu/{n}/buffer_size_kb" for n in os.listdir(self.root + "/per_cpu")]
        for group in os.listdir(self.root + "/events"):
            names.append(f"events/{group}/enable" if group != "enable" else "events/enable")
            if group in GROUPS:
                for event in os.listdir(f"{self.root}/events/{group}"):
                    names += [f"events/{group}/{event}/{file}" for file in ("enable", "filter", "trigger")]
        return sorted(n for n in names if os.access(f"{self.root}/{n}", os.R_OK) and self._can_be_read(n))

    def _can_be_read(self, name):
        return read(f"{self.root}/{name}") is not None

    def settings(self):
        """Every setting and its value; a further entry tells of the campaign's instance."""
        values = {name: read(f"{self.root}/{name}") for name in self.files}
        values["instances"] = str(os.path.isdir(self.instance()))
        return values

    def instance(self):
        """The directory of the campaign's instance."""
        return f"{self.root}/instances/{INSTANCE}"

    def differences(self, before):
        """The settings that differ now: {name: (before, now)}."""
        now = self.settings()
        return {name: (before[name], now[name]) for name in now if before.get(name) != now[name]}

    def put_back(self, before):
        """Writes the old values of all settings that differ."""
        with contextlib.suppress(OSError):
            os.rmdir(self.instance())
        if read(self.root + "/current_tracer") != "nop":
            write(self.root + "/current_tracer", "nop")
        for _ in range(3):
            changed = self.differences(before)
            # A buffer's own size comes before the sizes of its CPUs, an event's own state after its group's.
            for name, (value, _) in sorted(changed.items(), key=lambda item: item[0].count("/")):
                if value not in (None, "X") and name != "instances":
                    write(f"{self.root}/{name}", value_of(value))
            if not changed:
                return

    def make_unusual(self):
        """Expands the buffer, and sets the settings of UNUSUAL."""
        for name, value in UNUSUAL.items():
            write(f"{self.root}/{name}", value)


@contextlib.contextmanager
def alone(directory, paths):
    """Holds the lock of this machine's tracefs, and others: of files, or of directories as that of a tracefs."""
    with contextlib.ExitStack() as stack:
        files = [] if directory is None else [directory]
        for path in paths:
            files.append(os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT, 0o666))
            stack.callback(os.close, files[-1])
        for file in files:
            lock(file)
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield


def lock(file):
    """Waits for a lock."""
    end = time.monotonic() + TURN_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(f"waited {TURN_SECONDS} s for other tests: see /proc/locks") from None
            time.sleep(0.01)
