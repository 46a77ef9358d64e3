//! The output of dmtracedump's option `-h`: the sections of the text as one HTML page without external parts.

use std::io::{self, Write};

use super::dump::MethodDump;
use super::{diff, text};
use crate::text::markup::escape_html;

const HEAD: &str = "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Method profile</title>\n<style>\
    body{font:14px sans-serif;margin:2em}pre{font:12px monospace}a{color:#06c;text-decoration:none}</style></head><body>";

const SECTIONS: [(&str, &str); 4] = [
    ("exclusive", "Exclusive profile"),
    ("inclusive", "Inclusive profile"),
    ("class", "Class/method profile"),
    ("method", "Method/class profile"),
];

/// Writes the profile. Each `[number]` is a link to the method's callers and callees.
pub(super) fn write_html(dump: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    text::write_text(dump, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    writeln!(out, "{HEAD}<a name=\"contents\"></a><h2>Table of Contents</h2>\n<ul>")?;
    for (name, title) in SECTIONS {
        writeln!(out, "<li><a href=\"#{name}\">{title}</a></li>")?;
    }
    writeln!(out, "</ul>")?;
    for (part, (name, title)) in text.split(text::RULE).skip(1).zip(SECTIONS) {
        writeln!(out, "<a name=\"{name}\"></a><hr><h3>{title}</h3><a href=\"#contents\">[Top]</a>\n<pre>")?;
        for line in part.lines() {
            writeln!(out, "{}", link(line, name == "inclusive"))?;
        }
        writeln!(out, "</pre>")?;
    }
    writeln!(out, "</body></html>")
}

/// Turns the first `[number]` of a line into a link to the method. With `targets` a number at the start of a
/// line is the method's own, and becomes the target of the links.
fn link(line: &str, targets: bool) -> String {
    let number = line.find('[').and_then(|open| {
        let close = open + line[open..].find(']')?;
        line[open + 1..close].bytes().all(|b| b.is_ascii_digit()).then_some((open, close))
    });
    let Some((open, close)) = number else { return escape_html(line) };
    let (before, number, after) =
        (escape_html(&line[..open]), &line[open + 1..close], escape_html(&line[close + 1..]));
    match open {
        0 if targets => format!("<a name=\"m{number}\"></a><b>[{number}]</b>{after}"),
        _ => format!("{before}<a href=\"#m{number}\">[{number}]</a>{after}"),
    }
}

/// Writes the comparison of two traces.
pub(super) fn write_diff(before: &MethodDump, after: &MethodDump, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{HEAD}<h3>Run 1 against run 2: exclusive, inclusive, and what only one of them has</h3>\n<pre>"
    )?;
    diff::write_diff(before, after, out)?;
    writeln!(out, "</pre></body></html>")
}
