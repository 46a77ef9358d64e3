//! Files to and from a device: adbd's service `sync:`. Described in AOSP, packages/modules/adb, `SYNC.TXT`
//! and `file_sync_protocol.h`. All numbers are little-endian.

use std::io::{Read, Write};

use super::connection::Connection;
use super::error::AdbError;
use super::pace::Pace;
use super::server::Server;

/// The largest piece of a file that either side may send, bytes.
const MAX_DATA_BYTES: usize = 64 << 10;

/// The longest path, bytes.
const MAX_PATH_BYTES: usize = 1024;

/// A device that sends more pieces without a byte in a row does not speak the protocol: adbd sends none.
const MAX_EMPTY_PIECES: u32 = 1000;

/// An error text is cut after this many bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// The kind and the length of a file, as far as adbd tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteStat {
    /// The kind of file and its permissions, as in `st_mode`.
    pub mode: u32,
    /// Its length, bytes. Devices without `stat_v2` tell it modulo 4 GiB.
    pub size: u64,
    /// Whether the length is exact.
    pub is_exact: bool,
}

impl RemoteStat {
    /// Whether it is an ordinary file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}

/// A connection to a device's service of files.
#[derive(Debug)]
pub struct Sync {
    connection: Connection,
    stat_v2: bool,
    serial: String,
}

impl Sync {
    /// Connects to the service. `stat_v2` says whether the device offers it.
    ///
    /// # Errors
    /// [`AdbError`].
    pub(super) fn open(server: &Server, serial: &str, stat_v2: bool) -> Result<Sync, AdbError> {
        let connection = server.open(serial, "sync:", format!("asking {serial} for files"))?;
        Ok(Sync { connection, stat_v2, serial: serial.to_owned() })
    }

    /// Asks for the kind and the length of `path`; `None` if there is no file, or none that adbd can see.
    ///
    /// # Errors
    /// [`AdbError`].
    pub fn stat(&mut self, path: &str) -> Result<Option<RemoteStat>, AdbError> {
        self.connection.set_action(format!("looking for {path} on {}", self.serial));
        let stat = self.read_stat(path)?;
        log::debug!("adb: {}: {stat:?}", self.connection.action());
        Ok(stat)
    }

    fn read_stat(&mut self, path: &str) -> Result<Option<RemoteStat>, AdbError> {
        if self.stat_v2 {
            self.send(b"STA2", path)?;
            let mut reply = [0; 72];
            self.connection.read_exact(&mut reply)?;
            self.expect(&reply, b"STA2")?;
            let error = word(&reply, 4);
            let mode = word(&reply, 24);
            let size = u64::from(word(&reply, 40)) | u64::from(word(&reply, 44)) << 32;
            return Ok((error == 0).then_some(RemoteStat { mode, size, is_exact: true }));
        }
        self.send(b"STAT", path)?;
        let mut reply = [0; 16];
        self.connection.read_exact(&mut reply)?;
        self.expect(&reply, b"STAT")?;
        let mode = word(&reply, 4);
        let size = u64::from(word(&reply, 8));
        Ok((mode != 0).then_some(RemoteStat { mode, size, is_exact: false }))
    }

    /// Writes a file on the device: everything that `from` gives, with these permission bits.
    ///
    /// # Errors
    /// [`AdbError::Refused`] with the device's own words (no space, not permitted), or an error of the
    /// connection. What was written until then may be left under the name.
    pub fn push(
        &mut self,
        from: &mut dyn Read,
        path: &str,
        permissions: u32,
        mtime: u32,
    ) -> Result<(), AdbError> {
        self.connection.set_action(format!("pushing {path} to {}", self.serial));
        let mut total = 0;
        self.send(b"SEND", &format!("{path},{}", 0o100_000 | permissions))?;
        let mut piece = vec![0; 8 + MAX_DATA_BYTES];
        loop {
            let length = fill(from, &mut piece[8..]).map_err(|source| self.local(source))?;
            if length == 0 {
                break;
            }
            piece[..4].copy_from_slice(b"DATA");
            piece[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            if let Err(lost) = self.connection.write(&piece[..8 + length]) {
                // The device says why before it closes.
                return Err(match self.read_push_answer() {
                    Err(refused @ AdbError::Refused { .. }) => refused,
                    _ => lost,
                });
            }
            total += length;
        }
        self.connection.write(&[&b"DONE"[..], &mtime.to_le_bytes()].concat())?;
        self.read_push_answer()?;
        log::debug!("adb: {}: {total} bytes", self.connection.action());
        Ok(())
    }

    /// Reads the device's answer to a push.
    fn read_push_answer(&mut self) -> Result<(), AdbError> {
        let (id, length) = self.read_head()?;
        match &id {
            b"OKAY" => Ok(()),
            b"FAIL" => Err(self.read_refusal(length)?),
            other => Err(self.connection.protocol_error(format!("the answer is {}", other.escape_ascii()))),
        }
    }

    /// Reads a file of the device into `to`. Returns its length.
    ///
    /// # Errors
    /// [`AdbError::Refused`] with the device's own words, [`AdbError::Local`] if `to` takes no bytes, or an
    /// error of the connection.
    pub fn pull(&mut self, path: &str, to: &mut dyn Write) -> Result<u64, AdbError> {
        self.connection.set_action(format!("pulling {path} from {}", self.serial));
        self.send(b"RECV", path)?;
        let mut piece = vec![0; MAX_DATA_BYTES];
        let mut total = 0;
        let mut pace = Pace::new(self.connection.timeout());
        let mut empty_pieces = 0;
        loop {
            let (id, length) = self.read_head()?;
            match &id {
                b"DATA" if length == 0 => {
                    pace.add(0, self.connection.action())?;
                    empty_pieces += 1;
                    if empty_pieces > MAX_EMPTY_PIECES {
                        let reason = "pieces of a file without a byte, one after the other".to_owned();
                        return Err(self.connection.protocol_error(reason));
                    }
                }
                b"DATA" if length <= MAX_DATA_BYTES => {
                    empty_pieces = 0;
                    let bytes = &mut piece[..length];
                    self.connection.read_exact(bytes)?;
                    to.write_all(bytes).map_err(|source| self.local(source))?;
                    total += length as u64;
                    pace.add(length as u64, self.connection.action())?;
                }
                b"DONE" => {
                    log::debug!("adb: {}: {total} bytes", self.connection.action());
                    return Ok(total);
                }
                b"FAIL" => return Err(self.read_refusal(length)?),
                other => {
                    let reason =
                        format!("{} of {length} bytes in the middle of a file", other.escape_ascii());
                    return Err(self.connection.protocol_error(reason));
                }
            }
        }
    }

    fn send(&mut self, id: &[u8; 4], text: &str) -> Result<(), AdbError> {
        if text.len() > MAX_PATH_BYTES {
            let action = self.connection.action().to_owned();
            let text = format!("a path of {} bytes is too long ({MAX_PATH_BYTES} at most)", text.len());
            return Err(AdbError::Refused { action, text });
        }
        self.connection.write(&[&id[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat())
    }

    fn read_head(&mut self) -> Result<([u8; 4], usize), AdbError> {
        let mut head = [0; 8];
        self.connection.read_exact(&mut head)?;
        let [a, b, c, d, ..] = head;
        Ok(([a, b, c, d], word(&head, 4) as usize))
    }

    /// Reads the text of a FAIL.
    fn read_refusal(&mut self, length: usize) -> Result<AdbError, AdbError> {
        let mut text = vec![0; length.min(MAX_TEXT_BYTES)];
        self.connection.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        log::debug!("adb: {}: refused: {text}", self.connection.action());
        Ok(AdbError::Refused { action: self.connection.action().to_owned(), text })
    }

    fn expect(&self, reply: &[u8], id: &[u8; 4]) -> Result<(), AdbError> {
        if reply.starts_with(id) {
            return Ok(());
        }
        Err(self.connection.protocol_error(format!("the answer is {}", reply[..4].escape_ascii())))
    }

    fn local(&self, source: std::io::Error) -> AdbError {
        AdbError::Local { action: self.connection.action().to_owned(), source }
    }
}

/// The 32-bit number at this offset, which is inside of `bytes`.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Reads until `to` is full or the input ends.
fn fill(from: &mut dyn Read, to: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) => break,
            read => filled += read?,
        }
    }
    Ok(filled)
}
