// The filters: a bar of lists with boxes above the results.

const TITLES = { model: "Models", condition: "Conditions", effort: "Effort", style: "Wording", folder: "Folders", run: "Runs", suite: "Suites", task: "Tasks", variant: "Variants", representation: "Numbers", range: "Ranges", outcome: "Outcomes" };
const BY_WORDS = { condition: "condition", effort: "effort", style: "wording", folder: "folder", run: "run" };

/** Return the choices that there are: those with more than one value; of entrants beyond models, those that vary. */
function offered() {
  const varied = new Set(["model", ...head.varied]);
  return CHOICES.filter((key) => valuesOf(key).length > 1 && (!OF_ENTRANTS.includes(key) || varied.has(key)));
}

const NARROW_SCREEN = matchMedia("(max-width: 62rem)"); // the bar is folded there
NARROW_SCREEN.addEventListener("change", () => { document.getElementById("filter-box").open = !NARROW_SCREEN.matches; });

/** Put the bar of filters together, if what can be chosen is not what it already offers. */
function buildFilters() {
  const bar = document.getElementById("filters");
  const offer = JSON.stringify([offered().map((key) => [key, valuesOf(key)]), head.varied, head.lengths]);
  if (bar.offer === offer) return;
  bar.offer = offer;
  const count = element("span", { id: "filter-count", class: "muted" });
  const form = element("form", { id: "filter-form" }, byField(), offered().map(choiceBox), lengthFields(),
    element("button", { type: "button", id: "reset", class: "link", onclick: reset, "aria-keyshortcuts": "r" }, "Reset (r)"));
  form.addEventListener("submit", (event) => event.preventDefault());
  const box = element("details", { id: "filter-box" }, element("summary", {}, "Filter ", count), form);
  box.open = !NARROW_SCREEN.matches;
  bar.replaceChildren(box);
}

function byField() {
  if (!head.varied.length) return null;
  const select = element("select", { id: "by", onchange: (event) => go({ by: event.target.value }) },
    element("option", { value: "" }, "model"), head.varied.map((name) => element("option", { value: name }, BY_WORDS[name])));
  return element("label", { class: "field" }, "Colours by", select);
}

function choiceBox(key) {
  const lines = valuesOf(key).map((value) => {
    const words = key === "outcome" ? value.replace("_", " ") : value || UNNAMED[key] || "none";
    const box = element("input", { type: "checkbox", name: key, value, onchange: () => choose(key) });
    const only = element("button", { type: "button", class: "link only", "aria-label": `only ${plain(words)}`, onclick: () => narrow({ [key]: new Set([value]) }) }, "only");
    return element("li", {}, element("label", {}, box, foreign(words)), only);
  });
  const all = element("button", { type: "button", class: "link", onclick: () => narrow({ [key]: null }) }, "all");
  return element("details", { class: "choice", "data-choice": key, ontoggle: closeOthers, onkeydown: closeAtEscape },
    element("summary", {}, TITLES[key], " ", element("span", { class: "chosen" })),
    element("fieldset", {}, element("legend", { class: "visually-hidden" }, TITLES[key]), all, element("ul", {}, lines)));
}

/** Keep one list open at a time: they lie over one another. */
function closeOthers(event) {
  if (!event.target.open) return;
  for (const box of document.querySelectorAll("details.choice[open]")) if (box !== event.target) box.open = false;
}

function closeAtEscape(event) {
  if (event.key !== "Escape" || !event.currentTarget.open) return;
  event.currentTarget.open = false;
  event.currentTarget.querySelector("summary").focus();
}

function closeChoices(event) {
  for (const box of document.querySelectorAll("details.choice[open]")) if (!box.contains(event.target)) box.open = false;
}

function lengthFields() {
  if (head.lengths === null || head.lengths.least === head.lengths.most) return null;
  const { least, most } = head.lengths;
  const field = (key, title, usual) => element("label", { class: "field" }, title,
    element("input", { type: "number", id: key, min: 0, max: most, placeholder: usual, onchange: (event) => narrow({ [key]: event.target.value }) }));
  return [field("from", "Length from", least), field("to", "to", most)];
}

function choose(key) {
  const boxes = [...document.querySelectorAll(`input[name="${key}"]`)];
  const on = boxes.filter((box) => box.checked).map((box) => box.value);
  narrow({ [key]: on.length === boxes.length ? null : new Set(on) });
}

/** Choose something else: the list of answers is another one then, and begins anew. */
function narrow(change) {
  return go({ ...change, page: "1", trial: "", beside: "" });
}

function reset() {
  const all = Object.fromEntries(CHOICES.map((key) => [key, null]));
  go({ ...OF_ANSWERS, ...all, from: "", to: "", by: "" });
}

/** Put into the controls what the state says. */
function showChoices() {
  for (const key of ["from", "to", "by"]) {
    const field = document.getElementById(key);
    if (field !== null) field.value = state[key];
  }
  for (const box of document.querySelectorAll(".choice")) {
    const key = box.dataset.choice;
    const boxes = [...box.querySelectorAll("input")];
    for (const one of boxes) one.checked = state[key] === null || state[key].has(one.value);
    const on = boxes.filter((one) => one.checked);
    const words = state[key] === null ? "all" : on.length === 1 ? plain(on[0].value.replace("_", " ") || UNNAMED[key] || "none") : `${on.length} of ${boxes.length}`;
    box.querySelector("summary .chosen").textContent = words;
    box.classList.toggle("narrowed", state[key] !== null);
    box.hidden = key === "outcome" && state.view !== "answers";
  }
  const words = filterWords();
  document.getElementById("filter-count").textContent = words ? `— ${words}` : "";
  document.getElementById("reset").hidden = words === "" && !state.by && !narrowings().length;
  document.getElementById("filters").hidden = state.view === "about" || state.view === "load" || !head.entrants.length;
}

/** Return in words what is chosen; empty: everything. */
function filterWords() {
  const parts = CHOICES.filter((key) => state[key] !== null).map((key) => {
    const values = [...state[key]].map((value) => plain(value.replace("_", " ") || UNNAMED[key] || "none"));
    const choice = values.length > 3 ? `${values.length} of ${valuesOf(key).length}` : values.join(", ") || "none";
    return `${TITLES[key].toLowerCase()}: ${choice}`;
  });
  if (state.from !== "" || state.to !== "") parts.push(`length ${state.from || "any"} to ${state.to || "any"}`);
  return parts.join("; ");
}
