//! The least speed of a transfer: a device that sends a byte now and then is never silent, and never ends.

use std::time::{Duration, Instant};

use super::error::AdbError;

/// In each stretch of time in which a device may be silent, at least so many bytes must come. The slowest
/// link that adb has, Bluetooth, brings a hundred times as many in the usual 30 s.
const MIN_BYTES: u64 = 16 << 10;

/// Watches the speed of one transfer.
#[derive(Debug)]
pub struct Pace {
    stretch: Duration,
    began: Instant,
    /// The bytes that have come since then.
    bytes: u64,
}

impl Pace {
    /// A transfer that begins now. `stretch` is the time in which the device may be silent.
    pub fn new(stretch: Duration) -> Pace {
        Pace { stretch, began: Instant::now(), bytes: 0 }
    }

    /// Counts bytes that have come, none where something came that has no byte.
    ///
    /// # Errors
    /// [`AdbError::TooSlow`], which names `action`, where too few came for too long.
    pub fn add(&mut self, bytes: u64, action: &str) -> Result<(), AdbError> {
        self.add_at(bytes, Instant::now(), action)
    }

    fn add_at(&mut self, bytes: u64, now: Instant, action: &str) -> Result<(), AdbError> {
        self.bytes += bytes;
        if now - self.began < self.stretch {
            return Ok(());
        }
        if self.bytes < MIN_BYTES {
            let action = action.to_owned();
            return Err(AdbError::TooSlow { action, bytes: self.bytes, seconds: self.stretch.as_secs() });
        }
        self.began = now;
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_is_too_slow_and_a_slow_link_is_not() {
        let stretch = Duration::from_secs(30);
        let add = |pace: &mut Pace, bytes, seconds| {
            let now = pace.began + Duration::from_secs(seconds);
            pace.add_at(bytes, now, "pulling x")
        };
        let mut pace = Pace::new(stretch);
        for seconds in 1..30 {
            add(&mut pace, 1, seconds).unwrap();
        }
        let error = add(&mut pace, 1, 31).unwrap_err().to_string();
        assert_eq!(
            error,
            "pulling x: only 30 bytes came within 30 s: is the device awake and its cable good?"
        );
        // A long transfer begins a new stretch again and again.
        let mut pace = Pace::new(stretch);
        for _ in 0..100 {
            add(&mut pace, MIN_BYTES / 2, 15).unwrap();
            add(&mut pace, MIN_BYTES / 2, 31).unwrap();
        }
        // Pieces without a byte do not count, however many they are.
        for _ in 0..1000 {
            add(&mut pace, 0, 29).unwrap();
        }
        assert!(add(&mut pace, 0, 30).is_err());
    }
}
