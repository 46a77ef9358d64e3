//! Reads which file of `src/` imports which other file, from the text of the sources.
//!
//! An import is any path that begins with `crate::`, `super::` or `self::` outside of comments and unit
//! tests. A path through a module's `mod.rs` counts for the file that `mod.rs` re-exports the name from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

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
            let targets = source.imports.iter().filter_map(|path| self.resolve(path, 0));
            // A file that names its own module, or a parent that only declares it, imports nothing by that.
            let targets =
                targets.filter(|target| *target != module).map(|target| self.files[target].path.clone());
            all.insert(source.path.clone(), targets.collect());
        }
        all
    }

    /// The module whose file defines what `path` names.
    fn resolve<'s>(&'s self, path: &[String], depth: usize) -> Option<&'s ModulePath> {
        let (module, source) =
            (1..=path.len()).rev().find_map(|len| self.files.get_key_value(&path[..len]))?;
        let next = path.get(module.len())?;
        match source.re_exports.get(next) {
            Some(origin) if depth < 8 => {
                let full: ModulePath = [origin, &path[module.len() + 1..]].concat();
                self.resolve(&full, depth + 1).or(Some(module))
            }
            _ => Some(module),
        }
    }
}

impl Source {
    fn parse(path: &Path, text: &str, module: &[String]) -> Source {
        let text = without_comments_and_tests(text);
        let (mut imports, mut re_exports) = (BTreeSet::new(), BTreeMap::new());
        for (at, _) in text.match_indices("::") {
            let start = text[..at].rfind(|c: char| !is_name(c)).map_or(0, |i| i + 1);
            let root = &text[start..at];
            let is_first = !text[..start].ends_with("::");
            if is_first && matches!(root, "crate" | "super" | "self") {
                for (path, _) in expand(&text[start..]) {
                    imports.extend(absolute(&path, module));
                }
            }
        }
        for statement in text.split(';') {
            let Some((before, tree)) = statement.rsplit_once("use ") else { continue };
            if !before.trim_end().ends_with("pub") && !before.trim_end().ends_with(')') {
                continue;
            }
            for (path, name) in expand(tree) {
                let origin = absolute(&path, module).unwrap_or_else(|| {
                    [module, &path.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()].concat()
                });
                re_exports.insert(name, origin);
            }
        }
        Source { path: path.to_owned(), imports, re_exports }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The path from the crate's root; `None` for a path into another crate.
fn absolute(path: &[&str], module: &[String]) -> Option<ModulePath> {
    let mut base: &[String] = match *path.first()? {
        "crate" => &[],
        "self" | "super" => module,
        _ => return None,
    };
    let mut rest = path;
    while let [first @ ("crate" | "self" | "super"), more @ ..] = rest {
        if *first == "super" {
            base = &base[..base.len().checked_sub(1)?];
        }
        rest = more;
    }
    Some(base.iter().cloned().chain(rest.iter().map(|p| (*p).to_owned())).collect())
}

/// All paths of a use tree such as `a::{b, c::{d as e}}`, each with the name that it brings into scope.
fn expand(tree: &str) -> Vec<(Vec<&str>, String)> {
    let (mut all, mut prefixes, mut path) = (Vec::new(), Vec::new(), Vec::new());
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

/// The text up to its unit tests, with comments and string literals blanked.
fn without_comments_and_tests(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//") && !is_module_line(line));
    lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
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
