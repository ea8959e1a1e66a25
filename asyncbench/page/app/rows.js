// From cells to the rows of each chart: the same columns, order and figures as charts/rows.py has them.

const Z = 1.959963984540054;
const MOST_SERIES = 8;
const MOST_CROSSING = 4; // lines with intervals that people follow where they cross often

/** Return sums of cells by a key: Map of key → {first: the first cell, sums: by column}. */
function summed(cells, keyOf) {
  const groups = new Map();
  for (const cell of cells) {
    const key = keyOf(cell);
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { first: cell, sums: {} }));
    for (const name of page.summed) group.sums[name] = (group.sums[name] ?? 0) + (cell[name] ?? 0);
  }
  return groups;
}

/** Return a key of several values that no other values have. */
function keyed(...values) {
  return JSON.stringify(values);
}

/** Return how often the problems of cells, or of sums over cells, were asked, in the mean. */
function repeatsOf(cells) {
  const independent = cells.reduce((sum, cell) => sum + (cell.independent ?? 0), 0);
  return independent ? cells.reduce((sum, cell) => sum + cell.trials, 0) / independent : 1;
}

/** Return the 95 % interval of a share by Wilson's score, in which a problem counts once; [null, null] without trials. */
function wilson(successes, asked, repeats = 1) {
  if (!asked) return [null, null];
  const [share, trials] = [successes / asked, asked / repeats];
  const shrunk = 1 + (Z * Z) / trials;
  const centre = (share + (Z * Z) / (2 * trials)) / shrunk;
  const half = (Z * Math.sqrt((share * (1 - share)) / trials + (Z * Z) / (4 * trials * trials))) / shrunk;
  return [successes === 0 ? 0 : centre - half, successes === asked ? 1 : centre + half];
}

/** Return {value, low, high, trials} of a metric over sums; null where it is unknown. */
function measured(metric, sums) {
  const [over, under] = [metric.over, metric.under].map((names) => names.reduce((sum, name) => sum + (sums[name] ?? 0), 0));
  if (!under) return { value: null, low: null, high: null, trials: under };
  const [low, high] = metric.interval ? wilson(over, under, repeatsOf([sums])) : [null, null];
  return { value: (metric.scale * over) / under, low, high, trials: under };
}

/** Return an order of texts that is the same everywhere. */
function inOrder(a, b) {
  return a < b ? -1 : Number(a > b);
}

/** Return cells with the most accurate model's first; equals as they were planned, as in the standings. */
function bestFirst(cells) {
  const best = new Map();
  for (const [name, { sums }] of summed(cells, (cell) => cell.name)) best.set(name, measured(page.metrics.accuracy, sums).value ?? 0);
  return cells.toSorted((a, b) => best.get(b.name) - best.get(a.name) || a.asked - b.asked);
}

function namesOf(cells) {
  return [...new Set(cells.map((cell) => cell.name))];
}

// ── one metric, compared ─────────────────────────────────────────────────────────────────────

function barsRows(cells, metric, by) {
  const field = by === "task" ? "called" : by;
  const rows = [...summed(cells, (cell) => keyed(cell.name, cell[field])).values()].map(({ first, sums }) => {
    const found = measured(metric, sums);
    return { panel: by ? first[field] : "", model: first.name, ...found, label: written(metric, found.value) };
  });
  return rows.sort((a, b) => inOrder(a.panel, b.panel));
}

/** Return a value as charts write it. */
function written(metric, value) {
  if (value === null) return "-";
  if (metric.share) return percent(value);
  const figure = threeDigits(value);
  return metric.unit.startsWith("USD") ? `$${figure}` : figure;
}

function lengthRows(cells, metric) {
  const known = cells.filter((cell) => cell.length !== null);
  const places = new Map(namesOf(cells).map((name, place) => [name, place]));
  const rows = [...summed(known, (cell) => keyed(cell.name, cell.called, cell.length)).values()].map(({ first, sums }) => {
    const { value, trials } = measured(metric, sums);
    return { panel: first.name, task: first.called, length: first.length, value, trials };
  });
  return rows.sort((a, b) => places.get(a.panel) - places.get(b.panel) || inOrder(a.task, b.task) || a.length - b.length);
}

function depthRows(cells, metric) {
  return lengthRows(cells.filter((cell) => cell.suite === "llm_arithmetic"), metric);
}

function taskRows(cells, metric) {
  return [...summed(cells, (cell) => keyed(cell.name, cell.called)).values()].map(({ first, sums }) => {
    const { value, trials } = measured(metric, sums);
    return { model: first.name, task: first.called, value, trials };
  });
}

function outcomeRows(cells) {
  return [...summed(cells, (cell) => cell.name).values()].flatMap(({ first, sums }) =>
    page.outcomes
      .map((outcome, place) => ({ model: first.name, outcome, place, trials: sums[outcome], share: sums[outcome] / sums.trials }))
      .filter((row) => row.trials));
}

// ── accuracy against something ───────────────────────────────────────────────────────────────

function frontierRows(cells, against) {
  const rows = [];
  for (const { first, sums } of summed(inCommon(askedMuch(placedOn(cells, against))), (cell) => cell.name).values()) {
    const x = measured(page.metrics[against], sums).value;
    const { value, low, high, trials } = measured(page.metrics.accuracy, sums);
    if (x !== null) rows.push({ model: first.name, x, value, low, high, trials });
  }
  const ahead = front(rows);
  return rows.map((row) => ({ ...row, front: ahead.has(row.model) }));
}

/** Return over what the models of a frontier are compared; null: over all that any was asked. */
function frontierNote(cells, against) {
  const every = placedOn(cells, against);
  const placed = askedMuch(every);
  if (!askedByAll(placed).size) return placed.length ? UNLIKE : null;
  const [compared, tasks] = [inCommon(placed), every].map((those) => new Map(those.map((cell) => [taskOf(cell), cell])));
  const shown = new Set(namesOf(placed));
  const leftOut = namesOf(every).filter((name) => !shown.has(name)).sort(inOrder);
  const without = leftOut.length ? `; without ${listed(leftOut)}, asked less than half of the tasks` : "";
  if (compared.size === tasks.size) return without ? `On all ${count(tasks.size)} tasks${without}` : null;
  return `On the ${count(compared.size)} of ${count(tasks.size)} tasks that all models were asked (${tasksListed([...compared.values()])})${without}`;
}

/** Return the suites of tasks, and the tasks themselves where they are few. */
function tasksListed(cells) {
  const suites = [...new Set(cells.map((cell) => cell.suite))].sort(inOrder).join(", ");
  return cells.length > MOST_TASKS ? suites : `${suites}: ${cells.map((cell) => cell.called).sort(inOrder).join(", ")}`;
}

function listed(names) {
  const more = names.length > MOST_LEFT_OUT ? ` and ${count(names.length - MOST_LEFT_OUT)} more` : "";
  return names.slice(0, MOST_LEFT_OUT).join(", ") + more;
}

const MOST_TASKS = 3;
const MOST_LEFT_OUT = 4;

const UNLIKE = "No task was asked of all models, so they are compared on different problems";

/** Return the cells of the models that have a place on a frontier: that replied at all, at a known price. */
function placedOn(cells, against) {
  const groups = [...summed(cells, (cell) => cell.name)];
  const known = groups.filter(([, { sums }]) => sums.trials > sums.failed && measured(page.metrics[against], sums).value !== null);
  const names = new Set(known.map(([name]) => name));
  return cells.filter((cell) => names.has(cell.name));
}

/** Return the cells of the tasks that all were asked; all cells where there is no such task. */
function inCommon(cells) {
  const common = askedByAll(cells);
  return common.size ? cells.filter((cell) => common.has(taskOf(cell))) : cells;
}

/** Return the cells of the models that were asked half of all the tasks or more, where most were. */
function askedMuch(cells) {
  const all = new Set(cells.map(taskOf)).size;
  const groups = [...Map.groupBy(cells, (cell) => cell.name)];
  const kept = new Set(groups.filter(([, those]) => 2 * new Set(those.map(taskOf)).size >= all).map(([name]) => name));
  return 2 * kept.size > groups.length ? cells.filter((cell) => kept.has(cell.name)) : cells;
}

function askedByAll(cells) {
  const tasks = [...Map.groupBy(cells, (cell) => cell.name).values()].map((those) => new Set(those.map(taskOf)));
  return new Set([...tasks[0] ?? []].filter((task) => tasks.every((those) => those.has(task))));
}

function taskOf(cell) {
  return keyed(cell.suite, cell.called);
}

/** Return the models that nothing dominates: nobody has as much for less, nor more for as little; equals together. */
function front(rows) {
  const ahead = new Set();
  let best = { x: 0, value: -1 };
  for (const row of rows.toSorted((a, b) => a.x - b.x || b.value - a.value)) {
    if (row.value < best.value || (row.value === best.value && row.x > best.x)) continue;
    ahead.add(row.model);
    best = row;
  }
  return ahead;
}

function frontierCostRows(cells) {
  const rows = frontierRows(cells, "cost");
  const least = Math.min(...rows.map((row) => row.x).filter((x) => x > 0));
  const free = (Number.isFinite(least) ? least : 1) / 3; // what costs nothing has no place on a scale of logs
  return withNames(rows.map((row) => ({ ...row, cost: row.x, x: row.x || free })), "log");
}

/** Return the same against reasoning tokens; none where nobody reasoned. */
function frontierReasoningRows(cells) {
  const rows = frontierRows(cells, "reasoning_tokens");
  return rows.some((row) => row.x) ? withNames(rows, "sqrt") : [];
}

function curveRows(cells) {
  const groups = new Map();
  for (const [panel, series, cell] of parted(cells)) {
    const key = keyed(panel, series);
    if (!groups.has(key)) groups.set(key, { panel, series, those: [] });
    groups.get(key).those.push(cell);
  }
  return [...groups.values()].flatMap(({ panel, series, those }) => {
    const points = those.map((cell) => [cell.length, cell.correct, cell.trials - cell.failed]);
    return curveOf(points, repeatsOf(those)).map((row) => ({ panel, series, ...row }));
  });
}

/** Return [panel, series, cell] of each cell of known length, with no more series a panel than colours. */
function parted(cells) {
  const known = cells.filter((cell) => cell.length !== null);
  const [nameOf, models] = [finest(known), namesOf(known)];
  if (models.length > MOST_SERIES && new Set(known.map(nameOf)).size <= MOST_SERIES) {
    return known.map((cell) => [cell.name, nameOf(cell), cell]);
  }
  const shown = new Set(models.slice(0, MOST_SERIES));
  const ofShown = known.filter((cell) => shown.has(cell.name)).map((cell) => [nameOf(cell), cell.name, cell]);
  return ofShown.sort((a, b) => inOrder(a[0], b[0]));
}

/** Return which models the curves leave out; null where they show all. */
function curvesNote(cells) {
  const known = cells.filter((cell) => cell.length !== null);
  const models = namesOf(known).length;
  if (models <= MOST_SERIES || new Set(known.map(finest(known))).size <= MOST_SERIES) return null;
  return `The ${MOST_SERIES} most accurate of ${models} models`;
}

/** Return what tells the curve of a cell: task, and variant and representation where a task has several. */
function finest(cells) {
  const forms = new Map();
  for (const cell of cells) forms.set(cell.called, (forms.get(cell.called) ?? new Set()).add(keyed(cell.variant, cell.representation)));
  return (cell) => (forms.get(cell.called).size > 1 ? [cell.called, cell.variant, cell.representation].filter(Boolean).join(" ") : cell.called);
}

// ── anatomy of errors ────────────────────────────────────────────────────────────────────────

/** Return model × kind of error, the commonest kinds first, the rarer ones together. */
function kindRows(groups) {
  const models = Map.groupBy(groups, (one) => one.asked);
  const all = added(groups.map((one) => one.kinds));
  const kinds = Object.keys(all).sort((a, b) => all[b] - all[a] || inOrder(a, b)).slice(0, MOST_KINDS);
  const rare = Object.keys(all).length > MOST_KINDS;
  return placed(models).flatMap(([asked, those]) => {
    const counts = added(those.map((one) => one.kinds));
    const examined = those.reduce((sum, one) => sum + one.examined, 0);
    const found = kinds.map((kind) => [kind, counts[kind] ?? 0]);
    if (rare) found.push([OTHERS, examined - found.reduce((sum, [, wrong]) => sum + wrong, 0)]);
    return found.map(([kind, wrong]) => ({ model: page.asked[asked].name, kind, wrong, value: wrong / examined }));
  });
}

const OTHERS = "others";
const MOST_KINDS = 12;

/** Return models in the order of the other charts. */
function placed(models) {
  const names = namesOf(page.chosen);
  return [...models].sort(([a], [b]) => names.indexOf(page.asked[a].name) - names.indexOf(page.asked[b].name));
}

function added(counts) {
  const sums = {};
  for (const one of counts) for (const [name, value] of Object.entries(one)) sums[name] = (sums[name] ?? 0) + value;
  return sums;
}

/** Return how often the digit at each place is wrong, by model where there are few. */
function digitRows(groups) {
  const models = Map.groupBy(groups, (one) => one.asked);
  const named = placed(models).map(([asked, those]) => [page.asked[asked].name, those]);
  const ends = [["from the first digit", "from_first"], ["from the last digit", "from_last"]];
  if (models.size > MOST_CROSSING) {
    return named.flatMap(([name, those]) => ends.flatMap(([end, side]) => placesOf(those, side).map((row) => ({ panel: name, series: end, ...row }))));
  }
  return ends.flatMap(([end, side]) => named.flatMap(([name, those]) => placesOf(those, side).map((row) => ({ panel: end, series: name, ...row }))));
}

function placesOf(groups, side) {
  const longest = Math.max(0, ...groups.map((one) => one[side].length));
  return Array.from({ length: longest }, (_, n) => {
    const [errors, answers] = [0, 1].map((i) => groups.reduce((sum, one) => sum + (one[side][n]?.[i] ?? 0), 0));
    const [low, high] = wilson(errors, answers);
    return { position: n + 1, errors, answers, value: answers ? errors / answers : null, low, high };
  }).filter((row) => row.answers);
}

// ── over time, and what is made beforehand ───────────────────────────────────────────────────

/** Return the rows of a chart that came with the page, of the models that are chosen. */
function ofChosenModels(rows, ...fields) {
  const names = new Set(page.asked.filter(chosenModel).flatMap((one) => [one.name, one.model]));
  return rows.filter((row) => fields.some((field) => names.has(row[field])));
}

function chosenModel(asked) {
  return ["model", "condition", "run"].every((key) => state[key] === null || state[key].has(asked[key]));
}
