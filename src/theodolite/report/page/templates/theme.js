(() => {
  document.documentElement.classList.add("scripted");
  let kept = null;
  try { kept = localStorage.getItem("theodolite-theme"); } catch (error) { /* storage may be off */ }
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
})();
