#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# static.sh OUT IN OBJCOPY AR CC...: the archive IN as one object in which only weft_* can be linked
# against, so that no name of ours meets one of the program's.
set -e
out=$1 in=$2 objcopy=$3 ar=$4
shift 4
"$@" -r -nostdlib -o "$out.o" -Wl,--whole-archive "$in" -Wl,--no-whole-archive
"$objcopy" --wildcard --keep-global-symbol='weft_*' "$out.o"
rm -f "$out"
"$ar" rcs "$out" "$out.o"
rm -f "$out.o"
