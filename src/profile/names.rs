//! The names of methods and threads in the output: as traced, or as a mapping file of R8 or ProGuard restores
//! them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use crate::art::{MappedMethod, Mapping, MappingError};
use crate::formats::art_method::{Method, MethodTrace};

/// The names of a trace's methods and threads.
#[derive(Debug)]
pub(super) struct TraceNames<'t, 'a> {
    trace: &'t MethodTrace<'a>,
    mapped: HashMap<u32, MappedMethod>,
    /// How many threads have each name.
    thread_names: HashMap<&'t str, u32>,
}

impl<'t, 'a> TraceNames<'t, 'a> {
    /// Names as traced.
    pub(super) fn new(trace: &'t MethodTrace<'a>) -> Self {
        let mut thread_names = HashMap::new();
        for thread in trace.threads().iter().filter(|thread| !thread.name.is_empty()) {
            *thread_names.entry(thread.name.as_ref()).or_default() += 1;
        }
        TraceNames { trace, mapped: HashMap::new(), thread_names }
    }

    /// Names as the mapping file with the content `mapping` restores them. Methods that are not in the
    /// file keep their traced names.
    pub(super) fn mapped(trace: &'t MethodTrace<'a>, mapping: &[u8]) -> Result<Self, MappingError> {
        let mapping = Mapping::parse(mapping)?;
        let mut names = TraceNames::new(trace);
        for (n, method) in trace.methods().iter().enumerate().filter(|(_, method)| method.declared) {
            if let Some(real) = real_name(&mapping, method) {
                names.mapped.insert(n as u32, real);
            }
        }
        Ok(names)
    }

    /// The number of methods whose names the mapping file has restored.
    pub(super) fn mapped_count(&self) -> usize {
        self.mapped.len()
    }

    fn method(&self, method: u32) -> Option<&'t Method<'a>> {
        self.trace.methods().get(method as usize)
    }

    /// The class with its package, separated by dots; `(unknown)` for an undeclared method.
    pub(super) fn class(&self, method: u32) -> Cow<'_, str> {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(mapped), _) => Cow::Borrowed(&mapped.class),
            (None, Some(method)) if method.declared => method.class_name(),
            _ => Cow::Borrowed("(unknown)"),
        }
    }

    /// The package of the method's class; `(default)` if the class has none.
    pub(super) fn package(&self, method: u32) -> String {
        match self.class(method).rsplit_once('.') {
            Some((package, _)) => package.to_owned(),
            None => "(default)".to_owned(),
        }
    }

    /// `package.Class.method`; `(unknown 0x…)` for an undeclared method.
    pub(super) fn full(&self, method: u32) -> String {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(MappedMethod { class, name, .. }), _) => format!("{class}.{name}"),
            (None, Some(method)) => method.full_name(),
            (None, None) => "(none)".to_owned(),
        }
    }

    /// The full name with the signature, which distinguishes overloads, and with the methods that R8 has
    /// inlined.
    pub(super) fn long(&self, method: u32) -> String {
        let mut name = self.full(method);
        if let Some(method) = self.method(method).filter(|method| !method.signature.is_empty()) {
            let _ = write!(name, " {}", method.signature);
        }
        match self.inlined(method) {
            [] => {}
            inlined => _ = write!(name, " [inlines {}]", inlined.join(", ")),
        }
        name
    }

    /// The methods that R8 has inlined into the method, as `class.method:line`, innermost first.
    pub(super) fn inlined(&self, method: u32) -> &[String] {
        self.mapped.get(&method).map_or(&[], |mapped| &mapped.inlined)
    }

    /// Source file and line, where known.
    pub(super) fn source(&self, method: u32) -> (Option<&str>, Option<i64>) {
        let Some(traced) = self.method(method) else { return (None, None) };
        let mapped = self.mapped.get(&method).and_then(|mapped| mapped.line).map(|line| line as i64);
        let line = mapped.or(traced.line.filter(|line| *line > 0).map(i64::from));
        (Some(traced.file.as_ref()).filter(|file| !file.is_empty()), line)
    }

    /// The thread's label. A thread whose name other threads share has its id in the label.
    pub(super) fn thread(&self, thread: u32) -> String {
        let threads = self.trace.threads();
        let Some(this) = threads.get(thread as usize) else { return format!("thread #{thread}") };
        let label = this.label();
        let twins = self.thread_names.get(this.name.as_ref()).is_some_and(|n| *n > 1);
        if twins { format!("{label} ({})", this.id) } else { label.into_owned() }
    }
}

/// The method's name in the mapping file, looked up by signature and line.
fn real_name(mapping: &Mapping<'_>, method: &Method<'_>) -> Option<MappedMethod> {
    let line = method.line.and_then(|line| usize::try_from(line).ok()).filter(|line| *line > 0);
    mapping.method(&method.class_name(), &method.name, &method.signature, line)
}
