//! Opens a trace: reads the text section, the binary header and the records, and compares the records with
//! the totals that the file states.

use std::ops::Range;

use super::declarations::Declarations;
use super::{Body, Counts, Error, Header, MethodTrace, open_blocks, open_fixed, utf8_damage};
use crate::art::{ClockMode, DataHeader, KeySection, MAGIC};

/// See [`MethodTrace::parse`].
pub fn open(bytes: &[u8]) -> Result<MethodTrace<'_>, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
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
    utf8_damage::check(data, data_at)?;
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

/// Reads the records behind the binary header, and builds the trace.
fn finish<'a>(
    mut declared: Declarations<'a>,
    bytes: &'a [u8],
    data_at: usize,
    header: DataHeader,
) -> MethodTrace<'a> {
    let start_of_records = data_at + header.data_offset;
    let (body, clock, tick_ns, mut counts) = if header.version > 3 {
        let blocks = open_blocks::open(&mut declared, bytes, start_of_records, &header);
        (Body::Blocks(blocks.body), blocks.clock, blocks.tick_ns, blocks.counts)
    } else {
        let (body, clock, counts) = open_fixed::open(&mut declared, bytes, data_at, &header);
        (Body::Fixed(body), clock, 1_000, counts)
    };
    counts.non_ascii_names = non_ascii_names(&declared);
    check_promises(&mut declared, &header, &counts, start_of_records..bytes.len());
    let number = |name: &str| declared.key(name).and_then(|v| v.parse::<u64>().ok());
    let elapsed_ns =
        number("elapsed-time-nsec").or(number("elapsed-time-usec").map(|t| t.saturating_mul(1_000)));
    let header = Header {
        version: header.version,
        streaming: header.streaming,
        clock,
        clock_declared: declared.key("clock").and_then(ClockMode::from_key).is_some(),
        start: header.start,
        // The header's start has the unit of the records. With the encoding by counter ticks, both are in ns.
        start_unit_ns: tick_ns,
        tick_ns,
        vm: declared.key("vm").map(str::to_owned),
        pid: declared.key("pid").and_then(|v| v.parse().ok()),
        overflow: declared.key("data-file-overflow") == Some("true"),
        elapsed_ns,
        keys: std::mem::take(&mut declared.keys),
    };
    MethodTrace {
        bytes,
        may_wrap: header.version <= 3 && elapsed_ns.is_none_or(|t| t > u64::from(u32::MAX) * 1_000),
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
    counts: &Counts,
    records: Range<usize>,
) {
    let (records_at, end) = (records.start, records.end);
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
    let (methods, threads) = (counts.declared_methods, counts.declared_threads);
    for (count, listed, what) in
        [(counts.undeclared_methods, methods, "methods"), (counts.undeclared_threads, threads, "threads")]
    {
        if count > listed / MIN_LISTED_PER_UNLISTED {
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
    let broken = names.filter(|name| name.contains('\u{fffd}')).count() as u64;
    declared.irregular(broken, "names are not valid UTF-8; \u{fffd} stands for what cannot be read");
}
