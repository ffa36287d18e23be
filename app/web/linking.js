/** The view that links mentions: asks in portions, shows a row a mention, copies the answers. */

import { details, best, probability } from "./answers.js";
import { byId, button, complain, element, tell } from "./dom.js";
import { toCsv } from "./csv.js";
import { call } from "./service.js";

const PORTION = 100;
const FEW = 3;
const LONG = 160;
let answers = [];
let index = null;
let running = null;

export function start(limits) {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    link(limits);
  });
  byId("mentions").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("ask").requestSubmit();
    }
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("clear-filters").addEventListener("click", () => {
    for (const id of ["semantic-types", "sabs"]) byId(id).selectedIndex = -1;
  });
  byId("copy-json").addEventListener("click", () => copy(JSON.stringify({ index, results: answers }, null, 2), "JSON"));
  byId("copy-csv").addEventListener("click", () => copy(toCsv(answers), "CSV"));
  byId("open-all").addEventListener("click", (event) => {
    const open = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(open));
    for (const toggle of byId("rows").querySelectorAll("button[aria-expanded]")) {
      if ((toggle.getAttribute("aria-expanded") === "true") !== open) toggle.click();
    }
  });
}

async function link(limits) {
  const mentions = byId("mentions").value.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line.trim());
  if (!mentions.length) {
    tell("said", "There is no mention to link.");
    byId("mentions").focus();
    return;
  }
  running?.abort();
  const mine = (running = new AbortController());
  answers = [];
  begin();
  try {
    const portion = Math.min(PORTION, (await limits).max_bulk_mentions ?? PORTION);
    for (let done = 0; done < mentions.length; done += portion) {
      if (mentions.length > portion) tell("said", `Linking: ${done} of ${mentions.length} done.`);
      const body = { mentions: mentions.slice(done, done + portion), ...options() };
      const answer = await call("/link/bulk", { method: "POST", body, signal: mine.signal });
      if (index && index.id !== answer.index.id) complain("problem", "Another build became active; earlier rows are of the one before.");
      index = answer.index;
      add(answer.results, mentions, done);
    }
    tell("said", summary(answers));
  } catch (error) {
    if (error.name === "AbortError") tell("said", `Stopped. ${summary(answers)}`);
    else {
      complain("problem", error.message);
      tell("said", answers.length ? summary(answers) : "");
    }
  } finally {
    if (running === mine) {
      byId("link-button").disabled = false;
      byId("stop").hidden = true;
    }
  }
}

function begin() {
  index = null;
  byId("rows").replaceChildren();
  byId("answers").hidden = true;
  byId("open-all").setAttribute("aria-pressed", "false");
  byId("link-button").disabled = true;
  byId("stop").hidden = false;
  complain("problem", "");
  tell("said", "Linking …");
}

function options() {
  const chosen = (id) => [...byId(id).selectedOptions].map((option) => option.value);
  const threshold = byId("threshold").value;
  const include = ["codes", "types"];
  if (byId("definitions").checked) include.push("definition");
  if (byId("suppressed").checked) include.push("suppressed");
  return {
    top_k: Number(byId("top-k").value),
    ...(threshold === "" ? {} : { threshold: Number(threshold) }),
    semantic_types: chosen("semantic-types"),
    sabs: chosen("sabs"),
    explain: byId("explain").checked,
    include,
  };
}

function add(results, mentions, before) {
  const open = mentions.length <= FEW;
  results.forEach((result, position) => {
    // An error does not say the mention back; here it is known.
    const answer = result.error ? { text: mentions[before + position], status: "error", ...result } : result;
    answers.push(answer);
    byId("rows").append(...rows(answer, answers.length, open));
  });
  byId("answers").hidden = false;
}

function rows(answer, number, open) {
  const shown = best(answer);
  const id = `details-${number}`;
  const more = element("tr", { class: "details", id, hidden: !open }, element("td", { colspan: 7 }));
  const reveal = () => {
    if (!more.hidden && !more.firstChild.hasChildNodes()) more.firstChild.append(...details(answer));
  };
  const toggle = button([open ? "Hide" : "Show", element("span", { class: "unseen" }, ` details of ${short(answer.text)}`)], () => {
    more.hidden = !more.hidden;
    toggle.setAttribute("aria-expanded", String(!more.hidden));
    toggle.firstChild.data = more.hidden ? "Show" : "Hide";
    reveal();
  }, { "aria-expanded": String(open), "aria-controls": id });
  reveal();
  const row = element("tr", {},
    element("th", { scope: "row" }, short(answer.text)),
    element("td", {}, element("span", { class: `status ${answer.status}` }, answer.status)),
    element("td", {}, shown ? [shown.preferred_name, " ", element("span", { class: "id" }, shown.cui)] : answer.error?.detail ?? answer.reason ?? ""),
    element("td", {}, shown?.matched_name ?? ""),
    element("td", { class: "number" }, shown ? probability(shown) : ""),
    element("td", { class: "number" }, shown ? shown.score.toFixed(4) : ""),
    element("td", {}, toggle));
  return [row, more];
}

const short = (text) => (text.length > LONG ? `${[...text].slice(0, LONG).join("")} …` : text);

function summary(results) {
  const counts = {};
  for (const { status } of results) counts[status] = (counts[status] ?? 0) + 1;
  const told = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  return `${results.length} ${results.length === 1 ? "mention" : "mentions"}: ${told.join(", ")}.`;
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard is given to pages over https and on this machine only; elsewhere the older way works.
    const field = element("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  tell("said", `Copied ${answers.length} answers as ${what}.`);
}
