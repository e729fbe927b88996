// Comfort on top of pages that work without it: theme, keys, copying, filters of the one-file report.
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);
const root = document.documentElement;

function setUpTheme() {
  for (const button of all("button.theme")) {
    button.addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try {
        localStorage.setItem("agenteval-theme", root.dataset.theme);
      } catch {}
    });
  }
}

const isShown = (element) => element.getClientRects().length > 0;

function setUpKeys() {
  const synonyms = { ArrowRight: "n", ArrowLeft: "p", Escape: "u" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target;
    if (at.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") at.blur();
      return;
    }
    if (event.key.startsWith("Arrow") && at.closest(".scroll, pre, summary")) return;
    if (event.key === "j" || event.key === "k") return moveAlong(event.key === "j" ? 1 : -1);
    const key = synonyms[event.key] ?? event.key;
    const target = all("[data-key]").find((element) => element.dataset.key === key && isShown(element));
    if (!target) return;
    event.preventDefault();
    if (target.matches("input")) target.select();
    else target.click();
  });
}

// j and k walk down and up the links of the table of results
function moveAlong(step) {
  const links = all("table.results tbody th a, table.runs tbody th a").filter(isShown);
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
  links[Math.min(Math.max(next, 0), links.length - 1)].focus();
}

function setUpCopying() {
  for (const figure of all("figure[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(one("pre", figure).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(one("pre", figure));
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    one("figcaption", figure).append(button);
  }
}

// a run that is still going: look again, unless somebody is typing or reads further down
function setUpRefresh() {
  const seconds = Number(document.body.dataset.refresh);
  if (!seconds) return;
  setInterval(() => {
    const busy = document.hidden || document.activeElement?.closest("form, details, .scroll");
    if (!busy) location.reload();
  }, seconds * 1000);
}

// --- the one-file report: its filters live in the address, as on the server ---
function setUpFilters() {
  const table = one(".onefile table.results");
  if (!table) return;
  const rows = all("tbody tr", table);
  const search = one("#search");
  const initial = new URLSearchParams(location.search);
  const state = {
    show: initial.get("show") ?? "all",
    q: initial.get("q") ?? "",
    model: initial.get("model") ?? "",
    sort: initial.get("sort") ?? "",
  };
  search.value = state.q;

  const keep = () => {
    const held = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) if (value && value !== "all") held.set(name, value);
    const text = held.toString();
    try {
      history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
    } catch {}
  };
  const draw = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits =
        row.dataset.shows.split(" ").includes(state.show) &&
        (!state.model || row.dataset.model === state.model) &&
        words.every((word) => row.dataset.text.includes(word));
      row.hidden = !fits;
      count += fits;
    }
    one("#shown").textContent = `${count} of ${rows.length} results${state.model ? `, only ${state.model}` : ""}`;
    for (const button of all("button[data-show]"))
      button.setAttribute("aria-pressed", String(button.dataset.show === state.show));
    for (const button of all("button.plain[data-model]"))
      button.closest("tr").classList.toggle("chosen", button.dataset.model === state.model);
    keep();
  };
  const order = () => {
    const name = state.sort.replace(/^-/, "");
    const sign = state.sort.startsWith("-") ? -1 : 1;
    const words = name === "name" || name === "model";
    const key = (row) => (words ? row.dataset[name].toLowerCase() : Number(row.dataset[name]));
    const sorted = name
      ? [...rows].sort((a, b) => sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0))
      : rows;
    one("tbody", table).append(...sorted);
    for (const button of all("button.sorter", table)) {
      const head = button.closest("th");
      if (button.dataset.sort === name) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  };

  search.addEventListener("input", () => {
    state.q = search.value;
    draw();
  });
  for (const button of all("button[data-show]"))
    button.addEventListener("click", () => {
      state.show = button.dataset.show;
      draw();
    });
  for (const button of all("button.plain[data-model]"))
    button.addEventListener("click", () => {
      state.model = state.model === button.dataset.model ? "" : button.dataset.model;
      draw();
    });
  for (const button of all("button.sorter", table))
    button.addEventListener("click", () => {
      const name = button.dataset.sort;
      state.sort = state.sort === name ? `-${name}` : name;
      order();
      keep();
    });
  if (state.sort) order();
  draw();
}

// previous and next of the one-file report stay within what the table shows
function setUpSteps() {
  if (!one(".onefile table.results")) return;
  addEventListener("hashchange", () => {
    const page = location.hash.startsWith("#attempt-") ? one(location.hash) : null;
    if (!page) return;
    const shown = all("table.results tbody tr:not([hidden]) .pills a");
    const links = shown.length ? shown : all("table.results tbody tr:not([hidden]) th a");
    const hashes = links.map((link) => link.getAttribute("href"));
    const at = hashes.indexOf(location.hash);
    if (at >= 0) {
      const steps = { p: hashes[at - 1], n: hashes[at + 1] };
      for (const [key, hash] of Object.entries(steps)) {
        const link = one(`.steps [data-key="${key}"]`, page);
        if (link) {
          link.hidden = !hash;
          if (hash) link.setAttribute("href", hash);
        }
      }
    }
    scrollTo(0, 0);
    one("h1", page)?.focus({ preventScroll: true });
  });
}

setUpTheme();
setUpKeys();
setUpCopying();
setUpRefresh();
setUpFilters();
setUpSteps();
