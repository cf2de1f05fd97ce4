// Runs inside a report: uses the tools of its first chart with lines as a reader would, and posts what they did.
addEventListener("load", () => {
  const figure = document.querySelector("figure.lines");
  const svg = [...figure.querySelectorAll("svg.chart")].find((one) => one.getClientRects().length > 0);
  const names = [...figure.querySelectorAll(".legend button")];
  const slider = figure.querySelector("input");
  const button = (name) => [...figure.querySelectorAll(".chart-tools button")].find((one) => one.textContent === name);
  const path = () => svg.querySelector("g.series .ln").getAttribute("d");
  const ticks = () => [...svg.querySelectorAll(".overlay .tick")].map((tick) => tick.textContent).join("|");
  const seen = {};

  const pointer = (kind, share) => {
    const plot = svg.querySelector(".plot");
    const box = svg.getBoundingClientRect();
    const [x, width] = ["x", "width"].map((name) => Number(plot.getAttribute(name)));
    const clientX = box.left + ((x + share * width) * box.width) / svg.viewBox.baseVal.width;
    svg.dispatchEvent(new PointerEvent(kind, { clientX, pointerType: "mouse", button: 0, bubbles: true }));
  };
  pointer("pointermove", 1 / 3);
  seen.place = figure.querySelector("output").textContent;
  seen.value = names[0].querySelector(".value").textContent;
  slider.value = "1000";
  slider.dispatchEvent(new Event("input"));
  seen.slid = slider.getAttribute("aria-valuetext");

  names[0].click();
  const series = names[0].parentElement.dataset.s;
  seen.hidden = getComputedStyle(svg.querySelector(`g.series[data-s="${series}"]`)).display;
  seen.pressed = names[0].getAttribute("aria-pressed");
  names[0].click();
  seen.shown = getComputedStyle(svg.querySelector(`g.series[data-s="${series}"]`)).display;

  const before = path();
  button("Zoom in").click();
  seen.zoomed = `${path() !== before} ${ticks()}`;
  button("Zoom out").click();
  seen.whole = `${path() === before} ${ticks()}`;
  pointer("pointerdown", 0.5);
  pointer("pointermove", 0.75);
  pointer("pointerup", 0.75);
  seen.drawn = ticks();
  pointer("dblclick", 0.5);
  seen.again = `${path() === before}`;
  const lines = Object.entries(seen).map(([key, value]) => `${key}=${value}`);
  parent.postMessage(lines.join("\n"), "*");
});
