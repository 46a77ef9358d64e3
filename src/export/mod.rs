//! Writers of what people open, one format a module, and the one place where one is chosen.
//!
//! To add one: a module with a type that implements [`TimelineSink`], a [`Format`] with its name and endings, and
//! its line in [`create`].

mod background;
mod chrome_json;
mod csv;
mod firefox;
mod perfetto;
pub mod perfetto_zip;
mod story;
pub mod systrace;
mod systrace_html;
mod trace_dat;

use std::io::Write;
use std::path::Path;

use crate::timeline::TimelineSink;

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protobuf: `.pftrace`, `.perfetto-trace`.
    Perfetto,
    /// Chrome's JSON trace format: `.json`.
    ChromeJson,
    /// A table of slices, states and counters: `.csv`.
    Csv,
    /// trace-cmd's file: `.dat`.
    TraceDat,
    /// systrace's text: `.txt`, `.systrace`.
    Systrace,
    /// The Firefox profiler's JSON: `.firefox.json`.
    Firefox,
    /// systrace's page with a viewer of its own: `.html`.
    SystraceHtml,
}

impl Format {
    /// Every format, by the name that `--format` takes, with the endings that choose it.
    pub const ALL: &[(Format, &str, &[&str])] = &[
        (Format::Perfetto, "perfetto", &[".pftrace", ".perfetto-trace", ".perfetto"]),
        (Format::Firefox, "firefox", &[".firefox.json", ".profile.json"]),
        (Format::ChromeJson, "chrome-json", &[".json"]),
        (Format::Csv, "csv", &[".csv"]),
        (Format::SystraceHtml, "systrace-html", &[".html", ".htm"]),
        (Format::TraceDat, "trace-dat", &[".dat"]),
        (Format::Systrace, "systrace", &[".txt", ".systrace", ".ftrace"]),
    ];

    /// The format that a path's ending names; a further `.gz` does not hide it.
    pub fn of_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        Format::ALL.iter().find(|(.., ends)| ends.iter().any(|e| name.ends_with(e))).map(|(f, ..)| *f)
    }

    /// The format called `name`.
    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.iter().find(|(_, n, _)| *n == name).map(|(f, ..)| *f)
    }

    /// With what people open it.
    pub fn viewers(self) -> &'static str {
        match self {
            Format::Perfetto => "https://ui.perfetto.dev (it stays on this computer), or trace_processor",
            Format::ChromeJson => "https://ui.perfetto.dev, chrome://tracing, speedscope",
            Format::Csv => "a spreadsheet, pandas, DuckDB",
            Format::TraceDat => "trace-cmd report, KernelShark",
            Format::Systrace => "https://ui.perfetto.dev, chrome://tracing, Catapult, or any pager",
            Format::SystraceHtml => "any browser, offline; https://ui.perfetto.dev reads it too",
            Format::Firefox => "https://profiler.firefox.com (it stays on this computer)",
        }
    }

    /// Its name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        Format::ALL.iter().find(|(f, ..)| *f == self).map_or("", |(_, n, _)| n)
    }
}

/// Where an exporter writes to; it is handed large pieces when the exporter buffers, so needs no buffer of its own.
pub type Out = Box<dyn Write + Send>;

/// The writer of `format` onto `out`.
pub fn create(format: Format, out: Out) -> Box<dyn TimelineSink> {
    match format {
        Format::Perfetto => Box::new(perfetto::PerfettoWriter::new(out)),
        Format::ChromeJson => chrome_json::create(out),
        Format::Csv => csv::create(out),
        Format::TraceDat => trace_dat::create(out),
        Format::Systrace => Box::new(systrace::SystraceWriter::new(out)),
        Format::Firefox => firefox::create(out),
        Format::SystraceHtml => systrace_html::create(out),
    }
}
