//! Tests of the samples of traces that are made here.

use std::io;

use super::fields::{
    address_symbols, callstack, clock_snapshot, clock_snapshot_clock, frame, interned_data, interned_string,
    line, mapping, module_symbols, perf_events_timebase, perf_sample, perf_sample_defaults, sequence_flags,
    streaming_profile_packet, thread_descriptor, trace, trace_packet, trace_packet_defaults,
};
use super::read::PerfettoRecording;
use super::wire::write::{bytes, message, string, uint};
use crate::formats::Recording;
use crate::formats::samples::{Sample, SampleReading, SampleSink, SampleTables};

/// Collects samples: time, thread, period, and the functions, innermost first.
#[derive(Default)]
struct SampleLog(Vec<(u64, i32, u64, Vec<String>)>);

impl SampleSink for SampleLog {
    fn sample(&mut self, tables: &SampleTables, sample: &Sample) -> io::Result<()> {
        let names = tables.stacks.frames(sample.stack).map(|n| tables.frames[n as usize].name.clone());
        let tid = tables.threads[sample.thread as usize].tid.0;
        self.0.push((sample.time.0, tid, sample.period, names.collect()));
        Ok(())
    }
}

fn read(data: &[u8]) -> (SampleLog, SampleReading) {
    let recording = PerfettoRecording::open(data);
    let mut log = SampleLog::default();
    let reading = recording.samples().expect("the trace has samples").read(&mut log).unwrap();
    (log, reading)
}

fn packet(out: &mut Vec<u8>, flags: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace::PACKET, |packet| {
        uint(packet, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 1);
        uint(packet, trace_packet::SEQUENCE_FLAGS, flags);
        fill(packet);
    });
}

fn text(out: &mut Vec<u8>, field: u32, iid: u64, text: &[u8]) {
    message(out, field, |entry| {
        uint(entry, interned_string::IID, iid);
        bytes(entry, interned_string::STR, text);
    });
}

/// The first packet of a sequence: it interns the stack 1 of `main` and an unknown function of libx.so.
fn interning(packet: &mut Vec<u8>) {
    message(packet, trace_packet::INTERNED_DATA, |data| {
        text(data, interned_data::FUNCTION_NAMES, 1, b"main");
        text(data, interned_data::MAPPING_PATHS, 1, b"libx.so");
        text(data, interned_data::BUILD_IDS, 1, b"\xab\xcd");
        message(data, interned_data::MAPPINGS, |entry| {
            uint(entry, interned_string::IID, 1);
            uint(entry, mapping::BUILD_ID, 1);
            uint(entry, mapping::PATH_STRING_IDS, 1);
        });
        for (iid, function, address) in [(1, 1, 0x10), (2, 0, 0x20)] {
            message(data, interned_data::FRAMES, |entry| {
                uint(entry, interned_string::IID, iid);
                uint(entry, frame::FUNCTION_NAME_ID, function);
                uint(entry, frame::MAPPING_ID, 1);
                uint(entry, frame::REL_PC, address);
            });
        }
        message(data, interned_data::CALLSTACKS, |entry| {
            uint(entry, interned_string::IID, 1);
            uint(entry, callstack::FRAME_IDS, 1);
            uint(entry, callstack::FRAME_IDS, 2);
        });
    });
}

fn sample(out: &mut Vec<u8>, ts: u64, cpu: u64, count: u64, skipped: Option<u64>) {
    packet(out, sequence_flags::NEEDS_INCREMENTAL_STATE, |packet| {
        uint(packet, trace_packet::TIMESTAMP, ts);
        message(packet, trace_packet::PERF_SAMPLE, |sample| {
            uint(sample, perf_sample::CPU, cpu);
            uint(sample, perf_sample::PID, 7);
            uint(sample, perf_sample::TID, 8);
            uint(sample, perf_sample::CALLSTACK_IID, 1);
            uint(sample, perf_sample::TIMEBASE_COUNT, count);
            skipped.iter().for_each(|reason| uint(sample, perf_sample::SAMPLE_SKIPPED_REASON, *reason));
        });
    });
}

/// The first packet of a sequence that samples by this counter so many times a second.
fn begin(out: &mut Vec<u8>, counter: u64, frequency: u64) {
    packet(out, sequence_flags::INCREMENTAL_STATE_CLEARED, |packet| {
        interning(packet);
        message(packet, trace_packet::TRACE_PACKET_DEFAULTS, |defaults| {
            message(defaults, trace_packet_defaults::PERF_SAMPLE_DEFAULTS, |defaults| {
                message(defaults, perf_sample_defaults::TIMEBASE, |timebase| {
                    uint(timebase, perf_events_timebase::FREQUENCY, frequency);
                    uint(timebase, perf_events_timebase::COUNTER, counter);
                });
            });
        });
    });
}

const CPU_CLOCK: u64 = 1;
const CPU_CYCLES: u64 = 10;

#[test]
fn a_sample_counts_what_its_cpu_has_counted_since_the_packet_before() {
    let mut data = Vec::new();
    begin(&mut data, CPU_CYCLES, 100);
    for (ts, cpu, count, skipped) in [
        (20, 0, 500, None),
        (10, 1, 70, None),
        (30, 0, 600, Some(1)),
        (40, 0, 650, None),
        (50, 1, 90, Some(4)),
    ] {
        sample(&mut data, ts, cpu, count, skipped);
    }
    let (log, reading) = read(&data);
    let stack = || vec!["libx.so+0x20".to_owned(), "main".to_owned()];
    assert_eq!(log.0, [(10, 8, 70, stack()), (20, 8, 500, stack()), (40, 8, 50, stack())], "sorted by time");
    assert_eq!(reading.losses.lost, 1, "a sample that a filter leaves out is not lost");
    assert_eq!(reading.tables.events[0].name, "cpu-cycles");
    assert_eq!(reading.tables.modules[0].build_id, "abcd");
    assert_eq!(reading.report.notes.len(), 2, "{:?}", reading.report.notes);
}

#[test]
fn a_sample_of_time_is_the_time_between_two_and_symbols_may_come_last() {
    let mut data = Vec::new();
    begin(&mut data, CPU_CLOCK, 100);
    sample(&mut data, 20, 0, 5, None);
    packet(&mut data, 0, |packet| {
        message(packet, trace_packet::MODULE_SYMBOLS, |module| {
            string(module, module_symbols::PATH, b"/libx.so");
            bytes(module, module_symbols::BUILD_ID, b"\xab\xcd");
            message(module, module_symbols::ADDRESS_SYMBOLS, |symbols| {
                uint(symbols, address_symbols::ADDRESS, 0x20);
                for name in ["_Z7inlinedv", "outer"] {
                    message(symbols, address_symbols::LINES, |line| {
                        string(line, line::FUNCTION_NAME, name.as_bytes());
                    });
                }
            });
        });
    });
    let (log, reading) = read(&data);
    let stack = ["inlined()", "outer", "main"].map(str::to_owned).to_vec();
    assert_eq!(log.0, [(20, 8, 10_000_000, stack)]);
    assert!(reading.tables.events[0].is_time);
}

#[test]
fn samples_behind_a_lost_packet_are_counted_and_not_guessed() {
    let mut data = Vec::new();
    begin(&mut data, CPU_CLOCK, 100);
    packet(&mut data, 0, |packet| uint(packet, trace_packet::PREVIOUS_PACKET_DROPPED, 1));
    sample(&mut data, 20, 0, 5, None);
    let (log, reading) = read(&data);
    assert_eq!((log.0.len(), reading.losses.lost), (0, 1));
    assert!(reading.report.notes[0].contains("packets that were lost"), "{:?}", reading.report.notes);
}

#[test]
fn samples_of_chrome_add_their_differences_to_the_time_of_their_thread() {
    let mut data = Vec::new();
    packet(&mut data, sequence_flags::INCREMENTAL_STATE_CLEARED, |packet| {
        interning(packet);
        message(packet, trace_packet::THREAD_DESCRIPTOR, |thread| {
            uint(thread, thread_descriptor::PID, 5);
            uint(thread, thread_descriptor::TID, 6);
            uint(thread, thread_descriptor::REFERENCE_TIMESTAMP_US, 1_000);
            string(thread, thread_descriptor::THREAD_NAME, b"CrRendererMain");
        });
    });
    packet(&mut data, 0, |packet| {
        message(packet, trace_packet::CLOCK_SNAPSHOT, |snapshot| {
            for (id, ns) in [(3, 1_000_000), (6, 5_000_000)] {
                message(snapshot, clock_snapshot::CLOCKS, |clock| {
                    uint(clock, clock_snapshot_clock::CLOCK_ID, id);
                    uint(clock, clock_snapshot_clock::TIMESTAMP, ns);
                });
            }
        });
    });
    for _ in 0..2 {
        packet(&mut data, sequence_flags::NEEDS_INCREMENTAL_STATE, |packet| {
            message(packet, trace_packet::STREAMING_PROFILE_PACKET, |profile| {
                bytes(profile, streaming_profile_packet::CALLSTACK_IID, &[1, 1]);
                bytes(profile, streaming_profile_packet::TIMESTAMP_DELTA_US, &[2, 3]);
            });
        });
    }
    let (log, reading) = read(&data);
    let times: Vec<u64> = log.0.iter().map(|sample| sample.0).collect();
    assert_eq!(times, [5_002_000, 5_005_000, 5_007_000, 5_010_000]);
    assert_eq!(reading.tables.threads[0].name, "CrRendererMain");
    assert_eq!(log.0[0].3, ["libx.so+0x20", "main"]);
}

#[test]
fn a_cut_trace_keeps_the_samples_before_the_cut() {
    let mut data = Vec::new();
    begin(&mut data, CPU_CLOCK, 100);
    for n in 0..20 {
        sample(&mut data, 20 + n, 0, 5 * n, None);
    }
    let whole = read(&data).0.0;
    for cut in (0..data.len()).step_by(data.len() / 200) {
        let recording = PerfettoRecording::open(&data[..cut]);
        let mut log = SampleLog::default();
        let Some(samples) = recording.samples() else { continue };
        samples.read(&mut log).unwrap();
        assert!(whole.starts_with(&log.0), "cut at {cut}");
    }
}
