// A slider over the grid: outlines the blocks that one grid point touches in every operand.
for (const box of document.querySelectorAll(".stepper")) {
  const points = Number(box.dataset.points);
  const grid = (box.dataset.grid || "").split(" ").filter(Boolean).map(Number);
  if (points < 2) continue;
  const label = document.createElement("label");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: -1, max: points - 1, value: -1 });
  const told = document.createElement("output");
  label.append("Step through the grid ");
  label.append(slider);
  box.append(label, told);
  const section = box.closest("section");
  const indices = (at) => {
    const found = [];
    for (const size of [...grid].reverse()) { found.unshift(at % size); at = Math.floor(at / size); }
    return `(${found.join(", ")})`;
  };
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    told.textContent = at < 0 ? "" : `grid point ${indices(at)}`;
    for (const cell of section.querySelectorAll("rect[data-p]")) {
      cell.classList.toggle("now", at >= 0 && cell.dataset.p.split(" ").includes(String(at)));
    }
  });
}
