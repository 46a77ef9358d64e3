//! The catalog of kernel events: the fields of each event as the kernel declares them, and the text that the
//! kernel prints for it. Texts and Perfetto traces name events without describing them. With the catalog a
//! line of text becomes typed fields, and typed fields become a line of text.
//!
//! `events.txt` is the table, taken from `events/*/*/format` of Android kernels 3.4 to 5.10 and newer ones
//! where they differ. An event is one line `system/name field:type …`, followed by one indented template for
//! each way in which some kernel or trace-cmd prints it; [`template`] explains the templates.

mod template;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Event, EventType, Field, FieldType, Value};
use template::Template;

pub(crate) use template::MAX_FIELDS;

/// The size in bytes of the `common_` fields, which precede an event's own: type, flags, preempt count and
/// pid.
pub(crate) const COMMON_SIZE: u32 = 8;

/// One way in which some kernel prints one event.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    /// The event with those of its fields that the printed text contains. The offsets are those of a 64-bit
    /// little-endian record.
    pub(crate) kind: EventType,
    template: Template,
}

impl CatalogEntry {
    /// Parses `text`, the part of a line behind `name: `. Puts one value for each field of [`Self::kind`]
    /// into `out` and returns the number of values. An array of numbers stays text. Returns `None` where the
    /// text does not match this way of printing.
    pub(crate) fn parse<'a>(&self, text: &'a [u8], out: &mut [Value<'a>; MAX_FIELDS]) -> Option<usize> {
        self.template.parse(text, &self.kind.fields, out).then_some(self.kind.fields.len())
    }

    /// Whether `kind` has every field that this way of printing needs.
    fn fits(&self, kind: &EventType) -> bool {
        self.kind.fields.iter().all(|f| kind.field(&f.name).is_some())
    }
}

/// All ways in which kernels print the event called `name`; empty for an event that is not in the catalog.
pub(crate) fn lookup(name: &[u8]) -> &'static [CatalogEntry] {
    std::str::from_utf8(name).ok().and_then(|name| TABLE.get(name)).map_or(&[], Vec::as_slice)
}

/// Appends the fields of `event` as the kernel prints them; as `name=value` pairs where the event is not in
/// the catalog.
pub fn render(event: &Event<'_>, kind: &EventType, out: &mut Vec<u8>) {
    match lookup(kind.name.as_bytes()).iter().find(|k| k.fits(kind)) {
        Some(known) => known.template.render(event, kind, &known.kind.fields, out),
        None => template::render_pairs(event, kind, out),
    }
}

/// Whether the kernel prints events of this type without `name: ` before their text: system calls
/// (`sys_openat -> 0x3`), functions, stack traces, and lines that no reader could classify.
pub(crate) fn prints_itself(kind: &EventType) -> bool {
    kind.system == "syscalls"
        || matches!(kind.name.as_str(), "function" | "kernel_stack" | "user_stack" | "unknown")
}

static TABLE: LazyLock<HashMap<&'static str, Vec<CatalogEntry>>> =
    LazyLock::new(|| parse_table(include_str!("events.txt")));

fn parse_table(text: &'static str) -> HashMap<&'static str, Vec<CatalogEntry>> {
    let mut table: HashMap<&str, Vec<CatalogEntry>> = HashMap::new();
    let mut head = ("", "", "");
    for line in text.lines() {
        let Some(pattern) = line.strip_prefix('\t') else {
            let (path, fields) = line.split_once(' ').unwrap_or((line, ""));
            let (system, name) = path.split_once('/').unwrap_or(("", path));
            head = (system, name, fields);
            continue;
        };
        let (system, name, declared) = head;
        let is_printed = |field: &str| {
            let has = |end: &str| pattern.contains(&format!("{{{field}{end}"));
            has("}") || has(":")
        };
        let fields = lay_out(
            declared.split(' ').filter_map(|f| f.split_once(':')).filter(|(field, _)| is_printed(field)),
        );
        let template = Template::new(pattern, &fields);
        let print_fmt = Some(template.print_fmt(&fields));
        let kind = EventType { system: system.into(), name: name.into(), fields, print_fmt };
        table.entry(name).or_default().push(CatalogEntry { kind, template });
    }
    table
}

/// Places the fields behind the common fields, aligned as the kernel aligns them.
fn lay_out<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Field> {
    let mut offset = COMMON_SIZE;
    fields
        .map(|(name, ty)| {
            let (ctype, ty, size) = field_type(ty);
            let align = match ty {
                FieldType::FixedStr => 1,
                FieldType::Bytes { elem } => u32::from(elem),
                _ => size,
            };
            offset = offset.next_multiple_of(align.max(1));
            let field = Field { name: name.into(), ctype, ty, offset, size };
            offset += size;
            field
        })
        .collect()
}

/// The C type, the type of value and the size in bytes for a type's name in the table.
fn field_type(ty: &str) -> (String, FieldType, u32) {
    let int = |ctype: &str, ty, size| (ctype.to_owned(), ty, size);
    match ty {
        "i8" => int("char", FieldType::Int, 1),
        "u8" => int("unsigned char", FieldType::Uint, 1),
        "i16" => int("short", FieldType::Int, 2),
        "u16" => int("unsigned short", FieldType::Uint, 2),
        "i32" => int("int", FieldType::Int, 4),
        "u32" => int("unsigned int", FieldType::Uint, 4),
        "i64" => int("long", FieldType::Int, 8),
        "str" => int("__data_loc char[]", FieldType::DataLocStr, 4),
        "u64[6]" => int("unsigned long[6]", FieldType::Bytes { elem: 8 }, 48),
        other => match other.strip_prefix("char").and_then(|n| n.parse().ok()) {
            Some(size) => (format!("char[{size}]"), FieldType::FixedStr, size),
            None => int("unsigned long", FieldType::Uint, 8),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{Cpu, Tid};

    fn parse(name: &str, text: &'static str) -> Option<(&'static CatalogEntry, Vec<Value<'static>>)> {
        let mut out = [Value::Int(0); MAX_FIELDS];
        let known = lookup(name.as_bytes()).iter().find(|k| k.parse(text.as_bytes(), &mut out).is_some())?;
        Some((known, out[..known.kind.fields.len()].to_vec()))
    }

    #[test]
    fn every_event_of_the_table_has_a_template_and_no_more_fields_than_fit() {
        assert!(TABLE.len() > 200);
        for known in TABLE.values().flatten() {
            assert!(known.kind.fields.len() <= MAX_FIELDS, "{}", known.kind.name);
            let mut end = COMMON_SIZE;
            for f in &known.kind.fields {
                assert!(f.offset >= end, "{}.{} overlaps", known.kind.name, f.name);
                end = f.offset + f.size;
            }
        }
    }

    #[test]
    fn sched_switch_has_typed_fields_in_every_layout() {
        for text in [
            "prev_comm=a b=1 prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=x ==> y next_pid=0 next_prio=98",
            "a b=1:5 [120] R+ ==> x ==> y:0 [98]",
            "prev_comm=a b=1 prev_pid=5 prev_prio=120 prev_state=256 ==> next_comm=x ==> y next_pid=0 next_prio=98",
        ] {
            let (_, values) = parse("sched_switch", text).unwrap();
            let want = [
                Value::Str(b"a b=1"),
                Value::Int(5),
                Value::Int(120),
                Value::Int(256),
                Value::Str(b"x ==> y"),
                Value::Int(0),
                Value::Int(98),
            ];
            assert_eq!(values, want, "{text}");
        }
    }

    #[test]
    fn a_comm_may_contain_the_separator() {
        let (_, values) = parse("sched_wakeup", "kworker/1:2H:77 [120] success=1 CPU:003").unwrap();
        assert_eq!(values[..2], [Value::Str(b"kworker/1:2H"), Value::Int(77)]);
    }

    #[test]
    fn parsed_fields_are_printed_as_the_same_text() {
        for (name, text) in [
            ("sched_waking", "comm=sh pid=8 prio=120 target_cpu=002"),
            ("irq_handler_exit", "irq=28 ret=handled"),
            ("softirq_entry", "vec=9 [action=RCU]"),
            ("sys_enter", "NR 172 (29, c350, 805, ffffffff, 81, a508c6e8)"),
            (
                "binder_transaction",
                "transaction=1 dest_node=2 dest_proc=3 dest_thread=0 reply=0 flags=0x10 code=0x1f",
            ),
            ("block_rq_issue", "8,0 WS 4096 () 123 + 8 [kworker/0:1]"),
            ("clock_set_rate", "gpu clk state=500 cpu_id=1"),
            ("workqueue_execute_start", "work struct 00000000c0ffee00: function 00000000deadbeef"),
        ] {
            let (known, values) = parse(name, text).unwrap_or_else(|| panic!("{name}: {text}"));
            let event = Event {
                ts: Timestamp(0),
                cpu: Cpu(0),
                tid: Tid(0),
                kind: super::super::EventTypeId(0),
                flags: 0,
                preempt_count: 0,
                comm: None,
                tgid: None,
                payload: super::super::Payload::Values { values: &values, text: None },
            };
            let mut out = Vec::new();
            render(&event, &known.kind, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn a_text_of_another_shape_is_not_forced_into_fields() {
        assert!(parse("sched_switch", "prev_comm=a prev_pid=x").is_none());
        assert!(parse("irq_handler_exit", "irq=28 ret=perhaps").is_none());
        assert!(lookup(b"nobody_knows").is_empty());
    }
}
