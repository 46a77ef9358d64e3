//! Feeds a stream in pieces, and collects what comes of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use support::launch_scenario::Launch;
use support::report_page::Track;
use support::scenario::{Era, KernelEvent, Moment, PID, Random, START, Scenario};
use tracebridge::internals::live::{Live, LiveMessage, LiveOptions, Occurrence};

/// The process that tells of launches.
const SERVER: i32 = 1_000;

/// One batch, by docs/live-format.md.
pub struct Batch {
    pub head: Value,
    pub columns: Vec<u8>,
}

impl Batch {
    pub fn parse(bytes: &[u8]) -> Batch {
        let (len, rest) = bytes.split_at(4);
        let (head, columns) = rest.split_at(u32::from_le_bytes(len.try_into().unwrap()) as usize);
        Batch { head: serde_json::from_slice(head).unwrap(), columns: columns.to_vec() }
    }

    pub fn number(&self, member: &str) -> u64 {
        self.head[member].as_u64().unwrap_or_else(|| panic!("{member}: {}", self.head[member]))
    }

    pub fn tracks(&self) -> Vec<Track> {
        let tracks = self.head["tracks"].as_array().unwrap();
        tracks.iter().map(|about| Track::read(about, &self.columns)).collect()
    }

    pub fn string(&self, id: i64) -> String {
        self.head["strings"][id as usize].as_str().unwrap().to_owned()
    }
}

/// Everything that a session has told.
#[derive(Default)]
pub struct Told {
    pub batches: Vec<Batch>,
    pub texts: Vec<Value>,
    pub triggered: Vec<Occurrence>,
}

impl Told {
    pub fn add(&mut self, messages: Vec<LiveMessage>) {
        for message in messages {
            match message {
                LiveMessage::Batch(bytes) => self.batches.push(Batch::parse(&bytes)),
                LiveMessage::Text(text) => self.texts.push(serde_json::from_str(&text).unwrap()),
                LiveMessage::Triggered(occurrence) => self.triggered.push(occurrence),
            }
        }
    }

    /// The messages of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.texts.iter().filter(|text| text["kind"] == kind).collect()
    }
}

/// The options of a session that keeps so many seconds.
pub fn options(keep_s: u64) -> LiveOptions {
    LiveOptions { keep: Duration::from_secs(keep_s), app: None, triggers: Vec::new(), title: "test".into() }
}

/// How a stream is cut into pieces, and how often batches are taken.
#[derive(Debug, Clone, Copy)]
pub struct Feeding {
    pub seed: u64,
    /// The longest piece, bytes.
    pub longest: u64,
    /// After a piece a batch is taken with this probability, percent.
    pub batch_percent: u64,
}

/// Feeds bytes in random pieces.
pub fn feed(live: &mut Live, bytes: &[u8], feeding: Feeding, told: &mut Told) {
    let mut random = Random(feeding.seed | 1);
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = random.range(1, feeding.longest + 1).min(rest.len() as u64) as usize;
        live.feed(&rest[..len]).unwrap();
        rest = &rest[len..];
        if random.chance(feeding.batch_percent) {
            told.add(live.batch(false));
        }
    }
}

/// A name, and the bytes of a recording.
pub type Recording = (String, Vec<u8>);

/// A simulated launch, which has frames, slices and switches.
pub fn launch() -> Vec<u8> {
    Launch { seed: 3, day: 0, slow_percent: 0, pace_percent: 100 }.make().dat
}

/// The recordings that tests compare: a simulated one, and the corpus's, of several kernels.
pub fn recordings() -> Vec<Recording> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dat/v6.dat");
    let mut files: Vec<PathBuf> = vec![golden];
    if let Some(corpus) = support::corpus() {
        let dir = corpus.join("trace-cmd");
        let dats = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        files.extend(dats.filter(|path| !path.to_string_lossy().contains("v7")));
    }
    files.sort();
    let read = |path: PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
    };
    let simulated = ("launch".to_owned(), launch());
    let frames = ("frames".to_owned(), frames(30));
    [simulated, frames].into_iter().chain(files.into_iter().map(read)).collect()
}

/// Counts of items, each with everything that it says.
pub type Items = BTreeMap<(String, String), u64>;

/// The times of the recording of [`frames`].
pub const PERIOD_NS: u64 = 16_666_667;
/// A frame of so many is late by [`LATE_NS`] more than usual.
pub const LATE_EVERY: u64 = 50;
pub const LATE_NS: u64 = 80_000_000;

/// A simulated app that draws for some seconds after its launch, some frames late. Every second it inflates
/// something for 4 ms.
pub fn frames(seconds: u64) -> Vec<u8> {
    frames_with(seconds, &[])
}

/// The same with more markers of a program: each its time after the start, and its text.
pub fn frames_with(seconds: u64, markers: &[(u64, &str)]) -> Vec<u8> {
    let scenario = Scenario { threads: 3, records_mono: false, ..Scenario::new(5, Era::ArtMono) };
    let mut moments = Vec::new();
    let main = PID;
    let render = PID + 3;
    let mut marker = |ts: u64, cpu: u32, text: String| {
        let tid = PID + 3 * cpu as i32;
        moments.push(Moment { ts, cpu, tid, event: KernelEvent::Marker(text) });
    };
    for (after, text) in markers {
        marker(START + after, 2, (*text).to_owned());
    }
    let begin = START + 1_000_000;
    marker(begin, 2, format!("S|{SERVER}|launching: com.example.app|1"));
    for (name, from, to) in
        [("bindApplication", 2, 40), ("activityStart", 41, 60), ("activityResume", 61, 80)]
    {
        marker(begin + from * 1_000_000, 0, format!("B|{main}|{name}"));
        marker(begin + to * 1_000_000, 0, format!("E|{main}"));
    }
    let first = begin + 90_000_000;
    marker(first + 60_000_000, 2, format!("F|{SERVER}|launching: com.example.app|1"));
    let mut edge = 0;
    let mut switches = Vec::new();
    for frame in 0..seconds * 60 {
        let vsync = first + frame * PERIOD_NS;
        edge = 1 - edge;
        if frame > 3 {
            marker(vsync, 2, format!("C|{SERVER}|VSYNC-app|{edge}"));
        }
        if frame > 10 && frame % LATE_EVERY > 0 && frame % LATE_EVERY < 8 {
            continue;
        }
        let late = if frame % LATE_EVERY == 0 { LATE_NS } else { 0 };
        let number = 100 + frame;
        marker(vsync + 500_000, 0, format!("B|{main}|Choreographer#doFrame {number}"));
        if frame % 60 == 20 {
            marker(vsync + 600_000, 0, format!("B|{main}|inflate"));
            marker(vsync + 4_600_000, 0, format!("E|{main}"));
        }
        marker(vsync + 5_000_000, 0, format!("E|{main}"));
        switches.push((vsync + 6_000_000, render));
        marker(vsync + 6_000_001, 1, format!("B|{main}|DrawFrames {number}"));
        marker(vsync + 10_000_000 + late, 1, format!("E|{main}"));
        switches.push((vsync + 10_000_001 + late, -render));
    }
    for (ts, tid) in switches {
        let idle = (0, "swapper/1".to_owned());
        let thread = (render, "RenderThread".to_owned());
        let (prev, next) = if tid > 0 { (idle, thread) } else { (thread, idle) };
        let event = KernelEvent::Switch { prev, next };
        moments.push(Moment { ts, cpu: 1, tid: render, event });
    }
    moments.sort_by_key(|moment| moment.ts);
    scenario.dat(&moments)
}
