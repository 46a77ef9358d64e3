//! A device at the other end of adb.

use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::facts::Facts;
use super::privilege::Privilege;
use super::words::command_line;
use crate::adb::{AdbError, AttachedDevice, Server, ShellOutput, Transport};

/// How long a short command may be silent.
pub const COMMAND_TIME: Duration = Duration::from_secs(30);

/// How long `su` may take, which may ask somebody at the device.
const SU_TIME: Duration = Duration::from_secs(10);

/// How long adbd may take to come back as root.
const ROOT_TIME: Duration = Duration::from_secs(30);

/// Between two looks for a device that is away.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// A device with what is known of it.
#[derive(Debug, Clone)]
pub struct Device {
    transport: Transport,
    /// What is known of it.
    pub facts: Facts,
}

/// Which of the attached devices is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The only one.
    Only,
    /// All that are attached.
    All,
    /// Those of these serials.
    Serials(Vec<String>),
}

/// The serials of the devices that are meant. Those of network addresses that the server has forgotten are
/// connected. Of a device that is named, its state is checked when it is used.
///
/// # Errors
/// [`AdbError::NoDevice`], [`AdbError::SeveralDevices`], [`AdbError::NoSuchDevice`], or the state of the only
/// device.
pub fn choose(server: &Server, choice: &Choice) -> Result<Vec<String>, AdbError> {
    let attached = server.devices()?;
    let serials = |devices: &[AttachedDevice]| devices.iter().map(|d| d.serial.clone()).collect::<Vec<_>>();
    match choice {
        Choice::Serials(wanted) => {
            for serial in wanted {
                check_attached(server, serial)?;
            }
            Ok(wanted.clone())
        }
        _ if attached.is_empty() => Err(AdbError::NoDevice),
        Choice::All => Ok(serials(&attached)),
        Choice::Only => {
            let usable: Vec<_> = attached.iter().filter(|device| device.is_usable()).cloned().collect();
            match (usable.as_slice(), attached.as_slice()) {
                ([only], _) => Ok(vec![only.serial.clone()]),
                ([], [only, ..]) => only.check().map(|()| serials(&attached)),
                (several, _) => Err(AdbError::SeveralDevices { serials: serials(several) }),
            }
        }
    }
}

/// Fails unless the server knows a device of this serial. A network address that it has forgotten is
/// connected.
fn check_attached(server: &Server, serial: &str) -> Result<(), AdbError> {
    let find = || server.devices().map(|all| (all.iter().find(|d| d.serial == serial).cloned(), all));
    let (mut found, mut all) = find()?;
    if found.as_ref().is_none_or(|device| device.state == "offline") && serial.contains(':') {
        let _ = server.reconnect(serial);
        (found, all) = find()?;
    }
    match found {
        Some(_) => Ok(()),
        None => {
            let attached = all.into_iter().map(|device| device.serial).collect();
            Err(AdbError::NoSuchDevice { serial: serial.to_owned(), attached })
        }
    }
}

impl Device {
    /// Reaches a device and asks it what it is.
    ///
    /// # Errors
    /// [`AdbError`]: also the device's state, if it cannot be used.
    pub fn open(server: &Server, serial: &str) -> Result<Device, AdbError> {
        check_attached(server, serial)?;
        if let Some(device) = server.devices()?.iter().find(|device| device.serial == serial) {
            device.check()?;
        }
        let transport = Transport::open(server, serial)?;
        let facts = ask_facts(&transport)?;
        Ok(Device { transport, facts })
    }

    /// The device's name.
    pub fn serial(&self) -> &str {
        self.transport.serial()
    }

    /// The way to it.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The most rights that commands can have.
    pub fn privilege(&self) -> Privilege {
        match (self.facts.uid, self.facts.su) {
            (Some(0), _) => Privilege::AdbdRoot,
            (_, Some(dialect)) => Privilege::Su(dialect),
            _ => Privilege::Shell,
        }
    }

    /// Runs a shell script with these rights. It may be silent for at most `patience`.
    ///
    /// # Errors
    /// [`AdbError`]. A script that fails is no error.
    pub fn run_script(
        &self,
        script: &str,
        privilege: Privilege,
        patience: Duration,
    ) -> Result<ShellOutput, AdbError> {
        self.transport.run(&privilege.command(script), patience)
    }

    /// Runs a command, each of whose words arrives as it is.
    ///
    /// # Errors
    /// [`AdbError`]. A command that fails is no error.
    pub fn run<S: AsRef<str>>(
        &self,
        words: &[S],
        privilege: Privilege,
        patience: Duration,
    ) -> Result<ShellOutput, AdbError> {
        self.run_script(&command_line(words), privilege, patience)
    }

    /// Waits until the device answers again, for at most `time`. `has_ended` ends the waiting early.
    ///
    /// # Errors
    /// The last error.
    pub fn wait_until_back(&self, time: Duration, has_ended: &dyn Fn() -> bool) -> Result<(), AdbError> {
        let give_up = Instant::now() + time;
        loop {
            let error = match self.answers() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if Instant::now() > give_up || has_ended() {
                return Err(error);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn answers(&self) -> Result<(), AdbError> {
        let server = self.transport.server();
        server.ensure_running()?;
        check_attached(server, self.serial())?;
        self.transport.run(":", SU_TIME).map(drop)
    }

    /// Has adbd start anew as root, where the build permits it, and asks the device anew what it is.
    ///
    /// # Errors
    /// [`RemoteError::Failed`] with adbd's words if it does not become root.
    pub fn become_root(&mut self) -> Result<(), RemoteError> {
        if self.facts.uid == Some(0) {
            return Ok(());
        }
        let said = self.transport.restart_as_root()?;
        // adbd goes away a moment after its answer.
        std::thread::sleep(LOOK_INTERVAL);
        self.wait_until_back(ROOT_TIME, &|| false)?;
        self.facts = ask_facts(&self.transport)?;
        match self.facts.uid {
            Some(0) => Ok(()),
            _ => Err(RemoteError::Failed {
                serial: self.serial().to_owned(),
                what: "adb root".to_owned(),
                why: if said.is_empty() { "adbd is not root afterwards".to_owned() } else { said },
            }),
        }
    }
}

/// Asks a device what it is. A `su` that does not answer in time counts as one that refuses.
fn ask_facts(transport: &Transport) -> Result<Facts, AdbError> {
    let mut output = ShellOutput::default();
    match transport.start(&Facts::script())?.finish(SU_TIME, &mut output) {
        Err(AdbError::Stalled { .. }) if Facts::are_complete_without_su(&output.text()) => {}
        ended => ended?,
    }
    Ok(Facts::parse(&output.text()))
}
