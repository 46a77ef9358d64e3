//! The output of dmtracedump's option `-h`: the four sections as tables in one page, with the old page's
//! figures in the old page's order. Rows are sorted and folded in the browser.

use std::collections::HashMap;
use std::io::{self, Write};

use super::dump::{DumpGroup, DumpRelative, DumpRow, MethodDump};
use super::page::{write_foot, write_head, write_table_head};
use super::text::percent;
use crate::markup::{escape_attribute, escape_html};

const SECTIONS: [(&str, &str); 4] = [
    ("exclusive", "Exclusive profile"),
    ("inclusive", "Inclusive profile"),
    ("class", "Class/method profile"),
    ("method", "Method/class profile"),
];

/// Writes the profile of the trace `title`. `facts` is a line about it.
pub(super) fn write_html(
    dump: &MethodDump,
    title: &str,
    facts: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let page = Page::of(dump);
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

struct Page<'a> {
    dump: &'a MethodDump,
    classes: Vec<DumpGroup<'a>>,
    /// The place of each class that the section of classes shows.
    class_places: HashMap<&'a str, usize>,
}

impl<'a> Page<'a> {
    fn of(dump: &'a MethodDump) -> Page<'a> {
        let classes = dump.by_class();
        let shown = classes.iter().take_while(|class| class.exclusive > 0).enumerate();
        let class_places = shown.map(|(n, class)| (class.name, n)).collect();
        Page { dump, classes, class_places }
    }

    fn exclusive(&self, out: &mut impl Write) -> io::Result<()> {
        section(0, out)?;
        writeln!(out, "<p>Total cycles: {}</p>", self.dump.total)?;
        let about = "Exclusive elapsed times for each method, not including time spent in children, sorted by exclusive time.";
        writeln!(out, "<p>{about}</p>")?;
        write_table_head("", &["Usecs", "self %", "sum %", "Index", "Method<"], Some(0), out)?;
        writeln!(out, "<tbody>")?;
        let mut sum = 0;
        for row in self.dump.by_exclusive().into_iter().take_while(|row| row.exclusive > 0) {
            sum += row.exclusive;
            let (own, all) = (percent(row.exclusive, self.dump.total), percent(sum, self.dump.total));
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
        section(1, out)?;
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
                let share = match recursive {
                    true => "<td></td>".to_owned(),
                    false => {
                        format!("<td class=\"bar\">{:.1}%</td>", percent(relative.total, row.inclusive))
                    }
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
        section(place, out)?;
        writeln!(out, "<p>{about} The methods of each are folded below it.</p>")?;
        let columns = ["Cycles", "Inclusive", "%/total", "Cumul.%", "Calls+Recur", "Index", column];
        write_table_head("groups", &columns, Some(0), out)?;
        let mut sum = 0;
        for (n, group) in groups.iter().take_while(|group| group.exclusive > 0).enumerate() {
            sum += group.exclusive;
            let (share, all) = (percent(group.exclusive, self.dump.total), percent(sum, self.dump.total));
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
                let (share, all) = (percent(row.exclusive, group.exclusive), percent(inner, group.exclusive));
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
        let (name, signature) = (escape_html(name), escape_attribute(&row.signature));
        format!("<td class=\"name\">{class}{name} <span class=\"signature\">{signature}</span></td>")
    }
}

fn section(place: usize, out: &mut impl Write) -> io::Result<()> {
    let (id, title) = SECTIONS[place];
    writeln!(out, "<section id=\"{id}\"><h2>{title}</h2>")
}

/// A method's number, as a link to its callers and callees where the page shows them.
fn index(row: &DumpRow) -> String {
    match row.inclusive {
        0 => format!("[{}]", row.index),
        _ => format!("<a href=\"#m{0}\">[{0}]</a>", row.index),
    }
}
