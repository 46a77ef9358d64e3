//! What methods are called in the output: as traced, or as an R8/ProGuard mapping file gives them back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use crate::art::{Mapped, Mapping, MappingError};
use crate::formats::art_method::{Method, MethodTrace};

/// Names of a trace's methods.
#[derive(Debug)]
pub struct Names<'t, 'a> {
    trace: &'t MethodTrace<'a>,
    mapped: HashMap<u32, Mapped>,
    /// How many threads have a name.
    thread_names: HashMap<&'t str, u32>,
}

impl<'t, 'a> Names<'t, 'a> {
    /// Names as traced.
    pub fn new(trace: &'t MethodTrace<'a>) -> Self {
        let mut thread_names = HashMap::new();
        for thread in trace.threads().iter().filter(|thread| !thread.name.is_empty()) {
            *thread_names.entry(thread.name.as_ref()).or_default() += 1;
        }
        Names { trace, mapped: HashMap::new(), thread_names }
    }

    /// Names as `mapping` (the content of a mapping file) has them; methods that it does not know keep theirs.
    pub fn mapped(trace: &'t MethodTrace<'a>, mapping: &[u8]) -> Result<Self, MappingError> {
        let mapping = Mapping::parse(mapping)?;
        let mut names = Names::new(trace);
        for (n, method) in trace.methods().iter().enumerate().filter(|(_, method)| method.declared) {
            if let Some(real) = real_name(&mapping, method) {
                names.mapped.insert(n as u32, real);
            }
        }
        Ok(names)
    }

    /// How many methods the mapping file gave another name.
    pub fn mapped_count(&self) -> usize {
        self.mapped.len()
    }

    fn method(&self, method: u32) -> Option<&'t Method<'a>> {
        self.trace.methods().get(method as usize)
    }

    /// The class with its package, dots in between; `(unknown)` for an undeclared method.
    pub fn class(&self, method: u32) -> Cow<'_, str> {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(mapped), _) => Cow::Borrowed(&mapped.class),
            (None, Some(method)) if method.declared => method.class_name(),
            _ => Cow::Borrowed("(unknown)"),
        }
    }

    /// The package; `(default)` where the class has none.
    pub fn package(&self, method: u32) -> String {
        match self.class(method).rsplit_once('.') {
            Some((package, _)) => package.to_owned(),
            None => "(default)".to_owned(),
        }
    }

    /// `package.Class.method`; `(unknown 0x…)` for an undeclared method.
    pub fn full(&self, method: u32) -> String {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(Mapped { class, name, .. }), _) => format!("{class}.{name}"),
            (None, Some(method)) => method.full_name(),
            (None, None) => "(none)".to_owned(),
        }
    }

    /// The same with the signature, and with what was inlined: tells overloads apart.
    pub fn long(&self, method: u32) -> String {
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

    /// What R8 had inlined into the method, where the mapping file tells: `class.method:line`, innermost first.
    pub fn inlined(&self, method: u32) -> &[String] {
        self.mapped.get(&method).map_or(&[], |mapped| &mapped.inlined)
    }

    /// Source file and line, where known.
    pub fn source(&self, method: u32) -> (Option<&str>, Option<i64>) {
        let Some(traced) = self.method(method) else { return (None, None) };
        let mapped = self.mapped.get(&method).and_then(|mapped| mapped.line).map(|line| line as i64);
        let line = mapped.or(traced.line.filter(|line| *line > 0).map(i64::from));
        (Some(traced.file.as_ref()).filter(|file| !file.is_empty()), line)
    }

    /// The thread's label; threads of the same name are told apart by their ids.
    pub fn thread(&self, thread: u32) -> String {
        let threads = self.trace.threads();
        let Some(this) = threads.get(thread as usize) else { return format!("thread #{thread}") };
        let label = this.label();
        let twins = self.thread_names.get(this.name.as_ref()).is_some_and(|n| *n > 1);
        if twins { format!("{label} ({})", this.id) } else { label.into_owned() }
    }
}

/// The method's name in the mapping file, by its signature and its line.
fn real_name(mapping: &Mapping<'_>, method: &Method<'_>) -> Option<Mapped> {
    let line = method.line.and_then(|line| usize::try_from(line).ok()).filter(|line| *line > 0);
    mapping.method(&method.class_name(), &method.name, &method.signature, line)
}
