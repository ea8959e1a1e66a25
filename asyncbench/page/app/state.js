// The state of the page. All of it is in the address, so that you can link to a view and go back to it.

const VIEWS = ["results", "answers", "errors", "time", "cost", "load", "about"];
const OF_ENTRANTS = ["model", "condition", "effort", "style", "folder", "run"];
const OF_KINDS = ["suite", "task", "variant", "representation"];
const CHOICES = [...OF_ENTRANTS, ...OF_KINDS, "range", "outcome"];
// What a click on a figure narrows the answers to; other views let go of it.
const NARROWED = { asked: [], kind: [], least: "", most: "", error: "", end: "", position: "", since: "", until: "", question: "" };
const OF_ANSWERS = { ...NARROWED, outcome: null, text: "", disagree: "", page: "1", trial: "", beside: "" };
const DEFAULTS = { view: "results", metric: "accuracy", over: "", by: "", lengths: "", from: "", to: "", ...OF_ANSWERS };
const NUMBERS = ["from", "to", "least", "most", "position", "since", "until"];
const NOTHING = "\u2205"; // stands for an empty choice, which would not show in an address

/** Return the state of an address: DEFAULTS, and for each of CHOICES a set, or null for all. */
function stateFrom(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const entryOf = ([key, usual]) => [key, Array.isArray(usual) ? parameters.getAll(key) : parameters.get(key) ?? usual];
  const state = Object.fromEntries(Object.entries(DEFAULTS).map(entryOf));
  for (const key of ["asked", "kind"]) state[key] = state[key].filter((place) => /^\d+$/.test(place)).map(Number);
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
    if (Array.isArray(usual)) for (const value of state[key]) parameters.append(key, value);
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
