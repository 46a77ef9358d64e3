//! A judgement as one HTML page that opens offline, with the runs of both sides drawn: to hang on a pull
//! request.

use std::fmt::Write as _;

use super::condition::Unit;
use super::judge::{GateOutcome, JudgedMeasure, Judgement, MeasureVerdict};
use super::report::{TITLES, cells_of, escape_xml, outcome, shown, sides, value};

/// The size of the drawing of a measure's runs, and the space at its left and right, CSS pixels.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 30.0;
const MARGIN: f64 = 6.0;
/// The height of the row of each side.
const ROW_Y: [f64; 2] = [9.0, 21.0];

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1f2328;background:#fff}\
h1{font-size:1.5rem;padding-left:.7rem;border-left:.4rem solid #9a6700}h1.open{border-color:#1a7f37}\
h1.closed{border-color:#cf222e}h2{font:600 1rem ui-monospace,monospace;margin-top:2rem}\
table{border-collapse:collapse}th,td{padding:.3rem .7rem;border-bottom:1px solid #d1d9e0;text-align:right}\
th:first-child,td:first-child,td:last-child,th:last-child{text-align:left}td:first-child{overflow-wrap:anywhere}\
tr.closes td{background:#ffebe9}.old{fill:#59636e}.new{fill:#0969da}svg{display:block}\
@media(prefers-color-scheme:dark){body{color:#f0f6fc;background:#0d1117}th,td{border-color:#3d444d}\
tr.closes td{background:#491c1c}.old{fill:#9198a1}.new{fill:#4493f8}}";

impl Judgement {
    /// The judgement as a page.
    pub fn to_html(&self) -> String {
        let title = escape_xml(&outcome(self));
        let class = match self.outcome() {
            GateOutcome::Open => "open",
            GateOutcome::Closed => "closed",
            GateOutcome::Undecided => "undecided",
        };
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
             <style>{STYLE}</style></head><body>\n<h1 class=\"{class}\">{title}</h1>\n<ul>\n"
        );
        for (side, class) in sides(self).iter().zip(["old", "new"]) {
            page += &format!("<li>{} {}</li>\n", dot(class), escape_xml(side));
        }
        page += "</ul>\n";
        for judged in &self.conditions {
            page += &format!("<h2>{}</h2>\n<table><tr>", escape_xml(&judged.condition.text));
            for heading in [&TITLES[..1], &["each run"], &TITLES[1..]].concat() {
                page += &format!("<th>{heading}</th>");
            }
            page += "</tr>\n";
            let (measures, more) = shown(judged);
            for measure in measures {
                let row = if measure.verdict == MeasureVerdict::Closes { " class=\"closes\"" } else { "" };
                let cells = cells_of(judged, measure).map(|cell| format!("<td>{}</td>", escape_xml(&cell)));
                page +=
                    &format!("<tr{row}>{}<td>{}</td>{}</tr>\n", cells[0], runs(measure), cells[1..].concat());
            }
            page += "</table>\n";
            if more > 0 {
                page += &format!("<p>… and {more} more (<code>--json</code> has all)</p>\n");
            }
        }
        page += &list("What grew in the launches", &self.grown_lines());
        page += &list("Notes", &self.notes);
        if self.tested > 1 {
            page += &format!(
                "<p>{} measures were tested together: p is corrected for that (Holm).</p>\n",
                self.tested
            );
        }
        page + "</body></html>\n"
    }
}

/// A title and its lines; empty where there are none.
fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String =
        lines.iter().map(|line| format!("<li>{}</li>\n", escape_xml(line.trim_start()))).collect();
    format!("<h2>{title}</h2>\n<ul>\n{lines}</ul>\n")
}

/// The mark of a side.
fn dot(class: &str) -> String {
    format!(
        "<svg style=\"display:inline\" width=\"10\" height=\"10\"><circle class=\"{class}\" cx=\"5\" cy=\"5\" r=\"4\"/></svg>"
    )
}

/// The runs of both sides as dots on one scale, the baseline above, with a stroke at each median.
fn runs(measure: &JudgedMeasure) -> String {
    let all = || measure.values.iter().flatten().copied();
    let (Some(least), Some(most)) = (all().min(), all().max()) else { return String::new() };
    let span = (most - least).max(1) as f64;
    let x = |value: i64| MARGIN + (WIDTH - 2.0 * MARGIN) * ((value - least) as f64 / span);
    let mut picture =
        format!("<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">", label(measure));
    for (side, class) in ["old", "new"].into_iter().enumerate() {
        let y = ROW_Y[side];
        for value in &measure.values[side] {
            let _ = write!(
                picture,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"3\" fill-opacity=\".5\"/>",
                x(*value)
            );
        }
        if !measure.values[side].is_empty() {
            let at = x(measure.medians[side]) - 1.0;
            let _ = write!(
                picture,
                "<rect class=\"{class}\" x=\"{at:.1}\" y=\"{}\" width=\"2\" height=\"12\"/>",
                y - 6.0
            );
        }
    }
    picture + "</svg>"
}

/// The scale of a drawing in words.
fn label(measure: &JudgedMeasure) -> String {
    let end = |value_: Option<i64>| value_.map_or(String::new(), |number| value(measure.unit, number as f64));
    let all = || measure.values.iter().flatten().copied();
    let kind = if measure.unit == Unit::Share { "shares" } else { "times" };
    format!("{kind} of all runs, from {} to {}", end(all().min()), end(all().max()))
}
