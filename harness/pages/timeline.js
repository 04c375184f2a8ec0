/* The whole timeline: a canvas with a lane for each process or node.

Far out it shows how many operations began or ran in each pixel, near by the operations themselves. timeline_data.js
has the data. Every text goes to the page as textContent or onto the canvas, never as HTML.

A reader (or a test) finds the state in attributes of the canvas: data-ready, data-start-ns and data-end-ns (the view),
data-lanes (process, node), data-mode (density, operations), data-here (operations of the view that are on the page and
pass the filter), data-matching (those of the whole page), data-selected (event of the invocation), data-hits, data-hit
(event), data-order and data-step. */
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const canvas = find("timeline-canvas"), packed = find("timeline-data");
  if (!canvas || !packed) return;
  const SERVE = "http://127.0.0.1:8000/runs/";
  const OUTCOMES = ["ok", "fail", "info"];
  const DRAWN = 8000, LABELLED = 500, LANES_HEIGHT = 420;
  const context = canvas.getContext("2d");
  const state = { start: 0, end: 1, lanes: "process", selected: -1, hits: [], hit: -1, order: -1, step: 0 };
  let head, run, match, filtered = false, look, colours, drawing = false;

  // ------------------------------------------------------------------ words

  const text = (table, i) => head.tables[table][run[table][i]];
  const number = (value) => value.toLocaleString("en");
  const keyOf = (i) => [text("keys", i) ?? []].flat().join(", ");

  function moment(ns, span = state.end - state.start) {
    if (!head.has_times) return "event " + Math.round(ns);
    return (ns / 1e9).toFixed(span < 2e6 ? 6 : span < 2e9 ? 4 : 3) + " s";
  }

  function duration(ns) {
    if (!head.has_times) return "–";
    return ns < 1e6 ? (ns / 1e3).toFixed(0) + " µs" : ns < 1e9 ? +(ns / 1e6).toPrecision(3) + " ms" : +(ns / 1e9).toPrecision(4) + " s";
  }

  function words(i) {
    const value = text("values", i), error = text("errors", i);
    const answer = value === null ? "" : text("kinds", i)[0] === "read" ? " → " + value : " " + value;
    return text("kinds", i)[0] + " " + keyOf(i) + answer + (error ? " ✗ " + error : "");
  }

  // ------------------------------------------------------------------ the drawing

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const names = ["ink", "soft", "paper", "grid", "line", "ok", "fail", "info", "fault", "cut", "owner", "replica", "down", "paused", "anomaly", "ground"];
    colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    colours.seen = Object.fromEntries(OUTCOMES.map((word) => [word, parts(colours[word])]));
  }

  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  function layout() { // y of each part, and the height that all need
    const width = Math.max(canvas.clientWidth, 200), gutter = width < 640 ? 62 : 96;
    const lanes = state.lanes === "process" ? head.rows.length : head.all_nodes.length;
    const most = state.lanes === "process" ? [4, 18] : [16, 110];
    const height = Math.min(Math.max(Math.floor(LANES_HEIGHT / Math.max(lanes, 1)), most[0]), most[1]);
    const windows = 20, faults = windows + (head.witnesses.length ? 12 : 0);
    const states = faults + 14 * Math.max(0, ...head.faults.map((fault) => fault.lane + 1)) + 2;
    const stateHeight = head.states.length > 12 ? 6 : 14, top = states + stateHeight * head.states.length + 6;
    return { width, gutter, right: width - 6, lanes, height, windows, faults, states, stateHeight, top, bottom: top + lanes * height };
  }

  const x = (ns) => look.gutter + (ns - state.start) / (state.end - state.start) * (look.right - look.gutter);
  const time = (px) => state.start + (px - look.gutter) / (look.right - look.gutter) * (state.end - state.start);

  function laneBox(i) { // [y, height] of an operation
    const top = look.top + run.lane[state.lanes][i] * look.height;
    if (state.lanes === "process") return [top + (look.height > 8 ? 1.5 : .5), look.height - (look.height > 8 ? 3 : 1)];
    const each = (look.height - 6) / run.subs[run.lane.node[i]];
    return [top + 3 + run.sub[i] * each, Math.max(each - (each > 4 ? 1 : 0), .7)];
  }

  function inView(each) { // calls it with every operation of the view that passes the filter
    for (let block = 0; block < run.blocks.length; block++) {
      const from = block * run.block, to = Math.min(from + run.block, run.count);
      if (run.start[from] > state.end) break;
      if (run.blocks[block] < state.start) continue;
      for (let i = from; i < to && run.start[i] <= state.end; i++) if (match[i] && run.end[i] >= state.start) each(i);
    }
  }

  function bar(start, end, y, height, colour, alpha) {
    const left = Math.max(x(start), look.gutter), right = Math.min(x(end), look.right);
    if (right < look.gutter || left > look.right) return;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(left, y, Math.max(right - left, 1), height);
    context.globalAlpha = 1;
  }

  function write(words, left, y, room, colour) {
    context.fillStyle = colour;
    let shown = words;
    if (context.measureText(shown).width > room) {
      shown = shown.slice(0, Math.max(Math.floor(room / 6.7) - 1, 0));
      if (shown.length < 2) return;
      shown += "…";
    }
    context.fillText(shown, left, y);
  }

  function draw() {
    drawing = false;
    if (!head) return;
    look = layout();
    const ratio = devicePixelRatio || 1;
    canvas.style.height = look.bottom + 4 + "px";
    canvas.width = Math.round(look.width * ratio);
    canvas.height = Math.round((look.bottom + 4) * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, look.width, look.bottom + 4);
    const here = [];
    let count = 0;
    inView((i) => { if (count++ < DRAWN) here.push(i); });
    const dense = count > DRAWN || (head.slices && !filtered && (state.end - state.start) / head.end_ns * head.slices > (look.right - look.gutter) / 2);
    background();
    if (dense) density(); else { if (head.slices && !filtered) behind(); bars(here); }
    gutter();
    if (state.order >= 0) drawOrder();
    if (state.selected >= 0) ring(state.selected, colours.ink);
    if (state.hit >= 0) ring(state.hits[state.hit], colours.anomaly);
    tell(count, dense);
  }

  function background() {
    const step = tickStep((state.end - state.start) / Math.max((look.right - look.gutter) / 110, 1));
    context.textAlign = "center";
    for (let at = Math.ceil(state.start / step) * step; at <= state.end; at += step) {
      context.fillStyle = colours.grid;
      context.fillRect(x(at), 16, 1, look.bottom - 16);
      if (x(at) > look.gutter + 26 && x(at) < look.right - 26) {
        context.fillStyle = colours.soft;
        context.fillText(head.has_times ? +(at / 1e9).toFixed(9) + " s" : "#" + at, x(at), 12);
      }
    }
    context.textAlign = "left";
    for (const fault of head.faults) {
      const y = look.faults + fault.lane * 14;
      bar(fault.start_ns, fault.end_ns, look.states, look.bottom - look.states, colours.fault, .09);
      bar(fault.start_ns, fault.end_ns, y + 1, 12, colours.fault, fault.idle ? .15 : .35);
      const left = Math.max(x(fault.start_ns), look.gutter), right = Math.min(x(fault.end_ns), look.right);
      if (right > left) write(fault.name, left + 3, y + 11, right - left - 4, colours.ink);
    }
    head.states.forEach((node, place) => {
      const y = look.states + place * look.stateHeight;
      for (const [from, to, kind, words, isCut] of node.stretches) {
        if (to < state.start || from > state.end) continue;
        bar(from, to, y + 1, look.stateHeight - 2, kind === "silent" ? colours.down : colours[kind] ?? colours.grid, kind === "owner" ? .8 : .6);
        if (isCut) bar(from, to, y + look.stateHeight - 4, 3, colours.cut, 1);
        const left = Math.max(x(from), look.gutter), right = Math.min(x(to), look.right);
        if (look.stateHeight > 8 && right - left > 50) write(words, left + 3, y + 11, right - left - 4, ["owner", "down", "silent"].includes(kind) ? colours.paper : colours.ink);
      }
    });
    for (const window of head.witnesses) {
      bar(window.start_ns, window.end_ns, look.windows + 1, 9, colours.anomaly, .8);
      bar(window.start_ns, window.end_ns, look.states, look.bottom - look.states, colours.anomaly, .07);
    }
    for (let lane = 0; lane <= look.lanes; lane++) {
      if (look.height < 6 && lane % 10) continue;
      context.fillStyle = colours.grid;
      context.fillRect(look.gutter, look.top + lane * look.height, look.right - look.gutter, 1);
    }
  }

  function tickStep(rough) {
    if (!head.has_times) rough = Math.max(rough, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
    return step < 6e10 ? step : [60, 120, 300, 600, 1800, 3600, 7200, 36000, 86400].map((s) => s * 1e9).find((each) => each >= rough) ?? step;
  }

  function gutter() {
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, look.gutter, look.bottom + 4);
    const label = (words, y) => write(words, 0, y, look.gutter - 6, colours.ink);
    if (head.witnesses.length) write(look.gutter < 80 ? "witness" : "witnesses", 0, look.windows + 9, look.gutter - 6, colours.soft);
    if (head.faults.length) write("faults", 0, look.faults + 11, look.gutter - 6, colours.soft);
    if (look.stateHeight > 8) head.states.forEach((node, place) => label(node.node, look.states + place * look.stateHeight + 11));
    const every = Math.ceil(13 / look.height);
    for (let lane = 0; lane < look.lanes; lane += every) {
      const name = state.lanes === "process" ? "process " + head.rows[lane] : head.all_nodes[lane] || "no node";
      label(look.gutter < 80 && state.lanes === "process" ? "p " + head.rows[lane] : name, look.top + lane * look.height + Math.min(look.height / 2 + 4, 14));
    }
  }

  function bars(here) {
    for (const word of OUTCOMES) for (const i of here) {
      if (OUTCOMES[run.outcome[i]] !== word) continue;
      const [y, height] = laneBox(i), left = x(run.start[i]), right = Math.min(x(run.end[i]), look.right + 2);
      context.fillStyle = colours[word];
      context.globalAlpha = .75;
      const open = run.end[i] === Infinity, until = open ? Math.min(left + 60, right) : right;
      context.fillRect(Math.max(left, look.gutter), y, Math.max(until - Math.max(left, look.gutter), 1.5), height);
      if (word === "info") { // it may take effect at any later time
        context.globalAlpha = .22;
        context.fillRect(Math.max(until, look.gutter), y, open ? right - until : 24, height);
      }
      context.globalAlpha = 1;
      if (here.length <= LABELLED && height >= 10 && right - left > 24) {
        const from = Math.max(left, look.gutter) + 3;
        write(words(i), from, y + height / 2 + 4, right - from - 2, colours.ink);
      }
    }
  }

  function counts(width, server) { // by lane, outcome and pixel
    const cells = new Float32Array(look.lanes * 3 * width), scale = width / (state.end - state.start);
    if (server) {
      const slice = head.end_ns / head.slices, table = run.density[state.lanes];
      const first = Math.max(0, Math.floor(state.start / slice)), last = Math.min(head.slices - 1, Math.floor(state.end / slice));
      for (let line = 0; line < look.lanes * 3; line++) for (let s = first; s <= last; s++) {
        const count = table[line * head.slices + s];
        if (!count) continue;
        const from = Math.max(0, Math.floor((s * slice - state.start) * scale));
        const to = Math.min(width - 1, Math.max(from, Math.ceil(((s + 1) * slice - state.start) * scale) - 1));
        for (let px = from; px <= to; px++) cells[line * width + px] += count;
      }
    } else {
      const lane = run.lane[state.lanes];
      inView((i) => {
        const from = Math.max(0, Math.floor((run.start[i] - state.start) * scale)), line = (lane[i] * 3 + run.outcome[i]) * width;
        const end = run.end[i] === Infinity ? run.start[i] : run.end[i];
        const to = Math.min(width - 1, Math.max(from, Math.floor((end - state.start) * scale)));
        for (let px = from; px <= to; px++) cells[line + px]++;
      });
    }
    return cells;
  }

  function density() { // a few lines of pixels for each lane, then stretched to the lanes' height
    const width = Math.round(look.right - look.gutter), server = head.slices > 0 && !filtered;
    const cells = counts(width, server), lines = look.height > 9 ? 8 : 1;
    const image = new ImageData(width, Math.max(look.lanes, 1) * lines);
    let most = 1;
    for (let lane = 0; lane < look.lanes; lane++) for (let px = 0; px < width; px++) {
      const at = lane * 3 * width + px;
      most = Math.max(most, cells[at] + cells[at + width] + cells[at + 2 * width]);
    }
    for (let lane = 0; lane < look.lanes; lane++) for (let px = 0; px < width; px++) {
      const at = lane * 3 * width + px, [ok, fail, info] = [cells[at], cells[at + width], cells[at + 2 * width]];
      if (!(ok + fail + info)) continue;
      const alpha = Math.round(255 * (.3 + .7 * Math.log1p(ok + fail + info) / Math.log1p(most)));
      const unsure = Math.ceil(info / (ok + fail + info) * lines), failed = Math.ceil(fail / (ok + fail + info) * lines);
      for (let line = 0; line < lines; line++) { // rare ones have a line at least
        const word = line < unsure ? "info" : line < unsure + failed ? "fail" : "ok";
        image.data.set([...colours.seen[word], alpha], 4 * ((lane * lines + line) * width + px));
      }
    }
    const small = document.createElement("canvas");
    small.width = width;
    small.height = image.height;
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (let lane = 0; lane < look.lanes; lane++) {
      const gap = look.height > 5 ? 1 : 0;
      context.drawImage(small, 0, lane * lines, width, lines, look.gutter, look.top + lane * look.height + gap, width, look.height - 2 * gap);
    }
  }

  function behind() { // what is not on the page one by one
    const width = Math.round(look.right - look.gutter), cells = counts(width, true);
    context.fillStyle = colours.ok;
    context.globalAlpha = .12;
    for (let lane = 0; lane < look.lanes; lane++) {
      let from = -1;
      for (let px = 0; px <= width; px++) {
        const at = lane * 3 * width + px, some = px < width && cells[at] + cells[at + width] + cells[at + 2 * width] > 0;
        if (some && from < 0) from = px;
        if (!some && from >= 0) { context.fillRect(look.gutter + from, look.top + lane * look.height + 1, px - from, look.height - 2); from = -1; }
      }
    }
    context.globalAlpha = 1;
  }

  function ring(i, colour) {
    const [y, height] = laneBox(i), left = Math.max(x(run.start[i]), look.gutter), right = Math.min(x(run.end[i]), look.right);
    if (right < look.gutter || left > look.right) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect(left - 2, y - 2, Math.max(right - left, 2) + 4, Math.max(height, 3) + 4);
  }

  function tell(count, dense) {
    const status = find("timeline-status"), all = head.slices ? about() : count;
    status.textContent = `${moment(state.start)} – ${moment(state.end)}: `;
    if (filtered) status.append(`pass the filter: ${number(count)}${head.slices ? " (of those on this page)" : ""}`);
    else if (!head.slices) status.append(`${number(count)} operation${count === 1 ? "" : "s"}`);
    else {
      status.append(`about ${number(Math.max(all, count))} operations, ${number(count)} of them on this page one by one. `);
      let first = -1;
      inView((i) => { if (first < 0) first = run.index[i]; });
      if (all > count && first >= 0) status.append(serveLink(first, "All of them from here"), ", while ./qsync serve runs");
    }
    status.append(dense ? " (drawn as densities)." : ".");
    const told = { ready: "true", startNs: Math.round(state.start), endNs: Math.round(state.end), lanes: state.lanes, mode: dense ? "density" : "operations",
      here: count, selected: state.selected < 0 ? "" : run.index[state.selected], hits: state.hits.length,
      hit: state.hit < 0 ? "" : run.index[state.hits[state.hit]], order: state.order < 0 ? "" : state.order, step: state.step };
    Object.assign(canvas.dataset, told);
  }

  function about() {
    const slice = head.end_ns / head.slices;
    const first = Math.max(0, Math.floor(state.start / slice)), last = Math.min(head.slices - 1, Math.floor(state.end / slice));
    let sum = 0;
    for (let s = first; s <= last; s++) sum += run.all[s];
    return sum;
  }

  function serveLink(index, words) {
    const link = document.createElement("a");
    link.href = SERVE + encodeURIComponent(head.folder) + "/operations?from=" + index;
    link.textContent = words;
    return link;
  }

  function redraw() {
    if (!drawing) { drawing = true; requestAnimationFrame(draw); }
  }

  // ------------------------------------------------------------------ the view

  function show(start, end) {
    const least = head.has_times ? 2_000 : 4, whole = head.end_ns * 1.02 + 1;
    const span = Math.min(Math.max(end - start, least), whole);
    state.start = Math.min(Math.max(start + (end - start - span) / 2, 0), whole - span);
    state.end = state.start + span;
    redraw();
  }

  function zoom(factor, around = (state.start + state.end) / 2) {
    show(around - (around - state.start) * factor, around + (state.end - around) * factor);
  }

  const pan = (part) => { const by = (state.end - state.start) * part; show(state.start + by, state.end + by); };
  const whole = () => show(0, head.end_ns * 1.02 + 1);

  function placeOf(index) { // of the operation that began or ended with this event; -1 if it is not on the page
    const place = run.index.indexOf(index);
    return place < 0 ? run.complete.indexOf(index) : place;
  }

  function showOperations(places) {
    let from = Infinity, to = 0;
    for (const i of places) {
      from = Math.min(from, run.start[i]);
      to = Math.max(to, run.end[i] === Infinity ? run.start[i] : run.end[i]);
    }
    const margin = Math.max((to - from) * .2, head.has_times ? 50_000 : 5);
    show(from - margin, to + margin);
  }

  // ------------------------------------------------------------------ one operation

  function select(i, moves) {
    state.selected = i;
    if (moves) showOperations([i]);
    const panel = find("timeline-details");
    panel.replaceChildren();
    panel.hidden = i < 0;
    if (i >= 0) {
      fill(panel, i);
      try { history.replaceState(null, "", "#op-" + run.index[i]); } catch { /* some browsers forbid it for files */ }
    }
    redraw();
  }

  function fill(panel, i) {
    const title = panel.appendChild(document.createElement("h3")), list = panel.appendChild(document.createElement("dl"));
    title.textContent = words(i);
    const row = (name, value) => {
      if (value === null || value === undefined || value === "") return;
      list.appendChild(document.createElement("dt")).textContent = name;
      list.appendChild(document.createElement("dd")).textContent = value;
    };
    const [f, role, mode, wait, phase] = text("kinds", i), end = run.end[i];
    row("events", run.complete[i] < 0 ? `${run.index[i]}, never completed` : `${run.index[i]} – ${run.complete[i]}`);
    row("process", run.process[i]);
    row("operation", f);
    row("key", keyOf(i));
    row("value", text("values", i) ?? "null");
    row("outcome", OUTCOMES[run.outcome[i]]);
    row("error", text("errors", i));
    row("node", text("nodes", i));
    row("role", role);
    row("read mode", mode);
    row("commit wait", wait);
    row("transaction", text("transactions", i));
    row("phase", phase === "load" ? "" : phase);
    row("invoked", moment(run.start[i], 0));
    row("completed", end === Infinity ? "no answer was recorded" : moment(end, 0));
    row("took", end === Infinity ? "" : duration(end - run.start[i]));
    const overlaps = (each) => each.start_ns <= (end === Infinity ? run.start[i] : end) && each.end_ns >= run.start[i];
    row("faults", head.faults.filter(overlaps).map((fault) => `${fault.id}: ${fault.name}`).join(", "));
    const mine = (window) => window.events.includes(run.index[i]) || window.events.includes(run.complete[i]);
    row("witness", head.witnesses.filter(mine).map((window) => window.words).join("; "));
  }

  function open(index) {
    const i = placeOf(index);
    if (i < 0) {
      const said = find("timeline-said");
      const outside = `Operation ${index} is not on this page`;
      said.textContent = head.slices ? `${outside}, which has a part of ${number(head.there)} operations. Start ./qsync serve, then open ` : `${outside}: no operation of this run has such an event.`;
      if (head.slices) said.append(serveLink(index, `operation ${index} there`), ".");
    } else {
      find("timeline-said").textContent = "";
      if (!match[i]) clear();
      select(i, true);
    }
    canvas.scrollIntoView({ block: "center" });
  }

  function openFromAddress() {
    const asked = /^#op-(\d{1,15})$/.exec(location.hash);
    if (asked) open(+asked[1]);
  }

  function nearest(px, py) { // the operation under the pointer, or close to it
    let best = -1, least = 8;
    inView((i) => {
      const [y, height] = laneBox(i);
      const dy = Math.max(y - py, py - y - height, 0);
      if (dy > 3) return;
      const dx = Math.max(x(run.start[i]) - px, px - Math.min(x(run.end[i]), look.right), 0);
      if (dx + dy < least) { least = dx + dy; best = i; }
    });
    return best;
  }

  function neighbour(step) { // the operation before or after in the lane
    if (state.selected < 0) return;
    const lane = run.lane[state.lanes];
    for (let i = state.selected + step; i >= 0 && i < run.count; i += step) {
      if (match[i] && lane[i] === lane[state.selected]) { select(i, run.start[i] < state.start || run.start[i] > state.end); return; }
    }
  }

  // ------------------------------------------------------------------ search and filter

  function found(query) { // places, in the order of time
    const asked = /^(?:#|op-|#op-)(\d+)$/.exec(query);
    if (asked) { const i = placeOf(+asked[1]); return i < 0 ? [] : [i]; }
    const wanted = query.toLowerCase(), has = (entry) => entry !== null && String([entry].flat().join(", ")).toLowerCase().includes(wanted);
    const tables = ["keys", "values", "errors", "nodes", "transactions", "kinds"].map((name) => [run[name], head.tables[name].map(name === "kinds" ? (kind) => has(kind[0]) : has)]);
    const process = /^(?:p|process )?\d+$/.test(wanted) ? +wanted.replace(/\D/g, "") : NaN;
    const places = [];
    for (let i = 0; i < run.count; i++) if (match[i] && (run.process[i] === process || tables.some(([codes, hit]) => hit[codes[i]]))) places.push(i);
    return places;
  }

  function search() {
    const query = find("timeline-search").value.trim();
    state.hits = query ? found(query) : [];
    state.hit = -1;
    find("timeline-said").textContent = !query ? "" : state.hits.length ? `${number(state.hits.length)} hits; n and p go through them.` : `No operation on this page has ${query}.`;
    if (state.hits.length) goTo(state.hits.findIndex((i) => run.start[i] >= state.start));
    redraw();
  }

  function goTo(place) {
    if (!state.hits.length) return;
    state.hit = (place + state.hits.length) % state.hits.length;
    const i = state.hits[state.hit], middle = run.start[i], span = state.end - state.start;
    if (middle < state.start + span * .05 || middle > state.end - span * .05) show(middle - span / 2, middle + span / 2);
    find("timeline-said").textContent = `Hit ${number(state.hit + 1)} of ${number(state.hits.length)}: process ${run.process[i]}, ${words(i)}.`;
    redraw();
  }

  function filter() {
    const value = (name) => find("timeline-" + name).value.trim();
    const [key, process, node, outcome, fault] = ["key", "process", "node", "outcome", "fault"].map(value);
    filtered = Boolean(key || process || node || outcome || fault);
    const keys = head.tables.keys.map((entry) => [entry ?? []].flat());
    const exact = keys.some((names) => names.includes(key));
    const onKey = keys.map((names) => !key || names.some((name) => exact ? name === key : name.includes(key)));
    const nodes = head.tables.nodes.map((name) => !node || name === find("timeline-node").selectedOptions[0].textContent);
    const numbers = new Set((process.match(/\d+/g) ?? []).map(Number)), band = fault === "" ? null : head.faults[+fault];
    let count = 0;
    for (let i = 0; i < run.count; i++) {
      const passes = onKey[run.keys[i]] && nodes[run.nodes[i]] && (!process || numbers.has(run.process[i])) && (!outcome || OUTCOMES[run.outcome[i]] === outcome)
        && (!band || (run.start[i] <= band.end_ns && run.end[i] >= band.start_ns));
      match[i] = passes ? 1 : 0;
      count += match[i];
    }
    canvas.dataset.matching = count;
    search();
  }

  function clear() {
    for (const name of ["search", "key", "process", "node", "outcome", "fault"]) find("timeline-" + name).value = "";
    state.order = -1;
    filter();
  }

  // ------------------------------------------------------------------ orders of a witness

  function drawOrder() {
    const places = orderPlaces();
    context.lineWidth = 1.5;
    context.strokeStyle = colours.ink;
    context.beginPath();
    const points = places.map((i) => { const [y, height] = laneBox(i); return [Math.max(x(run.start[i]), look.gutter), y + height / 2]; });
    points.slice(0, state.step).forEach(([px, py], place) => place ? context.lineTo(px, py) : context.moveTo(px, py));
    context.stroke();
    points.forEach(([px, py], place) => {
      context.globalAlpha = place < state.step ? 1 : .4;
      dot(px, py, place === state.step - 1 ? colours.owner : colours.ink, String(place + 1));
    });
    context.globalAlpha = 1;
    if (state.step < points.length) return;
    for (const i of orderPlaces("refused")) { // what real time would allow next, and the value does not
      const [y, height] = laneBox(i);
      dot(Math.max(x(run.start[i]), look.gutter), y + height / 2, colours.anomaly, "✗");
    }
  }

  function dot(px, py, colour, words) {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(px, py, 8, 0, 7);
    context.fill();
    context.fillStyle = colours.paper;
    context.textAlign = "center";
    context.fillText(words, px, py + 4);
    context.textAlign = "left";
  }

  const orderPlaces = (of = "operations") => head.orders[state.order][of].map(placeOf).filter((i) => i >= 0);

  function showOrder(order, step) {
    const asked = head.orders[order];
    if (!asked) return;
    state.order = order;
    state.step = Math.min(Math.max(step, 1), Math.max(asked.operations.length, 1));
    const places = orderPlaces();
    if (!places.length) return;
    showOperations([...places, ...orderPlaces("refused")]);
    const i = places[state.step - 1];
    if (i !== undefined) select(i, false);
    const end = state.step === asked.operations.length ? " " + asked.then : "";
    find("timeline-said").textContent = `Step ${state.step} of ${asked.operations.length}: ${i === undefined ? "" : words(i)}; then the value is ${asked.states[state.step - 1]}.${end}`;
    canvas.scrollIntoView({ block: "nearest" });
  }

  // ------------------------------------------------------------------ hands

  const pointers = new Map();
  let held = null;

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function hold() { // remembers the view at which the fingers, or the mouse, took hold
    const at = [...pointers.values()].map(([px]) => px);
    held = at.length ? { from: state.start, to: state.end, middle: at.reduce((a, b) => a + b) / at.length, apart: at.length > 1 ? Math.abs(at[0] - at[1]) : 0, moved: held?.moved ?? false } : null;
  }

  function drag() {
    const at = [...pointers.values()].map(([px]) => px), middle = at.reduce((a, b) => a + b) / at.length;
    const room = look.right - look.gutter, span = held.to - held.from;
    const factor = at.length > 1 && held.apart > 10 ? held.apart / Math.max(Math.abs(at[0] - at[1]), 10) : 1;
    const fixed = held.from + (held.middle - look.gutter) / room * span, start = fixed - (middle - look.gutter) / room * span * factor;
    show(start, start + span * factor);
  }

  function hands() {
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      if (pointers.size === 1) held = null;
      hold();
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = place(event);
      if (pointers.has(event.pointerId)) {
        const [from] = pointers.get(event.pointerId);
        if (!held.moved && pointers.size === 1 && Math.abs(px - from) < 4) return;
        held.moved = true;
        pointers.set(event.pointerId, [px, py]);
        drag();
      } else if (look) {
        const i = nearest(px, py);
        canvas.title = i < 0 ? hoverWords(px, py) : `process ${run.process[i]}${text("nodes", i) ? " at " + text("nodes", i) : ""}: ${words(i)}\n${OUTCOMES[run.outcome[i]]}, ${moment(run.start[i])}`;
      }
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
      if (!pointers.delete(event.pointerId)) return;
      const clicked = name === "pointerup" && held && !held.moved && !pointers.size;
      hold();
      if (clicked) { canvas.focus({ preventScroll: true }); select(nearest(...place(event)), false); }
    });
    canvas.addEventListener("dblclick", (event) => zoom(.25, time(place(event)[0])));
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
      else zoom(Math.exp(event.deltaY * .0016), time(place(event)[0]));
    }, { passive: false });
    canvas.addEventListener("keydown", keys);
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      find("timeline-search").focus();
    });
    const query = find("timeline-search");
    query.addEventListener("input", search);
    query.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { canvas.focus(); if (state.hit >= 0) select(state.hits[state.hit], true); }
      if (event.key === "Escape") { query.value = ""; search(); canvas.focus(); }
    });
    for (const name of ["key", "process", "node", "outcome", "fault"]) find("timeline-" + name).addEventListener("input", filter);
    find("timeline-lanes").addEventListener("input", (event) => { state.lanes = event.target.value; redraw(); });
    const buttons = { in: () => zoom(.5), out: () => zoom(2), all: whole, clear: () => { clear(); select(-1); whole(); } };
    for (const [name, does] of Object.entries(buttons)) find("timeline-" + name).addEventListener("click", does);
    document.addEventListener("click", (event) => {
      const order = event.target.closest?.("[data-order]:not(canvas)");
      if (order) showOrder(+order.dataset.order, state.order === +order.dataset.order ? state.step + +(order.dataset.by ?? 1) : 1);
      if (event.target.closest?.('a[href="' + CSS.escape(location.hash).replace("\\#", "#") + '"]')) openFromAddress(); // the address does not change then
    });
    addEventListener("hashchange", openFromAddress);
    new ResizeObserver(redraw).observe(canvas.parentElement);
    for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => { palette(); if (media === "print") draw(); else redraw(); });
  }

  function hoverWords(px, py) {
    const at = time(px), covers = (each) => each.start_ns <= at && at <= each.end_ns;
    if (py < look.faults) return head.witnesses.filter(covers).map((window) => window.words).join("\n");
    if (py < look.states) return head.faults.filter((fault) => covers(fault) && py >= look.faults + fault.lane * 14 && py < look.faults + fault.lane * 14 + 14).map((fault) => fault.title).join("\n");
    const node = head.states[Math.floor((py - look.states) / look.stateHeight)];
    if (py >= look.top || !node) return moment(at);
    const stretch = node.stretches.find(([from, to]) => from <= at && at <= to);
    return node.node + (stretch ? ": " + stretch[3] : "");
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      ArrowLeft: () => event.shiftKey ? neighbour(-1) : pan(-.2), ArrowRight: () => event.shiftKey ? neighbour(1) : pan(.2),
      "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), 0: whole, Home: whole,
      n: () => goTo(state.hit + 1), p: () => goTo(state.hit - 1),
      Enter: () => { if (state.hit >= 0) select(state.hits[state.hit], true); else select(nearestToMiddle(), false); },
      Escape: () => { state.order = -1; select(-1); find("timeline-said").textContent = ""; },
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  function nearestToMiddle() {
    const middle = (state.start + state.end) / 2;
    let best = -1;
    inView((i) => { if (best < 0 || Math.abs(run.start[i] - middle) < Math.abs(run.start[best] - middle)) best = i; });
    return best;
  }

  function faultLanes() { // no two faults of a lane at one time; what finds none of four lanes lies in the last
    const free = [];
    for (const fault of [...head.faults].sort((a, b) => a.start_ns - b.start_ns)) {
      let lane = free.findIndex((end) => end <= fault.start_ns);
      if (lane < 0) lane = Math.min(free.length, 3);
      fault.lane = lane;
      free[lane] = Math.max(free[lane] ?? 0, fault.end_ns);
    }
  }

  async function begin() {
    try {
      [head, run] = await timelineData(packed.textContent.trim());
    } catch (problem) {
      find("timeline-status").textContent = `The timeline cannot be drawn here (${problem.message}); a browser of 2023 or later can.`;
      return;
    }
    match = new Uint8Array(run.count).fill(1);
    canvas.dataset.matching = run.count;
    faultLanes();
    palette();
    find("timeline-tools").hidden = false;
    state.end = head.end_ns * 1.02 + 1;
    draw();
    hands();
    openFromAddress();
  }

  begin();
})();
