//! The launches of `adb launch`: one or many, of one app or of two in turn, and what they took.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::other_version::{OtherVersion, Version};
use super::outcome::{Outcome, worst};
use super::target::before_ending;
use super::via::{self, Request, ViaArg};
use crate::android::methods_refused;
use crate::cli::Exit;
use crate::cli::exit::message;
use crate::cli::host::merge::conversion_error;
use crate::cli::host::{files_in, interrupt};
use crate::cli::recording_flags::{
    ContentArgs, EndArgs, LAUNCH_CATEGORIES, LaunchFlags, ModeArg, RecordSelection, SchedulingArgs,
};
use crate::console::{complain, say};
use crate::export::launches::{Launch, LaunchSet};
use crate::remote::{AppRights, COMMAND_TIME, Device};

/// How long after the time for a launch a recorder of the device ends by itself.
const MARGIN: Duration = Duration::from_secs(10);

/// One of the apps that are launched in turn.
struct Side {
    app: String,
    /// What is added to the names of its outputs.
    label: &'static str,
    version: Version,
    /// Whether Android traces its methods; `None` until that has been asked.
    rights: Option<AppRights>,
    set: LaunchSet,
    failed: u32,
}

impl Side {
    fn new(app: &str, label: &'static str, version: Version) -> Side {
        Side { app: app.to_owned(), label, version, rights: None, set: LaunchSet::default(), failed: 0 }
    }

    fn package(&self) -> &str {
        self.app.split('/').next().unwrap_or_default()
    }
}

/// The launches that are asked for.
pub(super) struct LaunchSeries<'a> {
    /// The app, with or without its activity.
    pub(super) app: &'a str,
    /// Another app that is launched in turn with the first, or the `.apk` file of another version of it.
    pub(super) against: Option<&'a str>,
    /// The number of launches of each app.
    pub(super) runs: u32,
    /// The slice whose end is the end of the launch, in place of the first frame.
    pub(super) until: Option<&'a str>,
    /// Whether the kernel drops its caches of files before each launch.
    pub(super) drop_caches: bool,
    /// What records on the device.
    pub(super) via: ViaArg,
    pub(super) flags: &'a LaunchFlags,
    pub(super) selection: &'a RecordSelection,
    pub(super) scheduling: &'a SchedulingArgs,
}

impl LaunchSeries<'_> {
    /// The command that launches this app on the device with these flags.
    pub(super) fn words(&self, app: &str, flags: &LaunchFlags) -> anyhow::Result<Vec<String>> {
        // The app is the first word that is no flag.
        let selection = with_app(self.selection.words()?, app);
        Ok([vec!["launch".to_owned()], flags.words(), self.scheduling.words(), selection].concat())
    }
}

fn with_app(mut words: Vec<String>, app: &str) -> Vec<String> {
    let at = words.iter().position(|word| word == "--").unwrap_or_else(|| {
        words.push("--".to_owned());
        words.len() - 1
    });
    words.insert(at + 1, app.to_owned());
    words
}

/// Launches what the series names on a device, and says what it took.
pub(super) fn run(
    series: &LaunchSeries<'_>,
    device: &Device,
    output: &Path,
    shows_bar: bool,
) -> anyhow::Result<Outcome> {
    let via = series.via.on(device)?;
    let mut sides = vec![Side::new(series.app, "a", Version::Own)];
    let mut versions = None;
    match series.against {
        Some(file) if file.ends_with(".apk") => {
            let package = series.app.split('/').next().unwrap_or_default();
            versions = Some(OtherVersion::prepare(device, package, Path::new(file))?);
            sides.push(Side::new(series.app, "b", Version::Other));
        }
        Some(other) => sides.push(Side::new(other, "b", Version::Own)),
        None => {}
    }
    let setting = LaunchSetting { series, device, via, shows_bar };
    let result = launch_all(&setting, &mut sides, versions.as_mut(), output);
    let put_back = versions.map_or(Ok(()), OtherVersion::put_back);
    let outcome = result?;
    put_back?;
    Ok(outcome)
}

/// The setting that all launches of a series share.
struct LaunchSetting<'a> {
    series: &'a LaunchSeries<'a>,
    device: &'a Device,
    /// What records: never [`ViaArg::Auto`].
    via: ViaArg,
    shows_bar: bool,
}

fn launch_all(
    setting: &LaunchSetting<'_>,
    sides: &mut [Side],
    mut versions: Option<&mut OtherVersion<'_>>,
    output: &Path,
) -> anyhow::Result<Outcome> {
    let runs_per_side = setting.series.runs;
    let is_single = runs_per_side == 1 && sides.len() == 1;
    let mut text = String::new();
    let mut runs = Vec::new();
    let mut exits = Vec::new();
    for run in 1..=runs_per_side {
        for number in 0..sides.len() {
            if interrupt::has_come() && !exits.is_empty() {
                continue;
            }
            let several = sides.len() > 1;
            let side = &mut sides[number];
            let name = match (several, runs_per_side) {
                (false, 1) => output.to_owned(),
                (false, _) => before_ending(output, &run.to_string()),
                (true, _) => before_ending(output, &format!("{}-{run}", side.label)),
            };
            let launched = versions.as_mut().map_or(Ok(()), |versions| versions.install(side.version));
            let launched = launched.and_then(|()| launch(setting, side, &name));
            match launched {
                Ok((outcome, launch)) => {
                    exits.push(outcome.exit);
                    text += &outcome.text;
                    let mut object = outcome.json;
                    object["app"] = json!(side.app);
                    object["run"] = json!(run);
                    runs.push(object);
                    side.set.launches.push(launch);
                }
                Err(error) if is_single => return Err(error),
                Err(error) => {
                    complain(format_args!("tracebridge: {}, run {run}: {}", side.app, message(&error)));
                    side.failed += 1;
                    exits.push(Exit::Failed);
                }
            }
        }
    }
    let (lines, mut json) = report(sides);
    text += &lines.join("\n");
    text.push('\n');
    if is_single {
        // One launch is one object, as it is of `record`.
        let mut object = runs.pop().unwrap_or_default();
        object["launch"] = json["sides"][0]["launches"][0].take();
        return Ok(Outcome { exit: exits.pop().unwrap_or(Exit::Failed), text, json: object });
    }
    json["runs"] = runs.into();
    Ok(Outcome { exit: worst(&exits), text, json })
}

/// One launch, and what it took.
fn launch(setting: &LaunchSetting<'_>, side: &mut Side, output: &Path) -> anyhow::Result<(Outcome, Launch)> {
    let LaunchSetting { series, device, via, shows_bar } = *setting;
    if series.drop_caches {
        let script = "sync; echo 3 >/proc/sys/vm/drop_caches";
        let dropped = device.run_script(script, device.privilege(), COMMAND_TIME)?;
        if dropped.status != 0 {
            anyhow::bail!("{}: --drop-caches: {} (it needs root)", device.serial(), dropped.words());
        }
    }
    let rights = match (series.flags.no_profile, side.rights) {
        (true, _) => None,
        (false, Some(rights)) => Some(rights),
        (false, None) => Some(device.app_rights(side.package())?),
    };
    side.rights = rights;
    let is_refused = rights == Some(AppRights::Refused);
    let flags = if is_refused { series.flags.without_profile() } else { series.flags.clone() };
    let words = series.words(&side.app, &flags)?;
    let mut names = series.selection.all_names()?;
    if names.is_empty() {
        names.extend(LAUNCH_CATEGORIES.map(str::to_owned));
    }
    let request = Request {
        via,
        is_auto: series.via == ViaArg::Auto,
        words: &words,
        selection: series.selection,
        names,
        launched: Some(side.package()),
        // The launch ends it; this is for a launch that does not.
        end: &EndArgs { time: Some(series.flags.time + MARGIN), max_size: None, mode: ModeArg::Stream },
        scheduling: series.scheduling,
        contents: &ContentArgs { kallsyms: false, compress: false },
    };
    let (mut outcome, delivered) = via::record(&request, device, output, shows_bar)?;
    if let Some(rights) = rights {
        outcome.text = rights_text(side.package(), rights) + &outcome.text;
        outcome.json["method_tracing"] = rights.name().into();
    }
    let lacks_methods = is_refused && outcome.exit == Exit::Complete;
    outcome.exit = if lacks_methods { Exit::Lossy } else { outcome.exit };
    let until = series.until;
    let launch = Launch::measure(&delivered.pulled, until).map_err(conversion_error)?;
    if let Some(until) = until.filter(|_| !launch.has_named_end()) {
        outcome.text += &format!(
            "  no slice named {until} has ended while this was recorded: a longer --settle records more\n"
        );
        outcome.exit = if outcome.exit == Exit::Complete { Exit::Lossy } else { outcome.exit };
    }
    Ok((outcome, launch))
}

/// Whether Android traces the app's methods, as a line for people; empty if that is not known.
fn rights_text(package: &str, rights: AppRights) -> String {
    match rights {
        AppRights::DebuggableBuild => {
            format!("the methods of {package} can be traced: a debuggable build of Android\n")
        }
        AppRights::Debuggable => {
            format!("{package} is debuggable: its code runs slower than that of a release\n")
        }
        AppRights::Profileable => format!("{package} is profileable\n"),
        AppRights::Refused => format!("{}\n", methods_refused(package)),
        AppRights::Unknown => String::new(),
    }
}

/// What the launches took, for people and scripts.
fn report(sides: &mut [Side]) -> (Vec<String>, Value) {
    let (mut lines, mut list) = (Vec::new(), Vec::new());
    for side in &*sides {
        if sides.len() > 1 {
            lines.push(format!("{} ({})", side.app, side.label));
        }
        lines.extend(side.set.lines());
        if side.failed > 0 {
            lines.push(format!("  {} launches failed", side.failed));
        }
        let mut object = side.set.to_json();
        object["app"] = json!(side.app);
        object["failed"] = json!(side.failed);
        list.push(object);
    }
    let mut json = json!({ "sides": list });
    if let [a, b] = sides {
        let [old, new] = [&mut a.set, &mut b.set].map(std::mem::take);
        let names = [format!("{} (a)", a.app), format!("{} (b)", b.app)];
        let compared = new.compare(old, [&names[0], &names[1]]);
        lines.extend(compared.lines());
        json["comparison"] = compared.to_json().unwrap_or_default();
    }
    (lines, json)
}

/// Compares launches that were recorded before.
pub(super) fn compare_recorded(old: &Path, new: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let names = [old, new].map(|path| path.display().to_string());
    let [old, new] = [old, new].map(recorded);
    let compared = new?.compare(old?, [&names[0], &names[1]]);
    match as_json {
        true => say(format_args!("{}\n", compared.to_json()?)),
        false => say(format_args!("{}\n", compared.lines().join("\n"))),
    }
    Ok(Exit::Complete)
}

/// The launches in a file, or in all files of a directory.
fn recorded(path: &Path) -> anyhow::Result<LaunchSet> {
    LaunchSet::of_files(&files_in(path)?).map_err(conversion_error)
}
