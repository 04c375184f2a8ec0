/* The data of the timeline: from the text in the page to columns of numbers (packing.py has the form).

`timelineData(text)` promises [head, run]. The head has tables of texts, faults, states of nodes, windows of witnesses
and orders, as whole_timeline.py made them. In `run` every operation has one place in each column: index (event of the
invocation), complete (event of the end, -1: none), start and end (ns, Infinity: no end), process, outcome (0 ok, 1 fail,
2 info), lane.process and lane.node, sub (line within its node's lane), and the places of its texts in the tables. `all`
counts the operations of each slice of time, `density` those of each lane, outcome and slice. */
const timelineData = (() => {
  "use strict";
  const BLOCK = 512, SUBROWS = 40;

  async function inflated(text) {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function unpacked(bytes) {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const told = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const columns = {};
    let at = 4 + length;
    for (const [name, count] of told.columns) {
      const column = columns[name] = new Float64Array(count);
      for (let i = 0; i < count; i++) {
        let value = 0, factor = 1, byte = bytes[at++];
        while (byte > 127) { value += (byte - 128) * factor; factor *= 128; byte = bytes[at++]; }
        column[i] = value + byte * factor;
      }
    }
    return [told, columns];
  }

  const signed = (value) => value % 2 ? -(value + 1) / 2 : value / 2;

  function summed(column) {
    let sum = 0;
    return column.map((step) => sum += signed(step));
  }

  function coded(column) { // 0: the next new text; else how far back
    let fresh = 0;
    return Int32Array.from(column, (back) => back ? fresh - back : fresh++);
  }

  function read(told, columns) {
    const unit = told.unit_ns, count = columns.index.length;
    const operations = { count, index: summed(columns.index), process: summed(columns.process), outcome: columns.outcome };
    operations.start = summed(columns.start).map((time) => time * unit);
    operations.end = operations.start.map((time, i) => columns.took[i] ? time + (columns.took[i] - 1) * unit : Infinity);
    operations.complete = operations.index.map((index, i) => columns.gap[i] ? index + signed(columns.gap[i] - 1) : -1);
    for (const name of Object.keys(told.tables)) operations[name] = coded(columns[name]);
    const names = new Map(told.all_nodes.map((name, place) => [name, place]));
    const lane = told.tables.nodes.map((name) => names.get(name) ?? 0);
    operations.lane = { process: columns.row, node: Float64Array.from(operations.nodes, (code) => lane[code]) };
    operations.density = { process: columns.row_density, node: columns.node_density };
    operations.block = BLOCK;
    operations.blocks = []; // when the last operation of each block of operations ended
    for (let from = 0; from < count; from += BLOCK) {
      operations.blocks.push(operations.end.subarray(from, from + BLOCK).reduce((most, end) => Math.max(most, end), 0));
    }
    const [sub, subs] = subrows(operations, told.all_nodes.length);
    return Object.assign(operations, { sub, subs, all: totals(columns.row_density, told.slices) });
  }

  function totals(density, slices) { // all operations by slice of time
    const sums = new Float64Array(slices);
    for (let at = 0; slices && at < density.length; at++) sums[at % slices] += density[at];
    return sums;
  }

  function subrows(operations, nodes) { // several clients ask one node at once: lines within its lane
    const sub = new Uint8Array(operations.count), free = Array.from({ length: nodes }, () => []);
    for (let i = 0; i < operations.count; i++) {
      const ends = free[operations.lane.node[i]];
      let place = ends.findIndex((end) => end <= operations.start[i]);
      if (place < 0) place = ends.length < SUBROWS ? ends.length : i % SUBROWS;
      ends[place] = operations.end[i] === Infinity ? operations.start[i] : operations.end[i];
      sub[i] = place;
    }
    return [sub, free.map((ends) => Math.max(ends.length, 1))];
  }

  return async (text) => {
    const [told, columns] = unpacked(await inflated(text));
    return [told, read(told, columns)];
  };
})();
