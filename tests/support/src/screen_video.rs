//! Makes videos as Android's `screenrecord` writes them: an MP4 file with an H.264 track, and behind it the
//! tables of the frames' times. Each frame is of one grey, and is stored without compression (macroblocks of
//! the type I_PCM, ITU-T H.264 7.3.5), which needs no encoder and which every decoder shows. Nothing here
//! comes from the product's reader.

/// A player shows so many units of time in a second, as screenrecord has it.
const TIMESCALE: u32 = 90_000;
/// Width and height of the pictures, in macroblocks of 16 × 16 pixels.
const MACROBLOCKS: u32 = 2;

/// A frame of a video.
#[derive(Debug, Clone, Copy)]
pub struct PlantedFrame {
    /// Time at which the screen showed it, ns of CLOCK_BOOTTIME.
    pub boot_ns: u64,
    /// Its luminance, 16 (black) to 235 (white).
    pub luma: u8,
}

/// The form of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// As since Android 13: both tables.
    Both,
    /// As before: the table of µs alone.
    Microseconds,
    /// Version 1 of the table with a version: in CLOCK_MONOTONIC, which is here the same.
    Version1,
    /// As a program leaves it that has converted the video.
    None,
}

/// CLOCK_REALTIME less CLOCK_BOOTTIME in the tables, ns.
pub const REALTIME_OFFSET_NS: i64 = 1_700_000_000_000_000_000;

/// `count` frames from `first_ns` on, one each 100 ms, each brighter than the one before.
pub fn frames(first_ns: u64, count: u8) -> Vec<PlantedFrame> {
    let frame = |n: u8| PlantedFrame {
        boot_ns: first_ns + u64::from(n) * 100_000_000,
        luma: 20 + n * (210 / count.max(1)),
    };
    (0..count).map(frame).collect()
}

/// The bytes of a video.
pub fn video(frames: &[PlantedFrame], tables: Tables) -> Vec<u8> {
    let pictures: Vec<Vec<u8>> = frames.iter().enumerate().map(|(n, frame)| picture(n, frame.luma)).collect();
    let tables = table_samples(frames, tables);
    let ftyp = mp4_box(b"ftyp", &[b"mp42", &[0, 0, 0, 0][..], b"isommp42"].concat());
    let data_at = ftyp.len() as u32 + 8;
    let mut data = pictures.concat();
    let mut tracks = vec![video_track(frames, &pictures, data_at)];
    for (number, table) in tables.iter().enumerate() {
        tracks.push(table_track(number as u32 + 2, table.len() as u32, data_at + data.len() as u32));
        data.extend(table);
    }
    let header =
        [words(&[0, 0, 0, TIMESCALE, 0, 0x0001_0000, 0x0100_0000, 0, 0]), identity_matrix()].concat();
    let header = [header, words(&[0, 0, 0, 0, 0, 0, tracks.len() as u32 + 1])].concat();
    let index = mp4_box(b"moov", &[mp4_box(b"mvhd", &header), tracks.concat()].concat());
    [ftyp, mp4_box(b"mdat", &data), index].concat()
}

/// The samples of the tracks of tables.
fn table_samples(frames: &[PlantedFrame], tables: Tables) -> Vec<Vec<u8>> {
    let count = (frames.len() as u32).to_le_bytes();
    let times = |unit: u64| -> Vec<u8> {
        frames.iter().flat_map(|frame| (frame.boot_ns / unit).to_le_bytes()).collect()
    };
    let in_microseconds = || [b"#VV1NSC0PET1ME!#".as_slice(), &count, &times(1000)].concat();
    let versioned = |version: u32| {
        let head = [version.to_le_bytes().as_slice(), &REALTIME_OFFSET_NS.to_le_bytes(), &count].concat();
        [b"#VV1NSC0PET1ME2#".as_slice(), &head, &times(1)].concat()
    };
    match tables {
        Tables::Both => vec![in_microseconds(), versioned(2)],
        Tables::Microseconds => vec![in_microseconds()],
        Tables::Version1 => vec![versioned(1)],
        Tables::None => Vec::new(),
    }
}

fn mp4_box(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32 + 8).to_be_bytes(), kind.as_slice(), content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn identity_matrix() -> Vec<u8> {
    words(&[0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000])
}

/// The units of time from the first frame to each one.
fn units(frames: &[PlantedFrame]) -> Vec<u32> {
    let first = frames.first().map_or(0, |frame| frame.boot_ns);
    let units = |ns: u64| (u128::from(ns) * u128::from(TIMESCALE) / 1_000_000_000) as u32;
    frames.iter().map(|frame| units(frame.boot_ns - first)).collect()
}

fn video_track(frames: &[PlantedFrame], pictures: &[Vec<u8>], at: u32) -> Vec<u8> {
    let starts = units(frames);
    let mut durations: Vec<u32> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The last frame takes as long as the one before.
    durations.push(durations.last().copied().unwrap_or(TIMESCALE / 10));
    durations.truncate(frames.len());
    let runs: Vec<u32> = durations.iter().flat_map(|each| [1, *each]).collect();
    let runs = [words(&[0, frames.len() as u32]), words(&runs)].concat();
    let sizes: Vec<u32> = pictures.iter().map(|picture| picture.len() as u32).collect();
    let sizes = [words(&[0, 0, sizes.len() as u32]), words(&sizes)].concat();
    let size = 16 * MACROBLOCKS;
    let config = [
        &[1, 66, 0xc0, 10, 0xff, 0xe1][..],
        &(sequence_parameters().len() as u16).to_be_bytes(),
        &sequence_parameters(),
        &[1],
        &(picture_parameters().len() as u16).to_be_bytes(),
        &picture_parameters(),
    ]
    .concat();
    let entry = [
        words(&[0, 1]),
        vec![0; 16],
        words(&[size << 16 | size, 0x0048_0000, 0x0048_0000, 0]),
        1u16.to_be_bytes().to_vec(),
        vec![0; 32],
        vec![0, 24, 0xff, 0xff],
        mp4_box(b"avcC", &config),
    ]
    .concat();
    let samples = [
        mp4_box(b"stsd", &[words(&[0, 1]), mp4_box(b"avc1", &entry)].concat()),
        mp4_box(b"stts", &runs),
        mp4_box(b"stsz", &sizes),
        mp4_box(b"stsc", &words(&[0, 1, 1, frames.len() as u32, 1])),
        mp4_box(b"stco", &words(&[0, 1, at])),
    ];
    let media_header = mp4_box(b"vmhd", &words(&[1, 0, 0]));
    track(1, durations.iter().sum(), size, b"vide", &media_header, &samples.concat())
}

fn table_track(id: u32, bytes: u32, at: u32) -> Vec<u8> {
    let entry = [words(&[0, 1]), b"\0application/octet-stream\0".to_vec()].concat();
    let samples = [
        mp4_box(b"stsd", &[words(&[0, 1]), mp4_box(b"mett", &entry)].concat()),
        mp4_box(b"stts", &words(&[0, 1, 1, 1])),
        mp4_box(b"stsz", &words(&[0, bytes, 1])),
        mp4_box(b"stsc", &words(&[0, 1, 1, 1, 1])),
        mp4_box(b"stco", &words(&[0, 1, at])),
    ];
    track(id, 1, 0, b"meta", &mp4_box(b"nmhd", &words(&[0])), &samples.concat())
}

fn track(id: u32, length: u32, size: u32, handler: &[u8; 4], kind: &[u8], samples: &[u8]) -> Vec<u8> {
    const ENABLED_AND_IN_MOVIE: u32 = 3;
    const UNDETERMINED: u32 = 0x55c4_0000;
    let header = [
        words(&[ENABLED_AND_IN_MOVIE, 0, 0, id, 0, length, 0, 0, 0, 0]),
        identity_matrix(),
        words(&[size << 16, size << 16]),
    ];
    let media = [
        mp4_box(b"mdhd", &words(&[0, 0, 0, TIMESCALE, length, UNDETERMINED])),
        mp4_box(b"hdlr", &[words(&[0, 0]), handler.to_vec(), vec![0; 13]].concat()),
        mp4_box(
            b"minf",
            &[
                kind,
                &mp4_box(
                    b"dinf",
                    &mp4_box(b"dref", &[words(&[0, 1]), mp4_box(b"url ", &words(&[1]))].concat()),
                ),
                &mp4_box(b"stbl", samples),
            ]
            .concat(),
        ),
    ];
    mp4_box(b"trak", &[mp4_box(b"tkhd", &header.concat()), mp4_box(b"mdia", &media.concat())].concat())
}

/// Bits, the highest of each byte first, with the codes of ITU-T H.264 9.1.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn bits(mut self, value: u32, count: u32) -> Bits {
        for at in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = (value >> at & 1) as u8;
            *self.bytes.last_mut().expect("a byte was begun") |= bit << (7 - self.used % 8);
            self.used += 1;
        }
        self
    }

    /// Unsigned Exp-Golomb code.
    fn golomb(self, value: u32) -> Bits {
        let length = (value + 1).ilog2();
        self.bits(0, length).bits(value + 1, length + 1)
    }

    fn aligned(self, first: u32) -> Bits {
        let mut all = self.bits(first, 1);
        while !all.used.is_multiple_of(8) {
            all = all.bits(0, 1);
        }
        all
    }
}

/// A unit of the byte stream: its type, and the bytes with what prevents a start code in them.
fn unit(header: u8, payload: &[u8]) -> Vec<u8> {
    let mut unit = vec![header];
    let mut zeroes = 0;
    for byte in payload {
        if zeroes == 2 && *byte <= 3 {
            unit.push(3);
            zeroes = 0;
        }
        unit.push(*byte);
        zeroes = if *byte == 0 { zeroes + 1 } else { 0 };
    }
    unit
}

/// The sequence parameter set: baseline profile, pictures in the order of their display.
fn sequence_parameters() -> Vec<u8> {
    let head = Bits::default().bits(66, 8).bits(0xc0, 8).bits(10, 8).golomb(0).golomb(0).golomb(2).golomb(1);
    let size = head.bits(0, 1).golomb(MACROBLOCKS - 1).golomb(MACROBLOCKS - 1);
    unit(0x67, &size.bits(0b1100, 4).aligned(1).bytes)
}

/// The picture parameter set: CAVLC, one slice group, the deblocking filter under the slice's control.
fn picture_parameters() -> Vec<u8> {
    let head = Bits::default().golomb(0).golomb(0).bits(0, 2).golomb(0).golomb(0).golomb(0).bits(0, 3);
    unit(0x68, &head.golomb(0).golomb(0).golomb(0).bits(0b100, 3).aligned(1).bytes)
}

/// A picture of one grey, with the length of its only unit before it.
fn picture(number: usize, luma: u8) -> Vec<u8> {
    const I_SLICE: u32 = 7;
    const I_PCM: u32 = 25;
    const NO_COLOUR: u8 = 128;
    let head = Bits::default().golomb(0).golomb(I_SLICE).golomb(0).bits(0, 4).golomb(number as u32 % 2);
    // Marking of reference pictures, the change of the quantiser, no deblocking.
    let mut slice = head.bits(0, 2).golomb(0).golomb(1);
    for _ in 0..MACROBLOCKS * MACROBLOCKS {
        slice = slice.golomb(I_PCM);
        while !slice.used.is_multiple_of(8) {
            slice = slice.bits(0, 1);
        }
        slice.bytes.extend([luma; 256]);
        slice.bytes.extend([NO_COLOUR; 128]);
        slice.used += 384 * 8;
    }
    let unit = unit(0x65, &slice.aligned(1).bytes);
    [&(unit.len() as u32).to_be_bytes(), unit.as_slice()].concat()
}
