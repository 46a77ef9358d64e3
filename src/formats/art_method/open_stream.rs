//! Streaming files of versions 1 to 3: records that alternate with declarations of threads and methods.

use std::collections::HashSet;

use super::body::{FixedBody, Segment, decode};
use super::declarations::Declarations;
use crate::art::{KeySection, Packet, RecordLayout, next_packet, parse_method_line};

/// Records at the start of a streaming file that show its layout.
const MAX_RECORDS_TRIED: usize = 4_096;

/// The layout of the records that begin at `from`. `stated` is the layout that the header states.
///
/// Writers declare each thread and method before its first record. With the wrong layout a reader finds ids
/// that nothing has declared. The stated layout is kept unless the other one explains more records.
pub(super) fn stream_layout(
    declared: &mut Declarations<'_>,
    bytes: &[u8],
    from: usize,
    stated: RecordLayout,
) -> RecordLayout {
    if stated != RecordLayout::Single {
        return stated;
    }
    let bytes = bytes.get(from..).unwrap_or_default();
    let explained = |layout| explained_records(declared, bytes, layout);
    if explained(RecordLayout::SingleWithFiller) <= explained(stated) {
        return stated;
    }
    declared.report.notes.push(
        "records have 14 bytes, although the header states 10: the last 4 bytes of each are filler (as ART 11 \
         and 12 write streaming files of one clock)"
            .to_owned(),
    );
    RecordLayout::SingleWithFiller
}

/// The number of records at the start of the stream `bytes` whose thread and method were declared before.
fn explained_records(declared: &Declarations<'_>, bytes: &[u8], layout: RecordLayout) -> usize {
    let mut threads: HashSet<u16> = declared.threads.iter().map(|thread| thread.id as u16).collect();
    let mut methods: HashSet<u64> = declared.methods.iter().map(|method| method.id & !3).collect();
    let mut at = 0;
    let mut tried = 0;
    let mut explained = 0;
    while let Some(Ok((packet, len))) = next_packet(&bytes[at..], layout) {
        match packet {
            Packet::Records(_) => {
                for record in decode(bytes, &(at..at + len), layout).take(MAX_RECORDS_TRIED - tried) {
                    tried += 1;
                    let is_declared =
                        threads.contains(&record.thread) && methods.contains(&u64::from(record.method()));
                    explained += usize::from(is_declared);
                }
            }
            Packet::Method(line) => methods.extend(parse_method_line(line).map(|method| method.id & !3)),
            Packet::Thread(id, _) => {
                threads.insert(id);
            }
            Packet::Summary(_) => break,
        }
        if tried == MAX_RECORDS_TRIED {
            break;
        }
        at += len;
    }
    explained
}

/// Reads a streaming file: takes its declarations, and finds the segments of records between them.
pub(super) fn read_stream<'a>(
    declared: &mut Declarations<'a>,
    bytes: &'a [u8],
    from: usize,
    body: &mut FixedBody,
) {
    let mut at = from;
    let mut summary = None;
    let mut binds = Vec::new();
    while let Some(next) = next_packet(&bytes[at..], body.layout) {
        let Some((packet, len)) = declared.readable(next, at, bytes.len() - at) else { break };
        match packet {
            Packet::Records(_) => {
                body.segments.push(Segment { range: at..at + len, binds: std::mem::take(&mut binds) });
            }
            Packet::Method(line) => match parse_method_line(line) {
                Some(method) => declared.add_method(method),
                None => declared.damage(at, "a method's declaration has no id, class and name"),
            },
            Packet::Thread(id, name) => {
                let name = String::from_utf8_lossy(name);
                let known = declared.latest.get(&u32::from(id)).copied();
                if known.is_none_or(|n| declared.threads[n as usize].name != name) {
                    let index = declared.add_thread(u32::from(id), name);
                    if known.is_some() {
                        binds.push((id, index));
                    }
                }
            }
            Packet::Summary(text) => {
                let text_at = at + len - text.len();
                summary = Some((text, text_at));
                at += len;
                break;
            }
        }
        at += len;
    }
    match summary.map(|(text, text_at)| (KeySection::parse(text), text_at)) {
        Some((Some(text), text_at)) => {
            declared.restore_cut_ids(&text.threads);
            declared.take_text(text, text_at, false);
            if at < bytes.len() {
                declared
                    .damage(at, format!("{} bytes follow the summary and are not read", bytes.len() - at));
            }
        }
        Some((None, text_at)) => declared.damage(text_at, "the summary does not begin with *version"),
        None => declared.damage(
            at,
            "no summary at the end: the app was killed or the file was cut while tracing, so later calls may \
             be missing, and clock and pid are not stated",
        ),
    }
}
