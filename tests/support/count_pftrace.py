"""Decodes a Perfetto trace with Perfetto's own classes and prints what is in it as JSON."""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

counts = collections.Counter()
tracks, children, names, defaults = {}, {}, {}, {}


def unknown(message):
    counts["unknown"] += len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            repeated = isinstance(value, collections.abc.Sequence) or hasattr(value, "add")
            for one in value if repeated else [value]:
                unknown(one)


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
unknown(trace)
slices = collections.defaultdict(list)
clock = {}
open_slices = collections.Counter()
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    for interned in packet.interned_data.event_names:
        names[sequence, interned.iid] = interned.name
    if packet.HasField("trace_packet_defaults"):
        defaults[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
    for reading in packet.clock_snapshot.clocks:
        if reading.clock_id == 64:
            clock[sequence] = reading.timestamp
    if packet.HasField("ftrace_events"):
        bundle = packet.ftrace_events
        counts["lost_bundles"] += bundle.lost_events
        counts["switches"] += len(bundle.compact_sched.switch_timestamp)
        counts["events"] += len(bundle.compact_sched.switch_timestamp) + len(bundle.compact_sched.waking_timestamp)
        for event in bundle.event:
            kind = event.WhichOneof("event")
            counts["events"] += 1
            counts["prints"] += kind == "print"
            counts["switches"] += kind == "sched_switch"
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        if track.HasField("thread"):
            tracks[track.uuid] = track.thread.tid
        elif track.parent_uuid:
            children[track.uuid] = track.parent_uuid
    if packet.HasField("track_event") and packet.track_event.type != TrackEvent.TYPE_INSTANT:
        clock[sequence] += packet.timestamp
        begin = packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN
        counts["begins" if begin else "ends"] += 1
        open_slices[sequence] += 1 if begin else -1
        counts["unmatched"] += open_slices[sequence] < 0
        counts["unnamed"] += begin and (sequence, packet.track_event.name_iid) not in names
        tid = tracks.get(children.get(defaults[sequence]))
        slices[tid].append(clock[sequence])
counts["open"] = sum(open_slices.values())
print(json.dumps({"counts": counts, "slices": slices, "names": sorted(set(names.values()))}))
