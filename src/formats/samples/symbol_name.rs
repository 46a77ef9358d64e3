//! The names of functions as people read them.

use std::borrow::Cow;

/// What the dynamic linker's own symbols begin with in files of simpleperf.
const LINKER_PREFIX: &str = "__dl_";

/// The longest name that is demangled: a short mangled name can stand for one of gigabytes.
const MAX_MANGLED_BYTES: usize = 4 << 10;
/// The longest demangled name.
const MAX_READABLE_BYTES: usize = 64 << 10;

/// A symbol's name without the mangling of C++ or Rust; other names stay as they are.
pub(crate) fn readable(symbol: &str) -> Cow<'_, str> {
    if let Some(name) = symbol.strip_prefix(LINKER_PREFIX) {
        return Cow::Owned(format!("[linker]{}", readable(name)));
    }
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
    (name.len() <= MAX_READABLE_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
