# The other scripts source this file: paths, messages, errors, devices, and the search for a Rust that is new
# enough.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this file use the variables

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${TRACEBRIDGE_CACHE:-$root/.cache}
venv=$cache/venv
speedscope_version=1.25.0
speedscope=$cache/speedscope-$speedscope_version
mdbook_version=0.5.4
cargo_deny_version=0.20.2
me=${0##*/}
abis=(arm64-v8a armeabi-v7a x86 x86_64)
on_device=/data/local/tmp

say() { printf '%s\n' "$me: $*" >&2; }
die() {
    say "$*"
    exit 1
}
# usage STATUS: prints the comment at the top of the script, which is its help, and exits with this status.
usage() {
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
    exit "$1"
}
usage_error() {
    say "$* (see --help)"
    exit 2
}
# value "$@": fails unless the option $1 has a value after it.
value() { (($# > 1)) || usage_error "$1 needs a value"; }
have() { command -v "$1" >/dev/null; }
# pack_directory DIRECTORY ARCHIVE: puts the files below the directory into a ZIP archive, sorted by name, all with
# one time and one mode: the same files give the same bytes. They are not compressed: git compresses the archive
# itself, and stores a changed one as a difference from the old one.
pack_directory() {
    python3 - "$1" "$2" <<'PYTHON'
import pathlib, sys, zipfile
directory, archive = map(pathlib.Path, sys.argv[1:])
paths = sorted(path for path in directory.rglob("*") if path.is_file())
if not paths:
    sys.exit(f"{directory}: there are no files to pack")
unfinished = archive.with_suffix(".new")
with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as packed:
    for path in paths:
        member = zipfile.ZipInfo(path.relative_to(directory).as_posix(), (1980, 1, 1, 0, 0, 0))
        member.create_system = 3  # Unix: the upper half of external_attr is the mode
        member.external_attr = 0o100644 << 16
        packed.writestr(member, path.read_bytes())
unfinished.replace(archive)
PYTHON
}
# release_version: prints the version of the workspace.
release_version() { sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1; }
# release_time: prints the time that everything in a release has, in seconds: SOURCE_DATE_EPOCH, or the last commit's.
release_time() { if [[ -n ${SOURCE_DATE_EPOCH:-} ]]; then echo "$SOURCE_DATE_EPOCH"; else git -C "$root" log -1 --format=%ct; fi; }
# debian_sources RELEASE: prints the file with Debian's package sources as this machine has them, if they are for the release.
debian_sources() {
    local file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if [[ -f $file ]] && grep -q "\b$1\b" "$file"; then
            echo "$file"
            return
        fi
    done
}
# needs_java: fails unless there is a Java for Spark.
needs_java() {
    [[ -n ${JAVA_HOME:-} ]] || have java || die "Spark needs Java 17: run scripts/setup --spark, or set JAVA_HOME"
}

# The Rust version that Cargo.toml asks for, as major.minor.
rust_wanted() { sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml"; }
# Whether the compiler $1 exists and is at least that new.
rust_is_new_enough() {
    local version
    version=$("$1" --version 2>/dev/null | cut -d' ' -f2) || return 1
    [[ -n $version && $(printf '%s\n' "$(rust_wanted)" "$version" | sort -V | head -n 1) == "$(rust_wanted)" ]]
}
# Debian's rustc-web and cargo-web install themselves under these names.
debian_rustc=/usr/bin/rustc
debian_cargo=/usr/bin/cargo
# The standard library's source, from rust-web-src.
rust_library=/usr/lib/rustlib/src/rust/library
# Whether Debian's compiler is there, with the source from which the standard library is built for other systems.
builds_standard_library() {
    [[ -x $debian_cargo && -f $rust_library/Cargo.lock ]] && rust_is_new_enough $debian_rustc
}
# Debian's wine64 is not on PATH without the package wine.
wine=/usr/lib/wine/wine64

# Puts a cargo that is new enough on PATH, or fails with a message that says how to install one.
use_rust() {
    if have cargo && rust_is_new_enough rustc; then return; fi
    if [[ -x $debian_cargo ]] && rust_is_new_enough $debian_rustc; then
        export PATH=/usr/bin:$PATH RUSTC=$debian_rustc CARGO=$debian_cargo
        return
    fi
    die "no Rust $(rust_wanted) or later: ./scripts/setup installs one"
}

# pick_serial SERIAL: prints this serial, or the only device's if SERIAL is empty. Fails if that device is not
# attached, or if there are none or several to choose from.
pick_serial() {
    local wanted=$1 found one
    [[ $wanted =~ ^[A-Za-z0-9._:-]*$ && $wanted != -* ]] || die "not a serial: $(printf %q "$wanted")"
    have adb || die "adb is not installed: ./scripts/setup"
    # The adb server may have forgotten a network address since it was connected.
    if [[ $wanted == *:* ]]; then timeout 10 adb connect "$wanted" >/dev/null 2>&1 || true; fi
    mapfile -t found < <(adb devices 2>/dev/null | awk '$2 == "device" { print $1 }')
    for one in "${found[@]}"; do
        [[ $one =~ ^[A-Za-z0-9._:][A-Za-z0-9._:-]*$ ]] || die "adb names a device in a way that is not a serial: $(printf %q "$one")"
    done
    if [[ -n $wanted ]]; then
        [[ " ${found[*]} " == *" $wanted "* ]] || die "no device $wanted in 'adb devices' (found: ${found[*]:-none})"
        echo "$wanted"
        return
    fi
    case ${#found[@]} in
        0) die "no device in 'adb devices': attach one, or boot the emulated one with android/emulator/boot" ;;
        1) echo "${found[0]}" ;;
        *) die "several devices: choose one with --serial (${found[*]})" ;;
    esac
}

# value_of OPTION "$@": prints the value of an option among the words of a command line; nothing if it is not there.
value_of() {
    local option=$1
    shift
    while (($# > 1)); do
        [[ $1 != "$option" ]] || { echo "$2" && return; }
        shift
    done
}

# abi_of SERIAL: prints the Android ABI of a device.
abi_of() {
    local machine
    machine=$(adb -s "$1" shell -n uname -m | tr -d '\r')
    case $machine in
        aarch64 | armv8*) echo arm64-v8a ;;
        arm*) echo armeabi-v7a ;;
        x86_64) echo x86_64 ;;
        i?86) echo x86 ;;
        *) die "unknown machine '$machine' on $1" ;;
    esac
}

# runner_of ABI: prints the emulator that runs a binary of the ABI on this machine; nothing if the machine
# runs it itself.
runner_of() {
    case $1-$(uname -m) in
        arm64-v8a-aarch64 | x86_64-x86_64 | x86-x86_64) ;;
        arm64-v8a-*) echo qemu-aarch64-static ;;
        armeabi-v7a-*) echo qemu-arm-static ;;
        x86-*) echo qemu-i386-static ;;
        x86_64-*) echo qemu-x86_64-static ;;
    esac
}

# wait_for_recording SERIAL PID: waits at most 10 s until the recorder on the device has begun, which switches
# its events on first and then tracing; or until the process PID on this machine has ended.
wait_for_recording() {
    local i state='cd /sys/kernel/tracing && cat events/sched/sched_switch/enable tracing_on'
    for ((i = 0; i < 100; i++)); do
        [[ $(adb -s "$1" shell -n "$state" | tr -d '\r') != $'1\n1' ]] || return 0
        kill -0 "$2" 2>/dev/null || return 0
        sleep 0.1
    done
}

# tracebridge_adb ARGUMENTS...: becomes `tracebridge adb` of this checkout, in the directory of the caller.
# TRACEBRIDGE_HOST_BINARY names one that is built already.
tracebridge_adb() {
    local binary=${TRACEBRIDGE_HOST_BINARY:-}
    if [[ -z $binary ]]; then
        use_rust
        binary=${CARGO_TARGET_DIR:-$root/target}/release/tracebridge
        [[ -x $binary ]] || say "building the host's binary: some minutes, once"
        (cd "$root" && cargo build --release --locked) >&2
    fi
    # A signal to the script is one to it.
    TRACEBRIDGE_DEVICE_BINARIES=${TRACEBRIDGE_DEVICE_BINARIES:-$root/out/android} exec "$binary" adb "$@"
}

# --- jobs: long commands, beside each other, with a word every few seconds -------------------------------------------

# Names of the jobs that run, and for each its process, its log and its start.
job_names=()
declare -A job_pid job_log job_started
jobs_dir=

# start_job NAME COMMAND...: runs a command in the background, with what it prints in a log.
start_job() {
    local name=$1
    shift
    [[ -n $jobs_dir ]] || jobs_dir=$(mktemp -d)
    job_log[$name]=$jobs_dir/$name.log
    job_started[$name]=$SECONDS
    # In a process group of its own, so that end_jobs ends what it has started, too. Without `-m` it would also ignore
    # Ctrl-C.
    set -m
    "$@" >"${job_log[$name]}" 2>&1 </dev/null &
    job_pid[$name]=$!
    set +m
    job_names+=("$name")
}

# job_state NAME: prints how far a job is: its last line, and for a build the number of crates.
job_state() {
    local log=${job_log[$1]} crates last
    crates=$(grep -acE '^ +Compiling ' "$log" || true)
    last=$(tr '\r' '\n' <"$log" | grep -av '^[[:space:]]*$' | tail -n 1 | sed 's/^[[:space:]]*//' | cut -c1-60)
    if ((crates)); then printf '%s: %s (%d crates)' "$1" "${last:-begins}" "$crates"; else printf '%s: %s' "$1" "${last:-begins}"; fi
}

# tell_jobs: says how far the jobs are that run, on one line; a terminal's last line is written anew.
tell_jobs() {
    local one line=
    for one in "${job_names[@]}"; do
        ! kill -0 "${job_pid[$one]}" 2>/dev/null || line+="${line:+ | }$(job_state "$one")"
    done
    if [[ -t 2 ]]; then
        printf '\r\033[K%s' "[$SECONDS s] ${line:0:$((${COLUMNS:-100} - 10))}" >&2
    else
        say "[$SECONDS s] $line"
    fi
}

# wait_for_job NAME: waits until the job ends, and says every five seconds how far all jobs are. Returns its status.
# The log stays in ${job_log[NAME]}.
wait_for_job() {
    local name=$1 status=0 next=$((SECONDS + 5))
    while kill -0 "${job_pid[$name]}" 2>/dev/null; do
        if ((SECONDS >= next)); then
            next=$((SECONDS + 5))
            tell_jobs
        fi
        sleep 0.2
    done
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
    wait "${job_pid[$name]}" || status=$?
    forget_job "$name"
    return "$status"
}
forget_job() {
    local one others=()
    for one in "${job_names[@]}"; do [[ $one == "$1" ]] || others+=("$one"); done
    job_names=("${others[@]}")
}

# job_or_die NAME: the same, and ends the script with the job's last lines if it failed.
job_or_die() {
    local name=$1
    wait_for_job "$name" && return
    tail -n 30 "${job_log[$name]}" >&2
    die "$name failed (its last lines are above)"
}

# end_jobs: ends the jobs that still run, and removes the logs.
end_jobs() {
    local one
    for one in "${job_names[@]}"; do kill -TERM -- "-${job_pid[$one]}" 2>/dev/null || true; done
    [[ -z $jobs_dir ]] || rm -rf "$jobs_dir"
}
