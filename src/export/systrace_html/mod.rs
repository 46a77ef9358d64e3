//! Writes a systrace page: the trace as text in a `trace-data` section, where every reader of such pages
//! looks for it, and a small viewer that shows the trace offline. (systrace's own viewer is 2 MB of code, and
//! Chrome no longer ships it.)

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Out;
use super::systrace::SystraceWriter;
use crate::formats::{Head, Sink, SinkAdapter};
use crate::text::markup::write_script_text;
use crate::timeline::{MergeSummary, TimelineAdapter, TimelineSink};

const PAGE: &str = include_str!("page.html");
/// The placeholder in [`PAGE`] that the trace replaces.
const TRACE_MARK: &str = "%TRACE%";

/// Makes the writer, which writes to `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let out = SharedOut(Arc::new(Mutex::new(out)));
    Box::new(HtmlWriter { text: SystraceWriter::new(Box::new(ScriptText(out.clone()))), out })
}

struct HtmlWriter {
    text: SystraceWriter,
    out: SharedOut,
}

/// The output, which the writer of the text and the writer of the page around the text share.
#[derive(Clone)]
struct SharedOut(Arc<Mutex<Out>>);

impl SharedOut {
    fn lock(&self) -> MutexGuard<'_, Out> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes text for the inside of a script element. Each piece that is written consists of whole lines, so
/// that no piece ends inside a tag.
struct ScriptText(SharedOut);

impl Write for ScriptText {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        write_script_text(piece, &mut *self.0.lock())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkAdapter for HtmlWriter {
    type Next = SystraceWriter;

    fn next(&mut self) -> &mut SystraceWriter {
        &mut self.text
    }

    fn head(&mut self, head: &Head) -> io::Result<()> {
        let before = PAGE.split(TRACE_MARK).next().unwrap_or_default();
        self.out.lock().write_all(before.as_bytes())?;
        self.text.head(head)
    }
}

impl TimelineAdapter for HtmlWriter {
    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        self.text.finish(outcome)?;
        let behind = PAGE.split(TRACE_MARK).nth(1).unwrap_or_default();
        self.out.lock().write_all(behind.as_bytes())?;
        self.out.lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::track_builder::tests::export;
    use super::SystraceWriter;

    #[test]
    fn a_marker_with_a_closing_script_tag_does_not_end_the_script_element() {
        let text = " a-1 [000] 1.5: tracing_mark_write: B|1|x</script><b>\n a-1 [000] 1.6: 0: E|1\n";
        let page = export(super::create, text);
        assert_eq!(page.matches("</script>").count(), 2, "the section's end and the viewer's");
        assert!(page.contains("B|1|x<\\/script><b>\n"));
        let text = export(|out| Box::new(SystraceWriter::new(out)), &page);
        assert!(text.contains("B|1|x</script><b>\n"), "the reader takes the backslash out again: {text}");
    }
}
