//! The request of a user: the trace buffer, and the selection of events, apps and functions to record.

use std::fmt;
use std::path::PathBuf;

use super::events::select_events;
use super::saved_settings::{LeftoverSettings, StateDir};
use super::tracefs_config::{FunctionTracing, TracefsConfig, WhenFull};
use super::{RecordError, SettingsGuard, Tracefs};
use crate::android::UserspaceRequest;

/// The trace buffer that a command is to use.
#[derive(Debug, Clone)]
pub(crate) struct BufferRequest {
    /// The directory of tracefs; `None` tries the usual mount points.
    pub(crate) tracefs: Option<PathBuf>,
    /// The name of an instance; `None` uses the top-level buffer.
    pub(crate) instance: Option<String>,
    /// The directory for the file of saved settings; `None` uses this user's own.
    pub(crate) state_dir: Option<PathBuf>,
    /// Whether the buffer is taken from another recorder, which ends that recorder's recording.
    pub(crate) force: bool,
}

/// An event in the life of an earlier user of a trace buffer, noticed when a recorder locked the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BufferNotice {
    /// A running recorder was ended by force.
    TookOver {
        /// That recorder's process id.
        pid: u32,
    },
    /// A killed recorder had left settings changed; they are put back now.
    PutBack {
        /// The number of settings.
        settings: usize,
    },
    /// A setting of an earlier recorder could not be put back.
    NotPutBack {
        /// Why, and whether it is tried again.
        failure: String,
    },
    /// A flight recorder was ended by force.
    EndedFlightRecorder {
        /// The process that had started the flight recorder.
        pid: u32,
    },
}

impl fmt::Display for BufferNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferNotice::TookOver { pid } => {
                write!(f, "took the trace buffer over from recorder {pid}, whose recording ended")
            }
            BufferNotice::PutBack { settings } => {
                write!(f, "put back {settings} settings that an earlier recorder had left")
            }
            BufferNotice::NotPutBack { failure } => {
                write!(f, "a setting that an earlier recorder had left is not put back: {failure}")
            }
            BufferNotice::EndedFlightRecorder { pid } => {
                write!(f, "ended the flight recorder that pid {pid} had started; what it held is lost")
            }
        }
    }
}

impl BufferRequest {
    /// Finds the trace buffer, which must exist.
    pub(crate) fn open(&self) -> Result<Tracefs, RecordError> {
        self.find(false).map(|(tracefs, _)| tracefs)
    }

    /// Finds the trace buffer, and creates the instance if it does not exist. The second value is the
    /// instance if it was created.
    pub(crate) fn open_or_create(&self) -> Result<(Tracefs, Option<CreatedInstance>), RecordError> {
        let (tracefs, created) = self.find(true)?;
        let created = created.then(|| CreatedInstance { root: Some(tracefs.root().to_owned()) });
        Ok((tracefs, created))
    }

    fn find(&self, create: bool) -> Result<(Tracefs, bool), RecordError> {
        let top = Tracefs::find(self.tracefs.as_deref())?;
        match &self.instance {
            Some(name) => top.instance(name, create),
            None => Ok((top, false)),
        }
    }

    /// Locks the buffer's settings for a recording. Settings that a killed recorder has left are put back
    /// first. An instance that was created for the recording is removed at its end.
    pub(crate) fn lock(
        &self,
        tracefs: &Tracefs,
        created: Option<CreatedInstance>,
        notify: &mut dyn FnMut(BufferNotice),
    ) -> Result<SettingsGuard, RecordError> {
        let dir = StateDir::create(self.state_dir.as_deref())?;
        let mut created = created;
        if self.force
            && let Some(pid) = SettingsGuard::take_over(tracefs, &dir)?
        {
            notify(BufferNotice::TookOver { pid });
            // The other recorder has removed its instance.
            let again = self.open_or_create()?.1;
            created = created.or(again);
        }
        let (mut settings, leftover) = SettingsGuard::begin(tracefs, dir, self.force)?;
        if let Some(LeftoverSettings { flight_recorder, report }) = leftover {
            match flight_recorder {
                Some(pid) => notify(BufferNotice::EndedFlightRecorder { pid }),
                None if report.written > 0 => notify(BufferNotice::PutBack { settings: report.written }),
                None => {}
            }
            report.failures().for_each(|failure| notify(BufferNotice::NotPutBack { failure }));
        }
        if let Some(created) = created {
            settings.remove_instance_at_end()?;
            created.hand_over();
        }
        Ok(settings)
    }
}

/// An instance that was created for a recording. It is removed when this value is dropped, until a
/// [`SettingsGuard`] has the task.
#[derive(Debug)]
pub(crate) struct CreatedInstance {
    root: Option<PathBuf>,
}

impl CreatedInstance {
    fn hand_over(mut self) {
        self.root = None;
    }
}

impl Drop for CreatedInstance {
    fn drop(&mut self) {
        if let Some(root) = &self.root {
            let _ = std::fs::remove_dir(root);
        }
    }
}

/// The trace buffer, and the events, apps and functions to record in it.
#[derive(Debug, Clone)]
pub(crate) struct RecordingRequest {
    pub(crate) buffer: BufferRequest,
    /// Categories, `group/event` with an optional `:filter`, and `group/*`.
    pub(crate) names: Vec<String>,
    /// Patterns for the process names of apps that are to write their markers.
    pub(crate) apps: Vec<String>,
    pub(crate) functions: Option<FunctionTracing>,
    /// ftrace's name of the trace clock; `None` lets the recorder choose one.
    pub(crate) clock: Option<String>,
    /// The size of each CPU's buffer, KiB.
    pub(crate) buffer_kb: u64,
    /// Whether the events of the recorder's own threads are left out.
    pub(crate) exclude_self: bool,
    /// Whether names that are unknown here are left out with a note.
    pub(crate) is_lenient: bool,
}

impl RecordingRequest {
    /// The configuration of the trace buffer for this request, and a note for each thing that this device
    /// does not have.
    pub(crate) fn resolve(
        &self,
        tracefs: &Tracefs,
        when_full: WhenFull,
    ) -> Result<(TracefsConfig, Vec<String>), RecordError> {
        let selection = select_events(tracefs, &self.names, self.is_lenient)?;
        let needs_userspace = selection.tags != 0 || !self.apps.is_empty() || selection.core_services;
        if selection.events.is_empty() && !needs_userspace && self.functions.is_none() {
            return Err(RecordError::NothingSelected);
        }
        let userspace = needs_userspace.then(|| UserspaceRequest {
            tags: selection.tags,
            apps: self.apps.clone(),
            core_services: selection.core_services,
            user_initiated: tracefs.instance_name().is_none(),
        });
        let config = TracefsConfig {
            events: selection.events,
            asked: selection.asked,
            userspace,
            functions: self.functions.clone(),
            clock: self.clock.clone(),
            buffer_kb: self.buffer_kb,
            when_full,
            exclude_self: self.exclude_self,
            process_in_text: false,
        };
        Ok((config, selection.notes))
    }
}
