"""Writes a Chrome JSON trace as a Flutter app's timeline is: slices, asynchronous slices, counters and flows of a few
threads. scripts/bench-json starts it. usage: bench_json.py MEGABYTES FILE"""

import random
import sys

PID = 4100
THREADS = {4100: "main", 4121: "1.ui", 4122: "1.raster", 4123: "1.io", 4130: "DartWorker", 4131: "DartWorker"}
SLICES = [
    "Frame",
    "Animator::BeginFrame",
    "VsyncProcessCallback",
    "GPURasterizer::Draw",
    "LayerTree::Preroll",
    "Build",
    "Layout",
    "Shell::OnPlatformViewDispatchPointerDataPacket",
]
FRAME_US = 16_667


def event(phase, name, tid, ts, rest):
    return f'{{"name":"{name}","cat":"Embedder","tid":{tid},"pid":{PID},"ts":{ts},"ph":"{phase}",{rest}}}'


def thread_frame(rng, tid, begin, frame):
    """The events of one thread in one frame, in the order in which they are written: not always that of time."""
    events, stack, ts = [], [], begin
    for _ in range(6):
        ts += rng.randrange(3, 400)
        stack.append(rng.choice(SLICES))
        args = f'"args":{{"mode":"basic","isolateGroupId":"isolateGroups/{tid}","frame_number":"{frame}"}}'
        events.append(event("B", stack[-1], tid, ts, args))
        if rng.random() < 0.5:
            ts += rng.randrange(3, 300)
            events.append(event("E", stack.pop(), tid, ts, '"args":{}'))
    while stack:
        ts += rng.randrange(3, 300)
        events.append(event("E", stack.pop(), tid, ts, '"args":{}'))
    id_ = f'"id":"{frame * 8 + tid % 8:x}"'
    events.append(event("b", "PipelineItem", tid, begin, f'{id_},"args":{{"isolateId":"isolates/1"}}'))
    events.append(event("e", "PipelineItem", tid, ts, f'{id_},"args":{{}}'))
    events.append(event("C", "RasterCache", tid, ts, f'"args":{{"LayerCount":"{frame % 40}","MB":"{frame % 13 / 7:.4f}"}}'))
    events.append(event("X", "Frame Request Pending", tid, begin + 1, '"dur":2,"args":{"pending":1}'))
    if rng.random() < 0.2:
        events.append(event("s", "flow", tid, begin + 2, f'"id":"{frame}"'))
        events.append(event("f", "flow", tid, ts - 1, f'"bp":"e","id":"{frame}"'))
    return events


def main():
    megabytes, path = int(sys.argv[1]), sys.argv[2]
    rng = random.Random(7)
    with open(path, "w") as out:
        out.write('{"type":"_extensionResponse","traceEvents":[\n')
        for tid, name in THREADS.items():
            out.write(event("M", "thread_name", tid, 0, f'"args":{{"name":"{name}"}}') + ",\n")
        ts, frame, written = 737_000_000_000, 0, 0
        while written < megabytes * 1_000_000:
            frame += 1
            text = "".join(line + ",\n" for tid in THREADS for line in thread_frame(rng, tid, ts, frame))
            written += out.write(text)
            ts += FRAME_US
        out.write(event("i", "end", PID, ts, '"s":"t"') + "\n]}\n")


main()
