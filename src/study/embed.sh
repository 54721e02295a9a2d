#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# embed.sh NAME FILE...: prints C source: the text of the files as the string NAME, its SHA-256 as NAME_hash.
name=$1
shift
echo '#include "study/plot.h"'
echo "const char $name[] ="
sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' "$@"
echo ';'
echo "const char ${name}_hash[] = \"$(cat "$@" | sha256sum | cut -c 1-64)\";"
