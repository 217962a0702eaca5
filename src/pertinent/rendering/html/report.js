// Searches, filters, sorts and pages through a report. Inputs of a long report are compressed; their HTML was escaped
// when the report was written.
const PAGE = 20; // number of inputs shown per page

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

function listed(table) {
  const controls = document.querySelector(".controls"), pages = document.querySelector(".pages");
  const [search, only, count] = ["input", "select", "output"].map((tag) => controls.querySelector(tag));
  const [[back, next], place] = [pages.querySelectorAll("button"), pages.querySelector("output")];
  const inputs = [...table.tBodies[0].rows].map((row) => {
    const section = document.getElementById(row.querySelector("a").hash.slice(1));
    const words = [row, ...section.querySelectorAll(".text")].map((part) => part.textContent);
    return { row, section, text: words.join(" ").toLowerCase(), predicted: row.dataset.predicted };
  });
  let fitting = inputs, page = 0;

  async function show(number) {
    page = Math.max(0, Math.min(number, Math.ceil(fitting.length / PAGE) - 1));
    const shown = fitting.slice(page * PAGE, (page + 1) * PAGE);
    for (const { section } of inputs) section.hidden = true;
    for (const { section } of shown) {
      section.hidden = false;
      if (!section.dataset.packed) continue;
      const { packed } = section.dataset;
      delete section.dataset.packed;
      section.innerHTML = await unpack(packed);
      addSliders(section);
    }
    place.textContent = `${page * PAGE + 1}–${page * PAGE + shown.length} of ${fitting.length} inputs`;
    pages.hidden = fitting.length <= PAGE;
    [back.disabled, next.disabled] = [page === 0, (page + 1) * PAGE >= fitting.length];
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    const fits = ({ text, predicted }) => words.every((word) => text.includes(word)) && (only.selectedIndex === 0 || predicted === only.value);
    fitting = inputs.filter(fits);
    const kept = new Set(fitting);
    for (const input of inputs) input.row.hidden = !kept.has(input);
    count.textContent = `${fitting.length} of ${inputs.length} inputs`;
    return show(0);
  }

  function sort(header) {
    const down = header.ariaSort === "ascending";
    for (const other of header.parentElement.cells) other.ariaSort = null;
    header.ariaSort = down ? "descending" : "ascending";
    const key = ({ row }) => row.cells[header.cellIndex].dataset.value;
    const compare = (a, b) => a - b || a.localeCompare(b);
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (!x || !y) return !x - !y;
      return down ? compare(y, x) : compare(x, y);
    };
    inputs.sort(order);
    table.tBodies[0].append(...inputs.map(({ row }) => row));
    document.getElementById("inputs").append(...inputs.map(({ section }) => section));
    return filter();
  }

  async function follow() {
    const place = fitting.findIndex(({ section }) => `#${section.id}` === location.hash);
    if (place < 0) return;
    await show(Math.floor(place / PAGE));
    fitting[place].section.scrollIntoView();
  }

  async function turn(number) {
    await show(number);
    document.getElementById("inputs").scrollIntoView();
  }

  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }
  back.addEventListener("click", () => turn(page - 1));
  next.addEventListener("click", () => turn(page + 1));
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  addEventListener("hashchange", follow);
  table.addEventListener("click", ({ target }) => { if (target.hash && target.hash === location.hash) follow(); });
  controls.hidden = false;
  filter().then(follow);
  return inputs;
}

addSliders(document);
const table = document.querySelector(".index table"), inputs = table ? listed(table) : [];
const { words } = document.getElementById("inputs").dataset;
if (words) JSON.parse(await unpack(words)).forEach((text, i) => { inputs.find(({ section }) => section.id === `input-${i}`).text += ` ${text.toLowerCase()}`; });
