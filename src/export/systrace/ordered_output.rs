//! Writes pieces of an output in the order of their numbers, whichever of several threads has one ready
//! first.
//!
//! No thread does nothing but write. The thread whose piece is next writes it, and all pieces behind it that
//! became ready in the meantime; the others leave their pieces to it. A thread of its own would have to be
//! woken for each piece.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;

use crate::export::Out;

/// A piece of an output.
pub(super) trait Piece {
    /// The bytes that are written.
    fn made(&self) -> &[u8];
    /// The same piece without its contents, to be filled again.
    fn cleared(self) -> Self;
}

/// An output that several threads write to.
pub(super) struct OrderedOutput<P> {
    state: Mutex<State<P>>,
}

struct State<P> {
    /// The number of the piece that is written next.
    next: u64,
    /// Pieces that wait for an earlier one, by number.
    waiting: BTreeMap<u64, P>,
    /// `None` while a thread writes, and after an error.
    out: Option<Out>,
    /// Where written pieces go; `None` after an error.
    freed: Option<Sender<P>>,
    error: Option<io::Error>,
}

impl<P: Piece> OrderedOutput<P> {
    /// Hands each written piece to `freed`. The receiver of `freed` is disconnected after an error.
    pub(super) fn new(out: Out, freed: Sender<P>) -> OrderedOutput<P> {
        let (out, freed) = (Some(out), Some(freed));
        OrderedOutput {
            state: Mutex::new(State { next: 0, waiting: BTreeMap::new(), out, freed, error: None }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the piece with this number, or leaves it to the thread that writes the piece before it. Returns
    /// `false` if there was an error: then nothing more will be written.
    pub(super) fn write(&self, number: u64, piece: P) -> bool {
        let mut state = self.lock();
        state.waiting.insert(number, piece);
        let Some(mut out) = state.out.take() else { return state.error.is_none() };
        loop {
            let next = state.next;
            let (Some(piece), Some(freed)) = (state.waiting.remove(&next), state.freed.clone()) else {
                state.out = Some(out);
                return true;
            };
            drop(state);
            let written = out.write_all(piece.made());
            let _ = freed.try_send(piece.cleared());
            state = self.lock();
            state.next += 1;
            if let Err(error) = written {
                (state.error, state.freed) = (Some(error), None);
                return false;
            }
        }
    }

    /// Gives the output up if the calling thread panics before the guard is dropped: its piece would be
    /// waited for without end.
    pub(super) fn guard(&self) -> PanicGuard<'_, P> {
        PanicGuard(self)
    }

    /// Flushes the output once all threads are done with it. Returns the first error. `pieces` is the number
    /// of pieces that there were.
    pub(super) fn finish(&self, pieces: u64) -> io::Result<()> {
        let mut state = self.lock();
        match (state.error.take(), state.out.take()) {
            (Some(error), _) => Err(error),
            (None, Some(mut out)) if state.next == pieces => out.flush(),
            _ => Err(io::Error::other(PANICKED)),
        }
    }
}

const PANICKED: &str = "a thread that prints lines ended unexpectedly";

/// See [`OrderedOutput::guard`].
pub(super) struct PanicGuard<'a, P: Piece>(&'a OrderedOutput<P>);

impl<P: Piece> Drop for PanicGuard<'_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.lock();
            (state.error, state.freed) = (Some(io::Error::other(PANICKED)), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    impl Piece for Vec<u8> {
        fn made(&self) -> &[u8] {
            self
        }

        fn cleared(mut self) -> Vec<u8> {
            self.clear();
            self
        }
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes == b"bad" {
                return Err(io::Error::other("no space"));
            }
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn output() -> (Written, OrderedOutput<Vec<u8>>, crossbeam_channel::Receiver<Vec<u8>>) {
        let (freed, free) = crossbeam_channel::bounded(8);
        let written = Written::default();
        (written.clone(), OrderedOutput::new(Box::new(written), freed), free)
    }

    #[test]
    fn pieces_are_written_in_the_order_of_their_numbers_and_come_back_empty() {
        let (written, output, free) = output();
        for number in [2, 0, 3, 1] {
            assert!(output.write(number, number.to_string().into_bytes()));
        }
        assert_eq!(*written.0.lock().unwrap(), b"0123");
        assert_eq!(free.try_iter().filter(Vec::is_empty).count(), 4);
        assert!(output.finish(4).is_ok());
    }

    #[test]
    fn after_an_error_nothing_is_written_and_no_piece_is_waited_for() {
        let (written, output, free) = output();
        assert!(output.write(0, b"0".to_vec()));
        assert!(!output.write(1, b"bad".to_vec()));
        assert!(!output.write(2, b"2".to_vec()));
        assert_eq!(*written.0.lock().unwrap(), b"0");
        assert_eq!(free.iter().count(), 2, "the channel is closed");
        assert_eq!(output.finish(3).unwrap_err().to_string(), "no space");
    }

    #[test]
    fn a_thread_that_panics_ends_the_output() {
        let (_, output, free) = output();
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _guard = output.guard();
                panic!("while piece 0 is printed");
            });
            thread.join().is_err()
        });
        assert!(panicked);
        assert!(free.recv().is_err(), "the channel is closed");
        assert!(output.finish(1).unwrap_err().to_string().contains("ended unexpectedly"));
    }
}
