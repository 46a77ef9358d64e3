//! Encodes markers into a buffer on the stack, cut to the length that Android's readers expect, without the
//! machinery of `format!`. [`Prefix`] is the part that is the same in all markers of a process.

use super::marker::{ClockSync, Marker};

/// The most bytes that an `i64` takes in decimal.
pub const MAX_DIGITS: usize = 20;

/// `|pid|`: the part that is the same in all markers of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix([u8; Prefix::ROOM]);

impl Prefix {
    /// Room for the text, and for its length in the last byte.
    pub const ROOM: usize = 16;

    /// Makes the prefix of the markers of this process.
    pub fn new(pid: i32) -> Prefix {
        let mut bytes = [b'|'; Prefix::ROOM];
        let end = put_decimal(&mut bytes, 1, i64::from(pid));
        bytes[Prefix::ROOM - 1] = end as u8 + 1;
        Prefix(bytes)
    }

    /// The bytes as two words.
    pub fn words(self) -> [u64; 2] {
        let (words, _) = self.0.as_chunks::<8>();
        [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
    }

    /// The prefix that [`Prefix::words`] gave.
    #[inline]
    pub fn from_words(words: [u64; 2]) -> Prefix {
        let mut bytes = [0; Prefix::ROOM];
        bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
        Prefix(bytes)
    }

    /// The process id in the text.
    pub fn pid(&self) -> i32 {
        let digits = &self.0[1..self.len() - 1];
        std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The text, followed by bytes without a meaning.
    #[inline]
    pub fn bytes(&self) -> &[u8; Prefix::ROOM] {
        &self.0
    }

    /// The length of the text, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.0[Prefix::ROOM - 1])
    }
}

/// The texts of 0 to 99.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The two decimal digits of `v`, which must be below 100. Writing two digits per step halves the chain of
/// divisions that depend on each other.
#[inline]
pub fn two_digits(v: u32) -> [u8; 2] {
    PAIRS[v as usize % 100]
}

/// Returns how many bytes [`put_decimal`] writes.
#[inline]
pub fn decimal_len(value: i64) -> usize {
    usize::from(value < 0) + value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `value` in decimal into `buf` from `start` on, and returns where it ends. `buf` must have
/// [`decimal_len`] bytes from there.
#[inline]
pub fn put_decimal(buf: &mut [u8], start: usize, value: i64) -> usize {
    let end = start + decimal_len(value);
    let digits = &mut buf[start..end];
    if value < 0 {
        digits[0] = b'-';
    }
    let first = usize::from(value < 0);
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    while at >= first + 2 {
        digits[at - 2..at].copy_from_slice(&two_digits((rest % 100) as u32));
        rest /= 100;
        at -= 2;
    }
    if at > first {
        digits[first] = b'0' + rest as u8;
    }
    end
}

/// The longest marker that the encoder writes, in bytes: libcutils's `ATRACE_MESSAGE_LENGTH` less the NUL.
pub const MAX_LEN: usize = 1023;

/// Names up to this many bytes together are short: they fit into a small buffer, and clearing one for the
/// longest marker costs more than all the rest.
const SHORT_NAMES_BYTES: usize = 128;
/// The size of the small buffer: a prefix, the names with a separator between them, and a number with another
/// one before it.
const SHORT_MARKER_BYTES: usize = 1 + Prefix::ROOM + SHORT_NAMES_BYTES + 2 + MAX_DIGITS;

/// A marker in pieces, without the process id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces<'a> {
    /// The first letter of the marker's text.
    pub(super) phase: u8,
    pub(super) track: &'a [u8],
    /// The name; the track's, where the marker has no other.
    pub(super) name: &'a [u8],
    /// The cookie or the value; 0 where the marker has none.
    pub(super) number: i64,
}

impl Pieces<'_> {
    /// The end of the newest slice.
    pub(super) const END: Pieces<'static> = Pieces { phase: b'E', track: b"", name: b"", number: 0 };
}

/// A short marker in pieces. A number follows only where the marker has one.
pub(super) struct ShortPieces<'a> {
    phase: u8,
    track: &'a [u8],
    name: &'a [u8],
    number: Option<i64>,
}

impl ShortPieces<'_> {
    /// Encodes the marker and hands its bytes to `write`.
    #[inline(always)]
    pub(super) fn encode<R>(&self, prefix: &Prefix, write: impl FnOnce(&[u8]) -> R) -> R {
        let mut buf = [0; SHORT_MARKER_BYTES];
        buf[0] = self.phase;
        buf[1..=Prefix::ROOM].copy_from_slice(prefix.bytes());
        let mut end = 1 + prefix.len();
        if !self.track.is_empty() {
            end = put_name(&mut buf, end, self.track);
            buf[end] = b'|';
            end += 1;
        }
        end = put_name(&mut buf, end, self.name);
        if let Some(number) = self.number {
            buf[end] = b'|';
            end = put_decimal(&mut buf, end + 1, number);
        }
        write(&buf[..end])
    }
}

/// Writes a name into `buf` from `start` on, and returns its end.
#[inline(always)]
fn put_name(buf: &mut [u8; SHORT_MARKER_BYTES], start: usize, name: &[u8]) -> usize {
    let end = start + name.len();
    buf[start..end].copy_from_slice(name);
    // The search reads the name and not its copy, because reading bytes that were just written stalls.
    if has_separator(name) {
        sanitize(&mut buf[start..end]);
    }
    end
}

impl Marker<'_> {
    /// Encodes the marker into `buf` and returns the bytes to hand to one `write(2)` on `trace_marker`.
    ///
    /// Line feeds and the field separator `|` in names become spaces, as Android's Java side does it; so do
    /// NULs, which a name in C cannot have. A marker longer than [`MAX_LEN`] is cut as libcutils cuts it
    /// (`WRITE_MSG` in `trace-dev.inc`): first the name loses its end. Where that is not enough, the track is
    /// cut too and the name keeps its first byte. The cut may fall inside a UTF-8 character.
    pub fn encode<'b>(&self, buf: &'b mut [u8; MAX_LEN]) -> &'b [u8] {
        let mut out = EncodeBuffer { buf, len: 0 };
        match *self {
            Marker::Begin { pid, name } => out.named(b"B|", pid, b"", name, None),
            Marker::Instant { pid, name } => out.named(b"I|", pid, b"", name, None),
            Marker::AsyncBegin { pid, name, cookie } => out.named(b"S|", pid, b"", name, Some(cookie)),
            Marker::AsyncEnd { pid, name, cookie } => out.named(b"F|", pid, b"", name, Some(cookie)),
            Marker::TrackBegin { pid, track, name, cookie } => {
                out.named(b"G|", pid, track, name, Some(cookie));
            }
            Marker::TrackInstant { pid, track, name } => out.named(b"N|", pid, track, name, None),
            Marker::TrackEnd { pid, track, name: Some(name), cookie } => {
                out.named(b"H|", pid, track, name, Some(cookie));
            }
            Marker::TrackEnd { pid, track, name: None, cookie } => {
                out.named(b"H|", pid, b"", track, Some(cookie));
            }
            Marker::Counter { pid, name, value, category } => {
                out.named(b"C|", pid, b"", name, Some(value));
                if let Some(category) = category.filter(|c| out.len + 1 + c.len() <= out.buf.len()) {
                    out.raw(b"|");
                    out.name(category, category.len());
                }
            }
            Marker::End { pid } => {
                out.raw(b"E");
                if let Some(pid) = pid {
                    out.raw(b"|");
                    out.number(i64::from(pid));
                }
            }
            Marker::ClockSync(ref sync) => out.clock_sync(sync),
        }
        let len = out.len;
        &buf[..len]
    }

    /// Returns the pieces of the marker; `None` for the kinds that the tracer's calls do not write.
    #[inline(always)]
    pub(super) fn pieces(&self) -> Option<Pieces<'_>> {
        let (phase, track, name, number): (u8, &[u8], &[u8], i64) = match *self {
            Marker::Begin { name, .. } => (b'B', b"", name, 0),
            Marker::End { .. } => return Some(Pieces::END),
            Marker::Instant { name, .. } => (b'I', b"", name, 0),
            Marker::AsyncBegin { name, cookie, .. } => (b'S', b"", name, cookie),
            Marker::AsyncEnd { name, cookie, .. } => (b'F', b"", name, cookie),
            Marker::Counter { name, value, category: None, .. } => (b'C', b"", name, value),
            Marker::TrackBegin { track, name, cookie, .. } => (b'G', track, name, cookie),
            Marker::TrackEnd { track, name: None, cookie, .. } => (b'H', b"", track, cookie),
            Marker::TrackInstant { track, name, .. } => (b'N', track, name, 0),
            _ => return None,
        };
        Some(Pieces { phase, track, name, number })
    }

    /// Returns the pieces of the marker, where the tracer's fast path can write it: `None` for the kinds that
    /// it does not know, and for names that are empty or too long.
    #[inline(always)]
    pub(super) fn short_pieces(&self) -> Option<ShortPieces<'_>> {
        let Pieces { phase, track, name, number } = self.pieces()?;
        let number = matches!(phase, b'S' | b'F' | b'C' | b'G' | b'H').then_some(number);
        let is_short = !name.is_empty() && track.len() + name.len() <= SHORT_NAMES_BYTES;
        is_short.then_some(ShortPieces { phase, track, name, number })
    }
}

/// The buffer of one marker. Bytes beyond its end are dropped; the callers compute sizes so that only names
/// are cut.
struct EncodeBuffer<'b> {
    buf: &'b mut [u8],
    len: usize,
}

impl EncodeBuffer<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        if let Some(room) = self.buf.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn number(&mut self, value: i64) {
        if self.len + decimal_len(value) <= self.buf.len() {
            self.len = put_decimal(self.buf, self.len, value);
        }
    }

    /// Appends the first `keep` bytes of a name, with separators replaced by spaces.
    fn name(&mut self, name: &[u8], keep: usize) {
        let name = &name[..keep.min(name.len()).min(self.buf.len() - self.len)];
        let room = &mut self.buf[self.len..self.len + name.len()];
        room.copy_from_slice(name);
        if has_separator(name) {
            sanitize(room);
        }
        self.len += name.len();
    }

    /// Appends `P|pid|[track|]name[|number]` and cuts name and track to fit.
    fn named(&mut self, phase: &[u8], pid: i32, track: &[u8], name: &[u8], number: Option<i64>) {
        self.raw(phase);
        self.number(i64::from(pid));
        self.raw(b"|");
        let fixed = number.map_or(0, |number| 1 + decimal_len(number)) + usize::from(!track.is_empty());
        let room = self.buf.len().saturating_sub(self.len + fixed);
        let mut track_len = track.len();
        let mut name_len = name.len();
        if track_len + name_len > room {
            if track_len >= room {
                // libcutils leaves room for one byte of the name, even for a name without any.
                name_len = name_len.min(1);
                track_len = room.saturating_sub(1);
            } else {
                name_len = room - track_len;
            }
        }
        if !track.is_empty() {
            self.name(track, track_len);
            self.raw(b"|");
        }
        self.name(name, name_len);
        if let Some(number) = number {
            self.raw(b"|");
            self.number(number);
        }
    }

    fn clock_sync(&mut self, sync: &ClockSync<'_>) {
        self.raw(b"trace_event_clock_sync: ");
        match *sync {
            ClockSync::Parent { ns } => {
                self.raw(b"parent_ts=");
                // Viewers accept any number of decimals here; AOSP's atrace prints six.
                self.raw(format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000).as_bytes());
            }
            ClockSync::Realtime { ms } => {
                self.raw(b"realtime_ts=");
                self.raw(ms.to_string().as_bytes());
            }
            ClockSync::Name { name } => {
                self.raw(b"name=");
                self.name(name, self.buf.len() - self.len - 1);
            }
        }
        self.raw(b"\n");
    }
}

/// Returns whether a name has a byte that would end it early: the field separator, a line feed or a NUL.
#[inline]
fn has_separator(name: &[u8]) -> bool {
    // Eight bytes at a time take 25 ns less for a name of 30 bytes than a loop over bytes. The last chunk
    // overlaps.
    match name.last_chunk::<8>() {
        Some(last) => {
            name.as_chunks::<8>().0.iter().fold(word_has(last), |any, word| any | word_has(word)) != 0
        }
        None => name.iter().any(|b| is_separator(*b)),
    }
}

/// Returns a number other than 0 if one of the eight bytes is a separator.
#[inline]
fn word_has(word: &[u8; 8]) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_ne_bytes(*word);
    // Taking 1 from a byte of 0, and from no other byte below 0x81, sets its highest bit.
    let zero = |v: u64| v.wrapping_sub(EACH) & !v;
    let line_feed = zero(word ^ (EACH * u64::from(b'\n')));
    let field = zero(word ^ (EACH * u64::from(b'|')));
    (zero(word) | line_feed | field) & (EACH * 0x80)
}

#[inline]
fn is_separator(byte: u8) -> bool {
    matches!(byte, b'\n' | b'|' | 0)
}

/// Replaces separators by spaces.
#[cold]
fn sanitize(name: &mut [u8]) {
    name.iter_mut().filter(|b| is_separator(**b)).for_each(|b| *b = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(marker: Marker<'_>) -> String {
        let mut buf = [0; MAX_LEN];
        String::from_utf8(marker.encode(&mut buf).to_vec()).unwrap()
    }

    #[test]
    fn a_separator_is_found_wherever_it_is() {
        for len in 0..40 {
            let clean: Vec<u8> = (0..len).map(|n| [b'a', 0x80, 0xff, b'}', b'{', 1, 0x0b][n % 7]).collect();
            assert!(!has_separator(&clean), "{len}");
            for (at, separator) in (0..len).flat_map(|at| [0, b'\n', b'|'].map(|s| (at, s))) {
                let mut name = clean.clone();
                name[at] = separator;
                assert!(has_separator(&name), "{separator} at {at} of {len}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let markers = [
            Marker::Begin { pid: 1, name: b"onDraw" },
            Marker::End { pid: Some(4_194_304) },
            Marker::End { pid: None },
            Marker::AsyncBegin { pid: 7, name: b"frame", cookie: -1 },
            Marker::AsyncEnd { pid: 7, name: b"frame", cookie: i64::MIN },
            Marker::TrackBegin { pid: 7, track: b"t", name: b"n", cookie: i64::MAX },
            Marker::TrackEnd { pid: 7, track: b"t", name: None, cookie: 0 },
            Marker::TrackEnd { pid: 7, track: b"t", name: Some(b"n"), cookie: 0 },
            Marker::Instant { pid: 7, name: b"now" },
            Marker::TrackInstant { pid: 7, track: b"t", name: b"n" },
            Marker::Counter { pid: 7, name: b"fps", value: 60, category: None },
            Marker::Counter { pid: 7, name: b"fps", value: 60, category: Some(b"gfx") },
            Marker::ClockSync(ClockSync::Parent { ns: 86_400_000_000_001 }),
            Marker::ClockSync(ClockSync::Realtime { ms: 1_700_000_000_000 }),
            Marker::ClockSync(ClockSync::Name { name: b"id" }),
        ];
        for marker in markers {
            let mut buf = [0; MAX_LEN];
            let bytes = marker.encode(&mut buf);
            assert_eq!(Marker::parse(bytes), Some(marker), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn separators_in_names_become_spaces() {
        assert_eq!(encoded(Marker::Begin { pid: 1, name: b"a|b\nc\0d" }), "B|1|a b c d");
        assert_eq!(encoded(Marker::TrackInstant { pid: 1, track: b"x|y", name: b"a\nb" }), "N|1|x y|a b");
    }

    #[test]
    fn a_long_name_is_cut_so_that_the_rest_stays_readable() {
        let long = "x".repeat(3000);
        let name = long.as_bytes();
        for marker in [
            Marker::Begin { pid: 42, name },
            Marker::AsyncBegin { pid: 42, name, cookie: 1234 },
            Marker::TrackBegin { pid: 42, track: b"track", name, cookie: 1234 },
            Marker::Counter { pid: 42, name, value: -17, category: None },
        ] {
            assert_eq!(encoded(marker).len(), MAX_LEN);
        }
        assert!(encoded(Marker::AsyncBegin { pid: 42, name, cookie: 1234 }).ends_with("x|1234"));
    }

    #[test]
    fn a_long_track_is_cut_and_the_name_keeps_one_character() {
        let long = "t".repeat(3000);
        let text = encoded(Marker::TrackBegin { pid: 42, track: long.as_bytes(), name: b"name", cookie: 5 });
        assert_eq!(text.len(), MAX_LEN);
        assert!(text.ends_with("t|n|5"), "{text}");
        let text = encoded(Marker::TrackEnd { pid: 42, track: long.as_bytes(), name: None, cookie: 5 });
        assert!(text.len() == MAX_LEN && text.ends_with("t|5"), "{text}");
    }

    #[test]
    fn the_cut_falls_where_libcutils_cuts() {
        let mut buf = [0; MAX_LEN];
        let name = "漢".repeat(500);
        // 1023 bytes less `B|1|` leave 1019: 339 characters and two bytes of the next one.
        let cut = Marker::Begin { pid: 1, name: name.as_bytes() }.encode(&mut buf);
        assert_eq!(cut, &[b"B|1|", &name.as_bytes()[..1019]].concat()[..]);
        // The track takes all room but one byte, which an empty name leaves empty.
        let track = "t".repeat(3000);
        let cut = Marker::TrackInstant { pid: 1, track: track.as_bytes(), name: b"" }.encode(&mut buf);
        assert_eq!(cut, format!("N|1|{}|", &track[..1017]).as_bytes());
        let cut = Marker::TrackInstant { pid: 1, track: track.as_bytes(), name: "é".as_bytes() };
        assert_eq!(cut.encode(&mut buf), &[b"N|1|", &track.as_bytes()[..1017], b"|\xc3"].concat()[..]);
    }

    #[test]
    fn a_prefix_survives_the_way_through_two_words() {
        for pid in [0, 1, 42, 4_194_304, i32::MAX, i32::MIN] {
            let prefix = Prefix::new(pid);
            assert_eq!(Prefix::from_words(prefix.words()), prefix);
            assert_eq!(&prefix.bytes()[..prefix.len()], format!("|{pid}|").as_bytes());
        }
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for value in [0, 1, 9, 10, 99, 100, -1, -10, 12_345_678, i64::MAX, i64::MIN, i64::MIN + 1] {
            let mut buf = [b'x'; MAX_DIGITS + 2];
            let end = put_decimal(&mut buf, 1, value);
            assert_eq!(&buf[1..end], value.to_string().as_bytes());
            assert!(buf[0] == b'x' && buf[end..].iter().all(|b| *b == b'x'), "{value}");
        }
    }
}
