// Answers: a list of those that match, and the chosen one beside it.

const OUTCOME_WORDS = {
  correct: "The answer equals the expected value exactly.",
  wrong: "The answer is not the expected value.",
  no_answer: "The reply has no answer that the grader can read.",
  truncated: "The provider cut off the reply.",
  refused: "The provider or the model refused to answer.",
  failed: "No reply came.",
};
let listed = null; // what the list shows: {found, page, pages, rows}
let lastList = 0; // counts requests for the list: one that came too late is not shown

async function answersView() {
  const versus = state.versus.length === 2 ? await versusTools() : null;
  const list = element("div", { class: "list", id: "trial-list" });
  const detail = element("div", { class: "detail", id: "trial" });
  await fillList(list, detail);
  return [
    element("h2", { class: "visually-hidden" }, "Answers"),
    searchTools(), versus, chipsOfAnswers(),
    element("div", { class: "trials" }, list, detail),
  ];
}

function searchTools() {
  const search = element("input", { type: "search", id: "text", value: state.text, placeholder: "question, reply, answer, error or id", "aria-keyshortcuts": "/" });
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search.isConnected && browse({ text: search.value }), 200);
  });
  const disagree = element("input", { type: "checkbox", id: "disagree", onchange: (event) => browse({ disagree: event.target.checked ? "yes" : "" }) });
  disagree.checked = state.disagree !== "";
  return element("div", { class: "tools searching", role: "search" },
    element("label", { class: "field wide" }, "Search (/)", search),
    element("label", { class: "tick" }, disagree, "graders disagree"));
}

/** Return what the answers are narrowed to by a click on a figure: [words, the change that lets go of it]. */
function narrowings() {
  const narrowed = [];
  const several = (places, list, name) => (places.length === 1 ? plain(list[places[0]]?.[name] ?? "?") : `${places.length} ${name === "short" ? "models" : "tasks"}`);
  if (state.asked.length) narrowed.push([several(state.asked, head.entrants, "short"), { asked: [] }]);
  if (state.kind.length) narrowed.push([several(state.kind, head.kinds, "called"), { kind: [] }]);
  if (state.least !== "" || state.most !== "") narrowed.push([state.least === state.most ? `length ${state.least}` : `length ${state.least || "any"} to ${state.most || "any"}`, { least: "", most: "" }]);
  if (state.error) narrowed.push([errorWords(state.error), { error: "" }]);
  if (state.position) narrowed.push([`digit ${state.position} from the ${state.end || "first"} is wrong`, { end: "", position: "" }]);
  if (state.since !== "" || state.until !== "") narrowed.push([`finished ${timeWords(state.since, state.until)}`, { since: "", until: "" }]);
  if (state.question) narrowed.push(["one question", { question: "" }]);
  if (state.versus.length) narrowed.push(["one is right, the other is not", { versus: [] }]);
  return narrowed;
}

function timeWords(since, until) {
  const at = (ms) => moment(Number(ms) / 1000).replace(" UTC", "");
  return [since && `from ${at(since)}`, until && `until ${at(until)} UTC`].filter(Boolean).join(" ");
}

function chipsOfAnswers() {
  const chips = narrowings().map(([words, change]) => element("li", {},
    element("button", { type: "button", class: "chip", "aria-label": `remove: ${words}`, onclick: () => narrow(change) }, words, element("span", { "aria-hidden": "true" }, " ✕"))));
  return chips.length ? element("ul", { class: "chips", "aria-label": "Narrowed to" }, chips) : null;
}

/** Show other answers; the tools stay as they are, so that typing goes on. */
async function browse(change) {
  remember({ page: "1", trial: "", beside: "", ...change });
  showChoices();
  await fillShown();
}

async function fillShown() {
  const list = document.getElementById("trial-list");
  if (list === null) return;
  await fillList(list, document.getElementById("trial"));
  if (!list.isConnected) await fillShown(); // a refresh put another in its place
}

/** Fill the list and what stands beside it; `goesOn`: with more hits of the same search. */
async function fillList(list, detail, goesOn = false) {
  const [request, view] = [++lastList, list.isConnected ? null : lastView];
  const query = queryOfAnswers();
  list.classList.toggle("waiting", !goesOn);
  const listing = await Promise.resolve(query === null ? NONE_FOUND : source.trials(query)).finally(() => list.classList.remove("waiting"));
  if (request !== lastList) return view === lastView ? fillList(list, detail) : undefined; // the coming view has the last query
  listed = listing;
  const shown = state.trial || (goesOn && detail.querySelector("article")?.dataset.trial);
  const current = listed.rows.find((trial) => trial.id === shown) ?? (state.trial ? null : listed.rows[0] ?? null);
  replaceList(list, current?.id ?? state.trial, goesOn);
  if (!goesOn || current?.id !== shown) await showTrial(detail, current?.id ?? state.trial);
  if (isThrough(listing)) announce(`${count(listing.found)} answers found`);
  else setTimeout(() => request === lastList && list.isConnected && fillList(list, detail, true));
}

const NONE_FOUND = { found: 0, page: 1, pages: 1, rows: [] };

/** Return whether a search has looked at everything; a file has no `searched`. */
function isThrough({ searched = 1 }) {
  return searched === 1;
}

/** Put the rows that were found into the list; the focus and what is scrolled to stay. */
function replaceList(list, currentId, goesOn) {
  const [focused, scrolled] = [document.activeElement?.closest("#trial-list li")?.id, list.querySelector("ol")?.scrollTop];
  const items = listed.rows.map((trial) => trialItem(trial, trial.id === currentId));
  if (items.length && !items.some((item) => item.tabIndex === 0)) items[0].tabIndex = 0;
  const rows = element("ol", { role: "listbox", "aria-label": "Answers", "data-keep": "answers", onkeydown: moveInList }, items);
  const nothing = isThrough(listed) ? "No answer matches. Remove a filter." : "No answer so far.";
  list.replaceChildren(pager(), items.length ? rows : element("p", { class: "nothing muted" }, nothing), ...noteOfList());
  if (goesOn && scrolled) rows.scrollTop = scrolled;
  items.find((item) => item.id === focused)?.focus({ preventScroll: true });
}

function noteOfList() {
  const odd = boundsOfRange().odd ? ["Ranges differ in their lengths from task to task, so they do not narrow this list."] : [];
  return [...odd, ...listed.note ? [listed.note] : []].map((words) => noted(words, "p", { class: "list-note muted" }));
}

function trialItem(trial, on) {
  const kind = head.kinds[trial.kind];
  const about = [plain(kind?.called ?? ""), trial.length === null ? "" : `length ${trial.length}`, trial.error ? errorWords(trial.error) : ""].filter(Boolean).join(" · ");
  const item = element("li", { role: "option", id: `t-${trial.id}`, "aria-selected": String(on), tabindex: on ? "0" : "-1", onclick: () => select(item) },
    badge(trial.outcome),
    foreign(oneLine(trial.operands ?? trial.prompt ?? trial.expected ?? trial.id), "span", { class: "what" }),
    element("span", { class: "whose" }, whoOf(trial.asked), ` · ${about}`));
  item.trial = trial;
  return item;
}

function oneLine(text) {
  return String(text).replaceAll(/\s+/g, " ").trim().slice(0, 160);
}

function badge(outcome) {
  return element("span", { class: `badge ${outcome}` }, outcome.replace("_", " "));
}

function pager() {
  const { page, pages, found, of } = listed;
  const pageButton = (to, words, id, label) => element("button", { type: "button", id, "aria-label": label, disabled: to < 1 || to > pages, onclick: () => turnTo(to) }, words);
  const whole = of !== undefined && of !== found ? ` of ${count(of)}` : "";
  const far = isThrough(listed) ? `page ${count(page)} of ${count(pages)}` : `${Math.floor(100 * listed.searched)} % searched`;
  return element("div", { class: "pager" }, pageButton(page - 1, "‹", "earlier", "Previous page"),
    element("span", { id: "found" }, `${count(found)}${whole} · ${far}`), pageButton(page + 1, "›", "later", "Next page"));
}

async function turnTo(to, place = 0) {
  if (to < 1 || to > listed.pages) return;
  const inList = document.activeElement?.closest("#trial-list") !== null;
  await browse({ page: String(to) });
  const items = document.querySelectorAll("#trial-list li");
  const item = items[place < 0 ? items.length - 1 : place];
  if (item) select(item, inList);
}

function moveInList(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !moveTo(event.key)) return;
  event.preventDefault();
  event.stopPropagation();
}

/** Go on in the list as a key says; return whether it said anything. */
function moveTo(key) {
  const items = [...document.querySelectorAll("#trial-list li")];
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: items.length - 1 }[key];
  if (key === "PageDown" || key === "PageUp") turnTo(listed.page + (key === "PageDown" ? 1 : -1));
  else if (to === undefined || !items.length) return false;
  else if (to >= items.length && listed.page < listed.pages) turnTo(listed.page + 1);
  else if (to < 0 && listed.page > 1) turnTo(listed.page - 1, -1);
  else select(items[Math.min(items.length - 1, Math.max(0, to))], true);
  return true;
}

function select(item, focus = false) {
  for (const other of document.querySelectorAll("#trial-list li")) {
    other.setAttribute("aria-selected", String(other === item));
    other.tabIndex = other === item ? 0 : -1;
  }
  if (focus) item.focus();
  remember({ trial: item.trial.id, beside: "" }, "replace");
  showTrial(document.getElementById("trial"), item.trial.id);
  if (!focus && NARROW_SCREEN.matches) document.getElementById("trial").scrollIntoView();
}
