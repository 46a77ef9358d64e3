//! The kernel's counts for one CPU's ring buffer: `per_cpu/cpuN/stats`.

use super::{RecordError, Tracefs};

/// Counts for one CPU since its buffer was last emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CpuStats {
    /// Events that are in the buffer and not read yet.
    pub(crate) entries: u64,
    /// Events that were overwritten before they were read.
    pub(crate) overrun: u64,
    /// Events lost because an interrupt came while the writer was moving on to the page that the reader
    /// holds.
    pub(crate) commit_overrun: u64,
    /// Events that were not written because the buffer was full (`overwrite` is off).
    pub(crate) dropped: u64,
    /// Events that were read.
    pub(crate) read: u64,
    /// The whole text of the file.
    pub(crate) text: String,
}

/// Reads the counts of CPU `cpu`.
pub(crate) fn read(tracefs: &Tracefs, cpu: u32) -> Result<CpuStats, RecordError> {
    Ok(parse(tracefs.read(format!("per_cpu/cpu{cpu}/stats"))?))
}

fn parse(text: String) -> CpuStats {
    let number = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
            .unwrap_or(0)
    };
    CpuStats {
        entries: number("entries"),
        overrun: number("overrun"),
        commit_overrun: number("commit overrun"),
        dropped: number("dropped events"),
        read: number("read events"),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrun_and_commit_overrun_are_two_counts() {
        let stats = parse(
            "entries: 1\noverrun: 2\ncommit overrun: 3\nbytes: 4\ndropped events: 5\nread events: 6".into(),
        );
        assert_eq!((stats.entries, stats.overrun, stats.commit_overrun), (1, 2, 3));
        assert_eq!((stats.dropped, stats.read), (5, 6));
    }
}
