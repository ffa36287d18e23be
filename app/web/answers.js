/** Shows one answer in full: candidates with probability and explanation, parts, short forms, the nearest concept. */

import { element } from "./dom.js";

/** Return the candidate that stands for an answer; none where there is no link. */
export const best = (answer) => answer.candidates?.[0];

/** Return a probability for people; before calibration there is none. */
export const probability = ({ probability: value }) => (value === null || value === undefined ? "–" : value.toFixed(3));

/** Return everything there is to say of an answer. */
export function details(answer) {
  if (answer.error) return [element("p", {}, `Not linked (${answer.error.code}): ${answer.error.detail}`)];
  return [...notes(answer), candidates(answer), ...nearest(answer), ...parts(answer)].filter(Boolean);
}

function notes(answer) {
  const said = [];
  if (answer.reason) said.push(`No link: ${answer.reason.replaceAll("_", " ")}.`);
  if (answer.expansion) said.push(`Searched: ${answer.expansion.text} (short forms written out).`);
  if (answer.ties) said.push(`Several concepts own this name: ${answer.ties.join(", ")}.`);
  if (answer.retired_from) said.push(`${answer.retired_from} is retired; shown are its successors.`);
  if (answer.truncated) said.push("The encoder read only the beginning of the mention.");
  return said.map((text) => element("p", {}, text));
}

function candidates(answer) {
  if (!answer.candidates.length) return null;
  return element("ol", { "aria-label": `candidates for ${answer.text}` }, answer.candidates.map((c) => element("li", {}, candidate(c))));
}

function candidate(found) {
  const types = (found.semantic_types ?? []).map((type) => type.name).join(", ");
  const codes = (found.codes ?? []).map(({ sab, code }) => `${sab} ${code}`).join(", ");
  const known = found.probability !== null && found.probability !== undefined;
  const figures = `${known ? `probability ${probability(found)}, ` : ""}score ${found.score.toFixed(4)}`;
  return [
    element("strong", {}, found.preferred_name), " ", element("span", { class: "id" }, found.cui), ` – ${figures}`,
    found.relation === "broader" ? ", a broader concept" : "",
    found.matched_name === found.preferred_name ? "" : element("div", {}, `matched name: ${found.matched_name}`),
    types ? element("div", { class: "why" }, types) : "",
    found.definition ? element("div", {}, `${found.definition.text} (${found.definition.sab})`) : "",
    codes ? element("div", { class: "why" }, codes) : "",
    found.explanation ? element("div", { class: "why" }, `why: ${reasons(found.explanation).join("; ")}`) : "",
  ];
}

/** Return an explanation in short words. */
export function reasons(why) {
  const channels = Object.entries(why.channels).map(([channel, score]) => `${channel} ${score.toFixed(4)}`);
  const spelling = why.by_id ? "by id" : why.steps === null ? "not the same words" : why.steps.length ? `equal but for ${why.steps.join(", ")}` : "as written";
  return [
    ...channels,
    `${why.matched_sab} ${why.matched_tty}`.trim(),
    spelling,
    why.case_mismatch && "case mismatch",
    why.via_short_form && "by a short form",
    ...why.expanded.map(({ short, long }) => `${short} = ${long}`),
    why.truncated && "truncated",
    why.broader_because && `broader: ${why.broader_because.replaceAll("_", " ")}`,
    why.pin && `pinned (${why.pin.entry}): ${why.pin.why}`,
  ].filter(Boolean);
}

function nearest(answer) {
  if (!answer.nearest) return [];
  return [element("h3", {}, "Nearest, but no link"), element("div", {}, candidate(answer.nearest))];
}

function parts(answer) {
  return (answer.parts ?? []).flatMap((part, position) => [
    element("h3", {}, position ? `${answer.conjunction ?? "and"} ` : "Parts: ", part.text, " ", element("span", { class: `status ${part.status}` }, part.status)),
    ...details(part),
  ]);
}
