//! Method signatures as people read them: `(long, Object[])` for the JVM descriptor
//! `(J[Ljava/lang/Object;)V`. The Java Virtual Machine Specification, 4.3, defines descriptors.

/// The parameters of a descriptor as Java types in parentheses, and the return type, where the descriptor has
/// one. Classes stand without their packages. `None` for text that is no descriptor.
pub(super) fn parse(descriptor: &str) -> Option<(String, Option<String>)> {
    let mut rest = descriptor.strip_prefix('(')?;
    let mut types = Vec::new();
    while !rest.starts_with(')') {
        let (name, after) = one_type(rest)?;
        types.push(name);
        rest = after;
    }
    let parameters = format!("({})", types.join(", "));
    match &rest[1..] {
        // Tests of the old dmtracedump end their descriptors here.
        "" => Some((parameters, None)),
        rest => match one_type(rest)? {
            (name, "") => Some((parameters, Some(name))),
            _ => None,
        },
    }
}

/// The Java type that `text` begins with, and the text behind it.
fn one_type(text: &str) -> Option<(String, &str)> {
    let element = text.trim_start_matches('[');
    let dimensions = text.len() - element.len();
    let (name, rest) = match element.strip_prefix('L') {
        Some(class) => {
            let (class, rest) = class.split_once(';')?;
            (class.rsplit(['/', '.']).next().unwrap_or(class), rest)
        }
        None => {
            let name = match element.chars().next()? {
                'B' => "byte",
                'C' => "char",
                'D' => "double",
                'F' => "float",
                'I' => "int",
                'J' => "long",
                'S' => "short",
                'V' => "void",
                'Z' => "boolean",
                _ => return None,
            };
            (name, &element[1..])
        }
    };
    Some((format!("{name}{}", "[]".repeat(dimensions)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_become_java_types() {
        for (descriptor, parameters, returns) in [
            ("()V", "()", Some("void")),
            ("(JI)V", "(long, int)", Some("void")),
            (
                "([[ILjava/lang/String;Z)[Ljava/util/Map$Entry;",
                "(int[][], String, boolean)",
                Some("Map$Entry[]"),
            ),
            ("()", "()", None),
        ] {
            let expected = (parameters.to_owned(), returns.map(str::to_owned));
            assert_eq!(parse(descriptor), Some(expected), "{descriptor}");
        }
        for text in ["", "V", "(", "(J", "(Q)V", "(Ljava/lang/String)V", "()VV", "(é)V", "([)V"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
