//! Opens versions 4 and 5, which AOSP's `runtime/trace.cc` has written in three ways: finds out which writer
//! it was, and with it the encoding and the clock of the records.
//!
//! | writer | time | header | times |
//! | --- | --- | --- | --- |
//! | first | 2024 | no frequency; its packets parse in its own form only | µs |
//! | second | 2024 to 2025 | no frequency | µs, later ns: the summary's `elapsed-time-` key says it |
//! | third | Android 17 | frequency of a counter, and its reading at the start | ticks; CPU time in ns |

use std::collections::HashMap;

use super::Counts;
use super::block_packets::{self, FoundBlock, Packets};
use super::body::{BlockBody, RecordBlock};
use super::declarations::Declarations;
use crate::art::{
    BlockEncoding, BlockState, ClockMode, CounterTime, DataHeader, PacketForm, end_of_whole_packets,
    next_record,
};

/// What [`open`] returns.
pub(super) struct OpenedBlocks {
    /// The places of the records.
    pub body: BlockBody,
    /// The clocks of the records.
    pub clock: ClockMode,
    /// The unit of the records' times and of the header's start, ns.
    pub tick_ns: u64,
    /// Counts from a pass over the records.
    pub counts: Counts,
}

/// Opens the packets from offset `from` on.
pub(super) fn open<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    header: &DataHeader,
) -> OpenedBlocks {
    let is_android_17 = header.tsc_frequency != 0;
    let records = bytes.get(from..).unwrap_or_default();
    let form = if is_android_17 { PacketForm::Sized } else { form_of(records, header.version) };
    // The first writer puts the summary in front of the header where it does not stream.
    let mut has_summary = !declared.keys.is_empty();
    let packets = block_packets::read(declared, bytes, from, form, None);
    has_summary |= packets.has_summary;
    if !has_summary {
        let units = match form {
            PacketForm::Sized if !is_android_17 => {
                "; the times are taken for ns (files from before February 2025 have µs)"
            }
            _ => "",
        };
        let what = "no summary at the end: the app was killed or the file was cut while tracing";
        declared.damage(bytes.len(), format!("{what}{units}"));
    }
    let clock = match declared.key("clock").and_then(ClockMode::from_key) {
        _ if header.version == 5 => ClockMode::Dual,
        Some(clock) if clock != ClockMode::Dual => clock,
        _ if is_android_17 && begins_before(bytes, &packets, header.start_tsc) => ClockMode::ThreadCpu,
        _ => ClockMode::Wall,
    };
    if header.version == 4 && declared.key("clock").is_none() {
        let what = format!("no clock= key: the times are taken for {} time", clock.name());
        declared.report.notes.push(what);
    }
    let encoding = match form {
        PacketForm::First { .. } => BlockEncoding::FromFirst { clock },
        _ if is_android_17 && clock.has_wall() => {
            BlockEncoding::TimeFirst { clock, time: counter_time(declared, header) }
        }
        _ if is_android_17 => BlockEncoding::CpuFirst,
        _ => {
            let (micros, nanos) = (declared.key("elapsed-time-usec"), declared.key("elapsed-time-nsec"));
            BlockEncoding::MethodFirst { clock, micros: micros.is_some() && nanos.is_none() }
        }
    };
    let blocks = continued(bytes, packets.blocks, encoding);
    let body = BlockBody { encoding, blocks };
    let counts = block_packets::count_records(declared, bytes, from, &body);
    OpenedBlocks { body, clock, tick_ns: if encoding.is_32_bit() { 1_000 } else { 1 }, counts }
}

/// The form of packets of the first or the second writer, whichever parses further.
fn form_of(packets: &[u8], version: u16) -> PacketForm {
    let first = PacketForm::First { clocks: if version == 5 { 2 } else { 1 } };
    let whole = end_of_whole_packets(packets, PacketForm::Sized);
    match whole < packets.len() && end_of_whole_packets(packets, first) > whole {
        true => first,
        false => PacketForm::Sized,
    }
}

/// Whether the first time of every block is before the counter's reading at the start: then it is thread-CPU
/// time, which counts from 0. Only a file that was cut does not name its clock.
fn begins_before(bytes: &[u8], packets: &Packets, start_tsc: u64) -> bool {
    let first = |block: &FoundBlock| {
        let mut entries = bytes.get(block.range.clone())?;
        next_record(&mut entries, BlockEncoding::CpuFirst, &mut BlockState::default())
    };
    let mut firsts = packets.blocks.iter().filter_map(first).map(|record| record.cpu).peekable();
    firsts.peek().is_some() && firsts.all(|at| at < start_tsc)
}

/// The counter and CLOCK_MONOTONIC may drift apart by so many parts per million; a larger difference at the
/// end means that the machine was suspended, or that a key is damaged.
const MAX_DRIFT_PPM: u64 = 1_000;
/// The two readings of a calibration may be so far apart, ns.
const MAX_CALIBRATION_ERROR_NS: u64 = 1_000_000;
/// A smaller difference at the end, ns, is not worth a note.
const MIN_DRIFT_NOTED_NS: u64 = 1_000;

/// The meaning of the counter's readings: by its readings at the start and at the end where the summary has
/// them, else by its frequency. Notes how far both are apart.
fn counter_time(declared: &mut Declarations<'_>, header: &DataHeader) -> CounterTime {
    let by_frequency =
        CounterTime { start: header.start_tsc, ns: 1_000_000_000, ticks: header.tsc_frequency };
    let number = |key: &str| declared.key(key).and_then(|value| value.parse::<u64>().ok());
    let ends = number("end_time")
        .zip(number("end_tsc"))
        .and_then(|(ns, ticks)| Some((ns.checked_sub(header.start)?, ticks.checked_sub(header.start_tsc)?)));
    let Some((ns, ticks)) = ends.filter(|(ns, ticks)| *ns > 0 && *ticks > 0) else { return by_frequency };
    let expected = by_frequency.since_start(header.start_tsc.saturating_add(ticks));
    let drift = ns.abs_diff(expected);
    let ppm = drift as f64 * 1e6 / ns as f64;
    let apart = format!("{:.1} µs in {:.3} s, {ppm:.1} ppm", drift as f64 / 1e3, ns as f64 / 1e9);
    if drift > MAX_CALIBRATION_ERROR_NS.saturating_add(ns / (1_000_000 / MAX_DRIFT_PPM)) {
        declared.report.notes.push(format!(
            "the counter and CLOCK_MONOTONIC moved apart while tracing ({apart}): the machine was suspended, or \
             end_time or end_tsc is damaged; times follow the counter's frequency"
        ));
        return by_frequency;
    }
    if drift >= MIN_DRIFT_NOTED_NS {
        let direction = if expected > ns { "fast" } else { "slow" };
        declared.report.notes.push(format!(
            "the counter ran {direction} against CLOCK_MONOTONIC ({apart}): times follow its readings at both ends"
        ));
    }
    CounterTime { start: header.start_tsc, ns, ticks }
}

/// Finds the blocks that continue a previous block. When one flush of the second writer fills several blocks,
/// the stated number of records counts on from block to block, and so do the differences. So a block
/// continues the thread's previous blocks if it states more records than it holds, and the surplus is what
/// those blocks hold.
fn continued(bytes: &[u8], found: Vec<FoundBlock>, encoding: BlockEncoding) -> Vec<RecordBlock> {
    let mut before: HashMap<u32, u64> = HashMap::new();
    let mut blocks = Vec::with_capacity(found.len());
    for FoundBlock { range, thread, stated_records } in found {
        let mut continues = false;
        if let Some(held) = encoding.count(bytes.get(range.clone()).unwrap_or_default()) {
            let sum = before.entry(thread).or_default();
            // The field has 24 bits, but some runtimes fill only the low 16.
            let equal = |n: u64| n & 0xffff == u64::from(stated_records) & 0xffff;
            continues = *sum > 0 && !equal(held) && equal(*sum + held);
            *sum = if continues { *sum + held } else { held };
        }
        blocks.push(RecordBlock { range, thread, continues });
    }
    blocks
}
