#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# distro.sh SUITE [TARGET]: `make check`, or another target, as on another release of Debian: in a
# chroot that debootstrap makes from the mirror that apt is configured with. As root. The chroot stays in
# build-distro/SUITE for the next time; the tree in it is a fresh copy of what git tracks, and what was
# built of it before. Everything is mounted in a mount namespace of its own, which ends with the script;
# the target runs in a network of its own, so that two of these do not meet on the loopback.
set -e
cd "$(dirname "$0")/../.."
suite=$1
target=${2:-check}
root=$PWD/build-distro/$suite

[ -n "$suite" ] || { echo "usage: distro.sh SUITE [TARGET], for example trixie" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "A chroot needs root" >&2; exit 1; }

# The first mirror of Debian's own archive; WEFT_MIRROR names another one.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        grep -v security | head -n 1
}

if [ ! -f "$root/.made" ]; then
    from=${WEFT_MIRROR:-$(mirror)}
    [ -n "$from" ] || { echo "apt knows no mirror yet: run apt-get update, or set WEFT_MIRROR" >&2; exit 1; }
    rm -rf "$root"
    mkdir -p "$root"
    echo "== debootstrap $suite"
    debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$root" "$from" >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; exit 1; }
    rm -f "$root.log"
    touch "$root/.made"
fi

mkdir -p "$root/weft"
find "$root/weft" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
git ls-files -z | tar --null -T - -cf - | tar -C "$root/weft" -xf -
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Some releases come without; `ip netns exec` puts a network's own file over it.
[ -e "$root/etc/hosts" ] || echo '127.0.0.1 localhost' >"$root/etc/hosts"

# The root of the chroot is a mount point, as `ip netns exec` wants it.
unshare --mount --pid --fork sh -ec '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    cd "$1"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    mount -t tmpfs tmpfs run
    exec chroot . sh -ec "
        cd /weft
        make need-build need-check
        exec unshare --mount --net sh -ec \"mount -t sysfs sysfs /sys; ip link set lo up; exec make $2\"
    "
' sh "$root" "$target"
