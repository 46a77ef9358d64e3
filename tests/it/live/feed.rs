//! Feeds a stream in pieces, and collects what comes of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use support::launch_scenario::Launch;
use support::report_page::Track;
use support::scenario::Random;
use tracebridge::internals::live::{Live, LiveMessage, LiveOptions, Occurrence};

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
    std::iter::once(simulated).chain(files.into_iter().map(read)).collect()
}

/// Counts of items, each with everything that it says.
pub type Items = BTreeMap<(String, String), u64>;
