//! Prints an event as a line of tracefs' `trace` file with its TGID column, which systrace, Catapult and
//! Perfetto read:
//!
//! `            comm-1234    (   1230) [001] d..2.  1234.567890: sched_waking: comm=…`
//!
//! The layout is that of `trace_print_context()` in the kernel's kernel/trace/trace_output.c.

use std::sync::Arc;

use crate::formats::{Event, EventType, Payload, Value, event_catalog};
use crate::ftrace::print_fmt::{PrintFmt, PrintFmtError, Symbolizer};
use crate::ftrace::{Endian, Field, trace_flags};
use crate::ids::Tid;
use crate::text::digits::{eight_digits, push_hex, push_i64, push_padded};
use crate::text::pieces::{InlineBytes, PieceRoom, PieceWriter};
use crate::text::{end_no_line, until_nul};
use crate::tracks::thread_names::ThreadNames;

/// The comment at the top of a text, which explains the columns of the lines.
pub(super) const HEADER: &str = "\
# tracer: nop
#
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |       |   |||||     |         |
";

/// The columns of the last thread are cached for CPUs below this number. Lines of other CPUs take longer to
/// print.
const MAX_CACHED_CPUS: usize = 1024;

/// Prints the columns before an event's name: thread, process, CPU, flags and time. Consecutive events of a
/// CPU are mostly of one thread, so the columns of each CPU's last thread are cached as bytes.
#[derive(Debug, Default)]
pub struct LineColumns {
    threads: Arc<ThreadNames>,
    /// For each CPU the thread id of its last event, and `comm-tid (tgid) [cpu] `.
    cache: Vec<(Tid, InlineBytes<64>)>,
    /// The second of the last event's time, µs, and ` SECONDS.` as bytes; empty before the first event.
    second: (u64, InlineBytes<16>),
}

impl LineColumns {
    /// Takes names and processes from `threads` from now on.
    pub(super) fn set_threads(&mut self, threads: &Arc<ThreadNames>) {
        if !Arc::ptr_eq(&self.threads, threads) {
            self.threads = threads.clone();
            self.cache.clear();
        }
    }

    /// Appends the columns of `event`.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let mut room = PieceRoom::default();
        let mut line = PieceWriter::new(&mut room, out);
        self.push_to(&mut line, event);
        line.long();
    }

    /// As [`LineColumns::push`], for a caller that puts a line together.
    #[inline]
    pub(super) fn push_to(&mut self, line: &mut PieceWriter<'_>, event: &Event<'_>) {
        let cpu = event.cpu.index();
        match self.cache.get(cpu) {
            Some((tid, columns)) if *tid == event.tid && event.comm.is_none() && event.tgid.is_none() => {
                line.text(columns);
            }
            _ => self.push_columns(event, line.long()),
        }
        let flags = trace_flags::encode(event.flags, event.preempt_count);
        let micros = event.ts.0.saturating_add(500) / 1000;
        // The times of most events lie in the second of the event before.
        if micros.wrapping_sub(self.second.0) >= 1_000_000 || self.second.1.is_empty() {
            self.set_second(micros / 1_000_000);
        }
        line.put(&flags, flags.len());
        line.text(&self.second.1);
        line.put(&six_digits_and_colon((micros - self.second.0) as u32), 8);
    }

    /// Caches ` SECONDS.`; the kernel pads the seconds to five characters.
    #[cold]
    fn set_second(&mut self, second: u64) {
        let mut text = b" ".to_vec();
        push_padded(&mut text, second, 5, b' ');
        text.push(b'.');
        self.second = (second * 1_000_000, InlineBytes::new(&text));
    }

    fn push_columns(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let threads = self.threads.clone();
        let known = threads.get(event.tid);
        let name = match event.comm.or_else(|| known?.name.as_deref()) {
            Some(name) => name,
            None if event.tid == Tid::IDLE => b"<idle>",
            None => b"<...>",
        };
        out.resize(start + 16usize.saturating_sub(name.len()), b' ');
        out.extend_from_slice(name);
        end_no_line(&mut out[start..]);
        out.push(b'-');
        let digits = out.len();
        push_i64(out, event.tid.into());
        out.resize(out.len().max(digits + 7), b' ');
        match event.tgid.or_else(|| known?.tgid).map(i64::from).filter(|tgid| *tgid > 0) {
            Some(tgid) => {
                out.extend_from_slice(b" (");
                push_padded(out, tgid as u64, 7, b' ');
            }
            None => out.extend_from_slice(b" (-------"),
        }
        out.extend_from_slice(b") [");
        push_padded(out, event.cpu.0.into(), 3, b'0');
        out.extend_from_slice(b"] ");
        let cpu = event.cpu.index();
        if cpu < MAX_CACHED_CPUS && event.comm.is_none() && event.tgid.is_none() {
            if self.cache.len() <= cpu {
                self.cache.resize(cpu + 1, (Tid(i32::MIN), InlineBytes::default()));
            }
            let (tid, columns) = &mut self.cache[cpu];
            *tid = event.tid;
            columns.set(&out[start..]);
        }
    }
}

/// The six digits of a number of µs below a second, a colon and a blank.
#[inline]
fn six_digits_and_colon(micros: u32) -> [u8; 8] {
    // The first two of eight digits are zeroes. The first one is in the lowest byte.
    let digits = u64::from_le_bytes(eight_digits(micros)) >> 16;
    (digits | (u64::from(b':') << 48) | (u64::from(b' ') << 56)).to_le_bytes()
}

/// Prints the name and the fields of events of one type.
#[derive(Debug)]
pub struct EventPrinter {
    layout: EventLayout,
    /// The event's name as the line has it: `sched_switch: `.
    name: InlineBytes<32>,
    /// Prints `name=value` pairs, for records that are too short for their format.
    pairs: PrintFmt,
    context: Arc<Symbolizer>,
}

/// The way to print the event's name and fields, which follow the columns in a line.
#[derive(Debug)]
enum EventLayout {
    /// The event's name, then the fields by the kernel's print format.
    Format(PrintFmt),
    /// The text of a marker: `print`, which systrace calls `tracing_mark_write`.
    Marker { ip: Option<Field>, buf: Field },
    /// `bprint`: the output of `trace_printk()`. The record holds the address of the format, not its text.
    Bprint { ip: Field, fmt: Field, buf: Field },
    /// `bputs`: the output of `trace_puts()`. The record holds the address of the text, not the text.
    Bputs { ip: Field, text: Field },
    /// `function`: the function and its caller, by address.
    Function { ip: Field, parent: Field },
    /// The events of the group `syscalls`, which the kernel prints by functions of its own
    /// (`print_syscall_enter()` in kernel/trace/trace_syscalls.c): `sys_read(fd: 3, count: 20)`. Holds the
    /// name `sys_read` and the arguments.
    SyscallEnter { name: String, arguments: Vec<Field> },
    /// The end of a system call: `sys_read -> 0x20`.
    SyscallExit { name: String, ret: Field },
    /// `kernel_stack` and `user_stack`: a list of addresses, one on a line.
    Stack { caller: Field, user: bool },
}

impl EventPrinter {
    /// A printer for events of type `kind`; `context` has the symbols of the machine that recorded the
    /// events.
    pub fn new(kind: &EventType, context: &Arc<Symbolizer>) -> EventPrinter {
        let field = |name: &str| kind.field(name).map(|i| kind.fields[i].clone());
        let both = |a: &str, b: &str| Some((field(a)?, field(b)?));
        let special = match (kind.system.as_str(), kind.name.as_str()) {
            (_, "print") => field("buf").map(|buf| EventLayout::Marker { ip: field("ip"), buf }),
            ("ftrace", "bprint") => both("ip", "fmt")
                .and_then(|(ip, fmt)| Some(EventLayout::Bprint { ip, fmt, buf: field("buf")? })),
            ("ftrace", "bputs") => both("ip", "str").map(|(ip, text)| EventLayout::Bputs { ip, text }),
            ("ftrace", "function") => {
                both("ip", "parent_ip").map(|(ip, parent)| EventLayout::Function { ip, parent })
            }
            ("syscalls", event) => {
                match (event.strip_prefix("sys_enter_"), event.strip_prefix("sys_exit_")) {
                    (Some(call), _) => {
                        let is_argument = |f: &&Field| !matches!(f.name.as_str(), "nr" | "__syscall_nr");
                        let arguments = kind.fields.iter().filter(is_argument).cloned().collect();
                        Some(EventLayout::SyscallEnter { name: format!("sys_{call}"), arguments })
                    }
                    (_, Some(call)) => {
                        field("ret").map(|ret| EventLayout::SyscallExit { name: format!("sys_{call}"), ret })
                    }
                    _ => None,
                }
            }
            ("ftrace", "kernel_stack") => {
                field("caller").map(|caller| EventLayout::Stack { caller, user: false })
            }
            ("ftrace", "user_stack") => {
                field("caller").map(|caller| EventLayout::Stack { caller, user: true })
            }
            _ => None,
        };
        let pairs = PrintFmt::pairs(kind);
        let format = || PrintFmt::compile(kind, context.long_size).unwrap_or_else(|_| pairs.clone());
        let layout = special.unwrap_or_else(|| EventLayout::Format(format()));
        EventPrinter {
            pairs,
            layout,
            name: InlineBytes::new(format!("{}: ", kind.name).as_bytes()),
            context: context.clone(),
        }
    }

    /// The limit because of which arguments of the event's print format are printed as `?`, if there is one.
    pub fn too_complex(&self) -> Option<&PrintFmtError> {
        match &self.layout {
            EventLayout::Format(format) => format.too_complex(),
            _ => None,
        }
    }

    /// Appends the event's name and its fields.
    pub fn push(&self, event: &Event<'_>, kind: &EventType, out: &mut Vec<u8>) {
        let mut room = PieceRoom::default();
        let mut line = PieceWriter::new(&mut room, out);
        self.push_to(&mut line, event, kind);
        line.long();
    }

    /// As [`EventPrinter::push`], for a caller that puts a line together.
    #[inline]
    pub(super) fn push_to(&self, line: &mut PieceWriter<'_>, event: &Event<'_>, kind: &EventType) {
        match (&event.payload, &self.layout) {
            (Payload::Raw { data, endian }, layout) => {
                let done = match layout {
                    EventLayout::Format(format) => {
                        format.print_to(line, &self.name, data, *endian, &self.context)
                    }
                    special => line.attempt(|line| self.special(special, data, *endian, line.long())),
                };
                if done.is_none() {
                    self.pairs.print_to(line, &self.name, data, *endian, &self.context);
                }
            }
            (Payload::Values { text, .. }, layout) => {
                self.push_values(*text, layout, event, kind, line.long());
            }
        }
    }

    /// Appends the name of an event that is no record, and its text or its values.
    fn push_values(
        &self,
        text: Option<&[u8]>,
        layout: &EventLayout,
        event: &Event<'_>,
        kind: &EventType,
        out: &mut Vec<u8>,
    ) {
        let mut start = out.len();
        match (layout, text) {
            (EventLayout::Marker { buf, .. }, _) => {
                out.extend_from_slice(MARKER);
                start = out.len();
                let marker = kind.field(&buf.name).and_then(|buf| event.text(kind, buf));
                out.extend_from_slice(marker.unwrap_or_default().trim_ascii_end());
            }
            // Stack traces keep their lines.
            (_, Some(text)) if event_catalog::prints_itself(kind) => {
                return out.extend_from_slice(text);
            }
            (_, Some(text)) => {
                self.name.push(out);
                start = out.len();
                out.extend_from_slice(text);
            }
            (_, None) => {
                self.name.push(out);
                event_catalog::render(event, kind, out);
            }
        }
        end_no_line(&mut out[start..]);
    }

    fn special(&self, layout: &EventLayout, data: &[u8], endian: Endian, out: &mut Vec<u8>) -> Option<()> {
        let bytes = |field: &Field| field.bytes(data, endian);
        let address = |field: &Field| endian.uint(bytes(field)?);
        let caller = |ip: &Field, out: &mut Vec<u8>| -> Option<()> {
            self.context.symbol(address(ip)?, false, out);
            out.extend_from_slice(b": ");
            Some(())
        };
        match layout {
            EventLayout::Marker { ip, buf } => {
                let start = out.len();
                if let Some(ip) = ip {
                    self.context.symbol(address(ip)?, false, out);
                }
                // `trace_printk()` writes `print` events too; then the line names the caller of
                // `trace_printk()`.
                if is_marker_writer(&out[start..]) {
                    out.truncate(start);
                    out.extend_from_slice(MARKER);
                } else {
                    out.extend_from_slice(b": ");
                }
                let start = out.len();
                out.extend_from_slice(until_nul(bytes(buf)?).trim_ascii_end());
                end_no_line(&mut out[start..]);
            }
            EventLayout::Bprint { ip, fmt, buf } => {
                caller(ip, out)?;
                let start = out.len();
                self.context.bprint(address(fmt)?, bytes(buf)?, endian, out)?;
                out.truncate(start + out[start..].trim_ascii_end().len());
                end_no_line(&mut out[start..]);
            }
            EventLayout::Bputs { ip, text } => {
                caller(ip, out)?;
                let start = out.len();
                self.context.bprint(address(text)?, &[], endian, out)?;
                end_no_line(&mut out[start..]);
            }
            EventLayout::Function { ip, parent } => {
                self.context.symbol(address(ip)?, false, out);
                out.extend_from_slice(b" <-");
                self.context.symbol(address(parent)?, false, out);
            }
            EventLayout::SyscallEnter { name, arguments } => {
                out.extend_from_slice(name.as_bytes());
                out.push(b'(');
                for (at, argument) in arguments.iter().enumerate() {
                    out.extend_from_slice(if at > 0 { b", " } else { b"" });
                    out.extend_from_slice(argument.name.as_bytes());
                    out.extend_from_slice(b": ");
                    push_hex(out, long(argument, data, endian)?);
                }
                out.push(b')');
            }
            EventLayout::SyscallExit { name, ret } => {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b" -> 0x");
                push_hex(out, long(ret, data, endian)?);
            }
            EventLayout::Stack { caller, user } => {
                out.extend_from_slice(if *user { b"<user stack trace>" } else { b"<stack trace>" });
                let long = usize::from(self.context.long_size);
                // The field is declared with 8 entries, but continues to the end of the record.
                let rest = data.get(caller.offset as usize..)?;
                for entry in rest.chunks_exact(long).map_while(|e| endian.uint(e)) {
                    if entry == 0 || entry == u64::MAX >> (64 - 8 * long) {
                        break;
                    }
                    out.extend_from_slice(b"\n => ");
                    if *user {
                        out.extend_from_slice(b" <");
                        push_hex(out, entry);
                        out.push(b'>');
                    } else {
                        self.context.symbol(entry, false, out);
                    }
                }
            }
            EventLayout::Format(_) => return None,
        }
        Some(())
    }
}

/// The value of a field as the kernel's `%lx` takes it: a negative number fills 64 bits.
fn long(field: &Field, data: &[u8], endian: Endian) -> Option<u64> {
    match field.value(data, endian)? {
        Value::Int(value) => Some(value as u64),
        Value::Uint(value) => Some(value),
        Value::Str(_) | Value::Bytes(_) => None,
    }
}

/// Whether this kernel function records the text that a program writes to `trace_marker`:
/// `tracing_mark_write()`, since Linux 6.12 also `write_marker_to_buffer()`. Without kallsyms, or where
/// kallsyms hides addresses, the symbol is a number; then the event counts as a marker.
fn is_marker_writer(symbol: &[u8]) -> bool {
    symbol.is_empty() || symbol.starts_with(b"0x") || symbol.windows(4).any(|w| w == b"mark")
}

/// The name of a marker's event in a line. Readers of systrace texts look for this name, whatever the kernel
/// prints.
pub(super) const MARKER: &[u8] = b"tracing_mark_write: ";
