"""What must hold after a fault."""

import json
import os
import re
import signal
import zlib

from capture import events_on_disk
from jobs import OLD
from run import VICTIM, contents

# Begins the numbered markers that some faults write.
MARK = "faults mark "
# The names of unfinished outputs that a SIGKILL may leave.
PART = re.compile(r"^\..+\.[0-9a-f]{8,}\.part$")
STATE_PART = re.compile(r"^tracebridge-[0-9a-f]{8,}\.part$")


class Verdict:
    """What became of the outputs and of the settings."""

    def __init__(self):
        # One of: whole, old kept, absent, says what it lacks.
        self.output = "absent"
        # None for a command that changes no settings; else: at once, by restore.
        self.settings = None


def judge_ending(run):
    """The status, the messages, and what is left beside the outputs. These hold for every command."""
    fault, status, said = run.fault, run.status, run.text("stderr")
    for sign in ("panicked at", "overflowed its stack"):
        if sign in said:
            run.problems.append(f"panic: {said[:300]!r}")
            break
    shell_like = 128 + (-status if status < 0 else status - 128)
    by_signal = status < 0 or status > 128
    if by_signal:
        number = shell_like - 128
        if number not in [s.value for s in fault.signals]:
            run.problems.append(f"ended by signal {number}: {said[-200:]!r}")
        elif number == signal.SIGABRT and "memory allocation" not in said and "out of memory" not in said:
            run.problems.append(f"aborted: {said[-200:]!r}")
    elif status not in (0, 1, 3):
        run.problems.append(f"exit status {status}: {said[-200:]!r}")
    # AOSP's atrace ends with 1 and without a word when a signal has ended the trace.
    is_silent = run.job.name.startswith("atrace") and (fault.signals or run.job.until_signal)
    # `info --json` has its errors in the JSON.
    said += run.text("stdout") if run.job.name == "info" else ""
    if status == 1 and not said.strip() and "print" not in fault.details and not is_silent:
        run.problems.append("exit status 1 without a message")
    if contents(f"{run.directory}/victim") != VICTIM:
        run.problems.append("a file that is none of its outputs was changed")
    killed = status == -signal.SIGKILL or (fault.kills and by_signal)
    expected = {os.path.basename(name) for name in run.job.outputs} | {"stop.dat", "end.txt", "x.trace", "start.dat"}
    names = os.listdir(f"{run.directory}/out") if os.path.isdir(f"{run.directory}/out") else []
    for name in sorted(set(names) - expected):
        unlink_failed = "unlink" in fault.details or fault.kind == "disk pulled"
        if name.startswith("tracebridge") or name.endswith(".saved"):
            continue
        if not ((killed or unlink_failed) and PART.match(name)):
            run.problems.append(f"left behind: out/{name}")


def judge_files(run):
    """The outputs of a command on files: each is whole, or as it was."""
    job, fault, verdict = run.job, run.fault, Verdict()
    judge_ending(run)
    states = set()
    for name in job.outputs:
        found, whole = contents(f"{run.directory}/{name}"), job.whole[name]
        if found == whole:
            states.add("whole")
        elif found == OLD and run.had_old:
            states.add("old kept")
        elif found is None:
            states.add("absent")
            if run.had_old and not fault.changes_output:
                run.problems.append(f"{name}: the old file is gone")
        elif fault.changes_output and found == VICTIM:
            states.add("absent")
        elif fault.changes_input and run.status in (0, 3):
            states.add("whole" if readable(run, name) else "unreadable")
        else:
            run.problems.append(f"{name}: {len(found)} of {len(whole)} bytes, status {run.status}")
    if "unreadable" in states:
        run.problems.append("an output that was reported as written cannot be read")
    judge_stdout(run, states)
    if run.status in (0, job.status) and not states <= {"whole"} and not fault.changes_output and run.reader != "gone":
        run.problems.append(f"status {run.status}, but the output is {states}")
    if fault.is_harmless and run.status != job.status:
        run.problems.append(f"status {run.status} after a fault that does no harm: {run.text('stderr')[-200:]!r}")
    for state in ("old kept", "absent", "says what it lacks", "whole"):
        if state in states:
            verdict.output = state
            break
    return verdict


def judge_stdout(run, states):
    """What went to standard output is the beginning of what belongs there."""
    job = run.job
    if job.outputs:
        return
    found = contents(f"{run.directory}/stdout") or b""
    if found == job.stdout:
        states.add("whole")
    elif run.fault.changes_input:
        states.add("whole" if run.status in (0, 3) else "says what it lacks")
    elif job.stdout.startswith(found):
        # The exit status or the signal says that it is not all.
        states.add("says what it lacks" if found else "absent")
        if run.status in (0, 3) and run.reader != "gone":
            run.problems.append(f"status {run.status} with {len(found)} of {len(job.stdout)} bytes on stdout")
    elif "print" in run.fault.details or found.startswith(b'{"error":'):
        states.add("says what it lacks")
    else:
        run.problems.append("standard output is not the beginning of what belongs there")


def readable(run, name):
    """Whether an output of changed inputs is in order: the product's own reader opens the formats that it reads."""
    if not name.endswith((".pftrace", ".dat", ".txt")):
        return True
    return run.other(["info", name]).returncode in (0, 1, 3)


def judge_recording(run, before):
    """The settings, and the capture."""
    job, fault, verdict = run.job, run.fault, Verdict()
    judge_ending(run)
    verdict.output = judge_text(run) if job.text else judge_capture(run)
    if not job.is_start:
        verdict.settings = judge_settings(run, before)
    # What has not started, or was taken over, cannot be stopped: atrace --async_stop would then set the kernel's
    # own values.
    if (job.before or run.status == 0) and "--force" not in fault.kind:
        for words in job.after:
            run.other(words)
    if job.is_start:
        verdict.settings = judge_settings(run, before)
    # On a machine that is busy, the reader may not get the processor within the second that it has at the end.
    lacks_time = job.is_stream and "the stream lacks its end" in run.text("stderr")
    is_asked = job.until_signal or run.reader and fault.must_end
    if fault.is_harmless and run.status not in (0, 3) and not (lacks_time or is_asked):
        run.problems.append(f"status {run.status} after a fault that does no harm: {run.text('stderr')[-300:]!r}")
    return verdict


def judge_settings(run, before):
    """The settings are as before, at once or by `restore`."""
    fault = run.fault
    changed = differences(run, before)
    left = saved_files(run)
    if not changed and not left:
        return "at once"
    # A command that could not put its settings back, or its record away, says so and keeps the record.
    excused = fault.kills or "FAULTS_RULE" in run.env or run.limits or run.job.is_flight or run.status == -9
    said = run.text("stderr") + run.text("stdout")
    excused = excused or "not put back" in said or "record" in fault.kind
    if not excused:
        run.problems.append(f"not put back at once: {changed or left}")
    flight = ["--flight"] if run.job.is_flight else []
    restored = run.other(["restore", "--state-dir", "state", *flight])
    changed, left = differences(run, before), saved_files(run)
    if changed:
        told = (restored.stdout + restored.stderr)[-300:]
        run.problems.append(f"settings left, also by restore (status {restored.returncode}, {told!r}): {changed}")
    elif left:
        run.problems.append(f"restore leaves {left}: {(restored.stdout + restored.stderr)[-300:]!r}")
    return "by restore"


def differences(run, before):
    """The settings that differ, apart from those that the fault itself has changed."""
    changed = run.tracefs.differences(before)
    foreign = set(run.fault.foreign)
    return {name: values for name, values in changed.items() if name not in foreign}


def saved_files(run):
    """What is left in the directory of saved settings."""
    place = f"{run.directory}/{run.state}"
    if not os.path.isdir(place):
        return []
    found = [os.path.join(at, name) for at, _, names in os.walk(place) for name in names]
    if run.status == -signal.SIGKILL:
        # A kill between two calls may leave the new file before it has taken the old one's name.
        found = [path for path in found if not STATE_PART.match(os.path.basename(path))]
    return [os.path.relpath(path, place) for path in found if "saved" in path or (run.state == "state")]


def judge_text(run):
    """The text of atrace."""
    if not run.job.output:
        return "absent"
    found = contents(f"{run.directory}/{run.job.output}")
    if found is None or (not found and run.status != 0):
        return "absent"
    if found == OLD:
        return "old kept" if run.status != 0 else fail(run, "status 0, and the old text is there")
    _, mark, text = found.partition(b"TRACE:\n")
    whole = bool(mark) and (text.endswith(b"\n") or not text) or "--stream" in run.job.arguments
    if "-z" in run.job.arguments and mark:
        unpack = zlib.decompressobj()
        try:
            unpack.decompress(text)
        except zlib.error:
            pass
        whole = unpack.eof
    if whole:
        return "whole"
    if run.status == 0 and run.reader != "gone":
        return fail(run, "status 0, and the text is cut")
    if not run.job.is_stream:
        return fail(run, f"status {run.status}, and half a text of {len(found)} bytes is under the output's name")
    return "says what it lacks"


def fail(run, problem):
    """Notes a problem; the output then counts as absent."""
    run.problems.append(problem)
    return "absent"


def judge_capture(run):
    """The capture holds every event that its pages on the disk hold, and says whether it is all."""
    job, fault = run.job, run.fault
    if not job.output:
        return "absent"
    path = f"{run.directory}/{job.output}"
    if fault.changes_output or not os.path.lexists(path):
        if run.status == 0 and not fault.changes_output:
            return fail(run, "status 0 without a capture")
        return "absent"
    with open(path, "rb") as file:
        begins = file.read(len(OLD) + 1)
    if begins == OLD:
        return "old kept" if run.status != 0 or job.passes_status else fail(run, "status 0, and the old file is there")
    if not begins and run.status != 0:
        # A stream that has not begun; a capture is never empty.
        return "absent" if job.is_stream else fail(run, "an empty capture")
    info = run.other(["info", "--json", job.output])
    if info.returncode not in (0, 3):
        if job.is_stream and os.path.getsize(path) < 1 << 21 and run.status != 0:
            # The head of a stream did not arrive whole: the reader says so with an error.
            return "says what it lacks"
        return fail(run, f"info: status {info.returncode}: {info.stderr[-300:]!r} (status {run.status})")
    read = json.loads(info.stdout)
    on_disk = events_on_disk(path)
    # The status of `wrap` is that of the command it ran: that the recording failed is said on stderr alone.
    succeeded = run.status == 0 and not (job.passes_status and "tracebridge: the recording: " in run.text("stderr"))
    # While the recorder closes the holes of the file, only the product's reader knows where all pages are.
    if on_disk is not None and (on_disk > read["events"] or succeeded and on_disk != read["events"]):
        return fail(run, f"{on_disk} events on the disk, {read['events']} read")
    summary = summary_of(run)
    if succeeded and summary and not job.is_stream:
        recorded = sum(cpu["events"] for cpu in summary["cpus"])
        if recorded != read["events"]:
            return fail(run, f"{recorded} events recorded, {read['events']} read")
    if fault.writes_marks and job.keeps_all:
        judge_marks(run, read, info.returncode)
    if run.status in (-9, 137):
        return judge_unfinished(run, read, info.returncode)
    return "whole" if succeeded and info.returncode == 0 else "says what it lacks"


def judge_marks(run, read, status):
    """What is missing between the first and the last marker is told."""
    written = run.other(["convert", run.job.output, "--format", "txt", "-o", "-"])
    numbers = {int(number) for number in re.findall(rf"{MARK}(\d+)".encode(), written.stdout)}
    missing = max(numbers) - min(numbers) + 1 - len(numbers) if numbers else 0
    told = read["lost"]
    if missing and not told and status != 3:
        run.problems.append(f"{missing} of {len(numbers) + missing} markers are missing, and nothing says so")
    run.fault.details += f", {len(numbers)} markers, {missing} missing, {told} told"


def judge_unfinished(run, read, status):
    """A capture whose recorder was killed says so, unless it was complete already."""
    said = json.dumps(read["report"])
    if status == 3:
        return "says what it lacks"
    if "killed" in said or "unfinished" in said:
        return "says what it lacks"
    # A compressed capture has its name only when it is whole, and a stream that lacks its end was judged above.
    if run.job.is_stream or "v7" in read["format"] or b'"complete":true' in head_of(f"{run.directory}/{run.job.output}"):
        return "whole"
    return fail(run, "the capture of a killed recorder does not say what it lacks")


def head_of(path):
    """The first 2 MB of a file."""
    with open(path, "rb") as file:
        return file.read(2 << 20)


def summary_of(run):
    """The summary that a recorder printed as JSON; None without one."""
    for name in ("stdout", "stderr"):
        for line in run.text(name).splitlines():
            if line.startswith("{"):
                try:
                    return json.loads(line)
                except ValueError:
                    return None
    return None
