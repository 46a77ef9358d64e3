//! Any input may be compressed by gzip or zstd, or come through standard input. The output is the same.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use support::scenario::{Era, Scenario};
use support::{run_in, tracebridge};

/// Writes one file `in.ENDING` of each input format. Returns the endings.
fn inputs(dir: &Path) -> Vec<&'static str> {
    let made = Scenario { threads: 2, length: 100_000_000, ..Scenario::new(51, Era::ArtMono) }.make();
    fs::write(dir.join("in.dat"), &made.dat).unwrap();
    fs::write(dir.join("in.trace"), &made.trace).unwrap();
    for ending in ["txt", "systrace.html", "pftrace"] {
        run_in(dir, &["convert", "in.dat", "-o", &format!("in.{ending}")]).exited(0);
    }
    vec!["dat", "txt", "systrace.html", "pftrace", "trace"]
}

/// Every way to pass the input `in.ENDING`: the argument, and the file for standard input if the argument is
/// `-`.
fn ways(dir: &Path, ending: &str) -> Vec<(String, Option<String>)> {
    let plain = format!("in.{ending}");
    let bytes = fs::read(dir.join(&plain)).unwrap();
    let gzip = format!("{plain}.gz");
    let mut packer =
        flate2::write::GzEncoder::new(File::create(dir.join(&gzip)).unwrap(), Default::default());
    packer.write_all(&bytes).unwrap();
    packer.finish().unwrap();
    let zstd = format!("{plain}.zst");
    fs::write(dir.join(&zstd), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    let piped = [&plain, &gzip, &zstd].map(|name| ("-".to_owned(), Some(name.clone())));
    [(gzip.clone(), None), (zstd.clone(), None)].into_iter().chain(piped).chain([(plain, None)]).collect()
}

fn with(dir: &Path, args: &[&str], input: &(String, Option<String>)) -> Vec<u8> {
    let mut command = tracebridge();
    command.current_dir(dir).args(args).arg(&input.0);
    if let Some(file) = &input.1 {
        command.stdin(File::open(dir.join(file)).unwrap());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn compressed_and_piped_inputs_give_the_same_output_as_plain_ones() {
    let dir = support::tempdir();
    let dir = dir.path();
    for ending in inputs(dir) {
        let plain = (format!("in.{ending}"), None);
        let events = |stdout: &[u8]| {
            let said: Value = serde_json::from_slice(stdout).unwrap();
            let about = &said["outcome"]["inputs"][0];
            (about["events"].as_u64().unwrap(), about["method_edges"].as_u64().unwrap())
        };
        let args: &[&str] = &["convert", "--json", "-o", "out.json"];
        let want = events(&with(dir, args, &plain));
        // The metadata behind the events holds the name of the input, so it is left out.
        let written = || {
            let all = fs::read_to_string(dir.join("out.json")).unwrap();
            all.split("\"metadata\"").next().unwrap_or_default().to_owned()
        };
        let plainly = written();
        assert!(want.0 + want.1 > 100, "{ending}: {want:?}");
        let info = |input: &(String, Option<String>)| {
            let said: Value = serde_json::from_slice(&with(dir, &["info", "--json"], input)).unwrap();
            said["format"].clone()
        };
        let format = info(&plain);
        assert!(format.is_string(), "{ending}");
        for way in ways(dir, ending) {
            assert_eq!(events(&with(dir, args, &way)), want, "{way:?}");
            assert!(written() == plainly, "{way:?}");
            assert_eq!(info(&way), format, "{way:?}");
            if ending == "trace" {
                let profile = with(dir, &["profile"], &way);
                assert_eq!(profile, with(dir, &["profile"], &plain), "{way:?}");
            }
        }
    }
}
