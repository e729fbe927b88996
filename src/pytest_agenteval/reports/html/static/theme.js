// before the first paint: the chosen theme, and that scripts run
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  try {
    const chosen = localStorage.getItem("agenteval-theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch {}
})();
