"""Prints the samples of a Perfetto trace, decoded with Perfetto's own classes, one JSON array a line: event type,
time, process, thread, CPU, and the names of the functions, the outermost first."""

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
        state["event"] = packet.trace_packet_defaults.perf_sample_defaults.timebase.name
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
    print(json.dumps([state["event"], packet.timestamp, sample.pid, sample.tid, sample.cpu, stack]))
