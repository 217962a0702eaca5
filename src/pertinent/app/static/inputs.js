// Where an input is typed, edited or dropped. An editor has an `element`, and `fields` of a question to the server.
import { make } from "./page.js";

export function editorFor(choice, given = {}) {
  const editors = { text: textEditor, prompt: promptEditor, table: rowEditor, image: imageEditor };
  return editors[choice.kind](choice, given);
}

function box(name, label, value, choice, more = {}) {
  const area = make("textarea", { name, dir: "auto", maxlength: choice.limits.text, "aria-label": label, placeholder: label, ...more });
  area.value = value ?? "";
  return area;
}

function named(label, element) { return make("label", { class: "labelled" }, label, element); }

function textEditor(choice, given) {
  const pairOnly = choice.segments.length > 0;
  const [firstName, secondName] = pairOnly ? choice.segments : ["first text", "second text"];
  const first = box("text", pairOnly ? firstName : "Text to explain", given.text, choice, { class: pairOnly ? "short" : "" });
  const second = box("second", secondName, given.second, choice, { class: pairOnly ? "" : "short" });
  const fixed = make("select", { name: "fixed" }, ...[["none", "neither"], ["first", firstName], ["second", secondName]].map(([value, text]) => make("option", { value }, text)));
  fixed.value = given.second ? given.fixed ?? "none" : pairOnly ? "first" : "none";
  const pair = make("div", { class: "pair" }, named(secondName, second), named("never removed", fixed));
  const add = make("button", { type: "button", "data-do": "pair", onclick: () => show(true) }, "Add a second text that is read together with it");
  const show = (isPair) => { pair.hidden = !isPair; add.hidden = isPair; if (!isPair) second.value = ""; };
  if (!pairOnly) pair.append(make("p", { class: "more" }, make("button", { type: "button", onclick: () => show(false) }, "Leave the second text out")));
  show(pairOnly || Boolean(given.second));
  const fields = () => (pair.hidden || !second.value.trim() ? { text: first.value } : { text: first.value, second: second.value, fixed: fixed.value });
  return { element: make("div", {}, pairOnly ? named(firstName, first) : first, pair, make("p", { class: "more" }, add)), fields };
}

function promptEditor(choice, given) {
  const text = box("text", "The prompt, or a question about the sources", given.text, choice);
  const sources = box("sources", "Texts that the question is about, with an empty line between two of them; only these are explained", given.sources?.join("\n\n"), choice);
  const answer = make("input", { name: "answer", value: given.answer ?? "", placeholder: "the model's own" });
  const other = make("input", { name: "rather_than", value: given.rather_than ?? "", placeholder: "optional" });
  const chat = make("input", { type: "checkbox", name: "chat", checked: given.chat ?? false });
  const answers = make("div", { class: "settings" }, named("answer, as it follows the prompt", answer), named("rather than", other));
  if (choice.chat) answers.append(make("label", { class: "check" }, chat, "as a message of a chat"));
  const more = make("details", { open: Boolean(given.sources?.length) }, make("summary", {}, "Sources"), sources);
  const fields = () => {
    const found = { text: text.value, sources: sources.value.split(/\n\s*\n/).map((each) => each.trim()).filter(Boolean), chat: chat.checked };
    if (answer.value) found.answer = answer.value;
    if (other.value) found.rather_than = other.value;
    return found;
  };
  return { element: make("div", {}, named("Prompt", text), more, answers), fields };
}

function rowEditor(choice, given) {
  if (!given.row) throw new Error("The columns of this model are not known: wrap it with background= some rows.");
  const numeric = new Set(Object.keys(given.row).filter((name) => typeof given.row[name] === "number"));
  const boxes = Object.entries(given.row).map(([name, value]) => choice.values[name] ? categoryBox(name, value ?? "", choice.values[name])
    : make("input", { "data-column": name, value: value ?? "", inputmode: numeric.has(name) ? "decimal" : "text" }));
  const fields = () => {
    const row = {};
    for (const { dataset: { column }, value } of boxes) {
      row[column] = value === "" ? null : numeric.has(column) ? Number(value) : value;
      if (Number.isNaN(row[column])) throw new Error(`${column} must be a number, but is “${value}”.`);
    }
    return { row };
  };
  return { element: make("div", { class: "columns-of-row" }, ...boxes.map((each) => make("label", {}, each.dataset.column, each))), fields };
}

// The values that a column has in the background, and the one given, which may be another or missing.
function categoryBox(column, given, known) {
  const values = ["", ...known];
  if (!values.includes(String(given))) values.push(String(given));
  const select = make("select", { "data-column": column }, ...values.map((value) => make("option", { value }, value || "(missing)")));
  select.value = String(given);
  return select;
}

function imageEditor(choice, given) {
  let image = given.image ?? null;
  const picture = make("img", { alt: "The image to explain", hidden: !image });
  if (image) picture.src = image;
  const read = (file) => {
    if (!file) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => { picture.src = image = reader.result; picture.hidden = false; });
    reader.readAsDataURL(file);
  };
  const file = make("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp", "aria-label": "Image to explain", onchange: () => read(file.files[0]) });
  const drop = make("div", { class: "drop" }, "Drop an image here, or choose one: ", file, picture);
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); read(event.dataTransfer.files[0]); });
  const fields = () => {
    if (!image) throw new Error("There is no image yet: drop one, or choose a file.");
    return { image };
  };
  return { element: drop, fields };
}
