# emulator/build and scripts/build-android source this file: Debian packages of another architecture, without a trace in
# this machine's own package state.
# shellcheck shell=bash

# TRACEBRIDGE_CACHE names a directory that several checkouts share.
packages=${TRACEBRIDGE_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache}/packages

packages_die() {
    printf '%s\n' "packages: $*" >&2
    exit 1
}

# fetch_packages NAME RELEASE ARCH PACKAGE...: downloads packages of this release of Debian (`own`: this machine's) for
# this architecture into the directory $packages/NAME-ARCH, which has then no others. `first-of:PREFIX:PACKAGE` stands for
# the first dependency of PACKAGE whose name begins with PREFIX. The file `list` there holds the names: a second call with
# the same ones does nothing.
fetch_packages() {
    local release=$2 arch=$3 dir=$packages/$1-$3 apt=$packages/apt-$2-$3 list sources package names=()
    shift 3
    list=$(printf '%s\n' "$@")
    [[ ! -f $dir/list || $(cat "$dir/list") != "$list" ]] || return 0
    # apt runs with a state of its own: with this machine's keys and servers, for another release and architecture.
    mkdir -p "$apt"/{lists/partial,archives/partial,sources} "$dir"
    exec 8>"$apt/lock"
    flock 8
    sources=/etc/apt/sources.list.d/debian.sources
    [[ -f $sources ]] || sources=/etc/apt/sources.list
    [[ -f $sources ]] || packages_die "no Debian package sources: neither /etc/apt/sources.list.d/debian.sources nor /etc/apt/sources.list is there"
    if [[ $release == own ]]; then cat "$sources"; else sed "s/bookworm/$release/g" "$sources"; fi \
        >"$apt/sources/$release.${sources##*.}"
    cat >"$apt/apt.conf" <<CONF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State::Lists "$apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/sources";
CONF
    # Lists that were fetched within the hour are new enough.
    if [[ -z $(find "$apt/lists" -maxdepth 1 -name '*_Packages*' -mmin -60 -print -quit) ]]; then
        # One list of several that cannot be had may be one that is not needed: the download tells.
        apt-get -q -c "$apt/apt.conf" update >"$apt/log" 2>&1 || true
    fi
    for package; do
        if [[ $package == first-of:* ]]; then
            package=${package#first-of:}
            package=$(apt-cache -c "$apt/apt.conf" depends "${package#*:}" | sed -n "s/^ *Depends: \(${package%%:*}.*\)$/\1/p" | head -n 1)
            [[ -n $package ]] || packages_die "no such dependency: $list"
        fi
        names+=("$package")
    done
    rm -f "$dir"/*.deb
    (cd "$dir" && apt-get -q -c "$apt/apt.conf" download "${names[@]}") >>"$apt/log" 2>&1 ||
        packages_die "download failed: $(tail -n 3 "$apt/log")"
    printf '%s\n' "$list" >"$dir/list"
    exec 8>&-
}
