//! The end of the head of a trace.dat version 6, which a recorder changes while it records: the names of
//! threads, the options and the table of CPUs.

use super::header::{HeaderReader, HeaderResult};
use crate::ftrace::Endian;
use crate::trace_dat::{CpuData, RecorderInfo, Slot, V6_FLYRECORD, V6_OPTIONS, option};

/// The places in that part, as offsets in the file, and what the table of CPUs says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DatTail {
    /// The number of CPUs before the options.
    cpus_at: u64,
    /// The same in the option CPUCOUNT.
    cpu_count_at: Option<u64>,
    /// The recorder's own facts.
    pub extra: Option<Slot>,
    pub table_at: u64,
    pub cpus: Vec<CpuData>,
    /// How many instances have pages of their own.
    pub instances: usize,
    /// Behind the clock, which follows the table.
    pub end: u64,
}

impl DatTail {
    /// Finds them in `bytes`, which begin with the saved command lines, at offset `at` of the file.
    pub fn parse(bytes: &[u8], at: u64, endian: Endian) -> HeaderResult<DatTail> {
        let mut c = HeaderReader::new(bytes, at, endian, "the saved command lines");
        c.sized64()?;
        c.what = "the table of CPUs";
        let mut tail = DatTail { cpus_at: c.offset(), ..DatTail::default() };
        let cpus = c.u32()?;
        let mut section = c.bytes(V6_OPTIONS.len() as u64)?;
        if section == V6_OPTIONS {
            c.what = "the options";
            loop {
                let id = c.u16()?;
                if id == option::DONE {
                    break;
                }
                let data = c.sized32()?;
                let slot = Slot { at: c.offset() - data.len() as u64, len: data.len() };
                match id {
                    option::CPUCOUNT if slot.len == size_of::<u32>() => tail.cpu_count_at = Some(slot.at),
                    option::BUFFER => tail.instances += 1,
                    option::CLOCK_SNAPSHOTS => tail.extra = Some(slot),
                    _ => {}
                }
            }
            section = c.bytes(V6_FLYRECORD.len() as u64)?;
        }
        c.what = "the table of CPUs";
        if section != V6_FLYRECORD {
            return Err(c.bad("no table of CPUs where it was before".into()));
        }
        tail.table_at = c.offset();
        for _ in 0..cpus {
            tail.cpus.push(CpuData { offset: c.u64()?, size: c.u64()? });
        }
        tail.end = c.offset();
        if c.sized64().is_ok() {
            tail.end = c.offset();
        }
        Ok(tail)
    }

    /// The same bytes with a table of `entries` entries, which are all empty.
    pub fn with_empty_table(&self, bytes: &[u8], at: u64, entries: u32) -> Vec<u8> {
        let place = |offset: u64| (offset - at) as usize;
        let table_end = place(self.table_at) + self.cpus.len() * CpuData::ENTRY_LEN;
        let mut out = bytes.get(..place(self.table_at)).unwrap_or_default().to_vec();
        for count in [Some(self.cpus_at), self.cpu_count_at].into_iter().flatten() {
            if let Some(number) = out.get_mut(place(count)..place(count) + size_of::<u32>()) {
                number.copy_from_slice(&entries.to_le_bytes());
            }
        }
        out.resize(out.len() + entries as usize * CpuData::ENTRY_LEN, 0);
        out.extend_from_slice(bytes.get(table_end..place(self.end)).unwrap_or_default());
        out
    }

    /// The recorder's own facts. `None` where it has written none, or is writing them now.
    pub fn facts(&self, bytes: &[u8], at: u64) -> Option<RecorderInfo> {
        let slot = self.extra?;
        let start = (slot.at - at) as usize;
        serde_json::from_slice(bytes.get(start..start + slot.len)?.trim_ascii()).ok()
    }
}
