//! Which kind a record is of: formats are parsed when their first event comes.

use std::io;

use super::file::TraceDat;
use crate::formats::{EventType, EventTypeId, Sink};
use crate::ftrace::{CommonFields, Endian, EventFormat, Slot};

/// What a record says of itself before its own fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) id: u16,
    pub(super) flags: u8,
    pub(super) preempt_count: u8,
    pub(super) tid: i32,
}

/// The kinds met so far in one reading.
pub(super) struct Kinds<'d, 'a> {
    dat: &'d TraceDat<'a>,
    common: CommonFields,
    endian: Endian,
    /// By event id: the index into `met`, plus one.
    index: Vec<u32>,
    pub(super) met: Vec<EventType>,
    pub(super) damage: Vec<String>,
}

/// Where every kernel since 2.6.31 has them.
const USUAL: CommonFields = CommonFields {
    id: Slot { offset: 0, size: 2 },
    flags: Slot { offset: 2, size: 1 },
    preempt_count: Slot { offset: 3, size: 1 },
    pid: Slot { offset: 4, size: 4 },
};

impl<'d, 'a> Kinds<'d, 'a> {
    pub(super) fn new(dat: &'d TraceDat<'a>) -> Kinds<'d, 'a> {
        let first = dat
            .formats
            .first()
            .and_then(|(system, text)| EventFormat::parse(system, &String::from_utf8_lossy(text)).ok());
        let common = first.map_or(USUAL, |f| f.common);
        let endian = dat.layout.endian;
        Kinds { dat, common, endian, index: vec![0; 1 << 16], met: Vec::new(), damage: Vec::new() }
    }

    /// The `common_` fields of a record; `None` if it is too short for them.
    #[inline]
    pub(super) fn common(&self, record: &[u8]) -> Option<Common> {
        if self.common == USUAL {
            let head: &[u8; 8] = record.first_chunk()?;
            let (id, tid) = ([head[0], head[1]], [head[4], head[5], head[6], head[7]]);
            return Some(match self.endian {
                Endian::Little => Common {
                    id: u16::from_le_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_le_bytes(tid),
                },
                Endian::Big => Common {
                    id: u16::from_be_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_be_bytes(tid),
                },
            });
        }
        let at = |slot: Slot| {
            let start = slot.offset as usize;
            self.endian.uint(record.get(start..start.checked_add(slot.size as usize)?)?)
        };
        Some(Common {
            id: at(self.common.id)? as u16,
            flags: at(self.common.flags).unwrap_or(0) as u8,
            preempt_count: at(self.common.preempt_count).unwrap_or(0) as u8,
            tid: at(self.common.pid).unwrap_or(0) as i32,
        })
    }

    /// The kind behind an event id; told to `sink` when it is met first.
    #[inline]
    pub(super) fn of<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
        match self.index[usize::from(id)] {
            0 => self.meet(id, sink),
            known => Ok(EventTypeId(known - 1)),
        }
    }

    #[cold]
    fn meet<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
        let parsed = self.dat.by_id.get(&id).and_then(|at| {
            let (system, text) = self.dat.formats.get(*at)?;
            EventFormat::parse(system, &String::from_utf8_lossy(text)).ok()
        });
        let kind = match parsed {
            Some(format) => format.kind,
            None => {
                self.damage.push(format!("events of id {id} have no format: their fields cannot be read"));
                let name = format!("unknown_event_{id}");
                EventType { system: String::new(), name, fields: Vec::new(), print_fmt: None }
            }
        };
        let new = EventTypeId(self.met.len() as u32);
        sink.event_type(new, &kind)?;
        self.met.push(kind);
        self.index[usize::from(id)] = self.met.len() as u32;
        Ok(new)
    }
}
