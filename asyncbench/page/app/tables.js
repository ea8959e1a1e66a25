// Tables: of ours, and of the rows behind a chart.

const MOST_ROWS_TOLD = 500;
const PLACES = new Set(["label", "place", "colour", "asked", "kind", "row", "name_at", "part", "lit", "sort", "path"]);

/** Return a table that scrolls by itself; `text` names the columns of words. */
function tableOf(title, names, rows, ...text) {
  const cells = names.map((name) => element("th", { scope: "col", class: text.includes(name) && "text", title: head.meanings[name] }, unbroken(name)));
  const table = element("table", {}, element("thead", {}, element("tr", {}, cells)), element("tbody", {}, rows));
  return scrolled(title, table);
}

/** Return something wide in a box that scrolls by itself, by keyboard too. */
function scrolled(title, table, kind = "") {
  return element("div", { class: `scroll ${kind}`.trim(), tabindex: "0", role: "region", "aria-label": title, "data-keep": title }, table);
}

/** Return a heading that is broken before its brackets, never within them. */
function unbroken(name) {
  return name.replace(/\(.*\)/, (brackets) => brackets.replaceAll(" ", "\u00a0"));
}

/** Return a link to answers; null where there is no query for them. */
function answersLink(query, words, attributes = {}) {
  if (!query) return null;
  return element("a", { href: hashOf(answersAt(query)), ...attributes }, words);
}

function rowsTable(name, title, rows, query) {
  const details = element("details", { class: "facts", "data-keep": `table of ${name}` }, element("summary", {}, "Figures as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(factTable(title, head.charts[name], rows, query));
  });
  return details;
}

function factTable(title, chart, all, query) {
  const rows = all.slice(0, MOST_ROWS_TOLD);
  const holds = (name) => rows.some((row) => row[name] !== null && row[name] !== undefined && row[name] !== "");
  const more = all.length > rows.length ? ` (the first ${count(rows.length)} of ${count(all.length)} rows)` : "";
  const names = [...new Set(["model", "value_of", "task", ...Object.keys(chart.columns)])].filter((name) => !PLACES.has(name) && holds(name));
  const isText = (name) => rows.some((row) => typeof row[name] === "string");
  const heads = names.map((name) => element("th", { scope: "col", class: isText(name) && "text", title: chart.columns[name] }, wordsOf(name)));
  const lines = rows.map((row) => element("tr", {},
    names.map((name) => element("td", { class: typeof row[name] === "string" && "text" }, fact(name, row[name]))),
    query ? element("td", {}, answersLink(query(row), "answers")) : null));
  if (query) heads.push(element("th", { scope: "col" }, "answers"));
  const table = element("table", {}, element("caption", {}, `${title}${more}`), element("thead", {}, element("tr", {}, heads)), element("tbody", {}, lines));
  return scrolled(`${title}, as a table`, table);
}

function wordsOf(name) {
  return name === "value_of" ? BY_WORDS[state.by] : name.replaceAll("_", " ");
}

function fact(name, value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return plain(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (name === "at") return moment(value / 1000);
  return Number.isInteger(value) ? COUNT.format(value) : String(Number(value.toPrecision(6)));
}
