//! Perfetto's own account of lost data: `TraceStats` of the tracing service and `FtraceStats` of the ftrace
//! probe. Losses are what Perfetto's `stats.h` calls `kDataLoss` or `kError`.

use std::collections::BTreeSet;

use super::fields::{
    buffer_stats, filter_stats, ftrace_kprobe_stats, ftrace_stats, ftrace_stats_phase, trace_attributes,
    trace_attributes_attribute, trace_stats,
};
use super::wire::read::{WireValue, fields, last_value};
use crate::formats::{LossKind, LossPlace, Losses, ReadReport};

/// `FINAL_FLUSH_FAILED` of `TraceStats.FinalFlushOutcome`.
const FINAL_FLUSH_FAILED: u64 = 2;

/// Names that a note lists at most.
const MAX_NAMES: usize = 5;

/// The trace attribute with the account of losses of a trace that tracebridge has written.
pub(crate) const LOSSES_ATTRIBUTE: &str = "tracebridge.losses";

/// The losses that Perfetto's recorder reports.
#[derive(Default)]
pub(super) struct RecorderLosses {
    /// From the last `TraceStats`: its numbers count from the start of the recording.
    service: Losses,
    /// The account that tracebridge has written.
    written: Losses,
    parse_errors: BTreeSet<u64>,
    unknown_events: BTreeSet<Vec<u8>>,
    failed_events: BTreeSet<Vec<u8>>,
    atrace_errors: bool,
    /// Missed hits of kprobes at the start and at the end.
    missed_kprobes: [u64; 2],
}

impl RecorderLosses {
    /// Reads a `TraceStats` message.
    pub(super) fn add_trace_stats(&mut self, body: &[u8]) {
        let number = |message, field| last_value(message, field).map_or(0, WireValue::number);
        let mut losses = Losses::default();
        let buffers = fields(body).filter(|(field, _)| *field == trace_stats::BUFFER_STATS);
        for (index, (_, buffer)) in (0..).zip(buffers) {
            for (kind, field) in [
                (LossKind::WriterPackets, buffer_stats::TRACE_WRITER_PACKET_LOSS),
                (LossKind::FailedPatches, buffer_stats::PATCHES_FAILED),
                (LossKind::AbiViolations, buffer_stats::ABI_VIOLATIONS),
            ] {
                losses.add(kind, LossPlace::Buffer(index), number(buffer.bytes(), field));
            }
        }
        let filter = last_value(body, trace_stats::FILTER_STATS).map_or(&[][..], WireValue::bytes);
        let is_cut = number(body, trace_stats::FINAL_FLUSH_OUTCOME) == FINAL_FLUSH_FAILED;
        for (kind, count) in [
            (LossKind::InvalidPackets, number(body, trace_stats::INVALID_PACKETS)),
            (LossKind::FilterErrors, number(filter, filter_stats::ERRORS)),
            (LossKind::FailedFlushes, number(body, trace_stats::FLUSHES_FAILED)),
            (LossKind::FailedFinalFlush, u64::from(is_cut)),
        ] {
            losses.add(kind, LossPlace::Recording, count);
        }
        self.service = losses;
    }

    /// Reads an `FtraceStats` message, except for its counts of each CPU.
    pub(super) fn add_ftrace_stats(&mut self, body: &[u8]) {
        let phase = last_value(body, ftrace_stats::PHASE).map(WireValue::number);
        let is_start = phase == Some(ftrace_stats_phase::START_OF_TRACE);
        for (field, value) in fields(body) {
            match field {
                ftrace_stats::FTRACE_PARSE_ERRORS => _ = self.parse_errors.insert(value.number()),
                ftrace_stats::UNKNOWN_FTRACE_EVENTS => {
                    self.unknown_events.insert(value.bytes().to_vec());
                }
                ftrace_stats::FAILED_FTRACE_EVENTS => {
                    self.failed_events.insert(value.bytes().to_vec());
                }
                ftrace_stats::ATRACE_ERRORS => self.atrace_errors |= !value.bytes().is_empty(),
                ftrace_stats::KPROBE_STATS => {
                    let misses = last_value(value.bytes(), ftrace_kprobe_stats::MISSES);
                    self.missed_kprobes[usize::from(!is_start)] = misses.map_or(0, WireValue::number);
                }
                _ => {}
            }
        }
    }

    /// Reads the account of a trace that tracebridge has written.
    pub(super) fn add_attributes(&mut self, body: &[u8]) {
        let attributes = fields(body).filter(|(field, _)| *field == trace_attributes::ATTRIBUTE);
        for (_, attribute) in attributes {
            let member = |field| last_value(attribute.bytes(), field).map_or(&b""[..], WireValue::bytes);
            if member(trace_attributes_attribute::KEY) == LOSSES_ATTRIBUTE.as_bytes() {
                self.written.extend(Losses::from_json(member(trace_attributes_attribute::STRING_VALUE)));
            }
        }
    }

    /// Adds the losses to a report, and notes about settings that had no effect.
    pub(super) fn report(&self, report: &mut ReadReport) {
        let [missed_before, missed] = self.missed_kprobes;
        report.losses.extend(self.service.clone());
        report.losses.extend(self.written.clone());
        for (kind, count) in [
            (LossKind::FtraceParseErrors, self.parse_errors.len() as u64),
            (LossKind::FailedFtraceEvents, self.failed_events.len() as u64),
            (LossKind::MissedKprobes, missed.saturating_sub(missed_before)),
        ] {
            report.losses.add(kind, LossPlace::Recording, count);
        }
        for (names, what) in [
            (&self.failed_events, "event types could not be enabled on the device"),
            (&self.unknown_events, "event types of the recorder's settings do not exist on the device"),
        ] {
            if !names.is_empty() {
                let first = names.iter().take(MAX_NAMES).map(|name| String::from_utf8_lossy(name));
                let more = if names.len() > MAX_NAMES { ", …" } else { "" };
                let list = first.collect::<Vec<_>>().join(", ");
                report.notes.push(format!("{} {what}: {list}{more}", names.len()));
            }
        }
        if self.atrace_errors {
            report.notes.push("atrace reported errors when its categories were switched on".into());
        }
    }
}
