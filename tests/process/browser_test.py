# SPDX-License-Identifier: BSD-3-Clause
"""browser_test.py BUILD: the page of `weft report` in a real browser. Documents are made up, so every
number in them is known. Pictures of what was looked at stay in BUILD/pages."""
import json
import os
import re
import tempfile
import threading
import xml.etree.ElementTree as tree

import browser
import documents
import maps
from tap import at_exit, build_folder, check, ended, equal, folder, main, run, skip, test, tool_path

WEFT = tool_path("weft")
PICTURES = os.path.join(build_folder(), "pages")
SIZES = [2 ** k for k in range(3, 21)]
EVIL = "\"><img src=x onerror=boo()></script><script>boo()</script><!-- ' & \u202e"
os.makedirs(PICTURES, exist_ok=True)

# ---- documents and pages ----


def page_of(*paths, name="page.html"):
    page = os.path.join(folder(), name)
    ended(run(WEFT, "report", *paths, "-o", page), 0)
    return page


def written(name, **keys):
    return documents.write(os.path.join(folder(), name + ".json"), documents.document(**keys))


def one():
    return written("one", sizes=SIZES, shape="tailed", slope_us=0.0001, series=30, count=3000,
                   device="cxi0", fabric="soft")


def other():
    return written("other", sizes=SIZES, shape="bimodal", slope_us=0.00012, median_us=1.6, series=30,
                   count=3000, seed=3, device="cxi0", fabric="soft", options={"idc": "0"})


def streams():
    tests = [dict(size=size, test=test, label=f"{test}/{size}", layout="bcopy", count=1200,
                  method="ping-pong" if test == "am_lat" else "stream", shape="lognormal",
                  median_us=0.4 + size / 9000) for test in ("am_lat", "am_bw") for size in SIZES[:10]]
    return documents.write(os.path.join(folder(), "streams.json"), documents.batch(tests))


def lists():
    """One way and both ways, with ceilings."""
    keys = {"tool": "cxi_write_bw", "fabric": "soft", "device": "cxi0", "sizes": SIZES, "slope_us": 0.02,
            "count": 1200, "shape": "tailed"}
    return [written("lists", method="list", **keys),
            written("both", method="lists both ways", seed=2, **keys)]


def sparse():
    """Runs that have hardly anything in them."""
    whole = documents.document(sizes=(1, 8), count=1)
    whole["results"][0].update(count=0, histogram=[], percentiles=[])
    failed = documents.document(state="failed", reason="no peer within 10 s", server=False)
    failed["results"] = []
    return [documents.write(os.path.join(folder(), f"{name}.json"), document)
            for name, document in (("sparse", whole), ("failed", failed))]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# ---- the browser ----

_lock, _browser = threading.RLock(), []


def chromium():
    """The one browser of all tests, which take turns."""
    if not browser.find():
        skip("there is no Chromium: make check-browser installs it")
    if not _browser:
        _browser.append(browser.Browser())
        at_exit(_browser[0].close)
    return _browser[0]


def shown(page, width=1280, height=900, phone=False, dark=False):
    """Opens a page and holds what every page must hold."""
    here = chromium()
    here.media(dark=dark)
    here.screen(width, height, phone)
    here.open(page)
    quiet(here)
    return here


def quiet(here):
    said = here.said("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
    equal(said, [], "the page says something")
    asked = [event["request"]["url"] for event in here.said("Network.requestWillBeSent")]
    check(len(asked) == 1 and asked[0].startswith("file://"), "more than the page was asked for", asked)


def in_browser(function):
    def turn():
        with _lock:
            function()
    turn.__name__ = function.__name__
    return test(turn)


TABLE = """[...document.querySelectorAll('table.results tbody tr')].map(row => ({
  run: +row.dataset.run, result: +row.dataset.result,
  cells: Object.fromEntries([...row.querySelectorAll('[data-key]')].map(
    cell => [cell.dataset.key, [cell.dataset.value ?? null, cell.textContent]]))}))"""


def figures(result):
    """What a row must carry, by key."""
    wanted = {key: result[key] for key in ("size", "count", "min_us", "median_us", "max_us", "mean_us",
                                           "deviation_us")}
    for percentile in result["percentiles"]:
        if percentile["percent"] != 50:
            wanted[f"p{percentile['percent']:.10g}"] = percentile["us"]
    return wanted


def check_table(here, paths):
    rows = {(row["run"], row["result"]): row["cells"] for row in here.value(TABLE)}
    runs = [load(path) for path in paths]
    equal(sorted(rows), [(i, j) for i, run in enumerate(runs) for j in range(len(run["results"]))])
    for (i, j), cells in rows.items():
        result = runs[i]["results"][j]
        for key, value in figures(result).items():
            told, text = cells.get(key, [None, "-"])
            equal(None if told is None else float(told), value, f"run {i} result {j} {key}")
            check((text == "-") == (value is None), key, text, value)
            if value is not None:
                check(abs(float(text) - value) <= 0.00501, key, text, value)
        for key in ("bytes_per_s", "messages_per_s"):
            told = cells.get(key, [None])[0]
            equal(None if told is None else float(told), result[key], key)


# ---- tests ----

@test
def every_plot_is_well_formed_xml():
    for paths in ([one(), other()], [streams()], lists(), sparse()):
        with open(page_of(*paths), encoding="utf-8") as file:
            page = file.read()
        plots = re.findall(r"<svg class=\"plot.*?</svg>", page, re.S)
        check(plots or paths[0].endswith("sparse.json"), "no plots")
        for plot in plots:
            tree.fromstring(plot)
            numbers = re.findall(r"\b(?:nan|inf)\b", plot, re.I)
            equal(numbers, [], "not a number in a plot")


@test
def a_plot_alone_is_a_file():
    with open(page_of(one(), other(), name="plot.svg"), encoding="utf-8") as file:
        root = tree.fromstring(file.read())
    equal(root.tag, "{http://www.w3.org/2000/svg}svg")
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for wanted in ("Latency versus size", "Size [bytes]", "512K", "10", "Latency [us]"):
        check(wanted in texts, wanted, texts)


@test
def the_same_documents_make_the_same_page():
    paths = [one(), streams()]
    pages = []
    for _ in range(2):
        with open(page_of(*paths), "rb") as file:
            pages.append(file.read())
    check(pages[0] == pages[1], "two pages differ")


@in_browser
def the_page_is_silent_and_asks_for_nothing():
    for paths in ([one()], [one(), other()], [streams()], lists(), sparse(), sparse()[1:]):
        for dark in (False, True):
            shown(page_of(*paths), dark=dark)


@in_browser
def the_numbers_of_the_table_are_those_of_the_documents():
    for paths in ([one(), other()], [streams()], lists()[:1], sparse()):
        check_table(shown(page_of(*paths)), paths)


@in_browser
def the_run_is_described_in_full():
    path = other()
    here, whole = shown(page_of(path)), load(path)
    text = " ".join(here.value("document.body.textContent").split())
    wanted = [whole["tool"]["name"], whole["begun"], whole["status"]["state"]]
    wanted += [option["value"] for option in whole["options"].values()
               if isinstance(option["value"], str)]
    wanted += list(whole["ends"]["client"].values()) + list(whole["ends"]["server"].values())
    wanted += [whole["results"][0]["method"]["completion_proves"], "20.5 ns", "preempted"]
    for word in wanted:
        check(word in text, f"{word!r} is not in the page")


@in_browser
def a_run_that_failed_is_said_on_top():
    here = shown(page_of(*sparse()))
    text = here.value("document.querySelector('header').innerText")
    check("no peer within 10 s" in text, text)
    check(here.value("!!document.querySelector('#runs .badge.bad')"))


def marker(here, plot, curve, number):
    """Where on the screen the point of a curve is drawn."""
    return here.value(f"""(() => {{
      const svg = document.querySelectorAll('svg.plot')[{plot}];
      svg.scrollIntoView({{block: 'center'}});
      const line = svg.querySelectorAll('g.c')[{curve}].querySelector('.l').getAttribute('d');
      const [x, y] = line.slice(1).split('L')[{number}].split(' ').map(Number);
      const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      return [at.x, at.y];}})()""")


@in_browser
def the_hover_reads_the_median_of_the_documents():
    paths = [one(), other()]
    here = shown(page_of(*paths))
    for run_number, path in enumerate(paths):
        for number, result in enumerate(load(path)["results"]):
            here.move(5, 5)
            here.move(*marker(here, 0, run_number, number))
            said = here.value("document.querySelector('.readout .main')?.innerText || ''")
            found = re.search(r"median ([\d.]+) us, p99 ([\d.]+) us", said)
            check(found, "no median in the read-out", said)
            equal(float(found[1]), result["median_us"])
            equal(float(found[2]), next(p["us"] for p in result["percentiles"] if p["percent"] == 99))
            both = here.value("document.querySelectorAll('.readout > div:not(.head)').length")
            equal(both, 2, "the read-out tells of both runs")
    quiet(here)


def tile(here, row, column):
    """Where on the screen it is."""
    return here.value(f"""(() => {{const s = document.querySelector('svg.heat');
      s.scrollIntoView({{block: 'center'}});
      const d = s.dataset, at = n => (n + 0.5) * d.tile;
      const p = new DOMPoint(+d.left + at({column}), +d.top + at({row})).matrixTransform(s.getScreenCTM());
      return [p.x, p.y];}})()""")


READOUT = "document.querySelector('.readout')?.innerText || ''"


@in_browser
def the_hover_of_a_heat_map_reads_both_nodes_and_the_median():
    document = maps.make(nodes=16, groups=2, slow={5: 0.14})
    path = maps.write(os.path.join(folder(), "map.json"), nodes=16, groups=2, slow={5: 0.14})
    here = shown(page_of(path))
    names = here.value("document.querySelector('svg.heat').dataset.names").split("|")
    for row, column in ((0, 1), (3, 9), (7, 15), (15, 14)):
        here.move(5, 5)
        here.move(*tile(here, row, column))
        said = here.value(READOUT)
        check(f"{names[row]} - {names[column]}" in said, said)
        ends = {int(names[row][1:]), int(names[column][1:])}
        pair = next(p for p in document["pairs"] if {p["a"], p["b"]} == ends)
        check(f"p50 {pair['p50_us']:.4g} us" in said, said, pair)
    quiet(here)


@in_browser
def a_tap_on_a_heat_map_reads_a_tile_until_the_next_one():
    path = maps.write(os.path.join(folder(), "map.json"), nodes=16, slow={5: 0.14})
    here = shown(page_of(path), 390, 800, phone=True)
    for row, column, wanted in ((0, 1, "n000 - n001"), (15, 14, "n005 - n015"), (3, 3, "")):
        here.tap(*tile(here, row, column))
        said = here.value(READOUT)
        check(said.startswith(wanted) and bool(said) == bool(wanted), said)
    here.tap(*tile(here, 0, 1))
    here.tap(*here.value("""(() => { const r = document.querySelector('h2').getBoundingClientRect();
      return [r.left + 5, r.top + 5]; })()"""))
    equal(here.value(READOUT), "")


def check_names(here, *words):
    """All letters are legible and within the picture, no name lies on another one, and nothing is out of sight."""
    texts = here.value("""[...document.querySelectorAll('svg.heat text')].filter(t => t.getClientRects().length).map(t => {
      const r = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
      return [t.textContent, Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b) * parseFloat(getComputedStyle(t).fontSize),
              r.left - s.left, s.right - r.right, r.top - s.top, s.bottom - r.bottom, r.left, r.top, r.right, r.bottom]; })""")
    check(len(texts) > 8, texts, *words)
    for name, size, *room, _left, _top, _right, _bottom in texts:
        check(size >= 9 and min(room) >= -1, "small, or outside", name, size, room, *words)
    boxes = [(name, *box) for name, _size, _a, _b, _c, _d, *box in texts]
    for i, (name, left, top, right, bottom) in enumerate(boxes):
        # A line is higher than its letters.
        bad = [other for other, l, t, r, b in boxes[i + 1:]
               if min(right, r) - max(left, l) > 5 and min(bottom, b) - max(top, t) > 5]
        check(not bad, "on each other", name, bad, *words)
    for part in ("figure.heat .scroll", ".findings"):
        hidden = here.value(f"(p => p.scrollWidth - p.clientWidth)(document.querySelector('{part}').closest('.scroll'))")
        check(hidden <= 0, f"{part}: {hidden} pixels are out of sight", *words)


@in_browser
def maps_are_drawn_for_desktops_and_phones_light_and_dark():
    short, long = "n{:03d}".format, "nid001{:03d}".format
    of_a_domain = "node-{}.rack-and-row.cluster.example.org".format
    for nodes, groups, name in ((16, 2, short), (40, 3, long), (9, 1, of_a_domain), (256, 8, short)):
        path = maps.write(os.path.join(folder(), "map.json"), nodes=nodes, groups=groups,
                          slow={5: 0.14}, name=name)
        here = shown(page_of(path))
        for phone in (False, True):
            for dark in (False, True):
                here.screen(390 if phone else 1200, 900, phone)
                here.media(dark=dark)
                wide = here.value("document.documentElement.scrollWidth - innerWidth")
                check(wide <= 0, f"the page is {wide} pixels too wide")
                check_names(here, nodes, phone)
                here.picture(os.path.join(PICTURES, f"map-{nodes}-{'phone' if phone else 'desktop'}-"
                                          f"{'dark' if dark else 'light'}.png"))
    quiet(here)


@in_browser
def the_hover_reads_percentiles_columns_and_the_course():
    path = one()
    here, result = shown(page_of(path)), load(path)["results"][0]
    said = []
    for plot in (1, 2, 3):
        here.move(5, 5)
        box = here.value(f"""(() => {{const s = document.querySelectorAll('svg.plot')[{plot}];
          s.scrollIntoView({{block: 'center'}});
          const r = s.querySelector('g.c .l').getBoundingClientRect();
          return [r.left + r.width / 2, r.top + r.height / 2];}})()""")
        here.move(*box)
        said.append(here.value("document.querySelector('.readout')?.innerText || ''"))
    check("%" in said[0] and " us" in said[0], said[0])
    check(" .. " in said[1] and "%" in said[1], said[1])
    check("until " in said[2] and "mean " in said[2], said[2])
    mean = float(re.search(r"mean ([\d.]+) us", said[2])[1])
    check(any(abs(mean - part["mean_us"]) < 0.001 * mean for part in result["series"]), said[2])
    quiet(here)


@in_browser
def keys_move_along_a_curve():
    path = one()
    here, results = shown(page_of(path)), load(path)["results"]
    here.value("document.querySelector('svg.plot').focus()")
    for result in results[:3]:
        here.value("""document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))""")
        said = here.value("document.querySelector('.readout .main').innerText")
        check(f"median {result['median_us']:.15g} us" in said, said, result["median_us"])


@in_browser
def a_legend_hides_a_run_and_a_size_is_chosen():
    here = shown(page_of(one(), other()))
    count = "[...document.querySelectorAll('svg.plot g.c.f0')].filter(g => g.getClientRects().length).length"
    before = here.value(count)
    check(before >= 3, before)
    here.value("document.querySelector('#k0').click()")
    equal(here.value(count), 0)
    here.value("document.querySelector('#k0').click()")
    equal(here.value(count), before)
    seen = "[...document.querySelectorAll('.spread')].map(d => getComputedStyle(d).display === 'none' ? 0 : 1)"
    equal(here.value(seen), [1] + [0] * (len(SIZES) - 1))
    here.value("document.querySelector('#z4').click()")
    equal(here.value(seen), [0] * 4 + [1] + [0] * (len(SIZES) - 5))


@in_browser
def the_page_is_whole_without_scripts():
    here = chromium()
    page = page_of(one(), other())
    here.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        here.media()
        here.screen(1280, 900)
        here.open(page)
        quiet(here)
        root = here.call("DOM.getDocument", depth=-1)["root"]
        text = json.dumps(root)
        for wanted in ("Latency versus size", "table", "Differences between runs"):
            check(wanted in text, wanted)
    finally:
        here.call("Emulation.setScriptExecutionDisabled", value=False)


@in_browser
def light_and_dark_differ_and_both_have_contrast():
    page = page_of(one(), other())
    script = """(() => { const s = getComputedStyle(document.body);
      const lines = [...document.querySelectorAll('svg.plot g.c .l')].slice(0, 2).map(l => getComputedStyle(l).stroke);
      return [s.backgroundColor, s.color, getComputedStyle(document.querySelector('svg .tx')).fill, ...lines]; })()"""

    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    seen = []
    for dark in (False, True):
        colours = shown(page, dark=dark).value(script)
        paper = luminance(colours[0])
        for colour, least in zip(colours[1:], (7, 4.5, 3, 3)):
            light, deep = sorted((luminance(colour), paper), reverse=True)
            check((light + 0.05) / (deep + 0.05) >= least, "too little contrast", dark, colour, colours)
        check((paper < 0.1) == dark, colours)
        seen.append(colours)
        chromium().picture(os.path.join(PICTURES, f"desk-{'dark' if dark else 'light'}.png"))
    check(all(a != b for a, b in zip(*seen)), seen)


@in_browser
def ceilings_of_bandwidth_are_grey_and_dashed_and_say_what_they_are():
    script = """[...document.querySelectorAll('.ceiling')].map(g => [g.dataset.name,
      getComputedStyle(g.querySelector('.l')).strokeDasharray != 'none',
      getComputedStyle(g.querySelector('.l')).stroke == getComputedStyle(g.querySelector('text')).fill])"""
    page = page_of(*lists())
    for dark in (False, True):
        here = shown(page, dark=dark)
        equal(here.value(script), [[name, True, True] for name in (
            "memcpy, 1 CPU", "memcpy, 2 CPUs", "link", "link x 2")])
        here.picture(os.path.join(PICTURES, f"lists-{'dark' if dark else 'light'}.png"))


@in_browser
def a_phone_does_not_scroll_sideways():
    long = written("long-" + "name-" * 30, sizes=(8, 64), count=300,
                   client={"host": "h" * 120}, options={"o" * 80: "v" * 300})
    for paths in ([one(), other()], [streams()], [long, one()], sparse()):
        here = shown(page_of(*paths), 360, 740, phone=True)
        width = here.value("document.scrollingElement.scrollWidth")
        check(width <= 360, f"{width} px wide", paths)
        # In pixels of the screen, letters have to stay legible.
        letters = here.value("""[...document.querySelectorAll('svg.plot text')].filter(
            t => t.getClientRects().length).map(t => t.getScreenCTM().d * parseFloat(getComputedStyle(t).fontSize)).filter(
            size => size > 0)""")
        check(all(size >= 9 for size in letters), "small letters", sorted(letters)[:3])
    shown(page_of(one(), other()), 360, 740, phone=True).picture(os.path.join(PICTURES, "phone.png"))


@in_browser
def labels_of_ticks_do_not_overlap():
    script = """(() => { const bad = [];
      for (const svg of document.querySelectorAll('svg.plot')) for (const kind of ['.tx', '.ty']) {
        const boxes = [...svg.querySelectorAll(kind)].map(t => [t.getBoundingClientRect(), t.textContent]).filter(
          b => b[0].width);
        boxes.forEach(([a, s], i) => boxes.slice(i + 1).forEach(([b, t]) => {
          if (a.left - 4 < b.right && b.left - 4 < a.right && a.top < b.bottom && b.top < a.bottom) bad.push(s + '/' + t); }));
        const frame = svg.getBoundingClientRect();
        for (const [a, s] of boxes) if (a.left < frame.left - 1 || a.right > document.documentElement.clientWidth) bad.push(s);
      } return bad; })()"""
    for paths in ([one(), other()], [streams()], lists(), [written("wide", sizes=(1, 1 << 30), count=2000)],
                  [written("long", sizes=(1 << 14, 1 << 25), count=2000)]):
        page = page_of(*paths)
        for width, phone in ((1280, False), (800, False), (360, True)):
            equal(shown(page, width, 740, phone).value(script), [], f"{width} px wide")


@in_browser
def paper_is_light_and_without_controls():
    here = shown(page_of(one(), other()), dark=True)
    here.media("print", dark=True)
    equal(here.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
    for control in (".sizes", ".legend input"):
        equal(here.value(f"getComputedStyle(document.querySelector('{control}')).display"), "none")
    check(here.value("document.querySelector('#runs .facts').checkVisibility()"),
          "the description of the runs is not printed")
    here.paper(os.path.join(PICTURES, "paper.pdf"))
    quiet(here)


@in_browser
def a_hostile_document_is_only_text():
    whole = documents.document(sizes=(8, 16), tool=EVIL, reason=EVIL, state="failed", test=EVIL,
                               label=EVIL, device=EVIL, client={"host": EVIL, EVIL: EVIL},
                               options={EVIL: EVIL})
    path = documents.write(os.path.join(folder(), "'\"<b>&.json"), whole)
    here = shown(page_of(path, one()))
    equal(here.value("document.querySelectorAll('img, script[src], iframe, link, b b').length"), 0)
    equal(here.value("document.querySelectorAll('script').length"), 1)
    check("onerror=boo()" in here.value("document.body.innerText"), "the text is not shown")


@in_browser
def no_script_but_ours_can_run_or_fetch():
    here = shown(page_of(one()))
    here.value("""(() => { const script = document.createElement('script');
      script.textContent = 'window.boo = 1'; document.body.append(script); })()""")
    equal(here.value("typeof window.boo"), "undefined")
    equal(here.value("fetch(location.href).then(() => 'fetched', () => 'refused')"), "refused")
    equal(len(here.said("Network.requestWillBeSent")), 1)


@in_browser
def fifty_runs_can_be_told_apart_by_command():
    with tempfile.TemporaryDirectory() as base:
        for side, device, median in (("a", "cxi0", 2.0), ("b", "cxi1", 2.2)):
            documents.runs(os.path.join(base, side), 25, sizes=SIZES[::3], device=device, fabric="soft",
                           median_us=median, slope_us=0.0001, shape="tailed", noise=0.03, seed=ord(side))
        page = page_of(os.path.join(base, "a"), os.path.join(base, "b"))
    here = shown(page)
    equal(here.value("document.querySelectorAll('.legend label').length"), 2)
    equal(here.value("document.querySelector('svg.plot').querySelectorAll('g.c').length"), 52)
    equal(here.value("document.querySelector('svg.plot').querySelectorAll('g.c.bold').length"), 2)
    equal(here.value("document.querySelectorAll('#runs details').length"), 50)
    here.picture(os.path.join(PICTURES, "fifty.png"))


main()
