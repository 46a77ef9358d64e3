//! Markers that were read and are not stored yet: they wait for markers of other threads that are older.

/// The most memory that markers take which wait, those of all programs together, bytes. Beyond it nobody is
/// waited for.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// A marker that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The time in the clock of the stamps.
    stamp: u64,
    tid: i32,
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
    pub(super) fn push(&mut self, stamp: u64, tid: i32, text: &[u8]) {
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
        mut store: impl FnMut(u64, i32, &[u8]) -> Result<(), E>,
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
            pending.push(stamp, tid, text.as_bytes());
        }
        let mut out = Vec::new();
        let mut store = |stamp, tid, text: &[u8]| {
            out.push((stamp, tid, String::from_utf8(text.to_vec()).unwrap()));
            Ok::<(), ()>(())
        };
        pending.take_until(5, &mut store).unwrap();
        let threads: HashSet<i32> = pending.markers.iter().map(|marker| marker.tid).collect();
        assert_eq!((pending.markers.len(), threads), (2, HashSet::from([1, 2])));
        pending.push(6, 3, b"g");
        pending.take_until(u64::MAX, &mut store).unwrap();
        let texts: Vec<&str> = out.iter().map(|(.., text)| text.as_str()).collect();
        assert_eq!(texts.concat(), "dabegfc");
    }
}
