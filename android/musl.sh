# scripts/build-android and android/cc-static source this file after scripts/lib.sh: the C library musl of Debian for
# Android's ABIs, and Debian's programs that link with it.
# shellcheck shell=bash
# shellcheck source=scripts/lib.sh
[[ -n ${root:-} ]] || source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
# shellcheck source=android/packages.sh
source "$root/android/packages.sh"

# The functions of an unwinder that Rust's standard library names, each behind `_Unwind_`.
unwinder=(
    Backtrace FindEnclosingFunction GetCFA GetDataRelBase GetIP GetIPInfo GetLanguageSpecificData GetRegionStart
    GetTextRelBase RaiseException Resume SetGR SetIP VRS_Get VRS_Set
)

# musl_of ABI: prints the directory with Debian's musl for the ABI; fetches it first. Its headers are in `include`.
musl_of() {
    local arch dir assembler return=ret
    case $1 in
        arm64-v8a) arch=arm64 assembler=aarch64-linux-gnu-as ;;
        armeabi-v7a) arch=armhf assembler=arm-linux-gnueabihf-as return="bx lr" ;;
        x86) arch=i386 assembler="as --32" ;;
        x86_64) arch=amd64 assembler="as --64" ;;
    esac
    dir=$cache/musl-$arch
    if [[ ! -f $dir/libunwind.a ]]; then
        fetch_packages musl own "$arch" musl-dev
        rm -rf "$dir.new" "$dir.deb" "$dir"
        dpkg -x "$packages/musl-$arch"/musl-dev_*.deb "$dir.deb"
        mv "$dir.deb"/usr/lib/*-linux-musl* "$dir.new"
        mv "$dir.deb"/usr/include/*-linux-musl* "$dir.new/include"
        # A program without unwind tables has nothing to unwind: each function of its unwinder returns at once.
        # shellcheck disable=SC2086  # a command and its option
        { printf '.globl _Unwind_%s\n' "${unwinder[@]}" && printf '_Unwind_%s:\n' "${unwinder[@]}" && echo " $return"; } |
            $assembler -o "$dir.new/unwind.o"
        ar rc "$dir.new/libunwind.a" "$dir.new/unwind.o"
        mv "$dir.new" "$dir"
        rm -rf "$dir.deb"
    fi
    echo "$dir"
}
# linker_of ABI: prints the linker for the ABI: GNU ld of Debian, which on x86 links for both kinds of x86.
linker_of() {
    local linker
    case $1 in
        arm64-v8a) linker=aarch64-linux-gnu-ld ;;
        armeabi-v7a) linker=arm-linux-gnueabihf-ld ;;
        x86) linker="ld -m elf_i386" ;;
        x86_64) linker="ld -m elf_x86_64" ;;
    esac
    have "${linker%% *}" || die "${linker%% *} is not installed: ./scripts/setup"
    echo "$linker"
}
