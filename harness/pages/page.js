/* Comfort only; the page reads without it: copying the command, printing everything, a time under the mouse. */
"use strict";
const button = document.getElementById("copy"), command = document.getElementById("command");
if (button && command) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

/* Paper gets the page in short. All of it is printed by the button, or where the address ends in #print-all. */
let closed = [];
const everything = (asked) => document.body.classList.toggle("print-all", asked);
everything(location.hash === "#print-all");
const all = document.getElementById("print-all");
if (all) {
  all.hidden = false;
  all.addEventListener("click", () => { everything(true); print(); everything(location.hash === "#print-all"); });
}
addEventListener("beforeprint", () => {
  if (!document.body.classList.contains("print-all")) return;
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => {
  closed.forEach((details) => { details.open = false; });
  closed = [];
});

for (const svg of document.querySelectorAll("svg[data-start-ns]")) {
  const { startNs, endNs, left, right, counts } = svg.dataset;
  const make = (name) => svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
  const line = make("line"), text = make("text");
  const height = svg.viewBox.baseVal.height;
  line.setAttribute("class", "cursor");
  text.setAttribute("class", "cursor-label");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const inside = x >= +left && x <= +right;
    line.toggleAttribute("hidden", !inside);
    text.toggleAttribute("hidden", !inside);
    if (!inside) return;
    const ns = +startNs + (x - left) / (right - left) * (endNs - startNs);
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", 0], ["y2", height - 20]]) line.setAttribute(name, value);
    text.textContent = counts ? "event " + Math.round(ns) : (ns / 1e9).toFixed(endNs - startNs < 2e9 ? 4 : 3) + " s";
    text.setAttribute("x", Math.min(Math.max(x, +left + 30), +right - 30));
    text.setAttribute("y", height - 8);
  });
  svg.addEventListener("pointerleave", () => { line.toggleAttribute("hidden", true); text.toggleAttribute("hidden", true); });
}

/* An arrow of a cycle opens its reason. */
function openReason() {
  const reason = location.hash.startsWith("#edge-") && document.getElementById(location.hash.slice(1));
  if (reason) reason.open = true;
}
addEventListener("hashchange", openReason);
openReason();
