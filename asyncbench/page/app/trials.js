// One trial at a time: what was asked, what came, what was read of it, and why it was graded so.

const PAGE_ROWS = 50;
const SEARCHED = ["question", "expected", "answer", "reply_text", "reasoning_text", "error_message", "trial_id"];
const REASONS = {
  empty: "The reply had no text.",
  no_number: "The grader found no number where it looks for one.",
  grader_error: "The grader failed on this reply. The reply is kept; grade it again with `asyncbench regrade`.",
};
const OUTCOME_WORDS = {
  correct: "The answer equals the expected value exactly.",
  wrong: "The answer is not the expected value.",
  no_answer: "The reply has no answer that the grader can read.",
  truncated: "The provider cut off the reply.",
  refused: "The provider or the model refused to answer.",
  failed: "No reply came.",
};

/** Return the trials that are asked for, in the order of the file. */
function foundTrials() {
  const text = state.text.toLowerCase();
  return page.trials.filter((one) =>
    chosen(state, one)
    && (state.outcome === "" || one.outcome === state.outcome)
    && (state.disagree === "" || graders(one).size > 1)
    && (text === "" || SEARCHED.some((name) => (one[name] ?? "").toLowerCase().includes(text))));
}

function graders(trial) {
  return new Set(trial.grades.map((grade) => grade.outcome));
}

function trialsView() {
  const list = element("div", { class: "list", id: "trial-list" });
  const detail = element("div", { class: "detail", id: "trial" });
  setTimeout(() => showList(list, detail));
  return [
    heading("Single trials", page.sample_rule),
    trialTools(),
    element("div", { class: "trials" }, list, detail),
  ];
}

function trialTools() {
  const outcomes = page.outcomes.filter((outcome) => page.trials.some((one) => one.outcome === outcome));
  const options = [["", "all outcomes"], ...outcomes.map((outcome) => [outcome, outcome.replace("_", " ")])];
  const search = element("input", { type: "search", id: "text", value: state.text, placeholder: "question, reply, answer, error or id" });
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search.isConnected && browse({ text: search.value }), 150);
  });
  const select = (id, choices) => {
    const made = element("select", { id, onchange: (event) => browse({ [id]: event.target.value }) },
      choices.map(([value, words]) => element("option", { value }, words)));
    made.value = state[id];
    return made;
  };
  return element("div", { class: "card tools", role: "search" },
    element("label", {}, "Search", search),
    element("label", {}, "Outcome", select("outcome", options)),
    element("label", {}, "Graders", select("disagree", [["", "all trials"], ["yes", "graders disagree"]])));
}

/** Show other trials; the tools stay as they are, so that typing goes on. */
function browse(change) {
  remember({ page: "1", trial: "", ...change });
  showList(document.getElementById("trial-list"), document.getElementById("trial"));
}

function showList(list, detail) {
  const found = foundTrials();
  const pages = Math.max(1, Math.ceil(found.length / PAGE_ROWS));
  const at = Math.min(pages, Math.max(1, Number(state.page) || 1));
  const shown = found.slice((at - 1) * PAGE_ROWS, at * PAGE_ROWS);
  const current = shown.find((one) => one.trial_id === state.trial) ?? shown[0];
  const items = shown.map((one) => trialItem(one, one === current));
  const rows = element("ol", { role: "listbox", "aria-label": "Trials", onkeydown: moveInList }, items);
  list.replaceChildren(rows, pager(at, pages, found.length));
  showTrial(detail, current ?? null);
  say(`${count(found.length)} trials found`);
}

function pager(at, pages, found) {
  const turn = (to, words, id) => element("button", { type: "button", id, disabled: to < 1 || to > pages, onclick: () => turnTo(to) }, words);
  return element("div", { class: "pager" }, turn(at - 1, "‹ Previous", "earlier"),
    element("span", { id: "found" }, `${count(found)} found · page ${count(at)} of ${count(pages)}`), turn(at + 1, "Next ›", "later"));
}

function turnTo(to) {
  browse({ page: String(to) });
  document.querySelector("#trial-list ol").scrollTop = 0;
  document.querySelector("#trial-list [aria-selected=true]")?.focus();
}

function trialItem(trial, current) {
  const item = element("li", { role: "option", id: `t-${trial.trial_id}`, "aria-selected": String(current), tabindex: current ? "0" : "-1", onclick: () => select(trial, true) },
    badge(trial.outcome),
    foreign(oneLine(trial.question ?? trial.expected), "span", { class: "what" }),
    foreign(`${trial.name} · ${trial.task}${trial.length === null ? "" : ` · ${trial.length}`}`, "span", { class: "whose" }));
  item.trial = trial;
  return item;
}

/** Return the part of a question that differs: its last line. */
function oneLine(text) {
  return text.slice(-400).trim().split("\n").at(-1).trim().slice(0, 120);
}

function moveInList(event) {
  const items = [...event.currentTarget.children];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "PageDown" || event.key === "PageUp") {
    event.preventDefault();
    document.getElementById(event.key === "PageDown" ? "later" : "earlier").click();
  } else if (to !== undefined) {
    event.preventDefault();
    const item = items[Math.min(items.length - 1, Math.max(0, to))];
    select(item.trial, false);
    item.focus();
  }
}

function select(trial, focus) {
  for (const item of document.querySelectorAll("#trial-list li")) {
    const on = item.trial === trial;
    item.setAttribute("aria-selected", String(on));
    item.tabIndex = on ? 0 : -1;
  }
  remember({ trial: trial.trial_id });
  showTrial(document.getElementById("trial"), trial);
  if (focus && matchMedia("(max-width: 62rem)").matches) document.getElementById("trial").scrollIntoView();
}

// ── what is told of one ──────────────────────────────────────────────────────────────────────

function showTrial(detail, trial) {
  if (trial === null) return detail.replaceChildren(element("p", { class: "card muted" }, "No trial matches. Remove a filter."));
  detail.replaceChildren(element("article", { class: "card", "aria-label": "The trial" },
    element("h3", {}, badge(trial.outcome), foreign(trial.name), simulatedMark(trial)),
    foreign([trial.suite, trial.task, trial.variant, trial.representation, trial.length === null ? "" : `length ${trial.length}`, `repeat ${trial.repeat}`].filter(Boolean).join(" · "), "p", { class: "about" }),
    verdict(trial), passage("Question", trial, "question"), passage("Reply", trial, "reply_text"),
    passage("Reasoning", trial, "reasoning_text"), passage("Error", trial, "error_message"),
    gradesTable(trial), factsOf(trial)));
}

function simulatedMark(trial) {
  return trial.simulated && page.asked.some((one) => !one.simulated) ? element("span", { class: "simulated" }, "SIMULATED") : null;
}

function badge(outcome) {
  return element("span", { class: `badge ${outcome}` }, outcome.replace("_", " "));
}

function verdict(trial) {
  const headline = trial.grades.find((grade) => grade.headline);
  const why = headline?.reason ? (REASONS[headline.reason] ?? `Reason of the grader: ${headline.reason}.`) : "";
  const [expected, answer] = compared(trial.expected, trial.answer);
  return element("dl", { class: "versus" },
    element("dt", {}, "Expected"), element("dd", { class: "number" }, expected),
    element("dt", {}, "Answer"), element("dd", { class: "number" }, answer),
    element("dt", {}, "Why"), element("dd", { class: "because" }, `${OUTCOME_WORDS[trial.outcome] ?? ""} ${why}`));
}

/** Return what was expected and what was read, in which the characters that differ are marked. */
function compared(expected, answer) {
  const right = foreign(expected, "span");
  if (answer === null) return [right, element("span", { class: "muted" }, "no answer")];
  if (answer === expected || answer.length > MOST_COMPARED || expected.length > MOST_COMPARED) return [right, foreign(answer, "span")];
  const differs = differences(expected, answer);
  const shown = element("span", { class: "foreign", dir: "ltr" });
  [...answer].forEach((one, place) => {
    const written = UNSEEN.test(one) ? spelled(one) : one;
    shown.append(differs[place] ? element("span", { class: "digit-off" }, written) : written);
  });
  return [right, shown];
}

const MOST_COMPARED = 400; // characters

/** Return for each character of an answer whether it differs, laid to the end at which fewer do. */
function differences(expected, answer) {
  const [right, read] = [[...expected], [...answer]];
  const laid = [0, read.length - right.length].map((shift) => read.map((one, place) => right[place - shift] !== one));
  const [fromFirst, fromLast] = laid.map((marks) => marks.filter(Boolean).length);
  return laid[fromLast <= fromFirst ? 1 : 0];
}

function passage(title, trial, name) {
  const text = trial[name];
  if (text === null || text === undefined) return name === "question" ? element("p", { class: "muted" }, "The folder lacks the problem set, so the question is unknown.") : null;
  const cut = trial.cut[name] ? ` (${count(trial.cut[name])} characters; the middle is left out)` : "";
  const body = text === "" ? element("p", { class: "muted" }, "(no text)") : foreign(text, "pre", { tabindex: "0", "aria-label": title });
  return element("section", { class: "passage" }, element("h4", {}, title, element("span", { class: "muted" }, cut)), body);
}

function gradesTable(trial) {
  const text = (words) => element("td", { class: "text" }, words ? foreign(words) : "–");
  const rows = trial.grades.map((grade) => element("tr", {},
    element("th", { scope: "row", class: "text" }, foreign(`${grade.grader} v${grade.grader_version}`), grade.headline ? " (headline)" : ""),
    element("td", { class: "text number" }, grade.answer === null ? "–" : foreign(grade.answer.length > 80 ? `${grade.answer.slice(0, 79)}…` : grade.answer)),
    element("td", { class: "text" }, badge(grade.outcome)),
    text(grade.classification), text([grade.reason, ...grade.flags].filter(Boolean).join(", ")), text({ true: "yes", false: "no" }[grade.format_ok]),
    element("td", {}, grade.digits_total === null ? "–" : `${grade.digits_right} of ${grade.digits_total}`)));
  const head = ["grader", "answer", "outcome", "class", "reason", "follows format", "digits"];
  return element("section", {}, element("h4", {}, "Grades"), tableOf("Grades", head, rows, ...head.slice(0, -1)));
}

function factsOf(trial) {
  const facts = [
    ["run", trial.run], ["condition", trial.condition], ["style", trial.style], ["answered by", trial.model_served],
    ["finish reason", trial.finish_reason], ["error", trial.error_kind], ["HTTP status", trial.http_status],
    ["tokens", `${count(trial.input_tokens)} in, ${count(trial.output_tokens)} out${trial.reasoning_tokens === null ? "" : `, ${count(trial.reasoning_tokens)} of it reasoning`}`],
    ["cost", dollars(trial.cost_usd)], ["latency", trial.latency_s === null ? null : seconds(trial.latency_s)],
    ["attempts", trial.attempts], ["finished", moment(trial.finished_at)], ["trial_id", trial.trial_id],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element("details", { class: "facts" }, element("summary", {}, "Tokens, cost, times, ids"),
    element("dl", { class: "versus" }, facts.flatMap(([name, value]) => [element("dt", {}, name), foreign(value, "dd")])));
}
