#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# embed.sh NAME FILE: prints C source: the text of FILE as the string NAME, its SHA-256 as NAME_hash.
echo '#include "study/plot.h"'
echo "const char $1[] ="
sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' "$2"
echo ';'
echo "const char $1_hash[] = \"$(sha256sum <"$2" | cut -c 1-64)\";"
