"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const button = (text, press) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", press);
    return made;
  };

  // Light or dark: the system's choice until a person or the address (#theme=dark) says otherwise.
  const wanted = /[#&]theme=(light|dark)\b/.exec(location.hash);
  if (wanted) root.dataset.theme = wanted[1];
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = button("", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  const name = () => { theme.textContent = dark() ? "Light page" : "Dark page"; };
  name();
  document.getElementById("tools").append(theme);

  // Tables: a click on a heading sorts by it, a second click the other way round.
  for (const table of all("table.data")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const text = head.textContent;
      head.textContent = "";
      head.append(button(text, () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const key = (row) => {
          const cell = row.cells[column];
          if (!cell) return "";
          const number = Number(cell.dataset.v ?? (cell.textContent || NaN));
          return Number.isNaN(number) ? cell.textContent : number;
        };
        const order = (a, b) => {
          if (typeof a === "number" && typeof b === "number") return a - b;
          if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
          return a.localeCompare(b, "en", { numeric: true });
        };
        const rows = Array.from(body.rows, (row) => [key(row), row]).sort((a, b) => order(a[0], b[0]));
        if (down) rows.reverse();
        body.append(...rows.map((pair) => pair[1]));
      }));
    });
  }

  // The legend hides and shows a subject in every chart.
  for (const item of all("[data-toggle]")) {
    const subject = item.dataset.toggle;
    const press = button("", () => {
      const on = press.getAttribute("aria-pressed") !== "true";
      press.setAttribute("aria-pressed", String(on));
      for (const group of all("#subjects .series, #strip .series")) {
        if (group.dataset.subject === subject) group.classList.toggle("off", !on);
      }
    });
    press.setAttribute("aria-pressed", "true");
    press.append(...item.childNodes);
    item.append(press);
  }

  // The value under the pointer, or under the arrow keys once a chart has the focus.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  let lit = null;
  const hide = () => {
    if (lit) lit.classList.remove("on");
    lit = null;
    tip.hidden = true;
  };
  const show = (mark) => {
    if (lit === mark) return;
    hide();
    lit = mark;
    mark.classList.add("on");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const at = mark.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - tip.offsetWidth / 2), root.clientWidth - tip.offsetWidth - 8);
    const above = at.top - tip.offsetHeight - 10;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : at.bottom + 10}px`;
  };
  for (const chart of all("svg.chart")) {
    let marks = null;
    const points = () => {
      marks ??= all("[data-tip]", chart).map((mark) => {
        const box = mark.getBBox();
        return { mark, x: box.x + box.width / 2, y: box.y + box.height / 2 };
      });
      return marks.filter((point) => !point.mark.closest(".off"));
    };
    chart.addEventListener("pointermove", (event) => {
      const direct = event.target.closest("[data-tip]");
      if (direct) return show(direct);
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      let best = null;
      let distance = 18;
      for (const point of points()) {
        const away = Math.hypot(point.x - at.x, point.y - at.y);
        if (away < distance) [best, distance] = [point.mark, away];
      }
      if (best) show(best); else hide();
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("blur", hide);
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const list = points();
      if (event.key === "Escape") return hide();
      if (!step || !list.length) return;
      event.preventDefault();
      const now = list.findIndex((point) => point.mark === lit);
      show(list[now < 0 ? (step > 0 ? 0 : list.length - 1) : (now + step + list.length) % list.length].mark);
    });
  }
  addEventListener("scroll", hide, { passive: true });

  // The result, as it is embedded below the page.
  const result = document.getElementById("result");
  document.getElementById("download").append(" ", button("Download the result (JSON)", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([result.textContent], { type: "application/json" }));
    link.download = "sealway-lab-result.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }));

  // On paper every table is open.
  let opened = [];
  addEventListener("beforeprint", () => { opened = all("details:not([open])"); opened.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => { opened.forEach((one) => { one.open = false; }); opened = []; });

  root.dataset.script = "ready";
})();
