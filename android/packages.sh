# emulator/build and scripts/build-android source this file: Debian packages of another architecture, without a trace in
# this machine's own package state.
# shellcheck shell=bash

# TRACEBRIDGE_CACHE names a directory that several checkouts share.
packages=${TRACEBRIDGE_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache}/packages

packages_die() {
    printf '%s\n' "packages: $*" >&2
    exit 1
}

# apt_state RELEASE ARCH KIND: prints the directory of a state of apt's own for this release of Debian (`own`: this
# machine's) and architecture, with this machine's keys and servers. KIND is `deb`, or `deb-src` for source packages.
apt_state() {
    local apt=$packages/apt-$1-$2 sources
    [[ $3 == deb ]] || apt+=-src
    mkdir -p "$apt"/{lists/partial,archives/partial,sources}
    sources=/etc/apt/sources.list.d/debian.sources
    [[ -f $sources ]] || sources=/etc/apt/sources.list
    [[ -f $sources ]] || packages_die "no Debian package sources: neither /etc/apt/sources.list.d/debian.sources nor /etc/apt/sources.list is there"
    if [[ $1 == own ]]; then cat "$sources"; else sed -E "s/\<(bookworm|trixie|forky|sid)\>/$1/g" "$sources"; fi |
        sed -E "s/^Types:.*/Types: $3/; s/^deb /$3 /" >"$apt/sources/$1.${sources##*.}"
    cat >"$apt/apt.conf" <<CONF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State::Lists "$apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/sources";
CONF
    echo "$apt"
}

# update_lists APT: fetches the lists of packages of such a state. Those that were fetched within the hour are new enough.
update_lists() {
    [[ -z $(find "$1/lists" -maxdepth 1 \( -name '*_Packages*' -o -name '*_Sources*' \) -mmin -60 -print -quit) ]] || return 0
    # One list of several that cannot be had may be one that is not needed: the download tells.
    apt-get -q -c "$1/apt.conf" update >"$1/log" 2>&1 || true
}

# fetch_sources NAME RELEASE PACKAGE...: the same as fetch_packages, for source packages: their archives, unopened.
fetch_sources() {
    local dir=$packages/$1-source release=$2 list apt
    shift 2
    list=$(printf '%s\n' "$@")
    [[ ! -f $dir/list || $(cat "$dir/list") != "$list" ]] || return 0
    mkdir -p "$dir"
    apt=$(apt_state "$release" amd64 deb-src)
    exec 8>"$apt/lock"
    flock 8
    update_lists "$apt"
    (cd "$dir" && apt-get -q -c "$apt/apt.conf" source --download-only "$@") >>"$apt/log" 2>&1 ||
        packages_die "download failed: $(tail -n 3 "$apt/log")"
    printf '%s\n' "$list" >"$dir/list"
    exec 8>&-
}

# fetch_packages NAME RELEASE ARCH PACKAGE...: downloads packages of this release of Debian (`own`: this machine's) for
# this architecture into the directory $packages/NAME-ARCH, which has then no others. `first-of:PREFIX:PACKAGE` stands for
# the first dependency of PACKAGE whose name begins with PREFIX. The file `list` there holds the names: a second call with
# the same ones does nothing.
fetch_packages() {
    local release=$2 arch=$3 dir=$packages/$1-$3 apt list package names=()
    shift 3
    list=$(printf '%s\n' "$@")
    [[ ! -f $dir/list || $(cat "$dir/list") != "$list" ]] || return 0
    mkdir -p "$dir"
    apt=$(apt_state "$release" "$arch" deb)
    exec 8>"$apt/lock"
    flock 8
    update_lists "$apt"
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
