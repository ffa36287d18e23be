/** Makes elements. Text only ever becomes text nodes and attributes, so that nothing in an answer is read as markup. */

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function button(label, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

export function tell(id, text) {
  byId(id).textContent = text;
}

export function complain(id, text) {
  byId(id).textContent = text;
  byId(id).hidden = !text;
}
