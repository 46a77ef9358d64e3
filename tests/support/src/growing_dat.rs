//! Writes a trace.dat as tracebridge's recorder does while it records: the pages of each CPU into a region of
//! their own, each batch behind its entry in the table of CPUs; at the end the regions move together.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::recorder_streams::DatParts;

/// Bytes of the place for the recorder's facts.
const FACTS_BYTES: usize = 4096;
/// The option with the recorder's facts.
const RECORDER_FACTS: u16 = 0x7462;
const OPTIONS: &[u8] = b"options  \0";

/// A recording that is being written.
pub struct GrowingFile {
    file: File,
    page_size: usize,
    facts_at: u64,
    table_at: u64,
    /// Offset and size of each CPU's pages.
    regions: Vec<(u64, u64)>,
}

impl GrowingFile {
    /// Begins the recording that the little-endian trace.dat `dat` holds, without pages.
    pub fn create(path: &Path, dat: &[u8]) -> GrowingFile {
        let parts = DatParts::of(dat);
        let options = parts.head.windows(OPTIONS.len()).position(|window| window == OPTIONS).unwrap();
        let mut at = options + OPTIONS.len();
        let mut head = parts.head[..at].to_vec();
        head.extend(RECORDER_FACTS.to_le_bytes());
        head.extend((FACTS_BYTES as u32).to_le_bytes());
        let facts_at = head.len() as u64;
        head.resize(head.len() + FACTS_BYTES, b' ');
        // The other options.
        loop {
            let id = u16::from_le_bytes(parts.head[at..at + 2].try_into().unwrap());
            if id == 0 {
                break;
            }
            let len = u32::from_le_bytes(parts.head[at + 2..at + 6].try_into().unwrap()) as usize;
            if id != RECORDER_FACTS {
                head.extend(&parts.head[at..at + 6 + len]);
            }
            at += 6 + len;
        }
        let table_at = (head.len() + parts.table_at - at) as u64;
        head.extend(&parts.head[at..]);
        let longest = parts.cpus.iter().map(|pages| pages.iter().map(Vec::len).sum::<usize>()).max().unwrap();
        let spacing = (longest + parts.page_size).next_multiple_of(parts.page_size) as u64;
        let first = head.len().next_multiple_of(parts.page_size) as u64;
        let regions = (0..parts.cpus.len() as u64).map(|cpu| (first + cpu * spacing, 0)).collect();
        let file = File::create(path).unwrap();
        let mut growing = GrowingFile { file, page_size: parts.page_size, facts_at, table_at, regions };
        growing.write(0, &head);
        growing.put_facts(false, "");
        growing.put_table();
        growing
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.file.seek(SeekFrom::Start(at)).unwrap();
        self.file.write_all(bytes).unwrap();
    }

    fn put_table(&mut self) {
        let entries =
            self.regions.iter().flat_map(|(offset, size)| [offset.to_le_bytes(), size.to_le_bytes()]);
        let table = entries.collect::<Vec<_>>().concat();
        self.write(self.table_at, &table);
    }

    /// Replaces the recorder's facts: whether the recording is complete, and the name of the device.
    pub fn put_facts(&mut self, is_complete: bool, device: &str) {
        let json = format!(
            r#"{{"complete":{is_complete},"device":"{device}","counter_hz":null,"ftrace_clock":null,"list":[]}}"#
        );
        let mut text = json.into_bytes();
        text.resize(FACTS_BYTES, b' ');
        self.write(self.facts_at, &text);
    }

    /// Enters so many bytes of a CPU into the table, and returns their place: they are not written yet.
    pub fn enter(&mut self, cpu: usize, bytes: usize) -> u64 {
        let (offset, size) = &mut self.regions[cpu];
        let at = *offset + *size;
        *size += bytes as u64;
        self.put_table();
        at
    }

    /// Writes pages of a CPU.
    pub fn append(&mut self, cpu: usize, pages: &[Vec<u8>]) {
        let at = self.enter(cpu, pages.len() * self.page_size);
        self.write(at, &pages.concat());
    }

    /// Says that the recording is complete.
    pub fn complete(&mut self) {
        self.put_facts(true, "");
    }

    /// Moves the pages of a CPU behind those of the one before it, as the recorder does where the file system
    /// cannot remove holes. What lay there is gone.
    pub fn close_hole(&mut self, path: &Path, cpu: usize) {
        let bytes = std::fs::read(path).unwrap();
        let (before, len) = self.regions[cpu - 1];
        let (from, size) = self.regions[cpu];
        let to = before + len;
        let pages = bytes[from as usize..(from + size) as usize].to_vec();
        self.write(to, &pages);
        self.regions[cpu].0 = to;
        self.put_table();
        let gone = from.max(to + size);
        self.write(gone, &vec![0; (from + size - gone) as usize]);
    }

    /// Cuts the file to this length.
    pub fn cut(&mut self, len: u64) {
        self.file.set_len(len).unwrap();
    }
}
