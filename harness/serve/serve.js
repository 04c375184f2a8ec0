/* A page of something under way replaces its own content; it stops when what it shows is over. */
"use strict";
const content = () => document.getElementById("content");
const again = (ms) => setTimeout(refresh, ms);
async function refresh() {
  let ms = +content().dataset.refreshesMs || 2000;
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("content");
      if (answer.ok && fresh) {
        content().replaceWith(document.adoptNode(fresh));
        ms = +fresh.dataset.refreshesMs;
        if (!ms) return;
      }
    } catch { ms = 5000; }
  }
  again(ms);
}
again(+content().dataset.refreshesMs);
