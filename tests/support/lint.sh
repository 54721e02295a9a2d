#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh BUILD: layout, clang-tidy and cppcheck over all of our C. Quiet when clean.
cd "$(dirname "$0")/../.." || exit 1
build=$1
# What this machine cannot compile is left out: fuzz targets, and a NIC whose header is missing.
sources=$(git ls-files '*.c' | grep -v -e '^tests/fuzz/' -e slingshot.c)
all=$(git ls-files '*.[ch]')
broken=0

# shellcheck disable=SC2086
clang-format --dry-run --Werror $all || broken=1
# shellcheck disable=SC2086
clang-tidy --quiet -p "$build" $sources 2>/dev/null || broken=1
cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    --suppress=missingIncludeSystem -D_GNU_SOURCE -D__x86_64__ -Isrc -Iinclude src tools bench tests || broken=1
[ "$broken" = 0 ] && echo "lint: clean"
exit "$broken"
