#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh [SECONDS]: builds the fuzz targets with clang and runs each for so long. What is found stays in
# build-fuzz as crash-*; the corpus in the tree is only read.
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60}
folder=build-fuzz
[ -f $folder/build.ninja ] || CC=clang meson setup $folder -Dfuzz=true -Dtests=disabled \
    -Db_sanitize=address,undefined -Db_lundef=false \
    -Duct=disabled -Dofi=disabled -Dmpi=disabled >/dev/null || exit 1
ninja -C $folder >$folder/log 2>&1 || { tail -n 30 $folder/log; exit 1; }
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export UBSAN_OPTIONS
rm -f $folder/crash-* $folder/timeout-* $folder/oom-*
status=0
for target in control batch options document soft_am soft_link soft_mail; do
    mkdir -p "$folder/found/$target"
    echo "== $target, $seconds s"
    (cd $folder && tests/fuzz_$target -max_total_time="$seconds" -max_len=4096 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 "found/$target" \
        "../tests/fuzz/corpus/$target" 2>&1 | grep -E 'ERROR|SUMMARY|number_of_executed|Test unit|artifact' )
    ls $folder/crash-* $folder/timeout-* $folder/oom-* >/dev/null 2>&1 && status=1
done
[ $status = 0 ] && echo "nothing was found"
exit $status
