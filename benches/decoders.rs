//! The costs of three functions in which readers spend most of their time: the next record of a page of the
//! ring buffer, the text of a record by its print format, and the next field of a protobuf message.
//!
//! `cargo bench --bench decoders`. Each runs in turns with a baseline that is written here for these inputs
//! alone; both must come to the same result first. The pages are those that a real kernel handed out for the
//! golden tests, and made-up ones of the other byte order.

use std::hint::black_box;
use std::io::Write;

use support::kernel_pages::KernelPages;
use tracebridge::ftrace::print_fmt::{PrintFmt, Symbolizer};
use tracebridge::ftrace::{Endian, EventFormat, Page, PageLayout, RecordCursor, RecordSpan};
use tracebridge::internals::{WireValue, message_fields};

mod cpu_time;

use cpu_time::{median, median_ratio, ns_per_call};

const ROUNDS: usize = 60;
const OPERATIONS_PER_ROUND: usize = 200_000;
/// Bytes of a `long` of the machines whose pages are read here.
const LONG_BYTES: u8 = 8;
const PAGE_BYTES: u32 = 4096;

fn main() {
    // The pages of both CPUs of a machine that recorded for the golden tests.
    let kernel = KernelPages::read("events");
    let golden_pages = [kernel.cpu(0), kernel.cpu(1)].concat();
    pages(&golden_pages);
    print_formats(&kernel, &golden_pages);
    messages();
}

/// Measures a function against its baseline. Each call does `operations`, and returns what must be the same
/// for both.
fn race<T: PartialEq + std::fmt::Debug>(
    name: &str,
    operations: usize,
    baseline_name: &str,
    mut baseline: impl FnMut() -> T,
    mut measured: impl FnMut() -> T,
) {
    assert_eq!(measured(), baseline(), "{name}");
    let calls = OPERATIONS_PER_ROUND.div_ceil(operations);
    let per_operation = |ns: f64| ns / operations as f64;
    let mut baseline_ns = Vec::new();
    let mut measured_ns = Vec::new();
    for _ in 0..ROUNDS {
        let baseline_round = ns_per_call(calls as u32, || drop(black_box(baseline())));
        let measured_round = ns_per_call(calls as u32, || drop(black_box(measured())));
        baseline_ns.push(per_operation(baseline_round));
        measured_ns.push(per_operation(measured_round));
    }
    let ratio = median_ratio(&measured_ns, &baseline_ns);
    let ns = median(measured_ns);
    let of_baseline = median(baseline_ns);
    println!("{name:<44} {ns:>7.2} CPU-ns   {ratio:>5.2} x {baseline_name} ({of_baseline:.2})");
}

/// The page cursor, against a walk over records whose places and times are known.
fn pages(golden_pages: &[u8]) {
    let maker = support::foreign_dat::Maker::new(support::foreign_dat::Endian::Big, LONG_BYTES);
    let made_up: Vec<u8> = (0..5).flat_map(|n| maker.page(1_000_000 * n, 80 * n, 80, None)).collect();
    next_records("page cursor, a kernel's pages, little-endian", golden_pages, Endian::Little);
    next_records("page cursor, made-up pages, big-endian", &made_up, Endian::Big);
}

fn next_records(name: &str, bytes: &[u8], endian: Endian) {
    let pages = parsed(bytes, endian);
    let spans_of = |page: &Page<'_>| -> Vec<RecordSpan> {
        let mut cursor = RecordCursor::new(page);
        std::iter::from_fn(|| cursor.next(page.data, endian)).collect()
    };
    let known: Vec<(&[u8], Vec<RecordSpan>)> = pages.iter().map(|page| (page.data, spans_of(page))).collect();
    let records = known.iter().map(|(_, spans)| spans.len()).sum();
    assert!(records > 100, "{name}: {records} records");
    let add = |sum: u64, data: &[u8], span: RecordSpan| {
        sum.wrapping_add(span.ts.0).wrapping_add(u64::from(data[span.start as usize]))
    };
    let walk_known = || {
        let spans = known.iter().flat_map(|(data, spans)| spans.iter().map(|span| (*data, *span)));
        spans.fold(0, |sum, (data, span)| add(sum, data, span))
    };
    let walk_cursor = || {
        let mut sum = 0;
        for page in &pages {
            let data = page.data;
            let mut cursor = RecordCursor::new(page);
            while let Some(span) = cursor.next(data, endian) {
                sum = add(sum, data, span);
            }
        }
        sum
    };
    race(name, records, "records at known places", walk_known, walk_cursor);
}

fn parsed(bytes: &[u8], endian: Endian) -> Vec<Page<'_>> {
    let layout = PageLayout::usual(endian, LONG_BYTES, PAGE_BYTES);
    let pages = bytes.chunks(PAGE_BYTES as usize);
    pages.map(|page| layout.page(page).expect("a whole page")).collect()
}

/// Appends the text of a record of one event type.
type WriteText = fn(&[u8], &mut Vec<u8>) -> std::io::Result<()>;

/// Print formats of the kernel, against functions that print the same with `write!`.
fn print_formats(kernel: &KernelPages, golden_pages: &[u8]) {
    let events: [(&str, &str, WriteText); 3] = [
        ("sched", "sched_switch", write_sched_switch),
        ("sched", "sched_waking", write_sched_waking),
        ("raw_syscalls", "sys_enter", write_sys_enter),
    ];
    for (system, event, write_text) in events {
        let text = kernel.text(&format!("events/{system}/{event}/format"));
        print_format(system, text, golden_pages, write_text);
    }
}

fn print_format(system: &str, text: &str, golden_pages: &[u8], write_text: WriteText) {
    let format = EventFormat::parse(system, text).expect("a kernel's format");
    let program = PrintFmt::compile(&format.kind, LONG_BYTES).expect("a kernel's print format");
    let symbolizer = Symbolizer::default();
    let pages = parsed(golden_pages, Endian::Little);
    let all = pages.iter().flat_map(Page::records).map(|record| record.data);
    let records: Vec<&[u8]> = all.filter(|record| record.starts_with(&format.id.to_le_bytes())).collect();
    let name = format!("print format, {}", format.kind.name);
    assert!(records.len() > 10, "{name}: {} records", records.len());
    let written = || {
        let mut out = Vec::with_capacity(1 << 15);
        for record in &records {
            write_text(record, &mut out).expect("memory takes it");
        }
        out
    };
    let printed = || {
        let mut out = Vec::with_capacity(1 << 15);
        for record in &records {
            program.print(record, Endian::Little, &symbolizer, &mut out).expect("a whole record");
        }
        out
    };
    race(&name, records.len(), "write!", written, printed);
}

fn int_at(record: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(record[offset..offset + 4].try_into().expect("four bytes"))
}

fn long_at(record: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(record[offset..offset + 8].try_into().expect("eight bytes"))
}

/// The name of a thread, which has 16 bytes.
fn comm_at(record: &[u8], offset: usize) -> &str {
    let bytes = &record[offset..offset + 16];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).expect("a name in ASCII")
}

fn write_sched_switch(record: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    /// Names of the states, from the lowest bit up.
    const STATES: [&str; 8] = ["S", "D", "T", "t", "X", "Z", "P", "I"];
    const PREEMPTED: i64 = 1 << 8;
    let prev_comm = comm_at(record, 8);
    let prev_pid = int_at(record, 24);
    let prev_prio = int_at(record, 28);
    let prev_state = long_at(record, 32);
    write!(out, "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} prev_state=")?;
    let mut separator = "";
    for (bit, name) in STATES.iter().enumerate() {
        if prev_state >> bit & 1 == 1 {
            write!(out, "{separator}{name}")?;
            separator = "|";
        }
    }
    if separator.is_empty() {
        out.push(b'R');
    }
    if prev_state & PREEMPTED != 0 {
        out.push(b'+');
    }
    let next_comm = comm_at(record, 40);
    let next_pid = int_at(record, 56);
    let next_prio = int_at(record, 60);
    write!(out, " ==> next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}")
}

fn write_sched_waking(record: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let comm = comm_at(record, 8);
    let pid = int_at(record, 24);
    let prio = int_at(record, 28);
    let target_cpu = int_at(record, 32);
    write!(out, "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}")
}

fn write_sys_enter(record: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let id = long_at(record, 8);
    let args: [i64; 6] = std::array::from_fn(|n| long_at(record, 16 + 8 * n));
    let [a, b, c, d, e, f] = args;
    write!(out, "NR {id} ({a:x}, {b:x}, {c:x}, {d:x}, {e:x}, {f:x})")
}

/// Fields of protobuf messages, against a decoder that takes one byte of a number at a time.
fn messages() {
    let bundle = event_bundle(1_000);
    let fields = count_fields(|message| message_fields(message), &bundle).fields;
    race(
        "message field, events of a Perfetto trace",
        fields,
        "one byte at a time",
        || count_fields(byte_by_byte, &bundle),
        || count_fields(|message| message_fields(message), &bundle),
    );
    let numbers = numbers_of_all_lengths(NUMBERS);
    race(
        "message field, numbers of all lengths",
        NUMBERS,
        "one byte at a time",
        || byte_by_byte(&numbers).fold(0, |sum: u64, (_, value)| sum.wrapping_add(value.number())),
        || message_fields(&numbers).fold(0, |sum: u64, (_, value)| sum.wrapping_add(value.number())),
    );
}

/// So many that the processor does not learn the order of their lengths.
const NUMBERS: usize = OPERATIONS_PER_ROUND;
const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;
/// Fields of Perfetto's FtraceEventBundle and FtraceEvent.
const BUNDLE_EVENT: u64 = 2;
const EVENT_SCHED_SWITCH: u64 = 4;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3 | VARINT);
    put_varint(out, value);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | LENGTH_DELIMITED);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Events of sched_switch as Perfetto's protos have them: time, thread, and a message of seven fields.
fn event_bundle(events: u64) -> Vec<u8> {
    let mut bundle = Vec::new();
    for n in 0..events {
        let mut switch = Vec::new();
        put_bytes(&mut switch, 1, b"RenderThread");
        put_number(&mut switch, 2, 4_000 + n % 50);
        put_number(&mut switch, 3, 120);
        put_number(&mut switch, 4, n % 3);
        put_bytes(&mut switch, 5, b"swapper/0");
        put_number(&mut switch, 6, 0);
        put_number(&mut switch, 7, 120);
        let mut event = Vec::new();
        put_number(&mut event, 1, 1_234_567_890_123 + 18_737 * n);
        put_number(&mut event, 2, 4_000 + n % 50);
        put_bytes(&mut event, EVENT_SCHED_SWITCH, &switch);
        put_bytes(&mut bundle, BUNDLE_EVENT, &event);
    }
    bundle
}

/// A message of numbers whose lengths are mixed: xorshift64 makes them, so that every run has the same.
fn numbers_of_all_lengths(count: usize) -> Vec<u8> {
    let mut message = Vec::new();
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        put_number(&mut message, 1, random >> (random & 63));
    }
    message
}

/// The contents of a bundle of events, in short.
#[derive(Debug, Default, PartialEq)]
struct BundleSummary {
    fields: usize,
    /// The sum of all numbers.
    numbers: u64,
    /// The sum of the lengths of all texts and messages.
    bytes: usize,
}

impl BundleSummary {
    fn add(&mut self, value: WireValue<'_>) {
        self.fields += 1;
        self.numbers = self.numbers.wrapping_add(value.number());
        self.bytes += value.bytes().len();
    }
}

/// Reads the fields of a bundle, of its events, and of the switches in them.
fn count_fields<'a, F>(fields_of: impl Fn(&'a [u8]) -> F, bundle: &'a [u8]) -> BundleSummary
where
    F: Iterator<Item = (u32, WireValue<'a>)>,
{
    let mut summary = BundleSummary::default();
    for (_, event) in fields_of(bundle) {
        summary.add(event);
        for (number, value) in fields_of(event.bytes()) {
            summary.add(value);
            if u64::from(number) == EVENT_SCHED_SWITCH {
                fields_of(value.bytes()).for_each(|(_, value)| summary.add(value));
            }
        }
    }
    summary
}

/// The fields of a message whose wire types are the two that are used here.
fn byte_by_byte(mut rest: &[u8]) -> impl Iterator<Item = (u32, WireValue<'_>)> {
    std::iter::from_fn(move || {
        let tag = take_varint(&mut rest)?;
        let value = take_varint(&mut rest)?;
        let value = if tag & 7 == VARINT {
            WireValue::Number(value)
        } else {
            WireValue::Bytes(rest.split_off(..value as usize)?)
        };
        Some(((tag >> 3) as u32, value))
    })
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}
