"""Prints a Perfetto trace as text, decoded with Perfetto's own classes: one packet a line.

Left out is what explains in sentences how an input was aligned."""

import sys

from google.protobuf import text_format
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
for packet in trace.packet:
    if any(annotation.name == "why" for annotation in packet.track_event.debug_annotations):
        continue
    print(text_format.MessageToString(packet, as_one_line=True, print_unknown_fields=True))
