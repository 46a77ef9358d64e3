//! The processes of apps: their names, the launches that they handled, and the steps of their main threads.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::frame::{Frame, UiFrames};
use super::launch::{Launch, LaunchType};
use super::launch_marks::{LaunchMarks, Step, StepKind};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::tracks::Tasks;

/// The most steps that are examined for one launch. So a hostile recording cannot take all time.
const MAX_EXAMINED: usize = 10_000;
/// The kernel cuts the name of a thread to so many characters, and Android cuts them from its begin.
const COMM_LEN: usize = 15;
/// Names of processes that have not got their app's name yet.
const UNNAMED: [&str; 9] =
    ["", "<...>", "main", "zygote", "zygote64", "usap32", "usap64", "app_process64", "<pre-initialized>"];

/// How well the process with a package's own name fits it; other processes of the app fit less.
const BEST_FIT: u8 = 4;

/// The processes of a timeline, and their marks of launches and frames.
pub(super) struct Apps<'a> {
    tasks: &'a Tasks,
    /// The steps of main threads, in the order of their begins.
    resumes: Vec<Step>,
    /// All steps of main threads by process, in the order of their begins.
    steps: HashMap<Pid, Vec<Step>>,
    /// When each thread said that the app is fully drawn, in order.
    reports: HashMap<Tid, Vec<Timestamp>>,
    /// Frames by process, in the order of their begins; and the latest end up to each.
    frames: HashMap<Pid, Vec<(&'a Frame, Timestamp)>>,
    pub ui_frames: &'a UiFrames,
}

impl<'a> Apps<'a> {
    /// `frames` must be in the order of their begins.
    pub fn new(
        tasks: &'a Tasks,
        marks: &LaunchMarks,
        frames: &'a [Frame],
        ui_frames: &'a UiFrames,
    ) -> Apps<'a> {
        let is_main =
            |step: &&Step| tasks.threads.tgid(step.tid).is_none_or(|process| step.tid.is_main_of(process));
        let mut all: Vec<Step> = marks.steps.iter().filter(is_main).copied().collect();
        all.sort_by_key(|step| step.begin);
        let resumes = all.iter().filter(|step| step.kind == StepKind::Resume).copied().collect();
        let mut steps: HashMap<Pid, Vec<Step>> = HashMap::new();
        for step in all {
            steps.entry(step.process()).or_default().push(step);
        }
        let mut reports: HashMap<Tid, Vec<Timestamp>> = HashMap::new();
        for (tid, ts) in &marks.reports {
            reports.entry(*tid).or_default().push(*ts);
        }
        reports.values_mut().for_each(|times| times.sort_unstable());
        let mut by_process: HashMap<Pid, Vec<(&Frame, Timestamp)>> = HashMap::new();
        for frame in frames {
            let of_process = by_process.entry(frame.pid).or_default();
            let latest = of_process.last().map_or(frame.end, |(_, latest)| frame.end.max(*latest));
            of_process.push((frame, latest));
        }
        Apps { tasks, resumes, steps, reports, frames: by_process, ui_frames }
    }

    /// The process that handled a launch from `begin` to `end`: its main thread has `activityResume` then,
    /// and its name is the package's. Of several the name that fits best counts, then the latest: a process
    /// may die during its launch, and come again.
    pub fn of_launch(&self, package: &str, begin: Timestamp, end: Timestamp) -> Option<Pid> {
        let first = self.resumes.partition_point(|step| step.begin < begin);
        let within = self.resumes[first..].iter().take_while(|step| step.begin < end).take(MAX_EXAMINED);
        let fits = within.filter_map(|step| Some((self.fit(package, step.process())?, step.process())));
        let fits: Vec<(u8, Pid)> = fits.collect();
        let best = fits.iter().map(|(fit, _)| *fit).max()?;
        let mut pids = fits.iter().rev().filter(|(fit, _)| *fit == best).map(|(_, pid)| *pid);
        let pid = pids.next()?;
        // A process without a name is the launch's only where there is no other one.
        (best > 0 || pids.all(|other| other == pid)).then_some(pid)
    }

    /// How well a process fits a package: by the device's list of packages, else by the process's name.
    fn fit(&self, package: &str, pid: Pid) -> Option<u8> {
        let is_listed = self.tasks.packages.get(&pid).is_some_and(|listed| listed.name == package);
        if is_listed { Some(BEST_FIT) } else { fit(package, &self.name(pid)) }
    }

    /// The process with exactly this name, or else the only one of this package.
    pub fn named(&self, package: &str) -> Option<Pid> {
        let mut named = self.tasks.processes.iter().filter(|(_, name)| !name.is_empty() && *name == package);
        let mut listed = self.tasks.packages.iter().filter(|(_, listed)| listed.name == package);
        let only_listed = || listed.next().filter(|_| listed.next().is_none()).map(|(pid, _)| *pid);
        named.next().map(|(pid, _)| *pid).or_else(only_listed)
    }

    /// The name of a process.
    pub fn name(&self, pid: Pid) -> Cow<'_, str> {
        self.tasks.process_name(pid)
    }

    /// The type of a launch, by the steps of the process's main thread that begin in it.
    pub fn launch_type(&self, pid: Pid, begin: Timestamp, end: Timestamp) -> Option<LaunchType> {
        let steps = self.steps.get(&pid)?;
        let first = steps.partition_point(|step| step.begin < begin);
        let within = || steps[first..].iter().take_while(|step| step.begin < end).take(MAX_EXAMINED);
        let has = |kind| within().any(|step| step.kind == kind);
        if !has(StepKind::Resume) {
            return None;
        }
        Some(match (has(StepKind::Bind), has(StepKind::Start)) {
            (true, true) => LaunchType::Cold,
            (false, true) => LaunchType::Warm,
            _ => LaunchType::Hot,
        })
    }

    /// The steps of the main thread of each process, in the order of their begins.
    pub fn steps(&self) -> impl Iterator<Item = (Pid, &[Step])> {
        self.steps.iter().map(|(pid, steps)| (*pid, steps.as_slice()))
    }

    /// Every `activityResume` of a main thread, in the order of their begins.
    pub fn resumes(&self) -> &[Step] {
        &self.resumes
    }

    /// The first frame of a process that begins at `from` or later.
    pub fn first_frame(&self, pid: Pid, from: Timestamp) -> Option<&'a Frame> {
        let frames = self.frames.get(&pid)?;
        frames.get(frames.partition_point(|(frame, _)| frame.begin < from)).map(|(frame, _)| *frame)
    }

    /// The first frame of a process's main thread that ends after the thread's first report, at `from` or
    /// later, that it is fully drawn.
    pub fn full_frame(&self, pid: Pid, from: Timestamp) -> Option<&'a Frame> {
        let reports = self.reports.get(&pid.main_thread())?;
        let report = *reports.get(reports.partition_point(|ts| *ts < from))?;
        let frames = self.frames.get(&pid)?;
        let first = frames.partition_point(|(_, latest)| *latest <= report);
        let mut later = frames[first..].iter().map(|(frame, _)| *frame);
        let is_main = |frame: &&Frame| frame.work.is_some_and(|work| work.ui_tid.is_main_of(pid));
        later.find(|frame| frame.end > report && is_main(frame))
    }
}

/// How well the name of a process fits a package; the better the larger. `None` if the process is of another
/// app.
fn fit(package: &str, name: &str) -> Option<u8> {
    if name == package {
        return Some(BEST_FIT);
    }
    if UNNAMED.contains(&name) {
        return Some(0);
    }
    let rest = name.strip_prefix(package);
    if is_cut(package, name) || rest.is_some_and(|rest| rest.starts_with(':')) {
        return Some(3);
    }
    rest.map(|_| 1)
}

/// Whether `name` is what the kernel leaves of the longer name `whole`.
pub(crate) fn is_cut(whole: &str, name: &str) -> bool {
    name.len() == COMM_LEN && whole.len() > COMM_LEN && (whole.ends_with(name) || whole.starts_with(name))
}

/// By each name to which the kernel may have cut one of `names`: that one, or `None` where there are several.
fn by_cut<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, Option<&'a str>> {
    let mut by_cut: HashMap<&str, Option<&str>> = HashMap::new();
    for name in names.filter(|name| name.len() > COMM_LEN) {
        let ends = [name.get(..COMM_LEN), name.get(name.len() - COMM_LEN..)];
        for cut in ends.into_iter().flatten() {
            let known = by_cut.entry(cut).or_insert(Some(name));
            if *known != Some(name) {
                *known = None;
            }
        }
    }
    by_cut
}

/// The names of apps whose processes have none, or one that the kernel has cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct AppNames {
    whole: HashMap<Pid, String>,
}

impl AppNames {
    /// The names that a timeline tells. The package in the device's list counts, and without one the
    /// process's own name. Where that is the kernel's 15 characters, or the name from before the process
    /// belonged to its app, it is the package of a launch that the process handled, else the only package or
    /// process of the timeline that the kernel may have cut to it.
    pub fn new(tasks: &Tasks, launches: &[Launch]) -> AppNames {
        let listed = tasks.packages.iter().map(|(pid, package)| (*pid, package.name.clone()));
        let mut whole: HashMap<Pid, String> = listed.collect();
        for launch in launches.iter().filter(|launch| !launch.package.is_empty()) {
            let Some(pid) = launch.pid else { continue };
            let name = tasks.process_name(pid);
            if UNNAMED.contains(&name.as_ref()) || is_cut(&launch.package, &name) {
                whole.entry(pid).or_insert_with(|| launch.package.clone());
            }
        }
        let packages = launches.iter().map(|launch| launch.package.as_str());
        let processes = tasks.processes.values().map(String::as_str);
        let by_cut = by_cut(packages.chain(processes));
        let main_threads = tasks.threads.sorted().into_iter().filter(|(tid, thread)| {
            thread.tgid.is_none_or(|process| tid.is_main_of(process)) && thread.name_text().is_some()
        });
        let pids =
            main_threads.map(|(tid, _)| Pid::of_main_thread(tid)).chain(tasks.processes.keys().copied());
        for pid in pids.collect::<BTreeSet<Pid>>() {
            let name = tasks.process_name(pid);
            if name.len() != COMM_LEN || whole.contains_key(&pid) {
                continue;
            }
            if let Some(Some(only)) = by_cut.get(name.as_ref()) {
                whole.insert(pid, (*only).to_owned());
            }
        }
        AppNames { whole }
    }

    /// The name of the app of a process; empty where nothing names it.
    pub fn name<'a>(&'a self, tasks: &'a Tasks, pid: Pid) -> Cow<'a, str> {
        match self.whole.get(&pid) {
            Some(name) => name.as_str().into(),
            None => tasks.process_name(pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracks::AppPackage;

    #[test]
    fn a_cut_name_that_fits_several_names_stands_for_none() {
        let found = by_cut(["com.example.feed", "com.example.feeds", "short"].into_iter());
        assert_eq!(found["om.example.feed"], Some("com.example.feed"));
        assert_eq!(found["com.example.fee"], None);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_cut_name_fits_the_name_that_it_was_cut_from() {
        assert!(is_cut("com.example.feed", "om.example.feed"));
        assert!(is_cut("com.example.feed", "com.example.fee"));
        assert!(!is_cut("com.example.feed", "m.example.feed"));
        assert!(!is_cut("om.example.feed", "om.example.feed"), "it is whole");
        assert_eq!(fit("com.example.feed", "om.example.feed"), Some(3));
        assert_eq!(fit("com.example", "com.example:remote"), Some(3));
        assert_eq!(fit("com.example", "com.other"), None);
    }

    #[test]
    fn the_devices_list_names_the_package_of_a_process_whatever_the_process_is_called() {
        let mut tasks = Tasks::default();
        tasks.processes.insert(Pid(20), "com.app:remote".to_owned());
        tasks.processes.insert(Pid(30), "com.other".to_owned());
        let package = AppPackage { name: "com.app".to_owned(), is_debuggable: false };
        tasks.packages.insert(Pid(20), package);
        let names = AppNames::new(&tasks, &[]);
        assert_eq!(
            (names.name(&tasks, Pid(20)), names.name(&tasks, Pid(30))),
            ("com.app".into(), "com.other".into())
        );
        let ui_frames = UiFrames::default();
        let apps = Apps::new(&tasks, &LaunchMarks::default(), &[], &ui_frames);
        assert_eq!(
            (apps.named("com.app"), apps.named("com.other"), apps.named("com.a")),
            (Some(Pid(20)), Some(Pid(30)), None)
        );
        assert_eq!((apps.fit("com.app", Pid(20)), apps.fit("com.app", Pid(30))), (Some(BEST_FIT), None));
    }
}
