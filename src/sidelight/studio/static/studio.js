// What moves: progress of work under way, and the slider along ε. Everything else works without.
"use strict";

function filled(list, state) {
  const rows = state.phases.length ? state.phases
    : [{ name: "start", share: null, what: "the worker is starting", seconds: 0, is_over: false }];
  list.replaceChildren(...rows.map((phase) => {
    const row = document.createElement("li");
    row.className = phase.is_over ? "over" : "now";
    const part = (kind, text) => {
      const span = document.createElement("span");
      span.className = kind;
      span.textContent = text;
      return span;
    };
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.setAttribute("aria-label", phase.name);
    if (phase.is_over) bar.value = 1;
    else if (phase.share !== null) bar.value = phase.share;
    row.append(part("name", phase.name), bar, part("what", phase.what || (phase.is_over ? "done" : "…")),
      part("time", phase.seconds.toFixed(0) + " s"));
    return row;
  }));
}

for (const box of document.querySelectorAll("[data-work]")) {
  const list = box.querySelector(".phases");
  let fails = 0;
  const ask = async () => {
    try {
      const answer = await fetch(box.dataset.work, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status);
      const state = await answer.json();
      fails = 0;
      if (state.is_over) { location.reload(); return; }
      filled(list, state);
    } catch {
      fails += 1; // the studio was stopped, perhaps; its worker goes on
      box.classList.toggle("lost", fails > 3);
    }
    setTimeout(ask, Math.min(1000 * (1 + fails), 10000));
  };
  setTimeout(ask, 700);
}

for (const side of document.querySelectorAll("[data-slider]")) {
  const steps = JSON.parse(side.dataset.slider);
  const slide = side.querySelector("input[type=range]");
  const reading = side.querySelector(".reading");
  const take = side.querySelector("button");
  const marker = document.getElementById("curve-marker");
  const field = document.getElementById("epsilon");
  const percent = (share) => (share > 0 && share < 0.001 ? "<0.1" : String(+(100 * share).toFixed(1))) + "%";
  take.hidden = false;
  slide.addEventListener("input", () => {
    const [epsilon, error, x, y] = steps[slide.value];
    reading.textContent = `ε = ${epsilon}: off by ${percent(error)}`;
    if (marker) {
      marker.firstElementChild.setAttribute("d", `M${x} 16V250`);
      marker.lastElementChild.setAttribute("cx", x);
      marker.lastElementChild.setAttribute("cy", y);
    }
  });
  take.addEventListener("click", () => { field.value = steps[slide.value][0]; field.focus(); });
}

// One click is enough: a second one on the same form is swallowed, and would be refused anyway.
for (const form of document.querySelectorAll("form[method=post]")) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
}
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

const errors = document.getElementById("errors");
if (errors) { errors.tabIndex = -1; errors.focus(); }
