"""Compares a Perfetto trace with the traces whose packets passed through into it, by Perfetto's own classes.

The arguments are the output and its inputs. Prints, as JSON: how many packets of each type were added, how many are
in both, and sentences about everything that differs."""

import collections
import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def load(path):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    return trace.packet


def kind(packet):
    return packet.WhichOneof("data") or "none"


out, inputs = load(sys.argv[1]), [load(path) for path in sys.argv[2:]]
faults = []
added = len(out) - sum(map(len, inputs))
by_type = collections.Counter(kind(p) for p in out[:added])
own = {p.trusted_packet_sequence_id for p in out[:added]}
own_tracks = {p.track_descriptor.uuid for p in out[:added] if p.HasField("track_descriptor")}
seen, at, passed = set(), added, collections.Counter()
for number, packets in enumerate(inputs):
    sequences = {}
    for before in packets:
        after = out[at]
        at += 1
        passed[kind(after)] += 1
        old, new = before.trusted_packet_sequence_id, after.trusted_packet_sequence_id
        if sequences.setdefault(old, new) != new:
            faults.append(f"input {number}: sequence {old} became {sequences[old]} and {new}")
        if number == 0 and old != new:
            faults.append(f"sequence {old} of the first input became {new}")
        if before.HasField("trusted_packet_sequence_id"):
            after.trusted_packet_sequence_id = old
        if before.SerializeToString() != after.SerializeToString():
            faults.append(f"input {number}: a packet differs: {before} {after}"[:400])
        for track in (after.track_descriptor.uuid, after.track_event.track_uuid):
            if track and track in own_tracks:
                faults.append(f"input {number}: track {track} is one of those that were added")
    new = set(sequences.values()) - {0}
    if new & seen or new & own or len(new) != len(set(sequences) - {0}):
        faults.append(f"input {number}: sequences {sorted(new)} are used by others too")
    seen |= new
print(json.dumps({"added": by_type, "passed": passed, "faults": faults[:20]}))
