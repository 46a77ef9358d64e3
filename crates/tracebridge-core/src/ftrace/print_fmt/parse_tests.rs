//! Print formats become expressions by C's rules, and what only the kernel can compute is left out.

use super::PrintFmtError;
use super::expr::{BinaryOp, Expr, Num};
use super::parse::{ParsedFormat, parse};
use crate::ftrace::{EventFormat, EventType};

/// An event with a signed and an unsigned number, an array and a text.
fn event() -> EventType {
    let text = "name: made_up\nID: 7\nformat:\n\
        \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned int b;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long args[3];\toffset:16;\tsize:24;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"\"\n";
    EventFormat::parse("made_up", text).unwrap().kind
}

fn parsed(source: &str) -> ParsedFormat {
    parse(source, &event(), 8).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// The only argument of a format with one conversion.
#[track_caller]
fn argument(source: &str) -> Option<Expr> {
    let mut parsed = parsed(&format!("\"%d\", {source}"));
    assert_eq!(parsed.arguments.len(), 1, "{source}");
    parsed.arguments.remove(0)
}

/// The value of an argument that is a constant.
#[track_caller]
fn constant(source: &str) -> i64 {
    match argument(source) {
        Some(Expr::Num(number)) => number.v,
        other => panic!("{source}: {other:?}"),
    }
}

fn field(name: &str) -> Expr {
    let event = event();
    Expr::Field(event.fields[event.field(name).unwrap()].clone())
}

fn names(parsed: &ParsedFormat) -> Vec<&str> {
    parsed.unused.iter().map(|field| field.name.as_str()).collect()
}

#[test]
fn a_format_is_one_text_also_of_several_literals_and_in_brackets() {
    for source in [r#""a=%d" " b", REC->a"#, r#"("a=%d" " b", REC->a)"#] {
        let parsed = parsed(source);
        assert_eq!((parsed.format, parsed.arguments.len()), (b"a=%d b".to_vec(), 1), "{source}");
    }
    for source in ["", "REC->a", r#"("%d", REC->a"#, r#""%d", REC->a)"#] {
        assert!(matches!(parse(source, &event(), 8), Err(PrintFmtError::Syntax(_))), "{source}");
    }
}

#[test]
fn operators_bind_as_in_c() {
    for (source, value) in [
        ("1 + 2 * 3", 7),
        ("10 - 4 - 3", 3),
        ("1 << 2 + 1", 8),
        ("6 & 3 == 3", 0),
        ("1 | 6 ^ 2 & 3", 5),
        ("2 > 1 && 0 || 1", 1),
        ("-1 < 0u", 0),
        ("~0", -1),
        ("0 ? 1 : 2 ? 3 : 4", 3),
        ("7 ?: 9", 7),
        ("(char)0x1ff", -1),
        ("HRTIMER_MODE_REL_HARD", 9),
    ] {
        assert_eq!(constant(source), value, "{source}");
    }
}

#[test]
fn only_operators_with_a_field_stay() {
    let six = Box::new(Expr::Num(Num::int(6)));
    assert_eq!(argument("REC->a + 2 * 3"), Some(Expr::Binary(BinaryOp::Add, Box::new(field("a")), six)));
    assert_eq!(argument("1 ? REC->a : REC->b"), Some(field("a")), "the kernel's configuration decided it");
    assert_eq!(argument("(REC->a)"), Some(field("a")), "brackets are no cast");
    assert!(matches!(argument("(u64)REC->a"), Some(Expr::Cast(..))));
}

#[test]
fn sizes_depend_on_the_kernels_long() {
    for (source, on_64_bits, on_32_bits) in
        [("sizeof(int)", 4, 4), ("sizeof(unsigned long)", 8, 4), ("sizeof(void *)", 8, 4)]
    {
        let size = |long_size| {
            let parsed = parse(&format!("\"%d\", {source}"), &event(), long_size).unwrap();
            parsed.arguments[0].clone()
        };
        let is = |expr: Option<Expr>, size| matches!(expr, Some(Expr::Num(number)) if number.v == size);
        assert!(is(size(8), on_64_bits) && is(size(4), on_32_bits), "{source}");
    }
    assert_eq!(constant("sizeof(REC->args)"), 24);
}

#[test]
fn an_element_at_a_fixed_place_is_a_field_of_its_own() {
    let Some(Expr::Field(element)) = argument("REC->args[2]") else { panic!("no field") };
    assert_eq!((element.offset, element.size), (32, 8));
    // The record has no fourth element, and a computed index is known only with the record.
    for source in ["REC->args[3]", "REC->args[REC->a]", "*REC->args"] {
        assert!(matches!(argument(source), Some(Expr::Element { .. })), "{source}");
    }
}

#[test]
fn an_argument_of_the_kernel_alone_is_left_out_and_its_fields_are_named() {
    let parsed_format = parsed(r#""%d %s %d", REC->a, kernel_only(REC->b, REC->a), 5"#);
    let is_known: Vec<bool> = parsed_format.arguments.iter().map(Option::is_some).collect();
    assert_eq!(is_known, [true, false, true]);
    assert_eq!(names(&parsed_format), ["b"], "another argument prints a");
    assert_eq!(parsed_format.too_complex, None);
    for source in ["REC->absent", "REC->a.part", "jiffies", "({ 1; })", "__get_str(absent)"] {
        assert_eq!(argument(source), None, "{source}");
    }
}

#[test]
fn names_of_values_end_at_an_entry_without_one_and_leave_unknown_values_out() {
    let table =
        |source: &str, long_size| match parse(source, &event(), long_size).unwrap().arguments.remove(0) {
            Some(Expr::Symbolic { table, .. } | Expr::Flags { table, .. }) => table,
            other => panic!("{source}: {other:?}"),
        };
    let source = r#""%s", __print_symbolic(REC->a, { -1, "M" }, { UNKNOWN, "U" }, { 2, "TWO" }, { 3, ((void *)0) }, { 4, "F" })"#;
    assert_eq!(table(source, 8), [(u64::MAX, b"M".to_vec()), (2, b"TWO".to_vec())]);
    assert_eq!(table(source, 4), [(u64::from(u32::MAX), b"M".to_vec()), (2, b"TWO".to_vec())]);
    let flags = r#""%s", __print_flags(REC->b, ((void *)0), { 1, "ONE" })"#;
    assert_eq!(table(flags, 8), [(1, b"ONE".to_vec())]);
}

#[test]
fn functions_take_as_many_arguments_as_the_kernels_do() {
    for source in
        ["ntohs(REC->b)", "__print_hex(REC->args, 4)", "__print_array(REC->args, 3, 8)", "__get_str(name)"]
    {
        assert!(argument(source).is_some(), "{source}");
    }
    for source in
        ["ntohs(REC->b, 1)", "__print_hex(REC->args)", "__print_array(REC->args, 3)", "__get_str(1)"]
    {
        assert_eq!(argument(source), None, "{source}");
    }
    assert_eq!(argument("__builtin_expect(!!(REC->a), 1)"), argument("!!(REC->a)"));
}

#[test]
fn what_is_deeper_or_longer_than_the_kernels_formats_is_told_as_too_complex() {
    let nested = |levels: usize| format!("\"%d\", {}REC->a{}", "(".repeat(levels), ")".repeat(levels));
    assert!(parsed(&nested(30)).arguments[0].is_some());
    let sum = |terms: usize| format!("\"%d\", REC->a{}", " + REC->a".repeat(terms));
    assert!(parsed(&sum(1000)).arguments[0].is_some());
    for source in [nested(65), sum(1001)] {
        let parsed = parsed(&source);
        assert_eq!(parsed.arguments, [None]);
        assert!(matches!(parsed.too_complex, Some(PrintFmtError::TooComplex(_))), "{:?}", parsed.too_complex);
        assert_eq!(names(&parsed), ["a"]);
    }
}
