//! The name of an app by its process: the rule that launches, frames and everything made of them share.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::launch::Launch;
use crate::tracks::Tasks;

/// The kernel cuts the name of a thread to so many characters, and Android cuts them from its begin.
const COMM_LEN: usize = 15;
/// Names of processes that have not got their app's name yet.
const UNNAMED: [&str; 9] =
    ["", "<...>", "main", "zygote", "zygote64", "usap32", "usap64", "app_process64", "<pre-initialized>"];

/// How well the name of a process fits a package; the better the larger. `None` if the process is of another
/// app.
pub(super) fn fit(package: &str, name: &str) -> Option<u8> {
    if name == package {
        return Some(4);
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
fn is_cut(whole: &str, name: &str) -> bool {
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
    whole: HashMap<i32, String>,
}

impl AppNames {
    /// The names that a timeline tells. A process's own name counts. Where that is the kernel's 15
    /// characters, or the name from before the process belonged to its app, it is the package of a launch
    /// that the process handled, else the only package or process of the timeline that the kernel may have
    /// cut to it.
    pub fn of(tasks: &Tasks, launches: &[Launch]) -> AppNames {
        let mut whole = HashMap::new();
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
            thread.tgid.is_none_or(|tgid| tgid == *tid) && thread.name_text().is_some()
        });
        let pids = main_threads.map(|(tid, _)| tid).chain(tasks.processes.keys().copied());
        for pid in pids.collect::<BTreeSet<i32>>() {
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
    pub fn name<'a>(&'a self, tasks: &'a Tasks, pid: i32) -> Cow<'a, str> {
        match self.whole.get(&pid) {
            Some(name) => name.as_str().into(),
            None => tasks.process_name(pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
