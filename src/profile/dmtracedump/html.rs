//! The output of dmtracedump's option `-h`: the four sections as tables in one page, with the old page's
//! figures in the old page's order. Rows are sorted and folded in the browser. The page needs no other
//! file: its head has a rule that keeps a browser from loading or running anything else.

use std::collections::HashMap;
use std::io::{self, Write};

use super::dump::{DumpGroup, DumpRelative, DumpRow, MethodDump};
use super::text::percent;
use crate::markup::{escape_attribute, escape_html};

/// A section of a page, to which the page's navigation links.
pub(super) struct PageSection {
    pub id: &'static str,
    pub title: &'static str,
}

impl PageSection {
    /// Writes the section's begin, down to its title.
    pub(super) fn begin(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "<section id=\"{}\"><h2>{}</h2>", self.id, self.title)
    }
}

const SECTIONS: [PageSection; 4] = [
    PageSection { id: "exclusive", title: "Exclusive profile" },
    PageSection { id: "inclusive", title: "Inclusive profile" },
    PageSection { id: "class", title: "Class/method profile" },
    PageSection { id: "method", title: "Method/class profile" },
];

/// Writes the profile of the trace `title`. `facts` is a line about it.
pub(super) fn write_html(
    dump: &MethodDump,
    title: &str,
    facts: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let page = DumpPage::new(dump);
    write_head(title, facts, &SECTIONS, out)?;
    page.exclusive(out)?;
    page.inclusive(out)?;
    let classes = "Exclusive elapsed time for each class, summed over all the methods in the class.";
    page.groups(2, classes, "Class<", &page.classes, out)?;
    let names = "Exclusive elapsed time for each method, summed over all the classes that contain a method with \
         the same name.";
    page.groups(3, names, "Method<", &dump.by_name(), out)?;
    write_foot(out)
}

struct DumpPage<'a> {
    dump: &'a MethodDump,
    classes: Vec<DumpGroup<'a>>,
    /// The place of each class that the section of classes shows.
    class_places: HashMap<&'a str, usize>,
}

impl<'a> DumpPage<'a> {
    fn new(dump: &'a MethodDump) -> DumpPage<'a> {
        let classes = dump.by_class();
        let shown = classes.iter().take_while(|class| class.exclusive > 0).enumerate();
        let class_places = shown.map(|(n, class)| (class.name, n)).collect();
        DumpPage { dump, classes, class_places }
    }

    fn exclusive(&self, out: &mut impl Write) -> io::Result<()> {
        SECTIONS[0].begin(out)?;
        writeln!(out, "<p>Total cycles: {}</p>", self.dump.total)?;
        let about = "Exclusive elapsed times for each method, not including time spent in children, sorted by exclusive time.";
        writeln!(out, "<p>{about}</p>")?;
        write_table_head("", &["Usecs", "self %", "sum %", "Index", "Method<"], Some(0), out)?;
        writeln!(out, "<tbody>")?;
        let mut sum = 0;
        for row in self.dump.by_exclusive().into_iter().take_while(|row| row.exclusive > 0) {
            sum += row.exclusive;
            let own = percent(row.exclusive, self.dump.total);
            let all = percent(sum, self.dump.total);
            writeln!(
                out,
                "<tr><td>{}</td><td class=\"bar\">{own:.2}</td><td>{all:.2}</td><td>{}</td>{}</tr>",
                row.exclusive,
                index(row),
                self.name(row, true)
            )?;
        }
        writeln!(out, "</tbody></table></section>")
    }

    fn inclusive(&self, out: &mut impl Write) -> io::Result<()> {
        SECTIONS[1].begin(out)?;
        let about = "Inclusive elapsed times for each method and its parents and children, sorted by inclusive time. \
             Parents stand above a method, children below it.";
        writeln!(out, "<p>{about}</p>")?;
        let columns = ["index", "%/total", "%/self", "index", "calls", "usecs", "name<"];
        write_table_head("calls", &columns, None, out)?;
        for (n, row) in self.dump.rows.iter().enumerate().take_while(|(_, row)| row.inclusive > 0) {
            writeln!(out, "<tbody id=\"m{n}\">")?;
            self.relatives(row, &self.dump.parents[n], out)?;
            let share = percent(row.inclusive, self.dump.total);
            let [calls, recursive] = row.calls;
            writeln!(
                out,
                "<tr class=\"self\"><td>[{n}]</td><td class=\"bar\">{share:.1}%</td><td></td><td></td>\
                 <td>{calls}+{recursive}</td><td>{}</td>{}</tr>",
                row.inclusive,
                self.name(row, true)
            )?;
            writeln!(
                out,
                "<tr><td></td><td></td><td class=\"bar\">{:.1}%</td><td>excl</td><td></td><td>{}</td><td></td></tr>",
                percent(row.outermost_exclusive, row.inclusive),
                row.outermost_exclusive
            )?;
            self.relatives(row, &self.dump.children[n], out)?;
            writeln!(out, "</tbody>")?;
        }
        writeln!(out, "</table></section>")
    }

    fn relatives(
        &self,
        row: &DumpRow,
        lists: &[Vec<DumpRelative>; 2],
        out: &mut impl Write,
    ) -> io::Result<()> {
        for (recursive, list) in [false, true].into_iter().zip(lists) {
            if recursive && !list.is_empty() {
                writeln!(out, "<tr class=\"recursive\"><td colspan=\"7\">recursive calls</td></tr>")?;
            }
            for relative in list {
                let other = &self.dump.rows[relative.row];
                let share = if recursive {
                    "<td></td>".to_owned()
                } else {
                    format!("<td class=\"bar\">{:.1}%</td>", percent(relative.total, row.inclusive))
                };
                writeln!(
                    out,
                    "<tr><td></td><td></td>{share}<td>{}</td><td>{}/{}</td><td>{}</td>{}</tr>",
                    index(other),
                    relative.calls,
                    relative.of_calls,
                    relative.total,
                    self.name(other, true)
                )?;
            }
        }
        Ok(())
    }

    fn groups(
        &self,
        place: usize,
        about: &str,
        column: &str,
        groups: &[DumpGroup<'_>],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let by_class = place == 2;
        SECTIONS[place].begin(out)?;
        writeln!(out, "<p>{about} The methods of each are folded below it.</p>")?;
        let columns = ["Cycles", "Inclusive", "%/total", "Cumul.%", "Calls+Recur", "Index", column];
        write_table_head("groups", &columns, Some(0), out)?;
        let mut sum = 0;
        for (n, group) in groups.iter().take_while(|group| group.exclusive > 0).enumerate() {
            sum += group.exclusive;
            let share = percent(group.exclusive, self.dump.total);
            let all = percent(sum, self.dump.total);
            let [calls, recursive] = group.calls;
            let id = if by_class { format!(" id=\"c{n}\"") } else { String::new() };
            writeln!(
                out,
                "<tbody{id}><tr class=\"group\"><td>{}</td><td></td><td class=\"bar\">{share:.1}</td>\
                 <td>{all:.1}</td><td>{calls}+{recursive}</td><td></td><td class=\"name\">{}</td></tr>",
                group.exclusive,
                escape_html(group.name)
            )?;
            let mut inner = 0;
            for row in &group.rows {
                inner += row.exclusive;
                let share = percent(row.exclusive, group.exclusive);
                let all = percent(inner, group.exclusive);
                let [calls, recursive] = row.calls;
                writeln!(
                    out,
                    "<tr class=\"member\"><td>{}</td><td>{}</td><td class=\"bar\">{share:.1}</td><td>{all:.1}</td>\
                     <td>{calls}+{recursive}</td><td>{}</td>{}</tr>",
                    row.exclusive,
                    row.inclusive,
                    index(row),
                    self.name(row, !by_class)
                )?;
            }
            writeln!(out, "</tbody>")?;
        }
        writeln!(out, "</table></section>")
    }

    /// The cell with a method's name. Its class is a link to the section of classes.
    fn name(&self, row: &DumpRow, with_class: bool) -> String {
        let class = escape_html(&row.class);
        let Some(name) = &row.name else { return format!("<td class=\"name\">{class}</td>") };
        let class = match (with_class, self.class_places.get(row.class.as_str())) {
            (false, _) => String::new(),
            (true, Some(place)) => format!("<a href=\"#c{place}\">{class}</a>."),
            (true, None) => format!("{class}."),
        };
        let name = escape_html(name);
        let signature = escape_attribute(&row.signature);
        format!("<td class=\"name\">{class}{name} <span class=\"signature\">{signature}</span></td>")
    }
}

/// A method's number, as a link to its callers and callees where the page shows them.
fn index(row: &DumpRow) -> String {
    match row.inclusive {
        0 => format!("[{}]", row.index),
        _ => format!("<a href=\"#m{0}\">[{0}]</a>", row.index),
    }
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of [`STYLE`] and of [`SCRIPT`], in base64: the only style and the only script that may run.
const STYLE_HASH: &str = "Fpujat2GkrKoWf+MLpV8ppBxmoLHHSUSzsRKs9EcGMY=";
const SCRIPT_HASH: &str = "TWaT/lDBiaA+Bnfx71ZjVYitOCyAZG6kMeS5oXRybGI=";

/// Writes the start of a page, down to its navigation, which links to `sections`.
pub(super) fn write_head(
    title: &str,
    facts: &str,
    sections: &[PageSection],
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
    for PageSection { id, title } in sections {
        write!(out, "<a href=\"#{id}\">{title}</a>")?;
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
