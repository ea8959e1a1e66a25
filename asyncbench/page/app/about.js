// The guide to reading the page.

async function aboutView() {
  const standings = await source.block("standings");
  const sample = LIVE ? null : await source.block("sample");
  const items = [
    ["Accuracy", "Correct trials over all trials, failed and truncated ones included. A trial is correct if its answer equals the expected value exactly."],
    ["Intervals", "95 % confidence intervals (Wilson). If problems were asked several times, each problem counts once; the standings use intervals clustered by problem."],
    ["Ranks", standings.rules.join(" ")],
    ["Curves", "A logistic curve (maximum likelihood) through accuracy by length. It uses the trials with a reply, and is drawn only within the lengths that were asked. A point stands for eight trials or more."],
    ["Filters", "Nothing unlike is added up, so a filter only leaves figures out. A figure that cannot follow a filter says so."],
    ["Cost", "USD, retries included. Trials of unknown cost are left out of means; they never count as free."],
    ["Alignment", "An answer is laid on the expected value by the shortest edit that explains it. Marks tell the edit by colour and by the line under a digit."],
    ["This page", LIVE
      ? "It comes from `asyncbench view` on this computer, and speaks to nobody else. Each figure is of all trials."
      : `${sample?.rule ?? ""} Everything is inside this file. It loads nothing and sends nothing; its security policy forbids both, whatever a model replied.`],
    ["Unseen characters", "Controls, direction marks and the like are written out, like \\x1b or \\u202e."],
  ].filter(([, words]) => words);
  const notes = head.notes.map(({ words }) => words);
  return [
    element("h2", {}, "How to read this page"),
    notes.length ? element("section", { class: "card" }, element("h3", {}, "This folder"), element("div", { class: "prose" }, notes.map((words) => noted(words, "p")))) : null,
    element("section", { class: "card" }, element("dl", { class: "prose" }, items.flatMap(([name, words]) => [element("dt", {}, name), noted(words, "dd")]))),
    element("section", { class: "card" }, element("h3", {}, "Keys"), keysList()),
    element("section", { class: "card" }, element("details", { class: "facts", "data-keep": "meanings" }, element("summary", {}, "What the columns of tables mean"),
      element("dl", { class: "prose" }, Object.entries(head.meanings).flatMap(([name, words]) => [foreign(name, "dt"), noted(words, "dd")])))),
  ].filter(Boolean);
}
