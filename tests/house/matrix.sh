#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# matrix.sh [NAME...]: builds Weft in every way that it is built elsewhere, or in those that are named, with
# warnings as errors. Each has a folder in build-matrix, which is removed when it is done; its log stays where
# it failed. A compiler or library that is missing here is a skip, with the reason. Several are built at a time,
# each by a process of its own (matrix.sh --one NAME): much of setting up and linking is one process's work.
cd "$(dirname "$0")/../.." || exit 1
place=$PWD/build-matrix
mkdir -p "$place"
together=$(nproc)
[ "$together" -gt 4 ] && together=4
jobs=$(($(nproc) / together + 1))

# MODULES: what is built of others' libraries.
none='-Duct=disabled -Ducp=disabled -Dofi=disabled -Dmpi=disabled -Dpmix=disabled'

# set_up_and_build FOLDER [OPTION...]
set_up_and_build() {
    folder=$1
    shift
    meson setup "$folder" -Dwerror=true "$@" && ninja -j "$jobs" -C "$folder"
}

# What each of them has: the tools run, with both ends on this machine.
try() {
    "$1/tools/cxi_write_lat" --local -n 10 -s 8 -d soft:cxi0 && "$1/tools/ucx_perftest" --local -t put_lat -n 10 -w 1
}

built() {
    folder=$place/$name
    set_up_and_build "$folder" -Dtests=disabled "$@" && try "$folder"
}

by() {
    compiler=$1
    shift
    CC=$compiler built "$@"
}

# shellcheck disable=SC2086
without_jansson() {
    built -Doptimization=0 -Djansson=disabled $none && [ ! -e "$folder/tools/weft" ] && [ -e "$folder/tools/ucx_perftest" ]
}

# The options of the Spack recipe, with everything and with nothing.
spack() {
    # shellcheck disable=SC2046
    built $(python3 tests/support/spack_args.py packaging/spack/package.py "$@")
}

# The commands of a build daemon: from an archive, as an ordinary user, in a network that has only itself.
daemon="meson setup build -Dtests=enabled && ninja -j $jobs -C build &&
meson test -C build --no-rebuild --num-processes $jobs --timeout-multiplier 3 --suite unit --suite house"
archive() {
    tree=$place/$name/weft
    mkdir -p "$tree" "$place/$name/home"
    if [ -e .git ]; then git archive HEAD; else tar --exclude='./build*' -c .; fi | tar -C "$tree" -x || return 1
    if [ "$(id -u)" -ne 0 ]; then
        (cd "$tree" && sh -c "$daemon")
        return
    fi
    chown -R 65534:65534 "$place/$name"
    (cd "$tree" && unshare --net sh -c 'ip link set lo up && HOME=$1 CCACHE_DISABLE=1 exec setpriv --reuid=65534 \
        --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all sh -c "$2"' sh "$place/$name/home" "$daemon")
}

# What needs no foreign library. It is compiled, not run.
aarch64() {
    printf "[binaries]\nc = 'aarch64-linux-gnu-gcc'\nar = 'aarch64-linux-gnu-ar'\nobjcopy = 'aarch64-linux-gnu-objcopy'
[host_machine]\nsystem = 'linux'\ncpu_family = 'aarch64'\ncpu = 'aarch64'\nendian = 'little'\n" >"$place/aarch64.cross"
    # shellcheck disable=SC2086
    set_up_and_build "$place/$name" --cross-file "$place/aarch64.cross" -Dtests=disabled -Djansson=disabled $none
}

# entry NAME NEED COMMAND...: NEED is a program, or lib:NAME for a library.
entry() {
    name=$1 need=$2
    shift 2
    case $one in "") echo "$name"; return ;; "$name") ;; *) return ;; esac
    case $need in
    lib:*) pkg-config --exists "${need#lib:}" ;;
    *) command -v "$need" >/dev/null ;;
    esac || { echo "skip  $name: $need is not here"; return; }
    rm -rf "${place:?}/$name"
    begun=$(date +%s)
    if "$@" >"$place/$name.log" 2>&1; then
        echo "ok    $name, $(($(date +%s) - begun)) s"
        rm -rf "${place:?}/$name" "$place/$name.log"
    else
        echo "FAIL  $name: $place/$name.log"
        exit 1
    fi
}

# All of them, or the one that is named; the longest ones first. What an optimizer finds is found by those with
# -O2 and -O3: a library that is missing, or another name, is for the linker to see.
# shellcheck disable=SC2086
entries() {
    one=$1
    entry archive lib:cmocka archive
    entry clang-LTO ld.lld by clang -Doptimization=2 -Db_lto=true
    entry gcc-LTO gcc by gcc -Doptimization=2 -Db_lto=true
    entry gcc-O3 gcc by gcc -Doptimization=3 -Dmpi=disabled
    entry gcc-O2 gcc by gcc -Doptimization=2
    entry clang-O3 clang by clang -Doptimization=3 -Dmpi=disabled
    entry clang-O2 clang by clang -Doptimization=2
    entry spack python3 spack +all
    entry aarch64 aarch64-linux-gnu-gcc aarch64
    entry spack-least python3 spack -all
    entry clang-O0 clang by clang -Doptimization=0 -Dmpi=disabled
    entry gcc-O0 gcc by gcc -Doptimization=0 -Dmpi=disabled
    entry without-UCX gcc built -Doptimization=0 -Duct=disabled -Ducp=disabled
    entry without-libfabric gcc built -Doptimization=0 -Dofi=disabled
    entry without-MPI gcc built -Doptimization=0 -Dmpi=disabled
    entry without-jansson gcc without_jansson
    entry prefixed gcc built -Doptimization=0 -Dtool_prefix=w_ $none
}

if [ "$1" = --one ]; then
    entries "$2"
    exit
fi
started=$(date +%s)
all=$(entries "")
failed=0
for name in "$@"; do
    printf '%s\n' "$all" | grep -qx -e "$name" || { echo "matrix.sh: no entry $name" >&2; exit 2; }
done
# shellcheck disable=SC2086
[ "$#" -gt 0 ] || set -- $all
for name in "$@"; do
    rm -f "$place/$name.log"
done
printf '%s\n' "$@" | xargs -n 1 -P "$together" tests/house/matrix.sh --one || failed=1
# Not before: several that fail at a time would print into each other.
for name in "$@"; do
    [ ! -e "$place/$name.log" ] || { echo "== $name"; tail -n 20 "$place/$name.log"; }
done
rm -f "$place/aarch64.cross"
rmdir "$place" 2>/dev/null
echo "matrix: $([ "$failed" = 0 ] && echo "done" || echo FAILED), $(($(date +%s) - started)) s"
exit "$failed"
