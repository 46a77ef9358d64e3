//! At every width of a terminal each row of each method trace of the corpus shows the method's own name.

use std::path::Path;

use tracebridge::formats::art_method::MethodTrace;
use tracebridge::profile::{
    self, PrintForm, ProfileOutput, ProfileRequest, RowRequest, TextStyle, TreeDirection,
};

use crate::method_trace::bytes;

fn printed(trace: &Path, form: PrintForm, width: Option<usize>, tree: Option<TreeDirection>) -> String {
    let request = ProfileRequest {
        traces: vec![trace.to_owned()],
        rows: RowRequest { limit: tree.is_none().then_some(0), ..RowRequest::default() },
        style: TextStyle { width, colour: false },
        form,
        tree,
        ..ProfileRequest::default()
    };
    let mut results = Vec::new();
    let mut output = ProfileOutput { results: &mut results, message: &mut |_, _| {} };
    profile::run(&request, &mut output).unwrap();
    String::from_utf8(results).unwrap()
}

/// The own name of the method that JSON calls `name`: `wait` of `java.lang.Object.wait (JI)V`. A name that is
/// itself wider than the terminal is cut.
fn own_name(name: &str, width: Option<usize>) -> String {
    let own = match name.starts_with('(') {
        true => name,
        false => name.split(' ').next().unwrap().rsplit('.').next().unwrap(),
    };
    let cut = width.filter(|width| own.chars().count() > *width).map_or(usize::MAX, |width| width - 1);
    own.chars().take(cut).collect()
}

#[test]
fn each_row_of_each_trace_has_the_own_name_of_its_method_at_each_width() {
    let Some(corpus) = support::corpus() else { return };
    let (mut traces, mut rows_seen) = (0, 0);
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        assert!(MethodTrace::parse(&bytes(&path)).is_ok(), "{}", path.display());
        let json: serde_json::Value =
            serde_json::from_str(&printed(&path, PrintForm::Json, None, None)).unwrap();
        let rows = json["rows"].as_array().unwrap();
        for width in [Some(40), Some(80), Some(100), Some(120), Some(200), None] {
            let text = printed(&path, PrintForm::Text, width, None);
            let mut lines = text.lines().skip_while(|line| !line.ends_with("  method")).skip(1);
            for row in rows {
                let name = row["name"].as_str().unwrap();
                let own = own_name(name, width);
                let line =
                    lines.next().unwrap_or_else(|| panic!("{} {width:?}: no row {name}", path.display()));
                // A name that does not fit beside the figures has the next line for itself.
                let is_here = line.contains(&own)
                    || width.is_some() && lines.next().is_some_and(|line| line.contains(&own));
                assert!(is_here, "{} {width:?}: {name} is not in {line}", path.display());
                rows_seen += 1;
            }
            assert_eq!(lines.next(), None, "{} {width:?}", path.display());
            for direction in [TreeDirection::TopDown, TreeDirection::BottomUp] {
                let tree = printed(&path, PrintForm::Text, width, Some(direction));
                for line in text.lines().chain(tree.lines()) {
                    assert!(
                        line.chars().count() <= width.unwrap_or(usize::MAX),
                        "{} {width:?}: {line}",
                        path.display()
                    );
                }
            }
        }
        traces += 1;
    }
    println!("{traces} traces, {rows_seen} rows");
    assert!(traces >= 12 && rows_seen > 50_000, "{traces} traces, {rows_seen} rows");
}
