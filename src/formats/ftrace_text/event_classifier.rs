//! Turns `name: fields` into an event type and field values: with the event catalog if it has the event, else
//! as `key=value` pairs, else as one field of text.

use std::collections::HashMap;
use std::io;

use crate::formats::event_catalog::{self, CatalogEntry, MAX_FIELDS};
use crate::formats::event_registry::{EventRegistry, TypesByShape, type_of};
use crate::formats::{EventType, EventTypeId, Field, FieldType, Sink, TEXT_FIELD, Value};

/// The values of one event, in the order of its type's fields.
pub(super) struct FieldValues<'a> {
    pub list: [Value<'a>; MAX_FIELDS],
    pub len: usize,
    /// The six numbers of `args` in `sys_enter`, as the ring buffer holds them: 8 bytes each, little-endian.
    pub array: [u8; 48],
    /// The position of the field whose value is `array`.
    pub array_field: Option<usize>,
}

impl FieldValues<'_> {
    pub fn new() -> Self {
        FieldValues { list: [Value::Int(0); MAX_FIELDS], len: 0, array: [0; 48], array_field: None }
    }
}

/// The event types that the events of one name have in this file.
struct TypesOfName {
    name: Box<[u8]>,
    /// The ways in which kernels print the event.
    catalog: &'static [CatalogEntry],
    /// The event type of each entry of `catalog`; `None` until an event of that form occurs.
    catalog_ids: Vec<Option<EventTypeId>>,
    /// Types that were derived from the keys of `key=value` pairs.
    from_pairs: TypesByShape,
    /// The type for text that cannot be split into fields.
    text: Option<EventTypeId>,
}

/// The name of an event whose line has no name before a colon, by the form in which the kernel prints it
/// (`trace_output.c`).
fn name_of_unnamed(text: &[u8]) -> &'static [u8] {
    const FORMS: [(&[u8], &[u8]); 5] = [
        (b" <-", b"function"),
        (b" inner/outer(us):", b"hwlat"),
        (b" timer_latency ", b"timerlat"),
        (b" ==> ", b"context_switch"),
        (b"   + ", b"wakeup"),
    ];
    if text.starts_with(b"<stack trace>") {
        return b"kernel_stack";
    }
    if text.starts_with(b"<user stack trace>") {
        return b"user_stack";
    }
    let is_in = |(form, _): &&(&[u8], &[u8])| memchr::memmem::find(text, form).is_some();
    if let Some((_, name)) = FORMS.iter().find(is_in) {
        return name;
    }
    // osnoise prints runtime, noise, the share of the CPU, the longest noise, and counts of its causes.
    let mut numbers = 0;
    let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let are_numbers = words.all(|word| {
        numbers += 1;
        is_number(word)
    });
    if are_numbers && numbers >= OSNOISE_COLUMNS { b"osnoise" } else { b"unknown" }
}

/// The columns of osnoise: kernels without the count of a cause print one less.
const OSNOISE_COLUMNS: usize = 8;

/// The number of names that are found without their hash.
const RECENT_NAMES: usize = 32;

/// Finds the type of each event, and keeps the types of one file.
#[derive(Default)]
pub(super) struct EventClassifier {
    kinds: EventRegistry,
    by_name: HashMap<Vec<u8>, usize>,
    /// Positions in `names` of the names that came last, each at the place that its length and its last byte
    /// give. Hashing every event's name took a twentieth of the time of reading a text.
    recent: [usize; RECENT_NAMES],
    names: Vec<TypesOfName>,
    print: Option<EventTypeId>,
}

impl EventClassifier {
    pub fn get(&self, id: EventTypeId) -> &EventType {
        self.kinds.get(id)
    }

    /// Parses the part of a line behind the time. Returns the event's type and its text without the name.
    pub fn classify<'a>(
        &mut self,
        rest: &'a [u8],
        values: &mut FieldValues<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<(EventTypeId, &'a [u8])> {
        values.array_field = None;
        let (name, text) = split_name(rest);
        if let b"tracing_mark_write" | b"0" | b"print" = name {
            return Ok((self.print(marker_text(name, text), values, sink)?, text));
        }
        if let Some(id) = self.syscall(rest, values, sink)? {
            return Ok((id, rest));
        }
        // Stack traces and function entries have no name before a colon.
        let (name, text) = match rest {
            _ if !name.is_empty() => (name, text),
            _ => (name_of_unnamed(rest), rest),
        };
        Ok((self.named(name, text, values, sink)?, text))
    }

    fn print<'a>(
        &mut self,
        buf: &'a [u8],
        values: &mut FieldValues<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        values.list[0] = Value::Uint(0);
        values.list[1] = Value::Str(buf);
        values.len = 2;
        if let Some(id) = self.print {
            return Ok(id);
        }
        let field = |name: &str, ctype: &str, ty, offset, size| Field {
            name: name.into(),
            ctype: ctype.into(),
            ty,
            offset,
            size,
        };
        let id = self.kinds.add(
            EventType {
                system: "ftrace".into(),
                name: "print".into(),
                fields: vec![
                    field("ip", "unsigned long", FieldType::Uint, 8, 8),
                    field("buf", "char[]", FieldType::TailStr, 16, 0),
                ],
                print_fmt: Some(r#""%ps: %s", (void *)REC->ip, REC->buf"#.into()),
            },
            sink,
        )?;
        self.print = Some(id);
        Ok(id)
    }

    /// Parses `sys_openat(dfd: …)` and `sys_openat -> 0x3`, the forms in which the kernel prints the events
    /// of the subsystem `syscalls`.
    fn syscall<'a>(
        &mut self,
        rest: &'a [u8],
        values: &mut FieldValues<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<Option<EventTypeId>> {
        let Some(call) = rest.strip_prefix(b"sys_") else { return Ok(None) };
        let end = call.iter().position(|b| !is_name(*b)).unwrap_or(call.len());
        let exits = call[end..].starts_with(b" -> ");
        if !exits && call.get(end) != Some(&b'(') {
            return Ok(None);
        }
        let name = [if exits { &b"sys_exit_"[..] } else { b"sys_enter_" }, &call[..end]].concat();
        let text = if exits { &call[end + 4..] } else { call[end + 1..].trim_ascii_end() };
        let text = text.strip_suffix(b")").unwrap_or(text);
        if exits {
            values.list[0] = integer(text).unwrap_or(Value::Str(text));
            values.len = 1;
            return self.type_of_pairs(&name, "syscalls", &[b"ret"], values, sink).map(Some);
        }
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        let Some(len) = arguments(text, &mut keys, &mut values.list) else { return Ok(None) };
        values.len = len;
        self.type_of_pairs(&name, "syscalls", &keys[..len], values, sink).map(Some)
    }

    fn named<'a>(
        &mut self,
        name: &'a [u8],
        text: &'a [u8],
        values: &mut FieldValues<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let at = self.name_index(name);
        let catalog = self.names[at].catalog;
        for (i, entry) in catalog.iter().enumerate() {
            let Some(len) = entry.parse(text, &mut values.list) else { continue };
            values.len = len;
            fill_array(entry, values);
            if let Some(id) = self.names[at].catalog_ids[i] {
                return Ok(id);
            }
            let twin = self.kinds.find(|k| k.name == entry.kind.name && k.fields == entry.kind.fields);
            let id = match twin {
                Some(id) => id,
                None => self.kinds.add(entry.kind.clone(), sink)?,
            };
            self.names[at].catalog_ids[i] = Some(id);
            return Ok(id);
        }
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        match pairs(text, &mut keys, &mut values.list) {
            Some(len) => {
                values.len = len;
                self.type_of_pairs(name, "", &keys[..len], values, sink)
            }
            None => {
                values.list[0] = Value::Str(text);
                values.len = 1;
                if let Some(id) = self.names[at].text {
                    return Ok(id);
                }
                let id = self.type_of_pairs(name, "", &[TEXT_FIELD.as_bytes()], values, sink)?;
                self.names[at].text = Some(id);
                Ok(id)
            }
        }
    }

    fn name_index(&mut self, name: &[u8]) -> usize {
        let place = (name.len() + usize::from(*name.last().unwrap_or(&0))) % RECENT_NAMES;
        let recent = self.recent[place];
        if self.names.get(recent).is_some_and(|types| *types.name == *name) {
            return recent;
        }
        let at = self.by_name.get(name).copied().unwrap_or_else(|| self.add_name(name));
        self.recent[place] = at;
        at
    }

    /// Adds the first event of this name, and returns the name's position.
    fn add_name(&mut self, name: &[u8]) -> usize {
        let catalog = event_catalog::lookup(name);
        let catalog_ids = vec![None; catalog.len()];
        self.names.push(TypesOfName {
            name: name.into(),
            catalog,
            catalog_ids,
            from_pairs: TypesByShape::default(),
            text: None,
        });
        self.by_name.insert(name.to_vec(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The event type of this name whose fields have these keys and the types of the values.
    fn type_of_pairs(
        &mut self,
        name: &[u8],
        system: &str,
        keys: &[&[u8]],
        values: &FieldValues<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let at = self.name_index(name);
        if let Some(id) = self.names[at].from_pairs.find(&self.kinds, keys, &values.list) {
            return Ok(id);
        }
        let mut offset = event_catalog::COMMON_SIZE;
        let fields = keys
            .iter()
            .zip(&values.list)
            .map(|(key, value)| {
                let ty = type_of(value);
                let (ctype, size) = match ty {
                    FieldType::Int => ("long", 8),
                    FieldType::Uint => ("unsigned long", 8),
                    _ => ("__data_loc char[]", 4),
                };
                let field = Field {
                    name: String::from_utf8_lossy(key).into_owned(),
                    ctype: ctype.into(),
                    ty,
                    offset: offset.next_multiple_of(size),
                    size,
                };
                offset = field.offset + size;
                field
            })
            .collect();
        let system = event_catalog::lookup(name).first().map_or(system, |k| &k.kind.system);
        let name_text = String::from_utf8_lossy(name).into_owned();
        let id = self
            .kinds
            .add(EventType { system: system.into(), name: name_text, fields, print_fmt: None }, sink)?;
        self.names[at].from_pairs.add(id, keys, &values.list);
        Ok(id)
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'-' || b == b'/'
}

/// The name and the text of `name: text`; an empty name where there is none.
pub(super) fn split_name(rest: &[u8]) -> (&[u8], &[u8]) {
    match rest.iter().position(|b| !is_name(*b)) {
        Some(end) if rest[end] == b':' => (&rest[..end], rest[end + 1..].trim_ascii_start()),
        _ => (b"", rest),
    }
}

/// The marker as the program wrote it. `trace-cmd report` and the kernel's `print` put the name or the
/// address of the kernel function that wrote the marker before it.
pub(super) fn marker_text<'a>(name: &[u8], text: &'a [u8]) -> &'a [u8] {
    if name == b"print" {
        let (writer, rest) = split_name(text);
        if writer == b"tracing_mark_write"
            || writer.starts_with(b"0x")
            || writer.starts_with(b"tracing_mark_write.")
        {
            return rest;
        }
    }
    text
}

/// Parses an array of numbers, which the catalog returns as text, into `values.array`, from which a
/// [`Value::Bytes`] can borrow.
fn fill_array(entry: &CatalogEntry, values: &mut FieldValues<'_>) {
    let is_array = |f: &Field| matches!(f.ty, FieldType::Bytes { elem: 8 });
    let Some(at) = entry.kind.fields.iter().position(is_array) else { return };
    let Value::Str(text) = values.list[at] else { return };
    values.array = [0; 48];
    for (slot, number) in values.array.chunks_exact_mut(8).zip(text.split(|b| *b == b',')) {
        let number = std::str::from_utf8(number.trim_ascii()).unwrap_or("");
        slot.copy_from_slice(&u64::from_str_radix(number, 16).unwrap_or(0).to_le_bytes());
    }
    values.array_field = Some(at);
}

/// The number that makes up all of `text`, in decimal or, behind `0x`, in hexadecimal.
fn integer<'a>(text: &[u8]) -> Option<Value<'a>> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(Value::Uint),
        None => text.parse().ok().map(Value::Int),
    }
}

/// Splits the arguments of a system call, `dfd: 3, filename: 7ff`, and returns how many there are. A part
/// without a new name in front belongs to the argument before it, whose text then holds a comma. `None` where
/// the first part has no name.
fn arguments<'a>(
    text: &'a [u8],
    keys: &mut [&'a [u8]; MAX_FIELDS],
    values: &mut [Value<'a>; MAX_FIELDS],
) -> Option<usize> {
    let is_key = |key: &[u8]| !key.is_empty() && key.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let mut at = 0;
    let mut n = 0;
    let mut value_starts = [0; MAX_FIELDS];
    let mut value_ends = [0; MAX_FIELDS];
    for part in text.split(|b| *b == b',') {
        let colon = part.iter().position(|b| *b == b':').filter(|colon| is_key(part[..*colon].trim_ascii()));
        match colon {
            Some(colon) if n < MAX_FIELDS && !keys[..n].contains(&part[..colon].trim_ascii()) => {
                keys[n] = part[..colon].trim_ascii();
                value_starts[n] = at + colon + 1;
                n += 1;
            }
            _ if n == 0 && !text.is_empty() => return None,
            _ => {}
        }
        at += part.len();
        value_ends[n.saturating_sub(1)] = at;
        at += 1;
    }
    for (value, (start, end)) in values[..n].iter_mut().zip(value_starts.into_iter().zip(value_ends)) {
        let text = text[start..end].trim_ascii();
        let hex = std::str::from_utf8(text).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        *value = hex.map_or(Value::Str(text), Value::Uint);
    }
    Some(n)
}

/// Splits `key=value` pairs that make up all of `text`, and returns how many there are. A value runs up to
/// the next ` key=`. `None` where the text does not start with a pair, has more than [`MAX_FIELDS`] of them,
/// or has two with one key.
fn pairs<'a>(
    text: &'a [u8],
    keys: &mut [&'a [u8]; MAX_FIELDS],
    values: &mut [Value<'a>; MAX_FIELDS],
) -> Option<usize> {
    let text = text.trim_ascii();
    let key_end = |from: usize| {
        let len =
            text[from..].iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.'))?;
        (len > 0 && text[from + len] == b'=').then_some(from + len)
    };
    let mut end = key_end(0)?;
    let mut start = 0;
    let mut n = 0;
    loop {
        let mut value_end = text.len();
        let mut next = None;
        let mut from = end + 1;
        while let Some(blank) = memchr::memchr(b' ', &text[from..]).map(|at| from + at) {
            if let Some(key) = key_end(blank + 1) {
                value_end = blank;
                next = Some((blank + 1, key));
                break;
            }
            from = blank + 1;
        }
        let value = text[end + 1..value_end].trim_ascii();
        let value = value.strip_suffix(b",").unwrap_or(value);
        if keys.get(..n)?.contains(&&text[start..end]) {
            return None;
        }
        *keys.get_mut(n)? = &text[start..end];
        values[n] = integer(value).unwrap_or(Value::Str(value));
        n += 1;
        match next {
            Some((next_start, next_end)) => {
                start = next_start;
                end = next_end;
            }
            None => return Some(n),
        }
    }
}
