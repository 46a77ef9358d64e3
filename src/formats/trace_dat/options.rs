//! The options of a trace.dat that both versions have.

use super::header_reader::HeaderReader;
use crate::ftrace::Endian;
use crate::trace_dat::RecorderInfo;
use crate::trace_dat::file_format::option;

/// The contents of a trace.dat's options.
#[derive(Debug, Default)]
pub(super) struct DatOptions {
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) stats: Vec<RecordedCpuStats>,
    pub(super) recorder_info: RecorderInfo,
    /// Whether tracebridge's recorder has begun this file and not ended it.
    pub(super) is_unfinished: bool,
    pub(super) time: TimeCorrection,
    /// Text of `saved_tgids`: lines of a thread id and its process id.
    pub(super) tgids: Vec<u8>,
}

/// The losses in a `per_cpu/cpuN/stats` file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordedCpuStats {
    pub(super) cpu: u32,
    /// Number of events that the CPU's buffer lost.
    pub(super) lost: u64,
}

/// The conversion of a page's time to the time of the event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimeCorrection {
    /// The ns to add after ticks have been converted.
    pub(super) offset: i64,
    /// Whether the offset turns the time into wall-clock time.
    pub(super) wall: bool,
    /// The conversion of ticks to ns: multiplier, shift, and the ns to add.
    pub(super) counter: Option<(u32, u32, u64)>,
}

impl TimeCorrection {
    /// Turns a page's time into ns of the recording's clock.
    #[inline]
    pub(super) fn apply(&self, ts: u64) -> u64 {
        let ns = match self.counter {
            None => ts,
            Some((mult, shift, offset)) => {
                // trace-cmd computes with 128 bits too, so that no number of ticks overflows.
                let wide = (u128::from(ts) * u128::from(mult)).checked_shr(shift).unwrap_or(0);
                (wide as u64).wrapping_add(offset)
            }
        };
        ns.wrapping_add_signed(self.offset)
    }
}

impl DatOptions {
    /// Reads one option. Facts that a user should know are added to `notes`. An unknown option is skipped.
    pub(super) fn read(&mut self, id: u16, data: &[u8], endian: Endian, notes: &mut Vec<String>) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        let mut c = HeaderReader::new(data, 0, endian, "an option");
        match id {
            option::DATE => {
                self.time.offset = self.time.offset.wrapping_add(number(&text()).wrapping_mul(1000));
                self.time.wall = true;
            }
            option::OFFSET => {
                self.time.offset = self.time.offset.wrapping_add(number(&text()));
                notes.push(format!("the file's option OFFSET shifts all times by {} ns", text()));
            }
            option::CPUSTAT => self.stats.extend(parse_stats(&text())),
            option::TRACECLOCK => self.set_clock(&text()),
            option::UNAME => self.uname = Some(text()),
            option::CPUCOUNT if data.len() > 8 => self.tgids = data.to_vec(),
            option::CPUCOUNT => self.cpus = c.u32().ok(),
            option::TSC2NSEC => {
                self.time.counter = c.u32().and_then(|mult| Ok((mult, c.u32()?, c.u64()?))).ok();
                notes.push("times are counter ticks turned into ns by the file's TSC2NSEC option".into());
            }
            option::TIME_SHIFT => {
                notes.push(
                    "recorded in a virtual machine: the correction to the host's time is not applied".into(),
                );
            }
            option::GUEST => {
                let name = c.text().map(String::from_utf8_lossy).unwrap_or_default();
                notes.push(format!(
                    "virtual machine `{name}` was recorded at the same time, into another file"
                ));
            }
            option::SAVED_TGIDS => self.tgids = data.to_vec(),
            option::CLOCK_SNAPSHOTS => match serde_json::from_str::<RecorderInfo>(&text()) {
                Ok(info) => (self.is_unfinished, self.recorder_info) = (!info.complete, info),
                Err(error) => notes.push(format!("the file's clock snapshots cannot be read: {error}")),
            },
            _ => {}
        }
    }

    /// Sets the clock. `text` is the clock's name, or the content of tracefs' file `trace_clock`, which has
    /// the chosen clock in brackets.
    pub(super) fn set_clock(&mut self, text: &str) {
        let chosen = match text.split_once('[') {
            Some((_, rest)) => rest.split(']').next().unwrap_or_default(),
            None => text,
        };
        if !chosen.is_empty() {
            self.clock = Some(chosen.to_owned());
        }
    }
}

/// Parses a number as C's `strtoll(…, 0)` does, except for octal numbers. A text that is no number gives 0.
fn number(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let value = value.unwrap_or(0) as i64;
    if negative { value.wrapping_neg() } else { value }
}

/// Parses the text of `per_cpu/cpuN/stats`. `None` where the text does not name its CPU.
fn parse_stats(text: &str) -> Option<RecordedCpuStats> {
    let mut stat = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().parse::<u64>();
        match (key.trim(), value) {
            ("CPU", Ok(cpu)) => stat = Some(RecordedCpuStats { cpu: u32::try_from(cpu).ok()?, lost: 0 }),
            ("overrun" | "commit overrun" | "dropped events", Ok(lost)) => {
                if let Some(stat) = &mut stat {
                    stat.lost = stat.lost.saturating_add(lost);
                }
            }
            _ => {}
        }
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_events_of_a_cpu_are_the_sum_of_its_loss_counters() {
        let text = "CPU: 3\nentries: 5\noverrun: 10\ncommit overrun: 2\nbytes: 9\ndropped events: 1\n";
        assert_eq!(parse_stats(text), Some(RecordedCpuStats { cpu: 3, lost: 13 }));
        assert_eq!(parse_stats("nonsense"), None);
    }

    #[test]
    fn ticks_become_ns_without_overflow() {
        let fix = TimeCorrection { offset: -5, wall: false, counter: Some((3 << 30, 32, 100)) };
        assert_eq!(fix.apply(1 << 40), (3 << 38) + 95);
        assert_eq!(TimeCorrection::default().apply(7), 7);
        assert_eq!(TimeCorrection { counter: Some((1, 200, 0)), ..TimeCorrection::default() }.apply(7), 0);
    }
}
