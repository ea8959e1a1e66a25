// One answer in whole, with its question, reply and grades; or all answers to a question.

const REASONS = {
  empty: "The reply had no text.",
  no_number: "The grader found no number where it looks for one.",
  grader_error: "The grader failed on this reply. The reply is kept; grade it again with `asyncbench regrade`.",
};
let lastTrial = 0; // counts requests for a trial: one that came too late is not shown

async function showTrial(detail, id) {
  const request = ++lastTrial;
  if (!id) return detail.replaceChildren();
  const trial = await source.trial(id);
  const asked = state.beside ? [] : state.versus;
  const all = trial !== null && (state.beside || asked.length) ? await source.question(trial.question, asked) : null;
  if (request !== lastTrial) return;
  if (trial === null) return detail.replaceChildren(element("p", { class: "card muted" }, LIVE ? "This answer is not in the folder." : "This answer is not among those that the file holds."));
  detail.replaceChildren(state.beside ? besideCard(trial, all) : all ? versusCard(trial, all) : trialCard(trial));
  for (const box of detail.querySelectorAll("details[data-keep]")) box.open = state.open.includes(box.dataset.keep);
}

function trialCard(trial) {
  return element("article", { class: "card", "aria-label": "The answer", "data-trial": trial.id },
    element("h3", {}, badge(trial.outcome), whoOf(trial.asked)),
    ...aboutTrial(trial), comparison(trial), acceptedOf(trial), because(trial), besideLink(trial), passagesOf(trial), promptOf(trial), gradesTable(trial.grades), factsOf(trial));
}

/** Return what was asked: the kind, and the part of the question that differs from others. */
function aboutTrial(trial) {
  const kind = head.kinds[trial.kind];
  const about = [plain(kind?.suite ?? ""), plain(kind?.called ?? ""), trial.length === null ? "" : `length ${trial.length}`, trial.repeat ? `repeat ${trial.repeat}` : ""];
  return [foreign(about.filter(Boolean).join(" · "), "p", { class: "about" }), trial.operands ? foreign(trial.operands, "p", { class: "operands" }) : null];
}

/** Return the answer under the expected value. */
function comparison(trial) {
  const { expected, answer, aligned } = trial;
  if (aligned && aligned.some(([op]) => op !== "same")) return element("div", { class: "compared" }, alignedPair(aligned), editLegend([aligned]));
  const line = (name, shown) => [element("dt", {}, name), element("dd", { class: "number" }, shown)];
  if (answer !== null && answer === expected) return element("dl", { class: "versus" }, line("Answer", foreign(answer)));
  return element("dl", { class: "versus" }, line("Expected", expected === null ? "–" : foreign(expected)),
    line("Answer", answer === null ? element("span", { class: "muted" }, "none") : foreign(answer)));
}

/** Return all answers that count as right, where there are several; the one above is the nearest. */
function acceptedOf(trial) {
  if (!(trial.accepted_in_all > 1)) return null;
  const more = trial.accepted_in_all - trial.accepted.length;
  return element("p", { class: "about" }, "Accepted: ",
    trial.accepted.flatMap((text, n) => [n ? " | " : "", foreign(text)]), more ? ` and ${count(more)} more` : "");
}

function because(trial) {
  const headline = trial.grades.find((grade) => grade.headline);
  const why = headline?.reason ? (REASONS[headline.reason] ?? `Reason of the grader: ${headline.reason}.`) : "";
  const sort = trial.error && trial.error !== trial.outcome ? `Kind of error: ${errorWords(trial.error)}.` : "";
  return noted(`${OUTCOME_WORDS[trial.outcome] ?? ""} ${why} ${sort}`.trim(), "p", { class: "because" });
}

function passagesOf(trial) {
  return [["Reply", "reply"], ["Reasoning", "reasoning"], ["Error", "message"]].map(([title, name]) => passage(title, trial, name));
}

function passage(title, trial, name) {
  const text = trial[name];
  if (text === null || text === undefined || text === "") return name === "reply" && text === "" ? element("p", { class: "muted" }, "The reply was empty.") : null;
  return element("section", { class: "passage" }, element("h4", {}, title, cutNote(trial, name)), foreign(text, "pre", { tabindex: "0", "aria-label": title }));
}

function cutNote(trial, name) {
  return trial.cut[name] ? element("span", { class: "muted" }, ` (${count(trial.cut[name])} characters; the middle is left out)`) : null;
}

function promptOf(trial) {
  if (trial.prompt === null || trial.prompt === undefined) return element("p", { class: "muted" }, "The folder lacks the problem set, so the question is unknown.");
  return element("details", { class: "facts", "data-keep": "prompt" }, element("summary", {}, "Question as it was asked", cutNote(trial, "prompt")),
    foreign(trial.prompt, "pre", { tabindex: "0", "aria-label": "Question" }));
}

/** Return the grades of every grader; only rows and columns that hold something. */
function gradesTable(grades) {
  if (!grades.length) return null;
  const text = (words) => (words ? foreign(words) : null);
  const columns = [
    ["answer", (grade) => text(grade.answer && (grade.answer.length > 80 ? `${grade.answer.slice(0, 79)}…` : grade.answer))],
    ["outcome", (grade) => badge(grade.outcome)],
    ["class", (grade) => text(grade.classification)],
    ["reason", (grade) => text([grade.reason, ...grade.flags ?? []].filter(Boolean).join(", "))],
    ["follows format", (grade) => ({ true: "yes", false: "no" }[grade.format_ok] ?? null)],
    ["score", (grade) => (typeof grade.score === "number" ? String(grade.score) : null)],
    ["digits", (grade) => (grade.digits_total ? `${grade.digits_right} of ${grade.digits_total}` : null)],
  ].filter(([, cell]) => grades.some((grade) => cell(grade) !== null));
  const rows = grades.map((grade) => element("tr", {},
    element("th", { scope: "row", class: "text" }, foreign(`${grade.grader} v${grade.grader_version}`), grade.headline ? " (headline)" : ""),
    columns.map(([, cell]) => element("td", { class: "text" }, cell(grade) ?? "–"))));
  const names = ["grader", ...columns.map(([name]) => name)];
  return element("section", { class: "passage" }, element("h4", {}, "Grades"), tableOf("Grades", names, rows, ...names));
}

function factsOf(trial) {
  const facts = [...trial.facts, ...trial.at ? [["finished", moment(trial.at / 1000)]] : [], ["trial", trial.id]];
  return element("details", { class: "facts", "data-keep": "facts" }, element("summary", {}, "Tokens, cost, times, ids"),
    element("dl", { class: "versus" }, facts.flatMap(([name, value]) => [foreign(name, "dt"), foreign(value, "dd")])));
}

// ── one question, all models ────────────────────────────────────────────────────────────────

/** Return the way to all answers to the question of a trial; null where there is no other. */
function besideLink(trial) {
  if (trial.answers < 2) return null;
  const words = trial.entrants > 1 ? "All models’ answers to this question" : `All ${count(trial.answers)} answers to this question`;
  return element("p", {}, element("a", { class: "button", id: "beside", href: hashOf({ ...state, trial: trial.id, beside: "yes" }) }, words));
}

/** Return all answers to a question under one another: the wrong ones first, then as models were asked. */
function besideCard(trial, { of, trials }) {
  const shown = [...trials].sort((a, b) => rankOfOutcome(a) - rankOfOutcome(b) || a.asked - b.asked || a.repeat - b.repeat);
  const models = new Set(shown.map((one) => one.asked)).size;
  const laid = underOneAnother(trial.expected ?? "", shown.map((one) => one.aligned));
  const rows = shown.map((one, n) => element("tr", { class: one.id === trial.id && "current" },
    element("th", { scope: "row", class: "text" }, element("a", { href: hashOf({ ...state, trial: one.id, beside: "" }) }, whoOf(one.asked)), one.repeat ? ` (repeat ${one.repeat})` : ""),
    element("td", { class: "text" }, badge(one.outcome)),
    element("td", { class: "text laid-cell" }, laid.answers[n] ?? answerAlone(one),
      one.aligned && one.outcome === "wrong" ? element("span", { class: "visually-hidden" }, ` ${inSentence(one.aligned)}`) : null)));
  const top = element("tr", { class: "expected" }, element("th", { scope: "row", class: "text" }, "expected"), element("td", {}), element("td", { class: "text laid-cell" }, laid.expected));
  const table = element("table", { class: "beside" }, element("thead", {}, element("tr", {}, ["model", "outcome", "answer"].map((name) => element("th", { scope: "col", class: "text" }, name)))), element("tbody", {}, top, rows));
  const back = element("a", { class: "button", href: hashOf({ ...state, beside: "" }) }, "‹ Back to the one answer");
  return element("article", { class: "card", "aria-label": "All answers to the question" },
    element("h3", {}, models > 1 ? `${count(models)} models, one question` : of > 1 ? `${count(of)} answers to one question` : "Nobody else was asked this"),
    trial.operands ? foreign(trial.operands, "p", { class: "operands" }) : null,
    of > shown.length ? element("p", { class: "muted" }, `${count(shown.length)} of ${count(of)} answers, as many of each model.`) : null,
    editLegend(shown.map((one) => one.aligned)), scrolled("All answers to the question", table),
    promptOf(trial), element("p", {}, back));
}

function answerAlone(trial) {
  if (trial.answer !== null) return foreign(trial.answer.length > 200 ? `${trial.answer.slice(0, 199)}…` : trial.answer, "span", { class: "signs" });
  const summary = oneLine(trial.message || trial.reply || "");
  return element("span", { class: "muted" }, summary ? foreign(summary.slice(-120)) : "no answer");
}
