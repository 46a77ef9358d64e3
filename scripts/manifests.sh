# scripts/package sources this file: the manifests of package managers, and the checks of packages and manifests.
# shellcheck shell=bash
# shellcheck disable=SC2154  # scripts/package sets the variables

archive_desks=(linux-x86_64 linux-aarch64 macos-x86_64 macos-aarch64 windows-x86_64)

# make_manifests: writes manifests/ of --out, from the sums of the archives there.
make_manifests() {
    local dir=$out/manifests base desk owner
    declare -A sum=() url=()
    repository_of
    owner=${repository%/*}
    base=https://github.com/$repository/releases/download/v$version
    for desk in "${archive_desks[@]}"; do
        sum[$desk]=$(sum_of "$desk")
        url[$desk]=$base/$(archive_name "$desk")
    done
    rm -rf "$dir"
    mkdir -p "$dir"/{homebrew,scoop,winget,aur,nix,action}

    cat >"$dir/homebrew/tracebridge.rb" <<END
class Tracebridge < Formula
  desc "$description"
  homepage "https://github.com/$repository"
  version "$version"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "${url[macos-aarch64]}"
      sha256 "${sum[macos-aarch64]}"
    end
    on_intel do
      url "${url[macos-x86_64]}"
      sha256 "${sum[macos-x86_64]}"
    end
  end

  on_linux do
    on_arm do
      url "${url[linux-aarch64]}"
      sha256 "${sum[linux-aarch64]}"
    end
    on_intel do
      url "${url[linux-x86_64]}"
      sha256 "${sum[linux-x86_64]}"
    end
  end

  def install
    bin.install "tracebridge"
    man1.install Dir["man1/*.1"]
    bash_completion.install "completions/tracebridge.bash" => "tracebridge"
    zsh_completion.install "completions/_tracebridge"
    fish_completion.install "completions/tracebridge.fish"
    doc.install "THIRD-PARTY.md", "tracebridge.cdx.json"
  end

  def caveats
    <<~TEXT
      Phones are reached through adb, which is not part of this formula:
        brew install --cask android-platform-tools
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tracebridge --version")
  end
end
END

    cat >"$dir/scoop/tracebridge.json" <<END
{
    "version": "$version",
    "description": "$description",
    "homepage": "https://github.com/$repository",
    "license": "Apache-2.0",
    "suggest": { "adb": "main/adb" },
    "architecture": {
        "64bit": {
            "url": "${url[windows-x86_64]}",
            "hash": "${sum[windows-x86_64]}",
            "extract_dir": "tracebridge-$version-windows-x86_64"
        }
    },
    "bin": "tracebridge.exe",
    "checkver": "github",
    "autoupdate": {
        "architecture": {
            "64bit": {
                "url": "https://github.com/$repository/releases/download/v\$version/tracebridge-\$version-windows-x86_64.zip",
                "extract_dir": "tracebridge-\$version-windows-x86_64"
            }
        },
        "hash": { "url": "\$baseurl/SHA256SUMS" }
    }
}
END

    # Three files for a version: microsoft/winget-pkgs has one directory for each.
    local id=$owner.tracebridge schema=1.6.0
    cat >"$dir/winget/$id.yaml" <<END
# yaml-language-server: \$schema=https://aka.ms/winget-manifest.version.$schema.schema.json
PackageIdentifier: $id
PackageVersion: $version
DefaultLocale: en-US
ManifestType: version
ManifestVersion: $schema
END
    cat >"$dir/winget/$id.installer.yaml" <<END
# yaml-language-server: \$schema=https://aka.ms/winget-manifest.installer.$schema.schema.json
PackageIdentifier: $id
PackageVersion: $version
InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
- RelativeFilePath: tracebridge-$version-windows-x86_64\\tracebridge.exe
  PortableCommandAlias: tracebridge
ReleaseDate: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)
Installers:
- Architecture: x64
  InstallerUrl: ${url[windows-x86_64]}
  InstallerSha256: ${sum[windows-x86_64]^^}
ManifestType: installer
ManifestVersion: $schema
END
    cat >"$dir/winget/$id.locale.en-US.yaml" <<END
# yaml-language-server: \$schema=https://aka.ms/winget-manifest.defaultLocale.$schema.schema.json
PackageIdentifier: $id
PackageVersion: $version
PackageLocale: en-US
Publisher: $owner
PackageName: tracebridge
PackageUrl: https://github.com/$repository
License: Apache-2.0
LicenseUrl: https://github.com/$repository/blob/v$version/LICENSE
ShortDescription: $description
Tags:
- android
- ftrace
- perfetto
- profiling
- tracing
ReleaseNotesUrl: https://github.com/$repository/releases/tag/v$version
ManifestType: defaultLocale
ManifestVersion: $schema
END

    cat >"$dir/aur/PKGBUILD" <<END
# Maintainer: tracebridge maintainers <$owner@users.noreply.github.com>
pkgname=tracebridge-bin
pkgver=$version
pkgrel=1
pkgdesc="$description"
arch=('x86_64' 'aarch64')
url='https://github.com/$repository'
license=('Apache-2.0')
optdepends=('android-tools: adb, through which phones are reached'
            'android-udev: rules for phones on USB')
provides=('tracebridge')
conflicts=('tracebridge')
options=('!strip')
source_x86_64=("${url[linux-x86_64]}")
source_aarch64=("${url[linux-aarch64]}")
sha256sums_x86_64=('${sum[linux-x86_64]}')
sha256sums_aarch64=('${sum[linux-aarch64]}')

package() {
    cd "tracebridge-\$pkgver-linux-\$CARCH"
    install -D -m 755 tracebridge "\$pkgdir/usr/bin/tracebridge"
    install -D -m 644 -t "\$pkgdir/usr/share/man/man1" man1/*.1
    install -D -m 644 completions/tracebridge.bash "\$pkgdir/usr/share/bash-completion/completions/tracebridge"
    install -D -m 644 completions/_tracebridge "\$pkgdir/usr/share/zsh/site-functions/_tracebridge"
    install -D -m 644 completions/tracebridge.fish "\$pkgdir/usr/share/fish/vendor_completions.d/tracebridge.fish"
    install -D -m 644 -t "\$pkgdir/usr/share/licenses/tracebridge-bin" LICENSE THIRD-PARTY.md
}
END

    cat >"$dir/nix/flake.nix" <<END
{
  description = "$description";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "$version";
      sums = {
        x86_64-linux = { desk = "linux-x86_64"; sha256 = "${sum[linux-x86_64]}"; };
        aarch64-linux = { desk = "linux-aarch64"; sha256 = "${sum[linux-aarch64]}"; };
        x86_64-darwin = { desk = "macos-x86_64"; sha256 = "${sum[macos-x86_64]}"; };
        aarch64-darwin = { desk = "macos-aarch64"; sha256 = "${sum[macos-aarch64]}"; };
      };
      package = system: { desk, sha256 }:
        let pkgs = nixpkgs.legacyPackages.\${system};
        in pkgs.stdenvNoCC.mkDerivation {
          pname = "tracebridge";
          inherit version;
          src = pkgs.fetchurl {
            url = "$base/tracebridge-\${version}-\${desk}.tar.xz";
            inherit sha256;
          };
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The program is signed where it was built, and has nothing to strip.
          dontStrip = true;
          installPhase = ''
            runHook preInstall
            install -D -m 755 tracebridge \$out/bin/tracebridge
            installManPage man1/*.1
            installShellCompletion --cmd tracebridge --bash completions/tracebridge.bash \\
              --zsh completions/_tracebridge --fish completions/tracebridge.fish
            runHook postInstall
          '';
          meta = {
            description = "$description";
            homepage = "https://github.com/$repository";
            license = pkgs.lib.licenses.asl20;
            sourceProvenance = [ pkgs.lib.sourceTypes.binaryNativeCode ];
            mainProgram = "tracebridge";
          };
        };
    in {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) sums;
    };
}
END

    # What the GitHub action takes: scripts/release pin puts it into the commit that the tag \`v1\` gets.
    {
        echo "$repository v$version"
        for desk in "${archive_desks[@]}"; do echo "${sum[$desk]}  $(archive_name "$desk")"; done
    } >"$dir/action/action-archives"
    say "manifests for $repository: $dir"
}

# checker PROGRAM: whether this checker is installed; says it if it is not.
checker() {
    have "$1" && return
    say "NOT CHECKED by $1, which is not installed"
    return 1
}
# passes NAME COMMAND...: runs a checker, and ends the script with what it printed if it fails.
passes() {
    local name=$1
    shift
    "$@" >"$work/checker.log" 2>&1 || { tail -n 40 "$work/checker.log" >&2 && die "$name"; }
    say "passed: $name"
}

# check_packages: looks into each package.
check_packages() {
    local file image desk
    (cd "$out" && sha256sum --check --quiet --strict SHA256SUMS) || die "a file is not that of SHA256SUMS"
    diff <(awk '{ print $2 }' "$out/SHA256SUMS") <(released) >&2 || die "SHA256SUMS does not name each file once"
    for desk in "${archive_desks[@]}"; do
        file=$out/$(archive_name "$desk")
        [[ -f $file ]] || continue
        members_of "$file" >"$work/members"
        for one in LICENSE THIRD-PARTY.md man1/tracebridge.1 completions/_tracebridge tracebridge$([[ $desk != windows-* ]] || echo .exe); do
            grep -qxF "tracebridge-$version-$desk/$one" "$work/members" || die "${file##*/} lacks $one"
        done
    done
    for file in "$out"/tracebridge_"$version"-*.deb; do
        [[ -f $file ]] || continue
        passes "dpkg-deb --info ${file##*/}" dpkg-deb --info "$file"
        passes "dpkg-deb --contents ${file##*/}" dpkg-deb --contents "$file"
        for one in usr/bin/tracebridge usr/share/man/man1/tracebridge-record.1.gz usr/share/bash-completion/completions/tracebridge; do
            grep -qE " \./$one\$" "$work/checker.log" || die "${file##*/} lacks $one"
        done
        ! checker lintian || [[ -n $quick ]] || passes "lintian ${file##*/}" lintian --allow-root --fail-on error,warning "$file"
    done
    for image in "$out"/tracebridge-"$version"-*.oci.tar; do
        [[ -f $image ]] || continue
        passes "the digests of ${image##*/}" check_image "$image"
        if checker skopeo; then
            passes "skopeo inspect oci-archive:${image##*/}" skopeo inspect "oci-archive:$image"
            passes "skopeo inspect docker-archive:${image##*/}" skopeo inspect "docker-archive:$image"
        fi
        if checker umoci; then
            rm -rf "$work/layout"
            mkdir "$work/layout"
            tar -xf "$image" -C "$work/layout"
            passes "umoci unpack of ${image##*/}" umoci unpack --rootless --image "$work/layout:$version" "$work/layout/bundle"
            [[ -x $work/layout/bundle/rootfs/tracebridge ]] || die "${image##*/} has no program"
            # A development build is not static, and does not run alone.
            if [[ -z $quick && $image == *-linux-$(uname -m).* ]] && ((EUID == 0)); then
                passes "the program in ${image##*/}, which is all that is there" chroot "$work/layout/bundle/rootfs" /tracebridge --version
            fi
        fi
    done
}
# members_of ARCHIVE: prints the names of the files in it.
members_of() {
    if [[ $1 == *.zip ]]; then python3 -m zipfile --list "$1" | awk 'NR > 1 { print $1 }'; else tar -tf "$1"; fi
}
# check_image FILE: fails unless each blob has its digest for a name, and each digest that is named is a blob.
check_image() {
    local dir=$work/blobs named
    rm -rf "$dir"
    mkdir "$dir"
    tar -xf "$1" -C "$dir"
    for file in "$dir"/blobs/sha256/*; do
        [[ $(sha256sum "$file" | cut -d' ' -f1) == "${file##*/}" ]] || die "$file has another digest"
    done
    named=$(jq -r '.manifests[0].digest' "$dir/index.json")
    for digest in "$named" $(jq -r '.config.digest, .layers[].digest' "$dir/blobs/sha256/${named#sha256:}"); do
        [[ -f $dir/blobs/sha256/${digest#sha256:} ]] || die "$digest is no blob"
    done
    # What docker load reads names the same files.
    jq -r '.[0] | .Config, .Layers[]' "$dir/manifest.json" | while IFS= read -r file; do
        [[ -f $dir/$file ]] || die "$file is not there"
    done
}

# check_manifests: compares the manifests with the sums, and has their checkers look at them.
check_manifests() {
    local dir=$out/manifests file one id
    [[ -d $dir ]] || die "there are no manifests in $out: scripts/package manifests"
    [[ -n $quick ]] || ! grep -rqF https://github.com/OWNER/ "$dir" || die "the manifests name no repository: scripts/package manifests --repository OWNER/NAME"
    # Of whatever format: each sum and each address is that of a file of the release.
    while IFS= read -r file; do
        while IFS= read -r one; do
            grep -q "^${one,,}  " "$out/SHA256SUMS" || die "$file: $one is the sum of no file"
        done < <(grep -oiE '\b[0-9a-f]{64}\b' "$file")
        while IFS= read -r one; do
            [[ $one == *'$'* ]] || grep -q "  $one\$" "$out/SHA256SUMS" || die "$file: there is no file $one"
        done < <(grep -oE "releases/download/[^\"') ]*" "$file" | sed 's|.*/||')
    done < <(find "$dir" -type f)
    ! checker ruby || passes "ruby -c tracebridge.rb" ruby -wc "$dir/homebrew/tracebridge.rb"
    # shellcheck disable=SC2016  # variables of jq
    passes "tracebridge.json as Scoop wants it" jq -e --arg version "$version" '
        .version == $version and (.homepage, .license, .description, .bin | type == "string")
        and (.architecture["64bit"] | .hash | test("^[0-9a-f]{64}$"))
        and (.architecture["64bit"].url | endswith(".zip"))' "$dir/scoop/tracebridge.json"
    id=$(basename "$dir"/winget/*.installer.yaml .installer.yaml)
    # The fields that the schemas 1.6.0 require, and their patterns.
    winget "$id.yaml" PackageIdentifier PackageVersion DefaultLocale ManifestType ManifestVersion
    winget "$id.installer.yaml" PackageIdentifier PackageVersion Installers ManifestType ManifestVersion
    winget "$id.locale.en-US.yaml" PackageIdentifier PackageVersion PackageLocale Publisher PackageName License ShortDescription ManifestType ManifestVersion
    say "passed: the fields of winget's manifests"
    if have ruby; then
        for file in "$dir"/winget/*.yaml; do passes "${file##*/} as YAML" ruby -ryaml -e 'YAML.load_file(ARGV[0], permitted_classes: [Date])' -rdate "$file"; done
    fi
    passes "bash -n PKGBUILD" bash -n "$dir/aur/PKGBUILD"
    ! checker makepkg || [[ ! -f $out/$(archive_name linux-x86_64) ]] || check_pkgbuild
    ! checker nix-instantiate || passes "nix-instantiate --parse flake.nix" nix-instantiate --parse "$dir/nix/flake.nix"
    check_binstall
}
# winget FILE FIELDS...: fails unless each field is there, and the common ones have values that the schema permits.
winget() {
    local file=$dir/winget/$1 field
    shift
    for field in "$@"; do grep -qE "^$field:" "$file" || die "$file lacks $field"; done
    grep -qE '^PackageIdentifier: [^.[:space:]]{1,32}(\.[^.[:space:]]{1,32}){1,7}$' "$file" || die "$file: PackageIdentifier"
    grep -qE '^ManifestType: (version|installer|defaultLocale)$' "$file" || die "$file: ManifestType"
    ! grep -qP '\t' "$file" || die "$file: YAML has no tabs"
}
# check_pkgbuild: has makepkg build the package from the archive that is here, as a user without rights.
check_pkgbuild() {
    local dir=$work/aur user=()
    cp -r "$out/manifests/aur" "$dir"
    cp "$out/$(archive_name linux-x86_64)" "$dir/"
    # makepkg refuses to run as root.
    if ((EUID == 0)); then
        chmod 711 "$work"
        chown -R nobody "$dir"
        user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    fi
    (
        cd "$dir" || exit
        export HOME=$dir CARCH=x86_64 PKGEXT=.pkg.tar PACKAGER="tracebridge <none@example.com>"
        passes "makepkg --printsrcinfo" "${user[@]}" makepkg --printsrcinfo
        passes "makepkg of PKGBUILD" "${user[@]}" makepkg --nodeps --noconfirm
        tar -tf tracebridge-bin-"$version"-1-x86_64.pkg.tar | grep -qx usr/bin/tracebridge || die "the package of PKGBUILD has no program"
    )
}
# check_binstall: expands what [package.metadata.binstall] of Cargo.toml says for each target; the file has to be there.
check_binstall() {
    passes "the archives that cargo binstall takes" python3 - "$out/SHA256SUMS" "$version" <<'PYTHON'
import re, sys, tomllib
sums = {line.split()[1] for line in open(sys.argv[1])}
with open("Cargo.toml", "rb") as file:
    wanted = tomllib.load(file)["package"]["metadata"]["binstall"]
values = {"version": sys.argv[2], "repo": "https://example.com", "bin": "tracebridge", "name": "tracebridge"}
targets = wanted.pop("overrides")
assert len(targets) >= 7, targets
for target, own in targets.items():
    both = wanted | own
    values["binary-ext"] = ".exe" if "windows" in target else ""
    url, program = (re.sub(r"\{ ([a-z-]+) \}", lambda found: values[found[1]], both[key]) for key in ("pkg-url", "bin-dir"))
    name = url.rsplit("/", 1)[1]
    directory = re.sub(r"\.(tar\.xz|zip)$", "", name)
    assert name in sums, f"{target}: {name} is no file of the release"
    assert program == directory + "/tracebridge" + values["binary-ext"], f"{target}: {program}"
    assert both["pkg-fmt"] == ("zip" if name.endswith(".zip") else "txz"), target
PYTHON
}
