//! Writes on a thread of its own, so that making the next piece and writing the last one overlap.

use std::io::{self, Write};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Makes bytes on the writing thread.
pub type Job = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

/// What is handed over.
enum Piece {
    Bytes(Vec<u8>),
    Job(Job),
}

use super::Out;

/// Pieces in flight: enough to even out, few enough to bound memory.
const PIECES: usize = 8;
/// Size a piece is meant to have, bytes.
pub const PIECE: usize = 1 << 20;

/// Takes whole pieces and writes them in order on a thread of its own.
pub struct Background {
    full: Option<Sender<Piece>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Background {
    /// Writes onto `out` from now on.
    pub fn new(mut out: Out) -> Background {
        let (full, to_write) = bounded::<Piece>(PIECES);
        let (back, empty) = bounded::<Vec<u8>>(PIECES);
        let thread = std::thread::spawn(move || {
            let mut made = Vec::new();
            for piece in to_write {
                match piece {
                    Piece::Job(job) => job(&mut made),
                    Piece::Bytes(mut bytes) => {
                        write(&mut out, &mut made, 1)?;
                        write(&mut out, &mut bytes, 1)?;
                        let _ = back.try_send(bytes);
                    }
                }
                write(&mut out, &mut made, PIECE)?;
            }
            write(&mut out, &mut made, 1)?;
            out.flush()
        });
        Background { full: Some(full), empty, thread: Some(thread) }
    }

    /// Hands `piece` over if it has its size; it is empty afterwards then.
    pub fn offer(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        if piece.len() < PIECE { Ok(()) } else { self.write(piece) }
    }

    /// Hands `piece` over, and leaves an empty one.
    pub fn write(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE + PIECE / 4));
        let full = std::mem::replace(piece, next);
        self.send(Piece::Bytes(full))
    }

    /// Has bytes made on the writing thread; they come behind all that was handed over before.
    pub fn make(&mut self, job: Job) -> io::Result<()> {
        self.send(Piece::Job(job))
    }

    fn send(&mut self, piece: Piece) -> io::Result<()> {
        match &self.full {
            Some(channel) if channel.send(piece).is_ok() => Ok(()),
            _ => self.finish(),
        }
    }

    /// Waits until everything is written and flushed; what could not be written is said here at the latest.
    pub fn finish(&mut self) -> io::Result<()> {
        self.full = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writing thread ended")),
            None => Ok(()),
        }
    }
}

/// Writes `bytes` if there are at least `least`, and empties them.
fn write(out: &mut Out, bytes: &mut Vec<u8>, least: usize) -> io::Result<()> {
    if bytes.len() >= least {
        out.write_all(bytes)?;
        bytes.clear();
    }
    Ok(())
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
