//! The app's own frame: the method, function or slice of the app in whose time a thread ran, whatever library
//! it called.
//!
//! A profile names the innermost method. That is seldom the one to change: `JsonReader.nextString` takes the
//! time, and `SettingsStore.load` decides that it is taken. The own frame is the innermost one of the app's
//! packages that holds a share of the span.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cause::{PathId, Paths};
use super::code_tree::{CodeFrame, CodeKind, CodeTree, NodeId};
use super::model::Model;
use super::names::Names;
use crate::art::{CodeOrigin, is_within};
use crate::ids::Tid;

/// An own frame holds at least one part in this many of the span.
const LEAST_SHARE: u64 = 20;
/// Recursion is looked for in this many frames around one. A method that calls itself over more than these
/// counts twice.
const RECURSION_FRAMES: usize = 64;

/// Begins of slices that the platform writes around the app's code: ActivityThread, Choreographer,
/// ViewRootImpl, LayoutInflater and RecyclerView of AOSP's `frameworks/base` and androidx, `libs/hwui`, and
/// ART's runtime.
const PLATFORM_SLICES: [&str; 40] = [
    "ActivityThreadMain",
    "activityDestroy",
    "activityPause",
    "activityRestart",
    "activityResume",
    "activityStart",
    "activityStop",
    "AIDL::",
    "Alloc GC",
    "AppImage:",
    "Background concurrent",
    "bindApplication",
    "binder ",
    "broadcastReceive",
    "Choreographer#",
    "ClassLinker",
    "Compiling ",
    "Contending for ",
    "dequeueBuffer",
    "draw",
    "DrawFrame",
    "eglSwapBuffers",
    "GC: ",
    "HIDL::",
    "inflate",
    "input",
    "JIT compiling",
    "Lock contention on",
    "layout",
    "measure",
    "monitor contention",
    "OpenDexFilesFromOat",
    "performTraversals",
    "queueBuffer",
    "Record View#draw",
    "ResourcesManager#",
    "RV ",
    "traversal",
    "VerifyClass",
    "animation",
];

fn is_platform_slice(name: &str) -> bool {
    PLATFORM_SLICES.iter().any(|begin| {
        name.strip_prefix(begin)
            .is_some_and(|rest| rest.is_empty() || !begin.ends_with(char::is_alphanumeric) || !is_word(rest))
    })
}

/// The text goes on with the word before it: `drawChart` is no `draw`.
fn is_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// How surely a frame is the app's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ownership {
    /// The platform's, or a known library's.
    Foreign,
    /// Of no known package.
    Unlisted,
    /// In a package of the app, or a slice that the app writes.
    Own,
}

/// The packages of one app.
#[derive(Debug)]
struct AppPackages {
    packages: Vec<String>,
    /// The user has named them: no other method is the app's.
    is_given: bool,
}

impl AppPackages {
    /// The packages that the user has named.
    fn given(packages: &[String]) -> AppPackages {
        AppPackages { packages: packages.to_vec(), is_given: true }
    }

    /// The packages of the app with this process name: its own, without a suffix that no class has
    /// (`com.example.feed.debug`), and those of its activities, by their slices.
    fn of_process(process: &str, tree: &CodeTree<'_>, names: &Names) -> AppPackages {
        let frames = || tree.nodes.iter().filter_map(|node| node.frame);
        let has_class = |package: &str| {
            frames().any(|frame| frame.kind == CodeKind::Method && is_within(names.text(frame.name), package))
        };
        let name = process.split(':').next().unwrap_or_default();
        let shorter = std::iter::successors(Some(name), |name| Some(name.rsplit_once('.')?.0));
        let own = shorter.take(3).filter(|name| is_app_package(name)).find(|name| has_class(name));
        let activities = frames().filter(|frame| frame.kind == CodeKind::Slice).filter_map(|frame| {
            let class = names.text(frame.name).strip_prefix("performCreate:")?;
            class.rsplit_once('.').map(|(package, _)| package)
        });
        let mut packages: Vec<String> = own.into_iter().chain(activities).map(str::to_owned).collect();
        packages.sort_unstable();
        packages.dedup();
        AppPackages { packages, is_given: false }
    }

    fn ownership(&self, frame: CodeFrame, names: &Names) -> Ownership {
        let name = names.text(frame.name);
        match frame.kind {
            CodeKind::Slice if is_platform_slice(name) => Ownership::Foreign,
            CodeKind::Slice => Ownership::Own,
            CodeKind::Method if self.packages.iter().any(|package| is_within(name, package)) => {
                Ownership::Own
            }
            CodeKind::Method if CodeOrigin::from_method_name(name, &[]) == CodeOrigin::App => {
                if self.is_given { Ownership::Foreign } else { Ownership::Unlisted }
            }
            CodeKind::Program => Ownership::Unlisted,
            CodeKind::Method | CodeKind::System => Ownership::Foreign,
        }
    }
}

/// The packages of the app whose thread ran at the end of a path.
#[derive(Debug, Default)]
pub(super) struct PackagesByPath {
    apps: Vec<AppPackages>,
    numbers: FxHashMap<PathId, usize>,
}

impl PackagesByPath {
    fn ownership(&self, path: PathId, frame: CodeFrame, names: &Names) -> Ownership {
        let app = self.numbers.get(&path).map(|number| &self.apps[*number]);
        app.map_or(Ownership::Foreign, |app| app.ownership(frame, names))
    }
}

/// The name of an app's package, and not of one that libraries share, as `com.google`.
fn is_app_package(name: &str) -> bool {
    name.contains('.') && !name.starts_with('/') && !CodeOrigin::has_packages_within(name)
}

/// An own frame, and the frames beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct OwnFrame {
    pub frame: CodeFrame,
    /// The app's frame around it, else the one that called it.
    pub caller: Option<CodeFrame>,
    /// The frame that it called.
    pub callee: Option<CodeFrame>,
}

/// The frames of the app around a node.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    /// The innermost one of the app's packages that holds enough time.
    own: Option<NodeId>,
    /// The innermost one of no known package that does.
    unlisted: Option<NodeId>,
    /// The outermost ones, however long they took.
    outermost_own: Option<NodeId>,
    outermost_unlisted: Option<NodeId>,
    /// The innermost one of the app, the node itself aside.
    app_above: Option<NodeId>,
    callee: Option<NodeId>,
}

impl Around {
    fn chosen(&self) -> Option<NodeId> {
        self.own.or(self.unlisted).or(self.outermost_own).or(self.outermost_unlisted)
    }
}

/// The own frame of each node of a tree. `span_ns` is the length of the span.
pub(super) fn own_frames(
    tree: &CodeTree<'_>,
    names: &Names,
    packages: &PackagesByPath,
    span_ns: u64,
) -> Vec<Option<OwnFrame>> {
    let ownership = ownership(tree, names, packages);
    let held = held_times(tree, &ownership);
    let least = (span_ns / LEAST_SHARE).max(1);
    let mut around: Vec<Around> = Vec::with_capacity(tree.nodes.len());
    let frame_of = |node: NodeId| tree.nodes[node.index()].frame;
    let mut frames = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let this = NodeId::new(at);
        let Some(frame) = node.frame else {
            around.push(Around::default());
            frames.push(None);
            continue;
        };
        let outer = around[node.parent.index()];
        let mut here = outer;
        if ownership[node.parent.index()] > Ownership::Foreign {
            here.app_above = Some(node.parent);
        }
        let is_held = held.get(&(node.path, frame)).is_some_and(|ns| *ns >= least);
        match ownership[at] {
            Ownership::Own => {
                here.outermost_own.get_or_insert(this);
                here.own = if is_held { Some(this) } else { outer.own };
            }
            Ownership::Unlisted => {
                here.outermost_unlisted.get_or_insert(this);
                here.unlisted = if is_held { Some(this) } else { outer.unlisted };
            }
            Ownership::Foreign => {}
        }
        let chosen = here.chosen();
        here.callee = match chosen {
            Some(chosen) if chosen == this => None,
            Some(chosen) if chosen == node.parent => Some(this),
            chosen if chosen == outer.chosen() => outer.callee,
            _ => None,
        };
        frames.push(chosen.and_then(|chosen| {
            let parent = tree.nodes[chosen.index()].parent;
            let above = if chosen == this { here.app_above } else { around[chosen.index()].app_above };
            let caller = above.and_then(frame_of).or_else(|| frame_of(parent));
            Some(OwnFrame { frame: frame_of(chosen)?, caller, callee: here.callee.and_then(frame_of) })
        }));
        around.push(here);
    }
    frames
}

/// How surely each node is the app's.
fn ownership(tree: &CodeTree<'_>, names: &Names, packages: &PackagesByPath) -> Vec<Ownership> {
    let mut known: FxHashMap<(PathId, CodeFrame), Ownership> = FxHashMap::default();
    let of_node = |node: &super::code_tree::CodeNode| {
        let Some(frame) = node.frame else { return Ownership::Foreign };
        let key = (node.path, frame);
        *known.entry(key).or_insert_with(|| packages.ownership(node.path, frame, names))
    };
    tree.nodes.iter().map(of_node).collect()
}

/// How long each frame of the app was open on each path, ns. A recursive call counts once.
fn held_times(tree: &CodeTree<'_>, ownership: &[Ownership]) -> FxHashMap<(PathId, CodeFrame), u64> {
    let mut open: Vec<u64> = tree.nodes.iter().map(|node| node.ns).collect();
    for (at, node) in tree.nodes.iter().enumerate().rev() {
        if node.parent.index() != at {
            open[node.parent.index()] += open[at];
        }
    }
    let mut held: FxHashMap<(PathId, CodeFrame), u64> = FxHashMap::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let Some(frame) = node.frame.filter(|_| ownership[at] > Ownership::Foreign) else { continue };
        let outer = |node: &NodeId| {
            let parent = tree.nodes[node.index()].parent;
            (parent != *node).then_some(parent)
        };
        let mut around = std::iter::successors(outer(&NodeId::new(at)), outer).take(RECURSION_FRAMES);
        if !around.any(|outer| tree.nodes[outer.index()].frame == Some(frame)) {
            *held.entry((node.path, frame)).or_default() += open[at];
        }
    }
    held
}

/// A frame by its name, and its source where that is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub(crate) struct AppFrame {
    pub name: String,
    /// `SettingsStore.java`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip)]
    kind: CodeKind,
}

impl AppFrame {
    pub fn is_method(&self) -> bool {
        self.kind == CodeKind::Method
    }

    /// `SettingsStore.java:57`, or the file alone.
    pub fn source(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }

    /// A slice is no code that calls other code.
    pub fn is_slice(&self) -> bool {
        self.kind == CodeKind::Slice
    }

    /// `SettingsStore.load` for a method, else the whole name.
    pub fn short(&self) -> &str {
        if self.is_method() { short_method(&self.name) } else { &self.name }
    }
}

/// The app's code that ran, with names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub(crate) struct NamedOwnFrame {
    #[serde(flatten)]
    pub frame: AppFrame,
    /// The app's frame around it, else the one that called it.
    pub caller: Option<AppFrame>,
    /// The frame that it called.
    pub callee: Option<AppFrame>,
}

/// The class and the method of a full name, without the package.
pub(super) fn short_method(name: &str) -> &str {
    let mut dots = name.rmatch_indices('.');
    dots.next();
    dots.next().map_or(name, |(at, _)| &name[at + 1..])
}

impl Model {
    /// The packages of the app whose thread ran at the end of each path of `tree`.
    pub(super) fn packages_by_path(&self, tree: &CodeTree<'_>, paths: &Paths) -> PackagesByPath {
        let mut packages = PackagesByPath::default();
        let mut known: FxHashMap<String, usize> = FxHashMap::default();
        for path in tree.nodes.iter().filter(|node| node.frame.is_none()).map(|node| node.path) {
            let runner = paths.hops(path).last().map_or(Tid::UNKNOWN, |hop| hop.tid);
            let process = self.process_name(runner);
            let number = known.get(&process).copied().unwrap_or_else(|| {
                packages.apps.push(match &self.app_packages[..] {
                    [] => AppPackages::of_process(&process, tree, &self.names),
                    given => AppPackages::given(given),
                });
                packages.apps.len() - 1
            });
            known.insert(process, number);
            packages.numbers.insert(path, number);
        }
        packages
    }

    pub(super) fn named_own_frame(&self, own: OwnFrame) -> NamedOwnFrame {
        let named = |frame: CodeFrame| {
            let (file, line) = self.method_files.get(&frame.name).copied().unzip();
            AppFrame {
                name: self.names.text(frame.name).to_owned(),
                file: file.map(|file| self.names.text(file).to_owned()),
                line: line.flatten(),
                kind: frame.kind,
            }
        };
        NamedOwnFrame {
            frame: named(own.frame),
            caller: own.caller.map(named),
            callee: own.callee.map(named),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page names the same frames. `UPDATE_GOLDEN=1 cargo test --lib the_page_has_the_packages` writes
    /// the file anew.
    #[test]
    fn the_page_has_the_packages_and_slices_that_are_not_the_apps() {
        let (framework, libraries) = CodeOrigin::known_packages();
        let lists = serde_json::json!({
            "framework": framework, "libraries": libraries, "platform_slices": PLATFORM_SLICES.as_slice(),
        });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/src/why/code_packages.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, serde_json::to_string_pretty(&lists).unwrap() + "\n").unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&checked_in).unwrap(), lists);
    }

    #[test]
    fn a_slice_of_the_platform_is_a_whole_word() {
        assert!(is_platform_slice("draw") && is_platform_slice("draw-VRI[Main]"));
        assert!(is_platform_slice("RV OnBindView type=0x0") && is_platform_slice("Choreographer#doFrame 7"));
        assert!(!is_platform_slice("drawChart") && !is_platform_slice("inputField"));
        assert!(!is_platform_slice("loadSettings") && !is_platform_slice("performCreate:a.B"));
    }

    #[test]
    fn packages_that_libraries_share_are_no_apps() {
        assert!(is_app_package("com.example.feed") && is_app_package("com.google.android.apps.photos"));
        assert!(
            !is_app_package("com.google") && !is_app_package("main") && !is_app_package("/system/bin/sh")
        );
    }
}
