/** Starts the page: the two views and what they share. */

import { follow as followBuilds, show as showBuilds } from "./builds.js";
import { start as startLinking } from "./linking.js";
import { call, fill } from "./service.js";
import { byId, element } from "./dom.js";

function view() {
  const builds = location.hash === "#builds";
  byId("view-link").hidden = builds;
  byId("view-builds").hidden = !builds;
  for (const link of document.querySelectorAll("nav a[href^='#']")) {
    const here = link.getAttribute("href") === (builds ? "#builds" : "#link");
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  if (builds) showBuilds();
}

async function describe() {
  try {
    const info = await call("/info");
    const { id, counts, sabs, semantic_types: types } = info.index;
    byId("index").textContent =
      `Build ${id}: ${counts.concepts.toLocaleString("en")} concepts, ${counts.names.toLocaleString("en")} names`;
    fill(byId("sabs"), [...sabs].sort());
    fill(byId("semantic-types"), [...types].sort());
    return info.limits;
  } catch (problem) {
    byId("index").replaceChildren(element("span", { class: "problem" }, problem.message));
    return {};
  }
}

byId("access").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => {
  view();
  byId("main").focus();
});
const limits = describe();
startLinking(limits);
followBuilds();
view();
