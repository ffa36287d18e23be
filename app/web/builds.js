/** The view for administrators: index builds and jobs. */

import { byId, button, complain, element, tell } from "./dom.js";
import { call } from "./service.js";

const EVERY_MS = 2000;
const ACTIVE = new Set(["queued", "running"]);
let timer = null;

export function follow() {
  byId("refresh").addEventListener("click", show);
  byId("rebuild").addEventListener("click", () => order("/admin/index/rebuild", "The rebuild is asked for."));
  byId("rollback").addEventListener("click", () => order("/admin/index/rollback", "The build before answers within seconds."));
}

/** Ask for builds and jobs, and go on asking while the view is open and a job runs or another build is about to answer. */
export async function show() {
  clearTimeout(timer);
  if (!byId("key").value.trim()) {
    complain("admin-problem", "Type an admin key in below, then choose Refresh.");
    return;
  }
  try {
    const [{ builds, serving, active }, { jobs }] = await Promise.all([call("/admin/index"), call("/admin/jobs")]);
    complain("admin-problem", "");
    byId("builds").replaceChildren(...[...builds].reverse().map((build) => buildRow(build, serving)));
    byId("jobs").replaceChildren(...jobs.map(jobRow));
    const unsettled = active !== serving || jobs.some((job) => ACTIVE.has(job.state));
    if (unsettled && !byId("view-builds").hidden) timer = setTimeout(show, EVERY_MS);
  } catch (error) {
    complain("admin-problem", error.message);
  }
}

async function order(path, done, method = "POST") {
  try {
    await call(path, { method });
    tell("admin-said", done);
    await show();
  } catch (error) {
    complain("admin-problem", error.message);
  }
}

function buildRow(build, serving) {
  const state = [build.active ? "active" : build.state, build.id === serving ? ", answers here" : "", build.here ? "" : ", not on this disk"];
  const activate = button("Activate", () => order(`/admin/index/${encodeURIComponent(build.id)}/activate`, `${build.id} answers within seconds.`), { "aria-label": `Activate ${build.id}` });
  return element("tr", {},
    element("th", { scope: "row" }, build.id),
    element("td", {}, time(build.created_at)),
    element("td", {}, state.join("")),
    element("td", { class: "number" }, count(build.counts.names)),
    element("td", { class: "number" }, count(build.counts.concepts)),
    element("td", {}, Object.keys(build.loads).join(", ")),
    element("td", {}, build.active || build.state !== "ready" ? "" : activate));
}

function jobRow(job) {
  const percent = Math.round(job.progress * 100);
  const bar = element("progress", { max: 100, value: percent, "aria-label": `progress of ${job.id}` });
  const left = job.eta_seconds ? `, about ${Math.ceil(job.eta_seconds)} s left in the stage` : "";
  const cancel = button("Cancel", () => order(`/admin/jobs/${encodeURIComponent(job.id)}`, "The job is being cancelled.", "DELETE"), { "aria-label": `Cancel ${job.id}` });
  return element("tr", {},
    element("th", { scope: "row" }, job.id),
    element("td", {}, job.state),
    element("td", {}, job.stage),
    element("td", {}, bar, ` ${percent} %${ACTIVE.has(job.state) ? left : ""}`),
    element("td", {}, job.requested_by),
    element("td", {}, time(job.created_at)),
    element("td", {}, job.error ?? job.build_id ?? ""),
    element("td", {}, ACTIVE.has(job.state) ? cancel : ""));
}

const count = (value) => (value === undefined ? "" : value.toLocaleString("en"));
const time = (value) => (value ? value.replace("T", " ").slice(0, 19) : "");
