/** Answers as CSV for a spreadsheet: a row a candidate, or one row where there is none. */

const COLUMNS = ["mention", "part", "status", "reason", "rank", "cui", "curie", "preferred_name", "matched_name", "probability", "score", "relation"];

/** Return the text. */
export function toCsv(answers) {
  const lines = answers.flatMap((answer) => [
    ...rowsOf(answer, ""),
    ...(answer.parts ?? []).flatMap((part) => rowsOf({ ...part, text: answer.text }, part.text)),
  ]);
  return [COLUMNS, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

function rowsOf(answer, part) {
  const begin = [answer.text, part, answer.status, answer.error?.code ?? answer.reason ?? ""];
  const found = answer.candidates ?? [];
  if (!found.length) return [[...begin, ...Array(COLUMNS.length - begin.length).fill("")]];
  return found.map((c) => [...begin, c.rank, c.cui, c.curie, c.preferred_name, c.matched_name, c.probability ?? "", c.score, c.relation]);
}

function cell(value) {
  // A spreadsheet would run a mention that begins like a formula.
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
