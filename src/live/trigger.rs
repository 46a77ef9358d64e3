//! The conditions that a running recording is watched for.

use std::str::FromStr;

use tracebridge_core::cli::units;

use crate::clock::Timestamp;
use crate::text::is_whole_pattern;

/// A condition that a running recording is watched for: `frame.overrun > 50ms`, `slice inflate > 100ms` or
/// `launch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    text: String,
    kind: TriggerKind,
}

/// The subject of a condition, and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TriggerKind {
    /// A frame ends by more than so many ns after its deadline.
    FrameOverrun(i64),
    /// A slice of this name, in which `*` stands for any text, takes more than so many ns.
    Slice(String, u64),
    /// An app has been launched.
    Launch,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// It is none of the known ones.
    #[error("{0:?} is no condition: they are 'frame.overrun > 50ms', 'slice NAME > 100ms' and 'launch'")]
    Unknown(String),
    /// Its limit is no time.
    #[error("{text:?}: {fault}")]
    Limit {
        /// The condition as the user wrote it.
        text: String,
        /// The fault of the time.
        fault: String,
    },
}

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Trigger, TriggerError> {
        let text = text.trim();
        let unknown = || TriggerError::Unknown(text.to_owned());
        let kind = if text == "launch" {
            TriggerKind::Launch
        } else {
            // The names of slices may have this character, and times have none.
            let (measure, limit) = text.rsplit_once('>').ok_or_else(unknown)?;
            let limit = limit.trim();
            if !limit.ends_with(|c: char| c.is_ascii_alphabetic()) {
                let fault = "a time has a unit: s, ms, us or ns".to_owned();
                return Err(TriggerError::Limit { text: text.to_owned(), fault });
            }
            let limit = units::nanoseconds(limit);
            let limit = limit.map_err(|fault| TriggerError::Limit { text: text.to_owned(), fault })?;
            match measure.trim() {
                "frame.overrun" => TriggerKind::FrameOverrun(i64::try_from(limit).unwrap_or(i64::MAX)),
                measure => {
                    let name = measure.strip_prefix("slice ").map(str::trim).filter(|name| !name.is_empty());
                    TriggerKind::Slice(name.ok_or_else(unknown)?.to_owned(), limit)
                }
            }
        };
        Ok(Trigger { text: text.to_owned(), kind })
    }
}

impl Trigger {
    /// The condition as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a frame that ends by `overrun` ns after its deadline meets it.
    pub(super) fn is_met_by_frame(&self, overrun: i64) -> bool {
        matches!(self.kind, TriggerKind::FrameOverrun(limit) if overrun > limit)
    }

    /// Whether a slice that takes `ns` meets it.
    pub(super) fn is_met_by_slice(&self, ns: u64, name: &[u8]) -> bool {
        match &self.kind {
            TriggerKind::Slice(pattern, limit) if ns > *limit => {
                is_whole_pattern(pattern, &String::from_utf8_lossy(name))
            }
            _ => false,
        }
    }

    /// Whether a launch meets it.
    pub(super) fn is_met_by_launch(&self) -> bool {
        self.kind == TriggerKind::Launch
    }
}

/// A condition was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The time at which it was met, ns of the session: the end of the slice, the frame or the launch.
    pub at_ns: u64,
    /// The condition as the user wrote it.
    pub trigger: String,
    /// The thing that met it, in letters that a file's name may have: `frame-1234`.
    pub what: String,
    /// A sentence for people.
    pub text: String,
}

/// A condition that was met in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Met {
    /// The time at which it was met, in the recording's clock.
    pub ts: Timestamp,
    /// See [`Occurrence::trigger`].
    pub trigger: String,
    /// See [`Occurrence::what`].
    pub what: String,
    /// See [`Occurrence::text`].
    pub text: String,
}

impl Met {
    /// The same as it is told of a session that began at `start`.
    pub fn in_session(self, start: Timestamp) -> Occurrence {
        let Met { ts, trigger, what, text } = self;
        Occurrence { at_ns: ts.since(start), trigger, what, text }
    }
}

/// `text` in letters that a file's name may have.
pub(super) fn plain_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    let name: String = text.chars().map(plain).take(40).collect();
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> TriggerKind {
        text.parse::<Trigger>().unwrap().kind
    }

    #[test]
    fn conditions_have_a_measure_and_a_time_with_a_unit() {
        assert_eq!(kind("frame.overrun > 50ms"), TriggerKind::FrameOverrun(50_000_000));
        assert_eq!(kind("frame.overrun>1.5s"), TriggerKind::FrameOverrun(1_500_000_000));
        assert_eq!(kind(" slice a -> b > 100us "), TriggerKind::Slice("a -> b".into(), 100_000));
        assert_eq!(kind("launch"), TriggerKind::Launch);
        for text in ["", "frame.overrun", "frame.cpu > 5ms", "slice > 5ms", "slice x < 5ms", "launches"] {
            assert_eq!(text.parse::<Trigger>(), Err(TriggerError::Unknown(text.to_owned())), "{text}");
        }
        for text in ["slice x > ", "slice x > 5", "slice x > fast", "slice x > 5 parsecs", "slice x > -5ms"] {
            let error = text.parse::<Trigger>().unwrap_err();
            assert!(matches!(error, TriggerError::Limit { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn a_limit_is_met_behind_it_and_by_the_name_alone() {
        let slice: Trigger = "slice inflate* > 100ms".parse().unwrap();
        assert!(slice.is_met_by_slice(100_000_001, b"inflate list"));
        assert!(!slice.is_met_by_slice(100_000_000, b"inflate list"));
        assert!(!slice.is_met_by_slice(200_000_000, b"measure"));
        assert!(!slice.is_met_by_frame(i64::MAX) && !slice.is_met_by_launch());
        let frame: Trigger = "frame.overrun > 50ms".parse().unwrap();
        assert!(frame.is_met_by_frame(50_000_001) && !frame.is_met_by_frame(50_000_000));
    }
}
