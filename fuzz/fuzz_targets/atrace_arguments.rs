//! Lines as the arguments of atrace: the options of any command line, written as a command line again, are
//! the same options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracebridge::internals::atrace_options::{AtraceOptions, ParsedCommandLine, parse};

/// A command line that asks for these options.
fn command_line(options: &AtraceOptions) -> Vec<String> {
    let AtraceOptions { apps, buffer_kb, circular, categories_file, functions, ignore_signals, .. } = options;
    let mut line = vec![format!("-b{buffer_kb}")];
    let mut put = |option: &str, is_set: bool, argument: &str| {
        if is_set {
            line.push(option.to_owned());
        }
        if is_set && !option.starts_with("--") && "afkost".contains(&option[1..]) {
            line.push(argument.to_owned());
        }
    };
    // `--async_start` also sets `circular`, and all of them set more than one field: the last ones count.
    put("--async_start", options.asynchronous && options.start && !options.stop, "");
    put("--async_stop", options.asynchronous && !options.start, "");
    put("--async_dump", options.asynchronous && !options.stop, "");
    put("-a", !apps.is_empty(), apps);
    put("-c", *circular, "");
    put("-f", categories_file.is_some(), categories_file.as_deref().unwrap_or_default());
    put("-k", functions.is_some(), functions.as_deref().unwrap_or_default());
    put("-n", *ignore_signals, "");
    put("-s", true, &options.sleep.to_string());
    put("-t", true, &options.seconds.to_string());
    put("-z", options.compress, "");
    put("-o", options.output.is_some(), options.output.as_deref().unwrap_or_default());
    put("--stream", options.stream, "");
    put("--prefer_sdk", options.prefer_sdk, "");
    put("--only_userspace", options.only_userspace, "");
    put("--", true, "");
    line.extend(options.categories.iter().cloned());
    line
}

/// The fields that do not depend on the order of the `--async_…` options.
fn plain(options: &AtraceOptions) -> AtraceOptions {
    AtraceOptions { circular: false, start: false, stop: false, dump: false, ..options.clone() }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(ParsedCommandLine::Run(options)) = parse(text.split('\n').map(str::to_owned).collect()) else {
        return;
    };
    assert!(options.buffer_kb >= 1);
    match parse(command_line(&options)) {
        Ok(ParsedCommandLine::Run(again)) => assert_eq!(plain(&options), plain(&again)),
        other => panic!("{options:?} became {other:?}"),
    }
});
