// Pointing at a line or at its name brings it forward.
for (const figure of document.querySelectorAll("figure.lines")) {
  const choose = (series) => {
    figure.classList.toggle("chosen", series !== undefined);
    for (const mark of figure.querySelectorAll("[data-s]")) {
      mark.classList.toggle("on", mark.dataset.s === series);
    }
  };
  figure.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-s]");
    choose(mark ? mark.dataset.s : undefined);
  });
  figure.addEventListener("pointerleave", () => choose(undefined));
}
