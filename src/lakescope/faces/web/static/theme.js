// Runs before the page is painted, so that a chosen theme never flashes.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* a browser that keeps nothing */ }
document.documentElement.classList.add("scripts");
