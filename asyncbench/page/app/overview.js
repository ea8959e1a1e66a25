// The one look at 08:00: who is better, by how much, is that real, and what needs attention.

function overviewView() {
  return [
    heading("Overview"),
    notes(),
    tiles(),
    ...page.rankings.length ? [standingsCard()] : [],
    chartCard("bars", barsRows(page.chosen, metric(), state.by === "none" ? null : state.by), {
      title: metric().title, about: barsAbout(), tools: byField(),
    }),
    chartCard("pairs", ofChosenModels(page.pairs, "other"), { about: pairsAbout() }),
  ];
}

function barsAbout() {
  const m = metric();
  const better = m.higher_is_better ? "" : " Lower is better.";
  return `${page.charts.bars.purpose}${m.interval ? " Lines: 95 % CI (Wilson)." : ""}${better}`;
}

function pairsAbout() {
  const leader = page.pairs.length ? `The best model is ${page.pairs[0].model}; each line compares it with another one, with its 95 % CI.` : "";
  return `${page.charts.pairs.purpose} ${leader} Only the filter for models changes this chart.`;
}

const NUPA_FIELDS = ["representation", "variant", "range"].map((field) => [field, `by ${field}`]);

function byField() {
  const select = element("select", { id: "by", onchange: (event) => go({ by: event.target.value }) },
    [["suite", "by suite"], ["task", "by task"], ...NUPA_FIELDS, ["none", "all together"]].map(([value, words]) => element("option", { value }, words)));
  select.value = state.by;
  return element("p", {}, element("label", { class: "muted" }, "Panels ", select));
}

function notes() {
  const grave = page.lost.map((words) => noted(words, "p", { class: "note grave", role: "alert" }));
  const simulated = page.simulated ? [element("p", { class: "note warn" }, page.simulated_words)] : [];
  const batches = page.batches.map((words) => noted(words, "p", { class: "note" }));
  const merged = page.merged.length ? [element("p", { class: "note" }, `The results are too many for a page, so some are merged. ${page.merged.join(" ")}`)] : [];
  const chosen = page.chosen.map((words) => noted(words, "p", { class: "note" }));
  return element("div", { class: "notes" }, simulated, chosen, grave, batches, merged);
}

function tiles() {
  const sums = [...summed(page.chosen, () => "all").values()][0]?.sums ?? {};
  const known = (value, of) => (of ? value : null);
  const lost = (sums.failed ?? 0) + (sums.truncated ?? 0);
  const [low, high] = wilson(sums.correct, sums.trials, repeatsOf([sums]));
  const facts = [
    ["Trials", count(sums.trials ?? 0), whatWasAsked()],
    ["Accuracy", percent(sums.trials ? sums.correct / sums.trials : null), sums.trials ? `${count(sums.correct)} correct; 95 % CI ${interval(low, high)}` : ""],
    ["Accuracy when it answered", percent(measured(page.metrics.of_answered, sums).value), `${count((sums.correct ?? 0) + (sums.wrong ?? 0))} answered`],
    ["No usable reply (network error or cut off)", count(lost), `${count(sums.failed ?? 0)} failed, ${count(sums.truncated ?? 0)} truncated`],
    ["Cost", dollars(known(sums.cost_usd, sums.priced)), sums.priced === sums.trials ? "cost known for all trials" : `cost known for ${count(sums.priced ?? 0)} trials`],
    ["Output tokens", sums.known_tokens ? COMPACT.format(sums.output_tokens) : "unknown", sums.known_tokens ? `${THREE.format(sums.output_tokens / sums.known_tokens)} per trial` : ""],
  ];
  return element("dl", { class: "tiles", id: "tiles" }, facts.map(([name, value, more]) =>
    element("div", { class: "tile" }, element("dt", {}, name), element("dd", {}, value, element("small", {}, more)))));
}

/** Return how many models, conditions and tasks are shown, each counted once. */
function whatWasAsked() {
  const told = (key, words) => {
    const found = new Set(page.chosen.map((cell) => cell[key])).size;
    return `${count(found)} ${words}${found === 1 ? "" : "s"}`;
  };
  const conditions = new Set(page.chosen.map((cell) => cell.condition)).size > 1 ? [told("condition", "condition")] : [];
  return [told("model", "model"), ...conditions, told("called", "task")].join(", ");
}

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

// ── standings ────────────────────────────────────────────────────────────────────────────────

function standingsCard() {
  return element("section", { class: "card long", id: "standings" },
    element("h3", {}, "Standings"),
    element("p", { class: "about" }, `${page.places} The standings count all trials, whatever suites, tasks or lengths you select.`),
    page.rankings.map((one, place) => standingsTable(one, place === 0)));
}

/** Return the columns of the standings: the heading and what stands below it. */
const standingColumns = (headings) => [
  [headings.accuracy, (line) => [percent(line.share), element("small", { class: "below muted" }, interval(...line.interval))]],
  ["", (line) => spanOf(line.share, ...line.interval)],
  [headings.answered, (line) => percent(line.accuracy_of_answered)],
  [headings.lost, (line) => (line.lost_share ? percent(line.lost_share) : "0")],
  [headings.right_90, (line) => inTwo(line.at_90)],
  [headings.right_50, (line) => inTwo(line.at_50)],
  ["cost", (line) => dollars(line.cost_usd)],
  [headings.per_correct, (line) => (line.cost_usd !== null && line.cost_per_correct === null ? "–" : dollars(line.cost_per_correct))],
  [headings.format, (line) => percent(line.format_known ? line.format_ok / line.format_known : null)],
  [headings.median_latency, (line) => seconds(line.latency_p50_s)],
];

/** Return a length with its limits and its task below it: these columns are many. */
function inTwo(length) {
  if (!length) return "–";
  const [figure, more] = length;
  return more ? [figure, element("small", { class: "below muted" }, more)] : figure;
}

/** Return the table of what repeats tell, a row for each model and k; none where each problem was asked once. */
function repeatsTable(ranking, lines) {
  const rows = lines.flatMap((line) => line.at_k.map((at) => [line, at]));
  if (!rows.length) return [];
  const figures = ["pass_at_k", "majority_at_k", "pass_hat_k"];
  const head = ["model", "k", "problems", ...figures.map((name) => page.headings[name])];
  const told = rows.map(([line, at]) => element("tr", { class: at.k === 1 && line !== lines[0] && "tie" },
    element("th", { scope: "row", class: "text" }, foreign(line.name)),
    element("td", {}, count(at.k)),
    element("td", {}, count(at.pass_at_k.clusters)),
    figures.map((name) => element("td", {}, `${percent(at[name].share)} (${interval(...at[name].interval)})`))));
  return [element("p", { class: "about" }, page.repeated), tableOf(`${ranking.over}: repeats`, head, told, "model")];
}

function standingsTable(ranking, open) {
  const lines = ranking.lines.filter(chosenModel);
  const told = [...ranking.alone ? [["trials", (line) => count(line.trials)]] : [], ...standingColumns(page.headings)].filter(([, cell]) => lines.some((line) => !["–", "unknown"].includes(cell(line))));
  const head = [...ranking.alone ? [] : ["rank"], "model", ...told.map(([name]) => name)];
  const rows = lines.map((line, n) => element("tr", { class: n > 0 && !ranking.alone && lines[n - 1].place !== line.place && "tie" },
    ranking.alone ? null : element("td", { class: "rank" }, String(line.place)),
    element("th", { scope: "row", class: "text" }, foreign(line.name)),
    told.map(([, cell]) => element("td", {}, cell(line)))));
  const box = element("details", { class: "ranking" }, element("summary", {}, foreign(ranking.over)),
    tableOf(ranking.over, head, rows, "model"), ...repeatsTable(ranking, lines));
  box.open = open;
  return box;
}

/** Return a heading that is broken before its brackets, never within them. */
function whole(name) {
  return name.replace(/\(.*\)/, (brackets) => brackets.replaceAll(" ", "\u00a0"));
}

/** Return a table that scrolls by itself; `text` names the columns of words. */
function tableOf(title, head, rows, ...text) {
  const cells = head.map((name) => element("th", { scope: "col", class: text.includes(name) && "text", title: page.meanings[name] }, whole(name)));
  const table = element("table", {}, element("thead", {}, element("tr", {}, cells)), element("tbody", {}, rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, table);
}

const SVG = "http://www.w3.org/2000/svg";

/** Return an interval on a rail from 0 to 100 %. */
function spanOf(share, low, high) {
  const drawing = document.createElementNS(SVG, "svg");
  const part = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    drawing.append(made);
  };
  const x = (value) => 4 + 168 * value;
  for (const [name, value] of Object.entries({ class: "span", viewBox: "0 0 176 20", "aria-hidden": "true" })) drawing.setAttribute(name, value);
  part("line", { class: "rail", x1: 4, x2: 172, y1: 10, y2: 10 });
  for (const tick of [0, 0.5, 1]) part("line", { class: "rail", x1: x(tick), x2: x(tick), y1: 6, y2: 14 });
  part("line", { class: "bar", x1: x(low), x2: x(high), y1: 10, y2: 10 });
  part("circle", { class: "dot", cx: x(share), cy: 10, r: 4 });
  return drawing;
}
