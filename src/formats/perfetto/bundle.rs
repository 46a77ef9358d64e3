//! `FtraceEventBundle` (protos/perfetto/trace/ftrace/ftrace_event_bundle.proto): one CPU's events, the two most
//! frequent kinds as columns of deltas.

use super::wire::{Value, fields, find, packed};

/// One event of a bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub ts: u64,
    pub cpu: u32,
    pub what: What<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What<'a> {
    /// An `FtraceEvent` message.
    Event(&'a [u8]),
    /// A row of `CompactSched`: sched_switch without the thread that leaves, who is known from the switch before.
    Switch { prev_state: i64, next_pid: i32, next_prio: i32, next_comm: &'a [u8] },
    /// A row of `CompactSched`: sched_waking.
    Waking { pid: i32, target_cpu: i32, prio: i32, comm: &'a [u8], flags: u8 },
    /// Events before this one are missing.
    Lost,
}

/// What a bundle says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bundle<'a> {
    pub cpu: u32,
    /// `FtraceClock`; 0, as when absent, is boot.
    pub clock: u64,
    /// `FtraceParseStatus` of pages that the recorder could not read.
    pub errors: u32,
    /// Descriptions of kinds that have no message of their own.
    pub descriptors: &'a [u8],
}

/// The bundle's own fields.
pub(super) fn head(bundle: &[u8]) -> Bundle<'_> {
    let mut out = Bundle::default();
    for (number, value) in fields(bundle) {
        match number {
            1 => out.cpu = value.number() as u32,
            5 => out.clock = value.number(),
            8 => out.errors += 1,
            11 => out.descriptors = bundle,
            _ => {}
        }
    }
    out
}

/// Adds the bundle's events to `out`, in order of time. Whether all of the bundle could be read.
pub(super) fn items<'a>(bundle: &'a [u8], cpu: u32, out: &mut Vec<Item<'a>>) -> bool {
    let start = out.len();
    let mut lost = false;
    let mut all = fields(bundle);
    for (number, value) in all.by_ref() {
        match number {
            2 => {
                let event = value.bytes();
                let ts = find_first(event, 1).unwrap_or(0);
                out.push(Item { ts, cpu, what: What::Event(event) });
            }
            3 => lost |= value.number() != 0,
            4 => compact(value.bytes(), cpu, out),
            _ => {}
        }
    }
    if !out[start..].is_sorted_by_key(|i| i.ts) {
        out[start..].sort_by_key(|i| i.ts);
    }
    if lost {
        let ts = out.get(start).map_or(0, |i| i.ts);
        out.insert(start, Item { ts, cpu, what: What::Lost });
    }
    !all.broken
}

/// The timestamp is nearly always the first field: no need to read the whole event for it.
fn find_first(event: &[u8], number: u32) -> Option<u64> {
    fields(event).find(|(n, _)| *n == number).map(|(_, v)| v.number())
}

fn compact<'a>(sched: &'a [u8], cpu: u32, out: &mut Vec<Item<'a>>) {
    let names: Vec<&[u8]> = fields(sched).filter(|(n, _)| *n == 5).map(|(_, v)| v.bytes()).collect();
    let name = |index: u64| usize::try_from(index).ok().and_then(|i| names.get(i)).copied().unwrap_or(b"");
    let column = |number| packed(find(sched, number).map_or(&[][..], Value::bytes));
    let mut ts = 0u64;
    let mut rest = (column(2), column(3), column(4), column(6));
    for delta in column(1) {
        ts = ts.wrapping_add(delta);
        let what = What::Switch {
            prev_state: rest.0.next().unwrap_or(0) as i64,
            next_pid: rest.1.next().unwrap_or(0) as i32,
            next_prio: rest.2.next().unwrap_or(0) as i32,
            next_comm: name(rest.3.next().unwrap_or(u64::MAX)),
        };
        out.push(Item { ts, cpu, what });
    }
    ts = 0;
    let mut rest = (column(8), column(9), column(10), column(11), column(12));
    for delta in column(7) {
        ts = ts.wrapping_add(delta);
        let what = What::Waking {
            pid: rest.0.next().unwrap_or(0) as i32,
            target_cpu: rest.1.next().unwrap_or(0) as i32,
            prio: rest.2.next().unwrap_or(0) as i32,
            comm: name(rest.3.next().unwrap_or(u64::MAX)),
            flags: rest.4.next().unwrap_or(0) as u8,
        };
        out.push(Item { ts, cpu, what });
    }
}
