# build, boot and stop source this file: paths, messages and errors.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# TRACEBRIDGE_CACHE names a directory that several checkouts share.
cache=${TRACEBRIDGE_CACHE:-$(cd "$here/../.." && pwd)/.cache}/emulator
# This directory has one file for each running device: its name is the device's port, its content QEMU's
# process id.
export running=$cache/running

say() { printf '%s\n' "emulator: $*" >&2; }
die() {
    say "$*"
    exit 1
}
misuse() {
    say "$* (see --help)"
    exit 2
}

need() {
    local missing=() program
    for program; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) || die "not installed: ${missing[*]} (./scripts/setup installs them)"
}
