// The rows that are shown: those of the chosen entrants and kinds. Nothing is summed, so a filter only leaves rows out.

const UNNAMED = { variant: "plain", range: "none", effort: "none", style: "none", representation: "none" };
let chosenEntrants = new Set(); // places in head.entrants
let chosenKinds = new Set(); // places in head.kinds

function selectRows() {
  const places = (list, keys) => new Set([...list.keys()].filter((n) => keys.every((key) => state[key] === null || state[key].has(valueOf(list[n], key)))));
  chosenEntrants = places(head.entrants, OF_ENTRANTS);
  chosenKinds = places(head.kinds, OF_KINDS);
}

function valueOf(one, key) {
  return String(one[key] ?? "");
}

/** Return the rows of what is chosen: by who was asked, by kind, and by length and range where rows have one. */
function kept(rows) {
  return (rows ?? []).filter((row) => (row.asked ?? null) === null || chosenEntrants.has(row.asked))
    .filter((row) => (row.kind ?? null) === null || chosenKinds.has(row.kind))
    .filter((row) => !("length" in row) || inLengths(row))
    .filter((row) => !("range" in row) || state.range === null || state.range.has(row.range ?? ""));
}

/** Return whether a length, or all of a bin of lengths, is among the chosen ones. */
function inLengths(row) {
  const [least, most] = [row.from ?? row.length, row.to ?? row.length];
  if (state.from !== "" && !(least !== null && least >= Number(state.from))) return false;
  return state.to === "" || (most !== null && most <= Number(state.to));
}

const NO_FILTER = { entrants: false, kinds: false, lengths: false }; // which a figure of all can follow

/** Return which active filters a figure cannot follow, in one line; empty where it follows all. */
function unfollowed({ entrants = true, kinds = true, lengths = true } = {}) {
  const active = (keys) => keys.some((key) => state[key] !== null);
  const ignored = [
    [!entrants && active(OF_ENTRANTS), "all models"],
    [!kinds && active(OF_KINDS), "all tasks"],
    [!lengths && (active(["range"]) || state.from !== "" || state.to !== ""), "all lengths"],
  ].filter(([not]) => not).map(([, words]) => words);
  return ignored.length ? `These are figures of ${ignored.join(" and ")}: your filter cannot narrow them.` : "";
}

// ── the same, asked of trials ───────────────────────────────────────────────────────────────

/** Return the query for the answers that are asked for; null where nothing can be among them. */
function queryOfAnswers() {
  const [one, versus = ""] = state.versus;
  const asked = bothOf(chosenEntrants, head.entrants, one === undefined ? state.asked : [one]);
  const kind = bothOf(chosenKinds, head.kinds, state.kind);
  const range = boundsOfRange();
  const [from, to] = [highest(state.from, state.least, range.from), lowest(state.to, state.most, range.to)];
  if (asked === null || kind === null || (state.outcome !== null && !state.outcome.size)) return null;
  const { error, end, position, since, until, question, text, disagree, page } = state;
  return { asked, versus, kind, outcome: [...state.outcome ?? []], from, to, error, end, position, since, until, question, text, disagree, page };
}

/** Return the places that are both chosen and narrowed to; none: all of them; null: no place is both. */
function bothOf(chosen, all, narrowed) {
  if (!narrowed.length) return chosen.size === 0 && all.length ? null : chosen.size === all.length ? [] : [...chosen];
  const both = narrowed.filter((place) => chosen.has(place));
  return both.length ? both : null;
}

function highest(...limits) {
  return pickLimit(Math.max, limits);
}

function lowest(...limits) {
  return pickLimit(Math.min, limits);
}

function pickLimit(pick, limits) {
  const known = limits.filter((limit) => limit !== "").map(Number);
  return known.length ? String(pick(...known)) : "";
}

let lengthsOfRanges = new Map(); // range → [least, most], or null where kinds differ in it

/** Return the lengths that the chosen range stands for; `odd` where it is no single span of lengths. */
function boundsOfRange() {
  if (state.range === null) return { from: "", to: "", odd: false };
  const spans = [...state.range].map((range) => lengthsOfRanges.get(range) ?? null);
  if (spans.length !== 1 || spans[0] === null) return { from: "", to: "", odd: true };
  return { from: String(spans[0][0]), to: String(spans[0][1]), odd: false };
}

/** Learn which lengths each range has, from rows that tell both. */
function learnRanges(rows) {
  const byKind = Map.groupBy(rows.filter((row) => row.range), (row) => row.range);
  lengthsOfRanges = new Map([...byKind].map(([range, those]) => {
    const spans = [...Map.groupBy(those, (row) => row.kind).values()]
      .map((some) => [leastOf(some.map((row) => row.from ?? row.length)), mostOf(some.map((row) => row.to ?? row.length))]);
    const alike = spans.every(([least, most]) => least === spans[0][0] && most === spans[0][1]);
    return [range, alike ? spans[0] : null];
  }));
}

function leastOf(numbers) {
  return numbers.reduce((a, b) => Math.min(a, b), Infinity);
}

function mostOf(numbers) {
  return numbers.reduce((a, b) => Math.max(a, b), -Infinity);
}

// ── names and colours ───────────────────────────────────────────────────────────────────────

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function colourOf(entrant) {
  return isDark() ? entrant.dark : entrant.light;
}

const MOST_LIT = 8; // lines of a panel that people tell apart

/** Return rows with the names and colours that their places stand for, as `charts/styling.py` has it.

 * By what was varied, its values have the colours; `own_model` is what entrants that differ in it share.
 */
function named(rows) {
  const values = variedValues();
  const lit = litEntrants(new Set(rows.map((row) => row.asked)));
  return rows.map((row) => {
    const entrant = head.entrants[row.asked];
    const kind = head.kinds[row.kind];
    const names = { ...row, ...kind ? { task: plain(kind.called) } : {}, ...entrant ? { model: plain(entrant.short) } : {} };
    if (!entrant) return names;
    if (!state.by) return { ...names, colour: colourOf(entrant), lit: lit.has(row.asked) };
    const value = valueOf(entrant, state.by);
    return { ...names, own_model: shortModel(entrant), value_of: plain(value || UNNAMED[state.by] || "none"), colour: varies(entrant) ? paletteAt(values.indexOf(value)) : themes[isDark() ? "dark" : "light"].style.plain.color, lit: true };
  });
}

/** Return whether the entrants of a model differ in what colours are by. */
function varies({ model }) {
  return new Set(head.entrants.filter((one) => one.model === model).map((one) => valueOf(one, state.by))).size > 1;
}

/** Return the values in which entrants of one model differ, in the order of the head. */
function variedValues() {
  return state.by ? [...new Set(head.entrants.filter(varies).map((one) => valueOf(one, state.by)))] : [];
}

/** Return the entrants whose lines have their colour: all, or the best of many. */
function litEntrants(there) {
  const best = ranks.filter((place) => there.has(place));
  const order = [...best, ...[...there].filter((place) => !best.includes(place))];
  return new Set(order.length > MOST_LIT ? order.slice(0, MOST_LIT) : order);
}

let ranks = []; // the entrants, the best first

function learnRanks({ rankings }) {
  ranks = rankings[0]?.lines.map((line) => line.asked) ?? [];
}

function paletteAt(place) {
  const palette = themes[isDark() ? "dark" : "light"].range.category;
  return palette[place % palette.length];
}

/** Return a model's own name, without condition and the beginning that all models share. */
function shortModel(entrant) {
  const models = [...new Set(head.entrants.map((one) => one.model))];
  const shared = models.length > 1 ? models.reduce(sameBeginning) : "";
  const cut = Math.max(shared.lastIndexOf("/"), shared.lastIndexOf(":")) + 1;
  return plain(entrant.model.slice(cut));
}

function sameBeginning(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return one.slice(0, at);
}

/** Return the name of an entrant with its colour before it. */
function whoOf(place, tag = "span") {
  const entrant = head.entrants[place];
  const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.setProperty("background", colourOf(entrant));
  return element(tag, { class: "who", title: plain(entrant.name) }, swatch, foreign(entrant.short));
}

/** Return the values of a choice, in the order of the head. */
function valuesOf(key) {
  if (key === "outcome") return head.outcomes;
  if (key === "range") return ["S", "M", "L", "XL"].filter((range) => lengthsOfRanges.has(range));
  const list = OF_ENTRANTS.includes(key) ? head.entrants : head.kinds;
  return [...new Set(list.map((one) => valueOf(one, key)))];
}
