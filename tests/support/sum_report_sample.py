"""Adds up a report of simpleperf by its published proto (system/extras, simpleperf/cmd_report_sample.proto).

usage: sum_report_sample.py FILE: prints one line of JSON: samples and their events by event type, samples by thread with its
process and name, lost samples, and for each event type the functions, the libraries and classes, the packages and the
threads by `[own events, with callees]`.
"""

import collections
import json
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT32, UINT32, INT64, UINT64, STRING, BOOL, MESSAGE = 5, 13, 3, 4, 9, 8, 11

MESSAGES = {
    "Record": [
        ("sample", 1, "Sample", False),
        ("lost", 2, "LostSituation", False),
        ("file", 3, "File", False),
        ("thread", 4, "Thread", False),
        ("meta_info", 5, "MetaInfo", False),
    ],
    "Sample": [
        ("time", 1, UINT64, False),
        ("thread_id", 2, INT32, False),
        ("callchain", 3, "CallChainEntry", True),
        ("event_count", 4, UINT64, False),
        ("event_type_id", 5, UINT32, False),
    ],
    "CallChainEntry": [
        ("vaddr_in_file", 1, UINT64, False),
        ("file_id", 2, UINT32, False),
        ("symbol_id", 3, INT32, False),
        ("execution_type", 4, INT32, False),
    ],
    "LostSituation": [("sample_count", 1, UINT64, False), ("lost_count", 2, UINT64, False)],
    "File": [("id", 1, UINT32, False), ("path", 2, STRING, False), ("symbol", 3, STRING, True)],
    "Thread": [
        ("thread_id", 1, UINT32, False),
        ("process_id", 2, UINT32, False),
        ("thread_name", 3, STRING, False),
    ],
    "MetaInfo": [("event_type", 1, STRING, True), ("trace_offcpu", 6, BOOL, False)],
}


def record_class():
    file = descriptor_pb2.FileDescriptorProto(name="report.proto", package="r", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if is_repeated else 1)
            added.type = MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                added.type_name = f".r.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("r.Record"))


def records(data):
    assert data[:10] == b"SIMPLEPERF"
    record, at = record_class(), 12
    while size := struct.unpack_from("<I", data, at)[0]:
        yield record.FromString(data[at + 4 : at + 4 + size])
        at += 4 + size


with open(sys.argv[1], "rb") as opened:
    all_records = list(records(opened.read()))
files = {r.file.id: r.file for r in all_records if r.HasField("file")}
threads = {r.thread.thread_id: [r.thread.process_id, r.thread.thread_name] for r in all_records if r.HasField("thread")}
meta = next((r.meta_info for r in all_records if r.HasField("meta_info")), None)
lost = sum(r.lost.lost_count for r in all_records if r.HasField("lost"))
events = collections.defaultdict(lambda: [0, 0])
by_thread = collections.Counter()
WAYS = ("method", "class", "package", "thread")
sums = {way: collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0])) for way in WAYS}
COMPILED = (".oat", ".odex", ".dex", ".vdex", ".jar", ".apk")


def name(entry):
    file = files[entry.file_id]
    if entry.symbol_id >= 0:
        return file.symbol[entry.symbol_id]
    return f"{file.path.rsplit('/')[-1]}+0x{entry.vaddr_in_file:x}"


def place(entry):
    """The library or class, and the package."""
    path, symbol = files[entry.file_id].path, name(entry)
    is_compiled = path.endswith(COMPILED) or "jit-cache" in path
    is_method = entry.symbol_id >= 0 and "." in symbol and "(" not in symbol and not symbol.startswith("_Z")
    # Interpreted, and compiled while it ran. The types 0 and 3 are of native code and of ART.
    if is_method and (entry.execution_type in (1, 2) or is_compiled):
        owner = symbol.rpartition(".")[0]
        return owner, owner.rpartition(".")[0] or "(default)"
    is_kernel = path.startswith("[kernel") or path.endswith(".ko")
    return path.rsplit("/")[-1], "(kernel)" if is_kernel else "(native code)"


for record in all_records:
    if not record.HasField("sample"):
        continue
    sample = record.sample
    event = meta.event_type[sample.event_type_id]
    events[event][0] += 1
    events[event][1] += sample.event_count
    by_thread[sample.thread_id] += 1
    # The innermost function comes first.
    places = [place(entry) for entry in sample.callchain]
    thread = threads[sample.thread_id][1]
    for way, names in (
        ("method", [name(entry) for entry in sample.callchain]),
        ("class", [owner for owner, _ in places]),
        ("package", [package for _, package in places]),
        ("thread", [thread]),
    ):
        # A thread has no events of its own where the sample has no function.
        if names and places:
            sums[way][event][names[0]][0] += sample.event_count
        for each in set(names):
            sums[way][event][each][1] += sample.event_count
print(
    json.dumps(
        {
            "events": events,
            "threads": [[tid, *threads[tid], count] for tid, count in sorted(by_thread.items())],
            "lost": lost,
            "sums": sums,
        }
    )
)
