//! The launches of a running recording, each told when its end is known.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::export::report_page::PageCollector;
use crate::measure::{Launch, LaunchType};
use crate::tracks::Tasks;

/// The time between two looks for launches, ns.
const LOOK_EVERY_NS: u64 = 500_000_000;
/// After the last marker of a launch they are looked for so long: the frame that shows that the app is fully
/// drawn may come late, ns.
const LOOK_FOR_NS: u64 = 30_000_000_000;
/// A launch is told so long after its end, ns: its first frame is complete then.
const SETTLED_AFTER_NS: u64 = 300_000_000;
/// The most launches of which it is remembered that they were told.
const MAX_REMEMBERED: usize = 1000;

/// A launch as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToldLaunch {
    pub package: String,
    launch_type: Option<LaunchType>,
    begin: Timestamp,
    pub end: Timestamp,
    ttid: Option<u64>,
    ttfd: Option<u64>,
}

impl ToldLaunch {
    fn new(launch: &Launch) -> ToldLaunch {
        ToldLaunch {
            package: launch.package.clone(),
            launch_type: launch.launch_type,
            begin: launch.begin,
            end: launch.end,
            ttid: launch.ttid,
            ttfd: launch.ttfd,
        }
    }

    /// The message, with times of the session that began at `start`.
    pub fn json(&self, start: Timestamp) -> Value {
        json!({
            "kind": "launch",
            "package": self.package,
            "type": self.launch_type.map(LaunchType::name),
            "begin_ns": self.begin.since(start),
            "end_ns": self.end.since(start),
            "ttid_ns": self.ttid,
            "ttfd_ns": self.ttfd,
        })
    }

    /// Whether less of this launch is known than of `other`.
    fn lacks_of(&self, other: &ToldLaunch) -> bool {
        (self.ttid.is_none() && other.ttid.is_some())
            || (self.ttfd.is_none() && other.ttfd.is_some())
            || (self.launch_type.is_none() && other.launch_type.is_some())
    }

    /// A sentence for people.
    pub fn text(&self) -> String {
        let ms = |ns: u64| format!("{:.0} ms", ns as f64 / 1e6);
        let kind = self.launch_type.map_or("", LaunchType::name);
        let ttid = self.ttid.map_or_else(String::new, |ttid| format!(", first frame after {}", ms(ttid)));
        format!("{kind} launch of {} in {}{ttid}", self.package, ms(self.end.since(self.begin)))
            .trim_start()
            .to_owned()
    }
}

/// The launches that have been told.
#[derive(Default)]
pub(super) struct ToldLaunches {
    known: VecDeque<ToldLaunch>,
    /// Launches to tell, or to tell again because more of them is known.
    pub told: Vec<ToldLaunch>,
    /// Those of them that are new.
    pub new: Vec<ToldLaunch>,
    looked_at: Timestamp,
    marks: usize,
    changed_at: Option<Timestamp>,
}

impl ToldLaunches {
    /// Looks for launches at the time `now`, if there may be one.
    pub fn look(&mut self, page: &mut PageCollector, tasks: &Tasks, now: Timestamp, is_last: bool) {
        let marks = page.launch_marks();
        if marks != self.marks {
            self.marks = marks;
            self.changed_at = Some(now);
        }
        let may_be_one = self.changed_at.is_some_and(|at| now.since(at) <= LOOK_FOR_NS);
        if !may_be_one || !is_last && now.since(self.looked_at) < LOOK_EVERY_NS {
            return;
        }
        self.looked_at = now;
        let found = page.latest_launches(tasks, now);
        self.marks = page.launch_marks();
        let settled = |launch: &&Launch| is_last || launch.end.saturating_add(SETTLED_AFTER_NS) <= now;
        let whole = found.iter().filter(|launch| launch.cut.is_none()).filter(settled);
        for launch in whole.map(ToldLaunch::new) {
            let is_same = |known: &&mut ToldLaunch| {
                known.begin == launch.begin && (known.package == launch.package || known.end == launch.end)
            };
            match self.known.iter_mut().find(is_same) {
                // Frames that are older than what is kept make a launch known less well than it was.
                Some(known) if *known == launch || launch.lacks_of(known) => {}
                Some(known) => {
                    known.clone_from(&launch);
                    self.told.push(launch);
                }
                None => {
                    self.known.push_back(launch.clone());
                    self.known.drain(..self.known.len().saturating_sub(MAX_REMEMBERED));
                    self.new.push(launch.clone());
                    self.told.push(launch);
                }
            }
        }
    }
}
