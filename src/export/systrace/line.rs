//! An event as a line of tracefs' `trace` file, with its TGID column: what systrace, Catapult and Perfetto read.
//!
//! `            comm-1234    (   1230) [001] d..2.  1234.567890: sched_waking: comm=…`; defined by
//! trace_print_context() and trace_print_lat_fmt() in the kernel's kernel/trace/trace_output.c.

use std::sync::Arc;

use crate::export::thread_names::ThreadNames;
use crate::formats::{Event, EventType, Payload, event_catalog};
use crate::ftrace::print_fmt::digits::{push_hex, push_i64, push_padded, two_digits};
use crate::ftrace::print_fmt::inline_bytes::InlineBytes;
use crate::ftrace::print_fmt::{PrintFmt, Symbolizer};
use crate::ftrace::{Endian, Field, trace_flags, until_nul};

/// What stands at the top of a text that these lines follow.
pub const HEADER: &str = "\
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

/// CPUs whose last thread's column is kept; more are printed slower.
const CACHED_CPUS: usize = 1024;

/// Prints what stands before an event's name; the columns of each CPU's last thread are kept ready made.
#[derive(Debug, Default)]
pub struct Columns {
    threads: Arc<ThreadNames>,
    /// For each CPU the thread of its last event, and `comm-tid (tgid) [cpu] `.
    cache: Vec<(i32, InlineBytes<64>)>,
    /// The second of the last event, and its text.
    second: (Option<u64>, InlineBytes<16>),
}

impl Columns {
    /// From now on, names and processes are those of `threads`.
    pub(super) fn set_threads(&mut self, threads: &Arc<ThreadNames>) {
        if !Arc::ptr_eq(&self.threads, threads) {
            self.threads = threads.clone();
            self.cache.clear();
        }
    }

    /// Appends all that stands before the event's name.
    #[inline]
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let cpu = event.cpu as usize;
        match self.cache.get(cpu) {
            Some((tid, columns)) if *tid == event.tid && event.comm.is_none() && event.tgid.is_none() => {
                columns.push(out);
            }
            _ => self.push_columns(event, out),
        }
        let flags = trace_flags::encode(event.flags, event.preempt_count);
        let micros = event.ts.saturating_add(500) / 1000;
        let second = micros / 1_000_000;
        if self.second.0 != Some(second) {
            self.set_second(second);
        }
        out.extend_from_slice(&flags);
        self.second.1.push(out);
        let rest = (micros % 1_000_000) as u32;
        let [a, b] = two_digits(rest / 10_000);
        let [c, d] = two_digits(rest / 100 % 100);
        let [e, f] = two_digits(rest % 100);
        out.extend_from_slice(&[a, b, c, d, e, f, b':', b' ']);
    }

    /// Makes ` SECONDS.` ready; the µs behind it are rounded as the kernel does.
    #[cold]
    fn set_second(&mut self, second: u64) {
        let mut text = b" ".to_vec();
        push_padded(&mut text, second, 5, b' ');
        text.push(b'.');
        self.second = (Some(second), InlineBytes::new(&text));
    }

    fn push_columns(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let threads = self.threads.clone();
        let known = threads.get(event.tid);
        let name = match event.comm.or_else(|| known?.name.as_deref()) {
            Some(name) => name,
            None if event.tid == 0 => b"<idle>",
            None => b"<...>",
        };
        out.resize(start + 16usize.saturating_sub(name.len()), b' ');
        out.extend_from_slice(name);
        out.push(b'-');
        let digits = out.len();
        push_i64(out, event.tid.into());
        out.resize(out.len().max(digits + 7), b' ');
        match event.tgid.or_else(|| known?.tgid).filter(|tgid| *tgid > 0) {
            Some(tgid) => {
                out.extend_from_slice(b" (");
                push_padded(out, tgid as u64, 7, b' ');
            }
            None => out.extend_from_slice(b" (-------"),
        }
        out.extend_from_slice(b") [");
        push_padded(out, event.cpu.into(), 3, b'0');
        out.extend_from_slice(b"] ");
        let cpu = event.cpu as usize;
        if cpu < CACHED_CPUS && event.comm.is_none() && event.tgid.is_none() {
            if self.cache.len() <= cpu {
                self.cache.resize(cpu + 1, (i32::MIN, InlineBytes::default()));
            }
            let (tid, columns) = &mut self.cache[cpu];
            *tid = event.tid;
            columns.set(&out[start..]);
        }
    }
}

/// How events of one kind are printed.
#[derive(Debug)]
pub struct Printer {
    how: How,
    /// `sched_switch: `.
    name: InlineBytes<32>,
    /// For records that lack bytes their format promises.
    pairs: PrintFmt,
    context: Arc<Symbolizer>,
}

#[derive(Debug)]
enum How {
    /// By the kernel's print format.
    Format(PrintFmt),
    /// `print`, also known as tracing_mark_write.
    Marker { ip: Option<Field>, buf: Field },
    /// `bprint`: `trace_printk` with its format in the kernel.
    Bprint { ip: Field, fmt: Field, buf: Field },
    /// `bputs`: `trace_puts` of a constant.
    Bputs { ip: Field, text: Field },
    /// `function`.
    Function { ip: Field, parent: Field },
    /// `kernel_stack` and `user_stack`: a list of addresses.
    Stack { caller: Field, user: bool },
}

impl Printer {
    /// How `kind` is printed, its records being of the machine that `context` tells of.
    pub fn new(kind: &EventType, context: &Arc<Symbolizer>) -> Printer {
        let field = |name: &str| kind.field(name).map(|i| kind.fields[i].clone());
        let both = |a: &str, b: &str| Some((field(a)?, field(b)?));
        let special = match (kind.system.as_str(), kind.name.as_str()) {
            (_, "print") => field("buf").map(|buf| How::Marker { ip: field("ip"), buf }),
            ("ftrace", "bprint") => {
                both("ip", "fmt").and_then(|(ip, fmt)| Some(How::Bprint { ip, fmt, buf: field("buf")? }))
            }
            ("ftrace", "bputs") => both("ip", "str").map(|(ip, text)| How::Bputs { ip, text }),
            ("ftrace", "function") => {
                both("ip", "parent_ip").map(|(ip, parent)| How::Function { ip, parent })
            }
            ("ftrace", "kernel_stack") => field("caller").map(|caller| How::Stack { caller, user: false }),
            ("ftrace", "user_stack") => field("caller").map(|caller| How::Stack { caller, user: true }),
            _ => None,
        };
        let pairs = PrintFmt::pairs(kind);
        let format = || PrintFmt::compile(kind, context.long_size).unwrap_or_else(|_| pairs.clone());
        let how = special.unwrap_or_else(|| How::Format(format()));
        Printer {
            pairs,
            how,
            name: InlineBytes::new(format!("{}: ", kind.name).as_bytes()),
            context: context.clone(),
        }
    }

    /// Appends the event's name and what it says.
    #[inline]
    pub fn push(&self, event: &Event<'_>, kind: &EventType, out: &mut Vec<u8>) {
        match (&event.payload, &self.how) {
            (Payload::Raw { data, endian }, how) => {
                let start = out.len();
                let done = match how {
                    How::Format(format) => {
                        self.name.push(out);
                        format.print(data, *endian, &self.context, out)
                    }
                    special => self.special(special, data, *endian, out),
                };
                if done.is_none() {
                    out.truncate(start);
                    self.name.push(out);
                    self.pairs.print(data, *endian, &self.context, out);
                }
            }
            (Payload::Values { text, .. }, how) => {
                let mut start = out.len();
                match (how, text) {
                    (How::Marker { buf, .. }, _) => {
                        out.extend_from_slice(MARKER);
                        start = out.len();
                        let said = kind.field(&buf.name).and_then(|buf| event.text(kind, buf));
                        out.extend_from_slice(said.unwrap_or_default().trim_ascii_end());
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
                one_line(out, start);
            }
        }
    }

    fn special(&self, how: &How, data: &[u8], endian: Endian, out: &mut Vec<u8>) -> Option<()> {
        let bytes = |field: &Field| field.bytes(data, endian);
        let address = |field: &Field| endian.uint(bytes(field)?);
        let caller = |ip: &Field, out: &mut Vec<u8>| -> Option<()> {
            self.context.symbol(address(ip)?, false, out);
            out.extend_from_slice(b": ");
            Some(())
        };
        match how {
            How::Marker { ip, buf } => {
                let start = out.len();
                if let Some(ip) = ip {
                    self.context.symbol(address(ip)?, false, out);
                }
                // `print` also is what trace_printk() writes, in which case its caller is named.
                if is_marker_writer(&out[start..]) {
                    out.truncate(start);
                    out.extend_from_slice(MARKER);
                } else {
                    out.extend_from_slice(b": ");
                }
                let start = out.len();
                out.extend_from_slice(until_nul(bytes(buf)?).trim_ascii_end());
                one_line(out, start);
            }
            How::Bprint { ip, fmt, buf } => {
                caller(ip, out)?;
                let start = out.len();
                self.context.bprint(address(fmt)?, bytes(buf)?, endian, out)?;
                out.truncate(start + out[start..].trim_ascii_end().len());
                one_line(out, start);
            }
            How::Bputs { ip, text } => {
                caller(ip, out)?;
                let start = out.len();
                self.context.bprint(address(text)?, &[], endian, out)?;
                one_line(out, start);
            }
            How::Function { ip, parent } => {
                self.context.symbol(address(ip)?, false, out);
                out.extend_from_slice(b" <-");
                self.context.symbol(address(parent)?, false, out);
            }
            How::Stack { caller, user } => {
                out.extend_from_slice(if *user { b"<user stack trace>" } else { b"<stack trace>" });
                let long = usize::from(self.context.long_size);
                // The field is declared with 8 entries, and runs on to the end of the record.
                let rest = data.get(caller.offset as usize..)?;
                for entry in rest.chunks_exact(long).map_while(|e| endian.uint(e)) {
                    if entry == 0 || entry == u64::MAX >> (64 - 8 * long) {
                        break;
                    }
                    out.extend_from_slice(b"\n => ");
                    match user {
                        true => {
                            out.extend_from_slice(b" <");
                            push_hex(out, entry);
                            out.push(b'>');
                        }
                        false => self.context.symbol(entry, false, out),
                    }
                }
            }
            How::Format(_) => return None,
        }
        Some(())
    }
}

/// Whether this function writes what comes through trace_marker: tracing_mark_write, since Linux 6.12 also
/// write_marker_to_buffer. Without kallsyms (or with hidden addresses) it is a number, and taken for one.
fn is_marker_writer(symbol: &[u8]) -> bool {
    symbol.is_empty() || symbol.starts_with(b"0x") || symbol.windows(4).any(|w| w == b"mark")
}

/// What a marker's line says before its text: what systrace's readers look for, on every kernel.
const MARKER: &[u8] = b"tracing_mark_write: ";

/// A line break inside of an event would make two lines of it.
fn one_line(out: &mut [u8], start: usize) {
    for b in &mut out[start..] {
        if *b == b'\n' || *b == b'\r' {
            *b = b' ';
        }
    }
}
