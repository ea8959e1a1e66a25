// The first view: the finding, rankings on the same problems, curves over length, and each figure as a number.

async function resultsView() {
  const blocks = ["standings", "breaks", "heat", ...head.crossed ? ["variants"] : []];
  const [standings, breaks, heat, variants] = await Promise.all(blocks.map(source.block));
  learnRanks(standings);
  return [
    finding(),
    notesOf(head.notes.filter((note) => note.grave), "alert"),
    ...variantsCards(variants),
    standingsCard(standings),
    breaksCard(breaks),
    heatCard(heat),
    lengthsCard(heat),
    publishedBox(),
    notesOf(head.notes.filter((note) => !note.grave)),
  ];
}

function finding() {
  const [first, ...others] = head.finding;
  if (!first) return element("h2", { class: "visually-hidden" }, "Results");
  return element("div", { class: "finding" }, element("h2", {}, foreign(first)),
    others.length ? element("p", {}, others.flatMap((words) => [foreign(words), " "])) : null, limits(unfollowed(NO_FILTER)));
}

/** Return the models over all their variants, which no filter can narrow. */
function variantsCards(variants) {
  return (variants?.tables ?? []).map((table) => {
    const card = reportCard(table);
    card.id = "variants";
    card.querySelector("h3").after(...[limits(unfollowed(NO_FILTER))].filter(Boolean));
    return card;
  });
}

function notesOf(notes, role = null) {
  if (!notes.length) return null;
  return element("div", { class: "notes" }, notes.map(({ words, grave }) => noted(words, "p", { class: grave ? "note grave" : "note", role })));
}

// ── who is better ───────────────────────────────────────────────────────────────────────────

function keyOf(ranking) {
  return [ranking.suite ?? "", ranking.kind === null ? "" : nameIn("kinds", ranking.kind), ranking.alone ? "alone" : ""].join("|").replace(/\|+$/, "");
}

/** Return the ranking in view: the one picked, else that of the one kind or suite chosen, else the first. */
function rankingShown(rankings) {
  const picked = state.over && rankings.find((ranking) => keyOf(ranking) === state.over);
  if (picked) return picked;
  const ofKind = chosenKinds.size === 1 && rankings.find((ranking) => chosenKinds.has(ranking.kind));
  const suites = new Set([...chosenKinds].map((place) => head.kinds[place].suite));
  const ofSuite = suites.size === 1 && rankings.find((ranking) => suites.has(ranking.suite) && ranking.kind === null && !ranking.alone);
  return ofKind || ofSuite || rankings[0];
}

function titleOf({ alone, paired, lines }) {
  const all = head.entrants.length;
  if (alone) return all > 1 ? "Models that share too few problems with others" : "Accuracy";
  const everybody = head.models < all ? `All ${count(all)} variants of ${count(head.models)} model${head.models > 1 ? "s" : ""}` : "All models";
  const who = lines.length < all ? `${count(lines.length)} of ${count(all)} ${head.models < all ? "variants" : "models"}` : everybody;
  return paired ? `${who} on the same problems` : `${who}, each on problems of its own`;
}

/** Return whether a ranking is over the chosen kinds alone. */
function followsKinds(ranking) {
  const { kind = Object.keys(head.kinds).map(Number) } = ofRanking(ranking);
  return kind.every((place) => chosenKinds.has(place));
}

function standingsCard({ rankings, rules }) {
  if (!rankings.length) return null;
  const ranking = rankingShown(rankings);
  const lines = kept(ranking.lines);
  const query = (row) => ({ asked: row.asked, ...ofRanking(ranking) });
  const card = chartCard("dots", lines, {
    title: titleOf(ranking), about: rankings.length > 1 ? "" : ranking.title, tools: element("div", {}, rankingField(rankings, ranking) ?? "", coloursOfBy() ?? ""),
    note: unfollowed({ kinds: followsKinds(ranking), lengths: false }) || null, query, fewest: 1, prepare: ranking.alone ? unranked : byModel,
  });
  card.id = "standings";
  card.append(...[versusLink(ranking)].filter(Boolean), standingsTable(ranking, lines, query, rules), ...[pairsBox(ranking)].filter(Boolean));
  return card;
}

/** Return rows of which those of one model stand in one line, at its best place, if they differ in what was varied. */
function byModel(lines) {
  const rows = named(lines);
  if (!state.by) return rows;
  for (const row of rows) row.model = row.own_model;
  const best = new Map([...Map.groupBy(rows, (row) => row.model)].map(([model, those]) => [model, Math.min(...those.map((row) => row.place))]));
  return rows.map((row) => ({ ...row, place: best.get(row.model) })).sort((a, b) => a.place - b.place);
}

/** Return rows of those who are not compared with one another: without a rank. */
function unranked(lines) {
  return named(lines).map((row) => ({ ...row, place: " " }));
}

/** Return which value of what was varied has which colour; models have theirs beside their names. */
function coloursOfBy() {
  if (!state.by) return null;
  return element("ul", { class: "legend", "aria-label": `Colours: ${BY_WORDS[state.by]}` }, variedValues().map((value, n) => {
    const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.setProperty("background", paletteAt(n));
    return element("li", {}, swatch, foreign(value || UNNAMED[state.by] || "none"));
  }));
}

/** Return what of a query a ranking is over. */
function ofRanking(ranking) {
  if (ranking.kind !== null) return { kind: [ranking.kind] };
  if (ranking.suite === null) return {};
  return { kind: [...head.kinds.keys()].filter((place) => head.kinds[place].suite === ranking.suite) };
}

function rankingField(rankings, ranking) {
  if (rankings.length < 2) return null;
  const select = element("select", { id: "over", onchange: (event) => go({ over: event.target.value }) },
    rankings.map((one) => element("option", { value: keyOf(one) }, plain(one.title))));
  select.value = keyOf(ranking);
  return element("p", { class: "tools" }, element("label", {}, "Problems of ", select));
}

/** Return the columns of the standings: the heading and what stands below it. */
function standingColumns(headings) {
  return [
    [headings.accuracy, (line) => [percent(line.value), element("small", { class: "below muted" }, interval(line.low, line.high))]],
    [headings.score, (line) => (line.score ? [line.score[0].toFixed(3), element("small", { class: "below muted" }, line.score.slice(1).map((end) => end.toFixed(3)).join(" – "))] : "–")],
    ["trials", (line) => count(line.trials)],
    [headings.answered, (line) => percent(line.answered)],
    [headings.lost, (line) => count(line.lost)],
    [headings.right_90, (line) => inTwo(line.at_90)],
    [headings.right_50, (line) => inTwo(line.at_50)],
    ["cost", (line) => atLeast(line.cost_usd, line.partly_priced)],
    [headings.per_correct, (line) => (line.cost_usd !== null && line.per_correct === null ? "–" : atLeast(line.per_correct, line.partly_priced))],
    [headings.format, (line) => percent(line.format)],
    [headings.median_latency, (line) => seconds(line.p50_s)],
  ];
}

/** Return a length with its limits and its task below it: these columns are many. */
function inTwo(length) {
  if (!length) return "–";
  const [figure, more] = [length].flat();
  return more ? [figure, element("small", { class: "below muted" }, more)] : figure;
}

function standingsTable(ranking, lines, query, rules) {
  const isKnown = (cell) => lines.some((line) => !["–", "unknown", "0"].includes(cell(line)));
  const columns = standingColumns(head.headings).filter(([, cell]) => isKnown(cell));
  const ranked = !ranking.alone;
  const names = [...ranked ? ["rank"] : [], "model", ...columns.map(([name]) => name)];
  const rows = lines.map((line, n) => element("tr", { class: n > 0 && ranked && lines[n - 1].place !== line.place && "tie" },
    ranked ? element("td", { class: "rank" }, String(line.place)) : null,
    element("th", { scope: "row", class: "text" }, answersLink(query(line), whoOf(line.asked))),
    columns.map(([, cell]) => element("td", {}, cell(line)))));
  return element("details", { class: "facts", "data-keep": "standings as a table" }, element("summary", {}, "Standings as a table"),
    tableOf(`Standings: ${plain(ranking.title)}`, names, rows, "model"), repeatsTable(ranking, lines),
    rules.map((words) => noted(words, "p", { class: "about" })));
}

/** Return the table of figures at k, a row for each model and k; none where each problem was asked once. */
function repeatsTable(ranking, lines) {
  const rows = lines.flatMap((line) => (line.at_k ?? []).map((at) => [line, at]));
  if (!rows.length) return null;
  const names = ["model", "k", "problems", ...["pass_at_k", "majority_at_k", "pass_hat_k"].map((name) => head.headings[name])];
  const cells = rows.map(([line, at]) => element("tr", { class: at.k === 1 && line !== lines[0] && "tie" },
    element("th", { scope: "row", class: "text" }, whoOf(line.asked)),
    element("td", {}, count(at.k)),
    element("td", {}, count(at.problems)),
    at.figures.map(([share, low, high]) => element("td", {}, `${percent(share)} (${interval(low, high)})`))));
  return element("div", {}, noted(head.repeated, "p", { class: "about" }), tableOf(`${plain(ranking.title)}: repeats`, names, cells, "model"));
}

/** Return the differences to the leader, each with its interval, folded. */
function pairsBox(ranking) {
  const rows = (ranking.pairs ?? []).filter((pair) => chosenEntrants.has(pair.a) && chosenEntrants.has(pair.b));
  if (!rows.length) return null;
  const lines = rows.map((pair) => element("tr", {},
    element("th", { scope: "row", class: "text" }, whoOf(pair.b)),
    element("td", {}, points(pair.difference)),
    element("td", {}, `${points(pair.low)} to ${points(pair.high)}`),
    element("td", {}, pair.p === null ? "–" : THREE.format(pair.p)),
    element("td", { class: "text" }, pair.tied ? "tied" : "apart"),
    element("td", {}, count(pair.problems))));
  return element("details", { class: "facts", "data-keep": "pairs" }, element("summary", {}, "Differences to the leader, paired by problem"),
    element("p", { class: "about" }, "Percentage points that ", whoOf(rows[0].a), " is ahead, with the 95 % interval; p is adjusted for all pairs (Holm)."),
    tableOf("Differences to the leader", ["model", "ahead by", "95 % CI", "p", "verdict", "problems"], lines, "model", "verdict"));
}

function points(share) {
  if (share === null) return "–";
  const written = rounded(Math.abs(100 * share), 1);
  return written === "0.0" ? "0" : `${share < 0 ? "−" : "+"}${written}`;
}

// ── where each breaks ───────────────────────────────────────────────────────────────────────

const FEWEST_LENGTHS = 3;

function breaksCard({ rows, halves }) {
  if (!rows.length && !halves.length) return null; // words have no length
  const curves = curveRows(kept(rows));
  const sparse = sparsePanels(curves);
  const drawable = curves.filter((row) => !sparse.has(row.task));
  const query = (row) => ({ asked: row.asked, kind: row.kind, from: row.from, to: row.to });
  const faint = drawable.some((row) => !row.lit) ? ` The best ${MOST_LIT} models are in colour; filter the models to see others.` : "";
  const card = chartCard("curves", drawable, { query, bare: true, title: "Accuracy against length", about: head.charts.curves.purpose + faint, prepare: (given) => given });
  if (sparse.size) card.append(element("p", { class: "few muted" }, `Too few lengths or trials for a curve: ${[...sparse].join("; ")}. Their figures stand in the tables below.`));
  const at = chartCard("halves", kept(halves), { query: (row) => ({ asked: row.asked, kind: row.kind }), bare: true, fewest: 1, note: unfollowed({ lengths: false }) || null });
  return element("section", { class: "card hero", id: "breaks" }, element("h3", {}, "Where each breaks"), card, at);
}

/** Return rows of curves; by what was varied, a panel is of one kind and model in which it varies, a line of a value. */
function curveRows(rows) {
  if (!state.by) return named(rows);
  return named(rows.filter((row) => varies(head.entrants[row.asked]))).map((row) => ({ ...row, task: `${row.task} · ${row.own_model}`, model: row.value_of }));
}

function sparsePanels(rows) {
  const lengths = (those) => new Set(those.filter((row) => row.sort === "point").map((row) => row.length)).size;
  return new Set([...Map.groupBy(rows, (row) => row.task)].filter(([, those]) => lengths(those) < FEWEST_LENGTHS).map(([panel]) => panel));
}
