#!/usr/bin/env bash
# Makes what operators install, from this checkout:
#
#   downpour-gateway_VERSION-REVISION_ARCH.deb, downpour-pushdown_…
#   downpour-VERSION-linux-ARCH.tar.gz   both programs, units, settings, licences
#   downpour-PROGRAM-VERSION-linux-ARCH.cdx.json
#                                        the modules a program is built from (CycloneDX)
#   downpour_client-VERSION-….whl, .tar.gz
#                                        the package for Python
#   image/PROGRAM                        what a container image is built from
#   SHA256SUMS
#
# Usage: build.sh [-o OUT] [-r REVISION] [ARCH...]
#
# OUT is build/packages, REVISION is 1, and ARCH amd64 and arm64 by default. A
# program for this machine's own architecture is built with C if there is a C
# compiler; every other one, and those of images, without: see README.md for what
# that costs.
#
# PACKAGE_MAINTAINER   NAME <ADDRESS>; the author of the last commit by default
# PACKAGE_PYTHON       a Python that has the flit_core of integration/setup/versions.env;
#                      by default an environment is made, and flit_core installed in it
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

out=$root/build/packages revision=1
while getopts o:r: option; do
	case $option in
	o) out=$OPTARG ;;
	r) revision=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
arches=("$@")
[ $# -gt 0 ] || arches=(amd64 arm64)

version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' pushdown/process/version/version.go)

# Two builds of one commit have the same bytes: no time of today gets in. Sources
# without a repository, or with one that git does not trust, name no commit.
if git rev-parse HEAD >/dev/null 2>&1; then
	vcs=true maintainer=${PACKAGE_MAINTAINER:-$(git log -1 --format='%an <%ae>')} SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
else
	vcs=false maintainer=${PACKAGE_MAINTAINER:?is not set, and there is no commit to take it from: want NAME <ADDRESS>} SOURCE_DATE_EPOCH=$(stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)
umask 022 # whatever the builder's is, others may read what is installed

# built PROGRAM ARCH WITH_C FILE: compiles the program. It has no symbols for debuggers;
# stack traces and profiles need none.
built() { CGO_ENABLED=$3 GOOS=linux GOARCH=$2 go build -trimpath -buildvcs=$vcs -ldflags='-s -w' -o "$4" "./$1/cmd/$1"; }

# compile PROGRAM ARCH: the program, in $work/ARCH, and the one without C in the tree of
# its image.
compile() {
	local program=$1 arch=$2 image=$out/image/$1/linux-$2/usr/bin
	mkdir -p "$image"
	built "$program" "$arch" 0 "$image/downpour-$program"
	if [ "$arch" = "$(go env GOHOSTARCH)" ] && command -v "$(go env CC)" >/dev/null; then
		command -v readelf >/dev/null || { echo "packages: readelf is missing, which tells the libc that a program built with C needs" >&2; exit 1; }
		built "$program" "$arch" 1 "$work/$arch/downpour-$program"
	else
		install -D "$image/downpour-$program" "$work/$arch/downpour-$program"
	fi
}

# licences PROGRAM: the licences of all modules that the program holds. A module without a
# file of its licence may have the text in its README; one without either cannot be passed on.
licences() {
	local module dir file files
	cat LICENSE
	while read -r module dir; do
		[ "$module" != downpour ] || continue
		files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \) | sort)
		[ -n "$files" ] || files=$(grep -l 'Permission is hereby granted' "$dir"/README* 2>/dev/null || true)
		[ -n "$files" ] || { echo "packages: $module has no licence: neither a file nor a text in its README" >&2; exit 1; }
		while read -r file; do
			printf '\n==== %s: %s\n\n' "$module" "$(basename "$file")"
			cat "$file"
		done <<<"$files"
	done < <(go list -deps -f '{{with .Module}}{{.Path}} {{.Dir}}{{end}}' "./$1/cmd/$1" | sort -u)
	printf '\n==== Go\n\n'
	cat "$(go env GOROOT)/LICENSE"
	if [ "$1" = gateway ]; then
		printf '\n==== uPlot\n\n'
		cat gateway/web/static/vendor/uplot/LICENSE
	fi
}

# libc PROGRAM-FILE: what a program built with C needs of the system, as a dependency.
libc() {
	local newest
	newest=$(readelf -V "$1" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1 || true)
	[ -z "$newest" ] || printf 'libc6 (>= %s), ' "${newest#GLIBC_}"
}

# debian PROGRAM ARCH: a Debian package.
debian() {
	local program=$1 arch=$2 name=downpour-$1 tree=$work/$2-$1 script
	mkdir -p "$tree"/{DEBIAN,usr/bin,usr/lib/systemd/system,etc/downpour} "$tree/usr/share/doc/$name"
	install -m 0755 "$work/$arch/$name" "$tree/usr/bin/$name"
	install -m 0644 "$program/packaging/$name.service" "$tree/usr/lib/systemd/system/"
	install -m 0644 "$program/packaging/$program.env" "$tree/etc/downpour/$program.env"
	install -m 0644 "$program"/docs/*.md "$tree/usr/share/doc/$name/"
	if [ "$program" = gateway ]; then # alert rules and a dashboard
		install -D -m 0644 -t "$tree/usr/share/doc/$name/examples" "$here"/prometheus/*
	fi
	install -D -m 0644 "$program/packaging/lintian-overrides" "$tree/usr/share/lintian/overrides/$name"
	licences "$program" >"$tree/usr/share/doc/$name/copyright"
	gzip -9n <CHANGELOG.md >"$tree/usr/share/doc/$name/changelog.gz"
	printf '%s (%s-%s) stable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$name" "$version" "$revision" "$maintainer" \
		"$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$tree/usr/share/doc/$name/changelog.Debian.gz"

	for script in postinst prerm postrm; do
		sed "s/@NAME@/$name/g" "$here/debian/$script" >"$tree/DEBIAN/$script"
		chmod 0755 "$tree/DEBIAN/$script"
	done
	echo "/etc/downpour/$program.env" >"$tree/DEBIAN/conffiles"
	cat >"$tree/DEBIAN/control" <<-CONTROL
		Package: $name
		Version: $version-$revision
		Architecture: $arch
		Maintainer: $maintainer
		Section: net
		Priority: optional
		Depends: $(libc "$work/$arch/$name")adduser
		Installed-Size: $(du -k -s "$tree" | cut -f 1)
		$(cat "$program/packaging/description")
	CONTROL
	(cd "$tree" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/${name}_$version-${revision}_$arch.deb"
}

# archive ARCH: both programs for a system without dpkg.
archive() {
	local name=downpour-$version-linux-$1 program
	mkdir -p "$work/$name"
	for program in gateway pushdown; do
		cp "$work/$1/downpour-$program" "$program/packaging/downpour-$program.service" "$program/packaging/$program.env" "$work/$name/"
		cp "$work/$1-$program/usr/share/doc/downpour-$program/copyright" "$work/$name/LICENSES-$program"
	done
	cp CHANGELOG.md "$work/$name/"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -c "$name" | gzip -9n >"$out/$name.tar.gz"
}

# image PROGRAM ARCH: what the Dockerfile of a program copies, except for the program itself.
# The version is written into the file, so that no image can be built with a wrong one.
image() {
	local program=$1 dir=$out/image/$1 commit=
	[ "$vcs" = false ] || commit=$(git describe --always --abbrev=40 --exclude='*' --dirty=-with-changes)
	mkdir -p "$dir/data" "$dir/common/etc" "$dir/common/usr/share/doc/downpour-$program"
	sed "s/^ARG VERSION$/&=$version/; s/^ARG COMMIT$/&=$commit/" "$program/packaging/Dockerfile" >"$dir/Dockerfile"
	echo 'downpour:x:10001:10001:Downpour:/var/lib/downpour:/sbin/nologin' >"$dir/common/etc/passwd"
	echo 'downpour:x:10001:' >"$dir/common/etc/group"
	cp "$work/$2-$program/usr/share/doc/downpour-$program/copyright" "$dir/common/usr/share/doc/downpour-$program/"
}

# python: the package for Python, as a wheel and as sources.
python() {
	local python=${PACKAGE_PYTHON:-$work/python/bin/python}
	if [ -z "${PACKAGE_PYTHON:-}" ]; then
		python3 -m venv "$work/python"
		"$python" -m pip install --quiet --disable-pip-version-check "flit_core==$(sed -n 's/^FLIT_CORE_VERSION=//p' integration/setup/versions.env)"
	fi
	(cd integration/python && "$python" -c 'import sys, flit_core.buildapi as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])' "$out")
}

rm -rf "$out/image"
for arch in "${arches[@]}"; do
	for program in gateway pushdown; do
		compile "$program" "$arch"
		debian "$program" "$arch"
		image "$program" "$arch"
		go tool -modfile=gateway/packaging/tools.mod cyclonedx-gomod bin -json -output "$out/downpour-$program-$version-linux-$arch.cdx.json" "$work/$arch/downpour-$program"
	done
	archive "$arch"
done
python
(cd "$out" && sha256sum -- *.deb *.tar.gz *.whl *.cdx.json >SHA256SUMS)
