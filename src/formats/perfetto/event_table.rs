//! The table of the messages in which Perfetto's `FtraceEvent` encodes each type of event. The reader and the
//! writer share this table.
//!
//! `scripts/gen-perfetto-tables` writes `ftrace_events.tsv` from Perfetto's published protos.

use std::sync::OnceLock;

/// The message in `FtraceEvent` that holds one type of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventMessage {
    /// The kernel's event name. Where two subsystems have an event of the same name, the subsystem's name and
    /// `_` precede it.
    pub(crate) name: &'static str,
    /// Field number in `FtraceEvent`.
    pub(crate) number: u32,
    /// Sorted by field number.
    pub(crate) fields: Vec<MessageField>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageField {
    /// The kernel's field name.
    pub(crate) name: &'static str,
    /// Field number in the event's message.
    pub(crate) number: u32,
    pub(crate) ty: ProtoType,
    pub(crate) repeated: bool,
}

/// The type of a field. Protobuf types that hold the same kind of value are one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtoType {
    /// `int32`, `int64` or an enum: a varint. A negative number takes ten bytes.
    Int,
    /// `uint32`, `uint64` or `bool`: a varint.
    Uint,
    /// `string`.
    Str,
    /// `bytes`.
    Bytes,
}

/// The events and the fields in which trace_processor takes a number for the interning id of a kernel symbol
/// (src/trace_processor/importers/ftrace/ftrace_parser.cc, kKernelFunctionFields).
pub(crate) const SYMBOL_FIELDS: &[(&str, &str)] = &[
    ("sched_blocked_reason", "caller"),
    ("workqueue_execute_start", "function"),
    ("workqueue_queue_work", "function"),
    ("funcgraph_entry", "func"),
    ("funcgraph_exit", "func"),
    ("mm_shrink_slab_start", "shrink"),
    ("mm_shrink_slab_end", "shrink"),
];

/// Whether a field of an event is one of [`SYMBOL_FIELDS`].
pub(crate) fn is_symbol(event: &str, field: &str) -> bool {
    SYMBOL_FIELDS.contains(&(event, field))
}

/// Every event message, sorted by field number.
pub(crate) fn events() -> &'static [EventMessage] {
    static EVENTS: OnceLock<Vec<EventMessage>> = OnceLock::new();
    EVENTS.get_or_init(|| include_str!("ftrace_events.tsv").lines().filter_map(event).collect())
}

/// The message for the kernel event `system`/`name`, if Perfetto has one for it.
pub(crate) fn by_name(system: &str, name: &str) -> Option<&'static EventMessage> {
    let is_long = |spec: &str| {
        spec.strip_prefix(system).and_then(|s| s.strip_prefix('_')) == Some(name) && !system.is_empty()
    };
    let all = events();
    all.iter().find(|e| is_long(e.name)).or_else(|| all.iter().find(|e| e.name == name))
}

/// The message with this field number in `FtraceEvent`.
pub(crate) fn by_number(number: u32) -> Option<&'static EventMessage> {
    let all = events();
    all.binary_search_by_key(&number, |e| e.number).ok().and_then(|n| all.get(n))
}

fn event(line: &'static str) -> Option<EventMessage> {
    let mut parts = line.split('\t');
    let number = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let fields = parts.next()?.split_ascii_whitespace().filter_map(field).collect();
    Some(EventMessage { name, number, fields })
}

fn field(text: &'static str) -> Option<MessageField> {
    let mut parts = text.split(':');
    let name = parts.next()?;
    let number = parts.next()?.parse().ok()?;
    let ty = parts.next()?;
    let repeated = ty.ends_with('*');
    let ty = match ty.as_bytes().first()? {
        b'i' => ProtoType::Int,
        b'u' => ProtoType::Uint,
        b's' => ProtoType::Str,
        b'b' => ProtoType::Bytes,
        _ => return None,
    };
    Some(MessageField { name, number, ty, repeated })
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
        assert!(events().is_sorted_by_key(|e| e.number), "by_number does a binary search");
    }

    #[test]
    fn events_are_found_as_the_kernel_calls_them() {
        let switch = by_name("sched", "sched_switch").unwrap();
        assert_eq!((switch.number, switch.fields[3].name, switch.fields[3].number), (4, "prev_state", 4));
        assert_eq!(by_name("sde", "tracing_mark_write").unwrap().name, "sde_tracing_mark_write");
        assert_eq!(by_name("", "print").map(|e| e.number), Some(3));
        assert_eq!(by_number(3).map(|e| e.name), Some("print"));
        assert!(by_name("raw_syscalls", "sys_enter").unwrap().fields[1].repeated);
        assert_eq!(by_name("x", "no_such_event"), None);
    }
}
