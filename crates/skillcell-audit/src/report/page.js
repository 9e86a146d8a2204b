"use strict";
(() => {
  const field = document.getElementById("find");
  const rows = Array.from(document.querySelectorAll(".timeline tbody tr"));
  const words = rows.map((row) => row.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    rows.forEach((row, i) => { row.hidden = !words[i].includes(wanted); });
  });
  field.hidden = false;
})();
