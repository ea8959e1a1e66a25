// An answer laid on the expected value by the edit that explains it: what is the same, and what is not.

const EDITS = {
  same: "the same",
  replaced: "replaced",
  missing: "missing in the answer",
  extra: "too much in the answer",
  swapped: "swapped",
  carry: "off by a carry",
  moved: "moved",
};
const CHUNK = 3; // signs of what is the same that stay on one line
const GAP = "·"; // stands where the other has a sign

/** Return both lines, one under the other, in columns that stay together where lines break. */
function alignedPair(aligned) {
  const columns = aligned.flatMap(([op, right, read]) => {
    const [expected, answer] = [[...right ?? ""], [...read ?? ""]];
    if (op !== "same" || right !== read) return [columnOf(op, expected, answer)]; // zeros at the end say the same
    return Array.from({ length: Math.ceil(expected.length / CHUNK) }, (_, n) => {
      const part = expected.slice(n * CHUNK, (n + 1) * CHUNK);
      return columnOf(op, part, part);
    });
  });
  return element("div", {},
    element("div", { class: "laid", "aria-hidden": "true" }, element("div", { class: "laid-names" }, element("span", {}, "expected"), element("span", {}, "answer")),
      element("div", { class: "laid-signs" }, columns)),
    element("p", { class: "visually-hidden" }, inSentence(aligned)));
}

function columnOf(op, expected, answer) {
  const long = Math.max(expected.length, answer.length);
  const line = (signs, role) => element("span", { class: role }, signsOf(signs), (op === "same" ? " " : GAP).repeat(long - signs.length));
  return element("span", { class: `column op-${op}` }, line(expected, "right"), line(answer, "read"));
}

/** Return signs as text; those that cannot be seen are spelled. */
function signsOf(signs) {
  return signs.map((sign) => (UNSEEN.test(sign) ? spelled(sign) : sign)).join("");
}

/** Return in words what an alignment shows. */
function inSentence(aligned) {
  const edits = aligned.filter(([op]) => op !== "same").map(([op, right, read]) => {
    const [expected, answer] = [signsOf([...right ?? ""]), signsOf([...read ?? ""])];
    if (op === "missing") return `lacks ${expected}`;
    if (op === "extra") return `adds ${answer}`;
    return `has ${answer} instead of ${expected}${op === "replaced" ? "" : ` (${EDITS[op] ?? op})`}`;
  });
  return edits.length ? `The answer ${edits.join("; it ")}.` : "The answer has the same signs as the expected value.";
}

/** Return what the marks mean, of those that are there. */
function editLegend(alignments) {
  const there = new Set(alignments.flatMap((aligned) => (aligned ?? []).map(([op]) => op)));
  const ops = Object.keys(EDITS).filter((op) => op !== "same" && there.has(op));
  if (!ops.length) return null;
  return element("ul", { class: "edits", "aria-label": "Marks" }, ops.map((op) => element("li", {}, element("span", { class: `column op-${op}`, "aria-hidden": "true" }, element("span", { class: "read" }, "x")), EDITS[op])));
}

// ── many answers under one expected value ───────────────────────────────────────────────────

/** Return of an alignment a cell for each sign of the expected value, and what stands before each and at the end. */
function slotsOf(aligned) {
  const [cells, before] = [[], [[]]];
  for (const [op, right, read] of aligned) {
    const [expected, answer] = [[...right ?? ""], [...read ?? ""]];
    expected.forEach((_, n) => {
      cells.push([op, answer[n] ?? GAP]);
      before.push([]);
    });
    before.at(-1).push(...answer.slice(expected.length).map((sign) => [op, sign]));
  }
  return { cells, before };
}

/** Return lines, one for the expected value and one for each alignment, whose signs stand under one another. */
function underOneAnother(expected, alignments) {
  const signs = [...expected];
  const slots = alignments.map((aligned) => (aligned === null ? null : slotsOf(aligned)));
  const fits = slots.map((slot) => slot !== null && slot.cells.length === signs.length);
  const widths = Array.from({ length: signs.length + 1 }, (_, n) => Math.max(0, ...slots.filter((_, at) => fits[at]).map((slot) => slot.before[n].length)));
  const padded = (extras, n) => [...Array.from({ length: widths[n] - extras.length }, () => ["gap", " "]), ...extras];
  const lineOf = (cells, before) => cells.concat([null]).flatMap((cell, n) => [...padded(before[n], n), ...cell ? [cell] : []]);
  const top = lineOf(signs.map((sign) => ["same", sign]), widths.map(() => []));
  return { expected: signLine(top), answers: slots.map((slot, n) => (fits[n] ? signLine(lineOf(slot.cells, slot.before)) : null)) };
}

/** Return signs with their marks, those of one mark in one element. */
function signLine(signs) {
  const runs = [];
  for (const [op, sign] of signs) {
    const written = UNSEEN.test(sign) ? spelled(sign) : sign;
    if (runs.at(-1)?.[0] === op) runs.at(-1)[1] += written;
    else runs.push([op, written]);
  }
  return element("span", { class: "signs foreign", dir: "ltr" }, runs.map(([op, text]) => element("span", { class: op === "same" ? "same" : `op-${op}` }, element("span", { class: "read" }, text))));
}
