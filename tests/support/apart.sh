#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# apart.sh COMMAND...: runs a test apart from all others: with a loopback, ports, abstract sockets, System V
# memory, /dev/shm and named networks of its own, which end with it. Without the right to do so, and where
# WEFT_APART is 0, it runs as it is.
# shellcheck disable=SC2016
if [ "${WEFT_APART:-1}" = 0 ] || [ "$(id -u)" -ne 0 ] || ! unshare --mount --net --ipc true 2>/dev/null; then
    exec "$@"
fi
exec unshare --mount --net --ipc sh -ec '
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount -t sysfs sysfs /sys
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    mount --bind /dev/null /proc/kallsyms # libfabric reads all of it, 5 MB, whenever it starts
    ip link set lo up
    exec "$@"' sh "$@"
