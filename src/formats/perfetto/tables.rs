//! How Perfetto's `FtraceEvent` encodes each kind of event, from Perfetto's published protos.
//!
//! `ftrace_events.tsv` is written by `scripts/gen-perfetto-tables`; reader and writer share it.

use std::sync::OnceLock;

/// One kind of event: its message in `FtraceEvent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// The kernel's name; where two subsystems have events of one name, with the subsystem's in front.
    pub name: &'static str,
    /// Field number in `FtraceEvent`.
    pub number: u32,
    /// Its fields, by field number.
    pub fields: Vec<FieldSpec>,
}

/// One field of an event's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// The kernel's name of it.
    pub name: &'static str,
    /// Field number in the event's message.
    pub number: u32,
    /// What it holds.
    pub ty: FieldKind,
    /// Whether it may come several times.
    pub repeated: bool,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// `int32`, `int64` or an enum: a varint, negative ones with ten bytes.
    Int,
    /// `uint32`, `uint64` or `bool`: a varint.
    Uint,
    /// `string`.
    Str,
    /// `bytes`.
    Bytes,
}

/// Every kind of event that has a message of its own, by field number.
pub fn events() -> &'static [EventSpec] {
    static EVENTS: OnceLock<Vec<EventSpec>> = OnceLock::new();
    EVENTS.get_or_init(|| include_str!("ftrace_events.tsv").lines().filter_map(event).collect())
}

/// The message for an event of the kernel, if it has one of its own.
pub fn by_name(system: &str, name: &str) -> Option<&'static EventSpec> {
    let is_long = |spec: &str| {
        spec.strip_prefix(system).and_then(|s| s.strip_prefix('_')) == Some(name) && !system.is_empty()
    };
    let all = events();
    all.iter().find(|e| is_long(e.name)).or_else(|| all.iter().find(|e| e.name == name))
}

/// The message with this field number in `FtraceEvent`.
pub fn by_number(number: u32) -> Option<&'static EventSpec> {
    let all = events();
    all.binary_search_by_key(&number, |e| e.number).ok().and_then(|n| all.get(n))
}

fn event(line: &'static str) -> Option<EventSpec> {
    let mut parts = line.split('\t');
    let number = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let fields = parts.next()?.split_ascii_whitespace().filter_map(field).collect();
    Some(EventSpec { name, number, fields })
}

fn field(text: &'static str) -> Option<FieldSpec> {
    let mut parts = text.split(':');
    let (name, number, ty) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let repeated = ty.ends_with('*');
    let ty = match ty.as_bytes().first()? {
        b'i' => FieldKind::Int,
        b'u' => FieldKind::Uint,
        b's' => FieldKind::Str,
        b'b' => FieldKind::Bytes,
        _ => return None,
    };
    Some(FieldSpec { name, number, ty, repeated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let lines = include_str!("ftrace_events.tsv").lines();
        assert_eq!(events().len(), lines.clone().count());
        let fields: usize = lines.map(|l| l.matches(':').count() / 2).sum();
        assert_eq!(events().iter().map(|e| e.fields.len()).sum::<usize>(), fields);
        assert!(events().is_sorted_by_key(|e| e.number), "by_number searches by halves");
    }

    #[test]
    fn events_are_found_as_the_kernel_calls_them() {
        let switch = by_name("sched", "sched_switch").unwrap();
        assert_eq!((switch.number, switch.fields[3].name, switch.fields[3].number), (4, "prev_state", 4));
        assert_eq!(by_name("sde", "tracing_mark_write").unwrap().name, "sde_tracing_mark_write");
        assert_eq!(by_name("", "print").map(|e| e.number), Some(3));
        assert_eq!(by_number(3).map(|e| e.name), Some("print"));
        assert!(by_name("raw_syscalls", "sys_enter").unwrap().fields[1].repeated);
        assert_eq!(by_name("x", "nobody_has_this"), None);
    }
}
