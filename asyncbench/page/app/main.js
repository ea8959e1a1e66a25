// How it all comes together: read the data, follow the address, show a view.

let page = null; // what the file holds
let state = null; // what is looked at

const SHOWN = {
  overview: ["Overview", overviewView],
  tasks: ["Tasks", tasksView],
  length: ["Length", lengthView],
  cost: ["Cost", costView],
  time: ["Time", timeView],
  load: ["Load", loadView],
  errors: ["Errors", errorsView],
  trials: ["Trials", trialsView],
  about: ["About", aboutView],
};

/** Change what is looked at, and show it. */
function go(change) {
  remember(change);
  show();
}

/** Change the address and the state, and leave the screen as it is. */
function remember(change) {
  Object.assign(state, change);
  const hash = hashOf(state);
  if (hash !== location.hash) history.pushState(null, "", hash);
}

function show() {
  page.chosen = bestFirst(page.cells.filter((cell) => chosen(state, cell)));
  showChoices();
  showTabs();
  letGo();
  const [title, view] = SHOWN[state.view];
  document.title = `${title} · ${page.title}${page.simulated ? " (SIMULATED)" : ""}`;
  const focused = document.activeElement?.id;
  document.getElementById("view").replaceChildren(...view().filter((one) => one !== null));
  if (focused && document.activeElement.id !== focused) document.getElementById(focused)?.focus(); // it was made anew
  say(`${title}: ${scope()}`);
}

function buildTabs() {
  const tabs = VIEWS.map((name) => element("li", {}, element("a", { href: "#", "data-view": name, onclick: openTab }, SHOWN[name][0])));
  document.getElementById("tabs").append(...tabs);
}

function openTab(event) {
  event.preventDefault();
  go({ view: event.currentTarget.dataset.view, page: "1", trial: "" });
  scrollTo(0, 0);
}

function showTabs() {
  for (const tab of document.querySelectorAll("#tabs a")) {
    const there = tab.dataset.view === state.view;
    tab.href = hashOf({ ...state, view: tab.dataset.view });
    if (there) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

/** Tell those who listen to the page what has changed. */
function say(words) {
  document.getElementById("said").textContent = words;
}

// ── light and dark ───────────────────────────────────────────────────────────────────────────

const DARK = matchMedia("(prefers-color-scheme: dark)");
const PRINT = matchMedia("print");
let theme = null; // chosen by hand; null: as the system has it

function applyTheme() {
  const shown = PRINT.matches ? "light" : theme ?? (DARK.matches ? "dark" : "light");
  if (document.documentElement.dataset.theme === shown) return;
  document.documentElement.dataset.theme = shown;
  const button = document.getElementById("theme");
  button.textContent = shown === "dark" ? "☀ Light" : "☾ Dark";
  button.setAttribute("aria-label", shown === "dark" ? "Show in light colours" : "Show in dark colours");
  if (page !== null) redraw();
}

function buildTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  for (const query of [DARK, PRINT]) query.addEventListener("change", applyTheme);
  applyTheme();
}

// ── from the start ───────────────────────────────────────────────────────────────────────────

function follow() {
  state = stateFrom(location.hash);
  if (!(state.metric in page.metrics)) state.metric = DEFAULTS.metric;
  show();
}

async function start() {
  buildTheme();
  try {
    page = await readAll();
  } catch (error) {
    document.getElementById("loading").textContent = `This page cannot be shown: ${error.message}. It needs a browser from 2024 or later.`;
    return;
  }
  document.getElementById("title").append(foreign(page.title));
  document.getElementById("simulated").hidden = !page.simulated;
  document.getElementById("foot").append(foreign(`Made by asyncbench ${page.version} on ${moment(page.made_at)}. ${page.sample_rule}`));
  if (onlyLoad()) DEFAULTS.view = "load";
  state = stateFrom(location.hash);
  buildTabs();
  buildFilters();
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 200);
  });
  document.getElementById("loading").remove();
  follow();
  document.documentElement.dataset.ready = "yes";
}

start();
