//! The boxes of an MP4 file (ISO/IEC 14496-12), as far as they tell the number and the times of the frames of
//! its video track. All numbers are big endian.

use crate::formats::Damage;

/// A box whose contents lie in the file only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CutBox {
    /// The four characters of the box's type.
    pub kind: String,
    /// The byte where the box begins.
    pub offset: usize,
    /// The size that the box claims, bytes.
    pub size: u64,
}

/// The findings in an MP4 file.
#[derive(Debug, Default)]
pub(super) struct Mp4<'a> {
    /// Whether the file has an index (the box moov).
    pub has_index: bool,
    /// The first video track.
    pub track: Option<VideoTrack<'a>>,
    /// The number of video tracks.
    tracks: u32,
    /// A box of the file itself that lies in it only in part.
    pub cut: Option<CutBox>,
    /// The faults of the boxes.
    pub damage: Vec<Damage>,
}

impl Mp4<'_> {
    /// Notes for people.
    pub fn notes(&self) -> Option<String> {
        let others = self.tracks.saturating_sub(1);
        (others > 0).then(|| format!("the file has {others} further video tracks, which are not read"))
    }
}

/// The index of a video track.
#[derive(Debug, Clone, Copy)]
pub(super) struct VideoTrack<'a> {
    /// The number of frames, of the box stsz.
    pub frames: u64,
    /// Units of time a second.
    timescale: u32,
    /// The entries of the box stts: how many frames there are in a row, and the time that each of them takes.
    runs: &'a [[u8; 8]],
    /// Whether frames are shown in another order than they are stored.
    is_reordered: bool,
}

impl<'a> VideoTrack<'a> {
    /// The time of each frame, ns from the video's begin, in the order of the file. `None` where the index
    /// does not tell it without the order in which frames are shown.
    pub fn frame_times(&self) -> Option<impl Iterator<Item = u64> + use<'a>> {
        let timescale = u128::from(self.timescale);
        if timescale == 0 || self.is_reordered {
            return None;
        }
        let mut at: u64 = 0;
        let runs = self.runs.iter().map(run);
        Some(runs.flat_map(|(count, each)| (0..count).map(move |_| each)).map(move |each| {
            let ns = u128::from(at) * 1_000_000_000 / timescale;
            at = at.saturating_add(each.into());
            u64::try_from(ns).unwrap_or(u64::MAX)
        }))
    }

    /// The duration of the track, ns.
    pub fn length_ns(&self) -> u64 {
        let sum = |(count, each): (u32, u32)| u128::from(count) * u128::from(each);
        let units: u128 = self.runs.iter().map(|entry| sum(run(entry))).sum();
        let ns = units.saturating_mul(1_000_000_000).checked_div(self.timescale.into());
        ns.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// An entry of the box stts: the number of frames, and the time that each of them takes.
fn run(entry: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, rest @ ..] = *entry;
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(rest))
}

/// Reads the boxes of a file.
pub(super) fn read_mp4(data: &[u8]) -> Mp4<'_> {
    let mut mp4 = Mp4::default();
    for part in Boxes::new(data, 0) {
        match part {
            Ok(part) => {
                if let Some(size) = part.missing {
                    mp4.cut = Some(CutBox { kind: part.name(), offset: part.offset, size });
                }
                if &part.kind == b"moov" {
                    mp4.has_index = true;
                    read_index(&part, &mut mp4);
                }
            }
            Err(damage) => mp4.damage.push(damage),
        }
    }
    mp4
}

fn read_index<'a>(index: &Mp4Box<'a>, mp4: &mut Mp4<'a>) {
    for track in index.inside().flatten().filter(|part| &part.kind == b"trak") {
        let Some(media) = track.child(*b"mdia") else { continue };
        let is_video =
            media.child(*b"hdlr").is_some_and(|handler| handler.content.get(8..12) == Some(b"vide"));
        if !is_video {
            continue;
        }
        mp4.tracks += 1;
        if mp4.track.is_some() {
            continue;
        }
        match read_track(&media) {
            Some(read) => mp4.track = Some(read),
            None => mp4.damage.push(Damage {
                offset: track.offset as u64,
                what: "the index of the video track is not whole".to_owned(),
            }),
        }
    }
}

/// Reads the index of a track from its box mdia; `None` where a part of it is missing.
fn read_track<'a>(media: &Mp4Box<'a>) -> Option<VideoTrack<'a>> {
    let header = media.child(*b"mdhd")?.content;
    let timescale = number(header, if header.first() == Some(&1) { 20 } else { 12 })?;
    let samples = media.child(*b"minf")?.child(*b"stbl")?;
    let sizes = samples.child(*b"stsz")?.content;
    let one_size = number(sizes, 4)?;
    let frames = number(sizes, 8)?;
    let listed = sizes.get(12..)?.len() as u64 / 4;
    if one_size == 0 && listed < frames.into() {
        return None;
    }
    let durations = samples.child(*b"stts")?.content;
    let (runs, _) = durations.get(8..)?.as_chunks::<8>();
    let count = number(durations, 4)? as usize;
    Some(VideoTrack {
        frames: frames.into(),
        timescale,
        runs: runs.get(..count)?,
        is_reordered: samples.child(*b"ctts").is_some(),
    })
}

/// The 32-bit number at `offset`.
fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A box: its type, and what it holds.
struct Mp4Box<'a> {
    kind: [u8; 4],
    /// The byte of the file where the box begins.
    offset: usize,
    /// The byte of the file where its content begins.
    begin: usize,
    content: &'a [u8],
    /// The size that the box claims, bytes, where it ends behind what holds it.
    missing: Option<u64>,
}

impl<'a> Mp4Box<'a> {
    /// The type as text.
    fn name(&self) -> String {
        self.kind.escape_ascii().to_string()
    }

    /// The boxes inside.
    fn inside(&self) -> Boxes<'a> {
        Boxes::new(self.content, self.begin)
    }

    /// The first whole box inside that has this type.
    fn child(&self, kind: [u8; 4]) -> Option<Mp4Box<'a>> {
        self.inside().flatten().find(|part| part.kind == kind && part.missing.is_none())
    }
}

/// The boxes that lie one behind the other.
struct Boxes<'a> {
    rest: &'a [u8],
    /// The byte of the file where `rest` begins.
    offset: usize,
}

impl<'a> Boxes<'a> {
    fn new(rest: &'a [u8], offset: usize) -> Boxes<'a> {
        Boxes { rest, offset }
    }
}

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<Mp4Box<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        /// The size stands behind the type, in 64 bits.
        const LONG: u32 = 1;
        /// The box is the last one.
        const TO_THE_END: u32 = 0;
        let rest = std::mem::take(&mut self.rest);
        let offset = self.offset;
        if rest.is_empty() {
            return None;
        }
        let damage = |what: String| Some(Err(Damage { offset: offset as u64, what }));
        let (Some(short), Some(kind)) = (number(rest, 0), rest.get(4..8).and_then(|kind| kind.first_chunk()))
        else {
            // Something follows the last box of the file.
            return damage(format!("{} bytes are no box", rest.len()));
        };
        let header = if short == LONG { 16 } else { 8 };
        let size = match short {
            LONG => rest.get(8..16).and_then(|size| size.first_chunk()).map(|size| u64::from_be_bytes(*size)),
            TO_THE_END => Some(rest.len() as u64),
            size => Some(size.into()),
        };
        let Some(size) = size.filter(|size| *size >= header) else {
            return damage(format!("the box {} has no size", kind.escape_ascii()));
        };
        let end = usize::try_from(size).unwrap_or(usize::MAX);
        let missing = (end > rest.len()).then_some(size);
        let (whole, behind) = rest.split_at(end.min(rest.len()));
        self.rest = behind;
        self.offset = offset + whole.len();
        let content = whole.get(header as usize..).unwrap_or(&[]);
        Some(Ok(Mp4Box { kind: *kind, offset, begin: offset + header as usize, content, missing }))
    }
}
