//! One method trace in every form that a runtime writes: the old file, the streaming file, and both encodings
//! of the newer blocks. The profiles of all of them agree.
//!
//! The first byte is the number of threads, the second that of methods; then each record takes four bytes:
//! thread, method with the action in its low bits, and two steps of time, µs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::art_method::MethodTrace;
use tracebridge::profile::count::flat::FlatProfile;
use tracebridge::profile::count::selection::ProfileSelection;

#[path = "../../tests/support/src/art_blocks.rs"]
mod art_blocks;
#[path = "../../tests/support/src/art_writer.rs"]
mod art_writer;

use art_blocks::{Blocks, Writer};
use art_writer::{Action, ArtTrace, Method, Record};

/// Calls, and exclusive and inclusive times of each method in ns, by the method's name.
type Profile = Vec<(String, String)>;

fn profile(bytes: &[u8], name: &str) -> Profile {
    let trace = MethodTrace::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(trace.report().damage.is_empty(), "{name}: {:?}", trace.report().damage);
    let flat = FlatProfile::from_trace(&trace, &ProfileSelection::default());
    let rows = flat.methods.iter().zip(trace.methods());
    let tick_ns = trace.header().tick_ns;
    let mut rows: Profile = rows
        .filter(|(row, _)| row.calls > 0)
        .map(|(row, method)| {
            let [exclusive, inclusive] =
                [row.exclusive, row.inclusive].map(|ticks| ticks.map(|n| n * tick_ns));
            let figures = format!("{:?}", (row.calls, row.recursive, exclusive, inclusive));
            (format!("{}.{}", method.class, method.name), figures)
        })
        .collect();
    rows.sort();
    rows
}

fn trace_of(data: &[u8]) -> Option<ArtTrace> {
    let ([threads, methods], rest) = data.split_first_chunk()?;
    let threads = u16::from(threads % 4) + 1;
    let methods = u32::from(methods % 16) + 1;
    let mut wall_us = 0;
    let mut cpu_us = vec![0; usize::from(threads)];
    let mut open = vec![Vec::new(); usize::from(threads)];
    let mut records = Vec::new();
    let mut push = |thread: u16, method: u32, action, wall_us, cpu_us| {
        records.push(Record { thread: thread + 1, method, action, cpu_us, wall_us });
    };
    for [thread, method, wall, cpu] in rest.as_chunks::<4>().0 {
        let thread = u16::from(*thread) % threads;
        let stack: &mut Vec<u32> = &mut open[usize::from(thread)];
        wall_us += u32::from(*wall);
        cpu_us[usize::from(thread)] += u32::from(*cpu);
        let cpu = cpu_us[usize::from(thread)];
        match method & 3 {
            0 | 3 => {
                let method = u32::from(method >> 2) % methods;
                stack.push(method);
                push(thread, method, Action::Enter, wall_us, cpu);
            }
            action => {
                let Some(method) = stack.pop() else { continue };
                let action = if action == 1 { Action::Exit } else { Action::Unroll };
                push(thread, method, action, wall_us, cpu);
            }
        }
    }
    for (thread, stack) in open.iter_mut().enumerate() {
        while let Some(method) = stack.pop() {
            push(thread as u16, method, Action::Exit, wall_us, cpu_us[thread]);
        }
    }
    Some(ArtTrace {
        dalvik: false,
        start_us: 1_000_000,
        elapsed_us: u64::from(wall_us) + 1,
        pid: 7,
        threads: (1..=threads).map(|id| (id, format!("thread {id}"))).collect(),
        methods: (0..methods)
            .map(|n| Method {
                class: format!("a.C{}", n % 5),
                name: format!("m{n}"),
                signature: "()V".into(),
                file: "C.java".into(),
            })
            .collect(),
        records,
    })
}

fuzz_target!(|data: &[u8]| {
    let Some(trace) = trace_of(data).filter(|trace| !trace.records.is_empty()) else { return };
    let expected = profile(&trace.to_bytes(), "version 3");
    let streamed = profile(&trace.to_streaming_bytes(true), "streaming version 3");
    assert_eq!(expected, streamed);
    for streaming in [false, true] {
        let split = usize::from(data[0] >> 2) + 1;
        // The third writer's clocks are exact if the counter has whole ticks in a µs.
        let frequency = 1_000_000 * (1 + u64::from(data[1] >> 4));
        for writer in [
            Writer::Second { nanos: data[1] & 0x80 != 0, split },
            Writer::Third { frequency, real: frequency },
            Writer::First { block: split },
        ] {
            // The first writer names methods only where it streams.
            if streaming || !matches!(writer, Writer::First { .. }) {
                let blocks = Blocks { streaming, wall: true, cpu: true, writer };
                assert_eq!(expected, profile(&art_blocks::to_bytes(&trace, blocks), &format!("{blocks:?}")));
            }
        }
    }
});
