//! The rows of asynchronous slices. Slices of one name in one process share rows: a slice takes a row that no
//! other slice has at that time, so that a file with an id for each slice needs few rows.

use std::collections::HashMap;

/// How many ids may have open slices at a time.
const MAX_OPEN: usize = 1 << 16;

/// The number of a row.
pub(super) type AsyncRow = u32;

/// The open asynchronous slices.
#[derive(Debug, Default)]
pub(super) struct AsyncSlices {
    /// By the hash of the id: the row, and how many slices are open on it.
    open: HashMap<u64, (AsyncRow, u32)>,
    /// By the hash of process and name: rows without an open slice.
    free: HashMap<u64, Vec<AsyncRow>>,
    rows: u32,
    /// Ends without a slice.
    pub(super) unmatched: u64,
    /// Slices beyond [`MAX_OPEN`].
    pub(super) too_many: u64,
}

impl AsyncSlices {
    /// A slice begins. `group` is the hash of its process and name. Returns its row, and whether it is new.
    pub(super) fn begin(&mut self, id: u64, group: u64) -> Option<(AsyncRow, bool)> {
        if let Some((row, depth)) = self.open.get_mut(&id) {
            *depth += 1;
            return Some((*row, false));
        }
        if self.open.len() >= MAX_OPEN {
            self.too_many += 1;
            return None;
        }
        let (row, is_new) = self.take_row(group);
        self.open.insert(id, (row, 1));
        Some((row, is_new))
    }

    fn take_row(&mut self, group: u64) -> (AsyncRow, bool) {
        match self.free.get_mut(&group).and_then(Vec::pop) {
            Some(row) => (row, false),
            None => {
                self.rows += 1;
                (self.rows - 1, true)
            }
        }
    }

    /// The innermost slice of the id ends. Returns its row.
    pub(super) fn end(&mut self, id: u64, group: u64) -> Option<AsyncRow> {
        let Some((row, depth)) = self.open.get_mut(&id) else {
            self.unmatched += 1;
            return None;
        };
        let row = *row;
        *depth -= 1;
        if *depth == 0 {
            self.open.remove(&id);
            self.free.entry(group).or_default().push(row);
        }
        Some(row)
    }

    /// The row of an instant: that of the open slice of its id, or any free one. Returns whether it is new.
    pub(super) fn instant(&mut self, id: u64, group: u64) -> (AsyncRow, bool) {
        if let Some((row, _)) = self.open.get(&id) {
            return (*row, false);
        }
        let (row, is_new) = self.take_row(group);
        self.free.entry(group).or_default().push(row);
        (row, is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_used_again_when_its_slice_has_ended() {
        let mut slices = AsyncSlices::default();
        assert_eq!(slices.begin(1, 7), Some((0, true)));
        assert_eq!(slices.begin(2, 7), Some((1, true)));
        assert_eq!(slices.begin(1, 7), Some((0, false)), "a slice inside of the first one");
        assert_eq!((slices.end(1, 7), slices.end(1, 7), slices.end(1, 7)), (Some(0), Some(0), None));
        assert_eq!(slices.begin(3, 7), Some((0, false)));
        assert_eq!(slices.begin(4, 8), Some((2, true)), "another name");
        assert_eq!(slices.instant(2, 7), (1, false));
        assert_eq!(slices.unmatched, 1);
    }
}
