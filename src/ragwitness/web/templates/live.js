// Tells every two seconds how far a run is, and loads the page again once it stands elsewhere.
"use strict";
const place = document.getElementById("live");

function put(id, text) {
  const cell = document.getElementById(id);
  if (cell && cell.textContent !== text) cell.textContent = text;
}

async function look() {
  const reply = await fetch(place.dataset.from, { credentials: "same-origin" });
  if (!reply.ok) throw new Error(String(reply.status));
  const now = await reply.json();
  if (now.stage !== place.dataset.stage) {
    location.reload();
    return;
  }
  for (const [name, text] of Object.entries(now.figures)) put("figure-" + name, text);
  const bar = document.getElementById("bar");
  if (bar && now.total) {
    bar.max = now.total;
    bar.value = now.done;
  }
  put("news", now.news);
  document.getElementById("lost").hidden = true;
}

function again() {
  look().catch(() => {
    document.getElementById("lost").hidden = false;
  }).finally(() => setTimeout(again, 2000));
}

setTimeout(again, 2000);
