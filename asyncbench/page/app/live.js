// A served page: the running sweep, and new figures when the folder has changed.

const POLL_MS = 2000;
const LIVE_S = 10; // figures of a running sweep that are no older count as live
let version = null; // of the folder's state that is shown
let heard = null; // what the server last said of its figures, and when by the clock of this page
const counting = new Map(); // block → share that is counted

function showCounting(name, share) {
  if (share === null) counting.delete(name);
  else counting.set(name, share);
  const line = document.getElementById("loading");
  if (line === null) return;
  const words = [...counting].map(([block, done]) => `${block} ${Math.round(100 * done)} %`).join(", ");
  line.hidden = !words && head !== null;
  line.textContent = words ? `Counting: ${words}` : "Reading the results…";
}

/** Poll the server every two seconds, as long as the page is open. */
async function pollForever() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (document.hidden) continue;
    const now = await source.now().catch(() => null);
    showBand(now);
    showAge(now);
    if (now !== null) await refresh(now).catch(showTrouble);
  }
}

/** Show how old the figures are: by the server's clock, or by that of this computer. */
function showAge(now) {
  if (head === null) return;
  if (now !== null) heard = { ...now, at: performance.now() };
  const silent_s = heard === null ? 0 : (performance.now() - heard.at) / 1000;
  const age_s = Math.max(0, (heard === null ? Date.now() / 1000 : heard.clock + silent_s) - head.made_at);
  const newest = now !== null && now.version === version && !now.trouble;
  const words = newest && now.running && age_s <= LIVE_S ? "live" : newest && now.current ? "up to date" : `figures of ${agoWords(age_s)} ago`;
  const line = document.getElementById("age");
  line.hidden = false;
  line.title = `These are the results of ${moment(head.made_at)}.`;
  line.classList.toggle("old", LIVE && words.startsWith("figures") && age_s > 60);
  if (line.textContent !== words) line.textContent = words;
}

async function refresh(now) {
  if (state === null) return begin();
  if (now.version === version || isChoosing()) return;
  source.forget();
  await readHead();
  state = stateFrom(location.hash); // new entrants may stand between others
  await show({ quietly: true }); // scrolling, typing and focus stay as they are
  version = now.version;
  showAge(now);
}

/** Return whether a list of options hangs open: it would vanish. */
function isChoosing() {
  return CSS.supports("selector(select:open)") && document.querySelector("select:open") !== null;
}

// ── the running sweep ───────────────────────────────────────────────────────────────────────

function showBand(now) {
  const band = document.getElementById("band");
  if (now === null) {
    band.hidden = false;
    band.replaceChildren(noted("The page shows the last results. Start `asyncbench view` again.", "p", { class: "lost" }));
    return;
  }
  band.hidden = !now.running && !now.trouble;
  const trouble = now.trouble ? [element("p", { class: "trouble" }, foreign(now.trouble))] : [];
  if (!now.running) return band.replaceChildren(...trouble);
  const kept = band.querySelector("details")?.open ?? false;
  const lanes = laneTable(now.lanes ?? []);
  const more = element("details", { class: "facts" }, element("summary", {}, (now.lanes ?? []).length === 1 ? "1 lane" : `${count((now.lanes ?? []).length)} lanes`), lanes);
  more.open = kept;
  band.replaceChildren(...trouble, progressOf(now), moneyOf(now.money), ...suspendedOf(now.models ?? []), ...errorsOf(now.errors ?? []), (now.lanes ?? []).length ? more : "");
}

function progressOf({ trials }) {
  const { done, planned } = trials ?? {};
  const words = planned ? `${count(done)} of ${count(planned)} trials` : `${count(done ?? 0)} trials`;
  const bar = planned ? element("progress", { max: planned, value: done, "aria-label": words }) : null;
  return element("p", { class: "progress" }, element("span", { class: "pulse", "aria-hidden": "true" }), element("b", {}, "running"), ` ${words} `, bar);
}

function moneyOf(money) {
  if (!money) return "";
  const { spent_usd: spent, budget_usd: budget } = money;
  if (spent === null || spent === undefined) return "";
  return element("p", {}, `${dollars(spent)}${budget ? ` of ${dollars(budget)}` : ""}`);
}

function errorsOf(errors) {
  return errors.map((error) => element("p", { class: "trouble" }, foreign(`${error.kind.replaceAll("_", " ")}: ${count(error.calls)}`)));
}

/** Return the suspended models, and why they are. */
function suspendedOf(models) {
  return models.filter((one) => one.suspended).map((one) => element("p", { class: "trouble" }, foreign(`${one.model} is suspended: ${one.suspended.replaceAll("_", " ")}`)));
}

const LANE = [
  ["calls a minute", (lane) => lane.calls_per_minute, count],
  ["in flight", (lane) => lane.in_flight, count],
  ["of its limits", (lane) => lane.used, percent],
  ["refused in the last minute", (lane) => lane.refused, count],
  ["held back by", (lane) => lane.limited_by || null, plain],
];

function laneTable(lanes) {
  const columns = LANE.filter(([, value]) => lanes.some((lane) => (value(lane) ?? null) !== null));
  const rows = lanes.map((lane) => element("tr", {}, element("th", { scope: "row", class: "text" }, foreign(lane.lane)),
    columns.map(([, value, shown]) => element("td", {}, (value(lane) ?? null) === null ? "–" : shown(value(lane))))));
  return tableOf("Lanes", ["lane", ...columns.map(([name]) => name)], rows, "lane");
}
