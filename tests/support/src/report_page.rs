//! Reads report pages by docs/report-format.md alone, without the code that writes them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

/// The data of a page with one trace.
pub struct Page {
    pub text: String,
    pub index: Value,
    pub strings: Vec<String>,
    pub methods: Value,
    blocks: Vec<Vec<u8>>,
}

/// The roles of slices whose depths are lanes, which do not nest.
const LANES: [&str; 4] = ["async", "expected_frames", "actual_frames", "frames"];

/// A track with its columns, by name.
pub struct Track {
    pub about: Value,
    pub columns: BTreeMap<String, Vec<i64>>,
}

impl Track {
    pub fn is(&self, kind: &str, role: &str) -> bool {
        self.about["kind"] == kind && self.about["role"] == role
    }

    /// Reads the columns of a track, as `about` says, out of a block.
    pub fn read(about: &Value, block: &[u8]) -> Track {
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let mut rest = &block[number(&about["offset"])..];
        let mut columns = BTreeMap::new();
        for column in about["columns"].as_array().unwrap() {
            let name = column[0].as_str().unwrap();
            let encoding = column[1].as_str().unwrap();
            let factor = column[2].as_i64().unwrap_or(1);
            let mut values: Vec<i64> = Vec::new();
            for _ in 0..number(&about["count"]) {
                if encoding == "f64" {
                    let (value, behind) = rest.split_at(8);
                    values.push(f64::from_le_bytes(value.try_into().unwrap()).to_bits() as i64);
                    rest = behind;
                    continue;
                }
                let raw = varint(&mut rest);
                let value = match encoding {
                    "varint" | "delta" => raw as i64,
                    "zigzag" | "zigzag-delta" if raw & 1 == 0 => (raw >> 1) as i64,
                    "zigzag" | "zigzag-delta" => -((raw >> 1) as i64) - 1,
                    other => panic!("{other} is no encoding"),
                };
                values.push(match (encoding.ends_with("delta"), values.last()) {
                    (true, Some(before)) => before + value * factor,
                    (true, None) => value,
                    (false, _) => value * factor,
                });
            }
            columns.insert(name.to_owned(), values);
        }
        Track { about: about.clone(), columns }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.about["count"].as_u64().unwrap() as usize
    }
}

/// The text between `start` and `end`, for every such pair.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let pieces = text.split(start).skip(1);
    pieces.map(|piece| piece.split_once(end).expect("the element ends").0).collect()
}

fn from_base64(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 4, 0, "with padding");
    let mut out = Vec::new();
    let mut bits = 0_u32;
    let mut count = 0;
    for c in text.trim_end_matches('=').bytes() {
        let sextet = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other} is no base64"),
        };
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// The directory of a page, and its blocks, unpacked.
fn blocks_of(text: &str) -> (Value, Vec<Vec<u8>>) {
    let start = "<script type=\"application/json\" id=\"tracebridge-directory\">";
    let directories = between(text, start, "</script>");
    assert_eq!(directories.len(), 1);
    let directory: Value = serde_json::from_str(directories[0]).unwrap();
    assert_eq!((&directory["format"], &directory["version"]), (&"tracebridge-report".into(), &7.into()));
    let blocks = between(text, "<!--tracebridge-block:", "-->");
    let unpack = |block: &str| {
        let mut out = Vec::new();
        flate2::read::DeflateDecoder::new(&from_base64(block)[..]).read_to_end(&mut out).unwrap();
        out
    };
    (directory, blocks.into_iter().map(unpack).collect())
}

/// The JSON in a block.
fn json_of(blocks: &[Vec<u8>], block: &Value) -> Value {
    serde_json::from_slice(&blocks[block.as_u64().unwrap() as usize]).unwrap()
}

impl Page {
    pub fn read(path: &Path) -> Page {
        // The text of a trace may hold any bytes.
        Page::parse(String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
    }

    /// The indices of the new and the old trace of a page, which must hold this comparison.
    pub fn read_two(path: &Path, comparison: &Value) -> [Value; 2] {
        let (directory, blocks) = blocks_of(&std::fs::read_to_string(path).unwrap());
        let json = |block: &Value| json_of(&blocks, block);
        assert_eq!(&json(&directory["comparison"]), comparison);
        ["new", "old"].map(|role| {
            let traces = directory["traces"].as_array().unwrap();
            json(&traces.iter().find(|trace| trace["role"] == role).unwrap()["index"])
        })
    }

    pub fn parse(text: String) -> Page {
        let (directory, blocks) = blocks_of(&text);
        let json = |block: &Value| json_of(&blocks, block);
        let index = json(&directory["traces"][0]["index"]);
        let strings = serde_json::from_value(json(&index["strings"])).unwrap();
        let methods = if index["methods"].is_null() { Value::Null } else { json(&index["methods"]) };
        Page { text, index, strings, methods, blocks }
    }

    /// The bytes of a block.
    pub fn block(&self, number: usize) -> &[u8] {
        &self.blocks[number]
    }

    pub fn string(&self, id: i64) -> &str {
        &self.strings[id as usize]
    }

    /// The name of a method: its class, its name and its signature.
    pub fn method(&self, id: i64) -> [&str; 3] {
        let part = |column: &str| self.string(self.methods[column][id as usize].as_i64().unwrap());
        [part("class"), part("name"), part("signature")]
    }

    pub fn tracks(&self) -> Vec<Track> {
        self.index["tracks"].as_array().unwrap().iter().map(|about| self.track(about)).collect()
    }

    fn track(&self, about: &Value) -> Track {
        let block = about["block"].as_u64().unwrap() as usize;
        Track::read(about, &self.blocks[block])
    }

    /// The number of values of all tracks of a kind and a role.
    pub fn count(&self, kind: &str, role: &str) -> usize {
        self.tracks().iter().filter(|track| track.is(kind, role)).map(Track::count).sum()
    }

    /// Checks what holds for every page: owners exist, times lie in the trace, slices are in preorder.
    pub fn check(&self) {
        let length = |member: &str| self.index[member].as_array().unwrap().len() as u64;
        let threads = length("threads");
        let processes = length("processes");
        let tracks = length("tracks");
        let duration = self.index["duration_ns"].as_i64().unwrap();
        for track in self.tracks() {
            let about = &track.about;
            assert!(about["thread"].as_u64().is_none_or(|thread| thread < threads), "{about}");
            assert!(about["process"].as_u64().is_none_or(|process| process < processes), "{about}");
            assert!(track.count() > 0, "{about}");
            for (name, values) in &track.columns {
                let most = match name.as_str() {
                    "start" | "time" | "from" => duration,
                    "name" | "state" => self.strings.len() as i64 - 1,
                    "args" => self.strings.len() as i64,
                    "waker" | "thread" => threads as i64,
                    "from_track" | "to_track" => tracks as i64 - 1,
                    "depth" => about["depth"].as_i64().unwrap() - 1,
                    _ => i64::MAX,
                };
                let fits = |value: &i64| {
                    (0..=most).contains(value) || matches!(name.as_str(), "value" | "to" | "overrun")
                };
                assert!(values.iter().all(fits), "{name} of {about}: more than {most}");
            }
            let Some((starts, durations)) = track.columns.get("start").zip(track.columns.get("duration"))
            else {
                continue;
            };
            assert!(starts.is_sorted(), "{about}");
            assert!(
                starts.iter().zip(durations).all(|(start, length)| start + length <= duration),
                "{about}"
            );
            // A slice lies inside of the one that is one level above it. Lanes are no levels.
            if track.columns.contains_key("depth") && !LANES.contains(&about["role"].as_str().unwrap()) {
                let mut ends: Vec<i64> = Vec::new();
                for (at, depth) in track.columns["depth"].iter().enumerate() {
                    assert!(*depth <= ends.len() as i64, "{about}: {at}");
                    ends.truncate(*depth as usize);
                    assert!(
                        ends.last().is_none_or(|end| starts[at] + durations[at] <= *end),
                        "{about}: {at}"
                    );
                    ends.push(starts[at] + durations[at]);
                }
            }
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let (byte, rest) = bytes.split_first().expect("the column goes on");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}
