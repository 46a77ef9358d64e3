//! One CPU's events as `FtraceEventBundle`s: typed events, and sched_switch and sched_waking in columns where
//! nothing gets lost by that.
//!
//! The columns (`compact_sched`) hold no `prev_*` and no waker: a reader takes them from the switch before on the
//! same CPU. So an event goes there only if that gives what the event says; all others are written whole.

use super::plan::{Plan, as_number, packed};
use super::proto::{bytes, message, string, uint, varint};
use crate::formats::{Event, EventType};

/// Payload bytes at which a bundle is closed.
const FULL: usize = 64 << 10;
/// `TASK_COMM_LEN`, bytes.
const COMM: usize = 16;

/// Which fields of a `sched_switch` or `sched_waking` mean what.
pub enum Sched {
    /// `prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio`.
    Switch([usize; 7]),
    /// `comm pid prio target_cpu`, and `success` where the kernel has it.
    Waking([usize; 4], Option<usize>),
}

impl Sched {
    /// What `kind` means to the columns, if anything.
    pub fn new(kind: &EventType) -> Option<Sched> {
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
                Some(Sched::Switch(all(&names)?.try_into().ok()?))
            }
            "sched_waking" => {
                let fields = all(&["comm", "pid", "prio", "target_cpu"])?.try_into().ok()?;
                Some(Sched::Waking(fields, kind.field("success")))
            }
            _ => None,
        }
    }
}

/// A comm as a number: 16 bytes, filled up with NUL.
type Comm = u128;

fn comm(value: &[u8]) -> Option<Comm> {
    let mut padded = [0; COMM];
    padded.get_mut(..value.len())?.copy_from_slice(value);
    Some(Comm::from_le_bytes(padded))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Running {
    pid: i64,
    prio: i64,
    comm: Comm,
}

/// What is known of one CPU, and its bundle in the making.
#[derive(Default)]
pub struct Cpu {
    number: u32,
    /// Events written.
    pub events: u64,
    /// Events the kernel counted as lost.
    pub lost: u64,
    running: Option<Running>,
    after_loss: bool,
    full: Vec<u8>,
    compact: Compact,
}

#[derive(Default)]
struct Compact {
    interned: Vec<Comm>,
    switch: Columns,
    waking: Columns,
    switch_prev_state: Vec<u8>,
    waking_target_cpu: Vec<u8>,
    waking_flags: Vec<u8>,
}

#[derive(Default)]
struct Columns {
    last: u64,
    timestamp: Vec<u8>,
    pid: Vec<u8>,
    prio: Vec<u8>,
    comm: Vec<u8>,
}

impl Columns {
    fn push(&mut self, ts: u64, pid: i64, prio: i64, comm: usize) {
        varint(&mut self.timestamp, ts.wrapping_sub(self.last));
        self.last = ts;
        packed(&mut self.pid, pid);
        packed(&mut self.prio, prio);
        varint(&mut self.comm, comm as u64);
    }

    fn clear(&mut self) {
        self.last = 0;
        for column in [&mut self.timestamp, &mut self.pid, &mut self.prio, &mut self.comm] {
            column.clear();
        }
    }

    fn write(&self, out: &mut Vec<u8>, numbers: [u32; 4]) {
        let columns = [&self.timestamp, &self.pid, &self.prio, &self.comm];
        for (number, column) in numbers.into_iter().zip(columns) {
            if !column.is_empty() {
                bytes(out, number, column);
            }
        }
    }
}

impl Compact {
    /// The index of `comm` in the bundle's table. The table is searched from its end: what ran last runs next.
    fn intern(&mut self, comm: Comm) -> usize {
        self.interned.iter().rposition(|c| *c == comm).unwrap_or_else(|| {
            self.interned.push(comm);
            self.interned.len() - 1
        })
    }

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

    /// `FtraceEventBundle.CompactSched`.
    fn write(&self, out: &mut Vec<u8>) {
        self.switch.write(out, [1, 3, 4, 6]);
        if !self.switch_prev_state.is_empty() {
            bytes(out, 2, &self.switch_prev_state);
        }
        for interned in &self.interned {
            let name = interned.to_le_bytes();
            string(out, 5, name.split(|b| *b == 0).next().unwrap_or_default());
        }
        self.waking.write(out, [7, 8, 10, 11]);
        if !self.waking_target_cpu.is_empty() {
            bytes(out, 9, &self.waking_target_cpu);
            bytes(out, 12, &self.waking_flags);
        }
    }
}

impl Cpu {
    /// The CPU called `number`.
    pub fn new(number: u32) -> Cpu {
        Cpu { number, ..Cpu::default() }
    }

    /// Adds an event; closed bundles go to `out` as packets.
    #[inline]
    pub fn event(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        kind: &EventType,
        plan: &Plan,
        sched: Option<&Sched>,
    ) {
        self.events += 1;
        let done = match sched {
            Some(Sched::Switch(fields)) => self.switch(event, kind, fields),
            Some(Sched::Waking(fields, success)) => self.waking(event, kind, fields, *success),
            None => None,
        };
        if done.is_none() {
            message(&mut self.full, 2, |out| {
                uint(out, 1, event.ts);
                uint(out, 2, u64::from(event.tid as u32));
                plan.encode(out, event, kind);
                if event.flags as u8 != 0 {
                    uint(out, 5, u64::from(event.flags as u8));
                }
            });
        }
        if self.full.len() + self.compact.len() >= FULL {
            self.close(out);
        }
    }

    /// Events are missing before the next one.
    pub fn lost(&mut self, out: &mut Vec<u8>, count: Option<u64>) {
        self.close(out);
        self.lost += count.unwrap_or(0);
        self.after_loss = true;
        self.running = None;
    }

    /// `None` where the columns would not say all.
    fn switch(&mut self, event: &Event<'_>, kind: &EventType, fields: &[usize; 7]) -> Option<()> {
        let before = self.running.take();
        let number = |n: usize| event.value(kind, fields[n]).and_then(as_number).map(|v| v as i64);
        let name = |n: usize| event.text(kind, fields[n]).and_then(comm);
        let next = Running { comm: name(4)?, pid: number(5)?, prio: number(6)? };
        self.running = Some(next);
        let prev = Running { comm: name(0)?, pid: number(1)?, prio: number(2)? };
        let state = number(3)?;
        if before != Some(prev) || i64::from(event.tid) != prev.pid {
            return None;
        }
        let index = self.compact.intern(next.comm);
        self.compact.switch.push(event.ts, next.pid, next.prio, index);
        packed(&mut self.compact.switch_prev_state, state);
        Some(())
    }

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
        let (pid, prio, target) = (number(fields[1])?, number(fields[2])?, number(fields[3])?);
        let index = self.compact.intern(event.text(kind, fields[0]).and_then(comm)?);
        self.compact.waking.push(event.ts, pid, prio, index);
        packed(&mut self.compact.waking_target_cpu, target);
        packed(&mut self.compact.waking_flags, i64::from(event.flags as u8));
        Some(())
    }

    /// Writes what is there as a packet.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.full.is_empty() && self.compact.len() == 0 {
            return;
        }
        super::packet(out, |out| {
            message(out, 1, |out| {
                uint(out, 1, u64::from(self.number));
                out.extend_from_slice(&self.full);
                if std::mem::take(&mut self.after_loss) {
                    uint(out, 3, 1);
                }
                if self.compact.len() != 0 {
                    message(out, 4, |out| self.compact.write(out));
                }
            });
        });
        self.full.clear();
        self.compact.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comms_longer_than_the_kernels_are_not_put_into_columns() {
        assert!(comm(b"0123456789abcdef").is_some());
        assert_eq!(comm(b"0123456789abcdefg"), None);
    }
}
