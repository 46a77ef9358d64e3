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
mod thread_names;
mod trace_dat;

use std::io::Write;
use std::path::Path;

use crate::timeline::TimelineSink;

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
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

impl OutputFormat {
    /// Every format, by the name that `--format` takes, with the endings that choose it.
    pub const ALL: &[(OutputFormat, &str, &[&str])] = &[
        (OutputFormat::Perfetto, "perfetto", &[".pftrace", ".perfetto-trace", ".perfetto"]),
        (OutputFormat::Firefox, "firefox", &[".firefox.json", ".profile.json"]),
        (OutputFormat::ChromeJson, "chrome-json", &[".json"]),
        (OutputFormat::Csv, "csv", &[".csv"]),
        (OutputFormat::SystraceHtml, "systrace-html", &[".html", ".htm"]),
        (OutputFormat::TraceDat, "trace-dat", &[".dat"]),
        (OutputFormat::Systrace, "systrace", &[".txt", ".systrace", ".ftrace"]),
    ];

    /// The format that a path's ending names; a further `.gz` does not hide it.
    pub fn of_path(path: &Path) -> Option<OutputFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        OutputFormat::ALL.iter().find(|(.., ends)| ends.iter().any(|e| name.ends_with(e))).map(|(f, ..)| *f)
    }

    /// The format called `name`.
    pub fn of_name(name: &str) -> Option<OutputFormat> {
        OutputFormat::ALL.iter().find(|(_, n, _)| *n == name).map(|(f, ..)| *f)
    }

    /// With what people open it.
    pub fn viewers(self) -> &'static str {
        match self {
            OutputFormat::Perfetto => {
                "https://ui.perfetto.dev (it stays on this computer), or trace_processor"
            }
            OutputFormat::ChromeJson => "https://ui.perfetto.dev, chrome://tracing, speedscope",
            OutputFormat::Csv => "a spreadsheet, pandas, DuckDB",
            OutputFormat::TraceDat => "trace-cmd report, KernelShark",
            OutputFormat::Systrace => "https://ui.perfetto.dev, chrome://tracing, Catapult, or any pager",
            OutputFormat::SystraceHtml => "any browser, offline; https://ui.perfetto.dev reads it too",
            OutputFormat::Firefox => "https://profiler.firefox.com (it stays on this computer)",
        }
    }

    /// Its name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        OutputFormat::ALL.iter().find(|(f, ..)| *f == self).map_or("", |(_, n, _)| n)
    }
}

/// Where an exporter writes to; it is handed large pieces when the exporter buffers, so needs no buffer of its own.
pub type Out = Box<dyn Write + Send>;

/// The writer of `format` onto `out`.
pub fn create(format: OutputFormat, out: Out) -> Box<dyn TimelineSink> {
    match format {
        OutputFormat::Perfetto => Box::new(perfetto::PerfettoWriter::new(out)),
        OutputFormat::ChromeJson => chrome_json::create(out),
        OutputFormat::Csv => csv::create(out),
        OutputFormat::TraceDat => trace_dat::create(out),
        OutputFormat::Systrace => Box::new(systrace::SystraceWriter::new(out)),
        OutputFormat::Firefox => firefox::create(out),
        OutputFormat::SystraceHtml => systrace_html::create(out),
    }
}
