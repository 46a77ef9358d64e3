//! What a profile says about its trace and its selection in sentences: the lines above a table, and the
//! reason why there is nothing to show.

use super::figures::{CLOCKS, count, duration};
use super::profile_run::{ProfileRun, end_ns};
use super::request::TreeDirection;
use super::rows::clocks;
use super::text_style::NO_BREAK_SPACE;
use super::tree::CallTree;
use super::tree_branches::whole_time;
use crate::formats::art_method::Ticks;

/// Format, counts and times of a trace, in one sentence. `total` is the time of the selected threads, ns.
pub(super) fn trace_line(profile: &ProfileRun<'_, '_>, total: Ticks) -> String {
    let (trace, selection) = (profile.trace, &profile.selection);
    let threads = trace.threads().iter().filter(|thread| thread.records > 0).count();
    let is_used = |n: &usize| trace.threads()[*n].records > 0 && selection.has_thread(*n as u32);
    let used = (0..trace.threads().len()).filter(is_used).count();
    let of = if used == threads { String::new() } else { format!("{} of ", count(used as u64)) };
    let mut line = format!("{}; {} records", trace.format(), count(trace.counts().records));
    line += &format!(", {of}{} threads", count(threads as u64));
    if let Some(window) = &selection.window {
        line += &format!("; from {}", time(window.start));
        if window.end < u64::MAX {
            line += &format!(" to {}", time(window.end));
        }
    }
    let has = clocks(trace);
    for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
        line += &format!("; {} {name}", time(total[clock]));
    }
    let whose = match (used, used == threads) {
        _ if !trace.header().has_times() => "",
        (0 | 1, _) => "",
        (_, true) => " in all threads",
        (_, false) => " in these threads",
    };
    line + whose
}

/// The time of all selected threads, ns.
pub(super) fn tree_total(profile: &ProfileRun<'_, '_>, tree: &CallTree) -> Ticks {
    [0, 1].map(|clock| whole_time(tree, clock).saturating_mul(profile.trace.header().tick_ns))
}

/// Why the selection has no calls; `None` where a message has said so before.
pub(super) fn no_calls(profile: &ProfileRun<'_, '_>) -> Option<String> {
    let selection = &profile.selection;
    if profile.trace.counts().records == 0 {
        return Some("the trace has no records".to_owned());
    }
    let whose = if selection.threads.is_some() { " of the selected threads" } else { "" };
    let Some(window) = &selection.window else {
        return Some(format!(
            "no call{whose} is in the trace; --by thread lists the threads that have calls"
        ));
    };
    let end = end_ns(profile.trace);
    let until =
        if window.end < u64::MAX { format!("and {}", time(window.end)) } else { "and the end".to_owned() };
    (window.start < end).then(|| {
        let (from, end) = (time(window.start), time(end));
        let why = format!("no call{whose} lies between {from} {until}; the trace ends at {end}");
        why.replace(NO_BREAK_SPACE, " ")
    })
}

/// Why a tree has no branch although there are calls.
pub(super) fn no_branch(direction: TreeDirection, threshold_percent: f64) -> String {
    let what = match direction {
        TreeDirection::TopDown => "no thread has any time",
        TreeDirection::BottomUp => "no method has this share of the time of all threads",
    };
    format!("--threshold {threshold_percent}: {what}")
}

/// A time in a sentence, which is not parted from its unit.
fn time(ns: u64) -> String {
    duration(ns).trim_end().replace(' ', NO_BREAK_SPACE)
}
