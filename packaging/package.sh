#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# package.sh dist | deb | rpm: the tree as a tarball, and packages made of that tarball, in build-dist. What
# git tracks goes into it as it is now; in a tree that has no git, everything but builds. RPM_FLAGS="--without tests"
# and DEB_BUILD_OPTIONS=nocheck leave out the tests.
set -e
cd "$(dirname "$0")/.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
out=$PWD/build-dist
name=weft-$version
tarball=$out/$name.tar.gz

tree() {
    if [ -e .git ]; then
        git ls-files
    else
        find . -mindepth 1 \( -path './build*' -prune \) -o \( -type f -o -type l \) -printf '%P\n'
    fi
}

dist() {
    mkdir -p "$out"
    tree | LC_ALL=C sort | while read -r path; do [ ! -e "$path" ] || echo "$path"; done |
        tar --create --no-recursion --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w \
            --mtime="@${SOURCE_DATE_EPOCH:-$(stat -c %Y meson.build)}" --transform "s,^,$name/,S" --files-from=- |
        gzip -n -9 >"$tarball.part"
    mv "$tarball.part" "$tarball"
}

deb() {
    rm -rf "$out/deb"
    mkdir -p "$out/deb"
    cp "$tarball" "$out/deb/weft_$version.orig.tar.gz"
    tar -C "$out/deb" -xzf "$tarball"
    cp -r "$out/deb/$name/packaging/debian" "$out/deb/$name/debian"
    cd "$out/deb/$name"
    dpkg-buildpackage -us -uc
    cd ..
    rm -rf "$name"
    ls "$PWD"/*.deb
    # Silent unless there is something to mend.
    if command -v lintian >/dev/null; then
        lintian --fail-on error,warning ./*.changes
    fi
}

rpm() {
    rm -rf "$out/rpm"
    mkdir -p "$out/rpm/SOURCES"
    cp "$tarball" "$out/rpm/SOURCES"
    # On Debian rpm's database does not know what is installed.
    nodeps=
    [ ! -e /etc/debian_version ] || nodeps=--nodeps
    # shellcheck disable=SC2086
    rpmbuild -ba $nodeps $RPM_FLAGS --define "_topdir $out/rpm" --define "weft_version $version" packaging/weft.spec
    find "$out/rpm" -name '*.rpm'
}

case $1 in
dist) dist; echo "$tarball" ;;
deb | rpm) dist; "$1" ;;
*) echo "usage: package.sh dist | deb | rpm" >&2; exit 2 ;;
esac
