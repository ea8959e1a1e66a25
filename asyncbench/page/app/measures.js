// What was measured beside answers: times, costs, and how providers bore a load.

async function timeView() {
  const time = await source.block("time");
  const note = unfollowed({ kinds: false, lengths: false }) || null;
  const minutes = kept(time.minutes);
  const quota = kept(time.quota);
  const cards = [
    ["times", kept(time.times), { query: (row) => ({ asked: row.asked }), fewest: 1 }],
    ["latency", minutes.filter((row) => row.p50_s !== null), overTime("latency")],
    ["throughput", minutes, overTime("throughput")],
    ["tokens", minutes.filter((row) => row.tokens_per_minute !== null), overTime("tokens")],
    ["failures", kept(time.failures), overTime("failures")],
    ["quota", quota, quota.some((row) => row.asked === null) ? { note: unfollowed(NO_FILTER) || null } : {}],
  ].filter(([name, rows]) => head.charts[name] && rows.length).map(([name, rows, more]) => chartCard(name, rows, { note, ...more }));
  const notes = notesOf(time.notes.map((words) => ({ words })));
  return [element("h2", {}, "Time"), coloursOfBy(), notes, ...cards, head.load_calls || !cards.length ? null : providersBox(), cards.length || notes ? null : nothingKnown()];
}

/** Return what a click opens on a point of calls that began in a stretch of time: trials are known by their end. */
function overTime(name) {
  return {
    query: (row) => ({ asked: row.asked, since: row.at, until: row.at + Math.round(1000 * row.seconds) - 1 }),
    about: `${head.charts[name].purpose} A point opens the answers that were finished about then.`,
  };
}

/** Return the models as providers, counted once someone opens them. */
function providersBox() {
  return tablesBox("providers", "The models as providers", async () => (await source.block("loads")).load_tables);
}

/** Return figures beside those that a benchmark's document prints, likewise; null where it prints none. */
function publishedBox() {
  return head.printed ? tablesBox("published", head.printed, async () => (await source.block("published")).tables) : null;
}

function tablesBox(id, title, tables) {
  const box = element("details", { class: "card facts", id, "data-keep": id }, element("summary", {}, title));
  box.addEventListener("toggle", async () => {
    if (!box.open || box.children.length > 1) return;
    const cards = (await tables()).map(reportCard);
    if (box.children.length === 1) box.append(...[limits(unfollowed(NO_FILTER)), ...cards].filter(Boolean));
  });
  return box;
}

async function costView() {
  const cost = await source.block("cost");
  const query = (row) => ({ asked: row.asked });
  const note = unfollowed({ kinds: false, lengths: false }) || null;
  const frontier = [note, chosenEntrants.size < head.entrants.length && "The frontier is that of all models: your filter cannot narrow it."].filter(Boolean).join(" ");
  const cards = [["frontier_cost", "cost"], ["frontier_reasoning", "reasoning_tokens"]].map(([name, of]) =>
    cost.compared[of] && !cost[name].length ? nothingOf(name, `${cost.compared[of]}.`) : chartCard(name, kept(cost[name]), { query, note: frontier || null, about: [head.charts[name].purpose, cost.compared[of] && `${cost.compared[of]}. A point opens all answers of its model.`].filter(Boolean).join(" ") }));
  return [element("h2", {}, "What accuracy costs"), coloursOfBy(), notesOf(cost.notes.map((words) => ({ words }))), ...cards, spentCard(cost.spent, note)];
}

/** Return a chart that cannot be: why. */
function nothingOf(name, why) {
  return element("section", { class: "card", "data-chart": name }, element("h3", {}, head.charts[name].title), noted(why, "p", { class: "about" }));
}

const SPENT = [
  ["calls", count, "calls"],
  ["cost", (value, row) => atLeast(value, row.unknown), "cost_usd"],
  ["per 1,000 trials", (value, row) => atLeast(value, row.unknown), "per_1000"],
  ["per correct answer", (value, row) => atLeast(value, row.unknown), "per_correct"],
  ["input tokens", count, "input_tokens"],
  ["from a cache", percent, "cached_share"],
  ["output tokens", count, "output_tokens"],
  ["of it reasoning", count, "reasoning_tokens"],
  ["calls of unknown cost", count, "unknown"],
];

function spentCard(spent, note) {
  const rows = kept(spent);
  if (!rows.length) return null;
  const columns = SPENT.filter(([, , name]) => rows.some((row) => row[name]));
  const lines = rows.map((row) => element("tr", {}, element("th", { scope: "row", class: "text" }, answersLink({ asked: row.asked }, whoOf(row.asked))),
    columns.map(([, shown, name]) => element("td", {}, row[name] === null || row[name] === undefined ? "–" : shown(row[name], row)))));
  return element("section", { class: "card", id: "spent" }, element("h3", {}, "What was spent"),
    element("p", { class: "about" }, "Retries included. Calls of unknown cost are left out; they never count as free."), limits(note),
    tableOf("What was spent", ["model", ...columns.map(([name]) => name)], lines, "model"));
}

// ── under load ──────────────────────────────────────────────────────────────────────────────

async function loadView() {
  const loads = await source.block("loads");
  const names = Object.keys(head.charts).filter((name) => loads.load_rows[name]);
  return [
    element("h2", {}, "Load and providers"),
    element("p", { class: "scope", id: "scope" }, `${count(head.load_calls)} calls under load`),
    notesOf(loads.load_notes.filter((words) => !MARKS.some((mark) => words.includes(mark))).map((words) => ({ words }))),
    ...loads.load_tables.map(reportCard),
    ...names.map((name) => chartCard(name, loads.load_rows[name], { fewest: 1 })),
  ];
}

/** Return a report as its tables, with its notes above and below them. */
function reportCard(report) {
  const tables = report.sheets.flatMap((sheet) => {
    const rows = sheet.rows.map((row) => element("tr", {}, row.map((cell, n) => (n === 0
      ? element("th", { scope: "row", class: "text" }, foreign(cell))
      : element("td", { class: n < sheet.labels && "text" }, foreign(cell))))));
    return [element("h4", {}, sheet.title), tableOf(sheet.title, sheet.head, rows, ...sheet.head.slice(0, sheet.labels))];
  });
  const paragraphs = (notes) => notes.map((words) => noted(words, "p", { class: "about" }));
  return element("section", { class: "card report" }, element("h3", {}, report.title), paragraphs(report.notes), tables, paragraphs(report.below));
}
