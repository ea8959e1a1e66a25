// Tables of figures: tasks down, models across, coloured by classes that tell 80 from 100 %; each cell opens its trials.

const STEPS = [0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 1]; // shares at which the colour changes; from the last on: all
const STEP_WORDS = ["under 5", "5–20", "20–50", "50–80", "80–90", "90–95", "95–99", "99 and more", "all"];
const MOST_TURNED = 6; // models whose names have room across

function heatCard({ rows }) {
  const metric = head.metrics[state.metric];
  const shown = kept(rows).filter((row) => row.values[state.metric]?.[0] !== undefined && row.values[state.metric][0] !== null);
  const kinds = [...new Set(shown.map((row) => row.kind))].sort((a, b) => a - b);
  const values = (row) => row.values[state.metric];
  const lines = kinds.map((kind) => ({ name: plain(head.kinds[kind].called), cells: shown.filter((row) => row.kind === kind), query: { kind } }));
  const words = `${metric.caption}${metric.share ? " in percent" : metric.log ? "" : `, ${metric.unit}`}. An empty cell was not asked. Each cell opens its trials.`;
  return element("section", { class: "card", id: "heat" }, element("h3", {}, "Every task, every model"),
    element("p", { class: "about" }, words), limits(unfollowed({ lengths: false })),
    element("p", { class: "tools" }, metricField(rows)),
    lines.length ? heatTable("Every task, every model", "task", lines, metric, values) : nothingKnown());
}

function nothingKnown() {
  return element("p", { class: "muted" }, "Your selection has no figures here.");
}

function limits(words) {
  return words ? element("p", { class: "about limits" }, words) : null;
}

function metricField(rows) {
  const known = Object.entries(head.metrics).filter(([name]) => rows.some((row) => (row.values[name]?.[0] ?? null) !== null));
  const select = element("select", { id: "metric", onchange: (event) => go({ metric: event.target.value }) },
    known.map(([name, metric]) => element("option", { value: name }, metric.title)));
  select.value = state.metric;
  return element("label", {}, "Figure ", select);
}

/** Return the table of one kind: lengths down. */
function lengthsCard({ lengths }) {
  const there = kept(lengths);
  const kinds = [...new Set(there.map((row) => row.kind))].sort((a, b) => a - b);
  if (!kinds.length) return null;
  const kind = kinds.includes(Number(state.lengths)) && state.lengths !== "" ? Number(state.lengths) : kinds[0];
  const rows = Map.groupBy(there.filter((row) => row.kind === kind), (row) => row.length);
  const lines = [...rows].sort((a, b) => a[0] - b[0]).map(([length, cells]) => {
    const { from, to, range } = { from: length, to: length, ...cells[0] };
    return { name: `${from < to ? `${from}–${to}` : length}${range ? ` (${range})` : ""}`, cells, query: { kind, from, to } };
  });
  const select = element("select", { id: "lengths", onchange: (event) => go({ lengths: event.target.value }) },
    kinds.map((place) => element("option", { value: place }, plain(head.kinds[place].called))));
  select.value = String(kind);
  return element("section", { class: "card", id: "by-length" }, element("h3", {}, "Length by length"),
    element("p", { class: "about" }, "Accuracy in percent: lengths down, models across."),
    element("p", { class: "tools" }, element("label", {}, "Task ", select)),
    heatTable("Length by length", "length", lines, head.metrics.accuracy, (row) => [row.value, row.low ?? null, row.high ?? null, row.trials]));
}

/** Return a table of lines × models; `values` gives [value, low, high, n] of a row. A line without a query opens nothing. */
function heatTable(title, corner, lines, metric, values, empty = "not asked") {
  const models = [...new Set(lines.flatMap((line) => line.cells.map((row) => row.asked)))].sort((a, b) => rankOf(a) - rankOf(b) || a - b);
  const classes = classesOf(metric, lines.flatMap((line) => line.cells.map((row) => values(row)[0])));
  const heads = models.map((place) => element("th", { scope: "col" }, whoOf(place, "div")));
  const rows = lines.map((line) => {
    const byModel = new Map(line.cells.map((row) => [row.asked, row]));
    return element("tr", {}, element("th", { scope: "row", class: "text" }, foreign(line.name)),
      models.map((place) => heatCell(line, byModel.get(place), metric, values, classes, empty)));
  });
  const turned = models.length > MOST_TURNED;
  const table = element("table", { class: turned ? "heat turned" : "heat" }, element("caption", { class: "visually-hidden" }, title),
    element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "text" }, corner), heads)), element("tbody", {}, rows));
  return element("div", {}, scrolled(title, table, "heat-box"), heatLegend(metric));
}

/** Return the rank of a model, for its column: the best are at the left. */
function rankOf(place) {
  const rank = ranks.indexOf(place);
  return rank < 0 ? ranks.length : rank;
}

function heatCell(line, row, metric, values, classes, empty) {
  if (!row) return element("td", { class: "none" }, element("span", { class: "visually-hidden" }, empty));
  const [value, low, high, n] = values(row);
  const who = plain(head.entrants[row.asked].short);
  const span = low === null || low === undefined ? "" : metric.share ? ` (95 % CI ${interval(low, high)})` : "";
  const wordsOf = (shown) => `${line.name}, ${who}: ${shown}${span}, of ${count(n)}`;
  const [digits, attributes] = [digitsOf(metric, value), { class: `cell step-${classes(value)}`, title: wordsOf(figure(metric, value)) }];
  if (line.query === null) return element("td", {}, element("span", attributes, digits));
  return element("td", {}, answersLink({ ...line.query, asked: row.asked }, digits, { ...attributes, "aria-label": wordsOf(digits) }));
}

/** Return a share with two digits, 100 only for all and 0 only for none; other figures with three. */
function digitsOf(metric, value) {
  if (!metric.share) return metric.unit.startsWith("USD") ? dollars(value).replace(/0+$/, "").replace(/\.$/, "") : THREE.format(value);
  if (value > 0 && value < 0.01) return "<1";
  return rounded(value >= 1 ? 100 : Math.min(99, 100 * value), 0);
}

/** Return of a value the class of its colour: shares by fixed steps; others by even ones, from the least to the most. */
function classesOf(metric, values) {
  if (metric.share) {
    if (metric.higher_is_better === null) return (value) => `plain-${[0.05, 0.15, 0.3, 0.5].filter((from) => value >= from).length}`;
    const step = (value) => STEPS.filter((from) => value >= from).length;
    return metric.higher_is_better ? step : (value) => 8 - STEPS.filter((from) => value > 1 - from).length;
  }
  const placed = metric.log ? (value) => Math.log2(value + 1) : (value) => value;
  const known = values.filter((value) => value !== null).map(placed);
  const [least, most] = [leastOf(known), mostOf(known)];
  return (value) => `plain-${most > least ? Math.min(4, Math.floor((5 * (placed(value) - least)) / (most - least))) : 2}`;
}

function heatLegend(metric) {
  if (!metric.share || !metric.higher_is_better) return null;
  const steps = STEP_WORDS.map((words, n) => element("li", {}, element("span", { class: `cell step-${n}`, "aria-hidden": "true" }), words));
  return element("ul", { class: "legend", "aria-label": "Colours, in percent" }, steps);
}
