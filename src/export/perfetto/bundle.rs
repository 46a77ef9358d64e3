//! Collects the events of one CPU and writes them as `FtraceEventBundle` messages.
//!
//! Most events become `FtraceEvent` messages. `sched_switch` and `sched_waking` become rows of the packed
//! columns of `CompactSched` where that loses nothing. The columns hold neither the previous thread of a
//! switch nor the waking thread: a reader takes both from the switch before on the same CPU. An event whose
//! own fields differ from what a reader would find there is written as a whole message.

use super::event_encoder::{EventEncoder, KernelSymbols, as_number};
use super::packet::packet;
use crate::clock::Timestamp;
use crate::formats::perfetto::fields::{
    compact_sched as compact, ftrace_event, ftrace_event_bundle as bundle_field, trace_packet,
};
use crate::formats::perfetto::wire::write::{bytes, message, string, uint};
use crate::formats::{Event, EventType};
use crate::ids::Cpu;
use crate::varint;

/// A bundle is closed once its payload has this many bytes.
const MAX_BUNDLE_BYTES: usize = 64 << 10;
/// `TASK_COMM_LEN`, bytes.
const TASK_COMM_LEN: usize = 16;

/// The indices of the fields of `sched_switch` or `sched_waking` that `CompactSched` holds.
pub(super) enum SchedFields {
    /// `prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio`.
    Switch([usize; 7]),
    /// `comm pid prio target_cpu`, and `success`, which only older kernels have.
    Waking([usize; 4], Option<usize>),
}

impl SchedFields {
    /// `None` if `kind` is neither of the two event types, or lacks one of the fields that the event type
    /// has in mainline kernels.
    pub(super) fn new(kind: &EventType) -> Option<SchedFields> {
        let all = |names: &[&str]| names.iter().map(|n| kind.field(n)).collect::<Option<Vec<_>>>();
        match kind.name.as_str() {
            "sched_switch" => {
                let names = [
                    "prev_comm",
                    "prev_pid",
                    "prev_prio",
                    "prev_state",
                    "next_comm",
                    "next_pid",
                    "next_prio",
                ];
                Some(SchedFields::Switch(all(&names)?.try_into().ok()?))
            }
            "sched_waking" => {
                let fields = all(&["comm", "pid", "prio", "target_cpu"])?.try_into().ok()?;
                Some(SchedFields::Waking(fields, kind.field("success")))
            }
            _ => None,
        }
    }
}

/// A comm padded with NUL to [`TASK_COMM_LEN`] bytes, as a number, so that two comms are compared at once.
type PaddedComm = u128;

/// `None` if `value` is longer than a kernel's comm.
fn padded_comm(value: &[u8]) -> Option<PaddedComm> {
    let mut padded = [0; TASK_COMM_LEN];
    padded.get_mut(..value.len())?.copy_from_slice(value);
    Some(PaddedComm::from_le_bytes(padded))
}

/// A thread as a switch describes it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SwitchedThread {
    pid: i64,
    prio: i64,
    comm: PaddedComm,
}

/// The bundle that is being filled for one CPU.
#[derive(Default)]
pub(super) struct CpuBundle {
    cpu: Cpu,
    /// The packet sequence of the bundles.
    sequence: u64,
    /// The number of events that were written.
    pub(super) events: u64,
    /// The number of events that the kernel counted as lost.
    pub(super) lost: u64,
    /// The thread that runs on the CPU, as a reader of the trace finds it in the switch before; `None`
    /// after a loss.
    running: Option<SwitchedThread>,
    after_loss: bool,
    /// Encoded `FtraceEventBundle.event` fields.
    whole_events: Vec<u8>,
    compact: CompactSched,
}

/// The columns of `CompactSched`, as packed arrays.
#[derive(Default)]
struct CompactSched {
    interned: Vec<PaddedComm>,
    switch: CompactColumns,
    waking: CompactColumns,
    switch_prev_state: Vec<u8>,
    waking_target_cpu: Vec<u8>,
    waking_flags: Vec<u8>,
}

/// The columns that switches and wakings have in common.
#[derive(Default)]
struct CompactColumns {
    /// The time of the last row: timestamps are deltas.
    last: Timestamp,
    timestamp: Vec<u8>,
    pid: Vec<u8>,
    prio: Vec<u8>,
    comm: Vec<u8>,
}

/// Appends an element of a packed array of `int32` or `int64`.
#[inline]
fn packed_int(out: &mut Vec<u8>, value: i64) {
    varint::push(out, value as u64);
}

impl CompactColumns {
    fn push(&mut self, ts: Timestamp, pid: i64, prio: i64, comm: usize) {
        varint::push(&mut self.timestamp, ts.0.wrapping_sub(self.last.0));
        self.last = ts;
        packed_int(&mut self.pid, pid);
        packed_int(&mut self.prio, prio);
        varint::push(&mut self.comm, comm as u64);
    }

    fn clear(&mut self) {
        self.last = Timestamp::MIN;
        for column in [&mut self.timestamp, &mut self.pid, &mut self.prio, &mut self.comm] {
            column.clear();
        }
    }

    /// Appends the columns `timestamp`, `pid`, `prio` and `comm` as the fields `numbers`.
    fn write(&self, out: &mut Vec<u8>, numbers: [u32; 4]) {
        let columns = [&self.timestamp, &self.pid, &self.prio, &self.comm];
        for (number, column) in numbers.into_iter().zip(columns) {
            if !column.is_empty() {
                bytes(out, number, column);
            }
        }
    }
}

impl CompactSched {
    /// The index of `comm` in the bundle's table. The table is searched from its end, because recent threads
    /// recur.
    fn intern(&mut self, comm: PaddedComm) -> usize {
        self.interned.iter().rposition(|c| *c == comm).unwrap_or_else(|| {
            self.interned.push(comm);
            self.interned.len() - 1
        })
    }

    /// An estimate of the encoded size, bytes: a row takes about 8 bytes for each byte of the column `pid`.
    fn len(&self) -> usize {
        8 * (self.switch.pid.len() + self.waking.pid.len())
    }

    fn clear(&mut self) {
        self.interned.clear();
        self.switch.clear();
        self.waking.clear();
        for column in [&mut self.switch_prev_state, &mut self.waking_target_cpu, &mut self.waking_flags] {
            column.clear();
        }
    }

    /// Appends the fields of `CompactSched`.
    fn write(&self, out: &mut Vec<u8>) {
        let numbers = [
            compact::SWITCH_TIMESTAMP,
            compact::SWITCH_NEXT_PID,
            compact::SWITCH_NEXT_PRIO,
            compact::SWITCH_NEXT_COMM_INDEX,
        ];
        self.switch.write(out, numbers);
        if !self.switch_prev_state.is_empty() {
            bytes(out, compact::SWITCH_PREV_STATE, &self.switch_prev_state);
        }
        for interned in &self.interned {
            let name = interned.to_le_bytes();
            string(out, compact::INTERN_TABLE, name.split(|b| *b == 0).next().unwrap_or_default());
        }
        let numbers = [
            compact::WAKING_TIMESTAMP,
            compact::WAKING_PID,
            compact::WAKING_PRIO,
            compact::WAKING_COMM_INDEX,
        ];
        self.waking.write(out, numbers);
        if !self.waking_target_cpu.is_empty() {
            bytes(out, compact::WAKING_TARGET_CPU, &self.waking_target_cpu);
            bytes(out, compact::WAKING_COMMON_FLAGS, &self.waking_flags);
        }
    }
}

impl CpuBundle {
    /// A bundle of CPU `cpu` in the packet sequence `sequence`.
    pub(super) fn new(cpu: Cpu, sequence: u64) -> CpuBundle {
        CpuBundle { cpu, sequence, ..CpuBundle::default() }
    }

    /// Adds an event. If that fills the bundle, appends it to `out` as a packet.
    #[inline]
    pub(super) fn event(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        kind: &EventType,
        encoder: &EventEncoder,
        sched: Option<&SchedFields>,
        symbols: &mut KernelSymbols,
    ) {
        self.events += 1;
        let compacted = match sched {
            Some(SchedFields::Switch(fields)) => self.switch(event, kind, fields),
            Some(SchedFields::Waking(fields, success)) => self.waking(event, kind, fields, *success),
            None => None,
        };
        if compacted.is_none() {
            message(&mut self.whole_events, bundle_field::EVENT, |out| {
                uint(out, ftrace_event::TIMESTAMP, event.ts.0);
                uint(out, ftrace_event::PID, u64::from(event.tid.0 as u32));
                encoder.encode(out, event, kind, symbols);
                if event.flags as u8 != 0 {
                    uint(out, ftrace_event::COMMON_FLAGS, u64::from(event.flags as u8));
                }
            });
            symbols.announce(out, self.sequence);
        }
        if self.whole_events.len() + self.compact.len() >= MAX_BUNDLE_BYTES {
            self.close(out);
        }
    }

    /// Notes that the kernel lost events before the next one.
    pub(super) fn lost(&mut self, out: &mut Vec<u8>, count: Option<u64>) {
        self.close(out);
        self.lost += count.unwrap_or(0);
        self.after_loss = true;
        self.running = None;
    }

    /// Adds a switch to the columns. Returns `None` if the columns cannot hold the whole event.
    fn switch(&mut self, event: &Event<'_>, kind: &EventType, fields: &[usize; 7]) -> Option<()> {
        let before = self.running.take();
        let number = |n: usize| event.value(kind, fields[n]).and_then(as_number).map(|v| v as i64);
        let name = |n: usize| event.text(kind, fields[n]).and_then(padded_comm);
        let next = SwitchedThread { comm: name(4)?, pid: number(5)?, prio: number(6)? };
        self.running = Some(next);
        let prev = SwitchedThread { comm: name(0)?, pid: number(1)?, prio: number(2)? };
        let state = number(3)?;
        if before != Some(prev) || i64::from(event.tid) != prev.pid {
            return None;
        }
        let index = self.compact.intern(next.comm);
        self.compact.switch.push(event.ts, next.pid, next.prio, index);
        packed_int(&mut self.compact.switch_prev_state, state);
        Some(())
    }

    /// Adds a wakeup to the columns. Returns `None` if the columns cannot hold the whole event.
    fn waking(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        fields: &[usize; 4],
        success: Option<usize>,
    ) -> Option<()> {
        if self.running?.pid != i64::from(event.tid) {
            return None;
        }
        let number = |n: usize| event.value(kind, n).and_then(as_number).map(|v| v as i64);
        if success.is_some_and(|n| number(n) != Some(1)) {
            return None;
        }
        let pid = number(fields[1])?;
        let prio = number(fields[2])?;
        let target = number(fields[3])?;
        let index = self.compact.intern(event.text(kind, fields[0]).and_then(padded_comm)?);
        self.compact.waking.push(event.ts, pid, prio, index);
        packed_int(&mut self.compact.waking_target_cpu, target);
        packed_int(&mut self.compact.waking_flags, i64::from(event.flags as u8));
        Some(())
    }

    /// Appends the bundle to `out` as a packet, unless it is empty, and begins a new one.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        if self.whole_events.is_empty() && self.compact.len() == 0 {
            return;
        }
        packet(out, self.sequence, |out| {
            message(out, trace_packet::FTRACE_EVENTS, |out| {
                uint(out, bundle_field::CPU, self.cpu.0.into());
                out.extend_from_slice(&self.whole_events);
                if std::mem::take(&mut self.after_loss) {
                    uint(out, bundle_field::LOST_EVENTS, 1);
                }
                if self.compact.len() != 0 {
                    message(out, bundle_field::COMPACT_SCHED, |out| self.compact.write(out));
                }
            });
        });
        self.whole_events.clear();
        self.compact.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comms_longer_than_the_kernels_limit_are_not_put_into_columns() {
        assert!(padded_comm(b"0123456789abcdef").is_some());
        assert_eq!(padded_comm(b"0123456789abcdefg"), None);
    }
}
