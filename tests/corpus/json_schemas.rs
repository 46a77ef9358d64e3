//! The output of `--json` for every file of the corpus has the form of the published schemas.

use std::fs;

use support::schemas::Documents;
use support::tracebridge;

#[test]
fn what_json_prints_of_every_file_has_the_form_of_its_schema() {
    let Some(corpus) = support::corpus() else { return };
    let Some(mut documents) = Documents::new() else { return };
    let dir = support::tempdir();
    let index = fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut printed = [0; 4];
    for name in index.lines().skip(1).filter_map(|line| line.split('\t').next()) {
        let file = corpus.join(name);
        let commands: [(&str, &[&str], &[&str]); 4] = [
            ("info", &["info", "--json"], &[]),
            ("convert", &["convert", "--json"], &["-o", "out.pftrace"]),
            ("profile", &["profile", "--json"], &[]),
            ("comparison", &["report", "--json", "-o", "out.html", "--diff"], &[]),
        ];
        for ((schema, before, after), printed) in commands.into_iter().zip(&mut printed) {
            let mut command = tracebridge();
            command.current_dir(dir.path()).args(before).arg(&file).args(after);
            if schema == "comparison" {
                // A file and itself.
                command.arg("--").arg(&file);
            }
            *printed += usize::from(documents.add_if_any(schema, &mut command));
        }
    }
    let checked = documents.check();
    let [info, convert, profile, comparison] = printed;
    assert!(info > 80 && convert > 60 && profile > 20 && comparison > 40, "{printed:?}");
    assert!(checked >= printed.iter().sum(), "{checked}");
}
