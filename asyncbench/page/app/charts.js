// Charts: the specifications that Python made, drawn with the rows of what is chosen. A mark opens its answers.

const drawn = new Map(); // holder of a chart → what has to be let go of before it is drawn anew
const heights = new Map(); // by chart: pixels it took last, kept free until it is drawn again
const MOST_PANELS = 12; // at once; a button draws the others
const NARROW = 520; // pixels of a chart in which long names have no room beside it
let specs = null; // by chart
let themes = null;

// This script runs before the library's, and the browser fires the event only when both have run.
const library = new Promise((resolve) => {
  document.addEventListener("DOMContentLoaded", resolve);
});

/** Return a figure with its heading, a chart and the same rows as a table; it draws itself once it is shown.

 * `query` gives of a row the query for its answers, or null; `fewest` rows are worth a chart, fewer are told in words.
 */
function chartCard(name, blockRows, { title, about, tools, note, query, prepare = named, fewest = 3, bare = false } = {}) {
  const chart = head.charts[name];
  const heading = title ?? chart.title;
  const rows = prepare(blockRows);
  const card = element("section", { class: bare ? "bare" : "card", "data-chart": name }, element(bare ? "h4" : "h3", {}, heading));
  const purpose = about ?? chart.purpose;
  if (purpose) card.append(element("p", { class: "about" }, noted(purpose)));
  if (note) card.append(element("p", { class: "about limits" }, note));
  if (tools) card.append(tools);
  if (!rows.length) card.append(element("p", { class: "muted" }, noted(chart.nothing)));
  if (rows.length < fewest) {
    if (rows.length) card.append(inWords(chart, rows, query));
    return card;
  }
  const holder = element("div", { class: "chart", "aria-hidden": "true", "data-keep": name }); // not by its heading, which may tell how many models there are
  holder.style.setProperty("min-height", `${heights.get(name) ?? 60}px`);
  const picture = element("div", { class: "picture", role: "img", "aria-label": `${heading}. ${purpose}` }, holder);
  card.append(picture, rowsTable(name, heading, rows, query));
  const panels = panelsOf(name, rows);
  const crowded = panels.length > MOST_PANELS;
  if (crowded) picture.after(morePanels(name, rows, holder, query, panels.length));
  const first = crowded ? new Set(panels.slice(0, MOST_PANELS)) : null;
  holder.toDraw = { name, rows: first ? rows.filter((row) => first.has(row[panelOf(name)])) : rows, query, dark: isDark() };
  return card;
}

/** Return the column of which each value has a panel; none: the chart is one. */
function panelOf(name) {
  return specs[name].facet?.field;
}

function panelsOf(name, rows) {
  const field = panelOf(name);
  return field ? [...new Set(rows.map((row) => row[field]))] : [];
}

/** Return in one line the few rows that are too few for a chart. */
function inWords(chart, rows, query) {
  const lines = rows.map((row) => {
    const who = [row.model, row.value_of, row.task].filter(Boolean).join(", ");
    const figures = Object.keys(chart.columns).filter((name) => typeof row[name] === "number" && !PLACES.has(name))
      .map((name) => `${name.replaceAll("_", " ")} ${fact(name, row[name])}`);
    return `${who ? `${who}: ` : ""}${figures.join(", ")}`;
  });
  const links = query ? rows.map((row) => answersLink(query(row), "answers")).filter(Boolean) : [];
  return element("p", { class: "few" }, "Too few points for a chart. ", foreign(lines.join("; ")), ". ", links.flatMap((link) => [link, " "]));
}

/** Return a word on panels that are not drawn yet, and a button that draws them. */
function morePanels(name, rows, holder, query, all) {
  const line = element("p", { class: "more muted" }, `The first ${MOST_PANELS} of ${all} are drawn. `);
  const drawAll = () => {
    line.remove();
    holder.toDraw = { ...holder.toDraw, rows };
    draw(holder);
  };
  line.append(element("button", { type: "button", onclick: drawAll }, `Draw all ${all}`));
  return line;
}

/** Draw the charts of the page that wait for it, one after the other, those in sight first. */
async function drawAll() {
  await library;
  for (const holder of document.querySelectorAll(".chart")) {
    if (holder.isConnected && !drawn.has(holder)) await draw(holder);
  }
}

const beside = new Map(); // by chart: pixels of a panel's width that are not the panel itself

/** Draw a chart, as wide as its holder is; a second time where the names beside it took another room. */
async function draw(holder) {
  if (!holder.isConnected || !holder.clientWidth) return;
  const { name, rows, query } = holder.toDraw;
  const whole = holder.clientWidth;
  const columns = columnsOf(name, rows, whole);
  for (const again of [false, true]) {
    const room = beside.get(name) ?? Math.min(190, whole * 0.42);
    const width = Math.max(100, Math.floor(whole / columns - room));
    const fresh = element("div", { class: "drawing" });
    const embedded = await vegaEmbed(fresh, sized(name, rows, columns, width, whole), { ...OPTIONS, config: themed(whole, query) });
    if (!holder.isConnected) return embedded.finalize();
    letGo(holder);
    drawn.set(holder, embedded);
    holder.replaceChildren(fresh); // at once: what was drawn before stays until then
    if (query) embedded.view.addEventListener("click", (_, item) => openMark(item, query));
    const over = (fresh.querySelector("svg").getBoundingClientRect().width - whole) / columns;
    if (again || Math.abs(over) < 4) break;
    beside.set(name, room + over);
  }
  heights.set(holder.dataset.keep, holder.firstChild.offsetHeight);
  holder.style.removeProperty("min-height");
}

const OPTIONS = {
  actions: false,
  ast: true, // expressions are interpreted: the page's policy forbids code made of text
  defaultStyle: false,
  logLevel: 1,
  mode: "vega-lite",
  renderer: "svg",
  tooltip: showTip,
};

function themed(whole, query) {
  const theme = themes[isDark() ? "dark" : "light"];
  const config = { ...theme, axisQuantitative: { ...theme.axisQuantitative, labelOverlap: true }, mark: { ...theme.mark, ...query ? { cursor: "pointer" } : {} } };
  return whole < NARROW ? { ...config, axisY: { ...config.axisY, labelLimit: 130 } } : config;
}

/** Open the answers behind a mark. */
function openMark(item, query) {
  const row = item?.datum;
  const wanted = row && row.asked !== undefined ? query(row) : null;
  if (wanted) goTo(answersAt(wanted));
}

/** Return the specification of a chart with its rows, its panels and the whole so many pixels wide. */
function sized(name, rows, columns, width, whole) {
  const copy = fitted(coloured(structuredClone(specs[name]), rows), rows, columns * width, width);
  for (const parameter of copy.params ?? []) if (!parameter.select) parameter.value = [...new Set(rows.map((row) => row.rate))].sort((a, b) => a - b);
  const spec = { ...(whole < NARROW ? withNarrowNames(copy) : copy), data: { name: "rows", values: rows } };
  if (name === "dots" && state.by) spec.layer = spec.layer.filter((layer) => layer.mark.type !== "text"); // of several dots in a line
  if (!panelOf(name)) return { ...spec, width };
  if (spec.resolve?.scale?.y === "independent") return apart(spec, rows, columns, width);
  const ragged = panelsOf(name, rows).length % columns; // a shared axis would stand under empty places too
  const resolve = ragged ? { ...spec.resolve, axis: { x: "independent" } } : spec.resolve;
  return { ...spec, columns, resolve, spec: { ...spec.spec, width } };
}

/** Return panels whose names differ as drawings of their own: a facet would take each to have the names of all. */
function apart({ facet, spec, transform, data, resolve, ...whole }, rows, columns, width) {
  const { labelFontSize: fontSize, labelFontWeight: fontWeight, labelAnchor: anchor, labelColor: color } = themes[isDark() ? "dark" : "light"].header;
  const panels = [...Map.groupBy(rows, (row) => row[facet.field])].map(([text, values]) => ({
    ...spec, title: { text, fontSize, fontWeight, anchor, color, frame: "group", offset: 6 }, data: { values }, transform: [...transform ?? [], ...spec.transform ?? []], width,
  }));
  return { ...whole, columns, concat: panels };
}

/** Return a specification in which models have the colours that they have everywhere. */
function coloured(node, rows) {
  if (node === null || typeof node !== "object") return node;
  const field = node.color?.field;
  if ((field === "model" || field === "series") && rows.some((row) => row.colour)) {
    const colours = new Map(rows.map((row) => [row[field], row.colour]));
    node.color.scale = { domain: [...colours.keys()], range: [...colours.values()] };
  }
  for (const part of Object.values(node)) coloured(part, rows);
  return node;
}

const LETTER = 6.4; // pixels of a letter of a title or a legend, in the mean
const SYMBOL = 34; // of what stands around a legend's name

/** Return a specification whose legends stand in as many columns, and titles on as many lines, as there is room for. */
function fitted(node, rows, whole, width) {
  if (node === null || typeof node !== "object") return node;
  if (node.x?.title) node.x.title = inLines(node.x.title, width);
  if (node.color?.type === "nominal" && node.color.legend !== null) {
    const longest = Math.max(1, ...rows.map((row) => String(row[node.color.field] ?? "").length));
    const most = Math.max(1, Math.floor(whole / (LETTER * longest + SYMBOL)));
    node.color.legend = { ...node.color.legend, columns: most };
  }
  for (const part of Object.values(node)) fitted(part, rows, whole, width);
  return node;
}

const folded = new Map(); // one list of lines for one text: the library takes titles for one only where they are the same

/** Return a text in lines that are no longer than so many pixels. */
function inLines(text, width) {
  if (typeof text !== "string" || LETTER * text.length <= width) return text;
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && LETTER * longer.length > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  const key = JSON.stringify(lines);
  if (!folded.has(key)) folded.set(key, lines);
  return folded.get(key);
}

const SHORT_NAME = "length(datum.label) > 17 ? slice(datum.label, 0, 9) + '…' + slice(datum.label, -7) : datum.label";

/** Return a specification whose axes of names show both ends of a long one, for what differs is often at the end. */
function withNarrowNames(node) {
  if (node === null || typeof node !== "object") return node;
  if (node.y?.type === "nominal") node.y.axis = { ...node.y.axis, labelExpr: SHORT_NAME };
  for (const part of Object.values(node)) withNarrowNames(part);
  return node;
}

function columnsOf(name, rows, width) {
  const panels = panelsOf(name, rows).length;
  const columns = Math.max(1, Math.min(panels, Math.floor(width / head.charts[name].room)));
  return head.charts[name].paired && columns > 1 ? columns - (columns % 2) : columns;
}

/** Let go of what was drawn: in a holder, or in all that are no longer on the page. */
function letGo(holder) {
  for (const one of holder ? [holder] : [...drawn.keys()].filter((old) => !old.isConnected)) {
    drawn.get(one)?.finalize();
    drawn.delete(one);
  }
  hideTip();
}

/** Draw again what is on the screen: it has another width. */
async function redraw() {
  for (const holder of [...drawn.keys()]) await draw(holder);
}

// ── what is pointed at ───────────────────────────────────────────────────────────────────────

function showTip(_, event, item, value) {
  if (value === null || value === undefined || value === "") return hideTip();
  let tip = document.getElementById("tip");
  if (tip === null) document.body.append((tip = element("div", { id: "tip", class: "tip", role: "tooltip" })));
  const facts = typeof value === "object" ? Object.entries(value) : [["", value]];
  const more = item?.cursor === "pointer" ? [element("p", { class: "muted" }, "Click for the answers.")] : [];
  tip.replaceChildren(element("dl", {}, facts.flatMap(([name, fact]) => [element("dt", {}, name), element("dd", {}, plain(fact))])), ...more);
  const [x, y] = [event.clientX ?? 0, event.clientY ?? 0];
  tip.style.setProperty("left", `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`);
  tip.style.setProperty("top", `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`);
}

function hideTip() {
  document.getElementById("tip")?.remove();
}
