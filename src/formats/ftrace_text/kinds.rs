//! From `name: fields` to a kind and its values: by the table of known events, else as `key=value` pairs, else as text.

use std::collections::HashMap;
use std::io;

use crate::formats::kind_list::{KindList, is_shaped, type_of};
use crate::formats::known::{self, KnownEvent, MAX_FIELDS};
use crate::formats::{EventType, EventTypeId, Field, FieldType, Sink, TEXT_FIELD, Value};

/// Values of one event, in the order of its kind's fields.
pub(super) struct Values<'a> {
    pub list: [Value<'a>; MAX_FIELDS],
    pub len: usize,
    /// `args` of `sys_enter`, as the ring buffer would hold them.
    pub array: [u8; 48],
    /// The field that is in `array`.
    pub array_field: Option<usize>,
}

impl Values<'_> {
    pub fn new() -> Self {
        Values { list: [Value::Int(0); MAX_FIELDS], len: 0, array: [0; 48], array_field: None }
    }
}

/// All ways in which one event's name was seen in this file.
struct Name {
    known: &'static [KnownEvent],
    /// Kind of each of `known`, once one was met.
    known_ids: Vec<Option<EventTypeId>>,
    /// Kinds made up from pairs.
    shapes: Vec<EventTypeId>,
    /// The kind for text that cannot be taken apart.
    text: Option<EventTypeId>,
}

/// The kinds of one file.
#[derive(Default)]
pub(super) struct Kinds {
    kinds: KindList,
    by_name: HashMap<Vec<u8>, usize>,
    names: Vec<Name>,
    print: Option<EventTypeId>,
}

impl Kinds {
    pub fn get(&self, id: EventTypeId) -> &EventType {
        self.kinds.get(id)
    }

    /// Takes what stands behind the time apart; tells the event's kind and its text (what stands behind the name).
    pub fn classify<'a>(
        &mut self,
        rest: &'a [u8],
        values: &mut Values<'a>,
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
        // The kernel's own entries of other kinds than events have no name before a colon.
        let (name, text) = match rest {
            _ if !name.is_empty() => (name, text),
            _ if rest.starts_with(b"<stack trace>") => (&b"kernel_stack"[..], rest),
            _ if rest.starts_with(b"<user stack trace>") => (&b"user_stack"[..], rest),
            _ if memchr::memmem::find(rest, b" <-").is_some() => (&b"function"[..], rest),
            _ => (&b"unknown"[..], rest),
        };
        Ok((self.named(name, text, values, sink)?, text))
    }

    fn print<'a>(
        &mut self,
        buf: &'a [u8],
        values: &mut Values<'a>,
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

    /// `sys_openat(dfd: …)` and `sys_openat -> 0x3`, as the kernel prints the events of `syscalls`.
    fn syscall<'a>(
        &mut self,
        rest: &'a [u8],
        values: &mut Values<'a>,
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
            return self.shaped(&name, "syscalls", &[b"ret"], values, sink).map(Some);
        }
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        values.len = 0;
        for pair in text.split(|b| *b == b',').take(MAX_FIELDS) {
            let pair = pair.trim_ascii();
            let Some(colon) = pair.iter().position(|b| *b == b':') else { continue };
            let value = pair[colon + 1..].trim_ascii_start();
            let hex = std::str::from_utf8(value).ok().and_then(|v| u64::from_str_radix(v, 16).ok());
            keys[values.len] = &pair[..colon];
            values.list[values.len] = hex.map_or(Value::Str(value), Value::Uint);
            values.len += 1;
        }
        let len = values.len;
        self.shaped(&name, "syscalls", &keys[..len], values, sink).map(Some)
    }

    fn named<'a>(
        &mut self,
        name: &'a [u8],
        text: &'a [u8],
        values: &mut Values<'a>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let at = self.name_index(name);
        let known_here = self.names[at].known;
        for (i, known) in known_here.iter().enumerate() {
            let Some(len) = known.parse(text, &mut values.list) else { continue };
            values.len = len;
            fill_array(known, values);
            if let Some(id) = self.names[at].known_ids[i] {
                return Ok(id);
            }
            let twin = self.kinds.find(|k| k.name == known.kind.name && k.fields == known.kind.fields);
            let id = match twin {
                Some(id) => id,
                None => self.kinds.add(known.kind.clone(), sink)?,
            };
            self.names[at].known_ids[i] = Some(id);
            return Ok(id);
        }
        let mut keys: [&[u8]; MAX_FIELDS] = [b""; MAX_FIELDS];
        match pairs(text, &mut keys, &mut values.list) {
            Some(len) => {
                values.len = len;
                self.shaped(name, "", &keys[..len], values, sink)
            }
            None => {
                values.list[0] = Value::Str(text);
                values.len = 1;
                if let Some(id) = self.names[at].text {
                    return Ok(id);
                }
                let id = self.shaped(name, "", &[TEXT_FIELD.as_bytes()], values, sink)?;
                self.names[at].text = Some(id);
                Ok(id)
            }
        }
    }

    fn name_index(&mut self, name: &[u8]) -> usize {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let known = known::lookup(name);
        self.names.push(Name { known, known_ids: vec![None; known.len()], shapes: Vec::new(), text: None });
        self.by_name.insert(name.to_vec(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The kind of this name whose fields have these keys and the values' types.
    fn shaped(
        &mut self,
        name: &[u8],
        system: &str,
        keys: &[&[u8]],
        values: &Values<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<EventTypeId> {
        let at = self.name_index(name);
        let fits = |id: &&EventTypeId| is_shaped(self.kinds.get(**id), keys, &values.list);
        if let Some(id) = self.names[at].shapes.iter().find(fits) {
            return Ok(*id);
        }
        let mut offset = known::COMMON_SIZE;
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
        let system = known::lookup(name).first().map_or(system, |k| &k.kind.system);
        let name_text = String::from_utf8_lossy(name).into_owned();
        let id = self
            .kinds
            .add(EventType { system: system.into(), name: name_text, fields, print_fmt: None }, sink)?;
        self.names[at].shapes.push(id);
        Ok(id)
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'-' || b == b'/'
}

/// `name: text`; an empty name where there is none.
fn split_name(rest: &[u8]) -> (&[u8], &[u8]) {
    match rest.iter().position(|b| !is_name(*b)) {
        Some(end) if rest[end] == b':' => (&rest[..end], rest[end + 1..].trim_ascii_start()),
        _ => (b"", rest),
    }
}

/// A marker as it was written. `trace-cmd report` and the kernel's `print` put the writer's name or address before it.
fn marker_text<'a>(name: &[u8], text: &'a [u8]) -> &'a [u8] {
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

/// Puts the numbers of an array, which the table hands over as text, where a [`Value::Bytes`] can borrow them.
fn fill_array(known: &KnownEvent, values: &mut Values<'_>) {
    let is_array = |f: &Field| matches!(f.ty, FieldType::Bytes { elem: 8 });
    let Some(at) = known.kind.fields.iter().position(is_array) else { return };
    let Value::Str(text) = values.list[at] else { return };
    values.array = [0; 48];
    for (slot, number) in values.array.chunks_exact_mut(8).zip(text.split(|b| *b == b',')) {
        let number = std::str::from_utf8(number.trim_ascii()).unwrap_or("");
        slot.copy_from_slice(&u64::from_str_radix(number, 16).unwrap_or(0).to_le_bytes());
    }
    values.array_field = Some(at);
}

/// A decimal or `0x` number that is all of `text`.
fn integer<'a>(text: &[u8]) -> Option<Value<'a>> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(Value::Uint),
        None => text.parse().ok().map(Value::Int),
    }
}

/// `key=value` pairs that make up all of `text`: a value runs up to the next ` key=`. `None` where the text starts
/// otherwise or has more pairs than fit.
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
    let (mut start, mut n) = (0, 0);
    loop {
        let mut value_end = text.len();
        let mut next = None;
        let mut from = end + 1;
        while let Some(blank) = memchr::memchr(b' ', &text[from..]).map(|at| from + at) {
            if let Some(key) = key_end(blank + 1) {
                (value_end, next) = (blank, Some((blank + 1, key)));
                break;
            }
            from = blank + 1;
        }
        let value = text[end + 1..value_end].trim_ascii();
        let value = value.strip_suffix(b",").unwrap_or(value);
        *keys.get_mut(n)? = &text[start..end];
        values[n] = integer(value).unwrap_or(Value::Str(value));
        n += 1;
        match next {
            Some(found) => (start, end) = found,
            None => return Some(n),
        }
    }
}
