//! The matrix of docs/formats.md, which says what each output holds, is the table that the conversions use.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it golden::` writes it anew.

use std::fs;
use std::path::Path;

use super::read_text;

const BEGIN: &str = "<!-- The matrix is generated: UPDATE_GOLDEN=1 cargo test --test it golden::matrix -->\n";
const END: &str = "<!-- end of the matrix -->\n";

#[test]
fn the_matrix_of_the_formats_page_is_generated_from_the_table_that_conversions_use() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md");
    let page = read_text(&path);
    let (before, rest) = page.split_once(BEGIN).expect("docs/formats.md: the matrix begins");
    let (kept, after) = rest.split_once(END).expect("docs/formats.md: the matrix ends");
    let matrix = tracebridge::export::matrix();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(&path, format!("{before}{BEGIN}{matrix}{END}{after}")).unwrap();
    }
    assert_eq!(
        kept, matrix,
        "docs/formats.md differs from the table: UPDATE_GOLDEN=1 cargo test --test it golden::"
    );
}
