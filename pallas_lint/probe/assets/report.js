// Makes the pictures of a report live: step through the grid, walk over the blocks with the arrow keys, zoom, and read
// the blocks as a table. The page is complete without it.

/** Cells next to each other are this far apart in a picture's own units, as pictures.py draws them. */
const CELL = 14;
const ZOOMS = [0.5, 1, 1.5, 2, 3, 4, 6, 8];
const MAX_ROWS = 500;

/**
 * Make all pictures below `root` live.
 * @param {ParentNode} root
 */
function enliven(root) {
  for (const section of root.querySelectorAll("section")) {
    const steps = stepper(section);
    for (const operand of section.querySelectorAll(".operand")) enlivenOperand(operand, steps);
  }
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const wordsOf = (cell) => cell.querySelector("title")?.textContent ?? "";
const pointsOf = (cell) => (cell.dataset.p ?? "").split(" ").filter(Boolean).map(Number);

/** A slider over the grid: it outlines the blocks that one grid point touches in every operand. */
function stepper(section) {
  const box = section.querySelector(".stepper");
  const points = Number(box?.dataset.points ?? 0);
  if (points < 2) return undefined;
  const grid = (box.dataset.grid ?? "").split(" ").filter(Boolean).map(Number);
  const slider = element("input", { type: "range", min: -1, max: points - 1, value: -1 });
  const output = element("output", {});
  box.append(element("label", {}, "Step through the grid ", slider), output);
  const show = () => {
    const at = Number(slider.value);
    const text = at < 0 ? "" : `grid point ${indices(at, grid)}`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text || "no grid point");
    for (const cell of section.querySelectorAll("rect[data-p]")) {
      cell.classList.toggle("now", at >= 0 && pointsOf(cell).includes(at));
    }
  };
  slider.addEventListener("input", show);
  slider.setAttribute("aria-valuetext", "no grid point");
  /** Go to the next of these points; after the last comes the first. */
  return (among) => {
    const at = Number(slider.value);
    slider.value = String(among.find((point) => point > at) ?? among[0]);
    show();
  };
}

function indices(at, grid) {
  const found = [];
  for (const size of [...grid].reverse()) {
    found.unshift(at % size);
    at = Math.floor(at / size);
  }
  return `(${found.join(", ")})`;
}

function enlivenOperand(operand, steps) {
  const pictures = [...operand.querySelectorAll("svg.blocks")];
  if (!pictures.length) return;
  const cells = pictures.map((picture) => [...picture.querySelectorAll("rect:not(.frame)")]);
  const status = element("p", { className: "status quiet" });
  status.setAttribute("role", "status");
  pictures.forEach((picture, which) => walk(picture, cells[which], status, steps));
  operand.append(status, table(operand, cells.flat()));
  if (pictures.some((picture) => picture.viewBox.baseVal.width > 8 * CELL + 2)) operand.append(zoom(operand, pictures));
}

/** Arrow keys go from block to block, and the block is described; Enter or a click steps through its grid points. */
function walk(picture, cells, status, steps) {
  let at;
  picture.setAttribute("role", "application");
  picture.setAttribute("aria-roledescription", "picture of blocks");
  picture.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight ArrowUp ArrowDown Home End Enter");
  picture.setAttribute("tabindex", "0");
  const go = (cell) => {
    at?.classList.remove("at");
    at = cell;
    at.classList.add("at");
    at.parentNode.insertBefore(at, picture.querySelector("rect.frame")); // above its neighbours, whole outline
    at.scrollIntoView({ block: "nearest", inline: "nearest" });
    status.textContent = wordsOf(cell);
  };
  const step = (cell) => {
    const points = pointsOf(cell);
    if (points.length) steps?.(points);
  };
  picture.addEventListener("focus", () => { if (at) status.textContent = wordsOf(at); else go(cells[0]); });
  picture.addEventListener("click", (event) => {
    const cell = event.target.closest?.("rect:not(.frame)");
    if (cell) { go(cell); step(cell); }
  });
  picture.addEventListener("keydown", (event) => {
    if (event.altKey || event.metaKey || !at) return;
    if (event.key === "Enter" || event.key === " ") step(at);
    else {
      const found = neighbour(cells, at, event.key, event.ctrlKey);
      if (found === undefined) return;
      go(found);
    }
    event.preventDefault();
  });
}

const place = (cell) => [Number(cell.getAttribute("x")), Number(cell.getAttribute("y"))];

/** The block that a key goes to from a block: the one itself at an edge, undefined for a key that goes nowhere. */
function neighbour(cells, from, key, all) {
  const [x, y] = place(from);
  const order = (a, b) => place(a)[1] - place(b)[1] || place(a)[0] - place(b)[0];
  const row = (all ? [...cells] : cells.filter((cell) => place(cell)[1] === y)).sort(order);
  if (key === "Home") return row[0];
  if (key === "End") return row[row.length - 1];
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!way) return undefined;
  // In a straight line first; blocks outside the array may stand alone, they are reached aslant.
  let best = from;
  let least = Infinity;
  for (const cell of cells) {
    const dx = place(cell)[0] - x;
    const dy = place(cell)[1] - y;
    const ahead = dx * way[0] + dy * way[1];
    const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
    if (ahead > 0 && ahead + 1000 * aside < least) [best, least] = [cell, ahead + 1000 * aside];
  }
  return best;
}

function zoom(operand, pictures) {
  const widths = pictures.map((picture) => Number(picture.getAttribute("width")));
  let at = ZOOMS.indexOf(1);
  const name = operand.querySelector("h4")?.firstChild?.textContent.trim() ?? "";
  const output = element("output", { textContent: "100%" });
  const button = (text, label, by) => {
    const made = element("button", { type: "button", textContent: text });
    made.setAttribute("aria-label", `${label} ${name}`);
    made.addEventListener("click", () => {
      at = Math.min(Math.max(at + by, 0), ZOOMS.length - 1);
      pictures.forEach((picture, which) => {
        picture.style.width = `${widths[which] * ZOOMS[at]}px`;
        picture.style.maxWidth = ZOOMS[at] === 1 ? "" : "none";
      });
      output.textContent = `${ZOOMS[at] * 100}%`;
    });
    return made;
  };
  const box = element("div", { className: "zoom" }, button("−", "Zoom out of", -1), output, button("+", "Zoom into", 1));
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Zoom of ${name}`);
  return box;
}

/** The blocks in words, made when it is first opened: pictures can have thousands. */
function table(operand, cells) {
  const name = operand.querySelector("h4")?.firstChild?.textContent.trim() ?? "";
  const details = element("details", { className: "table" }, element("summary", { textContent: `${name} as a table` }));
  details.addEventListener("toggle", () => {
    const rows = cells.slice(0, MAX_ROWS).map((cell) => {
      const [block, ...visits] = wordsOf(cell).split(": ");
      const header = element("th", { scope: "row", textContent: block });
      return element("tr", {}, header, element("td", { textContent: visits.join(": ") }));
    });
    const few = cells.length > MAX_ROWS ? `, the first ${MAX_ROWS} of ${cells.length}` : "";
    const head = ["Block", "Visits"].map((textContent) => element("th", { scope: "col", textContent }));
    details.append(
      element("table", {}, element("caption", { textContent: `Blocks of ${name}${few}` }),
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
    );
  }, { once: true });
  return details;
}

enliven(document);
