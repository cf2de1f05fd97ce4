// Charts of a report: pointing at a line or at its name brings it forward.

/** Adds this to all charts below an element. */
export function bringForward(root: ParentNode): void {
  for (const figure of root.querySelectorAll<HTMLElement>("figure.lines")) {
    const choose = (series: string | undefined) => {
      figure.classList.toggle("chosen", series !== undefined);
      for (const mark of figure.querySelectorAll<SVGElement>("[data-s]")) {
        mark.classList.toggle("on", mark.dataset["s"] === series);
      }
    };
    figure.addEventListener("pointerover", (event) => {
      const mark = (event.target as Element).closest<SVGElement>("[data-s]");
      choose(mark?.dataset["s"]);
    });
    figure.addEventListener("pointerleave", () => choose(undefined));
  }
}
