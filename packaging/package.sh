#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# package.sh dist | deb | rpm | commit: the tree as a tarball, and packages made of that tarball, in build-dist. What
# git tracks goes into it as it is now; in a tree or on a machine without git, everything but builds. In the tarball
# the file COMMIT says which commit that is; a tree without git has it from its own COMMIT, or from WEFT_COMMIT.
# RPM_FLAGS="--without tests" leaves out the tests; so does DEB_BUILD_OPTIONS=nocheck, and with
# DEB_BUILD_PROFILES=nocheck as well, what only they need is not needed.
set -e
cd "$(dirname "$0")/.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
out=$PWD/build-dist
name=weft-$version
tarball=$out/$name.tar.gz

has_git() {
    [ -e .git ] && command -v git >/dev/null
}

# As src/meson.build asks for it.
commit() {
    if has_git && git --no-optional-locks describe --always --dirty=+ --abbrev=12 '--exclude=*' 2>/dev/null; then
        :
    elif [ -e COMMIT ]; then
        cat COMMIT
    else
        echo "${WEFT_COMMIT:-unknown}"
    fi
}

tree() {
    if has_git; then
        git ls-files
    else
        find . -mindepth 1 \( -path './build*' -o -path ./.git -o -path ./COMMIT -o -name __pycache__ \) -prune -o \
            \( -type f -o -type l \) -printf '%P\n'
    fi
}

# No pipes: a step of one may fail unseen.
dist() {
    mkdir -p "$out"
    parts=$out/parts
    rm -rf "$parts"
    mkdir "$parts"
    commit >"$parts/COMMIT"
    tree >"$parts/tracked"
    LC_ALL=C sort "$parts/tracked" >"$parts/sorted"
    while read -r path; do [ ! -e "$path" ] || echo "$path"; done <"$parts/sorted" >"$parts/files"
    tar --create --no-recursion --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w \
        --mtime="@${SOURCE_DATE_EPOCH:-$(stat -c %Y meson.build)}" --transform "s,^,$name/,S" \
        --file="$parts/tar" --files-from="$parts/files" --directory="$parts" COMMIT
    gzip -n -9 <"$parts/tar" >"$parts/gz"
    mv "$parts/gz" "$tarball"
    rm -r "$parts"
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
commit) commit ;;
dist) dist; echo "$tarball" ;;
deb | rpm) dist; "$1" ;;
*) echo "usage: package.sh dist | deb | rpm | commit" >&2; exit 2 ;;
esac
