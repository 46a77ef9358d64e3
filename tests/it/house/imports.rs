//! Reads which file of `src/` imports which other file, from the text of the sources.
//!
//! An import is any path outside of comments and unit tests that stands in a `use`, or begins with
//! `crate::`, `super::`, `self::` or a name that a `use` has brought into scope. A path through a module's
//! `mod.rs` counts for the file that `mod.rs` re-exports the name from, and a path that ends at a module
//! counts for the module's file. A module that owns `child` imports nothing by calling `child::f()` or by
//! handing on a name of it with `pub use child::Name`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::code::{code_of, without_unit_tests};

/// A module path such as `["formats", "trace_dat", "read"]`; empty for the crate's root.
type ModulePath = Vec<String>;

/// The sources of the crate, by module.
pub struct Sources {
    files: BTreeMap<ModulePath, Source>,
}

struct Source {
    path: PathBuf,
    /// Paths that the file names, absolute from the crate's root.
    imports: BTreeSet<ModulePath>,
    /// Names that a `pub use` of the file hands on, and where each comes from.
    re_exports: BTreeMap<String, ModulePath>,
}

impl Sources {
    /// Reads all files below `src`.
    pub fn read(src: &Path) -> Sources {
        Sources::read_with(src, str::to_owned)
    }

    /// Reads all files below `src`, of each file what `select` leaves of its text.
    pub fn read_with(src: &Path, select: fn(&str) -> String) -> Sources {
        let mut sources = Sources { files: BTreeMap::new() };
        sources.read_dir(src, &[], select);
        sources
    }

    fn read_dir(&mut self, dir: &Path, module: &[String], select: fn(&str) -> String) {
        let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                self.read_dir(&path, &[module, &[stem]].concat(), select);
            } else if path.extension().is_some_and(|e| e == "rs") && stem != "main" {
                let own = if matches!(&stem[..], "mod" | "lib") {
                    module.to_vec()
                } else {
                    [module, &[stem]].concat()
                };
                let text = select(&fs::read_to_string(&path).unwrap());
                let source = Source::parse(&path, &text, &own);
                self.files.insert(own, source);
            }
        }
    }

    /// For each file the files that it imports, as paths below `src`.
    pub fn imports(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut all = BTreeMap::new();
        for (module, source) in &self.files {
            let targets = source.imports.iter().filter_map(|path| self.target(path, module));
            all.insert(source.path.clone(), targets.map(|target| self.files[target].path.clone()).collect());
        }
        all
    }

    /// The module that the file of `module` imports by naming `path`.
    fn target<'s>(&'s self, path: &[String], module: &[String]) -> Option<&'s ModulePath> {
        // A file that names its own module, or a module around it, imports nothing by that.
        let is_parent = module.starts_with(path);
        self.resolve(path, 0).filter(|target| **target != module && !is_parent)
    }

    /// The module whose file defines what `path` names. `None` where another crate defines it: then the root
    /// of this crate has brought the first name of the path into scope.
    fn resolve<'s>(&'s self, path: &[String], depth: usize) -> Option<&'s ModulePath> {
        let (module, source) =
            (1..=path.len()).rev().find_map(|len| self.files.get_key_value(&path[..len]))?;
        let Some(next) = path.get(module.len()) else { return Some(module) };
        match source.re_exports.get(next) {
            Some(origin) if depth < 8 => {
                let full: ModulePath = [origin, &path[module.len() + 1..]].concat();
                self.resolve(&full, depth + 1)
            }
            _ => Some(module),
        }
    }
}

impl Source {
    fn parse(path: &Path, text: &str, module: &[String]) -> Source {
        let text = without_modules_and_tests(text);
        // Names that a `use` brings into scope, and where each comes from.
        let mut in_scope = BTreeMap::new();
        let mut re_exports = BTreeMap::new();
        let mut imports = BTreeSet::new();
        for statement in text.split(';') {
            let Some((before, tree)) = statement.rsplit_once("use ") else { continue };
            let is_public = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
            for (path, name) in expand(tree) {
                let origin = absolute(&path, module, &BTreeMap::new());
                let is_below = !matches!(path[0], "crate" | "super" | "self");
                if is_public {
                    re_exports.insert(name.clone(), origin.clone());
                }
                if !is_public || !is_below {
                    imports.insert(origin.clone());
                }
                in_scope.insert(name, origin);
            }
        }
        for (at, _) in text.match_indices("::") {
            let start = text[..at].rfind(|c: char| !is_name(c)).map_or(0, |i| i + 1);
            let root = &text[start..at];
            let is_first = !text[..start].ends_with("::");
            if is_first && (matches!(root, "crate" | "super" | "self") || in_scope.contains_key(root)) {
                imports
                    .extend(expand(&text[start..]).iter().map(|(path, _)| absolute(path, module, &in_scope)));
            }
        }
        Source { path: path.to_owned(), imports, re_exports }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The path from the crate's root. A path that begins with neither a keyword nor a name in scope is one below
/// `module`: a path into another crate then names nothing but `module` itself.
fn absolute(path: &[&str], module: &[String], in_scope: &BTreeMap<String, ModulePath>) -> ModulePath {
    let first = path.first().copied().unwrap_or_default();
    let mut rest = path;
    let mut base = match in_scope.get(first) {
        Some(origin) => {
            rest = &path[1..];
            origin.clone()
        }
        None if first == "crate" => Vec::new(),
        None => module.to_vec(),
    };
    while let [first @ ("crate" | "self" | "super"), more @ ..] = rest {
        if *first == "super" {
            base.pop();
        }
        rest = more;
    }
    base.extend(rest.iter().map(|part| (*part).to_owned()));
    base
}

/// All paths of a use tree such as `a::{b, c::{d as e}}`, each with the name that it brings into scope.
fn expand(tree: &str) -> Vec<(Vec<&str>, String)> {
    let mut all = Vec::new();
    let mut prefixes = Vec::new();
    let mut path = Vec::new();
    let mut rest = tree.trim_start();
    loop {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            path.push(name);
        }
        let after = after.trim_start();
        if let Some(more) = after.strip_prefix("::") {
            rest = more.trim_start();
            if let Some(inside) = rest.strip_prefix('{') {
                prefixes.push(path.clone());
                rest = inside.trim_start();
            }
            continue;
        }
        let mut shown = path.last().copied().unwrap_or_default().to_owned();
        let mut after = after;
        if let Some(renamed) = after.strip_prefix("as ") {
            let end = renamed.find(|c| !is_name(c)).unwrap_or(renamed.len());
            shown = renamed[..end].to_owned();
            after = renamed[end..].trim_start();
        }
        let is_complete = !name.is_empty();
        if path.last() == Some(&"self") && path.len() > 1 {
            path.pop();
            shown = path.last().copied().unwrap_or_default().to_owned();
        }
        if is_complete {
            all.push((path.clone(), shown));
        }
        loop {
            if let Some(more) = after.strip_prefix('}') {
                if prefixes.pop().is_none() || prefixes.is_empty() {
                    return all;
                }
                after = more.trim_start();
            } else if let Some(more) = after.strip_prefix(',').filter(|_| !prefixes.is_empty()) {
                after = more.trim_start();
                if !after.starts_with('}') {
                    break;
                }
            } else {
                return all;
            }
        }
        path = prefixes.last().cloned().unwrap_or_default();
        rest = after;
    }
}

/// The code up to its unit tests, without declarations of modules.
fn without_modules_and_tests(text: &str) -> String {
    let code = code_of(text);
    let lines = without_unit_tests(&code).lines().filter(|line| !is_module_line(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// `mod x;` declares a module and imports nothing.
fn is_module_line(line: &str) -> bool {
    let line = line.trim();
    line.ends_with(';')
        && line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").starts_with("mod ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports between the files of a crate, as `a.rs b.rs` where `a.rs` imports `b.rs`.
    fn imports_of(files: &[(&str, &str)]) -> Vec<String> {
        let src = support::tempdir();
        for (name, text) in files {
            let path = src.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let below = |path: &Path| path.strip_prefix(src.path()).unwrap().display().to_string();
        let all = Sources::read(src.path()).imports();
        let pairs = all.iter().flat_map(|(file, targets)| targets.iter().map(move |target| (file, target)));
        pairs.map(|(file, target)| format!("{} {}", below(file), below(target))).collect()
    }

    #[test]
    fn a_use_that_ends_at_a_module_imports_its_file() {
        let found = imports_of(&[
            ("room/mod.rs", "mod one;\nmod two;\n"),
            ("room/one.rs", "use super::two;\nfn f() { two::g() }\n"),
            ("room/two.rs", "use super::one::{self as first};\nfn g() { first::f() }\n"),
        ]);
        assert_eq!(found, ["room/one.rs room/two.rs", "room/two.rs room/one.rs"]);
    }

    #[test]
    fn a_module_below_the_file_is_imported_without_self() {
        let found = imports_of(&[
            ("room/mod.rs", "mod child;\nmod other;\nuse child::Item;\nuse other as another;\n"),
            ("room/child.rs", "use super::LIMIT;\n"),
            ("room/other.rs", "use std::child;\n"),
        ]);
        assert_eq!(
            found,
            ["room/child.rs room/mod.rs", "room/mod.rs room/child.rs", "room/mod.rs room/other.rs"]
        );
    }

    #[test]
    fn a_path_behind_an_imported_module_counts_for_the_file_that_it_reaches() {
        let found = imports_of(&[
            ("a.rs", "use crate::room;\nfn f() { room::child::g() }\n"),
            ("room/mod.rs", "pub mod child;\n"),
            ("room/child.rs", "fn g() {}\n"),
        ]);
        assert_eq!(found, ["a.rs room/child.rs", "a.rs room/mod.rs"]);
    }

    #[test]
    fn a_path_through_a_parent_imports_nothing_of_the_parent() {
        let found = imports_of(&[
            ("room/mod.rs", "mod one;\nmod two;\npub use two::Two;\n"),
            ("room/one.rs", "use super::*;\nuse super::Two;\nuse std::io::{self, Write};\n"),
            ("room/two.rs", "pub struct Two;\n"),
        ]);
        assert_eq!(found, ["room/one.rs room/two.rs"]);
    }

    #[test]
    fn a_name_that_a_module_hands_on_from_another_crate_imports_nothing() {
        let found = imports_of(&[
            ("lib.rs", "mod room;\nuse other_crate::far;\n"),
            ("room/mod.rs", "mod one;\nmod two;\npub use crate::far::Far;\npub use two::Two;\n"),
            ("room/one.rs", "use super::{Far, Two};\nuse crate::far::Other;\n"),
            ("room/two.rs", "use crate::room::Far;\npub struct Two;\n"),
        ]);
        assert_eq!(found, ["room/one.rs room/two.rs"]);
    }

    #[test]
    fn a_use_tree_is_every_path_in_it() {
        let paths =
            |tree| expand(tree).into_iter().map(|(p, n)| format!("{} {n}", p.join("::"))).collect::<Vec<_>>();
        assert_eq!(paths("crate::a::B;"), ["crate::a::B B"]);
        assert_eq!(
            paths("crate::a::{b, c::{D as E, F}, self};"),
            ["crate::a::b b", "crate::a::c::D E", "crate::a::c::F F", "crate::a a"]
        );
        assert_eq!(paths("super::f(x)"), ["super::f f"]);
    }
}
