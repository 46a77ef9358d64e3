//! Prints messages in a way that cannot end the program.
//!
//! `print!` and `eprintln!` panic when the reader of a pipe has gone away (`tracebridge start … | head`) or
//! the disk is full. A panic in the middle of a recording would leave the kernel's settings changed, so every
//! command prints through this module or through a writer whose errors it handles.

use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};
use std::io::{self, Write};
use std::sync::OnceLock;

/// Prints `text` on standard output and flushes. Control characters other than line feeds and tabs are
/// escaped. The first error is kept for [`output_error`].
pub fn say(text: Arguments<'_>) {
    let mut out = io::stdout();
    let text = text.to_string();
    if let Err(error) = out.write_all(escape(&text, is_layout).as_bytes()).and_then(|()| out.flush()) {
        let _ = OUTPUT_ERROR.set(error);
    }
}

static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// The first error of [`say`], if text that was to be printed is lost: a full disk, but not a reader who has
/// seen enough.
pub fn output_error() -> Option<&'static io::Error> {
    OUTPUT_ERROR.get().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// Prints `text` and a line feed on standard error. Control characters other than line feeds and tabs are
/// escaped. Errors are ignored.
pub fn complain(text: Arguments<'_>) {
    let text = text.to_string();
    let _ = writeln!(io::stderr(), "{}", escape(&text, is_layout));
}

/// A name from a file as one line of a terminal may show it: control characters, line ends among them, and
/// characters that turn the direction of text are written as `\u001b`. Whoever names a thread or a method
/// would otherwise move the cursor, hide text, or change the terminal's settings.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Whether a terminal acts on the character: C0 and C1 controls, and Unicode's marks for the direction of
/// text.
fn is_control(c: char) -> bool {
    let turns_text =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns_text || matches!(c, '\u{2028}' | '\u{2029}')
}

/// `text` with every control character but those that `keeps` accepts escaped as in JSON, so that JSON keeps
/// its meaning.
fn escape(text: &str, keeps: impl Fn(char) -> bool) -> Cow<'_, str> {
    let must_go = |c: char| is_control(c) && !keeps(c);
    if !text.contains(must_go) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if must_go(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A writer for lines that people read on a terminal. What one `write!` or `writeln!` formats is at most one
/// line: a name in it cannot begin another line. Bytes that come by other ways are not formatted here; of
/// them line feeds, tabs, and the sequences for bold, grey, bold red and plain text pass, and other control
/// characters are escaped.
#[derive(Debug)]
pub struct TerminalWriter<W: Write> {
    out: W,
    /// The first bytes of a character whose other bytes have not come yet.
    cut: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    /// A writer that writes to `out`.
    pub fn new(out: W) -> TerminalWriter<W> {
        TerminalWriter { out, cut: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        const STYLES: [&str; 4] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m"];
        let mut rest = text;
        while let Some(at) = rest.find('\x1b') {
            self.out.write_all(escape(&rest[..at], is_layout).as_bytes())?;
            let style = STYLES.iter().find(|style| rest[at..].starts_with(**style));
            self.out.write_all(style.map_or(&b"\\u001b"[..], |style| style.as_bytes()))?;
            rest = &rest[at + style.map_or(1, |style| style.len())..];
        }
        self.out.write_all(escape(rest, is_layout).as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined = [std::mem::take(&mut self.cut).as_slice(), bytes].concat();
        let mut rest = &joined[..];
        loop {
            let (text, wrong) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let text = std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
                    (text, Some(error.error_len()))
                }
            };
            self.text(text)?;
            rest = &rest[text.len()..];
            match wrong {
                None => return Ok(bytes.len()),
                Some(None) => {
                    self.cut = rest.to_vec();
                    return Ok(bytes.len());
                }
                Some(Some(len)) => {
                    self.out.write_all("\u{fffd}".as_bytes())?;
                    rest = &rest[len..];
                }
            }
        }
    }

    fn write_fmt(&mut self, line: Arguments<'_>) -> io::Result<()> {
        let line = line.to_string();
        let (line, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |line| (line, "\n"));
        self.out.write_all(printable(line).as_bytes())?;
        self.out.write_all(end.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_names_are_escaped() {
        assert_eq!(printable("main"), "main");
        assert_eq!(
            printable("a\x1b[2J\nb\u{9b}1m\u{202e}\x7f"),
            "a\\u001b[2J\\u000ab\\u009b1m\\u202e\\u007f"
        );
        let json = format!("\"{}\"", printable("\u{9b}x\u{202e}"));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "\u{9b}x\u{202e}");
    }

    #[test]
    fn one_formatted_line_stays_one_line() {
        let mut out = TerminalWriter::new(Vec::new());
        let name = "x\nfake: 0 lost\x1b]0;title\x07";
        writeln!(out, "thread {name}").unwrap();
        assert_eq!(out.out, b"thread x\\u000afake: 0 lost\\u001b]0;title\\u0007\n");
    }

    #[test]
    fn bytes_keep_their_lines_and_styles_wherever_they_are_cut() {
        let text = "\x1b[1;31mred\x1b[0m\x1b[1mbold\x1b[0m\tü\n\x1b[2J\u{9b}\u{202e}".as_bytes();
        let want = "\x1b[1;31mred\x1b[0m\x1b[1mbold\x1b[0m\tü\n\\u001b[2J\\u009b\\u202e".as_bytes();
        let mut whole = TerminalWriter::new(Vec::new());
        whole.write_all(&[text, b"\x9b!"].concat()).unwrap();
        assert_eq!(whole.out, [want, "\u{fffd}!".as_bytes()].concat());
        for cut in 0..text.len() {
            let mut out = TerminalWriter::new(Vec::new());
            out.write_all(&text[..cut]).unwrap();
            out.write_all(&text[cut..]).unwrap();
            let shown = String::from_utf8(out.out).unwrap();
            assert!(!shown.contains("\x1b[2J") && !shown.contains('\u{9b}'), "{cut}: {shown:?}");
            assert!(shown.contains('ü'), "{cut}: {shown:?}");
        }
    }
}
