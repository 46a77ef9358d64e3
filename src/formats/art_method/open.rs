//! Opens a trace: reads the text section, the binary header and the records, and compares the records with
//! the totals that the file states.

use std::borrow::Cow;
use std::ops::Range;

use super::body::{FixedBody, Segment};
use super::declarations::{Declarations, unknown_method};
use super::open_blocks::{OpenedBlocks, open_always_on, open_blocks};
use super::open_stream::{read_stream, stream_layout};
use super::prescan::{DeclaredIds, Prescan, prescan, separate_threads};
use super::{Body, Counts, Error, Header, MethodTrace, TracedThread, Tracer};
use crate::art::{ClockMode, DataHeader, KeySection, MAGIC, PacketForm, RecordLayout, always_on_form};
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
        data_at = text.len;
        version = text.version;
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

/// The records of a trace, with the meaning of their times.
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
    let tracer = Tracer::Regular;
    let start = header.start;
    let start_clock = None;
    let opened = match header.version {
        1..=3 => {
            let (body, clock, counts) = open_fixed(&mut declared, bytes, data_at, &header);
            let body = Body::Fixed(body);
            OpenedRecords { body, clock, tracer, tick_ns: 1_000, start, start_clock, counts }
        }
        4 | 5 => {
            let OpenedBlocks { body, clock, tick_ns, counts } =
                open_blocks(&mut declared, bytes, records_at, &header);
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
    let stream = open_always_on(&mut declared, bytes, from, form);
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
/// The same for threads. A thread that ends just before the trace does may be missing: `join` returns before
/// the runtime notes the thread's name. The runtime's own threads are always listed.
const MIN_LISTED_THREADS_PER_UNLISTED: u64 = 3;

/// Compares the keys with the counts, and adds damage and irregularities to the report.
fn check_promises(
    declared: &mut Declarations<'_>,
    header: &DataHeader,
    opened: &OpenedRecords,
    records: Range<usize>,
) {
    let counts = &opened.counts;
    let records_at = records.start;
    let end = records.end;
    if declared.key("data-file-overflow") == Some("true") {
        declared.damage(
            end,
            "data-file-overflow=true: the buffer was full, and what came later was not recorded",
        );
    }
    let promised = declared.key("num-method-calls").and_then(|v| v.parse::<u64>().ok());
    if let Some(promised) = promised.filter(|n| *n > counts.records && !header.streaming) {
        let found = counts.records;
        declared.damage(
            end,
            format!("num-method-calls={promised}, but {found} records are there: the end is missing"),
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
    // Writers of versions 4 and 5 never declare the thread that shuts the runtime down.
    let never_declared = u64::from(matches!(header.version, 4 | 5));
    let most_threads = (counts.declared_threads / MIN_LISTED_THREADS_PER_UNLISTED).max(never_declared);
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
        let hint = "What they were is lost: take the file from its source again, and move it with tools that do not \
                    treat it as text (adb pull, adb exec-out, a binary attachment)";
        return Err(Error::Reencoded { offset, became: "EF BF BD", hint });
    }
    if let Some((offset, count)) = find('\u{80}'..='\u{ff}')
        && count >= MIN_SUSPICIOUS_CHARS
    {
        let hint = "This can be undone: iconv -f UTF-8 -t ISO-8859-1 FILE > REPAIRED";
        return Err(Error::Reencoded { offset, became: "two bytes, C2 or C3 first", hint });
    }
    Ok(())
}

/// Opens a file of version 1 to 3: records of fixed size. Streaming files have declarations between the
/// records. The file's binary part begins at offset `data_at`.
fn open_fixed<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    data_at: usize,
    header: &DataHeader,
) -> (FixedBody, ClockMode, Counts) {
    let from = data_at + header.data_offset;
    let clock_key = declared.key("clock").and_then(ClockMode::from_key);
    let layout = RecordLayout::choose(header.version, header.record_size, clock_key);
    let mut body = FixedBody { layout: layout.unwrap_or(RecordLayout::Dual), segments: Vec::new() };
    match layout {
        None => declared
            .damage(data_at + 16, format!("no runtime writes records of {} bytes", header.record_size)),
        Some(layout) if header.streaming => {
            body.layout = stream_layout(declared, bytes, from, layout);
            read_stream(declared, bytes, from, &mut body);
        }
        Some(_) => find_records(declared, bytes, from, &mut body),
    }
    declared.bind_cut_ids();
    // A streaming file names its clock in the summary at the end.
    let clock_key = declared.key("clock").and_then(ClockMode::from_key);
    let clock = choose_clock(declared, clock_key, body.layout);
    let counts = count_records(declared, bytes, &mut body, clock);
    (body, clock, counts)
}

/// Chooses the clocks of the records. Where the `clock=` key contradicts the size of a record, the size
/// decides.
fn choose_clock(declared: &mut Declarations<'_>, key: Option<ClockMode>, layout: RecordLayout) -> ClockMode {
    let two = layout == RecordLayout::Dual;
    match key {
        Some(clock) if (clock == ClockMode::Dual) == two => clock,
        Some(clock) => {
            let now = if two { ClockMode::Dual } else { ClockMode::ThreadCpu };
            let said = clock.name();
            let taken = now.name();
            declared
                .report
                .notes
                .push(format!("clock={said}, but the record size says {taken}: {taken} taken"));
            now
        }
        None if two => ClockMode::Dual,
        None => {
            declared.report.notes.push("no clock= key: the times are taken for thread-CPU time".into());
            ClockMode::ThreadCpu
        }
    }
}

/// Finds the records of a file that is not streaming: one segment up to the end of the file.
fn find_records(declared: &mut Declarations<'_>, bytes: &[u8], from: usize, body: &mut FixedBody) {
    let size = body.layout.size();
    let left = bytes.len().saturating_sub(from);
    let end = from + left / size * size;
    if from < end {
        body.segments.push(Segment { range: from..end, binds: Vec::new() });
    }
    if !left.is_multiple_of(size) {
        let rest = left % size;
        declared.damage(end, format!("the last record is cut: {rest} of its {size} bytes are there"));
    }
}

/// Passes over all records: counts them, gives undeclared ids their indexes, and separates threads that
/// shared an id.
fn count_records(
    declared: &mut Declarations<'_>,
    bytes: &[u8],
    body: &mut FixedBody,
    clock: ClockMode,
) -> Counts {
    let known = DeclaredIds { methods: &declared.ids, count: declared.threads.len(), table: &declared.table };
    let mut found = prescan(bytes, body, clock, &known);
    let mut counts = Counts {
        records: body.records(),
        enters: found.actions[0],
        exits: found.actions[1],
        unrolls: found.actions[2],
        bad_actions: found.actions[3],
        declared_methods: declared.methods.len() as u64,
        declared_threads: declared.threads.len() as u64,
        undeclared_methods: found.methods.len() as u64,
        undeclared_threads: found.threads.len() as u64,
        ..Counts::default()
    };
    add_undeclared(declared, &found);
    if declared.threads.iter().any(|t| t.reused_id) || found.by_thread.iter().any(|t| !t.restarts.is_empty())
    {
        let separated =
            separate_threads(bytes, body, &found, &mut declared.threads, &declared.methods, &declared.ids);
        body.bind_all(separated.binds);
        declared.irregular(
            separated.inseparable_ids,
            "thread ids are listed more than once and nothing tells their threads apart: taken for the first",
        );
        let known =
            DeclaredIds { methods: &declared.ids, count: declared.threads.len(), table: &declared.table };
        found = prescan(bytes, body, clock, &known);
    }
    for (thread, scan) in declared.threads.iter_mut().zip(&found.by_thread) {
        thread.records = scan.records;
    }
    counts.reused_threads = declared.threads.iter().filter(|t| t.reused_id && t.records > 0).count() as u64;
    counts
}

/// Adds the methods and threads of records that the file does not declare.
fn add_undeclared(declared: &mut Declarations<'_>, found: &Prescan) {
    for id in &found.methods {
        declared.ids.insert(u64::from(*id), declared.methods.len() as u32);
        declared.methods.push(unknown_method(u64::from(*id)));
    }
    for id in &found.threads {
        let index = declared.threads.len() as u32;
        declared.table.bind(*id, index);
        declared.threads.push(TracedThread {
            id: u32::from(*id),
            name: Cow::Borrowed(""),
            declared: false,
            reused_id: false,
            records: 0,
        });
    }
}
