//! Parses a tracepoint's `format` file: the id, the name, the fields and the print format.
//!
//! Where those files may not be read, [`builtin_formats`] has three entries of the kernel's own. Their
//! numbers and fields are the same in every kernel since Linux 2.6.31 (`kernel/trace/trace_entries.h`; the
//! arguments that Linux 6.13 appends to `function` are left out).

use thiserror::Error;

use super::{EventType, Field, FieldType};

/// Where a field lies in a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldSlot {
    /// Bytes from the start of the record.
    pub offset: u32,
    /// Size of the field, bytes.
    pub size: u32,
}

/// Where a record has the fields that all events share. A field of size 0 does not exist in this kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommonFields {
    /// `common_type`: the event's id.
    pub id: FieldSlot,
    /// `common_flags`: bits of the kernel's enum trace_flag_type.
    pub flags: FieldSlot,
    /// `common_preempt_count`: the depth of disabled preemption.
    pub preempt_count: FieldSlot,
    /// `common_pid`: the thread that was running.
    pub pid: FieldSlot,
}

/// The contents of a tracepoint's `format` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// The value of `common_type` in the event's records.
    pub id: u16,
    /// Where the event's records have the `common_` fields.
    pub common: CommonFields,
    /// The event's name, fields and print format.
    pub kind: EventType,
}

/// A text is not a `format` file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventFormatError {
    /// The text has no `name:` line.
    #[error("event format without a `name:` line")]
    NoName,
    /// The text has no `ID:` line with a number of 16 bits.
    #[error("format of event `{0}` without a usable `ID:` line")]
    NoId(String),
}

/// A `field:` line of a `format` or `header_page` file.
pub(super) struct FieldLine<'a> {
    declaration: &'a str,
    pub(super) offset: u32,
    pub(super) size: u32,
    signed: bool,
}

/// The `field:` lines of a text. Other lines are skipped.
pub(super) fn field_lines(text: &str) -> impl Iterator<Item = FieldLine<'_>> {
    text.lines().filter_map(FieldLine::parse)
}

impl<'a> FieldLine<'a> {
    fn parse(line: &'a str) -> Option<FieldLine<'a>> {
        let line = line.trim_start();
        let line = line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:"))?;
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?;
        let mut offset = None;
        let mut size = None;
        let mut signed = None;
        for part in parts {
            match part.split_once(':') {
                Some(("offset", v)) => offset = v.trim().parse().ok(),
                Some(("size", v)) => size = v.trim().parse().ok(),
                Some(("signed", v)) => signed = Some(v.trim() == "1"),
                _ => {}
            }
        }
        // Kernels before Linux 2.6.33 write no `signed:`.
        let signed =
            signed.unwrap_or_else(|| !declaration.contains("unsigned") && !declaration.starts_with('u'));
        Some(FieldLine { declaration, offset: offset?, size: size?, signed })
    }

    /// Splits the declaration into type and name: `unsigned long caller[8]` gives (`unsigned long[8]`,
    /// `caller`).
    fn split(&self) -> (String, &'a str) {
        let decl = self.declaration;
        let array = if decl.ends_with(']') { decl.rfind('[') } else { None };
        let (head, array) = match array {
            // Brackets that end the declaration belong to an array. Those of `__data_loc char[] name` belong
            // to the type.
            Some(at) => (decl[..at].trim_end(), &decl[at..]),
            None => (decl, ""),
        };
        let start = head
            .char_indices()
            .rev()
            .find(|(_, c)| !(c.is_alphanumeric() || *c == '_'))
            .map_or(0, |(at, c)| at + c.len_utf8());
        (format!("{}{array}", head[..start].trim_end()), &head[start..])
    }

    pub(super) fn name(&self) -> &'a str {
        self.split().1
    }

    fn field(&self) -> Field {
        let (ctype, name) = self.split();
        let ty = field_type(&ctype, self.size, self.signed);
        Field { name: name.to_owned(), ctype, ty, offset: self.offset, size: self.size }
    }
}

/// How the bytes of a field of C type `ctype` are read.
fn field_type(ctype: &str, size: u32, signed: bool) -> FieldType {
    let base = ctype.split('[').next().unwrap_or_default().trim();
    let element = base.trim_start_matches("__data_loc ").trim_start_matches("__rel_loc ");
    let is_char = matches!(element.trim_start_matches("const ").trim(), "char" | "signed char");
    let located = |string, bytes| if is_char { string } else { bytes };
    let elem = element_size(element);
    if ctype.starts_with("__data_loc") {
        return located(FieldType::DataLocStr, FieldType::DataLocBytes { elem });
    }
    if ctype.starts_with("__rel_loc") {
        return located(FieldType::RelLocStr, FieldType::RelLocBytes { elem });
    }
    // `print` declares `char buf` with a size of 0, and since Linux 5.10 `char buf[]`.
    if size == 0 && is_char {
        return FieldType::TailStr;
    }
    match ctype.split_once('[') {
        Some(_) if is_char => FieldType::FixedStr,
        Some((_, count)) => {
            let count: u32 = count.trim_end_matches(']').trim().parse().unwrap_or(0);
            let exact =
                size.checked_div(count).filter(|e| e * count == size).and_then(|e| u8::try_from(e).ok());
            FieldType::Bytes { elem: exact.filter(|e| *e > 0).unwrap_or(elem) }
        }
        None if !matches!(size, 1 | 2 | 4 | 8) => FieldType::Bytes { elem: 1 },
        None if signed => FieldType::Int,
        None => FieldType::Uint,
    }
}

/// Bytes of an element of an array whose length varies from record to record. An unknown type gives 1.
fn element_size(ctype: &str) -> u8 {
    match ctype.trim_start_matches("const ").trim() {
        "short" | "unsigned short" | "u16" | "s16" | "__u16" | "__s16" | "__le16" | "__be16" => 2,
        "int" | "unsigned int" | "unsigned" | "u32" | "s32" | "__u32" | "__s32" | "__le32" | "__be32" => 4,
        // On a 32-bit kernel `long` and `cpumask_t` have 4 bytes. Masks are read by their length in the
        // record.
        "long" | "unsigned long" | "u64" | "s64" | "__u64" | "__s64" | "__le64" | "__be64" | "cpumask_t"
        | "long long" | "unsigned long long" | "size_t" => 8,
        _ => 1,
    }
}

impl EventFormat {
    /// Parses the text of `events/SYSTEM/NAME/format`.
    ///
    /// # Errors
    /// Returns [`EventFormatError`] where the name or the id is missing.
    pub fn parse(system: &str, text: &str) -> Result<EventFormat, EventFormatError> {
        let line_of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        let name = line_of("name:").filter(|n| !n.is_empty()).ok_or(EventFormatError::NoName)?;
        let id = line_of("ID:")
            .and_then(|v| v.parse().ok())
            .ok_or_else(|| EventFormatError::NoId(name.to_owned()))?;
        let mut common = CommonFields::default();
        let mut fields = Vec::new();
        for line in field_lines(text) {
            let slot = FieldSlot { offset: line.offset, size: line.size };
            match line.name() {
                "common_type" => common.id = slot,
                "common_flags" => common.flags = slot,
                "common_preempt_count" => common.preempt_count = slot,
                "common_pid" => common.pid = slot,
                other if other.starts_with("common_") => {}
                _ => fields.push(line.field()),
            }
        }
        // The kernel writes the print format as one line. Some vendors' kernels continue it on further lines
        // (`REC->...`), so the rest of the text belongs to it.
        let print_fmt = text.find("print fmt:").map(|at| text[at + "print fmt:".len()..].trim().to_owned());
        let kind = EventType { system: system.to_owned(), name: name.to_owned(), fields, print_fmt };
        Ok(EventFormat { id, common, kind })
    }

    /// Parses only the id. An index of hundreds of formats needs no more.
    pub fn id_of(text: &str) -> Option<u16> {
        text.lines().take(8).find_map(|l| l.strip_prefix("ID:"))?.trim().parse().ok()
    }
}

/// The formats of `function`, `print` and `bprint` in the kernel's notation, with their names. `long_size` is
/// the size of the kernel's `long`, bytes.
pub fn builtin_formats(long_size: u32) -> [(&'static str, String); 3] {
    let second = 8 + long_size;
    let third = second + long_size;
    let long = |name: &str, offset: u32| {
        format!("\tfield:unsigned long {name};\toffset:{offset};\tsize:{long_size};\tsigned:0;\n")
    };
    let ip = long("ip", 8);
    let function = [ip.clone(), long("parent_ip", second)].concat();
    let print = format!("{ip}\tfield:char buf[];\toffset:{second};\tsize:0;\tsigned:0;\n");
    let bprint = format!(
        "{ip}\tfield:const char * fmt;\toffset:{second};\tsize:{long_size};\tsigned:0;\n\
         \tfield:u32 buf[];\toffset:{third};\tsize:0;\tsigned:0;\n"
    );
    let function_text = r#"" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip"#;
    [
        ("function", format(1, "function", &function, function_text)),
        ("print", format(5, "print", &print, r#""%ps: %s", (void *)REC->ip, REC->buf"#)),
        ("bprint", format(6, "bprint", &bprint, r#""%ps: %s", (void *)REC->ip, REC->fmt"#)),
    ]
}

fn format(id: u16, name: &str, fields: &str, print_fmt: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         {fields}\nprint fmt: {print_fmt}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::EventFormat;

    fn types(lines: &str) -> Vec<(String, String, FieldType)> {
        let text = format!("name: x\nID: 7\nformat:\n{lines}\nprint fmt: \"\"\n");
        let fields = EventFormat::parse("s", &text).unwrap().kind.fields;
        fields.into_iter().map(|f| (f.name, f.ctype, f.ty)).collect()
    }

    #[test]
    fn every_form_of_declaration_gives_name_c_type_and_field_type() {
        let got = types(
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:__rel_loc char[] name2;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:const char * fmt;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:char buf;\toffset:16;\tsize:0;\tsigned:0;\n\
             \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\
             \tfield:u32 words[];\toffset:16;\tsize:0;\tsigned:0;\n\
             \tfield:unsigned long caller[8];\toffset:16;\tsize:32;\tsigned:0;\n\
             \tfield:__data_loc unsigned long[] mask;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:__u8 saddr[sizeof(struct sockaddr_in6)];\toffset:8;\tsize:28;\tsigned:0;\n\
             \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;",
        );
        let want = [
            ("prev_comm", "char[16]", FieldType::FixedStr),
            ("name", "__data_loc char[]", FieldType::DataLocStr),
            ("name2", "__rel_loc char[]", FieldType::RelLocStr),
            ("fmt", "const char *", FieldType::Uint),
            ("buf", "char", FieldType::TailStr),
            ("buf", "char[]", FieldType::TailStr),
            ("words", "u32[]", FieldType::Bytes { elem: 4 }),
            ("caller", "unsigned long[8]", FieldType::Bytes { elem: 4 }),
            ("mask", "__data_loc unsigned long[]", FieldType::DataLocBytes { elem: 8 }),
            ("saddr", "__u8[sizeof(struct sockaddr_in6)]", FieldType::Bytes { elem: 1 }),
            ("pid", "pid_t", FieldType::Int),
            ("args", "unsigned long[6]", FieldType::Bytes { elem: 8 }),
        ];
        let want: Vec<_> = want.iter().map(|(n, c, t)| (n.to_string(), c.to_string(), *t)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn common_fields_are_not_among_the_fields_of_the_event() {
        let text = "name: x\nID: 314\nformat:\n\
                    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                    \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->a\n";
        let format = EventFormat::parse("sys", text).unwrap();
        assert_eq!((format.id, EventFormat::id_of(text)), (314, Some(314)));
        assert_eq!(format.common.pid, FieldSlot { offset: 4, size: 4 });
        assert_eq!(format.kind.fields.len(), 1);
        assert_eq!(format.kind.print_fmt.as_deref(), Some("\"%d\", REC->a"));
        assert_eq!(EventFormat::parse("s", "name: x\nID: 70000\n"), Err(EventFormatError::NoId("x".into())));
        assert_eq!(EventFormat::parse("s", ""), Err(EventFormatError::NoName));
    }

    #[test]
    fn the_built_in_formats_can_be_read() {
        for (long_size, offset) in [(4, 12), (8, 16)] {
            let formats = builtin_formats(long_size);
            for ((name, text), (id, field)) in formats.iter().zip([(1, "parent_ip"), (5, "buf"), (6, "fmt")])
            {
                let format = EventFormat::parse("ftrace", text).unwrap();
                assert_eq!((format.id, format.kind.name.as_str()), (id, *name));
                let found = format.kind.fields.iter().find(|f| f.name == field).unwrap();
                assert_eq!(found.offset, offset, "{name} with longs of {long_size} bytes");
            }
        }
    }
}
