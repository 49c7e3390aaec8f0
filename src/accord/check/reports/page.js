"use strict";
// Filters by verdict, area and text, and buttons that copy a command. Without scripts, everything is shown.
const form = document.getElementById("filters");
const items = [...document.querySelectorAll(".item")];

function fits(item, verdicts, area, text) {
  return (
    verdicts.has(item.dataset.verdict) &&
    (!area || item.dataset.area === area) &&
    (!text || item.textContent.toLowerCase().includes(text))
  );
}

function filter() {
  const verdicts = new Set([...form.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value));
  const area = form.querySelector("select").value;
  const text = form.querySelector("[type=search]").value.trim().toLowerCase();
  for (const item of items) item.hidden = !fits(item, verdicts, area, text);
  for (const area of document.querySelectorAll(".area")) area.hidden = !area.querySelector(".item:not([hidden])");
  document.getElementById("empty").hidden = items.some((item) => !item.hidden);
}

if (form) {
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}

for (const button of document.querySelectorAll(".command button")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  });
}
