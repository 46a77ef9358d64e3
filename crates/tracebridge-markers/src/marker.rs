//! The grammar of atrace markers: the text that a program writes to `trace_marker` and that a reader finds in
//! a `print` event. The encoder is in [`super::encode`].
//!
//! The format is that of AOSP system/core `libcutils/include/cutils/trace.h` and `trace-dev.inc`; where
//! writers differ (Flutter's bare `E`, Chromium's counter category, `H` with a name), reading follows
//! Perfetto's `systrace_parser.h`. One deliberate difference: the phase must be the whole first field, so
//! that a plain text such as `Error: …` is not taken for the end of a slice.

/// The name that readers give a slice that was begun without one; Perfetto uses the same text.
pub const NO_NAME: &[u8] = b"[empty slice name]";

const CLOCK_SYNC: &[u8] = b"trace_event_clock_sync:";

/// One marker. Names are bytes as the writer gave them; they are usually, but not always, UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker<'a> {
    /// `B|pid|name`: a slice begins on the writing thread.
    Begin {
        /// The writer's process id (tgid).
        pid: i32,
        /// The rest of the marker, `|` included.
        name: &'a [u8],
    },
    /// `E|pid`, or `E` from old libraries and Flutter: the writing thread's newest slice ends.
    End {
        /// The writer's process id, where the marker has one.
        pid: Option<i32>,
    },
    /// `S|pid|name|cookie`: an async slice begins; any thread of the process may end it.
    AsyncBegin {
        /// The process the slice belongs to.
        pid: i32,
        /// The name of the slice.
        name: &'a [u8],
        /// The number that tells slices of the same name apart.
        cookie: i64,
    },
    /// `F|pid|name|cookie`: the end of [`Marker::AsyncBegin`] with the same name and cookie.
    AsyncEnd {
        /// The process the slice belongs to.
        pid: i32,
        /// The name of the slice.
        name: &'a [u8],
        /// The cookie that the slice began with.
        cookie: i64,
    },
    /// `G|pid|track|name|cookie`: a slice begins on a named track of the process.
    TrackBegin {
        /// The process the track belongs to.
        pid: i32,
        /// The name of the track.
        track: &'a [u8],
        /// The slice's name.
        name: &'a [u8],
        /// The number that tells slices of the same track apart.
        cookie: i64,
    },
    /// `H|pid|track|cookie`, from some writers `H|pid|track|name|cookie`: the end of [`Marker::TrackBegin`].
    TrackEnd {
        /// The process the track belongs to.
        pid: i32,
        /// The name of the track.
        track: &'a [u8],
        /// The slice's name, from the writers that repeat it.
        name: Option<&'a [u8]>,
        /// The cookie that the slice began with.
        cookie: i64,
    },
    /// `I|pid|name`: a moment on the writing thread.
    Instant {
        /// The writer's process id.
        pid: i32,
        /// The text for the moment.
        name: &'a [u8],
    },
    /// `N|pid|track|name`: a moment on a named track of the process.
    TrackInstant {
        /// The process the track belongs to.
        pid: i32,
        /// The name of the track.
        track: &'a [u8],
        /// The text for the moment.
        name: &'a [u8],
    },
    /// `C|pid|name|value`: a counter of the process takes a value.
    Counter {
        /// The process the counter belongs to.
        pid: i32,
        /// The counter's name.
        name: &'a [u8],
        /// Its new value.
        value: i64,
        /// Chromium's category group, a fifth field.
        category: Option<&'a [u8]>,
    },
    /// `trace_event_clock_sync: …`: what another clock read at the time of this event.
    ClockSync(ClockSync<'a>),
}

/// A reading of another clock, which atrace and systrace write so that traces in different clocks can be
/// aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSync<'a> {
    /// `parent_ts=SECONDS`: a reading of `CLOCK_MONOTONIC`. AOSP's atrace passes the number through a C
    /// `float` of 24 bits, so its readings step by 8 ms after a day of uptime; tracebridge writes all digits.
    Parent {
        /// The reading, in ns.
        ns: u64,
    },
    /// `realtime_ts=MILLISECONDS`: `CLOCK_REALTIME`.
    Realtime {
        /// The reading, in ms since 1970.
        ms: u64,
    },
    /// `name=ID`: the same moment in two traces, as systrace marks it.
    Name {
        /// The id that both traces carry.
        name: &'a [u8],
    },
}

impl<'a> Marker<'a> {
    /// Parses the text of a `print` event and ignores trailing line feeds and NULs. Returns `None` for a text
    /// that is not a marker.
    ///
    /// ```
    /// use tracebridge_markers::Marker;
    /// assert_eq!(Marker::parse(b"B|42|draw\n"), Some(Marker::Begin { pid: 42, name: b"draw" }));
    /// assert_eq!(Marker::parse(b"Error: no such file"), None);
    /// ```
    pub fn parse(text: &'a [u8]) -> Option<Marker<'a>> {
        let end = text.iter().rposition(|b| !matches!(b, b'\n' | 0)).map_or(0, |last| last + 1);
        let text = &text[..end];
        let (phase, rest) = match text {
            [phase] => (*phase, &b""[..]),
            [phase, b'|', rest @ ..] => (*phase, rest),
            _ => return ClockSync::parse(text).map(Marker::ClockSync),
        };
        let mut fields = MarkerFields(rest);
        let pid = number(fields.next()).and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid >= 0);
        if phase == b'E' {
            return Some(Marker::End { pid });
        }
        let pid = pid?;
        if phase == b'B' {
            let name = if fields.0.is_empty() { NO_NAME } else { fields.0 };
            return Some(Marker::Begin { pid, name });
        }
        let first = some(fields.next())?;
        Some(match phase {
            b'S' => Marker::AsyncBegin { pid, name: first, cookie: number(fields.next())? },
            b'F' => Marker::AsyncEnd { pid, name: first, cookie: number(fields.next())? },
            b'I' => Marker::Instant { pid, name: first },
            b'N' => Marker::TrackInstant { pid, track: first, name: some(fields.next())? },
            b'C' => {
                let value = number(fields.next())?;
                Marker::Counter { pid, name: first, value, category: some(fields.next()) }
            }
            b'G' => {
                let name = some(fields.next())?;
                Marker::TrackBegin { pid, track: first, name, cookie: number(fields.next())? }
            }
            b'H' => {
                let third = fields.next();
                let fourth = fields.next();
                let (name, cookie) = if fourth.is_empty() { (None, third) } else { (some(third), fourth) };
                Marker::TrackEnd { pid, track: first, name, cookie: number(cookie)? }
            }
            _ => return None,
        })
    }

    /// Returns the process that the marker names.
    pub fn pid(&self) -> Option<i32> {
        match *self {
            Marker::End { pid } => pid,
            Marker::Begin { pid, .. }
            | Marker::AsyncBegin { pid, .. }
            | Marker::AsyncEnd { pid, .. }
            | Marker::TrackBegin { pid, .. }
            | Marker::TrackEnd { pid, .. }
            | Marker::Instant { pid, .. }
            | Marker::TrackInstant { pid, .. }
            | Marker::Counter { pid, .. } => Some(pid),
            Marker::ClockSync(_) => None,
        }
    }
}

impl<'a> ClockSync<'a> {
    fn parse(text: &'a [u8]) -> Option<ClockSync<'a>> {
        let text = text.strip_prefix(CLOCK_SYNC)?.trim_ascii();
        let equals = text.iter().position(|b| *b == b'=')?;
        let value = &text[equals + 1..];
        match &text[..equals] {
            b"parent_ts" => Some(ClockSync::Parent { ns: seconds(value)? }),
            b"realtime_ts" => Some(ClockSync::Realtime { ms: u64::try_from(number(value)?).ok()? }),
            b"name" => Some(ClockSync::Name { name: some(value)? }),
            _ => None,
        }
    }
}

/// The fields of a marker that are not read yet. `|` ends a field, and so does a NUL.
struct MarkerFields<'a>(&'a [u8]);

impl<'a> MarkerFields<'a> {
    /// Takes the next field. Past the end every field is empty.
    fn next(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|b| matches!(b, b'|' | 0));
        let (field, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &b""[..]),
        };
        self.0 = rest;
        field
    }
}

fn some(field: &[u8]) -> Option<&[u8]> {
    (!field.is_empty()).then_some(field)
}

/// Parses a decimal number as C's `strtoll` does: spaces and a sign may stand before it.
fn number(field: &[u8]) -> Option<i64> {
    let field = field.trim_ascii_start();
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // The sum is negative throughout, because i64::MIN has no positive counterpart.
    let mut value = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// Parses decimal seconds as ns, exactly: no floating-point number is involved.
fn seconds(field: &[u8]) -> Option<u64> {
    let dot = field.iter().position(|b| *b == b'.').unwrap_or(field.len());
    let whole = u64::try_from(number(&field[..dot])?).ok()?;
    let digits = field.get(dot + 1..).unwrap_or_default();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |n: usize| digits.get(n).map_or(0, |d| u64::from(d - b'0'));
    let fraction = (0..9).fold(0, |ns, n| ns * 10 + digit(n));
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Marker<'_>> {
        Marker::parse(text.as_bytes())
    }

    #[test]
    fn text_that_is_no_marker_is_refused() {
        let texts = [
            "",
            "abcdef",
            "  ",
            "|",
            "||",
            "|||",
            "\n",
            "|\n",
            "||\n",
            "B",
            "B|",
            "B|x|foo",
            "C",
            "S",
            "F",
            "S|",
            "C|543|foo|",
            "C|543|foo|8x",
            "S|1|a",
            "F|1||2",
            "I|1|",
            "N|1|track",
            "G|1|t|n",
            "H|1|t",
            "B|99999999999|x",
            "Z|1|x",
            "Error: no such file",
            "Exit",
            "C|1|a|9223372036854775808",
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn slices_of_a_thread() {
        assert_eq!(parse("B|1|foo"), Some(Marker::Begin { pid: 1, name: b"foo" }));
        assert_eq!(parse("B|42|Bar\n"), Some(Marker::Begin { pid: 42, name: b"Bar" }));
        assert_eq!(parse("B|42|a|b|c\n\0"), Some(Marker::Begin { pid: 42, name: b"a|b|c" }));
        assert_eq!(parse("B|42|\n"), Some(Marker::Begin { pid: 42, name: NO_NAME }));
        for bare in ["E", "E\n", "E|", "E|x"] {
            assert_eq!(parse(bare), Some(Marker::End { pid: None }));
        }
        assert_eq!(parse("E|42\n"), Some(Marker::End { pid: Some(42) }));
        assert_eq!(parse("I|42|now\n"), Some(Marker::Instant { pid: 42, name: b"now" }));
    }

    #[test]
    fn counters_may_carry_a_category() {
        let counter = |value, category| Some(Marker::Counter { pid: 543, name: b"foo", value, category });
        assert_eq!(parse("C|543|foo|8"), counter(8, None));
        assert_eq!(parse("C|543|foo|8|"), counter(8, None));
        assert_eq!(parse("C|543|foo|8|group"), counter(8, Some(b"group")));
        assert_eq!(parse("C|543|foo|-9223372036854775808"), counter(i64::MIN, None));
    }

    #[test]
    fn slices_of_a_process_and_of_a_track() {
        assert_eq!(parse("S|123|foo|456"), Some(Marker::AsyncBegin { pid: 123, name: b"foo", cookie: 456 }));
        assert_eq!(parse("F|123|foo|-4"), Some(Marker::AsyncEnd { pid: 123, name: b"foo", cookie: -4 }));
        let begin = Marker::TrackBegin { pid: 1339, track: b"track", name: b"slice", cookie: 789 };
        assert_eq!(parse("G|1339|track|slice|789"), Some(begin));
        let end = |name| Some(Marker::TrackEnd { pid: 6890, track: b"track", name, cookie: 135 });
        assert_eq!(parse("H|6890|track|135"), end(None));
        assert_eq!(parse("H|6890|track|slice|135"), end(Some(b"slice")));
        assert_eq!(parse("N|1|t|n"), Some(Marker::TrackInstant { pid: 1, track: b"t", name: b"n" }));
    }

    #[test]
    fn clock_syncs_keep_every_digit() {
        let parent = parse("trace_event_clock_sync: parent_ts=4492.069824\n");
        assert_eq!(parent, Some(Marker::ClockSync(ClockSync::Parent { ns: 4_492_069_824_000 })));
        let realtime = parse("trace_event_clock_sync: realtime_ts=1459266353000");
        assert_eq!(realtime, Some(Marker::ClockSync(ClockSync::Realtime { ms: 1_459_266_353_000 })));
        let name = parse("trace_event_clock_sync: name=8c-4d\n");
        assert_eq!(name, Some(Marker::ClockSync(ClockSync::Name { name: b"8c-4d" })));
        assert_eq!(parse("trace_event_clock_sync: parent_ts=99999999999999999999"), None);
    }
}
