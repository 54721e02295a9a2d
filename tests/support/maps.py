# SPDX-License-Identifier: BSD-3-Clause
"""Makes maps such as weft map writes with --json, without measuring anything; the same for the same
seed. By hand: maps.py OUT.json NODES [GROUPS]."""
import json
import math
import random
import statistics
import sys

BUCKETS = ((1.0, 2.0), (2.0, 4.0), (8.0, 16.0))


def node(name, group, verdict=None, effect=0.0):
    return {"name": name, "group": group, "state": "present", "pairs": 0, "effect_percent": effect,
            "p50_us": 1.7, "p99_us": 3.1, "verdict": verdict}


def meetings(nodes, partners, rng):
    """All pairs, or as many rounds as there are partners, of the circle method in random order."""
    if not partners:
        return [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]
    order, last = rng.sample(range(nodes), nodes), nodes - 1
    return sorted(tuple(sorted((order[a], order[b])))
                  for r in rng.sample(range(last), partners)
                  for a, b in [(r, last)] + [((r + i) % last, (r - i) % last) for i in range(1, nodes // 2)])


def estimate(nodes, pairs, usual):
    """What weft map writes about nodes: effects in percent, and the noise of a pair."""
    rows, effects = [[] for _ in range(nodes)], [0.0] * nodes
    left = [math.log(p["p50_us"]) - usual(p) for p in pairs]
    for p, value in zip(pairs, left):
        rows[p["a"]].append((p["b"], value))
        rows[p["b"]].append((p["a"], value))
    middle = statistics.median(left)
    for _ in range(8):
        for i, row in enumerate(rows):
            effects[i] = statistics.fmean(v - middle - effects[b] for b, v in row)
        half = statistics.median(effects)
        effects = [e - half for e in effects]
        middle += 2 * half
    rest = [v - middle - effects[p["a"]] - effects[p["b"]] for p, v in zip(pairs, left)]
    return ([100 * math.expm1(e) for e in effects],
            100 * math.sqrt(sum(r * r for r in rest) / max(1, len(rest) - nodes)))


def make(nodes=16, groups=1, seed=1, slow=None, factor=1.0, lost=(), name="n{:03d}".format, noise=0.01,
         partners=0):
    """slow: {number of a node: how much slower its pairs are, 0.1 is 10 %}. With partners their effects
    are estimated; as in real documents, 1000 pairs are kept of more than 256 nodes."""
    rng = random.Random(seed)
    slow = slow or {}
    names = [f"sw{i * groups // nodes}" for i in range(nodes)]
    level = [1 + slow.get(i, 0) for i in range(nodes)]
    pairs = []
    for a, b in meetings(nodes, partners, rng):
        us = 1.7 * factor * level[a] * level[b] * rng.gauss(1, noise)
        us *= 1.0 if names[a] == names[b] else 1.12
        pairs.append({"a": a, "b": b, "round": (a + b) % nodes, "count": 1000,
                      "min_us": round(us * 0.95, 6), "p50_us": round(us, 6),
                      "p99_us": round(us * 1.6, 6), "max_us": round(us * 6, 6)})
    listed = [node(name(i), names[i] if groups > 1 else None,
                   "slower" if i in slow else None, round(100 * slow.get(i, 0), 3))
              for i in range(nodes)]
    for entry in listed:
        entry["pairs"] = partners or nodes - 1
    percent = 100 * noise
    if partners or nodes > 256:
        effects, percent = estimate(
            nodes, pairs, lambda p: math.log(1.0 if names[p["a"]] == names[p["b"]] else 1.12))
        for entry, effect in zip(listed, effects):
            entry["effect_percent"] = round(effect, 4)
    measured = len(pairs)
    if nodes > 256:
        pairs = sorted(pairs, key=lambda p: -p["p50_us"])[:1000]
    for number in lost:
        listed[number]["state"] = "lost"
    findings = [{"kind": "node", "a": i, "verdict": "slower", "first_percent": 100 * s,
                 "effect_percent": 98 * s, "low_percent": 90 * s, "high_percent": 107 * s,
                 "cells": 16} for i, s in slow.items()]
    return {
        "schema": "weft-map", "version": 1, "weft": "0.1.0", "commit": "0", "command": ["map"],
        "begun": "2026-11-16T12:00:00Z", "ended": "2026-11-16T12:01:00Z", "test": "send_lat",
        "time": "latency", "size": 8,
        "fabric": {"device": "ofi:cxi", "form": "libfabric cxi"},
        "launch": {"muster": "pmi", "ranks": nodes, "hosts": nodes, "trusted": True},
        "schedule": {"seed": f"{seed:016x}", "rounds": nodes - 1 + nodes % 2,
                     "partners": partners or nodes - 1, "again": 16, "at_once": nodes // 2, "slot_ms": 60,
                     "iterations": 0},
        "nodes": listed, "groups": sorted(set(names)) if groups > 1 else [],
        "pairs_measured": measured, "pairs": pairs, "findings": findings,
        "model": {"noise_percent": round(percent, 4), "min_effect_percent": 5,
                  "power": [{"effect_percent": 10, "probability": 0.99}]},
        "histogram": [{"low_us": a, "high_us": b, "count": 10} for a, b in BUCKETS],
        "lost": [{"node": i, "round": 3, "reason": "its connection was closed"} for i in lost],
        "failed": [], "ending": {"code": 3 if slow else 0, "reason":
                                 "Slower: 1 named" if slow else
                                 "Nothing is slower by 5 % or more"}}


def write(path, **what):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(make(**what), out)
    return path


if __name__ == "__main__":
    write(sys.argv[1], nodes=int(sys.argv[2]), groups=int((sys.argv + ["1"])[3]), slow={5: 0.14})
