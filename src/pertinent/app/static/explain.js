// The page on which one input is explained. Everything is put on the page as text, never as markup.
const SHOWN = 12; // how many bars there are at first
const panels = document.querySelector("#panels");
const choices = new Map(); // what may be chosen, by model

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") for (const [rule, to] of Object.entries(value)) element.style.setProperty(rule, to);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

async function ask(path, body, signal) {
  const settings = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
  const response = await fetch(path, body === undefined ? {} : settings);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

async function choicesOf(model) {
  if (!choices.has(model)) choices.set(model, ask(`/api/choices?model=${encodeURIComponent(model)}`).then((r) => r.json()));
  try {
    return await choices.get(model);
  } catch (error) {
    choices.delete(model);
    throw error;
  }
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const each of whole) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(each);
      yield [name, JSON.parse(data)];
    }
  }
}

class Panel {
  constructor(copied) {
    this.root = document.querySelector("#panel").content.firstElementChild.cloneNode(true);
    this.form = this.root.querySelector("form");
    this.removed = new Set();
    this.copied = copied ?? null;
    this.part("status").textContent = "";
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.explain(); });
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.field("model").addEventListener("change", () => this.choose());
    this.field("method").addEventListener("change", () => this.describe());
    this.button("stop").addEventListener("click", () => this.stop("Stopped."));
    this.button("copy").addEventListener("click", () => addPanel(this));
    this.button("close").addEventListener("click", () => closePanel(this));
    panels.append(this.root);
  }

  part(name) { return this.root.querySelector(`[data-part="${name}"]`); }
  button(name) { return this.root.querySelector(`[data-do="${name}"]`); }
  field(name) { return this.form.elements[name]; }

  say(message, isError = false) {
    this.part("status").textContent = message;
    this.part("status").classList.toggle("error", isError);
  }

  // -- what is asked ---------------------------------------------------------------------------

  async choose(values = {}, given) {
    this.stop("");
    this.part("result").hidden = true;
    this.say("Loading the model …");
    this.root.querySelector(".go").disabled = true;
    try {
      const found = await choicesOf(this.field("model").value);
      this.choice = found;
      const predicted = found.output === "value" ? "the first value" : `the predicted ${found.output}`;
      this.fill("method", found.methods.map(([name]) => name));
      this.fill("target", found.classes, predicted);
      this.fill("removal", found.removals, "what suits the model");
      this.fill("features", found.features, "as usual");
      for (const [name, value] of Object.entries(values)) if (this.field(name)) this.field(name).value = value;
      this.field("budget").max = found.limits.budget;
      this.describe();
      this.showGiven(given ?? found.examples[0]);
      this.showExamples();
      this.say("");
      this.root.querySelector(".go").disabled = false;
    } catch (error) {
      this.say(error.message, true);
    }
  }

  fill(name, values, byDefault) {
    const options = values.map((value) => make("option", { value }, value));
    if (byDefault) options.unshift(make("option", { value: "" }, byDefault));
    this.field(name).replaceChildren(...options);
  }

  describe() {
    const about = this.choice.methods.find(([name]) => name === this.field("method").value);
    this.part("about").textContent = about ? `${about[0]}: ${about[1]}.` : "";
  }

  showGiven(given) {
    const place = this.part("given");
    if (this.choice.kind === "text") {
      const label = "Text to explain";
      const box = make("textarea", { name: "text", "aria-label": label, placeholder: label, dir: "auto", maxlength: this.choice.limits.text });
      box.value = given ?? "";
      place.replaceChildren(box);
    } else if (this.choice.kind === "table") {
      if (!given) throw new Error("The columns of this model are not known: wrap it with background= some rows.");
      this.numeric = new Set(Object.keys(given).filter((name) => typeof given[name] === "number"));
      const fields = Object.entries(given).map(([name, value]) =>
        make("label", {}, name, make("input", { "data-column": name, value: value ?? "", inputmode: this.numeric.has(name) ? "decimal" : "text" })));
      place.replaceChildren(make("div", { class: "columns-of-row" }, ...fields));
    } else {
      this.image = given ?? null;
      const picture = make("img", { alt: "The image to explain", hidden: !given });
      if (given) picture.src = given;
      const file = make("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp", "aria-label": "Image to explain", onchange: () => this.read(file.files[0], picture) });
      const drop = make("div", { class: "drop" }, "Drop an image here, or choose one: ", file, picture);
      drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
      drop.addEventListener("dragleave", () => drop.classList.remove("over"));
      drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); this.read(event.dataTransfer.files[0], picture); });
      place.replaceChildren(drop);
    }
  }

  read(file, picture) {
    if (!file) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      this.image = reader.result;
      picture.src = reader.result;
      picture.hidden = false;
    });
    reader.readAsDataURL(file);
  }

  showExamples() {
    const shown = this.choice.kind === "text" ? this.choice.examples : [];
    this.part("examples").replaceChildren(...shown.map((text) =>
      make("button", { type: "button", title: text, onclick: () => { this.field("text").value = text; this.explain(); } }, text)));
  }

  given() {
    if (this.choice.kind === "text") return this.field("text").value;
    if (this.choice.kind === "image") return this.image;
    const row = {};
    for (const box of this.part("given").querySelectorAll("input")) {
      const { column } = box.dataset;
      row[column] = box.value === "" ? null : this.numeric.has(column) ? Number(box.value) : box.value;
      if (Number.isNaN(row[column])) throw new Error(`${column} must be a number, but is “${box.value}”.`);
    }
    return row;
  }

  question() {
    const found = { model: this.choice.name, method: this.field("method").value, seed: Number(this.field("seed").value || 0) };
    for (const name of ["target", "removal", "features"]) if (this.field(name).value) found[name] = this.field(name).value;
    if (this.field("budget").value) found.budget = Number(this.field("budget").value);
    found[{ text: "text", table: "row", image: "image" }[this.choice.kind]] = this.given();
    return found;
  }

  // -- the answer while it is refined -----------------------------------------------------------

  async explain() {
    this.stop("");
    const controller = (this.working = new AbortController());
    this.busy(true);
    try {
      this.asked = this.question();
      this.say("Asking the model …");
      const response = await ask("/api/explain", this.asked, controller.signal);
      for await (const [name, data] of events(response)) this[name](data);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.say(error.message, true);
    }
    if (this.working === controller) this.busy(false);
  }

  busy(isBusy) {
    this.button("stop").hidden = !isBusy;
    this.root.querySelector("progress").hidden = !isBusy;
    this.root.classList.toggle("working", isBusy);
  }

  stop(message) {
    this.working?.abort();
    this.changing?.abort();
    this.busy(false);
    if (message) this.say(message);
  }

  queued({ position }) { this.say(`Waiting: number ${position} in line.`); }
  failed({ reason }) { this.say(reason, true); }

  input(input) {
    Object.assign(this, { shown: input, found: null, removed: new Set() });
    this.say(`${input.features.length} features.`);
    this.part("notes").replaceChildren(...input.notes.map((note) => make("p", { class: "note" }, `⚠ ${note}`)));
    for (const name of ["heading", "subheading", "legend", "removed", "bars", "sets", "facts", "difference"]) this.part(name).replaceChildren();
    if (input.kind === "text") this.drawText();
    else if (input.kind === "image") this.drawImage();
    else this.part("drawn").replaceChildren();
    this.part("result").hidden = false;
  }

  prediction(prediction) {
    this.before = this.now = prediction;
    this.showPrediction();
  }

  partial(found) {
    this.show(found);
    const n = Number(found.facts.evaluations.replaceAll(",", ""));
    const bar = this.root.querySelector("progress");
    if (this.asked.budget) { bar.max = this.asked.budget; bar.value = n; }
    this.say(`So far, after ${found.facts.evaluations} evaluations; it is being refined …`);
  }

  done(found) {
    this.show(found);
    this.say(`Done: ${found.facts.evaluations} evaluations, ${found.facts["model time"]} of the model's time.`);
    const facts = [...found.measures.map(([name, arrow, mean]) => [`${name} ${arrow}`, mean]), ...Object.entries(found.facts)];
    this.part("facts").replaceChildren(...facts.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)]));
    this.part("notes").append(...found.warnings.map((note) => make("p", { class: "note" }, `⚠ ${note}`)));
    const sets = found.sets.map(([label, members]) => make("tr", {}, make("th", { scope: "row", class: "tight" }, label), make("td", {}, members.map((i) => this.shown.features[i]).join(" · "))));
    if (sets.length) this.part("sets").replaceChildren(make("h4", {}, "Best set at each sparsity"), make("table", { class: "rows" }, make("tbody", {}, ...sets)));
    for (const panel of open) panel.showDifference();
  }

  show(found) {
    this.found = found;
    const { classes, amounts, predicted } = this.before;
    this.part("heading").replaceChildren(classes[predicted], " ", make("span", {}, amounts[predicted]));
    this.part("subheading").textContent = found.nothing ?? (found.target === predicted ? `What ${this.choice.output === "value" ? "moves" : "speaks for"} it, according to ${this.asked.method}` : `What speaks for ${found.target_name} (${amounts[found.target]}) instead, according to ${this.asked.method}`);
    if (this.shown.kind === "text") this.shadeText();
    if (this.shown.kind === "image") this.part("drawn").querySelector(".heat").src = found.heat;
    const [support, against] = found.directions;
    this.part("legend").replaceChildren(make("span", {}, against), make("span", { class: found.two_sides ? "scale" : "scale half" }), make("span", {}, support), found.clipping ? make("span", {}, found.clipping) : "");
    this.showBars();
    this.showPrediction();
  }

  // -- drawing ------------------------------------------------------------------------------------

  drawText() {
    const text = make("p", { class: "text", lang: "", dir: "auto", role: "group", "aria-label": "Features: press one to remove it" });
    for (const [characters, features, unread] of this.shown.pieces) {
      if (!features.length) text.append(unread ? make("span", { class: "unread" }, characters) : characters);
      else text.append(make("span", { class: "w", role: "button", tabindex: text.querySelector(".w") ? -1 : 0, "aria-pressed": "false", "data-features": features.join(" ") }, characters));
    }
    text.addEventListener("click", (event) => this.toggleWord(event.target));
    text.addEventListener("keydown", (event) => {
      const words = [...text.querySelectorAll(".w")], place = words.indexOf(event.target);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step && words[place + step]) {
        event.target.tabIndex = -1;
        words[place + step].tabIndex = 0;
        words[place + step].focus();
      } else if ([" ", "Enter"].includes(event.key) && place >= 0) this.toggleWord(event.target);
      else return;
      event.preventDefault();
    });
    this.part("drawn").replaceChildren(text);
  }

  toggleWord(word) {
    if (word.dataset.features) this.toggle(word.dataset.features.split(" ").map(Number));
  }

  shadeText() {
    const chosen = new Set(this.found.sets[0]?.[1]);
    for (const word of this.part("drawn").querySelectorAll(".w")) {
      const features = word.dataset.features.split(" ").map(Number);
      const strongest = features.reduce((best, i) => (Math.abs(this.found.shares[i]) > Math.abs(this.found.shares[best]) ? i : best));
      const share = this.found.shares[strongest];
      word.style.setProperty("--share", `${Math.round(100 * Math.abs(share))}%`);
      word.classList.toggle("against", share < 0);
      word.classList.toggle("in", features.some((i) => chosen.has(i)));
      word.title = features.map((i) => this.found.texts[i]).join("; ");
    }
  }

  drawImage() {
    const heat = make("img", { class: "heat", alt: "Heat map", style: { opacity: 0.7 } });
    const gone = make("canvas", { width: this.shown.grid[0].length, height: this.shown.grid.length });
    const slider = make("input", { type: "range", min: 0, max: 100, value: 70, oninput: () => heat.style.setProperty("opacity", slider.value / 100) });
    const overlay = make("div", { class: "overlay" }, make("img", { src: this.shown.image, alt: "The image" }), heat, gone);
    overlay.addEventListener("click", (event) => {
      const box = overlay.getBoundingClientRect(), { grid } = this.shown;
      const row = Math.min(grid.length - 1, Math.floor(((event.clientY - box.top) / box.height) * grid.length));
      const column = Math.min(grid[0].length - 1, Math.floor(((event.clientX - box.left) / box.width) * grid[0].length));
      this.toggle([grid[row][column]]);
    });
    this.part("drawn").replaceChildren(overlay, make("label", { class: "slider" }, "Heat map", slider));
  }

  showBars() {
    const { scores, errors, texts, order } = this.found;
    const reach = (i) => Math.abs(scores[i]) + (errors?.[i] ?? 0);
    const low = Math.min(0, ...order.map((i) => scores[i] - (errors?.[i] ?? 0))), high = Math.max(0, ...order.map((i) => scores[i] + (errors?.[i] ?? 0)));
    const width = high - low || 1, at = (value) => (100 * (value - low)) / width;
    const span = (from, to) => ({ left: `${at(Math.min(from, to))}%`, width: `${Math.abs(at(to) - at(from))}%` });
    const line = (i) => {
      const name = this.shown.features[i], error = errors?.[i] ?? 0;
      const pressed = this.removed.has(i);
      const bar = make("div", {}, scores[i] ? make("i", { class: scores[i] > 0 ? "support" : "against", style: span(0, scores[i]) }) : "", error ? make("i", { class: "error", style: span(scores[i] - error, scores[i] + error) }) : "");
      const button = make("button", { type: "button", class: pressed ? "gone" : "", "aria-pressed": String(pressed), "data-feature": i, title: `${name}: press to remove it`, onclick: () => this.toggle([i]) }, name);
      return make("tr", {}, make("th", {}, button), this.shown.values ? make("td", { class: "name quiet" }, this.shown.values[i]) : "", make("td", {}, bar), make("td", {}, texts[i]));
    };
    const focused = document.activeElement?.dataset?.feature, place = this.part("bars"), inside = place.contains(document.activeElement);
    const wasOpen = place.querySelector("details")?.open;
    const shown = this.shown.kind === "table" ? order : order.filter(reach).slice(0, SHOWN);
    const rest = order.filter((i) => !shown.includes(i));
    const table = (features) => make("table", { class: "bars", lang: "", style: { "--zero": `${at(0)}%` } }, make("tbody", {}, ...features.map(line)));
    place.replaceChildren(table(shown));
    if (rest.length) place.append(make("details", { open: wasOpen ?? false }, make("summary", {}, `${rest.length} more`), table(rest)));
    if (inside && focused !== undefined) place.querySelector(`[data-feature="${focused}"]`)?.focus();
  }

  showPrediction() {
    const { before, now } = this;
    const listed = this.found?.listed ?? before.classes.map((_, i) => i).slice(0, 10);
    const isValue = this.choice.output === "value";
    const ends = isValue ? [...before.values, ...now.values, 0] : [0, 1];
    const low = Math.min(...ends), width = Math.max(...ends) - low || 1, at = (value) => (100 * (value - low)) / width;
    this.part("prediction").replaceChildren(...listed.map((i) => {
      const name = i === (this.found?.target ?? before.predicted) ? make("strong", {}, before.classes[i]) : before.classes[i];
      const [from, to] = [at(Math.min(0, now.values[i])), at(Math.max(0, now.values[i]))];
      const track = make("span", { class: "track" }, make("i", { class: "plain", style: { left: `${from}%`, width: `${to - from}%` } }), now === before ? "" : make("i", { class: "was", style: { left: `${at(before.values[i])}%` } }));
      const amount = now === before ? before.amounts[i] : `${before.amounts[i]} → ${now.amounts[i]}`;
      return make("tr", {}, make("th", { scope: "row", class: "name tight", title: before.classes[i] }, name), make("td", {}, track), make("td", { class: "number tight" }, amount));
    }));
  }

  // -- what if ------------------------------------------------------------------------------------

  async toggle(features) {
    const add = !this.removed.has(features[0]);
    for (const i of features) this.removed[add ? "add" : "delete"](i);
    for (const word of this.part("drawn").querySelectorAll(".w")) {
      const gone = word.dataset.features.split(" ").every((i) => this.removed.has(Number(i)));
      word.classList.toggle("gone", gone);
      word.setAttribute("aria-pressed", String(gone));
    }
    if (this.shown.kind === "image") this.paintGone();
    if (this.found) this.showBars();
    this.changing?.abort();
    const controller = (this.changing = new AbortController());
    const without = [...this.removed].sort((a, b) => a - b);
    try {
      const now = without.length ? await (await ask("/api/predict", { ...this.asked, without }, controller.signal)).json() : this.before;
      if (controller.signal.aborted) return;
      this.now = now;
      this.showPrediction();
      this.showRemoved(without);
    } catch (error) {
      if (!controller.signal.aborted) this.say(error.message, true);
    }
  }

  showRemoved(without) {
    if (!without.length) return this.part("removed").replaceChildren();
    const names = without.map((i) => this.shown.features[i]), { before, now } = this;
    const changed = before.predicted !== now.predicted ? ` The prediction becomes ${now.classes[now.predicted]}.` : "";
    const back = make("button", { type: "button", onclick: () => this.toggle(without) }, "Put back");
    this.part("removed").replaceChildren(make("span", {}, `Without “${names.slice(0, 8).join("”, “")}”${names.length > 8 ? " …" : ""}.${changed}`), make("span", { class: "chips" }, back));
  }

  paintGone() {
    const canvas = this.part("drawn").querySelector("canvas"), paper = canvas.getContext("2d");
    paper.clearRect(0, 0, canvas.width, canvas.height);
    paper.fillStyle = "#7a3fd0"; // neither a colour of the heat map nor of most images
    this.shown.grid.forEach((row, y) => row.forEach((feature, x) => { if (this.removed.has(feature)) paper.fillRect(x, y, 1, 1); }));
  }

  showDifference() {
    const from = this.copied, place = this.part("difference");
    if (!from?.before || !this.before || from.choice?.name !== this.choice?.name) return place.replaceChildren();
    const i = from.before.predicted, same = from.before.values.every((value, k) => value === this.before.values[k]);
    place.textContent = same ? "The same prediction as beside it." : `Beside it ${from.before.classes[i]} has ${from.before.amounts[i]}, here ${this.before.amounts[i]}.`;
  }
}

const open = [];

async function addPanel(like) {
  const panel = new Panel(like);
  open.push(panel);
  arrange();
  if (!like) return panel.choose({}, new URLSearchParams(location.search).get("text") ?? undefined);
  const values = Object.fromEntries(["method", "target", "budget", "removal", "features", "seed"].map((name) => [name, like.field(name).value]));
  panel.field("model").value = like.field("model").value;
  await panel.choose(values, like.given());
  panel.part("given").querySelector("textarea, input")?.focus();
}

function closePanel(panel) {
  panel.stop("");
  panel.root.remove();
  open.splice(open.indexOf(panel), 1);
  for (const other of open) if (other.copied === panel) other.copied = null;
  arrange();
}

function arrange() {
  for (const panel of open) {
    panel.button("close").hidden = open.length < 2;
    panel.button("copy").hidden = open.length > 1;
  }
}

addPanel();
