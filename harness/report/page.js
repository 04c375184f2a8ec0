/* Comfort only; the page reads without it: copying the command, opening everything on paper, a time under the mouse. */
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

let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));

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
