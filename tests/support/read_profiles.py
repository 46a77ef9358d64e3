"""Reads the files that `tracebridge profile` writes for other viewers, each by its published format, and adds up the
weights of functions.

usage: read_profiles.py FILE...: prints one line of JSON for each file, `{"function": [own, with callees]}`. Times are ns.
"""

import collections
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT64, UINT64, STRING, MESSAGE = 3, 4, 9, 11

# The messages of github.com/google/pprof, proto/profile.proto: name, number, type, and whether it is repeated.
PPROF = {
    "Profile": [
        ("sample_type", 1, "ValueType", True),
        ("sample", 2, "Sample", True),
        ("location", 4, "Location", True),
        ("function", 5, "Function", True),
        ("string_table", 6, STRING, True),
        ("default_sample_type", 14, INT64, False),
    ],
    "ValueType": [("type", 1, INT64, False), ("unit", 2, INT64, False)],
    "Sample": [("location_id", 1, UINT64, True), ("value", 2, INT64, True)],
    "Location": [("id", 1, UINT64, False), ("line", 4, "Line", True)],
    "Line": [("function_id", 1, UINT64, False)],
    "Function": [("id", 1, UINT64, False), ("name", 2, INT64, False)],
}


def pprof_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in PPROF.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if is_repeated else 1)
            added.type = MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                added.type_name = f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


class Sums(collections.defaultdict):
    """The weights of each function, without and with its callees."""

    def __init__(self):
        super().__init__(lambda: [0, 0])

    def add(self, outermost_first, weight):
        if outermost_first:
            self[outermost_first[-1]][0] += weight
        for name in set(outermost_first):
            self[name][1] += weight


def pprof(data, sums):
    profile = pprof_class().FromString(gzip.decompress(data))
    strings = profile.string_table
    kinds = [kind.type for kind in profile.sample_type]
    chosen = kinds.index(profile.default_sample_type)
    functions = {function.id: strings[function.name] for function in profile.function}
    locations = {location.id: functions[location.line[0].function_id] for location in profile.location}
    for sample in profile.sample:
        sums.add([locations[at] for at in reversed(sample.location_id)], sample.value[chosen])


def firefox(profile, sums):
    for thread in profile["threads"]:
        frames, funcs, stacks = thread["frameTable"], thread["funcTable"], thread["stackTable"]
        samples = thread["samples"]
        # Times are in ms; numbers without a unit are as they are.
        unit = 1e6 if samples["weightType"] == "tracing-ms" else 1
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
            names = []
            while stack is not None:
                names.append(thread["stringArray"][funcs["name"][frames["func"][stacks["frame"][stack]]]])
                stack = stacks["prefix"][stack]
            sums.add(names[::-1], round(weight * unit))


def speedscope(profile, sums):
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    for thread in profile["profiles"]:
        # Numbers without a unit are as they are.
        unit = 1000 if thread["unit"] == "microseconds" else 1
        stack, before = [], 0
        for event in thread["events"]:
            at = round(event["at"] * unit)
            if at > before:
                sums.add(list(stack), at - before)
            before = at
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                assert stack.pop() == names[event["frame"]]


def folded(text, sums):
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        sums.add(stack.split(";")[1:], int(weight))


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    sums = Sums()
    if data.startswith(b"\x1f\x8b"):
        pprof(data, sums)
    elif data.startswith(b"{"):
        parsed = json.loads(data)
        (speedscope if "shared" in parsed else firefox)(parsed, sums)
    else:
        folded(data.decode(), sums)
    print(json.dumps(sums))
