// What is chosen: lists of boxes beside the results, and what the address says.

const TITLES = { model: "Models", condition: "Conditions", run: "Runs", suite: "Suites", task: "Tasks", representation: "Representations", variant: "Variants", range: "Ranges" };
const UNNAMED = { variant: "plain", range: "none" };

/** Return the values of a choice, in the order in which models were asked, others by name. */
function valuesOf(key) {
  const found = new Set(page.cells.map((cell) => String(cell[key] ?? "")));
  if (key === "model" || key === "condition" || key === "run") {
    return [...new Set(page.asked.map((one) => one[key]))].filter((one) => found.has(one));
  }
  if (key === "range") return ["S", "M", "L", "XL", ""].filter((one) => found.has(one));
  return [...found].sort(inOrder);
}

/** Return the choices that there are: those with more than one value; runs only where they tell models apart. */
function offered() {
  const several = CHOICES.filter((key) => valuesOf(key).length > 1);
  const named = new Set(page.asked.map((one) => keyed(one.model, one.condition)));
  return several.filter((key) => key !== "run" || named.size < page.asked.length);
}

function buildFilters() {
  document.getElementById("filters").hidden = onlyLoad(); // there is nothing that it could choose from
  const form = document.getElementById("filter-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  const fields = [metricField(), ...offered().map(choiceBox), lengthFields()].filter((field) => field !== null);
  form.append(...fields, element("button", { type: "button", id: "reset", onclick: reset }, "Show everything"));
  if (matchMedia("(max-width: 62rem)").matches) document.getElementById("filter-box").open = false;
}

function metricField() {
  const known = Object.entries(page.metrics).filter(([, metric]) => page.cells.some((cell) => measured(metric, cell).value !== null));
  const options = known.map(([name, metric]) => element("option", { value: name }, metric.title));
  const select = element("select", { id: "metric", onchange: (event) => go({ metric: event.target.value }) }, options);
  return element("label", { class: "field" }, "Metric", select);
}

function choiceBox(key) {
  const boxes = valuesOf(key).map((value) => {
    const box = element("input", { type: "checkbox", name: key, value, onchange: () => choose(key) });
    return element("label", {}, box, foreign(value || UNNAMED[key] || "none"));
  });
  const either = element("div", { class: "either" },
    element("button", { type: "button", class: "link", onclick: () => go({ [key]: null }) }, "all"),
    element("button", { type: "button", class: "link", onclick: () => go({ [key]: new Set() }) }, "none"));
  return element("details", { class: "choice", "data-choice": key },
    element("summary", {}, TITLES[key], element("span", { class: "muted" })),
    element("fieldset", {}, element("legend", { class: "visually-hidden" }, TITLES[key]), either, boxes));
}

function lengthFields() {
  const known = page.cells.map((cell) => cell.length).filter((length) => length !== null);
  if (!known.length) return null;
  const [least, most] = [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
  const field = (key, title, usual) => element("label", { class: "field" }, title,
    element("input", { type: "number", id: key, min: 0, max: most, placeholder: usual, onchange: (event) => go({ [key]: event.target.value }) }));
  return element("div", { class: "pair" }, field("from", "Length from", least), field("to", "to", most));
}

function choose(key) {
  const boxes = [...document.querySelectorAll(`input[name="${key}"]`)];
  const on = boxes.filter((box) => box.checked).map((box) => box.value);
  go({ [key]: on.length === boxes.length ? null : new Set(on) });
}

function reset() {
  const all = Object.fromEntries(CHOICES.map((key) => [key, null]));
  go({ ...all, from: "", to: "" });
}

/** Put into the controls what the state says. */
function showChoices() {
  document.getElementById("metric").value = state.metric;
  for (const key of ["from", "to"]) {
    const field = document.getElementById(key);
    if (field !== null) field.value = state[key];
  }
  for (const box of document.querySelectorAll(".choice")) {
    const key = box.dataset.choice;
    const boxes = [...box.querySelectorAll("input")];
    for (const one of boxes) one.checked = state[key] === null || state[key].has(one.value);
    box.querySelector("summary .muted").textContent = state[key] === null ? "all" : `${state[key].size} of ${boxes.length}`;
  }
  const trials = page.chosen.reduce((sum, cell) => sum + cell.trials, 0);
  document.getElementById("filter-count").textContent = `${count(trials)} of ${count(page.trials_in_all)} trials`;
}

/** Return in words what is shown. */
function scope() {
  if (state.view === "load" && page.load_calls) return `${count(page.load_calls)} calls under load`;
  const parts = CHOICES.filter((key) => state[key] !== null).map((key) => {
    const values = [...state[key]].map((value) => value || UNNAMED[key] || "none");
    const told = values.length > 4 ? `${values.slice(0, 3).join(", ")} and ${values.length - 3} more` : values.join(", ") || "none";
    return `${TITLES[key].toLowerCase()}: ${told}`;
  });
  if (state.from !== "" || state.to !== "") parts.push(`length ${state.from || "any"} to ${state.to || "any"}`);
  const trials = page.chosen.reduce((sum, cell) => sum + cell.trials, 0);
  return `${count(trials)} trials${parts.length ? ` — ${parts.join("; ")}` : ", no filter"}`;
}
