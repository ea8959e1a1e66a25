// The state of the page. All of it is in the address, so that you can link to a view and go back to it.

const VIEWS = ["results", "answers", "errors", "time", "cost", "load", "about"];
const OF_ENTRANTS = ["model", "condition", "effort", "style", "folder", "run"];
const OF_KINDS = ["suite", "task", "variant", "representation"];
const CHOICES = [...OF_ENTRANTS, ...OF_KINDS, "range", "outcome"];
// What a click on a figure narrows the answers to; other views let go of it.
const NARROWED = { asked: [], kind: [], least: "", most: "", error: "", end: "", position: "", since: "", until: "", question: "" };
const OF_ANSWERS = { ...NARROWED, outcome: null, text: "", disagree: "", page: "1", trial: "", beside: "", versus: [], open: [] };
const DEFAULTS = { view: "results", metric: "accuracy", over: "", by: "", lengths: "", from: "", to: "", ...OF_ANSWERS };
const PLACES_IN = { asked: "entrants", versus: "entrants", kind: "kinds", lengths: "kinds" }; // state → list of the head
const NUMBERS = ["from", "to", "least", "most", "position", "since", "until"];
const NOTHING = "\u2205"; // stands for an empty choice, which would not show in an address

/** Return the state of an address: DEFAULTS, and for each of CHOICES a set, or null for all. */
function stateFrom(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const entryOf = ([key, usual]) => [key, Array.isArray(usual) ? parameters.getAll(key) : parameters.get(key) ?? usual];
  const state = Object.fromEntries(Object.entries(DEFAULTS).map(entryOf));
  for (const [key, list] of Object.entries(PLACES_IN)) {
    const places = [state[key]].flat().filter(Boolean).map((name) => placeOf(list, name));
    state[key] = Array.isArray(DEFAULTS[key]) ? places : places[0] >= 0 ? String(places[0]) : "";
  }
  for (const key of NUMBERS) if (!/^\d+(\.\d+)?$/.test(state[key])) state[key] = "";
  if (!viewsShown().includes(state.view)) state.view = viewsShown()[0];
  if (!(state.metric in head.metrics)) state.metric = DEFAULTS.metric;
  if (!head.varied.includes(state.by)) state.by = "";
  for (const key of CHOICES) {
    const chosen = parameters.getAll(key);
    state[key] = chosen.length ? new Set(chosen.filter((value) => value !== NOTHING)) : null;
  }
  return state;
}

/** Return what an address calls an entrant or a kind: its name, for its place is another when others are added. */
function nameIn(list, place) {
  const one = head[list][place];
  return list === "entrants" ? one?.name : OF_KINDS.map((key) => one?.[key] ?? "").join("/").replace(/\/+$/, "");
}

/** Return the place of what an address names, or of a number; -1: there is none. */
function placeOf(list, name) {
  const place = head[list].findIndex((_, at) => nameIn(list, at) === name);
  return place < 0 && /^\d+$/.test(name) && Number(name) < head[list].length ? Number(name) : place;
}

/** Return the views that there is something for. */
function viewsShown() {
  if (!head.load_calls) return VIEWS.filter((view) => view !== "load");
  return head.trials_in_all ? VIEWS : ["load", "about"];
}

/** Return the address of a state: only what is not as usual. */
function hashOf(state) {
  const parameters = new URLSearchParams();
  for (const [key, usual] of Object.entries(DEFAULTS)) {
    if (CHOICES.includes(key)) continue;
    const list = PLACES_IN[key];
    if (Array.isArray(usual)) for (const value of state[key]) parameters.append(key, list ? nameIn(list, value) ?? value : value);
    else if (list && state[key] !== "") parameters.set(key, nameIn(list, state[key]));
    else if (state[key] !== usual) parameters.set(key, state[key]);
  }
  for (const key of CHOICES) {
    if (state[key] === null) continue;
    for (const value of state[key].size ? state[key] : [NOTHING]) parameters.append(key, value);
  }
  return `#${parameters}`;
}

/** Return the address of the answers behind a figure: `query` as the server takes it, and the filters as they are. */
function answersAt(query) {
  const { from, to, outcome, ...narrowed } = query;
  const change = { ...narrowed };
  for (const key of ["asked", "kind"]) if (key in change) change[key] = [change[key]].flat();
  if (from !== undefined && from !== null) change.least = String(from);
  if (to !== undefined && to !== null) change.most = String(to);
  for (const key of ["position", "since", "until"]) if (key in change) change[key] = String(change[key]);
  return { ...state, ...OF_ANSWERS, view: "answers", ...change, outcome: outcome ? new Set([outcome].flat()) : null };
}
