// The start of the page: read the head, follow the address, show a view.

let head = null; // the block of that name
let state = null; // view, choices and filters, as the address has them
const MARKS = ["SIMULATED", "RECORDED"];
let lastView = 0; // counts views: one that came too late is not shown

const SHOWN = {
  results: ["Results", resultsView],
  answers: ["Answers", answersView],
  errors: ["Errors", errorsView],
  time: ["Time", timeView],
  cost: ["Cost", costView],
  load: ["Load", loadView],
  about: ["About", aboutView],
};

/** Change the state, and show its view. */
function go(change) {
  remember(change);
  return show();
}

/** Go to an address of ours, as a link would. */
function goTo(next) {
  location.hash = hashOf(next);
}

/** Change the address and the state, and leave the screen as it is. */
function remember(change, how = "push") {
  Object.assign(state, change);
  const hash = hashOf(state);
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  history[`${how}State`](null, "", hash);
  followed = hash;
}

/** Show the view of the state. `quietly`: it is the same one with newer figures. */
async function show({ quietly = false } = {}) {
  const request = ++lastView;
  selectRows();
  buildFilters();
  showChoices();
  showTabs();
  hideTip();
  const [title, make] = SHOWN[state.view];
  document.title = `${title} · ${head.title}${head.mark ? ` (${head.mark})` : ""}`;
  document.documentElement.removeAttribute("data-drawn");
  let parts;
  try {
    learnRanges((await source.block("heat")).lengths);
    parts = (await make()).filter((part) => part !== null && part !== undefined);
  } catch (error) {
    parts = [element("p", { class: "note grave", role: "alert" }, `This view cannot be shown: ${plain(error.message)}`)];
  }
  if (request !== lastView) return;
  buildFilters(); // of ranges it is known now
  showChoices();
  const before = positionOf(quietly);
  document.getElementById("view").replaceChildren(...parts);
  document.getElementById("loading").hidden = true;
  restorePosition(before, quietly);
  letGo();
  if (!quietly) announce([title, filterWords()].filter(Boolean).join(": "));
  const top = scrollY;
  await drawAll();
  if (request !== lastView) return; // a later view is coming, which is not drawn yet
  if (scrollY === top) scrollBackTo(before.anchor); // drawings may have grown
  document.documentElement.dataset.drawn = "yes";
}

/** Return your position on the page: what is scrolled, focused and typed. */
function positionOf(quietly) {
  const keyed = [...document.querySelectorAll("#view [data-keep]")];
  const focused = document.activeElement;
  const focus = focused?.id ? `#${CSS.escape(focused.id)}` : pathOf(focused);
  return {
    scrolled: new Map(keyed.filter((one) => one.scrollLeft || one.scrollTop).map((one) => [one.dataset.keep, [one.scrollLeft, one.scrollTop]])),
    drawn: new Map(keyed.filter((one) => one.classList.contains("chart") && one.firstChild).map((one) => [one.dataset.keep, one])),
    anchor: quietly ? anchorOf(focus) : null,
    focus,
    typing: quietly && focused?.id === "text" ? focused : null,
  };
}

/** Put into the address what is open. */
function rememberOpen() {
  const open = [...document.querySelectorAll("#view details[data-keep][open]")].map((one) => one.dataset.keep);
  remember({ open }, "replace");
}

/** Return the element in view, as its selector and place on the screen: the focused one, else a figure. */
function anchorOf(focus) {
  const figures = [...document.querySelectorAll("#view section[id], #view [data-chart]")];
  const ways = [focus, ...figures.map((figure) => (figure.id ? `#${figure.id}` : `[data-chart=${figure.dataset.chart}]`))];
  const seen = ways.filter(Boolean).map((way) => ({ way, ...document.querySelector(way).getBoundingClientRect().toJSON() }));
  return scrollY > 0 ? seen.find(({ top, bottom }) => bottom > 120 && top < innerHeight) ?? null : null;
}

/** Scroll until the element in view is where it was on the screen. */
function scrollBackTo(anchor) {
  const there = anchor && document.querySelector(anchor.way);
  if (there) scrollBy({ top: there.getBoundingClientRect().top - anchor.top, behavior: "instant" });
}

/** Return a selector of the focused element within one that has a name: a heading that folds, or a link in a table. */
function pathOf(focused) {
  const box = focused?.closest?.("#view [data-keep]");
  if (!box) return null;
  const name = `[data-keep=${CSS.escape(box.dataset.keep)}]`;
  if (focused === box) return name;
  return focused.matches("summary") ? `${name} > summary` : focused.matches("a") ? `${name} a[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
}

function restorePosition(before, quietly) {
  for (const one of document.querySelectorAll("#view [data-keep]")) {
    const name = one.dataset.keep;
    if (state.open.includes(name)) one.open = true;
    if (before.scrolled.has(name)) [one.scrollLeft, one.scrollTop] = before.scrolled.get(name);
    if (quietly && before.drawn.has(name)) keepDrawing(before.drawn.get(name), one);
  }
  const focused = before.focus && document.querySelector(before.focus);
  if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
  if (before.typing) typeOn(before.typing);
  scrollBackTo(before.anchor);
}

/** Go on with what was typed into a search box that another one has replaced. */
function typeOn(old) {
  const search = document.getElementById("text");
  if (search === null) return;
  [search.value, search.selectionStart, search.selectionEnd] = [old.value, old.selectionStart, old.selectionStart];
  if (search.value !== state.text) search.dispatchEvent(new Event("input")); // the old one is no longer on the page
}

/** Show what was drawn until it is drawn anew; if its rows and colours are the same, it stays. */
function keepDrawing(old, fresh) {
  const same = old.toDraw.dark === fresh.toDraw.dark && JSON.stringify(old.toDraw.rows) === JSON.stringify(fresh.toDraw.rows);
  fresh.replaceChildren(...old.childNodes);
  if (!same || !drawn.has(old)) return;
  drawn.set(fresh, drawn.get(old));
  drawn.delete(old);
}

function buildTabs() {
  const tabs = viewsShown().map((name) => element("li", {}, element("a", { href: "#", "data-view": name, onclick: openTab }, SHOWN[name][0])));
  document.getElementById("tabs").replaceChildren(...tabs);
}

function openTab(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go({ ...OF_ANSWERS, view: event.currentTarget.dataset.view });
  scrollTo({ top: 0, behavior: "instant" });
}

function showTabs() {
  for (const tab of document.querySelectorAll("#tabs a")) {
    tab.href = hashOf({ ...state, ...OF_ANSWERS, view: tab.dataset.view });
    if (tab.dataset.view === state.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

/** Announce a change to screen readers. */
function announce(words) {
  document.getElementById("said").textContent = words;
}

// ── light and dark ───────────────────────────────────────────────────────────────────────────

const DARK = matchMedia("(prefers-color-scheme: dark)");
const PRINT = matchMedia("print");
let theme = null; // chosen by hand; null: as the system has it

function applyTheme() {
  const wanted = PRINT.matches ? "light" : theme ?? (DARK.matches ? "dark" : "light");
  if (document.documentElement.dataset.theme === wanted) return;
  document.documentElement.dataset.theme = wanted;
  const button = document.getElementById("theme");
  button.textContent = wanted === "dark" ? "☀ Light" : "☾ Dark";
  button.setAttribute("aria-label", wanted === "dark" ? "Show in light colours" : "Show in dark colours");
  if (state !== null) show({ quietly: true });
}

function buildTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    theme = isDark() ? "light" : "dark";
    applyTheme();
  });
  for (const query of [DARK, PRINT]) query.addEventListener("change", applyTheme);
  applyTheme();
}

// ── from the start ───────────────────────────────────────────────────────────────────────────

let followed = null; // the address that is shown

function follow() {
  if (location.hash === followed) return;
  const [view, trial] = [state?.view, state?.trial];
  followed = location.hash;
  state = stateFrom(location.hash);
  show();
  if (view !== undefined && (state.view !== view || (state.view === "answers" && !trial))) scrollTo({ top: 0, behavior: "instant" });
}

async function readHead() {
  const [read, drawing] = await Promise.all([source.block("head"), specs === null ? source.block("specs") : null]);
  head = read;
  if (drawing !== null) [specs, themes] = [drawing.specs, drawing.themes];
  if (!head.mark && head.load_calls) await markOfLoad();
  document.getElementById("title").replaceChildren(foreign(head.title));
  const mark = document.getElementById("mark");
  mark.hidden = !head.mark;
  mark.classList.toggle("simulated", head.mark === "SIMULATED");
  mark.title = head.mark_words;
  if (head.mark) mark.replaceChildren(element("b", {}, head.mark), noted(` ${markWords()}`)); // a phone has room for the word
  buildTabs();
  const sample = LIVE ? null : await source.block("sample");
  document.getElementById("foot").replaceChildren(foreign(`Made by asyncbench ${head.version} on ${moment(head.made_at)}. ${sample?.rule ?? ""}`), element("span", { class: "mark-words" }, foreign(` ${head.mark_words}`)));
}

/** Take the mark of a load for that of the page: there may be no other answers. */
async function markOfLoad() {
  const words = (await source.block("loads")).simulated_load;
  [head.mark, head.mark_words] = [MARKS.find((mark) => words.includes(mark)) ?? "", words];
}

/** Return what the mark means, without the word itself; of folders that differ it begins with their names. */
function markWords() {
  const [folders, ...rest] = head.mark_words.split(head.mark);
  const words = rest.join(head.mark).replace(/^[.:]?\s*/, "");
  return folders ? folders + words : words.slice(0, 1).toUpperCase() + words.slice(1);
}

async function start() {
  buildTheme();
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    showTrouble(event.reason);
  });
  await begin().catch(showTrouble);
  if (LIVE) pollForever();
}

/** Show an error; the view stays. */
function showTrouble(error) {
  const line = document.getElementById("loading");
  line.hidden = false;
  line.textContent = `This cannot be shown: ${plain(error.message)}${LIVE ? "" : ". It needs a browser from 2024 or later."}`;
}

async function begin() {
  const now = LIVE ? await source.now() : null;
  version = now?.version ?? null;
  await readHead();
  showAge(now);
  if (!LIVE) setInterval(() => showAge(null), 60_000);
  document.getElementById("help").addEventListener("click", showKeys);
  document.addEventListener("keydown", onKey);
  document.getElementById("view").addEventListener("toggle", rememberOpen, true);
  document.addEventListener("pointerdown", closeChoices);
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 200);
  });
  state = stateFrom(location.hash);
  followed = location.hash;
  remember({}, "replace"); // places that were numbers become names
  const shown = show();
  document.documentElement.dataset.ready = "yes";
  await shown;
}

start();
