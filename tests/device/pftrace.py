"""Prints what a Perfetto trace holds, decoded by Perfetto's own protobuf classes: one tab-separated line an event.

switch TS CPU / waking TS CPU / other NAME TS CPU / print TS TID TEXT / enter TS PID TID NAME / exit TS PID TID / lost CPU COUNT
All times in ns of BOOTTIME.
"""

import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

BOOTTIME = 6
BEGIN, END = 1, 2

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

out = []
sequences = {}  # packet sequence -> its state
tracks = {}  # track uuid -> (parent uuid, (pid, tid) or None)


def thread_of(uuid):
    while uuid in tracks:
        uuid, thread = tracks[uuid]
        if thread:
            return thread
    return (0, 0)


for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        thread = (track.thread.pid, track.thread.tid) if track.HasField("thread") else None
        tracks[track.uuid] = (track.parent_uuid, thread)

for packet in trace.packet:
    state = sequences.setdefault(packet.trusted_packet_sequence_id, {"clocks": {}, "names": {}, "defaults": None})
    if packet.sequence_flags & 1:
        state.update(clocks={}, names={}, defaults=None)
    if packet.HasField("trace_packet_defaults"):
        state["defaults"] = packet.trace_packet_defaults
    for name in packet.interned_data.event_names:
        state["names"][name.iid] = name.name
    if packet.HasField("clock_snapshot"):
        for clock in packet.clock_snapshot.clocks:
            if clock.is_incremental:
                boot = next(c.timestamp for c in packet.clock_snapshot.clocks if c.clock_id == BOOTTIME)
                state["clocks"][clock.clock_id] = boot
    if packet.HasField("track_event"):
        defaults = state["defaults"]
        clock = packet.timestamp_clock_id or (defaults.timestamp_clock_id if defaults else 0) or BOOTTIME
        ts = packet.timestamp
        if clock in state["clocks"]:
            ts += state["clocks"][clock]
            state["clocks"][clock] = ts
        elif clock != BOOTTIME:
            sys.exit(f"a packet in clock {clock}, of which the trace says nothing")
        event = packet.track_event
        pid, tid = thread_of(event.track_uuid or (defaults.track_event_defaults.track_uuid if defaults else 0))
        if event.type == BEGIN:
            out.append(f"enter\t{ts}\t{pid}\t{tid}\t{event.name or state['names'][event.name_iid]}")
        elif event.type == END:
            out.append(f"exit\t{ts}\t{pid}\t{tid}")
    if packet.HasField("ftrace_events"):
        bundle = packet.ftrace_events
        ts = 0
        for delta in bundle.compact_sched.switch_timestamp:
            ts += delta
            out.append(f"switch\t{ts}\t{bundle.cpu}")
        ts = 0
        for delta in bundle.compact_sched.waking_timestamp:
            ts += delta
            out.append(f"waking\t{ts}\t{bundle.cpu}")
        for event in bundle.event:
            kind = event.WhichOneof("event")
            if kind == "print":
                text = event.print.buf.rstrip("\n").replace("\n", " ").replace("\t", " ")
                out.append(f"print\t{event.timestamp}\t{event.pid}\t{text}")
            elif kind == "sched_switch":
                out.append(f"switch\t{event.timestamp}\t{bundle.cpu}")
            elif kind == "sched_waking":
                out.append(f"waking\t{event.timestamp}\t{bundle.cpu}")
            else:
                out.append(f"other\t{kind}\t{event.timestamp}\t{bundle.cpu}")
    if packet.HasField("ftrace_stats") and packet.ftrace_stats.phase == 2:
        for cpu in packet.ftrace_stats.cpu_stats:
            out.append(f"lost\t{cpu.cpu}\t{cpu.overrun}")
print("\n".join(out))
