//! Follows a trace.dat version 6 in a file, also while tracebridge's recorder writes it, and makes the
//! recorder's stream of it.
//!
//! The recorder enters pages into the table of CPUs before it writes them, so what the table has before its
//! last change is written. At the end the recorder closes the holes of the file, which moves pages: what was
//! read is taken only if the pages were at the same places afterwards. In the file nothing says up to which
//! time it is complete. The recorder reads all CPUs at least once a second; so the events of two seconds wait
//! for those of other CPUs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use super::dat_tail::DatTail;
use super::header::{TraceDat, TraceDatError};
use crate::clock::Timestamp;
use crate::ftrace::{Endian, PageLayout};
use crate::ids::Cpu;
use crate::trace_dat::recorder_stream::{FrameKind, HeadInfo, MAGIC, frame_head};
use crate::trace_dat::{CpuData, RecorderInfo, Slot};

/// So much is read of a file first, bytes: more than a head without the kernel's symbols has.
const FIRST_HEAD_BYTES: usize = 1 << 20;
/// The longest head that is accepted, bytes.
const MAX_HEAD_BYTES: usize = 64 << 20;
/// Pages of one step have so many bytes.
const STEP_BYTES: usize = 1 << 20;
/// So long events wait for those of other CPUs, ns of the recording's clock.
const HOLD_NS: u64 = 2_000_000_000;
/// A recorder that has written nothing for so long has written everything that it has entered.
const IDLE_TIME: Duration = Duration::from_secs(2);

/// A trace.dat that is followed.
pub(crate) struct GrowingDat {
    file: File,
    layout: PageLayout,
    /// Offset of the part of the head that changes, and that part with an empty table, as it was sent.
    tail_at: u64,
    tail: Vec<u8>,
    /// The head as it was when it was opened, until it is sent.
    head: Option<Vec<u8>>,
    /// The recorder's facts, and their place in the head that is sent.
    facts: Option<RecorderInfo>,
    extra: Slot,
    table_at: u64,
    entries: u32,
    /// The table of CPUs as it was seen last, and since when it is so.
    table: Vec<CpuData>,
    changed: Instant,
    cpus: Vec<FollowedCpu>,
    /// The latest time of a page that was sent, in the clock of the pages, as all times here.
    newest: Timestamp,
    /// The time up to which everything was told to be sent.
    told: Timestamp,
    /// Whether that is all that was sent.
    is_flushed: bool,
    notes: Vec<String>,
}

/// The pages of one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct FollowedCpu {
    /// Bytes that were sent, and those that are written.
    sent: u64,
    written: u64,
    /// The time of the next page, if it was looked at.
    next: Option<Timestamp>,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrowingStep {
    /// There may be more at once.
    Goes,
    /// There is nothing new now.
    Waits,
    /// The recording is complete.
    Ended,
}

/// Why a file cannot be followed, or not any longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrowingError {
    #[error("{0}")]
    Head(#[from] TraceDatError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "a trace.dat of version 7 is written when its recording has ended: `tracebridge report` and `open` show it"
    )]
    Version7,
    #[error(
        "a recording of a big-endian machine cannot be followed: `tracebridge report` and `open` show it"
    )]
    BigEndian,
    #[error(
        "at byte {at}: the file was cut while it was followed: {len} bytes are left of {had}. What has come is shown; \
         the rest is gone"
    )]
    Shrunk { at: u64, len: u64, had: u64 },
    #[error("at byte {at}: the table of CPUs names the same bytes more than once")]
    Overlap { at: u64 },
}

impl From<GrowingError> for io::Error {
    fn from(error: GrowingError) -> io::Error {
        match error {
            GrowingError::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        }
    }
}

/// The file as it is at a moment.
struct DatView {
    len: u64,
    tail: Vec<u8>,
    places: DatTail,
    facts: Option<RecorderInfo>,
}

impl GrowingDat {
    /// Reads the head of a trace.dat.
    ///
    /// # Errors
    /// [`GrowingError`] for a file that is none, or whose head is not there yet.
    pub fn open(file: File) -> Result<GrowingDat, GrowingError> {
        let (head, layout, tail_at) = read_head(&file)?;
        let tail = &head[tail_at as usize..];
        let places = DatTail::parse(tail, tail_at, layout.endian)?;
        let facts = places.facts(tail, tail_at);
        let cpus = places.cpus.len() as u32;
        let is_growing = places.extra.is_some() && facts.as_ref().is_none_or(|facts| !facts.complete);
        let has_rings = facts.as_ref().and_then(|facts| facts.rings.as_ref());
        let has_rings = has_rings.is_some_and(|rings| rings.cpu.count_if_last() == cpus);
        // The recorder adds the entry for the markers of rings when the first of them come.
        let entries = if is_growing && !has_rings { cpus + 1 } else { cpus };
        let sent_tail = places.with_empty_table(tail, tail_at, entries);
        let mut sent_head = head[..tail_at as usize].to_vec();
        sent_head.extend_from_slice(&sent_tail);
        Ok(GrowingDat {
            file,
            layout,
            tail_at,
            tail: sent_tail,
            head: Some(sent_head),
            facts,
            extra: places.extra.unwrap_or_default(),
            table_at: places.table_at,
            entries,
            table: Vec::new(),
            changed: Instant::now(),
            cpus: vec![FollowedCpu::default(); entries as usize],
            newest: Timestamp::MIN,
            told: Timestamp::MIN,
            is_flushed: false,
            notes: Vec::new(),
        })
    }

    /// Sentences about what is missing, once the recording is complete.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes what is new as frames of the recorder's stream.
    ///
    /// # Errors
    /// [`GrowingError`] for a file that is no longer what it was, and the errors of `out`.
    pub fn step(&mut self, out: &mut dyn Write) -> Result<GrowingStep, GrowingError> {
        let before = self.look()?;
        self.check(&before)?;
        let mut frames = Vec::new();
        if let Some(head) = &self.head {
            self.begin(head, &mut frames);
        }
        let is_complete = is_complete(&before);
        let is_idle = self.note_written(&before, is_complete);
        let sent = self.cpus.clone();
        let is_all = self.read_pages(&before, is_complete, &mut frames)?;
        if self.are_moved(&before, &self.look()?) {
            self.cpus = sent;
            return Ok(GrowingStep::Waits);
        }
        self.head = None;
        let has_pages = self.cpus.iter().zip(&sent).any(|(now, before)| now.sent > before.sent);
        let ends = is_complete && is_all && (is_idle || !settles(&before));
        self.patch(&before, &mut frames);
        if ends {
            self.note_missing(&before);
            self.end(&mut frames);
        } else {
            self.round(&before, is_idle && is_all, &mut frames)?;
        }
        out.write_all(&frames)?;
        Ok(if ends {
            GrowingStep::Ended
        } else if has_pages {
            GrowingStep::Goes
        } else {
            GrowingStep::Waits
        })
    }

    fn look(&self) -> Result<DatView, GrowingError> {
        let len = self.file.metadata()?.len();
        // The table may have got an entry more.
        let mut tail = vec![0; self.tail.len() + CpuData::ENTRY_LEN];
        let read = read_at(&self.file, self.tail_at, &mut tail)?;
        tail.truncate(read);
        let mut places = DatTail::parse(&tail, self.tail_at, self.layout.endian)?;
        let facts = places.facts(&tail, self.tail_at).or_else(|| self.facts.clone());
        places.cpus = placed(&places, facts.as_ref(), len);
        Ok(DatView { len, tail, places, facts })
    }

    /// Fails where the file has become shorter than what was read of it, or the table cannot be.
    fn check(&self, view: &DatView) -> Result<(), GrowingError> {
        for (cpu, data) in self.cpus.iter().zip(&view.places.cpus) {
            let had = data.offset.saturating_add(cpu.sent);
            if cpu.sent > 0 && (view.len < had || data.size < cpu.sent) {
                return Err(GrowingError::Shrunk { at: view.len.min(had), len: view.len, had });
            }
        }
        if view.places.table_at != self.table_at || view.places.cpus.len() > self.cpus.len() {
            let what =
                "the head is not the one that it was: another recording is written to this file".into();
            return Err(TraceDatError::Bad { offset: view.places.table_at, what }.into());
        }
        // Pages that are not there yet may be entered; others may not lie at the same place.
        let mut parts: Vec<CpuData> = view.places.cpus.iter().copied().filter(|data| data.size > 0).collect();
        parts.sort_by_key(|data| data.offset);
        let is_apart = |pair: &[CpuData]| {
            pair[0].offset.checked_add(pair[0].size).is_some_and(|end| end <= pair[1].offset)
        };
        if !parts.windows(2).all(is_apart) {
            return Err(GrowingError::Overlap { at: self.table_at });
        }
        Ok(())
    }

    /// Notes how much of each CPU's pages is written. Returns whether the recorder has been idle.
    fn note_written(&mut self, view: &DatView, is_complete: bool) -> bool {
        let sizes: Vec<u64> = view.places.cpus.iter().map(|data| data.size).collect();
        let known: Vec<u64> = self.table.iter().map(|data| data.size).collect();
        let is_changed = sizes != known;
        let is_idle = !is_changed && self.changed.elapsed() >= IDLE_TIME;
        let written = if is_complete || is_idle { &sizes } else { &known };
        if is_complete || is_idle || is_changed {
            for (cpu, size) in self.cpus.iter_mut().zip(written) {
                cpu.written = size - size % u64::from(self.layout.size);
            }
        }
        if is_changed {
            self.table.clone_from(&view.places.cpus);
            self.changed = Instant::now();
            self.is_flushed = false;
        }
        is_idle
    }

    fn begin(&self, head: &[u8], frames: &mut Vec<u8>) {
        let info = HeadInfo {
            page_size: self.layout.size,
            cpus: self.entries,
            table_at: self.table_at,
            extra: (self.extra.at, self.extra.len as u64),
        };
        let info = info.encode();
        frames.extend_from_slice(MAGIC);
        frames.extend(frame_head(FrameKind::Head, Cpu(0), info.len() + head.len()));
        frames.extend(info);
        frames.extend_from_slice(head);
    }

    /// Whether pages that were sent have got another place between two looks.
    fn are_moved(&self, before: &DatView, after: &DatView) -> bool {
        let places = before.places.cpus.iter().zip(&after.places.cpus);
        self.cpus.iter().zip(places).any(|(cpu, (old, new))| cpu.sent > 0 && old.offset != new.offset)
    }

    /// Reads pages of all CPUs in the order of their times. Returns whether it has read all of them.
    fn read_pages(
        &mut self,
        view: &DatView,
        is_complete: bool,
        frames: &mut Vec<u8>,
    ) -> Result<bool, GrowingError> {
        let size = self.layout.size as usize;
        let until = frames.len() + STEP_BYTES.max(size);
        while frames.len() < until {
            let Some((at, data)) = self.earliest(view, is_complete)? else { return Ok(true) };
            let mut page = vec![0; size];
            read_at(&self.file, data.offset + self.cpus[at].sent, &mut page)?;
            frames.extend(frame_head(FrameKind::Pages, Cpu(at as u32), size));
            frames.extend(page);
            self.newest = self.newest.max(self.cpus[at].next.take().unwrap_or_default());
            self.cpus[at].sent += size as u64;
        }
        Ok(false)
    }

    /// The CPU whose next page is the earliest one. A page that is not written yet is left to the next step;
    /// one that a killed recorder has not written is the last one.
    fn earliest(&mut self, view: &DatView, is_complete: bool) -> io::Result<Option<(usize, CpuData)>> {
        let GrowingDat { file, layout, cpus, notes, .. } = self;
        let size = u64::from(layout.size);
        let mut earliest: Option<(Timestamp, usize)> = None;
        for (at, (cpu, data)) in cpus.iter_mut().zip(&view.places.cpus).enumerate() {
            let present = view.len.saturating_sub(data.offset).min(cpu.written);
            if cpu.next.is_none() && cpu.sent + size <= present {
                let mut head = vec![0; layout.data_offset as usize];
                read_at(file, data.offset + cpu.sent, &mut head)?;
                if head.iter().any(|byte| *byte > 0) {
                    cpu.next = Some(Timestamp(head.first_chunk().map_or(0, |ts| u64::from_le_bytes(*ts))));
                } else if is_complete {
                    let place = data.offset + cpu.sent;
                    notes.push(format!("at byte {place}: CPU {at}: empty pages, which are left out"));
                    cpu.written = cpu.sent;
                }
            }
            earliest = [earliest, cpu.next.map(|next| (next, at))].into_iter().flatten().min();
        }
        let place = earliest.and_then(|(_, at)| Some((at, *view.places.cpus.get(at)?)));
        Ok(place)
    }

    /// Sends what has changed in the head.
    fn patch(&mut self, view: &DatView, frames: &mut Vec<u8>) {
        let tail = view.places.with_empty_table(&view.tail, self.tail_at, self.entries);
        let is_other = |(old, new): (&u8, &u8)| old != new;
        let first = self.tail.iter().zip(&tail).position(is_other);
        let last = self.tail.iter().zip(&tail).rposition(is_other);
        // What a recorder is writing in this moment is sent in the next step.
        let is_whole = view.places.extra.is_none() || view.places.facts(&view.tail, self.tail_at).is_some();
        let (Some(first), Some(last), true) = (first, last, is_whole && tail.len() == self.tail.len()) else {
            return;
        };
        let changed = &tail[first..=last];
        let at = (self.tail_at + first as u64).to_le_bytes();
        frames.extend(frame_head(FrameKind::Patch, Cpu(0), at.len() + changed.len()));
        frames.extend(at);
        frames.extend_from_slice(changed);
        self.tail = tail;
        self.facts.clone_from(&view.facts);
    }

    /// Tells up to which time everything was sent.
    fn round(&mut self, view: &DatView, is_idle: bool, frames: &mut Vec<u8>) -> Result<(), GrowingError> {
        if self.is_flushed {
            return Ok(());
        }
        let waiting = self.cpus.iter().filter_map(|cpu| cpu.next).min();
        let mut until = waiting.unwrap_or(Timestamp::MAX);
        if !is_complete(view) {
            until = until.min(self.newest.saturating_sub(HOLD_NS));
        }
        if is_idle {
            until = self.last_event(view)?.saturating_add(1);
            self.is_flushed = true;
        }
        if until < Timestamp::MAX && until > self.told {
            self.told = until;
            let time = until.0.to_le_bytes();
            frames.extend(frame_head(FrameKind::Round, Cpu(0), time.len()));
            frames.extend(time);
        }
        Ok(())
    }

    /// The time of the last event that was sent.
    fn last_event(&self, view: &DatView) -> io::Result<Timestamp> {
        let size = u64::from(self.layout.size);
        let mut last = self.newest;
        for (cpu, data) in self.cpus.iter().zip(&view.places.cpus).filter(|(cpu, _)| cpu.sent > 0) {
            let mut page = vec![0; self.layout.size as usize];
            read_at(&self.file, data.offset + cpu.sent - size, &mut page)?;
            if let Ok(page) = self.layout.page(&page) {
                last = last.max(page.records().last().map_or(Timestamp::MIN, |record| record.ts));
            }
        }
        Ok(last)
    }

    /// Notes pages that the table has and the file has not.
    fn note_missing(&mut self, view: &DatView) {
        if view.places.instances > 0 {
            let more = view.places.instances;
            self.notes.push(format!("{more} trace instances of the file are not shown"));
        }
        for (at, data) in view.places.cpus.iter().enumerate() {
            let missing = data.size.saturating_sub(view.len.saturating_sub(data.offset));
            if missing > 0 {
                self.notes.push(format!(
                    "at byte {}: CPU {at}: the file ends inside its pages: {missing} of {} bytes are missing",
                    view.len, data.size
                ));
            }
        }
    }

    fn end(&self, frames: &mut Vec<u8>) {
        let mut text = Vec::new();
        if let Some(facts) = self.facts.clone().filter(|_| self.extra.len > 0) {
            text = RecorderInfo { settle: None, complete: true, ..facts }.to_json(self.extra.len);
        }
        frames.extend(frame_head(FrameKind::End, Cpu(0), text.len()));
        frames.extend(text);
    }
}

/// Reads the head of a trace.dat: its bytes, the layout of its pages, and the offset of the part that a
/// recorder changes.
fn read_head(file: &File) -> Result<(Vec<u8>, PageLayout, u64), GrowingError> {
    let mut wanted = FIRST_HEAD_BYTES;
    loop {
        let mut head = vec![0; wanted];
        let read = read_at(file, 0, &mut head)?;
        head.truncate(read);
        match TraceDat::open(&head) {
            Err(TraceDatError::Cut { .. }) if read == wanted && wanted < MAX_HEAD_BYTES => {
                wanted = (wanted * 4).min(MAX_HEAD_BYTES);
            }
            Err(error) => return Err(error.into()),
            Ok(dat) => {
                let layout = dat.layout;
                let tail_at = dat.tail_at.ok_or(GrowingError::Version7)?;
                if layout.endian == Endian::Big {
                    return Err(GrowingError::BigEndian);
                }
                return Ok((head, layout, tail_at));
            }
        }
    }
}

/// Whether nothing more comes: the recorder has said so, or the file is of another one, which writes it at
/// its end.
fn is_complete(view: &DatView) -> bool {
    view.places.extra.is_none() || view.facts.as_ref().is_some_and(|facts| facts.complete)
}

/// Whether the recorder is closing the holes of the file.
fn settles(view: &DatView) -> bool {
    view.facts.as_ref().is_some_and(|facts| facts.settle.is_some())
}

/// The places of the pages; while the recorder closes holes they are not those of the table.
fn placed(tail: &DatTail, facts: Option<&RecorderInfo>, len: u64) -> Vec<CpuData> {
    let settled = facts.and_then(|facts| facts.settle.as_ref()).and_then(|settle| settle.offsets_in(len));
    let Some(settled) = settled else { return tail.cpus.clone() };
    let place = |(at, data): (usize, &CpuData)| CpuData {
        offset: settled.get(at).copied().unwrap_or(data.offset),
        ..*data
    };
    tail.cpus.iter().enumerate().map(place).collect()
}

/// Reads as much as there is.
fn read_at(mut file: &File, at: u64, into: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(at))?;
    let mut read = 0;
    while read < into.len() {
        match file.read(&mut into[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
