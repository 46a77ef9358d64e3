//! Makes pages of ring buffer out of markers, as if a CPU of its own had written them: every reader of the
//! capture shows `print` events of the threads that wrote them. Markers that were read wait here for markers
//! of other threads that are older.

use crate::clock::Timestamp;
use crate::ftrace::page_writer::PageWriter;
use crate::ftrace::{CommonFields, Endian, EventFormat, FieldSlot, PageLayout, builtin_formats};
use crate::ids::{Cpu, Tid};
use crate::record::capture::RecordingOutput;
use crate::record::{RecordError, Tracefs};

/// The most memory that markers take which wait, those of all programs together, bytes. Beyond it nobody is
/// waited for.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// A marker that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The time in the clock of the stamps.
    stamp: u64,
    tid: Tid,
    /// Offset of the text.
    start: u32,
    len: u16,
}

/// Markers that wait, with their texts.
#[derive(Debug, Default)]
pub(super) struct Pending {
    markers: Vec<Waiting>,
    texts: Vec<u8>,
}

impl Pending {
    /// Adds a marker. Those of one thread come in their order.
    pub(super) fn push(&mut self, stamp: u64, tid: Tid, text: &[u8]) {
        let start = self.texts.len() as u32;
        let len = text.len() as u16;
        self.texts.extend_from_slice(text);
        self.markers.push(Waiting { stamp, tid, start, len });
    }

    /// Whether nobody can be waited for any more.
    pub(super) fn is_full(&self) -> bool {
        self.markers.len() * size_of::<Waiting>() + self.texts.len() > MAX_WAITING_BYTES
    }

    /// Hands all markers up to `limit` to `store` in order of their times, as time, thread and text. Markers
    /// of one time stay in the order in which they came.
    pub(super) fn take_until<E>(
        &mut self,
        limit: u64,
        mut store: impl FnMut(u64, Tid, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The markers of each thread are in order already, which this sort makes use of.
        self.markers.sort_by_key(|marker| marker.stamp);
        let end = self.markers.partition_point(|marker| marker.stamp <= limit);
        let mut stored = Ok(());
        for Waiting { stamp, tid, start, len } in self.markers.drain(..end) {
            let text = self.texts.get(start as usize..start as usize + usize::from(len));
            if stored.is_ok() {
                stored = store(stamp, tid, text.unwrap_or_default());
            }
        }
        let mut texts = Vec::new();
        for marker in &mut self.markers {
            let start = marker.start as usize;
            let text = self.texts.get(start..start + usize::from(marker.len)).unwrap_or_default();
            marker.start = texts.len() as u32;
            texts.extend_from_slice(text);
        }
        self.texts.clear();
        self.texts.extend_from_slice(&texts);
        stored
    }
}

/// Pages that are handed to the output at once.
const BATCH_PAGES: usize = 64;
/// Alignment of the batch in memory, bytes. O_DIRECT requires it, as for the pages of the kernel.
const BATCH_ALIGN: usize = 4096;

/// Gathers markers into pages, and pages into batches.
pub(super) struct MarkerPages {
    writer: PageWriter,
    page_bytes: usize,
    /// The entry of the table of CPUs that the pages belong to.
    cpu: Cpu,
    record: PrintRecord,
    batch: Vec<u8>,
    /// Offset of the first aligned byte of `batch`.
    start: usize,
    /// Bytes of full pages in `batch`.
    filled: usize,
    /// Time of the last marker, in the recording's clock.
    pub(super) last_ts: Timestamp,
    /// Markers that were stored.
    pub(super) events: u64,
}

/// The bytes of a `print` event, and where the marker goes.
struct PrintRecord {
    bytes: Vec<u8>,
    pid_at: usize,
    text_at: usize,
}

impl PrintRecord {
    /// Reads where this kernel's `print` event has its fields.
    fn new(tracefs: &Tracefs, long_size: u32) -> PrintRecord {
        let path = tracefs.top().join("events/ftrace/print/format");
        let read =
            std::fs::read_to_string(path).ok().and_then(|text| EventFormat::parse("ftrace", &text).ok());
        let built_in = || {
            let formats = builtin_formats(long_size);
            let print = formats.iter().find(|(name, _)| *name == "print")?;
            EventFormat::parse("ftrace", &print.1).ok()
        };
        let format = read.or_else(built_in);
        let usual = CommonFields {
            id: FieldSlot { offset: 0, size: 2 },
            pid: FieldSlot { offset: 4, size: 4 },
            ..CommonFields::default()
        };
        let (id, common) = format.as_ref().map_or((5, usual), |format| (format.id, format.common));
        let text = format.iter().flat_map(|format| &format.kind.fields).find(|field| field.name == "buf");
        let text_at = text.map_or(8 + long_size, |field| field.offset).clamp(8, 64) as usize;
        let id_at = common.id.offset as usize;
        let pid_at = common.pid.offset as usize;
        let mut bytes = vec![0; text_at];
        if let Some(place) = bytes.get_mut(id_at..id_at + 2) {
            place.copy_from_slice(&id.to_ne_bytes());
        }
        PrintRecord { bytes, pid_at, text_at }
    }

    fn with_marker(&mut self, tid: Tid, text: &[u8]) -> &[u8] {
        self.bytes.truncate(self.text_at);
        if let Some(place) = self.bytes.get_mut(self.pid_at..self.pid_at + 4) {
            place.copy_from_slice(&tid.0.to_ne_bytes());
        }
        self.bytes.extend_from_slice(text);
        // The kernel ends a marker so.
        self.bytes.extend_from_slice(b"\n\0");
        &self.bytes
    }
}

impl MarkerPages {
    pub(super) fn new(tracefs: &Tracefs, layout: PageLayout, cpu: Cpu) -> MarkerPages {
        debug_assert_eq!(layout.endian, Endian::NATIVE);
        let page_bytes = layout.size as usize;
        let batch = vec![0; BATCH_PAGES * page_bytes + BATCH_ALIGN];
        let start = batch.as_ptr().align_offset(BATCH_ALIGN).min(BATCH_ALIGN);
        MarkerPages {
            writer: PageWriter::new(layout),
            page_bytes,
            cpu,
            record: PrintRecord::new(tracefs, layout.commit_size),
            batch,
            start,
            filled: 0,
            last_ts: Timestamp::MIN,
            events: 0,
        }
    }

    /// Stores a marker. One that is not younger than the marker before it gets the next ns, so that any
    /// reader, however it sorts, keeps their order: a counter of 19 MHz ticks every 52 ns.
    pub(super) fn push(
        &mut self,
        ts: Timestamp,
        tid: Tid,
        text: &[u8],
        output: &mut dyn RecordingOutput,
    ) -> Result<(), RecordError> {
        self.last_ts = ts.max(self.last_ts + 1);
        let full = self.writer.push(self.last_ts, self.record.with_marker(tid, text));
        self.events += 1;
        self.add(full, output)
    }

    /// Notes that markers were dropped before the next one.
    pub(super) fn lost(&mut self, count: u64, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let full = self.writer.lost(Some(count));
        self.add(full, output)
    }

    /// Hands everything to the output, the last page included, however little is in it.
    pub(super) fn flush(&mut self, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let full = self.writer.take();
        self.add(full, output)?;
        self.write(output)
    }

    fn add(&mut self, page: Option<Box<[u8]>>, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        let Some(page) = page else { return Ok(()) };
        let at = self.start + self.filled;
        self.batch[at..at + self.page_bytes].copy_from_slice(&page[..self.page_bytes]);
        self.filled += self.page_bytes;
        if self.filled < BATCH_PAGES * self.page_bytes { Ok(()) } else { self.write(output) }
    }

    fn write(&mut self, output: &mut dyn RecordingOutput) -> Result<(), RecordError> {
        // The batch counts as written also after an error, as the pages of the kernel do.
        let filled = std::mem::take(&mut self.filled);
        if filled == 0 {
            Ok(())
        } else {
            output.pages(self.cpu, &self.batch[self.start..self.start + filled])
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn markers_of_several_threads_come_out_in_order_and_later_ones_wait() {
        let mut pending = Pending::default();
        for (stamp, tid, text) in
            [(5, 1, "a"), (5, 1, "b"), (9, 1, "c"), (2, 2, "d"), (5, 2, "e"), (7, 2, "f")]
        {
            pending.push(stamp, Tid(tid), text.as_bytes());
        }
        let mut out = Vec::new();
        let mut store = |stamp, tid, text: &[u8]| {
            out.push((stamp, tid, String::from_utf8(text.to_vec()).unwrap()));
            Ok::<(), ()>(())
        };
        pending.take_until(5, &mut store).unwrap();
        let threads: HashSet<Tid> = pending.markers.iter().map(|marker| marker.tid).collect();
        assert_eq!((pending.markers.len(), threads), (2, HashSet::from([Tid(1), Tid(2)])));
        pending.push(6, Tid(3), b"g");
        pending.take_until(u64::MAX, &mut store).unwrap();
        let texts: Vec<&str> = out.iter().map(|(.., text)| text.as_str()).collect();
        assert_eq!(texts.concat(), "dabegfc");
    }

    #[test]
    fn markers_of_all_programs_together_wait_in_so_many_bytes_and_no_more() {
        let mut pending = Pending::default();
        let mut bytes = 0;
        for tid in 1.. {
            if pending.is_full() {
                break;
            }
            assert!(bytes <= MAX_WAITING_BYTES);
            pending.push(u64::MAX, Tid(tid), &[b'x'; 1_000]);
            bytes += 1_000;
        }
        assert!(bytes > MAX_WAITING_BYTES / 2);
        pending.take_until(u64::MAX, |_, _, _| Ok::<(), ()>(())).unwrap();
        assert!(!pending.is_full());
    }
}
