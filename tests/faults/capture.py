"""Counts the events of a trace.dat v6 by itself: what is on the disk, independently of tracebridge's reader."""

import struct

PAGE = 4096
# A head with the names of 32,000 threads has 1 MB.
MAX_HEAD_BYTES = 8 << 20
# The types of a record of the ring buffer that are no events: padding, a long step of time, an absolute time.
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31


def events_of_page(page):
    """The number of events of a page of the ring buffer."""
    _, commit = struct.unpack_from("<QQ", page)
    at, end, events = 16, 16 + (commit & 0xFFFFF), 0
    if end > len(page):
        return 0
    while at + 4 <= end:
        (head,) = struct.unpack_from("<I", page, at)
        kind, delta = head & 31, head >> 5
        (array,) = struct.unpack_from("<I", page, at + 4) if at + 8 <= len(page) else (0,)
        if kind in (TIME_EXTEND, TIME_STAMP):
            at += 8
        elif kind == PADDING:
            if delta == 0 or array == 0:
                break
            at += 4 + array
        elif kind == 0:
            if array < 4:
                break
            at, events = at + 4 + array, events + 1
        else:
            at, events = at + 4 + 4 * kind, events + 1
    return events


def events_on_disk(path):
    """The number of events in the pages that the table of CPUs covers. None if the file is no trace.dat v6."""
    with open(path, "rb") as file:
        # Not all of it: a capture that is being written is a sparse file of many gigabytes.
        head = file.read(MAX_HEAD_BYTES)
        if not head.startswith(b"\x17\x08\x44tracing6\0"):
            return None
        # The options stand before the table; the number of CPUs stands before the options.
        options = head.find(b"options  \0")
        at = head.find(b"flyrecord\0", options)
        if at < 0 or options < 4:
            return None
        (cpus,) = struct.unpack_from("<I", head, options - 4)
        events = 0
        for cpu in range(cpus):
            offset, size = struct.unpack_from("<QQ", head, at + 10 + 16 * cpu)
            file.seek(offset)
            left = size
            while left > 0:
                page = file.read(min(PAGE, left))
                if len(page) < 16:
                    break
                events += events_of_page(page)
                left -= len(page)
        return events

