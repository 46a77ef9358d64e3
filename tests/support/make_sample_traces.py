"""Writes a Perfetto trace of samples of all kinds with Perfetto's own classes, and prints what it holds: one JSON array
a line for each sample that can be read: event type, time of BOOTTIME, process, thread, CPU, weight, and the names of
the functions, the outermost first; then an object with the counts of what cannot be read.

usage: make_sample_traces.py OUT SEED"""

import json
import random
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p

out, seed = sys.argv[1:]
chosen = random.Random(int(seed))
trace = p.Trace()
samples = []
counts = {"lost": 0, "throttled": 0}
CLEARED, NEEDS = 1, 2
MONOTONIC, BOOTTIME = 3, 6
# BOOTTIME is ahead of MONOTONIC by this.
AHEAD = 5_000_000
clocks = trace.packet.add(trusted_packet_sequence_id=1).clock_snapshot
for clock, time in ((MONOTONIC, 1_000_000_000), (BOOTTIME, 1_000_000_000 + AHEAD)):
    clocks.clocks.add(clock_id=clock, timestamp=time)
tree = trace.packet.add(trusted_packet_sequence_id=1).process_tree
tree.processes.add(pid=100, cmdline=["com.example.app"])
tree.threads.add(tid=101, tgid=100, name="worker")
tree.threads.add(tid=109, tgid=100, name="named alone")

# Names and the file of each function; those without a name are named by their place, or by ModuleSymbols.
LIBRARY, KERNEL, DEX, SYMBOLISED = "/system/lib64/libx.so", "/kernel", "/data/app/~~q==/com.example.app-w==/base.apk", "/vendor/liby.so"
FUNCTIONS = [
    ("main", LIBRARY, 0x10, ["main"]),
    ("", LIBRARY, 0x20, ["libx.so+0x20"]),
    ("do_syscall_64", KERNEL, 0x30, ["do_syscall_64"]),
    ("a.b", DEX, 0x40, ["com.example.Real.run"]),
    ("a.c", DEX, 0x44, ["com.example.Real.stop"]),
    ("a.unknown", DEX, 0x48, ["com.example.Real.unknown"]),
    ("", SYMBOLISED, 0x50, ["outer", "inlined"]),
    ("", "", 0x60, ["[unknown]+0x60"]),
]
symbols = trace.packet.add(trusted_packet_sequence_id=1).module_symbols
symbols.path = SYMBOLISED
symbols.build_id = "abc"
address = symbols.address_symbols.add(address=0x50)
address.lines.add(function_name="inlined")
address.lines.add(function_name="outer")


class Sequence:
    """A packet sequence with its interned data."""

    def __init__(self, number):
        self.number = number
        self.counted = {}
        self.clear()

    def clear(self):
        self.texts, self.frames, self.stacks = {}, {}, {}
        self.pending = p.InternedData()
        self.is_new = True
        # Ids begin anew, with other meanings than before.
        self.shift = chosen.randrange(1, 50)

    def packet(self, **fields):
        packet = trace.packet.add(trusted_packet_sequence_id=self.number, **fields)
        packet.sequence_flags = CLEARED | NEEDS if self.is_new else NEEDS
        self.is_new = False
        packet.interned_data.CopyFrom(self.pending)
        self.pending = p.InternedData()
        return packet

    def text(self, kind, text):
        key = (kind, text)
        if key not in self.texts:
            self.texts[key] = self.shift + len(self.texts)
            getattr(self.pending, kind).add(iid=self.texts[key], str=text.encode())
        return self.texts[key]

    def frame(self, number):
        if number not in self.frames:
            name, path, address, _ = FUNCTIONS[number]
            iid = self.frames[number] = self.shift + len(self.frames)
            frame = p.Frame(iid=iid, rel_pc=address)
            if name:
                frame.function_name_id = self.text("function_names", name)
            if path:
                mapping = self.pending.mappings.add(iid=iid + 1000)
                mapping.path_string_ids.extend(self.text("mapping_paths", part) for part in path[1:].split("/"))
                if path == SYMBOLISED:
                    mapping.build_id = self.text("build_ids", "abc")
                frame.mapping_id = iid + 1000
            self.pending.frames.add().CopyFrom(frame)
        return self.frames[number]

    def stack(self, numbers):
        key = tuple(numbers)
        if key not in self.stacks:
            iid = self.stacks[key] = self.shift + len(self.stacks)
            ids = [self.frame(number) for number in numbers]
            self.pending.callstacks.add(iid=iid).frame_ids.extend(ids)
        return self.stacks[key]


def functions(numbers):
    return [name for number in numbers for name in FUNCTIONS[number][3]]


def any_stack():
    return [chosen.randrange(len(FUNCTIONS)) for _ in range(chosen.randrange(1, 9))]


now = 2_000_000_000


def later():
    global now
    now += chosen.randrange(1, 5_000)
    return now


def perf(number, timebase, weight):
    """Samples of the data source linux.perf; `weight` says what a sample that counts so much more weighs."""
    sequence = Sequence(number)
    for _ in range(200):
        if sequence.is_new or chosen.random() < 0.03:
            sequence.clear()
        is_first = sequence.is_new
        what = chosen.random()
        cpu, pid, tid = chosen.randrange(4), 100, 100 + chosen.randrange(3)
        counted = chosen.randrange(1, 1000)
        time, stack = later(), any_stack()
        sum_before = sequence.counted.get(cpu, 0)
        sample = p.PerfSample(cpu=cpu, pid=pid, tid=tid, timebase_count=sum_before + counted)
        if what < 0.05:
            counts["lost"] += 3
            sample = p.PerfSample(cpu=cpu, kernel_records_lost=3)
        elif what < 0.1:
            counts["throttled"] += 1
            sample = p.PerfSample()
            sample.producer_event.source_stop_reason = 1
        else:
            sequence.counted[cpu] = sum_before + counted
            if what < 0.2:
                sample.sample_skipped_reason = chosen.choice([1, 2, 3, 4])
                counts["lost"] += sample.sample_skipped_reason != 4
            elif what < 0.25:
                # The callstack was never interned: the sample is there, without a stack.
                sample.callstack_iid = 9_999
                samples.append([timebase, time, pid, tid, cpu, weight(counted), []])
            elif what < 0.3:
                samples.append([timebase, time, pid, tid, cpu, weight(counted), []])
            else:
                sample.callstack_iid = sequence.stack(stack)
                samples.append([timebase, time, pid, tid, cpu, weight(counted), functions(stack)])
        packet = sequence.packet(timestamp=time)
        if is_first:
            base = packet.trace_packet_defaults.perf_sample_defaults.timebase
            base.name = timebase
            if timebase == "cpu-clock":
                base.frequency = 4000
            elif timebase == "page-faults":
                base.period = 7
            else:
                base.frequency = 100
        packet.perf_sample.CopyFrom(sample)


def streaming(number):
    sequence = Sequence(number)
    monotonic_us = 3_000_000 + number
    first = sequence.packet()
    first.thread_descriptor.pid, first.thread_descriptor.tid = 100, 101
    first.thread_descriptor.reference_timestamp_us = monotonic_us
    for _ in range(50):
        stacks = [any_stack() for _ in range(chosen.randrange(1, 5))]
        deltas = [chosen.randrange(0, 900) for _ in stacks]
        ids = [sequence.stack(stack) for stack in stacks]
        packet = sequence.packet()
        packet.streaming_profile_packet.callstack_iid.extend(ids)
        packet.streaming_profile_packet.timestamp_delta_us.extend(deltas)
        for stack, delta in zip(stacks, deltas):
            monotonic_us += delta
            samples.append(["chrome_sample", monotonic_us * 1000 + AHEAD, 100, 101, None, 1, functions(stack)])


def stack_samples(number, source):
    sequence = Sequence(number)
    for _ in range(200):
        if sequence.is_new or chosen.random() < 0.03:
            sequence.clear()
        is_first = sequence.is_new
        time, stack, weight = later(), any_stack(), chosen.randrange(1, 10_000)
        sample = p.StackSample(primary_weight=weight)
        event, factor, names = "wall", 1, functions(stack)
        pid, tid, cpu = 100, 101, None
        if chosen.random() < 0.5:
            sequence.pending.stack_sample_task_contexts.add(iid=5, pid=pid, tid=tid)
            sample.task_context_iid = 5
        elif chosen.random() < 0.5:
            # The trace says whose thread this is.
            tid = 109
            sample.task_context.tid = tid
        else:
            tid = 100
            sample.task_context.pid = pid
        if chosen.random() < 0.5:
            cpu = 2
            sequence.pending.stack_sample_execution_contexts.add(iid=8, cpu=cpu)
            sample.execution_context_iid = 8
        if chosen.random() < 0.3:
            names = ["module:main", "f<int>", "x.y"]
            for name in names:
                sample.callstack.frames.add(function_name=name)
        else:
            sample.callstack_iid = sequence.stack(stack)
        choice = chosen.random()
        if choice < 0.3:
            sequence.pending.stack_sample_counter_descriptors.add(
                iid=3, unit=p.StackSample.UNIT_BYTES, unit_multiplier=1024
            )
            sample.primary_descriptor_iid = 3
            event, factor = "bytes", 1024
        elif choice < 0.4:
            sample.primary_descriptor.unit_str = "widgets"
            event = "widgets"
        elif choice < 0.5:
            sample.ClearField("primary_weight")
            weight = 1
        packet = sequence.packet(timestamp=time)
        if is_first:
            defaults = packet.trace_packet_defaults.stack_sample_defaults
            defaults.source = source
            defaults.primary_descriptor.name = "wall"
            defaults.primary_descriptor.unit = p.StackSample.UNIT_NANOSECONDS
        packet.stack_sample.CopyFrom(sample)
        samples.append([event, time, pid, tid, cpu, weight * factor, names])


perf(2, "cpu-clock", lambda counted: 250_000)
perf(3, "page-faults", lambda counted: 7)
perf(4, "cpu-cycles", lambda counted: counted)
streaming(5)
stack_samples(6, "python.wall")
stack_samples(7, "chrome")
# A sequence whose first packet was lost: its packets cannot be read.
for _ in range(3):
    packet = trace.packet.add(trusted_packet_sequence_id=8, sequence_flags=NEEDS, timestamp=later())
    packet.perf_sample.callstack_iid = 1
    packet = trace.packet.add(trusted_packet_sequence_id=8, sequence_flags=NEEDS, timestamp=later())
    packet.stack_sample.task_context.tid = 101
    counts["lost"] += 2
mapping = trace.packet.add(trusted_packet_sequence_id=9).deobfuscation_mapping
mapping.package_name = "com.example.app"
mapped = mapping.obfuscated_classes.add(obfuscated_name="a", deobfuscated_name="com.example.Real")
for obfuscated, real in (("b", "run"), ("c", "stop")):
    mapped.obfuscated_methods.add(obfuscated_name=obfuscated, deobfuscated_name=real)
other = trace.packet.add(trusted_packet_sequence_id=9).deobfuscation_mapping
other.package_name = "com.example.other"
other.obfuscated_classes.add(obfuscated_name="a", deobfuscated_name="com.example.Wrong")
with open(out, "wb") as file:
    file.write(trace.SerializeToString())
for sample in samples:
    print(json.dumps(sample))
print(json.dumps(counts))
