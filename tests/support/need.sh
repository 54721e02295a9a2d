#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# need.sh TEST=PACKAGE...: what is missing is installed by apt when run as root; otherwise the line to
# run is printed. TEST is a command, or lib:NAME for a library that pkg-config knows.
missing() {
    for need in "$@"; do
        what=${need%%=*}
        case $what in
        lib:*) pkg-config --exists "${what#lib:}" 2>/dev/null || echo "${need#*=}" ;;
        *) command -v "$what" >/dev/null 2>&1 || echo "${need#*=}" ;;
        esac
    done
}

packages=$(missing "$@" | tr '\n' ' ')
[ -n "$packages" ] || exit 0
line="apt-get install -y --no-install-recommends $packages"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing: $packages(the names are Debian's). Install them and run this again." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages. As root, run:" >&2
    echo "  $line" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "Installing $packages" >&2
log=$(mktemp)
# A machine that never ran apt has no lists yet.
if ! $line >"$log" 2>&1 && ! { apt-get update && $line; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "Could not install: $packages" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
packages=$(missing "$@")
[ -z "$packages" ] || { echo "Still missing after the installation: $packages" >&2; exit 1; }
