//! Opens a trace: reads the text section, the binary header and the records, and compares the records with
//! the totals that the file states.

use std::ops::Range;

use super::declarations::Declarations;
use super::{Body, Counts, Error, Header, MethodTrace, Tracer, open_always_on, open_blocks, open_fixed};
use crate::art::{ClockMode, DataHeader, KeySection, MAGIC, PacketForm, always_on_form};
use crate::clock::Clock;

/// See [`MethodTrace::parse`].
pub fn open(bytes: &[u8]) -> Result<MethodTrace<'_>, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if let Some((form, packets)) = always_on_form(bytes) {
        let header = DataHeader { version: 0, ..no_records(3, &[]) };
        let opened = always_on(Declarations::new(None), bytes, packets, form, &header);
        return Ok(opened);
    }
    let text = KeySection::parse(bytes);
    if text.is_none() && !bytes.starts_with(MAGIC) {
        return Err(Error::NotATrace);
    }
    let mut declared = Declarations::new(text.as_ref());
    let mut data_at = 0;
    let mut version = 0;
    if let Some(text) = text {
        (data_at, version) = (text.len, text.version);
        if !text.complete {
            declared.damage(data_at, "the text section has no *end: methods and threads may be missing");
        }
        declared.take_text(text, 0, true);
    }
    let data = &bytes[data_at..];
    check_for_utf8(data, data_at)?;
    let header = match DataHeader::parse(data) {
        Ok(header) => header,
        Err(reason) if data_at == 0 => return Err(Error::Header { offset: 0, reason }),
        Err(reason) => {
            declared.damage(data_at, reason);
            no_records(version, data)
        }
    };
    Ok(finish(declared, bytes, data_at, header))
}

/// The stand-in for a binary header that cannot be read: no records follow.
fn no_records(version: u16, data: &[u8]) -> DataHeader {
    let version = if (1..=3).contains(&version) { version } else { 3 };
    let data_offset = data.len();
    DataHeader {
        version,
        streaming: false,
        data_offset,
        start: 0,
        record_size: 0,
        tsc_frequency: 0,
        start_tsc: 0,
    }
}

/// The records of a trace, and what is known of their times.
struct OpenedRecords {
    body: Body,
    clock: ClockMode,
    tracer: Tracer,
    /// The unit of the records' times and of the header's start, ns.
    tick_ns: u64,
    start: u64,
    start_clock: Option<Clock>,
    counts: Counts,
}

/// Reads the records behind the binary header, and builds the trace.
fn finish<'a>(
    mut declared: Declarations<'a>,
    bytes: &'a [u8],
    data_at: usize,
    header: DataHeader,
) -> MethodTrace<'a> {
    let records_at = data_at + header.data_offset;
    let (tracer, start, start_clock) = (Tracer::Regular, header.start, None);
    let opened = match header.version {
        1..=3 => {
            let (body, clock, counts) = open_fixed::open(&mut declared, bytes, data_at, &header);
            let body = Body::Fixed(body);
            OpenedRecords { body, clock, tracer, tick_ns: 1_000, start, start_clock, counts }
        }
        4 | 5 => {
            let blocks = open_blocks::open(&mut declared, bytes, records_at, &header);
            let open_blocks::OpenedBlocks { body, clock, tick_ns, counts } = blocks;
            let body = Body::Blocks(body);
            OpenedRecords { body, clock, tracer, tick_ns, start, start_clock, counts }
        }
        _ => return always_on(declared, bytes, records_at, PacketForm::LongRunning, &header),
    };
    check_promises(&mut declared, &header, &opened, records_at..bytes.len());
    build(declared, bytes, &header, opened)
}

/// Reads the packets of the always-on tracer, which begin at `from`, and builds the trace.
fn always_on<'a>(
    mut declared: Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    form: PacketForm,
    header: &DataHeader,
) -> MethodTrace<'a> {
    let stream = open_always_on::open(&mut declared, bytes, from, form);
    let (start, start_clock) = stream.start.unzip();
    let opened = OpenedRecords {
        body: Body::Blocks(stream.body),
        clock: stream.clock,
        tracer: if form == PacketForm::LongRunning { Tracer::LongRunning } else { Tracer::AllMethods },
        tick_ns: 1,
        start: start.unwrap_or(0),
        start_clock,
        counts: stream.counts,
    };
    check_promises(&mut declared, header, &opened, from..bytes.len());
    build(declared, bytes, header, opened)
}

fn build<'a>(
    mut declared: Declarations<'a>,
    bytes: &'a [u8],
    header: &DataHeader,
    opened: OpenedRecords,
) -> MethodTrace<'a> {
    let OpenedRecords { body, clock, tracer, tick_ns, start, start_clock, mut counts } = opened;
    counts.non_ascii_names = non_ascii_names(&declared);
    let number = |name: &str| declared.key(name).and_then(|v| v.parse::<u64>().ok());
    let elapsed_ns =
        number("elapsed-time-nsec").or(number("elapsed-time-usec").map(|t| t.saturating_mul(1_000)));
    let is_flag = |name: &str, value: &str| declared.key(name) == Some(value);
    let has_32_bit_times = match &body {
        Body::Fixed(_) => true,
        Body::Blocks(blocks) => blocks.encoding.is_32_bit(),
    };
    let header = Header {
        version: header.version,
        // Since Android 17 only the summary says it.
        streaming: header.streaming || is_flag("is_streaming", "true"),
        clock,
        clock_declared: declared.key("clock").and_then(ClockMode::from_key).is_some(),
        tracer,
        is_precise: !is_flag("is_precise_trace", "false"),
        start,
        start_unit_ns: tick_ns,
        start_clock,
        tick_ns,
        vm: declared.key("vm").map(str::to_owned),
        pid: declared.key("pid").and_then(|v| v.parse().ok()),
        overflow: is_flag("data-file-overflow", "true"),
        elapsed_ns,
        keys: std::mem::take(&mut declared.keys),
    };
    if !header.is_precise {
        let what = "is_precise_trace=false: small methods and interpreted ones are not in this trace, and its \
                    enters and exits need not form pairs";
        declared.report.notes.push(what.to_owned());
    }
    MethodTrace {
        bytes,
        has_32_bit_times,
        may_wrap: has_32_bit_times && elapsed_ns.is_none_or(|t| t > u64::from(u32::MAX) * 1_000),
        header,
        threads: declared.threads,
        methods: declared.methods,
        counts,
        body,
        table: declared.table,
        ids: declared.ids,
        report: declared.report,
    }
}

fn non_ascii_names(declared: &Declarations<'_>) -> u64 {
    let threads = declared.threads.iter().filter(|t| !t.name.is_ascii()).count();
    let methods = declared.methods.iter().filter(|m| !(m.class.is_ascii() && m.name.is_ascii())).count();
    (threads + methods) as u64
}

/// ART leaves some tens of methods out of the list of every longer trace. Where a list has fewer methods than
/// this for each one that it lacks, the list is damaged.
const MIN_LISTED_PER_UNLISTED: u64 = 20;

/// Compares the keys with the counts, and adds damage and irregularities to the report.
fn check_promises(
    declared: &mut Declarations<'_>,
    header: &DataHeader,
    opened: &OpenedRecords,
    records: Range<usize>,
) {
    let (counts, records_at, end) = (&opened.counts, records.start, records.end);
    if declared.key("data-file-overflow") == Some("true") {
        declared.damage(
            end,
            "data-file-overflow=true: the buffer was full, and what came later was not recorded",
        );
    }
    let promised = declared.key("num-method-calls").and_then(|v| v.parse::<u64>().ok());
    if let Some(promised) = promised.filter(|n| *n > counts.records && !header.streaming) {
        let there = counts.records;
        declared.damage(
            end,
            format!("num-method-calls={promised}, but {there} records are there: the end is missing"),
        );
    }
    if counts.bad_actions > 0 {
        let what =
            format!("{} records have an action that no runtime writes, and are left out", counts.bad_actions);
        declared.damage(records_at, what);
    }
    let most_methods = match opened.tracer {
        Tracer::Regular => counts.declared_methods / MIN_LISTED_PER_UNLISTED,
        // They declare each method that is entered, behind the records.
        Tracer::LongRunning | Tracer::AllMethods => 0,
    };
    if opened.tracer != Tracer::Regular && counts.records > 0 && declared.methods.iter().all(|m| !m.declared)
    {
        declared.damage(end, "no methods are declared behind the records: the file is cut");
    }
    let most_threads = match header.version {
        // These writers never declare the thread that shuts the runtime down.
        4 | 5 => (counts.declared_threads / MIN_LISTED_PER_UNLISTED).max(1),
        _ => counts.declared_threads / MIN_LISTED_PER_UNLISTED,
    };
    let undeclared_threads = match opened.tracer {
        // It never declares threads.
        Tracer::LongRunning => 0,
        Tracer::Regular | Tracer::AllMethods => counts.undeclared_threads,
    };
    for (count, most, what) in
        [(counts.undeclared_methods, most_methods, "methods"), (undeclared_threads, most_threads, "threads")]
    {
        if count > most {
            let what = format!("{count} {what} in records are in no list: their names are not in the file");
            declared.damage(records_at, what);
        } else {
            declared.irregular(count, &format!("{what} are in no list: they are shown by their numbers"));
        }
    }
    declared.irregular(counts.reused_threads, "threads took the id of one that had ended");
    declared.irregular(counts.unrolls, "calls were left by an exception (unroll)");
    let names = declared
        .threads
        .iter()
        .map(|t| &t.name)
        .chain(declared.methods.iter().flat_map(|m| [&m.class, &m.name]));
    let broken = names.filter(|name| !name.is_ascii() && name.contains('\u{fffd}')).count() as u64;
    declared.irregular(broken, "names are not valid UTF-8; \u{fffd} stands for what cannot be read");
}

/// The size of the inspected start of the binary part, bytes: enough for hundreds of records.
const INSPECTED_BYTES: usize = 8 << 10;

/// With fewer suspicious characters than this, intact records may look like UTF-8 by chance.
const MIN_SUSPICIOUS_CHARS: usize = 4;

/// Returns an error if `data`, which begins at `offset` of the file, was re-encoded as UTF-8.
fn check_for_utf8(data: &[u8], offset: usize) -> Result<(), Error> {
    let head = &data[..data.len().min(INSPECTED_BYTES)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The inspected bytes may end in the middle of a character.
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Ok(()),
    };
    let find = |range: std::ops::RangeInclusive<char>| {
        let mut hits = text.char_indices().filter(|(_, c)| range.contains(c));
        let first = hits.next().map(|(at, _)| (offset + at) as u64);
        first.map(|at| (at, 1 + hits.count()))
    };
    if let Some((offset, count)) = find('\u{fffd}'..='\u{fffd}')
        && count >= MIN_SUSPICIOUS_CHARS
    {
        let cure = "What they were is lost: take the file from its source again, and move it with tools that do not \
                    treat it as text (adb pull, adb exec-out, a binary attachment)";
        return Err(Error::Reencoded { offset, became: "EF BF BD", cure });
    }
    if let Some((offset, count)) = find('\u{80}'..='\u{ff}')
        && count >= MIN_SUSPICIOUS_CHARS
    {
        let cure = "This can be undone: iconv -f UTF-8 -t ISO-8859-1 FILE > REPAIRED";
        return Err(Error::Reencoded { offset, became: "two bytes, C2 or C3 first", cure });
    }
    Ok(())
}
