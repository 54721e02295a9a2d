#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh [SECONDS [TARGET ...]]: builds the targets of tests/fuzz/targets with clang and runs each for so long,
# then prints what was reached of the files that it is there for. What is found stays in build-fuzz as crash-*; the
# corpus in the tree is only read. Edges are counted in a second build without sanitizers, whose checks are
# edges that nothing should reach.
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60}
[ $# -gt 0 ] && shift
folder=build-fuzz
cover=build-fuzz-cover

# build FOLDER SANITIZERS
build() {
    [ -f "$1/build.ninja" ] || CC=clang meson setup "$1" -Dfuzz=true -Dtests=disabled \
        -Db_sanitize="$2" -Db_lundef=false -Duct=disabled -Dofi=disabled -Dmpi=disabled >/dev/null || exit 1
    ninja -C "$1" fuzzers >"$1/log" 2>&1 || { tail -n 30 "$1/log"; exit 1; }
}
build $folder address,undefined
build $cover none

UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export UBSAN_OPTIONS
rm -f $folder/crash-* $folder/timeout-* $folder/oom-* $folder/leak-*
status=0
while read -r target longest files; do
    case $target in '#'* | '') continue ;; esac
    [ $# = 0 ] || case " $* " in *" $target "*) ;; *) continue ;; esac
    [ -x "$folder/tests/fuzz_$target" ] || { echo "== $target: its library is missing"; continue; }
    mkdir -p "$folder/found/$target"
    seeds=
    for place in "tests/fuzz/corpus/$target" "$folder/tests/seeds/$target"; do
        [ -d "$place" ] && seeds="$seeds ../$place"
    done
    echo "== $target, $seconds s"
    # shellcheck disable=SC2086
    (cd $folder && tests/fuzz_$target -max_total_time="$seconds" -max_len="$longest" -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 "found/$target" $seeds 2>&1 </dev/null |
        grep -E 'ERROR|SUMMARY|number_of_executed|Test unit|artifact')
    # shellcheck disable=SC2086
    (cd $cover && tests/fuzz_$target -runs=0 -max_len="$longest" -print_coverage=1 "../$folder/found/$target" \
        $seeds 2>&1 </dev/null | python3 ../tests/support/cover.py $files)
    ls $folder/crash-* $folder/timeout-* $folder/oom-* $folder/leak-* >/dev/null 2>&1 && status=1
done <tests/fuzz/targets
[ $status = 0 ] && echo "nothing was found"
exit $status
