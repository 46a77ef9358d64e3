"""Prints the samples of a Perfetto trace, decoded with Perfetto's own classes, one JSON array a line: event type,
time, process, thread, CPU, the names of the functions, the outermost first, and for a thread that stopped running the
time until it ran again, else null."""

import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
sequences = {}
for packet in trace.packet:
    state = sequences.setdefault(packet.trusted_packet_sequence_id, {})
    if packet.sequence_flags & 1:
        state.clear()
    if packet.HasField("trace_packet_defaults"):
        defaults = packet.trace_packet_defaults.perf_sample_defaults
        state["event"] = defaults.timebase.name
        followers = [follower.name for follower in defaults.followers]
        state["is_off_cpu"] = followers == ["off-cpu-ns"]
        assert state["is_off_cpu"] or not followers
    for kind in ("function_names", "frames", "callstacks", "mappings"):
        for item in getattr(packet.interned_data, kind):
            state[kind, item.iid] = item
    if not packet.HasField("perf_sample"):
        continue
    sample = packet.perf_sample
    stack = []
    if sample.HasField("callstack_iid"):
        for frame in state["callstacks", sample.callstack_iid].frame_ids:
            frame = state["frames", frame]
            assert ("mappings", frame.mapping_id) in state
            stack.append(state["function_names", frame.function_name_id].str.decode())
    off_cpu = None
    if state["is_off_cpu"]:
        (total,) = sample.follower_counts
        off_cpu = total - state.get(("off_cpu", sample.cpu), 0)
        state["off_cpu", sample.cpu] = total
    print(json.dumps([state["event"], packet.timestamp, sample.pid, sample.tid, sample.cpu, stack, off_cpu]))
