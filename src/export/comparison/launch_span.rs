//! The launch that a run is measured by: one of those that [`crate::measure`] finds.

use crate::measure::{Launch, LaunchType, Measured};

/// The launch of an app, ns of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::export) struct LaunchSpan {
    pub from: u64,
    /// The end of the slice that the user named, else of the launch.
    pub to: u64,
    /// With what it begins and ends, as the table `launch` and the JSON of launches have it.
    pub begins_with: &'static str,
    pub ends_with: &'static str,
    /// Whether `to` is the end of the slice that the user named.
    pub is_named: bool,
    pub launch_type: Option<LaunchType>,
    pub main_tid: Option<i32>,
    /// Times to initial and to full display, ns.
    pub ttid: Option<u64>,
    pub ttfd: Option<u64>,
}

impl LaunchSpan {
    /// The first launch in a timeline that the recording does not cut. It ends with the first of the slices
    /// that the user named, which end at the times `named_ends`, behind the begin of the app.
    pub fn of(measured: &Measured, named_ends: &[u64]) -> Option<LaunchSpan> {
        let launch = measured.launches.iter().find(|launch| launch.cut.is_none())?;
        let app_begin = launch.bind().map_or(launch.begin, |bind| bind.start);
        let named = named_ends.iter().copied().filter(|end| *end > app_begin).min();
        let Launch { begin, end, launch_type, main_tid, ttid, ttfd, .. } = *launch;
        Some(LaunchSpan {
            from: begin,
            to: named.unwrap_or(end),
            begins_with: launch.begins_with.name(),
            ends_with: if named.is_some() { "named slice" } else { launch.ends_with.name() },
            is_named: named.is_some(),
            launch_type,
            main_tid,
            ttid,
            ttfd,
        })
    }
}
