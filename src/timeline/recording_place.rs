//! The places of recordings on the timeline: by their clocks, their snapshots and their boots, and by the
//! manifest of the archive that they came in.

use super::align::boots::{self, BootRelation};
use super::align::clock_map::{self, ClockMap, ReferenceClock};
use super::align::reason::PlaceBasis;
use super::merge_error::MergeError;
use super::recording_pass::RecordingInput;
use super::summary::Verdict;
use crate::clock::{Clock, Snapshots, Timestamp};
use crate::formats::input::{Input, ManifestPlace};
use crate::formats::{FormatId, Recording, has_format};
use crate::text::file_name;

/// A recording, and its number among the inputs.
pub(super) type OpenRecording<'a> = (usize, Box<dyn Recording + 'a>);

/// The recording whose clock is the timeline's: the first one that names its clock and that the manifest of
/// an archive does not relate to another one, else the first one.
pub(super) fn owner_of(recordings: &[OpenRecording<'_>], inputs: &[&Input]) -> Option<usize> {
    let is_free = |index: usize| inputs[index].offset_ns.is_none();
    let names_clock = |recording: &OpenRecording<'_>| recording.1.head().clock != Clock::Unknown;
    let free = || recordings.iter().filter(|(index, _)| is_free(*index));
    let owner = free().find(|recording| names_clock(recording));
    let owner = owner.or_else(|| recordings.iter().find(|recording| names_clock(recording)));
    owner.or_else(|| free().next()).or(recordings.first()).map(|(index, _)| *index)
}

/// The places of all recordings.
pub(super) struct Places<'p> {
    pub inputs: &'p [&'p Input],
    pub reference: &'p ReferenceClock,
    /// The number of the recording whose clock is the timeline's.
    pub owner: Option<usize>,
    /// The snapshots of that recording.
    pub owner_snapshots: Snapshots,
}

impl Places<'_> {
    /// Finds the maps from the recordings' clocks to the timeline's, how sure they are, and why.
    /// `passes_through` says of which inputs the exporter copies the packets.
    ///
    /// # Errors
    /// [`MergeError::OtherBoot`] and [`MergeError::PinnedClock`].
    pub(super) fn place_all<'a>(
        &self,
        recordings: Vec<OpenRecording<'a>>,
        mut passes_through: impl FnMut(usize) -> bool,
    ) -> Result<Vec<RecordingInput<'a>>, MergeError> {
        let mut placed = Vec::new();
        for (index, recording) in recordings {
            let passes_through = passes_through(index);
            let recording = self.place(index, recording, passes_through);
            placed.push(self.related_by_wall_time(recording)?);
        }
        // The places that relations of the manifest are resolved from, each after the one that it refers to.
        let mut waiting: Vec<usize> =
            (0..placed.len()).filter(|at| self.relation(placed[*at].index).is_some()).collect();
        while !waiting.is_empty() {
            let is_ready = |at: &usize| {
                let other = self.other(&placed, placed[*at].index);
                other.is_none_or(|other| other == *at || !waiting.contains(&other))
            };
            // Relations in a circle are resolved from any of them.
            let next = waiting.iter().position(is_ready).unwrap_or(0);
            let at = waiting.swap_remove(next);
            self.relate(&mut placed, at)?;
        }
        Ok(placed)
    }

    fn manifest(&self, index: usize) -> Option<&ManifestPlace> {
        self.inputs[index].place.as_deref()
    }

    /// The offset of the manifest, ns, and the input that it counts from.
    fn relation(&self, index: usize) -> Option<(i64, &ManifestPlace)> {
        self.inputs[index].offset_ns.zip(self.manifest(index))
    }

    /// The place in `placed` of the recording that the manifest relates this one to.
    fn other(&self, placed: &[RecordingInput<'_>], index: usize) -> Option<usize> {
        let name = self.manifest(index)?.other.as_ref()?;
        placed.iter().position(|recording| self.inputs[recording.index].name == *name)
    }

    /// Moves a recording to its place by the manifest.
    fn relate(&self, placed: &mut [RecordingInput<'_>], at: usize) -> Result<(), MergeError> {
        let index = placed[at].index;
        let Some((offset_ns, place)) = self.relation(index) else { return Ok(()) };
        let head = placed[at].recording.head();
        if place.clock.is_none() && !head.snapshots.list.is_empty() {
            return Err(MergeError::PinnedClock { name: self.inputs[index].name.clone() });
        }
        let to_related = place.clock.map_or(0, |clock| clock_distance(&head.snapshots, head.clock, clock));
        let other = self.other(placed, index).filter(|other| *other != at).map(|other| &placed[other]);
        let from_other = other.zip(place.other_clock).map_or(0, |(other, clock)| {
            let head = other.recording.head();
            clock_distance(&head.snapshots, clock, head.clock)
        });
        let total = to_related.saturating_add(offset_ns).saturating_add(from_other);
        let map = other.map_or_else(|| ClockMap::offset(total), |other| other.map.after_offset(total));
        let other = file_name(place.other.as_deref().unwrap_or_default()).to_owned();
        let moved = &mut placed[at];
        moved.map = map;
        moved.verdict = Verdict::Assumed;
        moved.why = PlaceBasis::Manifest { other, offset_ns }.into();
        Ok(())
    }

    fn place<'a>(
        &self,
        index: usize,
        recording: Box<dyn Recording + 'a>,
        passes_through: bool,
    ) -> RecordingInput<'a> {
        let (map, verdict, basis) = self.by_clock(index, recording.as_ref());
        let has_samples = !passes_through && recording.samples().is_some();
        RecordingInput { index, recording, map, verdict, why: basis.into(), passes_through, has_samples }
    }

    fn by_clock(&self, index: usize, recording: &dyn Recording) -> (ClockMap, Verdict, PlaceBasis) {
        let head = recording.head();
        let reference = self.reference;
        let to = reference.clock;
        let has_own = !head.snapshots.list.is_empty();
        let snapshots = if has_own { &head.snapshots } else { &reference.snapshots };
        // Perfetto takes the times of a text for CLOCK_MONOTONIC where it opens an archive.
        let is_taken_for_mono = head.clock == Clock::Unknown
            && self.inputs[index].is_member
            && to != Clock::Unknown
            && has_format(self.inputs[index], FormatId::FtraceText);
        let from = if is_taken_for_mono { Clock::Monotonic } else { head.clock };
        let is_of_one_boot = self.owner == Some(index)
            || boots::relation(&head.snapshots, &self.owner_snapshots) == BootRelation::Same;
        let other_machine = self.other_machine(index);
        let verdict = if is_of_one_boot && from != Clock::Unknown && other_machine.is_none() {
            Verdict::Consistent
        } else {
            Verdict::Assumed
        };
        if let Some(machine) = other_machine.filter(|_| from == to) {
            return (ClockMap::default(), verdict, PlaceBasis::OtherMachine(machine));
        }
        if from == to {
            let basis =
                if is_of_one_boot { PlaceBasis::TimelineClock(to) } else { PlaceBasis::SameClockName(to) };
            return (ClockMap::default(), verdict, basis);
        }
        match clock_map::joined(&clock_map::segments(snapshots, from, to)) {
            Some(map) => {
                (map, verdict, PlaceBasis::Snapshots { from, to, is_of_one_boot, is_taken_for_mono })
            }
            None => {
                let basis = PlaceBasis::Unrelated { from: head.clock, to };
                (ClockMap::default(), Verdict::Assumed, basis)
            }
        }
    }

    /// The machine of the input, where it is another one than the timeline's.
    fn other_machine(&self, index: usize) -> Option<String> {
        let machine = |index: usize| self.manifest(index).and_then(|place| place.machine.as_ref());
        let own = machine(index)?;
        (self.owner.and_then(machine) != Some(own)).then(|| own.clone())
    }

    /// Moves a recording of another boot than the timeline's to its place by CLOCK_REALTIME.
    fn related_by_wall_time<'a>(&self, placed: RecordingInput<'a>) -> Result<RecordingInput<'a>, MergeError> {
        let own = &placed.recording.head().snapshots;
        let relation = boots::relation(own, &self.reference.snapshots);
        let BootRelation::Other { shift_ns, error_ns } = relation else { return Ok(placed) };
        // CLOCK_REALTIME is the same in all boots.
        if self.inputs[placed.index].offset_ns.is_some() || self.reference.clock == Clock::Realtime {
            return Ok(placed);
        }
        if placed.passes_through {
            let name = self.inputs[placed.index].name.clone();
            return Err(MergeError::OtherBoot { name, seconds: shift_ns / 1_000_000_000 });
        }
        let map = placed.map.then_offset(shift_ns);
        let why = PlaceBasis::OtherBoot { shift_ns, error_ns }.into();
        Ok(RecordingInput { map, verdict: Verdict::Assumed, why, ..placed })
    }
}

/// The ns that the clock `to` reads more than the clock `from` at the first snapshot; 0 without one.
fn clock_distance(snapshots: &Snapshots, from: Clock, to: Clock) -> i64 {
    let first = snapshots.list.iter().find_map(|snapshot| snapshot.get(from, snapshots.ftrace_clock));
    let map = clock_map::joined(&clock_map::segments(snapshots, from, to));
    map.zip(first).map_or(0, |(map, first)| map.offset_at(Timestamp(first)))
}
