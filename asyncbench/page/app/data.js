// What the file holds: JSON blocks, the large ones compressed.

/** Return the value of a block; null where the page has none of that name. */
async function block(name) {
  const holder = document.getElementById(name);
  if (holder === null) return null;
  const text = holder.type === "application/gzip" ? await unpacked(holder.textContent) : holder.textContent;
  holder.remove();
  return JSON.parse(text);
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Return a table as rows: columns of texts come as codes into their values. */
function rowsOf(table) {
  const rows = Array.from({ length: table.rows }, () => ({}));
  for (const [name, column] of Object.entries(table.texts)) {
    column.codes.forEach((code, row) => { rows[row][name] = code === null ? null : column.values[code]; });
  }
  for (const [name, values] of Object.entries(table.numbers)) {
    values.forEach((value, row) => { rows[row][name] = value; });
  }
  return rows;
}

/** Return everything that the page shows; cells and trials know what their model is called. */
async function readAll() {
  const [head, cells, specs, trials, over_time, loads, errors] = await Promise.all(
    ["head", "cells", "specs", "trials", "over_time", "loads", "errors"].map(block),
  );
  const all = { ...head, ...over_time, ...loads, ...errors, ...specs, cells: rowsOf(cells), trials };
  for (const one of [...all.cells, ...all.trials]) Object.assign(one, all.asked[one.asked]);
  const ranges = new Map(all.cells.map((cell) => [placeOf(cell), cell.range]));
  for (const one of all.trials) one.range = ranges.get(placeOf(one)) ?? "";
  return all;
}

function placeOf(one) {
  return JSON.stringify([one.suite, one.task, one.variant, one.representation, one.length]);
}
