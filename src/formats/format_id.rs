//! The names of the formats that are read, and of files that no reader accepts.

/// A format that is read. The table [`FORMATS`](super::FORMATS) has its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatId {
    /// trace-cmd's and tracebridge's `trace.dat`.
    TraceDat,
    /// A method trace of ART or Dalvik.
    MethodTrace,
    /// Perfetto's trace format.
    Perfetto,
    /// Samples of Linux perf or of simpleperf.
    PerfData,
    /// Samples as simpleperf's report-sample and Android Studio write them.
    SimpleperfReport,
    /// A page of systrace with the text of ftrace in it.
    SystraceHtml,
    /// The text of ftrace or atrace.
    FtraceText,
    /// A profile of the Firefox profiler.
    GeckoProfile,
    /// Chrome's JSON trace format.
    ChromeJson,
    /// A video of the screen with the times of its frames.
    ScreenVideo,
    /// The output of strace.
    Strace,
    /// Folded stacks.
    FoldedStacks,
}

impl FormatId {
    /// The format's name for people: `trace.dat`.
    pub fn name(self) -> &'static str {
        match self {
            FormatId::TraceDat => "trace.dat",
            FormatId::MethodTrace => "method trace",
            FormatId::Perfetto => "Perfetto trace",
            FormatId::PerfData => "perf.data",
            FormatId::SimpleperfReport => "simpleperf report",
            FormatId::SystraceHtml => "systrace HTML",
            FormatId::FtraceText => "ftrace text",
            FormatId::GeckoProfile => "Firefox profile",
            FormatId::ChromeJson => "Chrome JSON",
            FormatId::ScreenVideo => "screen video",
            FormatId::Strace => "strace text",
            FormatId::FoldedStacks => "folded stacks",
        }
    }

    /// Whether files of this format hold samples and nothing else.
    pub fn holds_samples(self) -> bool {
        matches!(
            self,
            FormatId::PerfData | FormatId::SimpleperfReport | FormatId::GeckoProfile | FormatId::FoldedStacks
        )
    }

    /// Whether files of this format hold the text of ftrace, as systrace's pages do.
    pub fn is_text(self) -> bool {
        matches!(self, FormatId::SystraceHtml | FormatId::FtraceText)
    }
}

impl std::fmt::Display for FormatId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A file that no reader accepts: the kind of file, and the program that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadFile {
    /// The kind of file: `a heap dump (hprof)`.
    pub what: &'static str,
    /// The program that opens the file, or the way to get a file that a reader accepts.
    pub hint: &'static str,
    /// Whether the file is known to be a trace, a profile or a heap dump of another format.
    pub is_trace: bool,
}
