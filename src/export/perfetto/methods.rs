//! Method slices as `TrackEvent`s: one track and one packet sequence a thread, names interned, times as deltas.

use super::proto::{bytes, message, sized, string, uint, varint};
use crate::timeline::{Edge, EdgeKind, MethodName, MethodThread};

/// A sequence-scoped clock whose readings count from the one before (ClockSnapshot in clock_snapshot.proto).
const DELTA_CLOCK: u64 = 64;
/// `BUILTIN_CLOCK_BOOTTIME`.
const BOOTTIME: u64 = 6;
/// `TracePacket.sequence_flags`: this sequence starts anew; and: this packet needs what came before.
const CLEARED: u64 = 1;
const NEEDS: u64 = 2;
/// Sequences and tracks of threads are numbered from here.
const FIRST_SEQUENCE: u64 = 16;

/// What is known of the method traces.
#[derive(Default)]
pub struct Methods {
    names: Vec<Vec<u8>>,
    threads: Vec<Option<Thread>>,
}

struct Thread {
    sequence: u64,
    track: u64,
    /// The two fields that every packet of the sequence ends with, encoded.
    tail: Vec<u8>,
    about: MethodThread,
    started: bool,
    last: u64,
    /// A bit for each method whose name the sequence has.
    interned: Vec<u64>,
}

/// A message of fewer than 128 bytes, so that its length is one byte: put together without asking for room each time.
struct Short {
    buf: [u8; Short::ROOM],
    len: usize,
}

impl Default for Short {
    fn default() -> Short {
        Short { buf: [0; Short::ROOM], len: 0 }
    }
}

impl Short {
    const ROOM: usize = 128;

    #[inline]
    fn byte(&mut self, byte: u8) -> &mut Short {
        self.buf[self.len % Short::ROOM] = byte;
        self.len += 1;
        self
    }

    #[inline]
    fn varint(&mut self, mut value: u64) -> &mut Short {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8)
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> &mut Short {
        for byte in bytes {
            self.byte(*byte);
        }
        self
    }

    #[inline]
    fn get(&self) -> &[u8] {
        &self.buf[..self.len.min(Short::ROOM)]
    }
}

impl Methods {
    /// A method's name.
    pub fn method(&mut self, id: usize, name: &MethodName<'_>) {
        if self.names.len() <= id {
            self.names.resize(id + 1, Vec::new());
        }
        let dot = if name.class.is_empty() { "" } else { "." };
        self.names[id] = format!("{}{dot}{}", name.class, name.name).into_bytes();
    }

    /// A thread of a method trace.
    pub fn thread(&mut self, thread: &MethodThread) {
        let index = thread.index as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
        }
        let sequence = FIRST_SEQUENCE + index as u64;
        let mut tail = Vec::new();
        uint(&mut tail, 10, sequence);
        uint(&mut tail, 13, NEEDS);
        self.threads[index] = Some(Thread {
            sequence,
            track: sequence << 8,
            tail,
            about: thread.clone(),
            started: false,
            last: 0,
            interned: Vec::new(),
        });
    }

    /// Edges of one thread.
    pub fn edges(&mut self, out: &mut Vec<u8>, thread: u32, edges: &[Edge]) {
        let Some(Some(thread)) = self.threads.get_mut(thread as usize) else { return };
        let Some(first) = edges.first() else { return };
        if !thread.started {
            thread.start(out, first.ts);
        }
        for edge in edges {
            thread.edge(out, edge, &self.names);
        }
    }
}

impl Thread {
    #[inline]
    fn edge(&mut self, out: &mut Vec<u8>, edge: &Edge, names: &[Vec<u8>]) {
        if edge.ts < self.last {
            self.set_clock(out, edge.ts);
        }
        let delta = edge.ts - self.last;
        self.last = edge.ts;
        let enter = (edge.kind == EdgeKind::Enter).then_some(edge.method.0);
        let new = enter.filter(|id| self.is_new(*id));
        let mut event = Short::default();
        event.byte(9 << 3).byte(if enter.is_some() { 1 } else { 2 });
        if let Some(id) = enter {
            event.byte(10 << 3).varint(u64::from(id) + 1);
        }
        if let Some(cpu) = edge.cpu {
            // thread_time_absolute_us
            event.byte(0x88).byte(0x01).varint(cpu / 1000);
        }
        let mut packet = Short::default();
        packet
            .byte(8 << 3)
            .varint(delta)
            .byte(11 << 3 | 2)
            .byte(event.len as u8)
            .bytes(event.get())
            .bytes(&self.tail);
        out.push(0x0a); // Trace.packet
        match new {
            None => {
                out.push(packet.len as u8);
                out.extend_from_slice(packet.get());
            }
            Some(id) => sized(out, |out| {
                out.extend_from_slice(packet.get());
                intern(out, id, names);
            }),
        }
    }

    /// Whether the sequence does not have this method's name yet; it has from now on.
    #[inline]
    fn is_new(&mut self, id: u32) -> bool {
        let (word, bit) = (id as usize / 64, 1u64 << (id % 64));
        if self.interned.len() <= word {
            self.interned.resize(word + 1, 0);
        }
        let seen = self.interned[word] & bit != 0;
        self.interned[word] |= bit;
        !seen
    }

    fn start(&mut self, out: &mut Vec<u8>, ts: u64) {
        self.started = true;
        let thread_track = match (self.about.tid, self.about.tgid) {
            (Some(tid), Some(pid)) => {
                super::packet(out, |out| {
                    message(out, 60, |out| {
                        uint(out, 1, self.track + 1);
                        message(out, 4, |out| {
                            uint(out, 1, pid as u64);
                            uint(out, 2, tid as u64);
                            string(out, 5, self.about.name.as_bytes());
                        });
                    });
                });
                Some(self.track + 1)
            }
            (None, Some(pid)) => {
                super::packet(out, |out| {
                    message(out, 60, |out| {
                        uint(out, 1, self.track + 2);
                        message(out, 3, |out| uint(out, 1, pid as u64));
                    });
                });
                Some(self.track + 2)
            }
            _ => None,
        };
        let name = match self.about.tid {
            Some(_) => "Java methods".to_owned(),
            None => format!("Java methods: {} (id {})", self.about.name, self.about.trace_id),
        };
        super::packet(out, |out| {
            message(out, 60, |out| {
                uint(out, 1, self.track);
                string(out, 2, name.as_bytes());
                if let Some(parent) = thread_track {
                    uint(out, 5, parent);
                }
                if let Some(doubt) = &self.about.doubt {
                    string(out, 14, doubt.as_bytes());
                }
            });
        });
        self.set_clock(out, ts);
        out.push(0x0a);
        sized(out, |out| {
            uint(out, 10, self.sequence);
            uint(out, 13, CLEARED);
            message(out, 59, |out| {
                message(out, 11, |out| uint(out, 11, self.track));
                uint(out, 58, DELTA_CLOCK);
            });
        });
        // Incremental state was cleared, and with it a clock set before.
        self.set_clock(out, ts);
    }

    fn set_clock(&mut self, out: &mut Vec<u8>, ts: u64) {
        out.push(0x0a);
        sized(out, |out| {
            message(out, 6, |out| {
                for (id, incremental) in [(BOOTTIME, false), (DELTA_CLOCK, true)] {
                    message(out, 1, |out| {
                        uint(out, 1, id);
                        uint(out, 2, ts);
                        if incremental {
                            uint(out, 3, 1);
                        }
                    });
                }
                uint(out, 2, BOOTTIME);
            });
            uint(out, 10, self.sequence);
            uint(out, 58, BOOTTIME);
            uint(out, 8, ts);
        });
        self.last = ts;
    }
}

#[cold]
fn intern(out: &mut Vec<u8>, id: u32, names: &[Vec<u8>]) {
    let mut entry = Vec::new();
    uint(&mut entry, 1, u64::from(id) + 1);
    bytes(&mut entry, 2, names.get(id as usize).map_or(&[], |n| n));
    varint(out, 12 << 3 | 2);
    sized(out, |out| bytes(out, 2, &entry));
}
