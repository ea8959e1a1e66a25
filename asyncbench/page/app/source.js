// The source of results: the blocks inside a static file, or the server of `asyncbench view`. Both answer alike.

const LIVE = document.documentElement.hasAttribute("data-live");
const ROWS_A_PAGE = 50;
const ASK_AGAIN_MS = 400; // for what is still being counted, or a folder that is being rewritten
const MOST_TRIES = 25; // of the latter

const source = LIVE ? served() : embedded();

/** Return a value in which tables sent column by column are lists of rows. */
function unpacked(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(unpacked);
  const names = Object.keys(value);
  if (names.length === 1 && names[0] === "columns") return rowsOf(value.columns);
  return Object.fromEntries(names.map((name) => [name, unpacked(value[name])]));
}

function rowsOf(columns) {
  const [names, lists] = [Object.keys(columns), Object.values(columns)];
  return Array.from({ length: lists[0]?.length ?? 0 }, (_, row) => Object.fromEntries(names.map((name, n) => [name, lists[n][row]])));
}

// ── inside this file ────────────────────────────────────────────────────────────────────────

function embedded() {
  const blocks = new Map();
  const block = (name) => {
    if (!blocks.has(name)) blocks.set(name, readBlock(name));
    return blocks.get(name);
  };
  const all = async () => (await block("sample"))?.trials ?? [];
  return {
    block,
    trials: async (query) => {
      const sample = await block("sample");
      const trials = sample?.trials ?? [];
      const others = rightOn(trials.filter((trial) => trial.asked === query.versus));
      const matches = trials.filter((trial) => answersTo(query, trial, others));
      matches.sort((a, b) => rankOfOutcome(a) - rankOfOutcome(b) || a.asked - b.asked || a.kind - b.kind || a.length - b.length);
      const pages = Math.max(1, Math.ceil(matches.length / ROWS_A_PAGE));
      const page = Math.min(pages, Math.max(1, Number(query.page) || 1));
      const rows = matches.slice((page - 1) * ROWS_A_PAGE, page * ROWS_A_PAGE);
      return { found: matches.length, of: sample?.of ?? 0, page, pages, rows, note: sample?.rule };
    },
    trial: async (id) => {
      const trial = (await all()).find((one) => one.id === id) ?? null;
      const answers = (await all()).filter((one) => one.question === trial?.question);
      return trial && { ...trial, answers: answers.length, entrants: new Set(answers.map((one) => one.asked)).size };
    },
    question: async (key, asked) => {
      const trials = (await all()).filter((trial) => trial.question === key && (!asked.length || asked.includes(trial.asked)));
      return { of: trials.length, trials };
    },
    forget: () => {},
  };
}

/** Return the value of an embedded block; null where the file has none of that name. */
async function readBlock(name) {
  const holder = document.getElementById(`block-${name}`);
  if (holder === null) return null;
  const text = holder.type === "application/gzip" ? await unzipped(holder.textContent) : holder.textContent;
  holder.remove();
  return unpacked(JSON.parse(text));
}

async function unzipped(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const SEARCHED = ["operands", "prompt", "expected", "answer", "reply", "reasoning", "message"];
const WRONG_FIRST = ["wrong", "no_answer", "truncated", "refused", "failed", "correct"];

function rankOfOutcome(trial) {
  return WRONG_FIRST.indexOf(trial.outcome);
}

/** Return of each question whether most of some answers to it are right. */
function rightOn(trials) {
  const right = (those) => 2 * those.filter((trial) => trial.outcome === "correct").length >= those.length;
  return new Map([...Map.groupBy(trials, (trial) => trial.question)].map(([question, those]) => [question, right(those)]));
}

/** Return whether a trial is one of those that a query asks for, as the server has it in `live/trials.py`. */
function answersTo(query, trial, others) {
  const among = (name, value) => query[name].length === 0 || query[name].includes(value);
  const within = (value, low, high) => (low === "" || (value !== null && value >= Number(low))) && (high === "" || (value !== null && value <= Number(high)));
  return among("asked", trial.asked) && among("kind", trial.kind) && among("outcome", trial.outcome)
    && within(trial.length, query.from, query.to)
    && (query.error === "" || trial.error === query.error)
    && (query.versus === "" || others.get(trial.question) === (trial.outcome !== "correct"))
    && (query.question === "" || trial.question === query.question)
    && within(trial.at, query.since, query.until)
    && (query.position === "" || trial[`wrong_from_${query.end || "first"}`].includes(Number(query.position)))
    && (query.disagree === "" || trial.grades.some((grade) => !grade.headline && grade.outcome !== trial.outcome))
    && (query.text === "" || holds(trial, query.text.toLowerCase()));
}

function holds(trial, text) {
  return trial.id.startsWith(text) || SEARCHED.some((name) => String(trial[name] ?? "").toLowerCase().includes(text));
}

// ── from a server ───────────────────────────────────────────────────────────────────────────

function served() {
  const blocks = new Map();
  return {
    block: (name) => {
      if (!blocks.has(name)) {
        const block = whenCounted(name);
        blocks.set(name, block);
        block.catch(() => blocks.get(name) === block && blocks.delete(name)); // who asks again may be luckier
      }
      return blocks.get(name);
    },
    trials: (query) => fetchAnswer(`trials?${addressOf(query)}`),
    trial: (id) => fetchAnswer(`trial/${encodeURIComponent(id)}`),
    question: (key, asked) => fetchAnswer(`question/${encodeURIComponent(key)}?${addressOf({ asked })}`),
    now: () => fetchAnswer("now"),
    forget: () => blocks.clear(),
  };
}

/** Return a query as the parameters of an address, without empty ones. */
function addressOf(query) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== "") parameters.append(name, each);
  }
  return parameters;
}

/** Return the answer of the server; while it counts or the folder is being rewritten, ask again. */
async function fetchAnswer(path, onCounting = () => {}) {
  for (let tries = MOST_TRIES; ;) {
    const response = await fetch(path);
    if (response.status === 404) return null;
    if (response.status === 202) onCounting((await response.json()).counting);
    else if (response.ok) return unpacked(await response.json());
    else if (response.status !== 503 || !(tries -= 1)) throw new Error((await response.text()).trim() || `the server said ${response.status}`);
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
}

function whenCounted(name) {
  return fetchAnswer(`blocks/${encodeURIComponent(name)}`, (share) => showCounting(name, share)).finally(() => showCounting(name, null));
}
