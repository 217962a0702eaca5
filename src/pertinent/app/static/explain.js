// The page on which one input is explained. Everything is put on the page as text, never as markup.
import { answerOf, barsOf, curveOf, drawingOf, predictionsOf, waterfallOf } from "./drawings.js";
import { editorFor } from "./inputs.js";
import { ask, events, make } from "./page.js";

const SHOWN = 12; // how many bars there are at first
const panels = document.querySelector("#panels");
const choices = new Map(); // what may be chosen, by model
const open = [];

async function choicesOf(model) {
  if (!choices.has(model)) choices.set(model, ask(`/api/choices?model=${encodeURIComponent(model)}`).then((r) => r.json()));
  try {
    return await choices.get(model);
  } catch (error) {
    choices.delete(model);
    throw error;
  }
}

class Panel {
  constructor(copied) {
    this.root = document.querySelector("#panel").content.firstElementChild.cloneNode(true);
    this.form = this.root.querySelector("form");
    this.removed = new Set();
    this.copied = copied ?? null;
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

  // `given` is an input to begin with: its kind, if that is known, and the fields of a question.
  async choose(values = {}, given) {
    this.stop("");
    this.part("result").hidden = true;
    this.say("Loading the model …");
    this.root.querySelector(".go").disabled = true;
    this.given = given ?? this.given;
    try {
      const found = await choicesOf(this.field("model").value);
      this.choice = found;
      const isPrompt = found.kind === "prompt", isValue = found.output === "value";
      this.fill("method", found.methods.map(([name]) => name));
      found.methods.forEach(([, , refusal], i) => Object.assign(this.field("method").options[i], { disabled: !!refusal, title: refusal }));
      this.fill("target", found.classes, isPrompt ? "the answer" : isValue ? "the first value" : `the predicted ${found.output}`);
      this.fill("removal", found.removals, "what suits the model");
      this.fill("features", found.features, "as usual");
      this.field("target").parentElement.hidden = isPrompt;
      for (const [name, value] of Object.entries(values)) if (this.field(name)) this.field(name).value = value;
      if (this.field("method").selectedOptions[0]?.disabled ?? true) this.field("method").value = found.methods.find(([, , refusal]) => !refusal)[0];
      this.field("budget").max = found.limits.budget;
      this.describe();
      const fits = this.given && [undefined, found.kind].includes(this.given.kind);
      this.showEditor(fits ? this.given.fields : found.examples[0]);
      this.showExamples();
      this.say(this.given && !fits ? `This model does not read the input, which is of kind ${this.given.kind}: choose another.` : "");
      if (fits) this.given = undefined;
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

  showEditor(fields) {
    this.editor = editorFor(this.choice, fields);
    this.part("given").replaceChildren(this.editor.element);
  }

  showExamples() {
    const shown = this.choice.examples.filter(({ text }) => text);
    this.part("examples").replaceChildren(...(shown.length ? [make("span", {}, "Examples:")] : []), ...shown.map((fields) =>
      make("button", { type: "button", title: fields.text, onclick: () => { this.showEditor(fields); this.explain(); } }, fields.text)));
  }

  question() {
    const found = { model: this.choice.name, method: this.field("method").value, seed: Number(this.field("seed").value || 0) };
    for (const name of ["target", "removal", "features"]) if (this.field(name).value) found[name] = this.field(name).value;
    if (this.field("budget").value) found.budget = Number(this.field("budget").value);
    return { ...found, ...this.editor.fields() };
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
    Object.assign(this, { shown: input, found: null, chosen: null, removed: new Set() });
    this.say(`${input.features.length} features.`);
    this.part("notes").replaceChildren(...input.notes.map((note) => make("p", { class: "note" }, `⚠ ${note}`)));
    for (const name of ["heading", "subheading", "legend", "removed", "answer", "bars", "sets", "facts", "curves", "difference"]) this.part(name).replaceChildren();
    this.drawing = drawingOf(input, (features) => this.toggle(features));
    this.part("drawn").replaceChildren(this.drawing.element);
    this.part("result").hidden = false;
  }

  prediction(prediction) {
    this.before = this.now = prediction;
    this.showAnswer();
    this.showPrediction();
  }

  partial(found) {
    this.show(found);
    const bar = this.root.querySelector("progress");
    if (this.asked.budget) { bar.max = this.asked.budget; bar.value = Number(found.facts.evaluations.replaceAll(",", "")); }
    this.say(`So far, after ${found.facts.evaluations} evaluations; it is being refined …`);
  }

  done(found) {
    this.show(found);
    this.drawing.fold(found);
    this.say(`Done: ${found.facts.evaluations} evaluations, ${found.facts["model time"]} of the model's time.`);
    const facts = [...found.measures.map(([name, arrow, mean]) => [`${name} ${arrow}`, mean]), ...Object.entries(found.facts)];
    this.part("facts").replaceChildren(...facts.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)]));
    this.part("curves").replaceChildren(...found.curves.map(curveOf));
    this.part("notes").append(...found.warnings.map((note) => make("p", { class: "note" }, `⚠ ${note}`)));
    const sets = found.sets.map(([label, members]) => make("tr", {}, make("th", { scope: "row", class: "tight" }, label), make("td", {}, members.map((i) => this.shown.features[i]).join(" · "))));
    if (sets.length) this.part("sets").replaceChildren(make("h4", {}, "Best set at each sparsity"), make("table", { class: "rows" }, make("tbody", {}, ...sets)));
    for (const panel of open) panel.showDifference();
  }

  // The explanation, or its scores for the class or token that was chosen.
  get scores() { return this.found.columns[this.chosen] ?? this.found; }

  show(found) {
    this.found = found;
    this.chosen = found.target;
    this.draw();
  }

  draw() {
    const found = this.scores, { classes, amounts, predicted } = this.before, { answer } = this.shown;
    this.part("heading").replaceChildren(answer ? `“${answer.text.trim()}”` : classes[predicted], " ", make("span", {}, amounts[predicted]));
    this.part("subheading").textContent = found.nothing ?? this.claim(found);
    this.drawing.shade(found);
    const [support, against] = found.directions;
    this.part("legend").replaceChildren(make("span", {}, against), make("span", { class: found.two_sides ? "scale" : "scale half" }), make("span", {}, support), found.clipping ? make("span", {}, found.clipping) : "");
    this.part("waterfall").hidden = !found.waterfall.length;
    if (found.waterfall.length) this.part("waterfall").lastElementChild.replaceChildren(waterfallOf(found.waterfall));
    this.showAnswer();
    this.showBars();
    this.showPrediction();
  }

  claim({ target, target_name }) {
    const by = `according to ${this.asked.method}`, amount = this.before.amounts[target];
    if (this.shown.answer) return `What makes ${target ? `“${target_name}”` : "it"} likely, ${by}`;
    const verb = this.choice.output === "value" ? "moves" : "speaks for";
    return target === this.before.predicted ? `What ${verb} it, ${by}` : `What ${verb} ${target_name} (${amount}) instead, ${by}`;
  }

  // -- drawing ------------------------------------------------------------------------------------

  chooser() {
    return Object.keys(this.found?.columns ?? {}).length > 1 ? (column) => { this.chosen = column; this.keepFocus(() => this.draw()); } : undefined;
  }

  // Draws a part anew without losing the keyboard's place in it.
  keepFocus(drawAnew) {
    const at = document.activeElement, place = at?.closest?.("[data-part]"), buttons = () => [...place.querySelectorAll("button")];
    const number = place && this.root.contains(place) ? buttons().indexOf(at) : -1;
    drawAnew();
    if (number >= 0) buttons()[number]?.focus();
  }

  showAnswer() {
    if (this.shown.answer) this.part("answer").replaceChildren(...answerOf(this.shown, this.chosen, this.now.amounts, this.chooser()));
  }

  showBars() {
    const place = this.part("bars"), wasOpen = place.querySelector("details")?.open;
    place.replaceChildren(...barsOf(this.shown, this.scores, this.removed, SHOWN, (features) => this.toggle(features)));
    if (wasOpen) place.querySelector("details")?.setAttribute("open", "");
  }

  showPrediction() {
    const { before, now, shown } = this;
    const whole = shown.answer?.tokens.filter(([, , isToken]) => !isToken).map(([column]) => column);
    const listed = whole ?? this.found?.listed ?? before.classes.map((_, i) => i).slice(0, 10);
    const drawn = { isValue: this.choice.output === "value", chosen: this.chosen ?? before.predicted, choose: shown.answer ? undefined : this.chooser() };
    this.part("hint").textContent = drawn.choose ? "press a class to see what speaks for it" : "";
    this.part("prediction").replaceChildren(...predictionsOf(before, now, listed, drawn));
    this.part("details").textContent = shown.answer ? "" : Object.entries(before.details).map(([name, text]) => `${name}: ${text}`).join(" · ");
  }

  // -- what if ------------------------------------------------------------------------------------

  async toggle(features) {
    const add = !this.removed.has(features[0]);
    for (const i of features) this.removed[add ? "add" : "delete"](i);
    this.drawing.mark(this.removed);
    if (this.found) this.keepFocus(() => this.showBars());
    this.changing?.abort();
    const controller = (this.changing = new AbortController());
    const without = [...this.removed].sort((a, b) => a - b);
    try {
      const now = without.length ? await (await ask("/api/predict", { ...this.asked, without }, controller.signal)).json() : this.before;
      if (controller.signal.aborted) return;
      this.now = now;
      this.keepFocus(() => { this.showAnswer(); this.showPrediction(); });
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

  showDifference() {
    const from = this.copied, place = this.part("difference");
    if (!from?.before || !this.before || from.choice?.name !== this.choice?.name) return place.replaceChildren();
    const [theirs, ours] = [from.shown.answer?.text.trim(), this.shown.answer?.text.trim()];
    if (theirs !== ours) return place.replaceChildren(`Beside it the answer is “${theirs}”, here “${ours}”.`);
    const i = from.before.predicted, same = from.before.values.every((value, k) => value === this.before.values[k]);
    place.textContent = same ? "The same prediction as beside it." : `Beside it ${from.before.classes[i]} has ${from.before.amounts[i]}, here ${this.before.amounts[i]}.`;
  }
}

async function addPanel(like) {
  const panel = new Panel(like);
  open.push(panel);
  arrange();
  if (!like) {
    const given = await toBeginWith(), fitting = given && [...panel.field("model").options].find(({ dataset }) => dataset.kind === given.kind);
    if (fitting) fitting.selected = true;
    return panel.choose({}, given);
  }
  const values = Object.fromEntries(["method", "target", "budget", "removal", "features", "seed"].map((name) => [name, like.field(name).value]));
  panel.field("model").value = like.field("model").value;
  await panel.choose(values, { kind: like.choice.kind, fields: like.editor.fields() });
  panel.part("given").querySelector("textarea, input")?.focus();
}

// The input that the address names: the text in it, or that of a saved explanation.
async function toBeginWith() {
  const wanted = new URLSearchParams(location.search);
  if (wanted.has("saved")) return (await ask(`/api/saved/${encodeURIComponent(wanted.get("saved"))}`)).json();
  return wanted.has("text") ? { fields: { text: wanted.get("text") } } : undefined;
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
