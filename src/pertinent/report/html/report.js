// Searches, filters and sorts the index of a page. It reads the table on the page, and writes no HTML.
const controls = document.querySelector(".controls");
const [search, only, count] = ["input", "select", "output"].map((tag) => controls.querySelector(tag));
const table = document.querySelector(".index table");
const inputs = [...table.tBodies[0].rows].map((row) => {
  const section = document.getElementById(row.querySelector("a").hash.slice(1));
  const words = [row, ...section.querySelectorAll(".text")].map((part) => part.textContent);
  return { row, section, text: words.join(" ").toLowerCase(), predicted: row.dataset.predicted };
});

function filter() {
  const words = search.value.toLowerCase().split(/\s+/);
  let shown = 0;
  for (const { row, section, text, predicted } of inputs) {
    const fits = words.every((word) => text.includes(word));
    const hidden = !fits || (only.selectedIndex > 0 && predicted !== only.value);
    row.hidden = section.hidden = hidden;
    shown += hidden ? 0 : 1;
  }
  count.textContent = `${shown} of ${inputs.length} inputs`;
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
}

for (const header of table.tHead.rows[0].cells) {
  const button = document.createElement("button");
  button.append(...header.childNodes);
  button.addEventListener("click", () => sort(header));
  header.append(button);
}
search.addEventListener("input", filter);
only.addEventListener("change", filter);
controls.hidden = false;
filter();
