// What the page is about, who is asked for, and what was answered last.

import {chip, element, gain, items, listed, nameOf, people, percent, shown, signed, whole, why} from "./draw.js";

const FIRST = matchMedia("(max-width: 719px)").matches ? 10 : 24; // items of a history that are shown at once
const $ = id => document.getElementById(id);
const state = {
  about: null,
  subject: null, // {user_id} or {history: [items]} or {item}
  knobs: [],
  answered: 0, // the newest question whose answer is on the page
  asked: 0,
};

// The key lives as long as the tab.
async function ask(question, body) {
  const key = sessionStorage.getItem("caged-key");
  const headers = {"Content-Type": "application/json", ...(key ? {Authorization: `Bearer ${key}`} : {})};
  const response = await fetch(`api/${question}`, {method: "POST", headers, body: JSON.stringify(body)});
  if (response.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    throw new Error(key ? "The key is wrong." : "This server wants its API key.");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || `the server answers ${response.status}`);
  return answer;
}

// Whatever goes wrong is told at the top; the page stays as it was.
async function told(work) {
  try {
    await work();
    $("problem").hidden = true;
  } catch (error) {
    const offline = error instanceof TypeError;
    $("problem").textContent = offline ? "The server does not answer; is it still running?" : shown(error.message);
    $("problem").hidden = false;
  }
}

// ---------------------------------------------------------------- search

let typed = 0;
async function search() {
  const query = $("search").value.trim();
  const mine = ++typed;
  if (!query) {
    $("results").hidden = true;
    return;
  }
  const found = await ask("search", {q: query});
  if (mine !== typed) return; // an older answer came late
  const hits = [
    ...group("People", found.people, person => [
      hit(element("bdi", {}, shown(person.id)), items(person.items), () => choosePerson(person.id)),
    ]),
    ...group("Items", found.items, item => [
      hit(element("bdi", {}, nameOf(item)), `${people(item.people)}, ${item.popular ? "popular" : "niche"}`, () =>
        chooseItem(item.id),
      ),
      addButton(item),
    ]),
  ];
  $("results").replaceChildren(...(hits.length ? hits : [element("p", {class: "about"}, "Nothing found.")]));
  $("results").hidden = false;
  say(`${found.people.length} people and ${found.items.length} items found`);
}

function group(name, found, buttons) {
  if (!found.length) return [];
  const lines = found.map(one => element("li", {}, ...buttons(one)));
  return [element("h3", {}, name), element("ul", {"aria-label": name}, ...lines)];
}

const hit = (name, detail, onclick) =>
  element("button", {type: "button", class: "hit", onclick}, name, " ", element("span", {class: "detail"}, detail));

function addButton(item) {
  const label = `Add ${nameOf(item)} to a new person`;
  return element("button", {type: "button", title: label, "aria-label": label, onclick: () => add(item)}, "+");
}

// Arrow keys go through what was found, Escape back to the words.
function walk(event) {
  const stops = [$("search"), ...$("results").querySelectorAll(".hit")];
  const at = stops.indexOf(document.activeElement);
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (event.key === "Escape" && !$("results").hidden) {
    $("results").hidden = true;
    $("search").focus();
  } else if (step && at >= 0 && stops[at + step]) {
    event.preventDefault();
    stops[at + step].focus();
  }
}

// ---------------------------------------------------------------- who

let chosen = 0; // whoever was chosen last counts, also where an answer about somebody before comes late
const choosePerson = (id, stay = false) =>
  told(async () => {
    const mine = ++chosen;
    const person = await ask("person", {user_id: id});
    if (mine !== chosen) return;
    state.subject = {user_id: id, history: person.history};
    const share = percent(person.niche_share);
    drawSubject(`Person ${shown(person.id)}`, `${items(person.history.length)}, ${share} of them niche.`, stay);
    await refresh();
  });

function add(item) {
  const old = isNew() ? state.subject.history : [];
  if (old.some(one => one.id === item.id)) return undefined;
  return newPerson([...old, item], isNew());
}

const isNew = () => state.subject !== null && state.subject.fresh === true;

// `stay` leaves the focus where it is: somebody clicks one item after the other.
const newPerson = (history, stay = false) =>
  told(async () => {
    ++chosen;
    state.subject = {fresh: true, history};
    drawSubject("New person", history.length ? `${items(history.length)}.` : "", stay);
    if (history.length) await refresh();
    else drawLists(null);
  });

const chooseItem = id =>
  told(async () => {
    const mine = ++chosen;
    const answer = await ask("similar", {item_id: id});
    if (mine !== chosen) return;
    const {item} = answer;
    state.subject = {item};
    const kind = item.popular ? "popular" : "niche";
    drawSubject(`Item ${nameOf(item)}`, `Id ${shown(item.id)}; ${people(item.people)}; ${kind}. Below: what is most like it.`);
    drawLists({lists: answer.lists, shared: sharedIn(answer.lists)});
  });

function sharedIn(lists) {
  const [one, other] = lists.map(list => new Set((list.items || []).map(item => item.id)));
  return other ? [...one].filter(id => other.has(id)) : [];
}

function drawSubject(heading, about, stay = false) {
  const {subject} = state;
  if (!stay) $("results").hidden = true;
  $("subject").hidden = false;
  $("subject-heading").textContent = heading;
  const button = (words, onclick) => element("button", {type: "button", onclick}, words);
  const actions = [];
  if (isNew() && subject.history.length) actions.push(button("Start over", () => newPerson([])));
  if (subject.user_id !== undefined) {
    actions.push(button("Copy to a new person", () => newPerson([...subject.history])));
  }
  if (subject.item) actions.push(button("Add to a new person", () => add(subject.item)));
  $("subject-actions").replaceChildren(...actions);
  $("subject-about").textContent = about || "Nobody yet: click items below, or search for some and press +.";
  drawHistory(false);
  $("picker").hidden = !isNew();
  if (isNew()) drawSample();
  if (!stay) $("subject-heading").focus();
}

function drawHistory(all) {
  const history = state.subject.history || [];
  const visible = all ? history : history.slice(0, FIRST);
  const drop = item => newPerson(state.subject.history.filter(one => one.id !== item.id), true);
  const chips = visible.map(item => element("li", {}, chip(item, isNew() ? () => drop(item) : null, "Remove")));
  redraw($("history"), chips);
  $("more-history").hidden = visible.length === history.length;
  $("more-history").textContent = `Show all ${whole(history.length)}`;
}

function drawSample() {
  const had = new Set(state.subject.history.map(item => item.id));
  const left = state.about.sample.filter(item => !had.has(item.id));
  redraw($("sample"), left.map(item => element("li", {}, chip(item, () => add(item), "Add"))));
}

// Whoever works by keyboard stays where they were.
function redraw(place, children) {
  const at = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  place.replaceChildren(...children);
  if (at < 0) return;
  const left = place.querySelectorAll("button");
  (left[Math.min(at, left.length - 1)] || $("subject-heading")).focus();
}

// ---------------------------------------------------------------- lists

const who = () =>
  isNew() ? {history: state.subject.history.map(item => item.id)} : {user_id: state.subject.user_id};

async function refresh() {
  const mine = ++state.asked;
  const {subject} = state;
  const asked = {...who(), less_popular: state.knobs};
  $("columns").classList.add("busy");
  try {
    const answer = await ask("lists", asked);
    if (mine < state.answered || subject !== state.subject) return; // a newer one is on the page, or will be
    state.answered = mine;
    drawLists(answer);
  } finally {
    if (mine === state.asked) $("columns").classList.remove("busy");
  }
}

// The knobs stay while they are moved; only what is below them is drawn anew.
function drawLists(answer) {
  const knobsMatter = answer !== null && !state.subject.item;
  $("together-label").hidden = !knobsMatter || state.about.models.length < 2;
  const both = answer && answer.lists.length > 1 && answer.lists.every(list => list.items);
  $("shared").textContent = both
    ? `${answer.shared.length} of ${Math.max(...answer.lists.map(list => list.items.length))} items stand in both lists.`
    : "";
  state.about.models.forEach((model, place) => {
    const column = $("columns").children[place];
    column.hidden = answer === null;
    column.querySelector(".knob").hidden = !knobsMatter;
    if (answer) drawList(column.querySelector(".answer"), model, place, answer.lists[place], new Set(answer.shared));
  });
  if (answer) say(answer.lists.map((list, place) => inWords(list, state.about.models[place])).join(" "));
}

function inWords(list, model) {
  if (list.error) return `${model.name}: ${list.error}.`;
  if (!list.niche_share) return `${model.name}: ${list.items.length} items.`;
  return `${model.name}: ${percent(list.niche_share[1])} niche.`;
}

function drawList(place, model, number, list, shared) {
  if (list.error) {
    place.replaceChildren(element("p", {class: "problem"}, shown(list.error)));
    return;
  }
  const lines = list.items.map((item, index) => {
    const line = listed(item, index + 1, shared.has(item.id), []);
    const actions = state.subject.item ? [] : [whyButton(item, number, line)];
    line.querySelector(".actions").append(...actions, addButton(item));
    return line;
  });
  const parts = list.niche_share ? [gains(list), price(model, state.knobs[number])] : [];
  const unknown = (list.unknown_items || []).length;
  redraw(place, [
    ...parts,
    ...(unknown ? [element("p", {class: "problem"}, `${items(unknown)} of the history are unknown to this model.`)] : []),
    ...(lines.length ? [] : [element("p", {class: "about"}, "Nothing to show.")]),
    element("ol", {class: "list", "aria-label": `List of ${shown(model.name)}`}, ...lines),
    ...leftOut(list),
  ]);
}

function gains(list) {
  const [before, after] = list.niche_share;
  const [were, are] = list.people;
  return element(
    "dl",
    {class: "gains"},
    gain("Niche items in this list", percent(after), `as trained: ${percent(before)}`),
    gain("People per item", whole(are), `as trained: ${whole(were)}`),
  );
}

function price(model, knob) {
  if (!model.price) return element("p", {class: "about price"}, "What the knob costs over all people was not measured.");
  const near = (one, other) => (Math.abs(other.strength - knob) < Math.abs(one.strength - knob) ? other : one);
  const notch = model.price.notches.reduce(near);
  const base = model.price.notches[0];
  const {k, part} = model.price;
  const change = base.recall ? `${signed(notch.recall / base.recall - 1)}, ` : "";
  const was = (value, more = "") => (notch.strength > 0 ? ` (${more}as trained ${percent(value)})` : "");
  return element(
    "p", {class: "about price"},
    `For all people, measured on the ${part === "test" ? "test" : "validation"} part`,
    Math.abs(notch.strength - knob) > 0.001 ? ` at ${notch.strength.toFixed(2)}: ` : ": ",
    `recall@${k} ${percent(notch.recall)}${was(base.recall, change)}, `,
    `niche items ${percent(notch.tail_share)}${was(base.tail_share)}.`,
  );
}

function leftOut(list) {
  if (!list.left || !list.left.length) return [];
  const left = list.left.map(item => element("li", {}, chip(item)));
  const summary = element("summary", {}, `${items(list.left.length)} left the list`);
  return [element("details", {class: "left-out"}, summary, element("ul", {class: "chips"}, ...left))];
}

function whyButton(item, model, line) {
  const toggle = event => {
    const button = event.currentTarget;
    const open = line.querySelector(".reasons");
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      open.remove();
      return;
    }
    told(async () => line.append(why(await ask("why", {...who(), model, item_id: item.id}))));
  };
  const label = `Why ${nameOf(item)}?`;
  return element("button", {type: "button", "aria-label": label, "aria-expanded": "false", onclick: toggle}, "Why?");
}

// ---------------------------------------------------------------- knobs

function column(model, place) {
  const output = element("output", {for: `knob-${place}`});
  const slider = element("input", {
    type: "range", id: `knob-${place}`, min: "0", max: "1", step: "0.01", "aria-describedby": `ends-${place}`,
  });
  slider.value = state.knobs[place];
  output.textContent = state.knobs[place].toFixed(2);
  slider.addEventListener("input", () => turn(place, Number(slider.value)));
  const label = element("label", {for: `knob-${place}`}, "Less popular", output);
  const ends = element("span", {class: "unseen", id: `ends-${place}`}, "0 is as trained, 1 takes out most popularity");
  const knob = element("div", {class: "knob", hidden: true}, label, slider, ends);
  const heading = element("h2", {id: `model-${place}`}, shown(model.name));
  return element(
    "section", {class: "column", "aria-labelledby": `model-${place}`, hidden: true},
    heading, knob, element("div", {class: "answer"}),
  );
}

function turn(place, value) {
  const together = state.about.models.length > 1 && $("together").checked;
  state.knobs = state.knobs.map((knob, index) => (together || index === place ? value : knob));
  state.knobs.forEach((knob, index) => {
    $(`knob-${index}`).value = knob;
    $("columns").children[index].querySelector("output").textContent = knob.toFixed(2);
  });
  scheduled(refresh);
}

// One question at a time: while one is answered, only the last position of the knob waits.
let busy = false;
let waiting = null;
async function scheduled(work) {
  if (busy) {
    waiting = work;
    return;
  }
  busy = true;
  await told(work);
  busy = false;
  const next = waiting;
  waiting = null;
  if (next) scheduled(next);
}

function say(words) {
  $("status").textContent = shown(words);
}

// ---------------------------------------------------------------- start

function begin(about) {
  state.about = about;
  state.knobs = about.models.map(model => model.less_popular);
  $("together").checked = new Set(state.knobs).size === 1;
  const {dataset, users, items} = about.models[0];
  const names = about.models.map(model => shown(model.name)).join(" beside ");
  $("subtitle").textContent =
    `${names}${dataset ? `, trained on ${shown(dataset)}` : ""}: ${whole(users)} people, ${whole(items)} items.`;
  $("columns").classList.toggle("two", about.models.length > 1);
  $("columns").replaceChildren(...about.models.map(column));
  const tastes = {"niche-taste": "Niche taste", diverse: "Mixed taste", blockbuster: "Blockbuster taste"};
  const starts = about.starts.map(start =>
    element("button", {type: "button", onclick: () => choosePerson(start.id)}, tastes[start.taste]),
  );
  $("starts").replaceChildren(...starts, element("button", {type: "button", onclick: () => newPerson([])}, "New person"));
  if (about.starts.length) choosePerson(about.starts[0].id, true);
}

let pause = 0;
$("search").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => told(search), 120);
});
$("search-form").addEventListener("submit", event => {
  event.preventDefault();
  clearTimeout(pause);
  told(search);
});
document.addEventListener("keydown", walk);
$("more-history").addEventListener("click", () => drawHistory(true));
$("key-form").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("caged-key", $("key").value);
  $("key-form").hidden = true;
  start();
});
const start = () => told(async () => begin(await ask("about", {})));
start();
