# Sourced by build, boot and stop: where things are kept, and how to fail.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Shared by several checkouts if the variable says so.
cache=${TRACEBRIDGE_CACHE:-$(cd "$here/../.." && pwd)/.cache}/emulator
# One file a running device, named after its port: QEMU's process id.
export running=$cache/running

say() { printf '%s\n' "emulator: $*" >&2; }
die() {
    say "$*"
    exit 1
}

need() {
    local missing=() program
    for program; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) || die "not installed: ${missing[*]} (./scripts/setup installs them)"
}
