//! The frame of the HTML pages: style, script, and the rule that keeps a browser from loading or running
//! anything else.

use std::io::{self, Write};

use crate::markup::{escape_attribute, escape_html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of [`STYLE`] and of [`SCRIPT`], in base64: the only style and the only script that may run.
const STYLE_HASH: &str = "Fpujat2GkrKoWf+MLpV8ppBxmoLHHSUSzsRKs9EcGMY=";
const SCRIPT_HASH: &str = "TWaT/lDBiaA+Bnfx71ZjVYitOCyAZG6kMeS5oXRybGI=";

/// Writes the start of a page, down to its navigation, which links to `sections`.
pub(super) fn write_head(
    title: &str,
    facts: &str,
    sections: &[(&str, &str)],
    out: &mut impl Write,
) -> io::Result<()> {
    let policy =
        format!("default-src 'none'; style-src 'sha256-{STYLE_HASH}'; script-src 'sha256-{SCRIPT_HASH}'");
    let title = escape_attribute(title);
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>",
        escape_html(facts)
    )?;
    write!(out, "<nav id=\"contents\">")?;
    for (id, name) in sections {
        write!(out, "<a href=\"#{id}\">{name}</a>")?;
    }
    writeln!(out, "</nav>")
}

/// Writes the end of a page.
pub(super) fn write_foot(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<script>{SCRIPT}</script>\n</body></html>")
}

/// Writes the start of a section with a table, down to the table's head. A column whose name ends in `<` is
/// aligned to the left. The table is sorted, largest first, by the column `sorted` if there is one; a table
/// without such a column cannot be sorted.
pub(super) fn write_table_head(
    class: &str,
    columns: &[&str],
    sorted: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let sortable = if sorted.is_some() { "sortable " } else { "" };
    write!(out, "<table class=\"{sortable}{class}\"><thead><tr>")?;
    for (n, column) in columns.iter().enumerate() {
        let class = if column.ends_with('<') { " class=\"name\"" } else { "" };
        let order = if sorted == Some(n) { " aria-sort=\"descending\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}{order}>{}</th>", column.trim_end_matches('<'))?;
    }
    writeln!(out, "</tr></thead>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sha256(text: &str) -> Option<String> {
        let mut openssl = Command::new("openssl")
            .args(["dgst", "-sha256", "-binary"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        openssl.stdin.take()?.write_all(text.as_bytes()).ok()?;
        let digest = openssl.wait_with_output().ok()?.stdout;
        Some(data_encoding::BASE64.encode(&digest))
    }

    #[test]
    fn the_policy_names_the_style_and_the_script() {
        let Some(style) = sha256(STYLE) else { return println!("skipped: no openssl") };
        assert_eq!((style.as_str(), sha256(SCRIPT).as_deref()), (STYLE_HASH, Some(SCRIPT_HASH)));
    }
}
