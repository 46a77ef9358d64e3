//! Printed profiles: tables, call trees and comparisons as text, JSON and CSV.

mod call_relations;
mod diff;
pub(super) mod print_profile;
mod row_data;
mod row_print;
mod table;
mod tree_print;
