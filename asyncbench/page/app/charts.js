// Charts: the specifications that the file brings, drawn with the rows of what is chosen.

const drawn = new Set(); // what has to be let go of before the next view
const MOST_PANELS = 12; // at once; a button draws the others
const MOST_ROWS_TOLD = 500;

/** Return a figure with its heading, a chart and the same rows as a table; it draws itself once it is shown. */
function chartCard(name, rows, { title, about, tools } = {}) {
  const chart = page.charts[name];
  const heading = title ?? chart.title;
  const card = element("section", { class: "card", "data-chart": name }, element("h3", {}, heading));
  if (!rows.length) {
    card.append(element("p", { class: "muted" }, noted(chart.nothing)));
    return card;
  }
  const holder = element("div", { class: "chart" }); // the library gives it a role of its own
  const picture = element("div", { class: "picture", role: "img", "aria-label": `${heading}. ${chart.purpose}` }, holder);
  card.append(element("p", { class: "about" }, about ?? chart.purpose), tools ?? "", picture, rowsTable(heading, chart, rows));
  const panels = [...new Set(rows.map((row) => row.panel))];
  const crowded = chart.panels && panels.length > MOST_PANELS;
  if (crowded) picture.after(morePanels(name, rows, holder, panels.length));
  const first = crowded ? new Set(panels.slice(0, MOST_PANELS)) : null;
  requestAnimationFrame(() => draw(name, first ? rows.filter((row) => first.has(row.panel)) : rows, holder));
  return card;
}

/** Return a word on panels that are not drawn yet, and a button that draws them. */
function morePanels(name, rows, holder, all) {
  const line = element("p", { class: "more muted" }, `The first ${MOST_PANELS} of ${all} are drawn. `);
  const button = element("button", { type: "button", onclick: () => { line.remove(); draw(name, rows, holder); } }, `Draw all ${all}`);
  line.append(button);
  return line;
}

const beside = new Map(); // by chart: pixels of a panel's width that are not the panel itself

/** Draw a chart into an element, as wide as it is; a second time where the names beside it took another room. */
async function draw(name, rows, holder) {
  if (!holder.isConnected) return;
  holder.drawn = { name, rows };
  const columns = columnsOf(name, rows, holder.clientWidth);
  for (const again of [false, true]) {
    const room = beside.get(name) ?? Math.min(190, holder.clientWidth * 0.42);
    const width = Math.max(100, Math.floor(holder.clientWidth / columns - room));
    const embedded = await vegaEmbed(holder, sized(name, rows, columns, width, holder.clientWidth), OPTIONS(holder));
    drawn.add(embedded);
    if (!holder.isConnected) return letGo();
    const over = (holder.querySelector("svg").getBoundingClientRect().width - holder.clientWidth) / columns;
    if (again || Math.abs(over) < 4) return;
    beside.set(name, room + over);
    embedded.finalize();
    drawn.delete(embedded);
  }
}

const OPTIONS = (holder) => ({
  actions: false,
  ast: true, // expressions are interpreted: the page's policy forbids code made of text
  config: themed(holder.clientWidth),
  defaultStyle: false,
  logLevel: 1,
  mode: "vega-lite",
  renderer: "svg",
  tooltip: showTip,
});

function themed(width) {
  const theme = page.themes[document.documentElement.dataset.theme];
  const config = { ...theme, axisQuantitative: { ...theme.axisQuantitative, labelOverlap: true } };
  return width < NARROW ? { ...config, axisY: { ...config.axisY, labelLimit: 110 } } : config;
}

/** Return the specification of a chart with its rows, its panels and the whole so many pixels wide. */
function sized(name, rows, columns, width, whole) {
  const found = page.charts[name].metric ? page.specs[name][state.metric] : page.specs[name];
  const scale = { frontier_cost: "log", frontier_reasoning: "sqrt" }[name];
  const values = scale ? withNames(rows, scale, width) : rows;
  const copy = fitted(structuredClone(found), rows, columns * width, width); // legends begin where the panels do
  for (const asked of copy.params ?? []) asked.value = [...new Set(rows.map((row) => row.rate))].sort((a, b) => a - b);
  const spec = { ...(whole < NARROW ? withNarrowNames(copy) : copy), data: { values } };
  if (!page.charts[name].panels) return { ...spec, width };
  const ragged = new Set(rows.map((row) => row.panel)).size % columns; // a shared axis would stand under empty places too
  const resolve = ragged ? { ...spec.resolve, axis: { x: "independent" } } : spec.resolve;
  return { ...spec, columns, resolve, spec: { ...spec.spec, width } };
}

const LETTER = 6.4; // pixels of a letter of a title or a legend, in the mean
const SYMBOL = 34; // of what stands around a legend's name

/** Return a specification whose legends stand in as many columns, and titles on as many lines, as there is room for. */
function fitted(node, rows, whole, width) {
  if (node === null || typeof node !== "object") return node;
  if (node.x?.title) node.x.title = inLines(node.x.title, width);
  if (node.color) {
    const longest = Math.max(1, ...rows.map((row) => String(row[node.color.field] ?? "").length));
    const most = Math.max(1, Math.floor(whole / (LETTER * longest + SYMBOL)));
    const wanted = node.color.legend?.columns ?? page.themes.light.legend.columns;
    if (node.color.type === "nominal") node.color.legend = { ...node.color.legend, columns: Math.min(wanted, most) };
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
  const key = keyed(...lines);
  if (!folded.has(key)) folded.set(key, lines);
  return folded.get(key);
}

const NARROW = 520; // pixels of a chart in which long names have no room beside it
const SHORT_NAME = "length(datum.label) > 17 ? slice(datum.label, 0, 9) + '…' + slice(datum.label, -7) : datum.label";

/** Return a specification whose axes of names show both ends of a long one, for what differs is often at the end. */
function withNarrowNames(node) {
  if (node === null || typeof node !== "object") return node;
  if (node.y?.type === "nominal") node.y.axis = { ...node.y.axis, labelExpr: SHORT_NAME };
  for (const part of Object.values(node)) withNarrowNames(part);
  return node;
}

function columnsOf(name, rows, width) {
  if (!page.charts[name].panels) return 1;
  const panels = new Set(rows.map((row) => row.panel)).size;
  const columns = Math.max(1, Math.min(panels, Math.floor(width / 400)));
  return page.charts[name].paired && columns > 1 ? columns - (columns % 2) : columns;
}

function letGo() {
  for (const one of drawn) one.finalize();
  drawn.clear();
  hideTip();
}

/** Draw again what is on the screen: other colours, another width. */
function redraw() {
  for (const holder of document.querySelectorAll(".chart")) {
    if (holder.drawn) draw(holder.drawn.name, holder.drawn.rows, holder);
  }
}

// ── what is pointed at ───────────────────────────────────────────────────────────────────────

function showTip(_, event, __, value) {
  if (value === null || value === undefined || value === "") return hideTip();
  let tip = document.getElementById("tip");
  if (tip === null) document.body.append((tip = element("div", { id: "tip", class: "tip", role: "tooltip" })));
  const facts = typeof value === "object" ? Object.entries(value) : [["", value]];
  tip.replaceChildren(element("dl", {}, facts.flatMap(([name, fact]) => [element("dt", {}, name), element("dd", {}, plain(fact))])));
  const [x, y] = [event.clientX ?? 0, event.clientY ?? 0];
  tip.style.setProperty("left", `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`);
  tip.style.setProperty("top", `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`);
}

function hideTip() {
  document.getElementById("tip")?.remove();
}

// ── the same as a table ──────────────────────────────────────────────────────────────────────

function rowsTable(title, chart, rows) {
  const told = rows.slice(0, MOST_ROWS_TOLD);
  const details = element("details", { class: "facts" }, element("summary", {}, "Figures as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(factTable(title, chart, told, rows.length));
  });
  return details;
}

function factTable(title, chart, rows, all) {
  const names = Object.keys(chart.columns).filter((name) => name !== "label" && name !== "place");
  const more = all > rows.length ? ` (the first ${count(rows.length)} of ${count(all)} rows)` : "";
  const isText = (name) => rows.some((row) => typeof row[name] === "string");
  const head = names.map((name) => element("th", { scope: "col", class: isText(name) && "text", title: chart.columns[name] }, name.replaceAll("_", " ")));
  const lines = rows.map((row) => element("tr", {}, names.map((name) => {
    return element("td", { class: typeof row[name] === "string" && "text" }, fact(name, row[name]));
  })));
  const table = element("table", {}, element("caption", {}, `${title}${more}`), element("thead", {}, element("tr", {}, head)), element("tbody", {}, lines));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, as a table` }, table);
}

function fact(name, value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return plain(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (name === "at") return moment(value / 1000);
  return Number.isInteger(value) ? COUNT.format(value) : String(Number(value.toPrecision(6)));
}
