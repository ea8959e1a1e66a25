// The list of the sweeps below a folder: a click opens one.

const POLL_MS = 5000;
const ASK_AGAIN_MS = 200; // while some are being counted

const dark = matchMedia("(prefers-color-scheme: dark)");

function applyColours() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}

/** Return a row: its name leads to its page, unless it cannot be read. */
function rowOf({ address, cells, why }, head) {
  const [name, ...rest] = cells;
  const link = address === null ? foreign(name) : element("a", { href: address }, foreign(name));
  const texts = rest.map((cell, n) => element("td", { class: isText(head[n + 1]) && "text" }, foreign(why && n === rest.length - 1 ? why : cell)));
  return element("tr", { class: why && "unreadable" }, element("th", { scope: "row", class: "text" }, link), texts);
}

function isText(heading) {
  return ["sweep", "models", ""].includes(heading);
}

function showList({ title, head, meanings, rows, uncounted }) {
  document.title = `${plain(title)} · asyncbench`;
  document.getElementById("title").replaceChildren(foreign(title));
  const cells = head.map((heading) => element("th", { scope: "col", class: isText(heading) && "text", title: meanings[heading] }, heading));
  const table = element("table", {}, element("thead", {}, element("tr", {}, cells)), element("tbody", {}, rows.map((row) => rowOf(row, head))));
  const focused = document.activeElement?.getAttribute("href");
  document.getElementById("view").replaceChildren(element("section", { class: "card sweeps" }, element("p", { class: "about" }, "Running sweeps come first, then those with the latest answer. A click opens one."), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sweeps" }, table)));
  if (focused) document.querySelector(`#view a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  const line = document.getElementById("loading");
  line.hidden = uncounted === 0;
  line.textContent = `Counting: ${count(uncounted)} more`;
}

async function fetchList() {
  const response = await fetch("list.json");
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

/** Show the list, and again whenever it may have changed, as long as the page is looked at. */
async function listForever() {
  let shown = "";
  for (;;) {
    const list = document.hidden ? null : await fetchList().catch(showTrouble);
    const text = JSON.stringify(list ?? null);
    if (list && text !== shown) [shown] = [text, showList(list)];
    if (list) document.documentElement.dataset.ready = "yes";
    await new Promise((resolve) => setTimeout(resolve, list?.uncounted ? ASK_AGAIN_MS : POLL_MS));
  }
}

function showTrouble(error) {
  const line = document.getElementById("loading");
  line.hidden = false;
  line.textContent = error instanceof TypeError ? "The page shows the last figures. Start `asyncbench view` again." : plain(error.message);
}

for (const name of ["help", "theme"]) document.getElementById(name).hidden = true;
dark.addEventListener("change", applyColours);
applyColours();
listForever();
