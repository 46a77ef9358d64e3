//! The launches of an app: one or many, or those of two apps in turn, and the statistics of their times.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::app_versions::{AppVersion, AppVersions};
use super::delivery::check_output;
use super::device::{AppRights, is_video};
use super::device_json::{DeviceJson, EndedAfter, SideJson};
use super::error::DeskError;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult, LineKind};
use super::output_names::before_ending;
use super::recorder_choice::{ChosenRecorder, RecorderChoice, TraceSelection};
use super::recording::{RecorderRun, check_video, run_recorder, say_without_frame_timeline};
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::android::methods_refused;
use crate::export::convert::ConvertError;
use crate::export::launches::{LaunchComparison, LaunchSet, MeasuredLaunch};

/// How long a device may take to store its unwritten data: with much of it on a slow phone, minutes.
const SYNC_TIMEOUT: Duration = Duration::from_secs(600);

const NOTHING_LAUNCHED: &str = "nothing was launched";

/// The launches that are asked for.
#[derive(Debug, Clone)]
pub struct LaunchSeriesRequest {
    /// The app, with or without its activity.
    pub app: String,
    /// Another app that is launched in turn with the first, or the `.apk` file of another version of it.
    pub against: Option<String>,
    /// The number of launches of each app.
    pub runs: u32,
    /// The slice whose end is the end of the launch, in place of the first frame.
    pub until: Option<String>,
    /// Whether the kernel drops its caches of files before each launch.
    pub drop_caches: bool,
    /// Whether the device's `screenrecord` makes a video of the screen beside each launch.
    pub has_video: bool,
    /// The recorder.
    pub recorder: RecorderChoice,
    /// Whether the app's methods are traced.
    pub traces_methods: bool,
    /// The flags of the device's `launch`.
    pub flags: Vec<String>,
    /// The same flags for an app whose methods Android does not trace.
    pub flags_without_methods: Vec<String>,
    /// Names of categories and events, for tracebridge's own recorder. Without names it has its own.
    pub names: Vec<String>,
    /// The same for recorders of the device.
    pub selection: TraceSelection,
}

impl LaunchSeriesRequest {
    /// The arguments of the binary that launch this app.
    fn args(&self, app: &str, traces_methods: bool) -> Vec<String> {
        let flags = if traces_methods { &self.flags } else { &self.flags_without_methods };
        let command = ["launch".to_owned()];
        let app = ["--".to_owned(), app.to_owned()];
        [&command, flags.as_slice(), &app, self.names.as_slice()].concat()
    }

    /// The apps that are launched in turn.
    fn apps(&self) -> Vec<LaunchedApp> {
        let mut apps = vec![LaunchedApp::new(&self.app, "a", AppVersion::Own)];
        match &self.against {
            Some(_) if self.apk().is_some() => {
                apps.push(LaunchedApp::new(&self.app, "b", AppVersion::Other));
            }
            Some(other) => apps.push(LaunchedApp::new(other, "b", AppVersion::Own)),
            None => {}
        }
        apps
    }

    /// The file of the app's other version, if the app is compared with one.
    fn apk(&self) -> Option<&Path> {
        self.against.as_deref().filter(|against| against.ends_with(".apk")).map(Path::new)
    }
}

/// One of the apps that are launched in turn.
struct LaunchedApp {
    app: String,
    /// The part of its outputs' names that tells it from the other app.
    label: &'static str,
    version: AppVersion,
    /// Whether Android traces its methods; `None` until the device has been asked.
    rights: Option<AppRights>,
    set: LaunchSet,
    failed: u32,
    /// Those of the failed launches of which Android started nothing.
    not_launched: u32,
}

impl LaunchedApp {
    fn new(app: &str, label: &'static str, version: AppVersion) -> LaunchedApp {
        LaunchedApp {
            app: app.to_owned(),
            label,
            version,
            rights: None,
            set: LaunchSet::default(),
            failed: 0,
            not_launched: 0,
        }
    }

    fn package(&self) -> &str {
        package(&self.app)
    }
}

/// The package of an app that is named with or without its activity.
fn package(app: &str) -> &str {
    app.split('/').next().unwrap_or_default()
}

/// Launches the app on devices, as often as the request says, and measures the launches.
///
/// # Errors
/// [`DeskError`] if the output cannot be one, or the devices cannot be found.
pub fn launch(
    request: &LaunchSeriesRequest,
    output: &Path,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    check_output(output)?;
    targets.on_each(ui, |mut target| {
        if request.has_video {
            check_video(&target, request.selection.duration)?;
        }
        target.device.ensure_binary(None)?;
        let output = target.name.output(output);
        launch_on(request, &target, &output)
    })
}

/// Launches what the request names on a device.
fn launch_on(
    request: &LaunchSeriesRequest,
    target: &TargetDevice<'_>,
    output: &Path,
) -> Result<DeviceOutcome, DeskError> {
    let recorder = request.recorder.on(&target.device)?;
    let versions = request.apk().map(|apk| AppVersions::prepare(&target.device, package(&request.app), apk));
    let mut versions = versions.transpose()?;
    let series = LaunchSeries { request, target, recorder };
    let result = series.run(&mut request.apps(), versions.as_mut(), output);
    let put_back = versions.map_or(Ok(()), AppVersions::put_back);
    let outcome = result?;
    put_back?;
    Ok(outcome)
}

/// The state that all launches of a series share.
struct LaunchSeries<'a> {
    request: &'a LaunchSeriesRequest,
    target: &'a TargetDevice<'a>,
    recorder: ChosenRecorder,
}

/// The result of one launch.
enum LaunchRun {
    /// The app was launched, and the launch measured.
    Measured(DeviceOutcome, Box<MeasuredLaunch>),
    /// Android launched nothing.
    Refused(DeviceOutcome),
    /// The user has ended the series before the launch had come to its end. The recording up to
    /// then is in this file, if there is any.
    CutOff(Option<PathBuf>),
}

impl LaunchSeries<'_> {
    /// Launches each app in turn.
    fn run(
        &self,
        apps: &mut [LaunchedApp],
        mut versions: Option<&mut AppVersions<'_>>,
        output: &Path,
    ) -> Result<DeviceOutcome, DeskError> {
        let runs = self.request.runs;
        let has_several_apps = apps.len() > 1;
        let is_single = runs == 1 && !has_several_apps;
        let label = |app: &LaunchedApp| has_several_apps.then_some(app.label);
        // No launch is made whose output could not be written.
        for (run, app) in (1..=runs).flat_map(|run| apps.iter().map(move |app| (run, app))) {
            check_output(&run_output(output, label(app), run, runs))?;
        }
        let mut results = SeriesResults::default();
        'series: for run in 1..=runs {
            for app in apps.iter_mut() {
                if self.is_ended() {
                    break 'series;
                }
                let output = run_output(output, label(app), run, runs);
                let installed = versions.as_mut().map_or(Ok(()), |versions| versions.install(app.version));
                match installed.and_then(|()| self.launch_app(app, &output)) {
                    Ok(LaunchRun::Measured(outcome, launch)) => {
                        let took = (!is_single).then(|| launch.short_text());
                        results.add(&app.app, run, outcome, took);
                        app.set.launches.push(*launch);
                    }
                    Ok(LaunchRun::Refused(mut outcome)) => {
                        app.failed += 1;
                        app.not_launched += 1;
                        if is_single {
                            let output = output.display();
                            let meanwhile =
                                format!("{NOTHING_LAUNCHED}: {output} is what was recorded meanwhile");
                            outcome.text.push(LineKind::Note, &meanwhile);
                        }
                        let took = (!is_single).then(|| NOTHING_LAUNCHED.to_owned());
                        results.add(&app.app, run, outcome, took);
                    }
                    Ok(LaunchRun::CutOff(output)) => {
                        results.cut_off = output;
                        break 'series;
                    }
                    Err(error) if is_single => return Err(error),
                    Err(error) => {
                        self.target.ui.show_message(&format!("tracebridge: {}, run {run}: {error}", app.app));
                        app.failed += 1;
                        results.completeness.push(Completeness::Failed);
                    }
                }
            }
        }
        let statistics = SeriesStatistics::of(apps, is_single);
        let asked = runs as usize * apps.len();
        Ok(if is_single { results.into_single(statistics) } else { results.into_series(asked, statistics) })
    }

    /// Whether the user has ended a series of launches. A launch alone is told to end, and says how it ended.
    fn is_ended(&self) -> bool {
        let is_series = self.request.runs > 1 || self.request.against.is_some();
        is_series && self.target.wants_end()
    }

    /// Launches an app once, and measures the launch.
    fn launch_app(&self, app: &mut LaunchedApp, output: &Path) -> Result<LaunchRun, DeskError> {
        let LaunchSeries { request, target, recorder } = *self;
        if request.drop_caches {
            self.drop_caches()?;
        }
        if request.traces_methods && app.rights.is_none() {
            app.rights = Some(target.device.app_rights(app.package())?);
        }
        let is_refused = app.rights == Some(AppRights::Refused);
        let args = request.args(&app.app, request.traces_methods && !is_refused);
        let run = RecorderRun {
            has_video: request.has_video,
            recorder,
            is_automatic: request.recorder == RecorderChoice::Auto,
            args: &args,
            selection: &request.selection,
            launched: Some(app.package()),
        };
        if self.is_ended() {
            return Ok(LaunchRun::CutOff(None));
        }
        let (mut outcome, delivered) = match run_recorder(&run, target, output) {
            // The signal came before the recorder had anything to end.
            Err(DeskError::CommandFailed { .. }) if self.is_ended() => return Ok(LaunchRun::CutOff(None)),
            recorded => recorded?,
        };
        say_without_frame_timeline(&mut outcome, recorder, &target.device);
        if let Some(reason) = outcome.json.printed_text("not_launched").map(str::to_owned) {
            // The reason is said once: as the first line.
            outcome.text.retain(|line| !line.ends_with(&reason));
            outcome.text.put_before(&format!("{NOTHING_LAUNCHED}: {reason}"));
            return Ok(LaunchRun::Refused(outcome));
        }
        if outcome.completeness == Completeness::Failed && self.is_ended() {
            return Ok(LaunchRun::CutOff(Some(output.to_owned())));
        }
        if let Some(rights) = app.rights {
            outcome.text.put_before(&rights_text(app.package(), rights));
            outcome.json.method_tracing = Some(rights.name());
        }
        outcome.completeness = outcome.completeness.with_loss(is_refused);
        let is_trace = |file: &&PathBuf| !is_video(&file.to_string_lossy());
        let traces: Vec<PathBuf> = delivered.pulled.iter().filter(is_trace).cloned().collect();
        let launch = MeasuredLaunch::measure(&traces, request.until.as_deref())?;
        if let Some(until) = request.until.as_deref().filter(|_| !launch.has_named_end()) {
            let note = format!(
                "  no slice named {until} has ended while this was recorded: a longer --settle records more"
            );
            outcome.text.push(LineKind::Note, &note);
            outcome.completeness = outcome.completeness.with_loss(true);
        }
        Ok(LaunchRun::Measured(outcome, Box::new(launch)))
    }

    /// Has the device's kernel drop its caches of files. Only stored data can be dropped: `sync` comes
    /// first.
    fn drop_caches(&self) -> Result<(), DeskError> {
        let device = &self.target.device;
        let serial = device.serial();
        self.target
            .ui
            .show_message(&format!("{serial}: storing unwritten data, then dropping the kernel's caches"));
        let script = "sync; echo 3 >/proc/sys/vm/drop_caches";
        let output = device.run_script(script, device.privilege(), SYNC_TIMEOUT)?;
        if output.status != 0 {
            let serial = device.serial().to_owned();
            return Err(DeskError::CachesKept { serial, message: output.message() });
        }
        Ok(())
    }
}

/// The output of one launch: the output itself, if there is one launch alone, else with the app's label (of
/// several apps) and the number of the run before its ending.
fn run_output(output: &Path, label: Option<&str>, run: u32, runs: u32) -> PathBuf {
    match label {
        None if runs == 1 => output.to_owned(),
        None => before_ending(output, &run.to_string()),
        Some(label) => before_ending(output, &format!("{label}-{run}")),
    }
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

/// The outcomes of the launches of a series.
#[derive(Default)]
struct SeriesResults {
    /// Of each launch, also of those that failed.
    completeness: Vec<Completeness>,
    text: String,
    /// The notes that a launch of the series has printed. Another launch with the same one does not repeat
    /// it.
    notes: HashSet<String>,
    /// The JSON of each launch that did not fail.
    runs: Vec<DeviceJson>,
    /// The recording of the launch that the user's signal cut off.
    cut_off: Option<PathBuf>,
}

impl SeriesResults {
    /// Adds the outcome of a launch of this app. `took` is what it took, for a launch of a series: such a
    /// launch is told in one line, and notes that all launches have are told once.
    fn add(&mut self, app: &str, run: u32, outcome: DeviceOutcome, took: Option<String>) {
        self.completeness.push(outcome.completeness);
        match took {
            None => self.text += &outcome.text.to_string(),
            Some(took) => {
                for note in outcome.text.lines_of(LineKind::Note) {
                    if self.notes.insert(note.to_owned()) {
                        self.text += &format!("{note}\n");
                    }
                }
                let name = outcome.text.lines_of(LineKind::Output).next().unwrap_or_default();
                self.text += &format!("{name}: {took}\n");
                for loss in outcome.text.lines_of(LineKind::Loss) {
                    self.text += &format!("{loss}\n");
                }
            }
        }
        self.runs.push(DeviceJson { app: Some(app.to_owned()), run: Some(run), ..outcome.json });
    }

    /// The outcome of a series of so many launches, or of those that were made before the user ended it.
    fn into_series(self, asked: usize, statistics: SeriesStatistics) -> DeviceOutcome {
        let made = self.completeness.len();
        let completeness = self.completeness.into_iter().max().unwrap_or(Completeness::Failed);
        let mut text = self.text + &statistics.text;
        let mut json = DeviceJson {
            sides: Some(statistics.sides),
            comparison: statistics.comparison,
            runs: Some(self.runs),
            ..DeviceJson::default()
        };
        if made < asked {
            text += &format!("ended by a signal after {made} of {asked} launches");
            let cut_off = self.cut_off.map(|output| output.display().to_string());
            if let Some(output) = &cut_off {
                text += &format!(": {output} is what was recorded of the next one, which does not count");
            }
            json.ended_after = Some(EndedAfter { launches: made, of: asked, cut_off });
            text += "\n";
        }
        DeviceOutcome { completeness, text: text.into(), json }
    }

    /// The outcome of a launch alone: one object, as it is of `record`.
    fn into_single(mut self, mut statistics: SeriesStatistics) -> DeviceOutcome {
        let mut json = self.runs.pop().unwrap_or_default();
        let side = statistics.sides.first_mut();
        let launch = side.and_then(|side| side.pointer_mut("/launches/0")).map(Value::take);
        json.launch = Some(launch.unwrap_or_default());
        let completeness = self.completeness.pop().unwrap_or(Completeness::Failed);
        DeviceOutcome { completeness, text: (self.text + &statistics.text).into(), json }
    }
}

/// The times of a series' launches, and the comparison of two apps.
struct SeriesStatistics {
    /// Lines for people.
    text: String,
    /// A [`SideJson`] for each app.
    sides: Vec<Value>,
    /// The comparison of two apps.
    comparison: Option<Value>,
}

impl SeriesStatistics {
    /// Compares the apps, of which the launches are taken.
    fn of(apps: &mut [LaunchedApp], is_single: bool) -> SeriesStatistics {
        let mut lines = Vec::new();
        let mut sides = Vec::new();
        for app in apps.iter() {
            if apps.len() > 1 {
                lines.push(format!("{} ({})", app.app, app.label));
            }
            lines.extend(app.set.lines());
            if app.failed > 0 && !is_single {
                let launches =
                    if app.failed == 1 { "1 launch".to_owned() } else { format!("{} launches", app.failed) };
                let has_none = app.set.launches.is_empty() && app.not_launched == app.failed;
                let head = if has_none { format!("{NOTHING_LAUNCHED}: ") } else { "  ".to_owned() };
                lines.push(format!("{head}{launches} failed"));
            }
            let side = SideJson { app: &app.app, failed: app.failed, set: app.set.json() };
            sides.push(serde_json::to_value(side).unwrap_or_default());
        }
        let mut comparison = None;
        if let [a, b] = apps {
            let [old, new] = [&mut a.set, &mut b.set].map(std::mem::take);
            let names = [format!("{} (a)", a.app), format!("{} (b)", b.app)];
            let compared = new.compare(old, [&names[0], &names[1]]);
            lines.extend(compared.lines());
            comparison = compared.to_json().ok();
        }
        SeriesStatistics { text: lines.into_iter().map(|line| line + "\n").collect(), sides, comparison }
    }
}

/// Launches that were recorded before.
#[derive(Debug, Clone)]
pub struct RecordedLaunches {
    /// The name of the launches in texts.
    pub title: String,
    /// The files. Those of one directory whose names differ in their endings alone are one launch.
    pub files: Vec<PathBuf>,
}

/// Compares launches that were recorded before.
///
/// # Errors
/// [`ConvertError`] where a file cannot be read.
pub fn compare_recorded(
    old: &RecordedLaunches,
    new: &RecordedLaunches,
) -> Result<LaunchComparison, ConvertError> {
    let old_set = LaunchSet::of_files(&old.files)?;
    let new_set = LaunchSet::of_files(&new.files)?;
    Ok(new_set.compare(old_set, [&old.title, &new.title]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(against: Option<&str>, runs: u32) -> LaunchSeriesRequest {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        LaunchSeriesRequest {
            app: "com.a/.Main".to_owned(),
            against: against.map(str::to_owned),
            runs,
            until: None,
            drop_caches: false,
            has_video: false,
            recorder: RecorderChoice::Auto,
            traces_methods: true,
            flags: texts(&["--sampling=100", "--time=60"]),
            flags_without_methods: texts(&["--no-profile", "--time=60"]),
            names: texts(&["sched"]),
            selection: TraceSelection::default(),
        }
    }

    /// A recording that has no launch in it: what it took is the time of a thread.
    fn recorded_launch() -> MeasuredLaunch {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dat/v6.dat");
        MeasuredLaunch::measure(&[golden], None).unwrap()
    }

    fn outcome(completeness: Completeness, text: &str) -> DeviceOutcome {
        let printed = [("output".to_owned(), text.trim().into())].into_iter().collect();
        let json = DeviceJson { printed, ..DeviceJson::default() };
        DeviceOutcome { completeness, text: text.to_owned().into(), json }
    }

    fn printed(outcome: &DeviceOutcome) -> Value {
        serde_json::to_value(&outcome.json).unwrap()
    }

    #[test]
    fn the_app_stands_before_the_names_and_a_refused_profiler_is_left_out() {
        let request = request(None, 1);
        let args = |traces_methods| request.args("com.a/.Main", traces_methods).join(" ");
        assert_eq!(args(true), "launch --sampling=100 --time=60 -- com.a/.Main sched");
        assert_eq!(args(false), "launch --no-profile --time=60 -- com.a/.Main sched");
    }

    #[test]
    fn another_app_or_another_version_is_launched_in_turn() {
        let apps = |against| {
            let apps = request(against, 1).apps();
            apps.into_iter().map(|app| (app.app, app.label, app.version)).collect::<Vec<_>>()
        };
        let first = || ("com.a/.Main".to_owned(), "a", AppVersion::Own);
        assert_eq!(apps(None), [first()]);
        assert_eq!(apps(Some("com.b")), [first(), ("com.b".to_owned(), "b", AppVersion::Own)]);
        let other = ("com.a/.Main".to_owned(), "b", AppVersion::Other);
        assert_eq!(apps(Some("b.apk")), [first(), other]);
    }

    #[test]
    fn each_launch_of_a_series_has_an_output_of_its_own() {
        let output = |label, run, runs| {
            run_output(Path::new("d/start.pftrace"), label, run, runs).display().to_string()
        };
        assert_eq!(output(None, 1, 1), "d/start.pftrace");
        assert_eq!(output(None, 2, 10), "d/start-2.pftrace");
        assert_eq!(output(Some("b"), 1, 1), "d/start-b-1.pftrace");
    }

    #[test]
    fn a_series_has_the_worst_completeness_and_the_statistics_of_each_app() {
        let mut apps = request(Some("com.b"), 2).apps();
        let mut results = SeriesResults::default();
        for (app, run, completeness) in
            [(0, 1, Completeness::Complete), (1, 1, Completeness::Lossy), (0, 2, Completeness::Complete)]
        {
            let mut outcome = outcome(completeness, "a note");
            outcome.text.push(LineKind::Output, &format!("start-{run}.dat (trace.dat, 1 kB)"));
            outcome.text.push(LineKind::Figures, "  TotalTime: 300");
            outcome.text.push(LineKind::Loss, &format!("  {run} events lost"));
            results.add(&apps[app].app, run, outcome, Some("a cold launch, 300.000 ms".to_owned()));
            apps[app].set.launches.push(recorded_launch());
        }
        apps[1].failed = 1;
        let outcome = results.into_series(3, SeriesStatistics::of(&mut apps, false));
        assert_eq!(outcome.completeness, Completeness::Lossy);
        let json = printed(&outcome);
        assert_eq!(json["runs"].as_array().unwrap().len(), 3, "{json}");
        assert_eq!((&json["runs"][1]["app"], &json["runs"][2]["run"]), (&"com.b".into(), &2.into()));
        let sides = &json["sides"];
        assert_eq!((&sides[0]["failed"], &sides[1]["failed"]), (&0.into(), &1.into()));
        assert_eq!(sides[0]["launches"].as_array().unwrap().len(), 2);
        assert!(sides[0]["spread"]["median_ns"].is_u64() && json["comparison"].is_object(), "{json}");
        let text = outcome.text.to_string();
        // A line for each launch; a note that all have is there once, and one that is another's is not lost.
        assert!(
            text.starts_with(
                "a note\nstart-1.dat (trace.dat, 1 kB): a cold launch, 300.000 ms\n  1 events lost\n\
                 start-1.dat (trace.dat, 1 kB): a cold launch, 300.000 ms\n  1 events lost\n\
                 start-2.dat (trace.dat, 1 kB): a cold launch, 300.000 ms\n  2 events lost\n\
                 com.a/.Main (a)\n2 launches, "
            ),
            "{text}"
        );
        assert!(text.contains("\ncom.b (b)\n") && text.contains("  1 launch failed\n"), "{text}");
    }

    #[test]
    fn one_launch_alone_is_one_object() {
        let mut apps = request(None, 1).apps();
        let mut results = SeriesResults::default();
        results.add("com.a/.Main", 1, outcome(Completeness::Complete, "start\n"), None);
        apps[0].set.launches.push(recorded_launch());
        let outcome = results.into_single(SeriesStatistics::of(&mut apps, true));
        assert_eq!(outcome.completeness, Completeness::Complete);
        let json = printed(&outcome);
        assert_eq!((&json["output"], &json["app"]), (&"start".into(), &"com.a/.Main".into()));
        assert!(json["launch"]["total_ns"].is_u64(), "{json}");
        assert!(json.get("runs").is_none());
    }

    #[test]
    fn a_series_that_was_ended_has_the_launches_that_were_made() {
        let of = |made: u32, cut_off: Option<&str>| {
            let mut apps = request(Some("com.b"), 5).apps();
            let mut results =
                SeriesResults { cut_off: cut_off.map(PathBuf::from), ..SeriesResults::default() };
            for run in 1..=made {
                let took = Some("a cold launch, 300.000 ms".to_owned());
                results.add("com.a", run, outcome(Completeness::Complete, "x\n"), took);
                apps[0].set.launches.push(recorded_launch());
            }
            results.into_series(10, SeriesStatistics::of(&mut apps, false))
        };
        let ended = of(2, Some("x-3.dat"));
        let words = "ended by a signal after 2 of 10 launches: x-3.dat is what was recorded of the next one, which \
                     does not count\n";
        assert!(ended.text.to_string().ends_with(words), "{}", ended.text);
        assert_eq!(ended.completeness, Completeness::Complete);
        let cut_off = Some("x-3.dat".to_owned());
        assert_eq!(ended.json.ended_after, Some(EndedAfter { launches: 2, of: 10, cut_off }));
        let ended = of(0, None);
        assert!(
            ended.text.to_string().ends_with("ended by a signal after 0 of 10 launches\n"),
            "{}",
            ended.text
        );
        assert_eq!(ended.completeness, Completeness::Failed);
        assert_eq!(of(10, None).json.ended_after, None);
    }

    #[test]
    fn a_launch_that_am_refused_has_nothing_to_measure() {
        let refused = "tracebridge: com.a/.Main did not start: Error type 3\nx.dat (trace.dat, 1 kB)\n";
        let mut apps = request(None, 1).apps();
        apps[0].failed = 1;
        let mut results = SeriesResults::default();
        results.add("com.a/.Main", 1, outcome(Completeness::Failed, refused), None);
        let single = results.into_single(SeriesStatistics::of(&mut apps, true));
        assert_eq!((single.text.to_string().as_str(), single.json.launch), (refused, Some(Value::Null)));
    }

    #[test]
    fn the_rights_of_an_app_are_told_unless_they_are_unknown() {
        assert_eq!(rights_text("com.a", AppRights::Profileable), "com.a is profileable\n");
        assert!(rights_text("com.a", AppRights::Refused).starts_with("no method trace: com.a is neither"));
        assert_eq!(rights_text("com.a", AppRights::Unknown), "");
    }
}
