//! The cost of a slice (a begin and an end, on one thread) with tracebridge and with its peers, while
//! something records.
//!
//! The peers keep their events in memory of the program; tracebridge gives them to the kernel, which has them
//! in one buffer with the scheduler's events. The time is CPU time of the whole process, because a peer's own
//! threads work too. All run in turns.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use perfetto_recorder::ThreadTraceData;
use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::*;
use perfetto_sdk::{track_event_begin, track_event_categories, track_event_end};
use tracebridge_markers::{Tag, Tracer};

track_event_categories! {
    pub mod categories {
        ("bench", "the slices of the race", []),
    }
}
use categories as perfetto_te_ns;

static TRACER: Tracer = Tracer::new(Tag::ALWAYS);
static OFF: Tracer = Tracer::new(Tag::RRO);

const SLICES: u32 = 20_000;
const ROUNDS: usize = 40;
const NAMES: [&str; 6] = [
    "two bare writes",
    "tracebridge",
    "tracebridge, tag off",
    "perfetto-recorder",
    "perfetto-sdk",
    "tracy-client",
];

fn cpu_ns() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the process itself");
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.tv_sec() as f64 * 1e9 + time.tv_usec() as f64 * 1e3)
        .sum()
}

/// CPU ns and ns by the clock of one call.
fn time(mut slice: impl FnMut()) -> (f64, f64) {
    let cpu = cpu_ns();
    let start = Instant::now();
    for _ in 0..SLICES {
        slice();
    }
    let wall = start.elapsed().as_nanos() as f64;
    ((cpu_ns() - cpu) / f64::from(SLICES), wall / f64::from(SLICES))
}

/// A session of Perfetto in this process, which keeps the newest events.
fn perfetto_session() -> TracingSession {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("categories");
    let writer = PbMsgWriter::new();
    let heap = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffer: &mut TraceConfigBufferConfig| {
            buffer.set_size_kb(64 * 1024);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories("bench");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    heap.copy_into(&mut bytes);
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&bytes);
    session.start_blocking();
    session
}

fn main() {
    let tracefs = std::env::var("TRACEBRIDGE_TRACEFS").unwrap_or_else(|_| "/sys/kernel/tracing".into());
    let file = OpenOptions::new().write(true).open(format!("{tracefs}/trace_marker"));
    let file =
        file.unwrap_or_else(|error| panic!("{tracefs}/trace_marker: {error}; set TRACEBRIDGE_TRACEFS"));
    assert!(TRACER.instant("race"), "nobody records: echo 1 > {tracefs}/tracing_on");
    let begin = format!("B|{}|draw", TRACER.pid());
    let end = format!("E|{}", TRACER.pid());
    let session = perfetto_session();
    perfetto_recorder::start().expect("built with recording");
    let tracy = tracy_client::Client::start();

    let mut rounds: [Vec<(f64, f64)>; NAMES.len()] = Default::default();
    for _ in 0..ROUNDS {
        let times = [
            time(|| {
                let _ = black_box((&file).write(begin.as_bytes()));
                let _ = black_box((&file).write(end.as_bytes()));
            }),
            time(|| drop(black_box(TRACER.section(black_box("draw"))))),
            time(|| drop(black_box(OFF.section(black_box("draw"))))),
            time(|| {
                perfetto_recorder::scope!("draw");
            }),
            time(|| {
                track_event_begin!("bench", "draw");
                track_event_end!("bench");
            }),
            time(|| drop(tracy.clone().span(tracy_client::span_location!("draw"), 0))),
        ];
        rounds.iter_mut().zip(times).for_each(|(round, time)| round.push(time));
        // What the program has to do with the recorder's events at some time.
        drop(ThreadTraceData::take_current_thread());
    }
    for (name, times) in NAMES.iter().zip(&mut rounds) {
        let mut median = |of: fn(&(f64, f64)) -> f64| {
            times.sort_by(|a, b| of(a).total_cmp(&of(b)));
            of(&times[ROUNDS / 2])
        };
        println!("{name:<22} {:>8.1} CPU-ns {:>8.1} ns a slice", median(|t| t.0), median(|t| t.1));
    }
    drop(session);
}
