// Drawings of an input: each has an `element`, is shaded by scores, and marks the features that are removed.
import { make } from "./page.js";

export function drawingOf(shown, toggle) {
  if (shown.pieces) return new TextDrawing(shown, toggle);
  return shown.grid ? new ImageDrawing(shown, toggle) : { element: "", shade() {}, fold() {}, mark() {} };
}

// A text with more features than LONG is folded: stretches of more than STRETCH pieces whose shares are below NOTABLE,
// but for CONTEXT pieces at each end.
const [LONG, STRETCH, CONTEXT, NOTABLE] = [200, 60, 12, 0.1];

const featuresOf = (word) => word.dataset.features.split(" ").map(Number);

class TextDrawing {
  constructor(shown, toggle) {
    this.toggle = toggle;
    this.element = make("div", { role: "group", "aria-label": "Features: press one to remove it" });
    let paragraph = -1;
    for (const [characters, features, unread, removable, place] of shown.pieces) {
      if (place !== paragraph) this.element.append(make("p", { class: "text", lang: "", dir: "auto" }));
      paragraph = place;
      this.element.lastElementChild.append(this.piece(characters, features, unread, removable));
    }
    this.words = [...this.element.querySelectorAll(".w")];
    if (this.words.length) this.words[0].tabIndex = 0;
    this.element.addEventListener("click", ({ target }) => { if (this.words.includes(target)) toggle(featuresOf(target)); });
    this.element.addEventListener("keydown", (event) => this.move(event));
  }

  piece(characters, features, unread, removable) {
    if (features.length) return make("span", { class: "w", role: "button", tabindex: -1, "aria-pressed": "false", "data-features": features.join(" ") }, characters);
    if (unread) return make("span", { class: "unread" }, characters);
    return removable ? characters : make("span", { class: "quiet", title: "fixed: never removed" }, characters);
  }

  move(event) {
    const place = this.words.indexOf(event.target), next = this.words[place + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? NaN)];
    if (place < 0) return;
    if (next) {
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if ([" ", "Enter"].includes(event.key)) this.toggle(featuresOf(event.target));
    else return;
    event.preventDefault();
  }

  shade(found) {
    const chosen = new Set(found.sets?.[0]?.[1]);
    for (const word of this.words) {
      const features = featuresOf(word);
      const share = features.map((i) => found.shares[i]).reduce((best, own) => (Math.abs(own) > Math.abs(best) ? own : best));
      word.style.setProperty("--share", `${Math.round(100 * Math.abs(share))}%`);
      word.classList.toggle("against", share < 0);
      word.classList.toggle("in", features.some((i) => chosen.has(i)));
      word.title = features.map((i) => found.texts[i]).join("; ");
    }
  }

  fold(found) {
    if (found.shares.length <= LONG) return;
    for (const paragraph of this.element.children) {
      const isQuiet = (node) => !node.dataset?.features || featuresOf(node).every((i) => Math.abs(found.shares[i]) < NOTABLE);
      let run = [];
      for (const node of [...paragraph.childNodes, null]) {
        if (node && isQuiet(node)) run.push(node);
        else {
          const hidden = run.slice(run[0]?.previousSibling ? CONTEXT : 0, node ? -CONTEXT : undefined);
          if (hidden.length > STRETCH) this.hide(hidden);
          run = [];
        }
      }
    }
  }

  hide(nodes) {
    const rest = make("span", { hidden: true }), n = nodes.filter((node) => node.dataset?.features).length;
    const open = make("button", { type: "button", class: "unfold", onclick: () => { rest.hidden = false; open.remove(); } }, `… ${n} more …`);
    nodes[0].before(open, rest);
    rest.append(...nodes);
  }

  mark(removed) {
    for (const word of this.words) {
      const gone = featuresOf(word).every((i) => removed.has(i));
      word.classList.toggle("gone", gone);
      word.setAttribute("aria-pressed", String(gone));
    }
  }
}

class ImageDrawing {
  constructor(shown, toggle) {
    const { grid, image } = (this.shown = shown);
    this.heat = make("img", { class: "heat", alt: "Heat map", style: { opacity: 0.7 } });
    this.gone = make("canvas", { width: grid[0].length, height: grid.length });
    const slider = make("input", { type: "range", min: 0, max: 100, value: 70, oninput: () => this.heat.style.setProperty("opacity", slider.value / 100) });
    const overlay = make("div", { class: "overlay" }, make("img", { src: image, alt: "The image" }), this.heat, this.gone);
    overlay.addEventListener("click", (event) => {
      const area = overlay.getBoundingClientRect();
      const row = Math.min(grid.length - 1, Math.floor(((event.clientY - area.top) / area.height) * grid.length));
      const column = Math.min(grid[0].length - 1, Math.floor(((event.clientX - area.left) / area.width) * grid[0].length));
      toggle([grid[row][column]]);
    });
    this.element = make("div", {}, overlay, make("label", { class: "slider" }, "Heat map", slider));
  }

  shade(found) { this.heat.src = found.heat; }

  fold() {}

  mark(removed) {
    const paper = this.gone.getContext("2d");
    paper.clearRect(0, 0, this.gone.width, this.gone.height);
    paper.fillStyle = "#7a3fd0"; // neither a colour of the heat map nor of most images
    this.shown.grid.forEach((row, y) => row.forEach((feature, x) => { if (removed.has(feature)) paper.fillRect(x, y, 1, 1); }));
  }
}

// The answer of a language model; `choose` is called with the column of a token that is pressed.
export function answerOf({ answer }, chosen, amounts, choose) {
  const button = ([column, text, isToken]) => make("button", { type: "button", class: isToken ? "token" : "whole", "aria-pressed": String(column === chosen), title: amounts?.[column] ?? "", disabled: !choose, onclick: () => choose(column) }, isToken ? text.replaceAll("\n", "⏎") : text);
  const tokens = answer.tokens.filter(([, , isToken]) => isToken), whole = answer.tokens.filter(([, , isToken]) => !isToken);
  const line = make("p", { class: "text answer", lang: "", dir: "auto", role: "group", "aria-label": "Answer: press a token to see what it rests on" }, ...tokens.map(button));
  const said = answer.generation ? `The model's own answer (${answer.generation}).` : "The answer that was given.";
  const about = make("p", { class: "legend" }, `${said}${answer.rather_than ? ` Rather than “${answer.rather_than.trim()}”.` : ""} Press a token to see what it rests on: `, make("span", { class: "chips" }, ...whole.map(button)));
  return [make("h4", {}, "Answer"), line, about];
}

// The strongest features as bars with standard errors, each a button that removes the feature.
export function barsOf(shown, found, removed, most, toggle) {
  const { scores, errors, texts, order } = found;
  const error = (i) => errors?.[i] ?? 0;
  const low = Math.min(0, ...order.map((i) => scores[i] - error(i))), high = Math.max(0, ...order.map((i) => scores[i] + error(i)));
  const width = high - low || 1, at = (value) => (100 * (value - low)) / width;
  const span = (from, to) => ({ left: `${at(Math.min(from, to))}%`, width: `${Math.abs(at(to) - at(from))}%` });
  const line = (i) => {
    const name = shown.features[i], pressed = removed.has(i);
    const bar = make("div", {}, scores[i] ? make("i", { class: scores[i] > 0 ? "support" : "against", style: span(0, scores[i]) }) : "", error(i) ? make("i", { class: "error", style: span(scores[i] - error(i), scores[i] + error(i)) }) : "");
    const button = make("button", { type: "button", class: pressed ? "gone" : "", "aria-pressed": String(pressed), "data-feature": i, title: `${name}: press to remove it`, onclick: () => toggle([i]) }, name);
    return make("tr", {}, make("th", {}, button), shown.values ? make("td", { class: "name quiet" }, shown.values[i]) : "", make("td", {}, bar), make("td", {}, texts[i]));
  };
  const table = (features) => make("table", { class: "bars", lang: "", style: { "--zero": `${at(0)}%` } }, make("tbody", {}, ...features.map(line)));
  const strongest = new Set([...order].sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a])).slice(0, shown.kind === "table" ? undefined : most));
  const [first, rest] = [order.filter((i) => strongest.has(i)), order.filter((i) => !strongest.has(i))];
  return [table(first), ...(rest.length ? [make("details", {}, make("summary", {}, `${rest.length} more`), table(rest))] : [])];
}

// The model's answer for each class, before and after features were removed; a class with scores is a button.
export function predictionsOf(before, now, listed, { isValue, chosen, choose }) {
  const ends = isValue ? [...listed.flatMap((i) => [before.values[i], now.values[i]]), 0] : [0, 1];
  const low = Math.min(...ends), width = Math.max(...ends) - low || 1, at = (value) => (100 * (value - low)) / width;
  return listed.map((i) => {
    const name = before.classes[i], [from, to] = [at(Math.min(0, now.values[i])), at(Math.max(0, now.values[i]))];
    const label = choose ? make("button", { type: "button", "aria-pressed": String(i === chosen), title: `What speaks for ${name}?`, onclick: () => choose(i) }, name) : i === chosen ? make("strong", {}, name) : name;
    const track = make("span", { class: "track" }, make("i", { class: "plain", style: { left: `${from}%`, width: `${to - from}%` } }), now === before ? "" : make("i", { class: "was", style: { left: `${at(before.values[i])}%` } }));
    const amount = now === before ? before.amounts[i] : `${before.amounts[i]} → ${now.amounts[i]}`;
    return make("tr", {}, make("th", { scope: "row", class: "name tight", title: name }, label), make("td", {}, track), make("td", { class: "number tight" }, amount));
  });
}

// From the base value to the prediction: each bar begins where the last one ends.
export function waterfallOf(steps) {
  const ends = [0, ...steps.flatMap(([, start, end]) => [start, end])], low = Math.min(...ends), width = Math.max(...ends) - low || 1;
  const at = (value) => (100 * (value - low)) / width;
  const line = ([name, start, end, text], place) => {
    const isEnd = place === 0 || place === steps.length - 1, kind = isEnd ? "at" : end > start ? "support" : "against";
    const bar = make("i", { class: kind, style: { left: `${at(Math.min(start, end))}%`, width: `${Math.abs(at(end) - at(start))}%` } });
    return make("tr", {}, make("th", { scope: "row", title: name }, isEnd ? make("strong", {}, name) : name), make("td", {}, make("div", {}, bar)), make("td", {}, text));
  };
  return make("table", { class: "bars", lang: "", style: { "--zero": `${at(0)}%` } }, make("tbody", {}, ...steps.map(line)));
}

// What is measured as more of the strongest features are kept (an insertion curve) or removed (a deletion curve).
export function curveOf([name, arrow, points]) {
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const values = [0, ...points.map(([, value]) => value)], low = Math.min(...values), height = Math.max(...values) - low || 1;
  const x = (share) => 40 + (150 * share) / points.at(-1)[0], y = (value) => 84 - (76 * (value - low)) / height;
  const svg = draw("svg", { viewBox: "0 0 210 120", role: "img", "aria-label": `${name}: ${points.map(([share, value]) => `${value.toFixed(3)} at ${Math.round(100 * share)}%`).join(", ")}` });
  const axis = draw("g", { class: "axis" });
  axis.append(draw("line", { x1: 40, x2: 194, y1: y(0), y2: y(0) }), draw("line", { x1: 40, x2: 40, y1: 4, y2: 88 }));
  axis.append(draw("text", { x: 36, y: y(low + height) + 4, "text-anchor": "end" }, (low + height).toPrecision(2)), draw("text", { x: 36, y: y(low) + 4, "text-anchor": "end" }, low.toPrecision(2)));
  axis.append(draw("text", { x: x(points.at(-1)[0]), y: 104, "text-anchor": "middle" }, `${Math.round(100 * points.at(-1)[0])}%`), draw("text", { x: 40, y: 104, "text-anchor": "middle" }, "0%"));
  const line = draw("g", { class: "line0" });
  line.append(draw("polyline", { points: points.map(([share, value]) => `${x(share)},${y(value)}`).join(" ") }));
  svg.append(axis, line);
  return make("figure", { class: "picture narrow" }, svg, make("figcaption", {}, `${name} ${arrow} by share of features`));
}
