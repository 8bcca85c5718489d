// The search and, on a narrow screen, the menu. The index is a script, so that pages work from a folder, too.
const input = document.getElementById("search");
const results = document.getElementById("results");
const menu = document.getElementById("menu");
const navigation = document.getElementById("navigation");

menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", navigation.classList.toggle("open"));
});
navigation.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
window.scrollTo(window.scrollX, location.hash ? window.scrollY : 0);

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

// Every word must occur. Titles count most, then names of pages, then texts.
function score([title, page, , text], words) {
  let sum = 0;
  for (const word of words) {
    const inTitle = title.toLowerCase().indexOf(word);
    if (inTitle >= 0) sum += 20 + (inTitle === 0 ? 10 : 0) + Math.max(0, 20 - title.length / 2);
    else if (page.toLowerCase().includes(word)) sum += 8;
    else if (text.toLowerCase().includes(word)) sum += 3;
    else return 0;
  }
  return sum;
}

function excerpt(text, words) {
  const at = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)));
  const start = Math.max(0, at - 50);
  const part = (start > 0 ? "…" : "") + text.slice(start, start + 160).replace(/\s+/g, " ");
  const pattern = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gi");
  let shown = "", last = 0;
  for (const found of part.matchAll(pattern)) {
    shown += `${escaped(part.slice(last, found.index))}<mark>${escaped(found[0])}</mark>`;
    last = found.index + found[0].length;
  }
  return shown + escaped(part.slice(last));
}

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.hidden = words.length === 0;
  if (results.hidden) return;

  const found = window.searchIndex
    .map((entry) => [score(entry, words), entry])
    .filter(([points]) => points > 0)
    .sort(([first], [second]) => second - first)
    .slice(0, 20);
  results.innerHTML = found.length === 0 ? '<p class="none">Nothing found.</p>' : found.map(([, [title, page, address, text]], place) =>
    `<a href="${escaped(address)}"${place === 0 ? ' class="chosen"' : ""}><b>${escaped(title)}</b><small>${escaped(page)}</small><p>${excerpt(text, words)}</p></a>`).join("");
}

input.addEventListener("input", search);
input.form.addEventListener("submit", (event) => {
  event.preventDefault();
  results.querySelector(".chosen")?.click();
});
results.addEventListener("click", () => { results.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  } else if (event.key === "Escape") {
    input.value = "";
    search();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !results.hidden) {
    event.preventDefault();
    const chosen = results.querySelector(".chosen");
    const next = event.key === "ArrowDown" ? chosen?.nextElementSibling : chosen?.previousElementSibling;
    if (!next) return;

    chosen.classList.remove("chosen");
    next.classList.add("chosen");
    next.scrollIntoView({ block: "nearest" });
  }
});
document.addEventListener("click", (event) => {
  if (!results.contains(event.target) && event.target !== input) results.hidden = true;
});
