//! The event types of a reading: finds the type of a record, and parses a type's format at its first event.

use std::io;

use super::header::TraceDat;
use crate::formats::{EventType, EventTypeId, Sink};
use crate::ftrace::{CommonFields, Endian, EventFormat, FieldSlot};

/// The values of a record's `common_` fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CommonValues {
    pub(super) id: u16,
    pub(super) flags: u8,
    pub(super) preempt_count: u8,
    pub(super) tid: i32,
}

/// The event types that have occurred so far while the file is read once.
pub(super) struct EventTypes<'d, 'a> {
    dat: &'d TraceDat<'a>,
    common: CommonFields,
    endian: Endian,
    /// By event id: the index into `types` plus one, or 0 before the first event.
    index: Vec<u32>,
    pub(super) types: Vec<EventType>,
    /// By event type: whether its events are markers.
    are_markers: Vec<bool>,
    /// A line for each event id that has no usable format.
    pub(super) damage: Vec<String>,
}

/// Where every kernel since 2.6.31 has the `common_` fields.
const USUAL_COMMON_FIELDS: CommonFields = CommonFields {
    id: FieldSlot { offset: 0, size: 2 },
    flags: FieldSlot { offset: 2, size: 1 },
    preempt_count: FieldSlot { offset: 3, size: 1 },
    pid: FieldSlot { offset: 4, size: 4 },
};

impl<'d, 'a> EventTypes<'d, 'a> {
    pub(super) fn new(dat: &'d TraceDat<'a>) -> EventTypes<'d, 'a> {
        let first = dat
            .formats
            .first()
            .and_then(|(system, text)| EventFormat::parse(system, &String::from_utf8_lossy(text)).ok());
        let common = first.map_or(USUAL_COMMON_FIELDS, |f| f.common);
        let endian = dat.layout.endian;
        EventTypes {
            dat,
            common,
            endian,
            index: vec![0; 1 << 16],
            types: Vec::new(),
            are_markers: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The values of a record's `common_` fields. `None` for a record that is too short.
    #[inline]
    pub(super) fn common(&self, record: &[u8]) -> Option<CommonValues> {
        if self.common == USUAL_COMMON_FIELDS {
            let head: &[u8; 8] = record.first_chunk()?;
            let (id, tid) = ([head[0], head[1]], [head[4], head[5], head[6], head[7]]);
            return Some(match self.endian {
                Endian::Little => CommonValues {
                    id: u16::from_le_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_le_bytes(tid),
                },
                Endian::Big => CommonValues {
                    id: u16::from_be_bytes(id),
                    flags: head[2],
                    preempt_count: head[3],
                    tid: i32::from_be_bytes(tid),
                },
            });
        }
        let at = |slot: FieldSlot| {
            let start = slot.offset as usize;
            self.endian.uint(record.get(start..start.checked_add(slot.size as usize)?)?)
        };
        Some(CommonValues {
            id: at(self.common.id)? as u16,
            flags: at(self.common.flags).unwrap_or(0) as u8,
            preempt_count: at(self.common.preempt_count).unwrap_or(0) as u8,
            tid: at(self.common.pid).unwrap_or(0) as i32,
        })
    }

    /// The event type of an event id. At the type's first event the type is pushed to `sink`.
    #[inline]
    pub(super) fn resolve<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
        match self.index[usize::from(id)] {
            0 => self.add(id, sink),
            number => Ok(EventTypeId(number - 1)),
        }
    }

    /// Whether a record is of a type that has been met, and that is none of markers.
    pub(super) fn is_no_marker(&self, record: &[u8]) -> bool {
        let number = self.common(record).map_or(0, |common| self.index[usize::from(common.id)]);
        number.checked_sub(1).is_some_and(|at| !self.are_markers[at as usize])
    }

    #[cold]
    fn add<S: Sink + ?Sized>(&mut self, id: u16, sink: &mut S) -> io::Result<EventTypeId> {
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
        let new = EventTypeId(self.types.len() as u32);
        sink.event_type(new, &kind)?;
        self.are_markers.push(kind.name == "print");
        self.types.push(kind);
        self.index[usize::from(id)] = self.types.len() as u32;
        Ok(new)
    }
}
