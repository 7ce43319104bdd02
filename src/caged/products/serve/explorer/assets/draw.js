// Pieces of the page. Titles and ids are whatever a log holds: they become text, never markup.

// What is not seen, or turns text around, is written out.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;
export const shown = text =>
  String(text).replace(UNSEEN, found => "\\u" + found.charCodeAt(0).toString(16).padStart(4, "0"));

export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child != null && child !== ""));
  return made;
}

export const nameOf = item => shown(item.title || item.id);
const withId = item => (item.title ? `${nameOf(item)} (${shown(item.id)})` : nameOf(item));

export const whole = number => Math.round(number).toLocaleString("en");
export const people = number => `${whole(number)} ${number === 1 ? "person" : "people"}`;
export const items = number => `${whole(number)} ${number === 1 ? "item" : "items"}`;
export const percent = share => `${(100 * share).toFixed(1).replace(/\.0$/, "")}%`;
export const signed = share => `${share > 0 ? "+" : share < 0 ? "\u2212" : ""}${percent(Math.abs(share))}`;

const kind = item => (item.popular ? "popular" : "niche");

export function meter(item) {
  const bar = element("i");
  bar.style.width = `${Math.max(4, 100 * item.height)}%`;
  return element("span", {class: "meter-bar", "aria-hidden": "true"}, bar);
}

// An item of a history, or one that can be taken into it.
export function chip(item, onclick, action) {
  const inside = [element("bdi", {}, nameOf(item)), element("span", {class: "people"}, whole(item.people))];
  const say = `${withId(item)}, ${kind(item)}, ${people(item.people)}`;
  if (!onclick) return element("span", {class: `chip ${kind(item)}`, title: say}, ...inside);
  const mine = action === "Remove" ? " mine" : "";
  return element(
    "button",
    {type: "button", class: `chip ${kind(item)}${mine}`, "aria-label": `${action} ${say}`, title: say, onclick},
    ...inside,
  );
}

function move(item, rank) {
  if (item.rank_before === undefined) return null;
  if (item.rank_before === null) return element("span", {class: "move new"}, "new in the list");
  const steps = item.rank_before - rank;
  if (steps === 0) return null;
  const arrow = element("span", {"aria-hidden": "true"}, steps > 0 ? "\u25b2" : "\u25bc");
  const words = element("span", {class: "unseen"}, steps > 0 ? "up " : "down ");
  return element("span", {class: "move"}, arrow, words, `${Math.abs(steps)}`);
}

// One line of a list; `actions` are buttons, `shared` says that the other list has it too.
export function listed(item, rank, shared, actions) {
  const facts = element(
    "span",
    {class: "facts-line"},
    meter(item),
    people(item.people),
    element("span", {class: item.popular ? "tag" : "tag marked"}, kind(item)),
    shared ? element("span", {class: "tag"}, "in both") : null,
    move(item, rank),
  );
  const title = element("bdi", {title: withId(item)}, nameOf(item));
  const row = element(
    "div",
    {class: "row"},
    element("span", {class: "rank", "aria-hidden": "true"}, `${rank}`),
    element("div", {class: "title"}, title, facts),
    element("div", {class: "actions"}, ...actions),
  );
  return element("li", {class: kind(item)}, row);
}

export function gain(term, value, was) {
  return element("div", {}, element("dt", {}, term), element("dd", {}, value, element("span", {class: "was"}, was)));
}

export function why(answer) {
  const line = (share, ...words) =>
    element("li", {}, element("span", {class: "share"}, percent(share)), element("span", {}, ...words));
  const lines = answer.reasons.map(item =>
    line(item.share, element("bdi", {}, nameOf(item)), " ", element("span", {class: "detail"}, people(item.people))),
  );
  if (lines.length && Math.abs(answer.rest) > 0.001) {
    lines.push(line(answer.rest, "learned about the person beside the history"));
  }
  const lead = answer.adds_up
    ? `The largest parts of its score, as trained, by the history of ${items(answer.of)}:`
    : "Items of the history that are most like it (cosine); this method does not say what each adds:";
  const said = lines.length ? lead : "No item of the history speaks for it.";
  return element("div", {class: "reasons"}, element("p", {}, said), element("ul", {}, ...lines));
}
