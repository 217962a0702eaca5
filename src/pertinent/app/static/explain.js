// The page that explains one input. The server renders the form and the results; this script swaps them into the page.
import { addSliders } from "./overlay.js";

const POLICY = globalThis.trustedTypes?.createPolicy("fragments", { createHTML: (html) => html });
const panels = document.querySelector("#panels"), open = [];
const LONGEST_ADDRESS = 2000; // characters of a form in the address; a longer one is kept in the session only
const TYPING_PAUSE = 300; // milliseconds without a key press before the form is remembered

async function ask(path, body, signal) {
  const settings = body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await fetch(path, { ...settings, signal });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", done, value; { done, value } = await reader.read(), !done; ) {
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const each of whole) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(each);
      yield [name, JSON.parse(data)];
    }
  }
}

// Puts HTML of the server into an element; what has the focus or is unfolded stays so.
function swap(element, html) {
  const key = (node) => JSON.stringify([node.tagName, node.name, node.dataset]);
  const focused = element.contains(document.activeElement) && key(document.activeElement);
  const unfolded = new Set([...element.querySelectorAll("details[open]")].map((each) => each.textContent.slice(0, 40)));
  element.innerHTML = POLICY ? POLICY.createHTML(html) : html;
  for (const each of element.querySelectorAll("details")) if (unfolded.has(each.textContent.slice(0, 40))) each.open = true;
  if (focused) [...element.querySelectorAll("button, input, select, textarea, [data-features]")].find((each) => key(each) === focused)?.focus();
}

// The fields of a form: numbers of number inputs, flags of checkboxes, and an object for each named fieldset.
function fieldsOf(element) {
  const fields = {};
  for (const box of element.querySelectorAll("[name]:not(fieldset)")) {
    const group = box.closest("fieldset[name]"), into = group ? (fields[group.name] ??= {}) : fields;
    into[box.name] = box.type === "checkbox" ? box.checked : box.type === "number" ? (box.value === "" ? null : box.valueAsNumber) : box.value;
  }
  return fields;
}

class Panel {
  constructor(copied) {
    Object.assign(this, { copied, removed: new Set(), id: null, typing: 0 });
    this.root = document.querySelector("#panel").content.firstElementChild.cloneNode(true);
    this.form = this.root.querySelector("form");
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.explain(); });
    this.form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit(); });
    this.form.addEventListener("input", () => { clearTimeout(this.typing); this.typing = setTimeout(remember, TYPING_PAUSE); });
    this.form.addEventListener("change", (event) => this.change(event.target));
    this.root.addEventListener("click", (event) => this.report(this.click(event)));
    this.root.addEventListener("keydown", (event) => this.move(event));
    this.root.addEventListener("dragover", (event) => { if (event.target.closest(".drop")) event.preventDefault(); });
    this.root.addEventListener("drop", (event) => { if (event.target.closest(".drop")) { event.preventDefault(); this.read(event.dataTransfer.files[0]); } });
    panels.append(this.root);
    open.push(this);
  }

  part(name) { return this.root.querySelector(`[data-part="${name}"]`); }
  button(name) { return this.root.querySelector(`[data-do="${name}"]`); }
  say(message, isError = false) {
    this.part("status").textContent = message;
    this.part("status").classList.toggle("error", isError);
  }

  // Shows the error of an action; an aborted action has none.
  async report(action) {
    try {
      await action;
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message, true);
    }
  }

  // -- the form ---------------------------------------------------------------------------------

  get values() {
    const values = { input: fieldsOf(this.part("input")) };
    for (const name of ["model", "method", "target", "budget", "removal", "features", "seed"]) {
      const box = this.form.elements[name];
      if (box?.value) values[name] = box.type === "number" ? box.valueAsNumber : box.value;
    }
    return values;
  }

  // Shows the form with these values, and returns whether it could; `kind` is the kind of the input, if it is known.
  async fill(values) {
    this.stop("Loading the model …");
    this.clear();
    let isFilled = false;
    try {
      swap(this.form, await (await ask("/api/form", values)).text());
      isFilled = true;
      this.say("");
      this.describe();
    } catch (error) {
      this.say(error.message, true);
    }
    arrange();
    return isFilled;
  }

  describe() { this.part("about").textContent = this.form.elements.method.selectedOptions[0]?.dataset.summary ?? ""; }

  async change(box) {
    if (box.type === "file") return this.read(box.files[0]);
    if (box.name === "model") {
      const { model, method, budget, seed, input } = this.values;
      return this.fill({ model, method, budget, seed, input, kind: this.part("input").dataset.kind });
    }
    this.describe();
    remember();
    if (box.name === "method" || box.name === "target") return;
    this.listing?.abort();
    this.listing = new AbortController();
    let html;
    try {
      html = await (await ask("/api/methods", this.values, this.listing.signal)).text();
    } catch {
      return; // the form may be incomplete; `explain` reports what is wrong with it
    }
    const select = this.form.elements.method, chosen = select.value; // the method may have changed meanwhile
    swap(select, html);
    if ([...select.options].some(({ value, disabled }) => value === chosen && !disabled)) select.value = chosen;
    this.describe();
  }

  read(file) {
    if (!file) return;
    const reader = new FileReader(), picture = this.root.querySelector(".drop img");
    reader.addEventListener("load", () => {
      picture.src = this.form.elements.image.value = reader.result;
      picture.hidden = false;
      this.change(this.form.elements.image);
    });
    reader.readAsDataURL(file);
  }

  // -- the result -------------------------------------------------------------------------------

  async explain() {
    this.stop("Asking the model …");
    this.clear();
    remember();
    const controller = (this.working = new AbortController());
    this.busy(true);
    try {
      const response = await ask("/api/explain", this.values, controller.signal);
      for await (const [name, data] of events(response)) this[name](data);
    } catch (error) {
      if (!controller.signal.aborted) this.failed({ reason: error.message });
    }
    if (this.working === controller) this.busy(false);
  }

  busy(isBusy) {
    this.button("stop")?.toggleAttribute("hidden", !isBusy);
    this.root.querySelector("progress").hidden = !isBusy;
    this.part("result").setAttribute("aria-busy", isBusy);
  }

  stop(message) {
    this.working?.abort();
    this.changing?.abort();
    this.listing?.abort();
    this.busy(false);
    if (message !== undefined) this.say(message);
  }

  clear() {
    this.part("result").replaceChildren();
    this.part("difference").replaceChildren();
    Object.assign(this, { id: null, removed: new Set() });
    for (const other of open) if (other.copied === this) other.part("difference").replaceChildren();
  }

  status({ text, share }) {
    const bar = this.root.querySelector("progress");
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
    this.say(text);
  }

  failed({ reason }) {
    this.clear();
    this.say(reason, true);
  }

  result({ id, html, done }) {
    this.id = id;
    this.show(html);
    if (done) for (const panel of open) panel.compare();
  }

  // Swaps in a result; the prediction without the removed features stays.
  show(html) {
    const kept = this.removed.size ? ["removed", "prediction"].map((name) => this.part(name)) : [];
    swap(this.part("result"), html);
    for (const part of kept) this.part(part.dataset.part).replaceWith(part);
    const chosen = this.root.querySelector("[data-column][aria-pressed=true]")?.dataset.column;
    addSliders(this.part("result"));
    for (const [index, part] of [...this.root.querySelectorAll(".columns [data-features]:not(button)")].entries()) {
      part.setAttribute("role", "button");
      part.setAttribute("tabindex", index ? -1 : 0);
    }
    for (const button of this.root.querySelectorAll("[data-column]")) button.ariaPressed = String(button.dataset.column === (this.column ?? chosen));
    this.mark();
  }

  mark() {
    for (const part of this.root.querySelectorAll("[data-features]")) {
      const gone = part.dataset.features.split(" ").every((i) => this.removed.has(Number(i)));
      part.classList.toggle("gone", gone);
      part.setAttribute("aria-pressed", gone);
    }
  }

  async compare() {
    if (!this.copied?.id || !this.id) return this.part("difference").replaceChildren();
    this.part("difference").textContent = await (await ask(`/api/difference/${this.id}/${this.copied.id}`)).text();
  }

  async choose(column) {
    const html = await (await ask(`/api/results/${this.id}/${column}`)).text();
    this.column = column;
    this.show(html);
    this.column = undefined;
  }

  async remove(features) {
    const add = !this.removed.has(features[0]);
    for (const i of features) this.removed[add ? "add" : "delete"](i);
    this.mark();
    this.changing?.abort();
    const controller = (this.changing = new AbortController());
    const body = { id: this.id, features: [...this.removed].sort((a, b) => a - b) };
    const fragment = document.createElement("div");
    try {
      swap(fragment, await (await ask("/api/without", body, controller.signal)).text());
    } catch (error) {
      if (error.name !== "AbortError") {
        for (const i of features) this.removed[add ? "delete" : "add"](i);
        this.mark();
      }
      throw error;
    }
    const pressed = this.root.querySelector("[data-column][aria-pressed=true]")?.dataset.column;
    for (const part of fragment.querySelectorAll("[data-part]")) this.part(part.dataset.part).replaceWith(part);
    for (const button of this.part("prediction").querySelectorAll("[data-column]")) button.ariaPressed = String(button.dataset.column === pressed);
    if (!this.removed.size) this.part("removed").replaceChildren();
  }

  // -- clicks and keys --------------------------------------------------------------------------

  async click({ target }) {
    const button = target.closest("[data-do], [data-input], [data-features], [data-column]"), { dataset } = button ?? {};
    if (!button) return;
    if (dataset.features) await this.remove(dataset.features.split(" ").map(Number));
    else if (dataset.column) await this.choose(dataset.column);
    else if (dataset.input) { if (await this.fill({ ...this.values, input: JSON.parse(dataset.input) })) await this.explain(); }
    else if (dataset.do === "restore") await this.remove([...this.removed]);
    else if (dataset.do === "stop") this.stop("Stopped.");
    else if (dataset.do === "copy") await new Panel(this).fill(this.values);
    else if (dataset.do === "close") this.close();
  }

  // Arrows move between the features of a drawing, space and enter remove one.
  move(event) {
    const parts = [...this.root.querySelectorAll("[role=button][data-features]")], index = parts.indexOf(event.target);
    if (index < 0) return;
    const next = parts[index + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? NaN)];
    if (next) {
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if ([" ", "Enter"].includes(event.key)) this.report(this.click(event));
    else return;
    event.preventDefault();
  }

  close() {
    this.stop();
    this.root.remove();
    open.splice(open.indexOf(this), 1);
    for (const other of open) if (other.copied === this) other.copied = null;
    arrange();
  }
}

function arrange() {
  for (const panel of open) {
    panel.button("close")?.toggleAttribute("hidden", open.length < 2);
    panel.button("copy")?.toggleAttribute("hidden", open.length > 1);
  }
}

// Keeps the first form in the address, so that it can be reloaded and shared, or in the session if it is long.
function remember() {
  const text = JSON.stringify(open[0].values), fragment = `#${encodeURIComponent(text)}`;
  try {
    sessionStorage.setItem("form", text);
  } catch { // an image may be larger than the quota
    sessionStorage.removeItem("form");
  }
  history.replaceState(null, "", fragment.length > LONGEST_ADDRESS ? "#session" : fragment);
}

function remembered() {
  try {
    const text = location.hash === "#session" ? sessionStorage.getItem("form") : decodeURIComponent(location.hash.slice(1));
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

const first = new Panel(), start = { budget: 500, ...JSON.parse(panels.dataset.start) }, saved = remembered();
// A remembered form may name a model that is no longer served.
if (!saved || !(await first.fill({ budget: 500, ...saved }))) await first.fill(start);
