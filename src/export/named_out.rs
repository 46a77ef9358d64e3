//! An output whose errors name it, and which repeats writes that a signal has interrupted.

use std::io::{self, Seek, SeekFrom, Write};

/// An output, and the name that its errors begin with. A write that a signal has interrupted is repeated
/// here: flate2 would end with that error, and zip would leave out what it wrote.
pub struct NamedOut<W> {
    /// The output's path as given, or another name for people.
    pub(super) name: String,
    pub(super) out: W,
}

impl<W> NamedOut<W> {
    fn name(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.name))
    }
}

impl<W: Write> Write for NamedOut<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.out.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| self.name(error)),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.name(error))
    }
}

impl<W: Seek> Seek for NamedOut<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.out.seek(to).map_err(|error| self.name(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every second write is interrupted.
    #[derive(Default)]
    struct Interrupted {
        written: Vec<u8>,
        calls: usize,
    }

    impl Write for Interrupted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_gzip_stream_is_whole_though_signals_interrupt_its_writes() {
        let mut out = NamedOut { name: "x.gz".into(), out: Interrupted::default() };
        let mut gzip = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
        gzip.write_all(b"some text").unwrap();
        gzip.finish().unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&out.out.written[..]), &mut text).unwrap();
        assert_eq!(text, "some text");
    }
}
