// Errors: outcomes, kinds of errors, places of wrong digits; each opens its answers.

async function errorsView() {
  const [errors, standings] = await Promise.all(["errors", "standings"].map(source.block));
  learnRanks(standings);
  return [
    element("h2", {}, "What goes wrong"), coloursOfBy(),
    outcomesCard(errors), kindsCard(errors), wordsCard(errors), positionsCard(errors),
  ];
}

function outcomesCard({ outcomes }) {
  return chartCard("outcomes", kept(outcomes), {
    query: (row) => ({ asked: row.asked, outcome: row.outcome }), note: unfollowed({ kinds: false, lengths: false }) || null, fewest: 1,
  });
}

/** Return kinds of errors down and models across, as a table whose cells open their answers. */
function kindsCard(errors) {
  const only = chosenKinds.size === 1 && head.kinds.length > 1; // of several kinds there is no share of all
  const shown = kept(only ? errors.kinds_by_kind : errors.kinds);
  const names = [...Map.groupBy(shown, (row) => row.error)].sort((a, b) => most(b[1]) - most(a[1])).map(([error]) => error);
  const lines = names.map((error) => ({
    name: errorWords(error), words: errors.kind_words[error], cells: shown.filter((row) => row.error === error),
    query: error === "others" ? null : { error, ...only ? { kind: [...chosenKinds] } : {} },
  }));
  const about = `Percent of a model's examined wrong answers. ${errors.examined} A cell opens its answers.`;
  return element("section", { class: "card", id: "kinds" }, element("h3", {}, head.charts.kinds.title),
    element("p", { class: "about" }, about), limits(unfollowed({ kinds: only, lengths: false })),
    lines.length ? heatTable("Kinds of errors", "kind of error", lines, ERROR_SHARE, (row) => [row.value, null, null, row.wrong], "none") : element("p", { class: "muted" }, noted(head.charts.kinds.nothing)),
    lines.length ? glossary(lines) : null);
}

/** Return the most frequent wrong answers down and models across, where answers are words. */
function wordsCard({ words }) {
  const shown = kept(words);
  if (!shown.length) return null;
  const several = new Set(shown.map((row) => row.kind)).size > 1;
  const lines = [...Map.groupBy(shown, (row) => `${row.kind} ${row.words}`).values()].sort((a, b) => most(b) - most(a)).slice(0, MOST_WORDS)
    .map((cells) => ({ name: several ? `${cells[0].words} · ${plain(head.kinds[cells[0].kind]?.called ?? "")}` : cells[0].words, cells, query: null }));
  return element("section", { class: "card", id: "words" }, element("h3", {}, "The most frequent wrong answers"),
    element("p", { class: "about" }, "Percent of a model's examined wrong answers to this task."), limits(unfollowed({ lengths: false })),
    heatTable("The most frequent wrong answers", "answered", lines, ERROR_SHARE, (row) => [row.value, null, null, row.wrong], "none"));
}

function errorWords(error) {
  return plain(error).replaceAll("_", " ");
}

const MOST_WORDS = 20; // lines
const ERROR_SHARE = { title: "share of wrong answers", share: true, unit: "share", higher_is_better: null };

function most(rows) {
  return rows.reduce((sum, row) => Math.max(sum, row.wrong), 0);
}

function glossary(lines) {
  const explained = lines.filter((line) => line.words);
  return element("details", { class: "facts", "data-keep": "kinds of errors" }, element("summary", {}, "What the kinds mean"),
    element("dl", { class: "prose" }, explained.flatMap((line) => [element("dt", {}, line.name), noted(line.words, "dd")])));
}

function positionsCard({ places, compared }) {
  if (!compared) return null; // no answer has digits
  return chartCard("digit_errors", kept(places), { query: (row) => ({ asked: row.asked, ...row.kind === null || row.kind === undefined ? {} : { kind: row.kind }, end: row.end, position: row.position }), note: unfollowed({ lengths: false }) || null });
}
