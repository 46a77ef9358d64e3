//! The numbers of the last seconds of a running recording.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::watch::{LiveWatch, is_process_of};
use super::window::{STEP_NS, WINDOW_NS, WindowSum};
use crate::clock::Timestamp;
use crate::measure::{Frame, PERCENTILES, percentiles};

/// The percentile of frames that is told.
const PERCENTILE: u8 = 95;
/// The most frames of the window: ten apps at 240 Hz for ten seconds.
const MAX_FRAMES: usize = 24_000;

/// A frame of the window.
#[derive(Debug, Clone, Copy)]
struct WindowFrame {
    end: Timestamp,
    /// None without a deadline.
    is_janky: Option<bool>,
    /// None without the work of the app's threads.
    cpu_ns: Option<u64>,
}

/// Collects what the numbers are made of.
#[derive(Default)]
pub(super) struct LiveFigures {
    events: WindowSum,
    lost: WindowSum,
    frames: VecDeque<WindowFrame>,
    /// When the numbers were told last, in parts of the window.
    told: Option<u64>,
}

impl LiveFigures {
    /// Adds what a batch that ends at `to` has brought. With an app only its frames count.
    pub fn add(&mut self, to: Timestamp, events: u64, lost: u64, frames: &[Frame], app: Option<&str>) {
        self.events.add(to, events);
        self.lost.add(to, lost);
        let is_meant = |frame: &&Frame| app.is_none_or(|app| is_process_of(app, &frame.package));
        self.frames.extend(frames.iter().filter(is_meant).map(|frame| WindowFrame {
            end: frame.end,
            is_janky: frame.overrun().map(|_| frame.is_janky()),
            cpu_ns: frame.duration_cpu(),
        }));
        let since = to.saturating_sub(WINDOW_NS);
        // They come in the order in which they were complete.
        self.frames.retain(|frame| frame.end >= since);
        self.frames.drain(..self.frames.len().saturating_sub(MAX_FRAMES));
    }

    /// The numbers, if they are to be told at the time `now`. `app` has the times of the app's threads.
    pub fn due(
        &mut self,
        now: Timestamp,
        start: Timestamp,
        is_last: bool,
        app: Option<&LiveWatch>,
    ) -> Option<Value> {
        let part = now.0 / STEP_NS;
        if self.told.is_some_and(|told| part <= told) && !is_last {
            return None;
        }
        self.told = Some(part);
        let window_ns = WINDOW_NS.min(now.since(start)).max(STEP_NS);
        let cpu: Vec<i64> = self.frames.iter().filter_map(|frame| frame.cpu_ns).map(|ns| ns as i64).collect();
        let at = PERCENTILES.iter().position(|percent| *percent == PERCENTILE).unwrap_or(0);
        let p95_ms = percentiles(cpu).map(|percentiles| rounded(percentiles[at] / 1e6));
        let is_known = self.frames.is_empty() || self.frames.iter().any(|frame| frame.is_janky.is_some());
        let running = app.map(|watch| watch.running.sum(now));
        let runnable = app.map(|watch| watch.runnable.sum(now));
        let percent = |part: u64, whole: u64| rounded(part as f64 * 100.0 / whole as f64);
        let wanted = running.zip(runnable).map(|(running, runnable)| running + runnable);
        let runnable = runnable.zip(wanted).filter(|(_, wanted)| *wanted > 0);
        Some(json!({
            "kind": "numbers",
            "at_ns": now.since(start),
            "window_s": WINDOW_NS / 1_000_000_000,
            "events_per_s": (self.events.sum(now) as f64 * 1e9 / window_ns as f64).round() as u64,
            "lost": self.lost.sum(now),
            "frames": self.frames.len(),
            "janky": is_known.then(|| self.frames.iter().filter(|frame| frame.is_janky == Some(true)).count()),
            "p95_ms": p95_ms,
            "app_cpu_percent": running.map(|running| percent(running, window_ns)),
            "runnable_percent": runnable.map(|(runnable, wanted)| percent(runnable, wanted)),
        }))
    }
}

/// To one decimal.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
