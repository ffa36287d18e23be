/** Talks to the service. */

import { byId, element } from "./dom.js";

/** What the service refused, in words for a person. */
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Return the JSON that the service answers, with the key that is typed in. */
export async function call(path, { method = "GET", body, signal } = {}) {
  const key = byId("key").value.trim();
  const headers = {
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
  };
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, error instanceof TypeError ? "The service cannot be reached." : String(error.message));
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, said(response, answer));
  return answer;
}

function said(response, answer) {
  const parts = [answer.detail ?? response.statusText];
  for (const error of answer.errors ?? []) parts.push(`${error.loc.slice(1).join(".")}: ${error.msg}`);
  const advice = { 401: "Type an API key in below.", 403: "The key does not allow this.", 404: "This service does not have it." };
  return [parts.join("; "), advice[response.status]].filter(Boolean).join(" - ");
}

/** Make the options of a select. */
export function fill(select, values) {
  select.replaceChildren(...values.map((value) => element("option", { value }, value)));
}
