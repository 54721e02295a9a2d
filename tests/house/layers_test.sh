#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The house's one-way order: a room includes only doors downstream of it, and its own files.
# layers_test.sh SOURCE; TAP.
cd "$1" || exit 1

# What each room may look into, itself left out.
allowed() {
    case $1 in
    core) echo "" ;;
    memory) echo "core" ;;
    peer) echo "core" ;;
    fabric) echo "memory core" ;;
    bench) echo "fabric peer memory core" ;;
    map) echo "core" ;;
    report) echo "map bench fabric peer memory core" ;;
    study) echo "report map bench fabric peer memory core" ;;
    host) echo "report bench fabric peer memory core" ;;
    api) echo "report bench fabric peer memory core" ;;
    tool) echo "study host api report map bench fabric peer memory core" ;;
    tools) echo "tool" ;;
    *) return 1 ;;
    esac
}

# The doors of a room: headers that other rooms may include.
doors_of() {
    case $1 in
    core) echo "core.h clock.h counters.h cpu.h child.h machine.h opt.h secret.h" ;;
    fabric) echo "fabric.h facts.h amo.h choose.h pieces.h" ;;
    peer) echo "peer.h group.h launch.h" ;;
    bench) echo "bench.h spec.h stats.h session.h team.h" ;;
    report) echo "report.h maps.h" ;;
    study) echo "study.h page.h maps.h" ;;
    *) echo "$1.h" ;;
    esac
}

# Every breach of the room in folder $2, one a line.
breaches() {
    room=$1
    doors=$(allowed "$room") || { echo "$2: a room the order does not know"; return; }
    grep -rn '^ *# *include *"' "$2" --include='*.[ch]' |
        sed 's/^\([^:]*:[0-9]*\):.*"\(.*\)".*/\1 \2/' |
        while read -r where what; do
            owner=${what%%/*}
            if [ "$owner" = "$what" ]; then
                echo "$where: \"$what\" is not named by its room"
            elif [ "$owner" = "$room" ]; then
                continue
            elif ! echo " $doors " | grep -q " $owner "; then
                echo "$where: $room must not look into $owner"
            elif ! echo " $(doors_of "$owner") " | grep -q " ${what#*/} "; then
                echo "$where: $what is not a door of $owner"
            fi
        done
}

# Vendors' headers belong into modules alone.
vendor_breaches() {
    grep -rnE '^ *# *include *<(rdma|uct|ucs|ucp|infiniband|cuda|hip|level_zero|mpi|pmix)' src tools \
        --include='*.[ch]' | grep -vE '^src/(fabric/(ofi|uct|ucp|cxi)|memory|peer/(mpi|pmix))'
}

# A door is read by everybody: it is there, and short.
MOST_LINES=250
long_doors() {
    for room in $rooms; do
        for door in $(doors_of "$room"); do
            lines=$(wc -l <"src/$room/$door") || continue
            [ "$lines" -le $MOST_LINES ] || echo "src/$room/$door: $lines lines, $MOST_LINES at most"
        done
    done 2>&1
}

deep() {
    find src -mindepth 4 -name '*.[ch]'
    find . \( -path ./.git -o -path './build*' \) -prune -o -type d \( -name utils -o -name common -o -name misc \
        -o -name helpers \) -print
}

number=0
verdict() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        echo "$2" | sed 's/^/# /'
    fi
}

rooms=$(ls src | grep -v meson.build)
set -- $rooms
echo "1..$(($# + 5))"
for room in $rooms; do
    verdict "$room includes only doors downstream of it" "$(breaches "$room" "src/$room")"
done
verdict "tools include only the tool room" "$(breaches tools tools)"
verdict "every door is there, and none is over $MOST_LINES lines" "$(long_doors)"
verdict "vendor headers appear in modules alone" "$(vendor_breaches)"
verdict "nothing is deeper than src/room/plugin, and no folder is called a drawer" "$(deep)"
# The test itself must be able to see a breach.
broken=$(mktemp -d)
mkdir "$broken/core"
printf '#include "bench/bench.h"\n' >"$broken/core/x.c"
if [ -n "$(breaches core "$broken/core")" ]; then seen=; else seen="an upward include was missed"; fi
rm -rf "$broken"
verdict "an upward include is seen" "$seen"
