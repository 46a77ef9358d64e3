//! Inputs of the unit tests, built by hand and not by the product's own writers.

use crate::clock::Timestamp;
use crate::formats::{Event, EventType, EventTypeId, Field, FieldType, Payload, Value};
use crate::ids::{Cpu, Tid};

/// One record of a method trace: thread id, method (0 is `a.B.run`, 1 is `a.B.draw`), action (0 enter, 1
/// exit), CPU time and wall time, both in µs since the start.
pub(super) type TestRecord = (u16, u32, u32, u32, u32);

/// A method trace of version 3 with both clocks: process 7, threads 7 (`main`) and 8 (`worker`).
pub(super) fn method_trace(start_us: u64, records: &[TestRecord]) -> Vec<u8> {
    let mut bytes = b"*version\n3\ndata-file-overflow=false\nclock=dual\nelapsed-time-usec=1000\nvm=art\npid=7\n\
        *threads\n7\tmain\n8\tworker\n*methods\n0x4\ta.B\trun\t()V\tB.java\n0x8\ta.B\tdraw\t()V\tB.java\n*end\n"
        .to_vec();
    bytes.extend(b"SLOW");
    bytes.extend(3u16.to_le_bytes());
    bytes.extend(32u16.to_le_bytes());
    bytes.extend(start_us.to_le_bytes());
    bytes.extend(14u16.to_le_bytes());
    bytes.extend([0; 14]);
    for (thread, method, action, cpu, wall) in records {
        bytes.extend(thread.to_le_bytes());
        bytes.extend((((method + 1) << 2) | action).to_le_bytes());
        bytes.extend(cpu.to_le_bytes());
        bytes.extend(wall.to_le_bytes());
    }
    bytes
}

/// The event type of markers.
pub(super) fn print_type() -> EventType {
    let buf =
        Field { name: "buf".into(), ctype: "char[]".into(), ty: FieldType::TailStr, offset: 16, size: 0 };
    EventType { system: "ftrace".into(), name: "print".into(), fields: vec![buf], print_fmt: None }
}

/// An event of the first type, which has these values, on CPU 0 by thread 7.
pub(super) fn first_type_event<'a>(ns: u64, values: &'a [Value<'a>]) -> Event<'a> {
    Event {
        ts: Timestamp(ns),
        cpu: Cpu(0),
        tid: Tid(7),
        kind: EventTypeId(0),
        flags: 0,
        preempt_count: 0,
        comm: None,
        tgid: None,
        payload: Payload::Values { values, text: None },
    }
}
