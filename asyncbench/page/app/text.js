// Foreign text as text: what a model wrote never becomes markup, and what cannot be seen is written out.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const LINE_OR_TAB = new Set(["\n", "\t"]);

/** Return how a character that cannot be seen is written: \x1b, \u202e, \u{e0001}. */
function spelled(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** Return `text` on one line with every unseen character spelled: for charts, whose labels are plain text. */
function plain(text) {
  return Array.from(String(text), (one) => (UNSEEN.test(one) ? spelled(one) : one)).join("");
}

/** Return pieces of `text`: [unseen, piece]; lines and tabs stay as they are. */
function pieces(text) {
  const parts = [];
  let run = "";
  for (const one of text) {
    if (LINE_OR_TAB.has(one) || !UNSEEN.test(one)) {
      run += one;
      continue;
    }
    if (run) parts.push([false, run]);
    parts.push([true, spelled(one)]);
    run = "";
  }
  if (run) parts.push([false, run]);
  return parts;
}

/** Return an element that shows foreign text, set apart from the direction of what is around it. */
function foreign(text, tag = "bdi", attributes = {}) {
  const shown = element(tag, { dir: "ltr", ...attributes });
  for (const [unseen, piece] of pieces(String(text))) {
    shown.append(unseen ? element("span", { class: "unseen", title: "a character that cannot be seen" }, piece) : piece);
  }
  shown.classList.add("foreign");
  return shown;
}

/** Return an element that shows a sentence of ours: names in it are foreign, and `code` is set as code. */
function noted(text, tag = "span", attributes = {}) {
  const shown = String(text).split(/`([^`]+)`/).map((piece, n) => foreign(piece, n % 2 ? "code" : "span"));
  return element(tag, attributes, shown);
}

/** Return an element of ours; children are elements or text, and text stays text. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// ── figures ─────────────────────────────────────────────────────────────────────────────────

const COUNT = new Intl.NumberFormat("en-US");
const THREE = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

function count(value) {
  return value === null || value === undefined ? "unknown" : COUNT.format(value);
}

function percent(share) {
  return share === null || share === undefined ? "–" : `${rounded(100 * share, 1)}%`;
}

/** Return a number with so many decimals, a half rounded up: 95.25 as 95.3. `rounded` of Python is its twin. */
function rounded(value, decimals) {
  const [whole, rest] = Math.abs(value).toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${value < 0 ? "-" : ""}${grouped}${rest === undefined ? "" : `.${rest}`}`;
}

function interval(low, high) {
  return low === null || high === null ? "" : `${rounded(100 * low, 1)}–${rounded(100 * high, 1)}`;
}

/** Return USD with four decimals, or three digits where that is less: as the tables on a terminal have them. */
function dollars(value) {
  if (value === null || value === undefined) return "unknown";
  return `$${rounded(value, value > 0 && value < 0.001 ? 2 - Math.floor(Math.log10(value)) : 4)}`;
}

/** Return a sum of dollars, with ≥ where a part of it is unknown. */
function atLeast(value, partial) {
  return `${partial && value !== null && value !== undefined ? "≥ " : ""}${dollars(value)}`;
}

function seconds(value) {
  return value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(2) : THREE.format(value)} s`;
}

/** Return a figure of a metric: shares in percent, dollars with their sign. */
function figure(metric, value) {
  if (value === null || value === undefined) return "–";
  if (metric.share) return percent(value);
  return metric.unit.startsWith("USD") ? dollars(value) : THREE.format(value);
}

/** Return a time as people say it: 40 seconds, 3 minutes, 7 hours, 2 days. */
function agoWords(secondsPassed) {
  const [size, unit] = [[86400, "days"], [3600, "hours"], [60, "minutes"]].find(([size]) => secondsPassed >= 1.5 * size) ?? [1, "seconds"];
  const whole = Math.round(secondsPassed / size);
  return `${whole} ${whole === 1 ? unit.slice(0, -1) : unit}`;
}

/** Return the UTC time of so many seconds since 1970. */
function moment(secondsSince1970) {
  return `${new Date(1000 * secondsSince1970).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
