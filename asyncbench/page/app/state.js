// What is being looked at. All of it stands in the address, so that a view can be linked and gone back to.

const VIEWS = ["overview", "tasks", "length", "cost", "time", "load", "errors", "trials", "about"];
const CHOICES = ["model", "condition", "run", "suite", "task", "representation", "variant", "range"];
const DEFAULTS = { view: "overview", metric: "accuracy", by: "suite", from: "", to: "", outcome: "", text: "", disagree: "", page: "1", trial: "" };

/** Return the state that an address tells: DEFAULTS, and for each of CHOICES a set, or null for all. */
function stateFrom(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const state = Object.fromEntries(Object.entries(DEFAULTS).map(([key, usual]) => [key, said.get(key) ?? usual]));
  if (!VIEWS.includes(state.view)) state.view = DEFAULTS.view;
  for (const key of ["from", "to"]) if (!/^\d+$/.test(state[key])) state[key] = "";
  for (const key of CHOICES) {
    const chosen = said.getAll(key);
    state[key] = chosen.length ? new Set(chosen.filter((one) => one !== NOTHING)) : null;
  }
  return state;
}

/** Return whether all answers are to a load. */
function onlyLoad() {
  return !page.cells.length && page.load_calls > 0;
}

const NOTHING = "\u2205"; // stands for an empty choice, which would not show in an address

/** Return the address of a state: only what is not as usual. */
function hashOf(state) {
  const said = new URLSearchParams();
  for (const [key, usual] of Object.entries(DEFAULTS)) if (state[key] !== usual) said.set(key, state[key]);
  for (const key of CHOICES) {
    if (state[key] === null) continue;
    for (const one of state[key].size ? state[key] : [NOTHING]) said.append(key, one);
  }
  return `#${said}`;
}

/** Return whether a cell, or a trial, is among what was chosen. */
function chosen(state, one) {
  if (state.from !== "" && !(one.length !== null && one.length >= Number(state.from))) return false;
  if (state.to !== "" && !(one.length !== null && one.length <= Number(state.to))) return false;
  return CHOICES.every((key) => state[key] === null || state[key].has(one[key]));
}

/** Return whether a group that tells no length is among what was chosen. */
function chosenGroup(one) {
  const known = { ...page.asked[one.asked], ...one };
  return CHOICES.every((key) => key === "range" || state[key] === null || state[key].has(known[key]));
}
