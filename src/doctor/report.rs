//! Everything together: the report that `doctor` prints.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::categories::{self, CategoryReport};
use super::paths::{self, PathReport, Purpose};
use super::system::{Identity, Machine};
use crate::android::{Properties, atrace_properties, tags};
use crate::record::{RecordFound, records};

/// Clocks to record in, best first: what the rest of Android is in, then what does not stop or jump.
const CLOCKS: [&str; 3] = ["boot", "mono", "global"];

/// What this device or host permits.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Who asks.
    pub identity: Identity,
    /// What machine this is.
    pub machine: Machine,
    /// Where tracefs was found.
    pub tracefs: Option<PathBuf>,
    /// Where it was looked for.
    pub looked_in: Vec<PathBuf>,
    /// A tracefs that this user may not enter, where none was found that it may.
    pub closed: Option<PathBuf>,
    /// The clocks offered.
    pub clocks: Vec<String>,
    /// The clock that `record` would use.
    pub clock: Option<String>,
    /// The tracers offered (`function_graph` …).
    pub tracers: Vec<String>,
    /// `tracing_on`.
    pub tracing_on: Option<bool>,
    /// Whether there are Android properties, through which userspace tags are switched on.
    pub properties: bool,
    /// The userspace tags that are on now, by name.
    pub tags_on: Vec<&'static str>,
    /// Every file that recording uses.
    pub paths: Vec<PathReport>,
    /// Every category.
    pub categories: Vec<CategoryReport>,
    /// Saved settings of recorders that run, or were killed.
    pub records: Vec<RecordFound>,
}

impl Report {
    /// Whether anything can be recorded here at all.
    pub fn can_record(&self) -> bool {
        self.tracefs.is_some()
            && self.paths.iter().all(|p| p.works() || p.purpose != Purpose::Needed)
            && self.categories.iter().any(|c| c.works)
    }
}

/// Looks at everything; `tracefs` names the one to look at, else the usual `places` are tried in order.
///
/// `state_dir` is where recorders keep the settings they are to put back.
pub fn examine(tracefs: Option<&Path>, places: &[&str], state_dir: &Path) -> Report {
    let properties = Properties::here();
    let identity = Identity::here();
    let looked_in =
        tracefs.map_or_else(|| places.iter().map(PathBuf::from).collect(), |dir| vec![dir.to_owned()]);
    // trace_marker, as atrace itself looks for it: 0222 for everybody, where tracing_on may be hidden.
    let found =
        looked_in.iter().find(|p| p.join("trace_marker").exists() || p.join("tracing_on").exists()).cloned();
    let closed = looked_in.iter().find(|p| p.is_dir() && fs::read_dir(p).is_err()).cloned();
    let read = |name: &str| {
        found.as_ref().and_then(|root| fs::read_to_string(root.join(name)).ok()).unwrap_or_default()
    };
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace().map(|w| w.trim_matches(['[', ']']).to_owned()).collect()
    };
    let clocks = words(&read("trace_clock"));
    let clock = CLOCKS.iter().find(|c| clocks.iter().any(|o| o == *c)).map(|c| (*c).to_owned());
    let on = properties.as_ref().and_then(|p| atrace_properties::tags_on(p, b"").ok()).unwrap_or(0);
    Report {
        machine: Machine::here(properties.as_ref()),
        paths: found.as_ref().map_or_else(Vec::new, |root| paths::examine(root, state_dir, &identity)),
        categories: found
            .as_ref()
            .map_or_else(Vec::new, |root| categories::examine(root, &identity, properties.as_ref())),
        tracing_on: read("tracing_on").trim().parse::<u8>().ok().map(|on| on != 0),
        tracers: words(&read("available_tracers")),
        properties: properties.is_some(),
        records: records(state_dir),
        tags_on: tags::TAGS.iter().filter(|t| on & t.mask() != 0).map(|t| t.name).collect(),
        identity,
        closed: closed.filter(|_| found.is_none()),
        tracefs: found,
        looked_in,
        clocks,
        clock,
    }
}
