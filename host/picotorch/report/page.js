"use strict";
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0)
    : typeof a === "number" ? -1 : 1;

  const sort = (table, column) => {
    const head = table.tHead.rows[table.tHead.rows.length - 1].cells[column];
    const isNumber = head.classList.contains("n");
    const old = head.getAttribute("aria-sort");
    const order = old === "none" ? (isNumber ? "descending" : "ascending")
      : old === "descending" ? "ascending" : "descending";
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row, i) => [key(row, column), i, row]);
    rows.sort(([a, i], [b, k]) => a === null || b === null ? (a === null) - (b === null) || i - k
      : sign * compare(a, b) || i - k);
    table.tBodies[0].append(...rows.map(([, , row]) => row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    [...heads].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column));
      head.append(button);
      head.setAttribute("aria-sort", "none");
    });
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "filter rows";
    input.setAttribute("aria-label", "filter rows of the table below");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    label.append(input);
    if (table.tBodies[0].rows.length > 8) table.closest(".scroll").before(label);
  }

  // The row of a layer marks the memory that lives while it runs, in the same model.
  for (const section of document.querySelectorAll("section.model")) {
    const boxes = [...section.querySelectorAll("[data-layers]")].map((box) => {
      const [first, last] = box.dataset.layers.split("-").map(Number);
      return [box, first, last];
    });
    const rows = [...section.querySelectorAll("tr[data-layer]")];
    const mark = (layer) => {
      for (const row of rows) row.classList.toggle("marked", Number(row.dataset.layer) === layer);
      for (const [box, first, last] of boxes) box.classList.toggle("marked", first <= layer && layer <= last);
    };
    for (const row of rows) {
      row.addEventListener("click", () => mark(Number(row.dataset.layer)));
      const button = document.createElement("button");
      button.append(...row.cells[0].childNodes);
      button.title = "mark the memory that lives while this layer runs";
      row.cells[0].append(button);
    }
  }
})();
