// SPDX-License-Identifier: BSD-3-Clause
// Shows values of the plots by pointer, touch or arrow keys. The page is complete without it.
"use strict";
(() => {
  const NEAR = 30, FEW = 8;
  const box = document.createElement("div");
  box.className = "readout";
  box.setAttribute("role", "status");

  // Corners of a line, or the middles of columns, in the units of the plot.
  const corners = line => {
    const found = [];
    const columns = line.classList.contains("area");
    let x = 0, y = 0;
    for (const [, step, a, b] of line.getAttribute("d").matchAll(/([MLHV])([-\d.]+) ?([-\d.]+)?/g)) {
      if (step === "V") {
        y = +a;
      } else if (step === "H") {
        found.push([(x + +a) / 2, y]);
        x = +a;
      } else {
        [x, y] = [+a, +b];
        if (!columns) found.push([x, y]);
      }
    }
    return found;
  };

  const list = text => text ? text.split("|") : [];

  const curveOf = (g, plot) => ({
    g, name: g.dataset.name, places: corners(g.querySelector(".l")),
    first: +(g.dataset.first || 0),
    x: g.dataset.x ? list(g.dataset.x) : plot.words, y: list(g.dataset.y), more: list(g.dataset.more),
  });

  const nearest = (places, x, y) => {
    let best = -1, least = Infinity;
    places.forEach(([px, py], i) => {
      const far = Math.hypot(px - x, y === null ? 0 : (py - y));
      if (far < least) [best, least] = [i, far];
    });
    return [best, least];
  };

  const line = (plot, curve, i, main) => {
    const row = document.createElement("div");
    const swatch = document.createElement("i");
    const name = document.createElement("span");
    const value = document.createElement("b");
    const hue = [...curve.g.classList].find(c => /^h\d$/.test(c));
    row.className = main ? "main" : "";
    swatch.className = "swatch " + hue;
    name.textContent = curve.name;
    value.textContent = [plot.value, curve.y[i], plot.unit].filter(Boolean).join(" ") + (curve.more[i] || "");
    row.append(swatch, name, value);
    return row;
  };

  const show = (plot, curve, i) => {
    const [x, y] = curve.places[i];
    const head = document.createElement("div");
    const seen = plot.curves.filter(c => c.g.getClientRects().length);
    head.className = "head";
    head.textContent = curve.x[curve.first + i];
    box.replaceChildren(head);
    // With many curves, only the medians of families.
    for (const other of seen.filter(c => c === curve || seen.length <= FEW || c.g.classList.contains("bold")).slice(0, 2 * FEW)) {
      const [j] = other === curve ? [i] : nearest(other.places, x, null);
      if (j >= 0 && Math.abs(other.places[j][0] - x) < 3) box.append(line(plot, other, j, other === curve));
    }
    plot.figure.append(box);
    plot.cross.setAttribute("d", `M${x} ${plot.top}V${plot.bottom}M${plot.left} ${y}H${plot.right}`);
    plot.dot.setAttribute("cx", x);
    plot.dot.setAttribute("cy", y);
    plot.svg.append(plot.cross, plot.dot);
    const frame = plot.svg.getBoundingClientRect(), room = plot.figure.getBoundingClientRect();
    const scale = frame.width / 640, left = frame.left - room.left + x * scale;
    const width = box.offsetWidth, top = frame.top - room.top;
    const beside = left + 14 + width > room.width ? left - 14 - width : left + 14;
    box.style.left = Math.max(0, Math.min(beside, room.width - width)) + "px";
    box.style.top = Math.max(top, top + y * scale - box.offsetHeight - 12) + "px";
    plot.at = [curve, i];
  };

  const hide = plot => {
    box.remove();
    plot.cross.remove();
    plot.dot.remove();
  };

  const point = (plot, event) => {
    const matrix = plot.svg.getScreenCTM();
    if (!matrix) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let best = null, least = Infinity;
    for (const curve of plot.curves) {
      if (!curve.g.getClientRects().length) continue;
      const [i, far] = nearest(curve.places, x, y);
      if (far < least) [best, least] = [[curve, i], far];
    }
    if (best && least < NEAR * 4) show(plot, ...best);
    else hide(plot);
  };

  const key = (plot, event) => {
    const seen = plot.curves.filter(c => c.g.getClientRects().length);
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") hide(plot);
    if (!step || !seen.length) return;
    event.preventDefault();
    let [curve, i] = plot.at || [seen[0], -step[1]];
    curve = seen[(Math.max(0, seen.indexOf(curve)) + step[0] + seen.length) % seen.length];
    i = Math.max(0, Math.min(curve.places.length - 1, i + step[1]));
    show(plot, curve, i);
  };

  const element = (name, kind) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    made.setAttribute("class", kind);
    return made;
  };

  // A finger leaves as soon as it has tapped: what it asked for stays until the next tap.
  const stays = event => event.pointerType === "touch";

  // A tile of a heat map: its nodes and times. Values are those below the diagonal, row by row.
  const spot = (heat, event) => {
    const matrix = heat.svg.getScreenCTM();
    if (!matrix) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const column = Math.floor((x - heat.left) / heat.tile), row = Math.floor((y - heat.top) / heat.tile);
    const inside = Math.min(row, column) >= 0 && Math.max(row, column) < heat.side;
    const high = Math.max(row, column), low = Math.min(row, column), at = high * (high - 1) / 2 + low;
    heat.mark.remove();
    box.remove();
    if (!inside || row === column) return;
    const head = document.createElement("div"), times = document.createElement("p");
    head.className = "head";
    head.textContent = `${heat.names[row]} - ${heat.names[column]}`;
    times.textContent = heat.p50[at] ? `p50 ${heat.p50[at]} us, p99 ${heat.p99[at]} us` : "not measured";
    box.replaceChildren(head, times);
    heat.figure.append(box);
    heat.mark.setAttribute("d", `M${heat.left + column * heat.tile} ${heat.top + row * heat.tile}h${heat.tile}v${heat.tile}h${-heat.tile}z`);
    heat.svg.append(heat.mark);
    const room = heat.figure.getBoundingClientRect();
    box.style.left = Math.max(0, Math.min(event.clientX - room.left + 14, room.width - box.offsetWidth)) + "px";
    box.style.top = event.clientY - room.top + 16 + "px";
  };

  for (const svg of document.querySelectorAll("svg.heat")) {
    const { side, left, top, tile, names, p50, p99 } = svg.dataset;
    const heat = {
      svg, figure: svg.closest("figure"), side: +side, left: +left, top: +top, tile: +tile,
      names: list(names), p50: list(p50), p99: list(p99), mark: element("path", "spot"),
    };
    svg.addEventListener("pointermove", e => spot(heat, e));
    svg.addEventListener("pointerdown", e => spot(heat, e));
    const clear = () => { heat.mark.remove(); box.remove(); };
    svg.addEventListener("pointerleave", e => stays(e) || clear());
    document.addEventListener("pointerdown", e => svg.contains(e.target) || clear());
  }

  for (const svg of document.querySelectorAll("svg.plot")) {
    const plot = {
      svg, figure: svg.closest("figure"), value: svg.dataset.value, unit: svg.dataset.unit,
      words: list(svg.dataset.x), cross: element("path", "cross"), dot: element("circle", "dot"), curves: null,
    };
    [plot.left, plot.top, plot.bottom, plot.right] = svg.querySelector(".frame").getAttribute("d").match(/[\d.]+/g);
    plot.dot.setAttribute("r", 5);
    // Parsed on first use: a page may have many plots.
    const ready = () => {
      if (plot.curves) return;
      plot.curves = [...svg.querySelectorAll("g.c")].map(g => curveOf(g, plot));
      svg.querySelectorAll("title").forEach(title => title.remove());
    };
    const on = (event, act) => svg.addEventListener(event, e => { ready(); act(plot, e); });
    svg.tabIndex = 0;
    on("pointermove", point);
    on("pointerdown", point);
    on("keydown", key);
    on("pointerleave", (plot, e) => stays(e) || hide(plot));
    on("blur", hide);
  }
})();
