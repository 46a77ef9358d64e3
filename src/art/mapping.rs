//! Mapping files of R8 and ProGuard: the real names of obfuscated methods, and of names inside markers.

use proguard::{ProguardMapper, ProguardMapping, StackFrame};

/// A method's real name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedMethod {
    /// The class with its package, separated by dots.
    pub class: String,
    /// The method's name without its class.
    pub name: String,
    /// The line in the source, where the mapping file states it.
    pub line: Option<usize>,
    /// The methods that R8 has inlined at the requested line, as `class.method:line`, innermost first.
    pub inlined: Vec<String>,
}

/// The reason why a mapping file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// No line maps a class.
    #[error("no mapping file: it has no line of the form `real.Class -> a.b:`; R8 writes it as mapping.txt")]
    NotAMapping,
}

/// A parsed mapping file, in which names can be looked up.
#[derive(Debug)]
pub struct Mapping<'m>(ProguardMapper<'m>);

impl<'m> Mapping<'m> {
    /// Reads the content of a mapping file.
    ///
    /// # Errors
    /// [`MappingError::NotAMapping`] if no line maps a class.
    pub fn parse(content: &'m [u8]) -> Result<Mapping<'m>, MappingError> {
        let mapping = ProguardMapping::new(content);
        if !mapping.is_valid() {
            return Err(MappingError::NotAMapping);
        }
        Ok(Mapping(ProguardMapper::new_with_param_mapping(mapping, true)))
    }

    /// The real name of `class.name` with this JNI signature (empty if unknown) at `line`; `None` if the
    /// mapping file has neither the method nor the class.
    pub fn method(
        &self,
        class: &str,
        name: &str,
        signature: &str,
        line: Option<usize>,
    ) -> Option<MappedMethod> {
        let mapper = &self.0;
        let of_frame = |frame: &StackFrame<'_>| {
            mapper
                .remap_frame(frame)
                .map(|f| (f.class().to_owned(), f.method().to_owned(), f.line()))
                .collect::<Vec<_>>()
        };
        let mut frames = match line {
            Some(line) => of_frame(&StackFrame::new(class, name, line)),
            None => Vec::new(),
        };
        if frames.is_empty() && !signature.is_empty() {
            let parameters = parameters(mapper, signature);
            frames = of_frame(&StackFrame::with_parameters(class, name, &parameters));
        }
        let outermost = frames.pop();
        let inlined = frames.into_iter().map(|(class, name, line)| match line {
            Some(line) if line > 0 => format!("{class}.{name}:{line}"),
            _ => format!("{class}.{name}"),
        });
        let inlined: Vec<_> = inlined.collect();
        let (class, name, line) = outermost
            .or_else(|| mapper.remap_method(class, name).map(|(c, m)| (c.to_owned(), m.to_owned(), None)))
            .or_else(|| Some((mapper.remap_class(class)?.to_owned(), name.to_owned(), None)))?;
        Some(MappedMethod { class, name, line: line.filter(|line| *line > 0), inlined })
    }

    /// The text of a marker in which each known name of the form `a.b.C` or `a.b.C.method` is replaced by the
    /// real name; `None` if no name is known. A name without a dot stays, because it may be any word.
    pub fn text(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$');
        while let Some(start) = text[at..].find(is_name).map(|n| at + n) {
            let end = text[start..].find(|c| !is_name(c)).map_or(text.len(), |n| start + n);
            let name = text[start..end].trim_end_matches('.');
            if let Some(real) = self.dotted(name) {
                out.push_str(&text[copied..start]);
                out.push_str(&real);
                copied = start + name.len();
            }
            at = end;
        }
        (copied > 0).then(|| out + &text[copied..])
    }

    fn dotted(&self, name: &str) -> Option<String> {
        let (class, method) = name.rsplit_once('.')?;
        if let Some(real) = self.0.remap_class(name) {
            return Some(real.to_owned());
        }
        let real = self.0.remap_class(class)?;
        let method = self.0.remap_method(class, method).map_or(method, |(_, real)| real);
        Some(format!("{real}.{method}"))
    }
}

/// The parameter types of a JNI signature in the form of mapping files, with real class names.
fn parameters(mapper: &ProguardMapper<'_>, signature: &str) -> String {
    let mut types = Vec::new();
    let inner =
        signature.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inner, _)| inner);
    let mut rest = inner;
    let mut arrays = 0;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let name = match c {
            '[' => {
                arrays += 1;
                continue;
            }
            'L' => {
                let (class, more) = rest.split_once(';').unwrap_or((rest, ""));
                rest = more;
                let class = class.replace('/', ".");
                mapper.remap_class(&class).map_or(class.clone(), str::to_owned)
            }
            'Z' => "boolean".into(),
            'B' => "byte".into(),
            'C' => "char".into(),
            'S' => "short".into(),
            'I' => "int".into(),
            'J' => "long".into(),
            'F' => "float".into(),
            'D' => "double".into(),
            other => other.to_string(),
        };
        types.push(name + &"[]".repeat(std::mem::take(&mut arrays)));
    }
    types.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"com.example.Main -> a.b:\n    void onCreate(int) -> a\n    void onCreate(java.lang.String) -> a\ncom.example.View -> c.d:\n    void draw() -> e\n";

    #[test]
    fn names_inside_markers_become_real_names() {
        let mapping = Mapping::parse(FILE).unwrap();
        assert_eq!(
            mapping.text("inflate c.d, then c.d.e").as_deref(),
            Some("inflate com.example.View, then com.example.View.draw")
        );
        assert_eq!(mapping.text("RV OnLayout"), None);
        assert_eq!(mapping.text("x.y z 1.5 a."), None);
    }

    #[test]
    fn overloads_are_distinguished_by_their_parameters() {
        let mapping = Mapping::parse(FILE).unwrap();
        let real = mapping.method("a.b", "a", "(I)V", None).unwrap();
        assert_eq!((real.class.as_str(), real.name.as_str()), ("com.example.Main", "onCreate"));
        assert_eq!(mapping.method("x.y", "z", "()V", None), None);
        assert_eq!(Mapping::parse(b"hello").unwrap_err(), MappingError::NotAMapping);
    }
}
