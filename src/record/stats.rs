//! What the kernel counted per CPU: `per_cpu/cpuN/stats`.

use super::{Error, Tracefs};

/// One CPU's counts since its buffer was last emptied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events in the buffer, not read yet.
    pub entries: u64,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events lost because an interrupt came while the writer was entering the page the reader is on.
    pub commit_overrun: u64,
    /// Events not written because the buffer was full (`overwrite` off).
    pub dropped: u64,
    /// Events read.
    pub read: u64,
    /// The file's text.
    pub text: String,
}

/// The counts of CPU `cpu`.
pub fn read(tracefs: &Tracefs, cpu: u32) -> Result<Stats, Error> {
    Ok(parse(tracefs.read(format!("per_cpu/cpu{cpu}/stats"))?))
}

fn parse(text: String) -> Stats {
    let number = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
            .unwrap_or(0)
    };
    Stats {
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
    fn overrun_and_commit_overrun_are_two_things() {
        let stats = parse(
            "entries: 1\noverrun: 2\ncommit overrun: 3\nbytes: 4\ndropped events: 5\nread events: 6".into(),
        );
        assert_eq!((stats.entries, stats.overrun, stats.commit_overrun), (1, 2, 3));
        assert_eq!((stats.dropped, stats.read), (5, 6));
    }
}
