#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check.sh quick | check | sanitized: builds, runs the tests, and ends with one line that counts every
# single test. quick: the unit tests and those of the house. check: all tests, as built for use.
# sanitized: what is worth it with AddressSanitizer and UBSan, and the threaded tests with
# ThreadSanitizer. Each has its own build folder.
cd "$(dirname "$0")/../.." || exit 1

ASAN_OPTIONS=abort_on_error=0:detect_leaks=1:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
TSAN_OPTIONS=halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
broken=0
folders=
more=$(($(nproc) + 2)) # tests at once: most wait more than they compute

# run FOLDER TARGET NAME [setup words...] -- [test words...]
run() {
    folder=$1 target=$2 title=$3
    shift 3
    setup=
    while [ "$1" != -- ]; do setup="$setup $1"; shift; done
    shift
    echo "== $title"
    folders="$folders $folder"
    rm -f "$folder"/meson-logs/*.junit.xml
    # A library may have come since the folder was made; and a folder of an older tree may not do at all.
    if [ -f "$folder/build.ninja" ]; then again=--reconfigure; else again=; fi
    # shellcheck disable=SC2086
    meson setup $again "$folder" -Dtests=enabled -Dwerror=true $setup >"$folder.log" 2>&1 ||
        { rm -rf "$folder" && meson setup "$folder" -Dtests=enabled -Dwerror=true $setup >"$folder.log" 2>&1; } ||
        { cat "$folder.log"; broken=1; return; }
    ninja -C "$folder" "$target" >"$folder.log" 2>&1 || { tail -n 40 "$folder.log"; broken=1; rm -f "$folder.log"; return; }
    rm -f "$folder.log"
    meson test -C "$folder" --no-rebuild --print-errorlogs --wrapper "$PWD/tests/support/apart.sh" "$@" ||
        again "$folder"
}

# again FOLDER: what failed beside others runs once more by itself: a busy machine is no defect. Both results
# are in the output; the second one counts.
again() {
    python3 tests/support/again.py "$1/meson-logs/testlog-apart.sh.json" >"$1/again"
    [ -s "$1/again" ] || { broken=1; return; }
    echo "== again, alone: $(paste -sd, "$1/again")"
    # One name a line; names have spaces.
    tr '\n' '\0' <"$1/again" | xargs -0 meson test -C "$1" --no-rebuild --print-errorlogs --num-processes 1 \
        --wrapper "$PWD/tests/support/apart.sh" --logbase again || broken=1
}

case $1 in
quick)
    run build all "unit tests and tests of the house" -- --num-processes $((2 * more)) --suite unit --suite house
    ;;
check)
    run build all "all tests, as built for use" -- --num-processes "$more" --no-suite soak --no-suite sanitized
    ;;
sanitized)
    run build-asan all "with AddressSanitizer and UndefinedBehaviorSanitizer" \
        -Db_sanitize=address,undefined -Db_lundef=false -- --num-processes "$more" --no-suite soak --no-suite plain
    run build-tsan threaded "the threaded tests with ThreadSanitizer" \
        -Db_sanitize=thread -Db_lundef=false -- --suite threaded
    ;;
*)
    echo "usage: check.sh quick | check | sanitized" >&2
    exit 2
    ;;
esac

# shellcheck disable=SC2086
exec python3 tests/support/count.py "$broken" $folders
