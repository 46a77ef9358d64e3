//! The names of functions as people read them.

use std::borrow::Cow;

/// The dynamic linker's own symbols begin with this in files of simpleperf.
const LINKER_PREFIX: &str = "__dl_";

/// The longest name that is demangled: a short mangled name can stand for one of gigabytes.
const MAX_MANGLED_BYTES: usize = 4 << 10;
/// The longest demangled name.
const MAX_READABLE_BYTES: usize = 64 << 10;

/// A symbol's name without the mangling of C++ or Rust; other names stay as they are.
pub(crate) fn readable(symbol: &str) -> Cow<'_, str> {
    match symbol.strip_prefix(LINKER_PREFIX) {
        Some(name) => Cow::Owned(format!("[linker]{}", demangled(name))),
        None => demangled(symbol),
    }
}

fn demangled(symbol: &str) -> Cow<'_, str> {
    if symbol.len() > MAX_MANGLED_BYTES {
        return Cow::Borrowed(symbol);
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    match symbol.starts_with("_Z").then(|| cpp_name(symbol)).flatten() {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(symbol),
    }
}

fn cpp_name(symbol: &str) -> Option<String> {
    let parsed = cpp_demangle::Symbol::new(symbol).ok()?;
    let name = parsed.demangle().ok()?;
    let name = as_llvm_writes(name);
    let name = if has_forwarded_parameters(symbol) { forwarded(&name).unwrap_or(name) } else { name };
    (name.len() <= MAX_READABLE_BYTES).then_some(name)
}

/// Numbers of a template's arguments, as the crate writes them, and as LLVM and GNU do.
const NUMBERS: [(&str, &str); 7] = [
    ("(unsigned long long)", "ull"),
    ("(long long)", "ll"),
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(int)", ""),
    ("(bool)", "bool"),
];

/// The name in the form of LLVM's demangler, which Android's tools use: what one tool writes can be searched
/// for in the other's output.
fn as_llvm_writes(mut name: String) -> String {
    for (offset, thunk) in [("{offset(", "non-virtual thunk to "), ("{virtual offset(", "virtual thunk to ")]
    {
        let of = name.strip_prefix("{virtual override thunk(").and_then(|rest| rest.strip_prefix(offset));
        let of = of.and_then(|rest| rest.split_once(")}, ")).and_then(|(_, rest)| rest.strip_suffix(")}"));
        if let Some(of) = of {
            name = format!("{thunk}{of}");
        }
    }
    for (cast, suffix) in NUMBERS {
        while let Some(at) = name.find(cast) {
            let digits = &name[at + cast.len()..];
            let len = digits.bytes().take_while(u8::is_ascii_digit).count();
            if len == 0 {
                break;
            }
            let number = match (suffix, &digits[..len]) {
                ("bool", "0") => "false".to_owned(),
                ("bool", _) => "true".to_owned(),
                (suffix, number) => format!("{number}{suffix}"),
            };
            name.replace_range(at..at + cast.len() + len, &number);
        }
    }
    name = name.replace(")&&(", ") && (").replace("( const&)(", " const(&)(");
    if let Some(at) = name.find(" [clone ") {
        let parts: String =
            name[at..].split(" [clone ").map(|part| part.strip_suffix(']').unwrap_or(part)).collect();
        name.truncate(at);
        name += &format!(" ({parts})");
    }
    name
}

/// Whether the last parameters are all arguments of a template, forwarded: `Args&&...`.
fn has_forwarded_parameters(symbol: &str) -> bool {
    let Some(end) = symbol.strip_suffix('_') else { return false };
    end.trim_end_matches(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase() && c != 'T').ends_with("DpOT")
}

/// The name with `&&` behind the forwarded parameters, which the crate leaves out. `None` where the
/// parameters are not the last arguments of the template as they are.
fn forwarded(name: &str) -> Option<String> {
    let open = matching_open(name, name.strip_suffix(')')?.len())?;
    let before = &name[..open];
    let template = before.strip_suffix('>')?;
    let arguments = parts(&template[matching_open(before, template.len())? + 1..]);
    let parameters = parts(&name[open + 1..name.len() - 1]);
    // The last parameters are the last arguments; as many as are the same.
    let same = arguments.iter().rev().zip(parameters.iter().rev()).take_while(|(a, b)| a == b).count();
    if same == 0 {
        return None;
    }
    let first = parameters.len() - same;
    let shown = parameters.iter().enumerate().map(|(n, parameter)| {
        if n >= first && !parameter.ends_with('&') {
            format!("{parameter}&&")
        } else {
            (*parameter).to_owned()
        }
    });
    Some(format!("{before}({})", shown.collect::<Vec<_>>().join(", ")))
}

/// Where the bracket opens that closes at `close`.
fn matching_open(name: &str, close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate().take(close + 1).collect::<Vec<_>>().into_iter().rev() {
        match byte {
            b')' | b'>' => depth += 1,
            b'(' | b'<' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The parts of a list between commas that lie in no bracket.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let mut start = 0;
    let mut all = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'<' => depth += 1,
            b')' | b'>' => depth -= 1,
            b',' if depth == 0 => {
                all.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(list[start..].trim());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_have_the_form_that_llvm_writes() {
        for (symbol, name) in [
            (
                "_ZThn32_N4llvm13MPPassManagerD1Ev",
                "non-virtual thunk to llvm::MPPassManager::~MPPassManager()",
            ),
            ("_ZN1aILm4096ELj4ELb1EE1fEv", "a<4096ul, 4u, true>::f()"),
            ("_Z1fv.llvm.123", "f() (.llvm.123)"),
            ("_Z4makeI1AJ1BRK1CEEvDpOT0_", "void make<A, B, C const&>(B&&, C const&)"),
        ] {
            assert_eq!(readable(symbol), name);
        }
    }

    #[test]
    fn names_of_cpp_and_rust_are_readable_and_others_stay() {
        for (symbol, name) in [
            ("_ZN16GrDrawingManager14getTextContextEv", "GrDrawingManager::getTextContext()"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("__dl__Z3foov", "[linker]foo()"),
            ("art_quick_invoke_stub", "art_quick_invoke_stub"),
            ("_Z", "_Z"),
            ("java.lang.Thread.run", "java.lang.Thread.run"),
        ] {
            assert_eq!(readable(symbol), name);
        }
    }
}
