//! Writers: one module per output format, and the table [`FORMATS`] with one row per format.
//!
//! To add a format: write a module with a type that implements [`TimelineSink`], and add its row to
//! [`FORMATS`].

mod chrome_json;
pub mod convert;
mod critical_path;
mod csv;
pub(crate) mod explain;
mod firefox;
mod held;
mod held_memory;
pub mod launches;
mod perfetto;
mod perfetto_zip;
pub(crate) mod report_page;
pub mod runs;
pub mod systrace;
mod trace_dat;
pub(crate) mod trace_tables;
mod writer_thread;

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use self::report_page::PageVideos;
use crate::art::Mapping;
use crate::formats::input::Input;
use crate::timeline::TimelineSink;

/// The ending of a directory of tables, which `convert` writes as a dataset has them of each trace. It is no
/// row of [`FORMATS`], whose outputs are files.
pub const TABLES_ENDING: &str = ".parquet";

pub use held::{ConversionLosses, Held, formats_that_hold, matrix};
pub use held_memory::HeldLimit;

/// The output of an exporter. Exporters hand over large pieces, so the writer needs no buffer of its own.
pub type Out = Box<dyn Write + Send>;

/// An output, and the name that its errors begin with. A write that a signal has interrupted is repeated
/// here: flate2 would end with that error, and zip would leave out the bytes.
pub struct NamedOut<W> {
    /// The output's path as given, or another name for people.
    name: String,
    out: W,
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

/// One format that can be written: a row of [`FORMATS`].
pub struct OutputFormat {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// Endings of file names that choose this format.
    pub endings: &'static [&'static str],
    /// The programs that open this format.
    pub viewers: &'static str,
    /// The column of this format in the table [`held::HELD`], which says what the format holds.
    column: held::HeldColumn,
    /// Makes the writer.
    pub create: Create,
}

/// The function that makes the writer of a format.
#[derive(Clone, Copy)]
pub enum Create {
    /// The writer writes from front to back: to a file, a pipe, or a compressor.
    Stream(fn(Out) -> Box<dyn TimelineSink>),
    /// The same, but the writer keeps the whole timeline in memory until its end.
    Holding(fn(Out, HeldLimit) -> Box<dyn TimelineSink>),
    /// The same for a page, which shows the videos among the inputs.
    Page(CreatePage),
    /// The writer writes from front to back. The other function makes a writer that also passes through the
    /// packets of inputs that have the output's format.
    PassThrough(fn(Out) -> Box<dyn TimelineSink>, CreatePassing),
    /// The writer makes an archive that holds the method traces among the inputs unchanged. An archive
    /// needs a file to seek in. The first function checks the inputs before the file is created, and
    /// returns the reason if no archive can be made of them.
    Archive(fn(&[Input]) -> Result<(), &'static str>, CreateArchive),
}

/// Makes a writer that passes through the packets of those inputs that have the output's format. The mapping
/// gives obfuscated names in these packets back.
pub type CreatePassing = for<'a> fn(Out, &'a [Input], Option<&'a Mapping<'a>>) -> Box<dyn TimelineSink + 'a>;

/// Makes the writer of a page that shows videos.
pub type CreatePage = for<'a> fn(Out, HeldLimit, PageVideos<'a>) -> Box<dyn TimelineSink + 'a>;

/// Makes the writer of an archive onto a file, with the inputs of the timeline.
pub type CreateArchive = for<'a> fn(NamedOut<File>, &'a [Input]) -> io::Result<Box<dyn TimelineSink + 'a>>;

/// Every format that can be written. Where two endings fit a file's name, the first row with such an ending
/// counts.
pub static FORMATS: &[OutputFormat] = &[
    OutputFormat {
        name: "perfetto",
        endings: &[".pftrace", ".perfetto-trace", ".perfetto"],
        viewers: PERFETTO_VIEWERS,
        column: held::HeldColumn::Perfetto,
        create: Create::PassThrough(
            |out| Box::new(perfetto::PerfettoWriter::new(out)),
            |out, inputs, mapping| Box::new(perfetto::PerfettoWriter::passing(out, inputs, mapping)),
        ),
    },
    OutputFormat {
        name: "firefox",
        endings: &[".firefox.json", ".profile.json"],
        viewers: "https://profiler.firefox.com (it stays on this computer)",
        column: held::HeldColumn::Firefox,
        create: Create::Holding(firefox::create),
    },
    OutputFormat {
        name: "chrome-json",
        endings: &[".json"],
        viewers: "https://ui.perfetto.dev, chrome://tracing, speedscope",
        column: held::HeldColumn::ChromeJson,
        create: Create::Stream(chrome_json::create),
    },
    OutputFormat {
        name: "csv",
        endings: &[".csv"],
        viewers: "a spreadsheet, pandas, DuckDB",
        column: held::HeldColumn::Csv,
        create: Create::Stream(csv::create),
    },
    OutputFormat {
        name: "systrace-html",
        endings: &[".systrace.html"],
        viewers: "any browser, offline; https://ui.perfetto.dev reads it too",
        column: held::HeldColumn::SystraceHtml,
        create: Create::Page(report_page::create_with_text),
    },
    OutputFormat {
        name: "report",
        endings: &[".html", ".htm"],
        viewers: "any browser, offline",
        column: held::HeldColumn::Report,
        create: Create::Page(report_page::create),
    },
    OutputFormat {
        name: "trace-dat",
        endings: &[".dat"],
        viewers: "trace-cmd report, KernelShark",
        column: held::HeldColumn::TraceDat,
        create: Create::Stream(trace_dat::create),
    },
    OutputFormat {
        name: "systrace",
        endings: &[".txt", ".systrace", ".ftrace"],
        viewers: "https://ui.perfetto.dev, chrome://tracing, Catapult, or any pager",
        column: held::HeldColumn::Systrace,
        create: Create::Stream(|out| Box::new(systrace::SystraceWriter::new(out))),
    },
    OutputFormat {
        name: "perfetto-zip",
        endings: &[".zip"],
        viewers: PERFETTO_VIEWERS,
        column: held::HeldColumn::PerfettoZip,
        create: Create::Archive(perfetto_zip::check, perfetto_zip::create),
    },
];

const PERFETTO_VIEWERS: &str = "https://ui.perfetto.dev (it stays on this computer), or trace_processor";

impl OutputFormat {
    /// The format that a path's ending names; a further ending `.gz` is ignored.
    pub fn of_path(path: &Path) -> Option<&'static OutputFormat> {
        // As bytes: the rest of the name need not be text.
        let name = path.file_name()?.as_encoded_bytes().to_ascii_lowercase();
        let name = name.strip_suffix(b".gz").unwrap_or(&name);
        let is_of = |format: &&OutputFormat| format.endings.iter().any(|end| name.ends_with(end.as_bytes()));
        FORMATS.iter().find(is_of)
    }

    /// The format called `name`, or with the ending `name`.
    pub fn of_name(name: &str) -> Option<&'static OutputFormat> {
        let has_ending = |format: &&OutputFormat| {
            format.endings.iter().any(|ending| ending.trim_start_matches('.') == name.trim_start_matches('.'))
        };
        FORMATS.iter().find(|format| format.name == name).or_else(|| FORMATS.iter().find(has_ending))
    }
}

/// Makes the writer of the format called `name`, which writes to `out`; `None` where no format that is
/// written from front to back has this name.
pub fn create(name: &str, out: Out) -> Option<Box<dyn TimelineSink>> {
    match OutputFormat::of_name(name)?.create {
        Create::Stream(create) | Create::PassThrough(create, _) => Some(create(out)),
        Create::Holding(create) => Some(create(out, HeldLimit::default())),
        Create::Page(create) => Some(create(out, HeldLimit::default(), PageVideos::default())),
        Create::Archive(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::formats::ReadReport;
    use crate::timeline::{DataKind, Edge, EdgeKind, MergeSummary, MethodId};

    #[test]
    fn every_row_creates_a_writer_of_an_empty_timeline() {
        let summary = MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default());
        for format in FORMATS {
            let file = tempfile::NamedTempFile::new().unwrap();
            let out = file.reopen().unwrap();
            let mut sink = match format.create {
                Create::Stream(create) | Create::PassThrough(create, _) => create(Box::new(out)),
                Create::Holding(create) => create(Box::new(out), HeldLimit::default()),
                Create::Page(create) => create(Box::new(out), HeldLimit::default(), PageVideos::default()),
                Create::Archive(_, create) => {
                    create(NamedOut { name: format.name.to_owned(), out }, &[]).unwrap()
                }
            };
            crate::tracks::tests::push_example(sink.as_mut(), "");
            sink.finish(&summary).unwrap();
            drop(sink);
            assert!(file.as_file().metadata().unwrap().len() > 0, "{}", format.name);
        }
    }

    #[test]
    fn a_method_call_is_in_the_output_of_each_format_that_holds_methods_and_of_no_other() {
        for format in FORMATS {
            let file = tempfile::NamedTempFile::new().unwrap();
            let Some(mut sink) = create(format.name, Box::new(file.reopen().unwrap())) else { continue };
            crate::tracks::tests::push_example(sink.as_mut(), crate::tracks::tests::TEXT);
            // A call that is long enough for formats that hold calls as samples.
            let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
            let call = [
                edge(Timestamp(1_000_060_000), EdgeKind::Enter),
                edge(Timestamp(1_000_960_000), EdgeKind::Exit),
            ];
            sink.edges(0, &call).unwrap();
            sink.finish(&MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default())).unwrap();
            drop(sink);
            let mut written = std::fs::read(file.path()).unwrap();
            if matches!(format.column, held::HeldColumn::Report | held::HeldColumn::SystraceHtml) {
                // The names of a page are compressed.
                written = support::report_page::Page::read(file.path()).strings.join(" ").into_bytes();
            }
            let has_call = memchr::memmem::find(&written, b"a.B.run").is_some()
                || (memchr::memmem::find(&written, b"a.B").is_some()
                    && memchr::memmem::find(&written, b"run").is_some());
            assert_eq!(has_call, format.holds(DataKind::Methods), "{}", format.name);
        }
    }

    #[test]
    fn each_name_and_each_ending_chooses_one_format() {
        for (at, format) in FORMATS.iter().enumerate() {
            let name = format.name;
            assert_eq!(OutputFormat::of_name(name).map(|f| f.name), Some(name));
            for ending in format.endings {
                let path = format!("dir.csv/X{}.gz", ending.to_uppercase().to_lowercase());
                assert_eq!(OutputFormat::of_path(Path::new(&path)).map(|f| f.name), Some(name), "{path}");
                assert!(FORMATS[..at].iter().all(|f| !f.endings.contains(ending)), "{ending} twice");
            }
        }
        assert!(OutputFormat::of_path(Path::new("trace")).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_ending_of_a_name_need_be_text() {
        use std::os::unix::ffi::OsStrExt;

        let format = |name: &[u8]| OutputFormat::of_path(Path::new(std::ffi::OsStr::from_bytes(name)));
        assert_eq!(format(b"\xff\xfe.pftrace").map(|format| format.name), Some("perfetto"));
        assert_eq!(format(b"\xff.CSV.gz").map(|format| format.name), Some("csv"));
        assert!(format(b"x.pftrace\xff").is_none());
    }

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
