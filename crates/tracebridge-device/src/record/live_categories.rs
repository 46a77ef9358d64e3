//! Categories that are switched while a live recording runs, by commands on standard input
//! ([`CategorySwitch`]). A command is carried out as a whole or not at all.
//!
//! Standard input is read only where it is a pipe or a socket: a terminal is not the recorder's alone, and a
//! recorder in the background that reads it is stopped.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;

use super::events::select_events;
use super::request::RecordingRequest;
use super::tracefs_config::{self, TracefsConfig, WhenFull};
use super::{RecordError, SettingsGuard};
use crate::android::{Properties, UserspaceRequest};
use crate::categories::{CategorySwitch, MAX_COMMAND_BYTES, REFUSED, SWITCHED};
use crate::console::complain;

/// The categories of a live recording, and the commands that change them.
pub(super) struct LiveCategories {
    input: File,
    /// The begin of a command that has not come to its end.
    line: Vec<u8>,
    /// The request, with the names of what is recorded now.
    request: RecordingRequest,
    /// Its tags, and whether the core services are among the apps.
    userspace: (u64, bool),
}

impl LiveCategories {
    /// `None` where standard input takes no commands.
    pub(super) fn begin(request: &RecordingRequest) -> Option<LiveCategories> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let kind = input.metadata().ok()?.file_type();
        (kind.is_fifo() || kind.is_socket()).then(|| LiveCategories {
            input,
            line: Vec::new(),
            request: RecordingRequest { is_lenient: true, ..request.clone() },
            userspace: (0, false),
        })
    }

    /// Has Android's own recorders leave the buffer alone from the begin, which tags that are switched on
    /// later need.
    pub(super) fn prepare(&mut self, config: &mut TracefsConfig) {
        if config.userspace.is_none() && Properties::find().is_some() {
            config.userspace = Some(self.no_tags());
        }
        self.userspace = config.userspace.as_ref().map_or((0, false), |all| (all.tags, all.core_services));
    }

    fn no_tags(&self) -> UserspaceRequest {
        UserspaceRequest {
            user_initiated: self.request.buffer.instance.is_none(),
            ..UserspaceRequest::default()
        }
    }

    /// Standard input.
    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Carries out the commands that have come, of which there must be some, and answers them. Returns
    /// whether there may be more.
    pub(super) fn obey(&mut self, settings: &mut SettingsGuard) -> bool {
        let mut part = [0; 4096];
        let len = match self.input.read(&mut part) {
            Ok(0) => return false,
            Ok(len) => len,
            Err(error) => {
                return matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
            }
        };
        for byte in &part[..len] {
            if *byte != b'\n' {
                // The rest of a line that is too long makes no difference.
                if self.line.len() <= MAX_COMMAND_BYTES {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            complain(format_args!("{}", self.command(&line, settings)));
        }
        true
    }

    /// Carries out the command on a line. Returns the answer.
    fn command(&mut self, line: &[u8], settings: &mut SettingsGuard) -> String {
        let line = std::str::from_utf8(line).ok().filter(|line| line.len() <= MAX_COMMAND_BYTES);
        let switched = match line.and_then(CategorySwitch::parse) {
            Some(switch) => self.switch(&switch, settings),
            None => Err(RecordError::NoCommand),
        };
        match switched {
            Ok(notes) => format!("{notes}{SWITCHED}{}", self.request.names.join(" ")),
            Err(error) => format!("{REFUSED}{error}"),
        }
    }

    /// Returns a line for each event that could not be switched.
    fn switch(
        &mut self,
        switch: &CategorySwitch,
        settings: &mut SettingsGuard,
    ) -> Result<String, RecordError> {
        let tracefs = settings.tracefs().clone();
        for name in switch.on.iter().chain(&switch.off) {
            select_events(&tracefs, std::slice::from_ref(name), false)?;
        }
        let mut names = self.request.names.clone();
        names.retain(|name| !switch.off.contains(name) && !switch.on.contains(name));
        names.extend_from_slice(&switch.on);
        let before = self.request.clone();
        let notes = match self.apply(RecordingRequest { names, ..before.clone() }, settings) {
            Ok(notes) => notes,
            Err(error) => {
                // A part of it may have been changed.
                let _ = self.apply(before, settings);
                return Err(error);
            }
        };
        Ok(notes.iter().map(|note| format!("{note}\n")).collect())
    }

    fn apply(
        &mut self,
        request: RecordingRequest,
        settings: &mut SettingsGuard,
    ) -> Result<Vec<String>, RecordError> {
        let (config, _) = request.resolve(&settings.tracefs().clone(), WhenFull::Overwrite)?;
        let userspace = config.userspace.unwrap_or_else(|| self.no_tags());
        let now = (userspace.tags, userspace.core_services);
        let changed = (now != self.userspace).then_some(&userspace);
        let notes = tracefs_config::switch(settings, &config.events, changed)?;
        self.userspace = now;
        self.request = request;
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Tracefs;
    use super::super::request::BufferRequest;
    use super::super::saved_settings::StateDir;
    use std::io::Write;

    use super::*;

    const SWITCH: &str = "events/sched/sched_switch/enable";
    const WAKEUP: &str = "events/sched/sched_wakeup/enable";
    /// The list of events that are on: all of them, so that each is looked at.
    const ALL: &str = "sched:sched_switch\nsched:sched_wakeup\npower:cpu_frequency\npower:cpu_idle\n";
    const FREQUENCY: &str = "events/power/cpu_frequency/enable";
    const IDLE: &str = "events/power/cpu_idle/enable";

    fn put(dir: &Path, file: &str, text: &str) {
        let path = dir.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A directory that stands for a tracefs, and what records `sched` of it.
    fn recording() -> (tempfile::TempDir, SettingsGuard, LiveCategories, io::PipeWriter) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("tracing_on", "1"),
            ("set_event", ALL),
            (SWITCH, "0"),
            (WAKEUP, "0"),
            (FREQUENCY, "0"),
            (IDLE, "1"),
        ] {
            put(dir.path(), file, text);
        }
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        let buffer = BufferRequest { tracefs: None, instance: None, state_dir: None, force: false };
        let request = RecordingRequest {
            buffer,
            names: vec!["sched".to_owned()],
            apps: Vec::new(),
            functions: None,
            clock: None,
            buffer_kb: 64,
            exclude_self: false,
            is_lenient: true,
        };
        let (input, commands) = io::pipe().unwrap();
        let mut categories = LiveCategories {
            input: std::os::fd::OwnedFd::from(input).into(),
            line: Vec::new(),
            request: request.clone(),
            userspace: (0, false),
        };
        categories.apply(request, &mut settings).unwrap();
        (dir, settings, categories, commands)
    }

    fn values(settings: &SettingsGuard) -> [String; 3] {
        [SWITCH, FREQUENCY, IDLE].map(|file| settings.tracefs().read(file).unwrap())
    }

    #[test]
    fn categories_are_switched_and_at_the_end_everything_is_as_it_was_before() {
        let (dir, mut settings, mut categories, _commands) = recording();
        assert_eq!(values(&settings), ["1", "0", "0"]);
        let answer = categories.command(b"on freq idle off sched", &mut settings);
        assert_eq!(
            (answer.as_str(), values(&settings)),
            ("categories: freq idle", ["0", "1", "1"].map(str::to_owned))
        );
        for _ in 0..3 {
            assert_eq!(categories.command(b"off idle sched", &mut settings), "categories: freq");
            assert_eq!(values(&settings), ["0", "1", "0"]);
            assert_eq!(categories.command(b"on sched idle", &mut settings), "categories: freq sched idle");
            assert_eq!(values(&settings), ["1", "1", "1"]);
        }
        let written = settings.restore().written;
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let after = [SWITCH, FREQUENCY, IDLE].map(|file| tracefs.read(file).unwrap());
        assert_eq!(
            (after, written),
            (["0", "0", "1"].map(str::to_owned), 3),
            "each setting is put back once"
        );
    }

    #[test]
    fn what_is_refused_changes_nothing_and_is_told_why() {
        let (_dir, mut settings, mut categories, _commands) = recording();
        let long = [&b"on "[..], &[b'x'; 9000]].concat();
        for (command, reason) in [
            (&b"on freq shed"[..], "did you mean \"sched\"?"),
            (b"on freq mmc", "\"mmc\" is not supported"),
            (b"off sched", "nothing to record"),
            (b"on ../../etc", "a command is `on NAME"),
            (b"on \xff", "a command is `on NAME"),
            (b"", "a command is `on NAME"),
            (&long, "a command is `on NAME"),
        ] {
            let answer = categories.command(command, &mut settings);
            assert!(answer.starts_with(REFUSED) && answer.contains(reason), "{answer}");
            assert_eq!((values(&settings), answer.lines().count()), (["1", "0", "0"].map(str::to_owned), 1));
        }
    }

    #[test]
    fn commands_come_in_any_pieces_until_the_input_ends() {
        let (_dir, mut settings, mut categories, mut commands) = recording();
        for (piece, frequency) in [("on fr", "0"), ("eq\non i", "1"), ("dle\noff freq\n", "0")] {
            commands.write_all(piece.as_bytes()).unwrap();
            assert!(categories.obey(&mut settings));
            assert_eq!(values(&settings)[1], frequency, "after {piece:?}");
        }
        let long = [b'x'; 4096];
        for _ in 0..8 {
            commands.write_all(&long).unwrap();
            assert!(categories.obey(&mut settings));
        }
        assert!(categories.line.len() <= MAX_COMMAND_BYTES + 1, "{}", categories.line.len());
        drop(commands);
        assert!(!categories.obey(&mut settings));
    }
}
