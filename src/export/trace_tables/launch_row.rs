//! The rows of the tables `launch` and `frame`.

use std::io;

use super::sink::TableSink;
use crate::measure::{Frame, Launch, LaunchBegin, LaunchType};
use crate::tables::{Cell, TableId};

impl TableSink<'_> {
    /// Makes a row of each launch that the recording does not cut.
    pub(super) fn push_launches(&mut self, launches: &[Launch]) -> io::Result<()> {
        let between = |from: Option<u64>, to: Option<u64>| {
            Cell::from(from.zip(to).map(|(from, to)| to.saturating_sub(from)))
        };
        for launch in launches.iter().filter(|launch| launch.cut.is_none()) {
            self.tids.extend(launch.main_tid);
            self.tids.extend(launch.render_tid);
            let bind = launch.bind();
            let (bound, bind_end) = (bind.map(|span| span.start), bind.map(|span| span.end));
            let requested = (launch.begins_with == LaunchBegin::Request).then_some(launch.begin);
            let frame_end = launch.first_frame().map(|span| span.end);
            self.rows.push(
                TableId::Launch,
                [
                    (!launch.package.is_empty()).then_some(&launch.package).into(),
                    launch.main_tid.into(),
                    Cell::Int(0),
                    launch.begin.into(),
                    launch.end.saturating_sub(launch.begin).into(),
                    launch.begins_with.name().into(),
                    launch.ends_with.name().into(),
                    between(requested, bound),
                    between(bound, bind_end),
                    between(bind_end, frame_end),
                    launch.launch_type.map(LaunchType::name).into(),
                    launch.rule.name().into(),
                    launch.pid.into(),
                    launch.render_tid.into(),
                    launch.ttid.into(),
                    launch.ttfd.into(),
                    launch.is_overlapped.into(),
                ],
            )?;
        }
        Ok(())
    }

    /// Makes a row of each frame.
    pub(super) fn push_frames(&mut self, frames: &[Frame]) -> io::Result<()> {
        for frame in frames {
            self.tids.extend([frame.ui_tid, frame.render_tid]);
            self.rows.push(
                TableId::Frame,
                [
                    frame.id.into(),
                    (!frame.package.is_empty()).then_some(&frame.package).into(),
                    frame.pid.into(),
                    frame.layer.as_ref().into(),
                    frame.ui_tid.into(),
                    frame.render_tid.into(),
                    Cell::Int(0),
                    frame.begin.into(),
                    frame.duration().into(),
                    frame.cpu_ns.into(),
                    frame.duration_cpu_ns.into(),
                    frame.overrun().into(),
                    frame.deadline.map(|deadline| deadline.name()).into(),
                    frame.jank_type.as_ref().into(),
                ],
            )?;
        }
        Ok(())
    }
}
