// Shortcuts. None fires while something is typed.

const KEYS = [
  ["?", "show these keys"],
  ["/", "search the answers"],
  ["r", "reset all filters"],
  ["j, k", "next and previous answer"],
  ["↑ ↓ Home End", "move in the list of answers"],
  ["PageUp, PageDown", "turn the page of the list"],
  ["Escape", "close a list of choices"],
];

function keysList() {
  return element("dl", { class: "keys" }, KEYS.flatMap(([key, words]) => [element("dt", {}, key.split(", ").flatMap((one, n) => [n ? " " : "", element("kbd", {}, one)])), element("dd", {}, words)]));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const act = { "?": showKeys, "/": toSearch, r: reset }[event.key];
  if (act) {
    event.preventDefault();
    act();
  } else if (state.view === "answers" && (event.key === "j" || event.key === "k") && listed !== null) moveTo(event.key);
}

function isTyping(target) {
  return target.matches("textarea, select, input:not([type=checkbox])") || target.isContentEditable;
}

async function toSearch() {
  if (state.view !== "answers") await go({ view: "answers" });
  document.getElementById("text")?.focus();
}

function showKeys() {
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = element("dialog", { class: "card", "aria-label": "Keys", onclose: () => dialog.remove() }, element("h2", {}, "Keys"), keysList(), close);
  document.body.append(dialog);
  dialog.showModal();
}
