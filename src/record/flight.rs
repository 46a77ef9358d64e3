//! The flight recorder: the kernel's ring goes on without any process of ours; what it holds is taken out on demand.

use super::drain::Upto;
use super::session::{Counted, Session, Target};
use super::setup::{self, Applied, Setup, WhenFull};
use super::summary::Summary;
use super::{Error, Settings, clocks};
use crate::clock::Clock;

/// Starts: sets everything up as a ring and leaves it on, with the record that [`stop`] needs.
pub fn start(mut settings: Settings, setup: &Setup) -> Result<Applied, Error> {
    let setup = Setup { when_full: WhenFull::Overwrite, ..setup.clone() };
    let applied = setup::apply(&mut settings, &setup)?;
    let mut snapshots = clocks::begin(applied.clock);
    clocks::push(&mut snapshots, clocks::snapshot(settings.tracefs()));
    setup::start(&settings)?;
    settings.leave_on(snapshots)?;
    Ok(applied)
}

/// Takes out what the ring holds now, while it goes on. What was taken out is no longer in the ring: the next dump
/// has what came after it.
pub fn dump(settings: &Settings, target: &Target) -> Result<Summary, Error> {
    take_out(settings, target)?.finish()
}

/// Stops: tracing off, what the ring holds to `target` if there is one, every setting put back.
pub fn stop(settings: Settings, target: Option<&Target>) -> Result<Option<Summary>, Error> {
    setup::stop(&settings)?;
    let taken = target.map(|target| take_out(&settings, target)).transpose();
    // Before the file is finished, as in a recording.
    settings.restore()?;
    taken?.map(Taken::finish).transpose()
}

/// What was in the ring, in a file that is not finished yet.
struct Taken {
    counted: Counted,
    summary: Summary,
}

impl Taken {
    fn finish(mut self) -> Result<Summary, Error> {
        self.counted.into_summary(&mut self.summary, &|| false)?;
        Ok(self.summary)
    }
}

fn take_out(settings: &Settings, target: &Target) -> Result<Taken, Error> {
    let applied = running(settings)?;
    let mut session = Session::open(settings, &applied, target)?;
    if let Some(started) = settings.flight() {
        session.snapshots = started.clone();
    }
    session.snapshot();
    let total = settings.tracefs().read("buffer_size_kb")?;
    // Not more than a buffer holds: what comes in meanwhile would never end.
    let most = Upto::Bytes(total.parse::<u64>().map_or(1 << 20, |kb| kb * 1024));
    for lane in 0..session.drain.lanes.len() {
        session.drain.lane(lane, most, session.output.as_mut())?;
    }
    session.snapshot();
    let summary = Summary {
        clock: applied.clock.name().to_owned(),
        ended_by: "dump".into(),
        notes: applied.notes,
        ..Summary::default()
    };
    Ok(Taken { counted: session.count(), summary })
}

/// How the buffer of a flight recorder is set up, as the kernel tells.
fn running(settings: &Settings) -> Result<Applied, Error> {
    let tracefs = settings.tracefs();
    let (_, clock) = tracefs.choices("trace_clock")?;
    Ok(Applied {
        clock: Clock::from_trace_clock(&clock.unwrap_or_default()),
        events: tracefs.enabled_events()?,
        notes: Vec::new(),
        watermark: None,
    })
}
