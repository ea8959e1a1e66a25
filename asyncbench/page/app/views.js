// The other views: each a list of elements.

function metric() {
  return page.metrics[state.metric];
}

/** Return the head of a view. */
function heading(title, more) {
  return element("div", { class: "view-head" }, element("h2", {}, title),
    foreign(scope(), "p", { class: "scope", id: "scope" }),
    more ? element("p", { class: "scope" }, more) : null);
}

function tasksView() {
  const words = `${metric().title} in ${metric().share ? "percent" : metric().unit}. An empty cell means that nothing was asked.`;
  const suites = [...new Set(page.chosen.map((cell) => cell.suite))].sort(inOrder);
  return [
    heading("Tasks and lengths"),
    chartCard("task_map", taskRows(page.chosen, metric()), { about: words }),
    ...suites.map((suite) => lengthCard(suite, words)),
  ];
}

/** Return task by length of one suite: its lengths are digits, depth or characters, and no other's. */
function lengthCard(suite, words) {
  if (suite === "llm_arithmetic") return chartCard("depth_map", depthRows(page.chosen, metric()), { about: words });
  const rows = lengthRows(page.chosen.filter((cell) => cell.suite === suite), metric());
  return chartCard("length_map", rows, { title: `${suite}: task by length`, about: words });
}

function lengthView() {
  const rows = curveRows(page.chosen);
  return [heading("How many digits"), chartCard("curves", rows, aboutAnd("curves", curvesNote(page.chosen))), digitsCard(rows), learnedCard()];
}

/** Return where curves cross 50 %, as a table of panels by curves. */
function digitsCard(rows) {
  const halves = rows.filter((row) => row.kind === "half");
  if (!halves.length) return null;
  const series = [...new Set(rows.map((row) => row.series))];
  const lines = [...Map.groupBy(halves, (row) => row.panel)].map(([panel, those]) => element("tr", {},
    element("th", { scope: "row", class: "text" }, panel),
    series.map((name) => element("td", {}, those.find((row) => row.series === name)?.label ?? "–"))));
  return element("section", { class: "card long", id: "digits" }, element("h3", {}, "50 % right up to"),
    element("p", { class: "about" }, "The length at which the fitted curve drops to 50 %, if that is within the lengths that were asked. The standings have bounds for the others."),
    tableOf("50 % right up to", ["", ...series], lines, ""));
}

/** Return NUPA's well-learned and preserved digits: the longest lengths with 90 % and 10 % of the answers right. */
function learnedCard() {
  const cells = page.chosen.filter((cell) => cell.suite === "nupa" && cell.range && cell.trials > cell.failed);
  if (!cells.length) return null;
  const called = (cell) => [cell.called, cell.variant, cell.representation].filter(Boolean).join(" ");
  const names = [...new Set(cells.map((cell) => cell.name))];
  const lengths = [...summed(cells, (cell) => keyed(called(cell), cell.name, cell.length)).values()];
  const digits = (those) => [9, 1].map((tenths) => Math.max(0, ...those
    .filter(({ sums }) => 10 * sums.correct >= tenths * (sums.trials - sums.failed)).map(({ first }) => first.length))).join(" / ");
  const lines = [...Map.groupBy(lengths, ({ first }) => called(first))].map(([task, those]) => element("tr", {},
    element("th", { scope: "row", class: "text" }, foreign(task)),
    names.map((name) => those.filter(({ first }) => first.name === name)).map((its) => element("td", {}, its.length ? digits(its) : "–"))));
  return element("section", { class: "card long", id: "learned" }, element("h3", {}, "Well-learned / preserved digits"),
    element("p", { class: "about" }, "NUPA, by exact match: the longest lengths at which 90 % and 10 % of the answers are right, as in Table 7 of the paper. 0: none."),
    tableOf("Well-learned / preserved digits", ["task", ...names], lines, "task"));
}

function costView() {
  return [
    heading("What accuracy costs"),
    chartCard("frontier_cost", frontierCostRows(page.chosen), aboutAnd("frontier_cost", frontierNote(page.chosen, "cost"))),
    chartCard("frontier_reasoning", frontierReasoningRows(page.chosen), aboutAnd("frontier_reasoning", frontierNote(page.chosen, "reasoning_tokens"))),
    costCard(),
  ];
}

/** Return what is told above a chart: what it is for, and a note where there is one. */
function aboutAnd(name, note) {
  return { about: [page.charts[name].purpose, note && `${note}.`].filter(Boolean).join(" ") };
}

function costCard() {
  const groups = [...summed(page.chosen, (cell) => cell.name).values()];
  const names = ["accuracy", "cost", "cost_per_correct", "output_tokens", "reasoning_tokens", "latency"];
  const told = names.filter((name) => groups.some(({ sums }) => measured(page.metrics[name], sums).value !== null));
  const rows = groups.map(({ first, sums }) => element("tr", {},
    element("th", { scope: "row", class: "text" }, first.name),
    told.map((name) => element("td", {}, figure(page.metrics[name], measured(page.metrics[name], sums).value))),
    element("td", {}, sums.priced ? dollars(sums.cost_usd) : "unknown"),
    element("td", {}, `${count(sums.priced)} of ${count(sums.trials)}`)));
  const head = ["model", ...told.map((name) => `${page.metrics[name].title[0].toLowerCase()}${page.metrics[name].title.slice(1)}${page.metrics[name].unit === "seconds" ? ", s" : ""}`), "cost", "cost known"];
  return element("section", { class: "card long", id: "costs" }, element("h3", {}, "Tokens, cost and latency"),
    element("p", { class: "about" }, "The cost of a trial includes its retries. Trials of unknown cost are left out; they never count as free."),
    tableOf("Tokens, cost and latency", head, rows, "model"));
}

function timeView() {
  return [
    heading("Over time", "By the time at which calls began. Only the filter for models changes these charts."),
    chartCard("latency", ofChosenModels(page.latency, "series", "panel")),
    chartCard("throughput", ofChosenModels(page.throughput, "series", "panel")),
    chartCard("quota", page.quota),
  ];
}

function loadView() {
  const charts = Object.keys(page.charts).filter((name) => page.load_rows[name]);
  return [
    heading("Load and providers", onlyLoad() ? null : "The filters do not change this view."),
    page.load_notes.length ? element("div", { class: "notes" }, page.load_notes.map((words) => noted(words, "p", { class: "note" }))) : null,
    ...page.load_tables.map(reportCard),
    ...charts.map((name) => chartCard(name, page.load_rows[name])),
    charts.length ? null : element("p", { class: "muted" }, noted(page.charts.load_times.nothing)),
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
  const told = (notes) => notes.map((words) => noted(words, "p", { class: "about" }));
  return element("section", { class: "card long report" }, element("h3", {}, report.title), told(report.notes), tables, told(report.below));
}

function errorsView() {
  const groups = page.error_groups.filter(chosenGroup);
  return [
    heading("What goes wrong", `${page.examined} The filter for lengths and ranges does not change kinds and positions.`),
    chartCard("outcomes", outcomeRows(page.chosen)),
    chartCard("kinds", kindRows(groups)),
    chartCard("digit_errors", digitRows(groups)),
    examplesCard(),
  ];
}

/** Return examples of each kind of error, the commonest kind first. */
function examplesCard() {
  const examples = page.examples.filter(chosenGroup);
  if (!examples.length) return null;
  const kinds = Map.groupBy(examples, (one) => one.kind);
  const counts = added(page.error_groups.filter(chosenGroup).map((one) => one.kinds));
  const boxes = [...kinds].sort((a, b) => counts[b[0]] - counts[a[0]] || inOrder(a[0], b[0])).map(([kind, those]) => {
    const rows = those.slice(0, MOST_EXAMPLES).map((one) => element("tr", {},
      element("th", { scope: "row", class: "text" }, foreign(page.asked[one.asked].name)),
      [one.task, one.operands.map(shortened).join(", ") || "–", shortened(one.expected), one.answer === null ? "no answer" : shortened(one.answer)].map((text, n) => element("td", { class: n ? "text number" : "text" }, foreign(text))),
      element("td", { class: "text" }, foreign(oneLine(one.reply) || "–")),
      element("td", {}, inTrials(one.trial_id))));
    return element("details", { class: "ranking", "data-kind": kind }, element("summary", {}, kind, element("span", { class: "muted" }, ` ${count(counts[kind])}`)),
      page.kind_words[kind] ? element("p", { class: "about muted" }, page.kind_words[kind]) : null,
      tableOf(`Examples: ${kind}`, ["model", "task", "operands", "expected", "answer", "end of the reply", "trial"], rows, "model", "task", "operands", "expected", "answer", "end of the reply"));
  });
  return element("section", { class: "card long", id: "examples" }, element("h3", {}, "Examples of each kind"), boxes);
}

const MOST_EXAMPLES = 6;

function shortened(text) {
  return text.length > 60 ? `${text.slice(0, 40)}… (${count(text.length)})` : text;
}

/** Return a button that opens a trial, where it is in the sample. */
function inTrials(id) {
  const known = page.trials.some((one) => one.trial_id === id);
  if (!known) return element("span", { class: "muted" }, "–");
  return element("button", { type: "button", class: "link", onclick: () => go({ view: "trials", text: id, outcome: "", disagree: "", page: "1", trial: id }) }, "open");
}

function aboutView() {
  const items = [
    ["Accuracy", "Correct trials over all trials, failed and truncated ones included. Accuracy when it answered leaves out the trials without an answer. A trial is correct if its answer equals the expected value exactly."],
    ["Intervals", "95 % confidence intervals (Wilson). If problems were asked several times, each problem counts once; the standings use intervals clustered by problem."],
    ["Ranks", page.places || "There is only one model to rank."],
    ["Curves", "A logistic curve (maximum likelihood) through accuracy by length, with its 95 % band. It uses the trials with a reply, and is drawn only within the lengths that were asked."],
    ["Cost", "USD, retries included. Trials of unknown cost are left out of means; they never count as free."],
    ["Single trials", page.sample_rule],
    ["This file", "Everything is inside this file. It loads nothing and sends nothing; its security policy forbids both, whatever a model replied. Invisible characters (controls, direction marks) are written out, like \\x1b or \\u202e."],
    ["This folder", [page.graded, ...page.merged].join(" ")],
  ];
  return [heading("How to read this page"), element("section", { class: "card" }, element("dl", { class: "prose" }, items.flatMap(([name, words]) => [element("dt", {}, name), noted(words, "dd")])))];
}
