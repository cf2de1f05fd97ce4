// Charts of a report where scripts run: values under the pointer, arms on and off, zoom. Without a script they are whole.

/** A horizontal or vertical axis, from share 0 to share 1 of the plot. */
interface Axis {
  value: (share: number) => number;
  format: (value: number) => string;
}

/** Shares of a plot, from its lower left corner. */
type Point = [number, number];

interface Line {
  series: string;
  group: SVGGElement;
  points: Point[];
}

/** One of the two drawings of a figure: the wide one or the narrow one. */
interface Drawing {
  svg: SVGSVGElement;
  box: DOMRect;
  across: Axis;
  upward: Axis;
  lines: Line[];
  /** Ticks of a zoomed chart, and the line at the pointer. */
  overlay: SVGGElement;
}

/** Part of the horizontal axis that is shown. */
interface Range {
  left: number;
  right: number;
}

const WHOLE: Range = { left: 0, right: 1 };
/** Smallest share that can be zoomed to. */
const NARROWEST = 0.02;
/** Ticks of each axis of a zoomed chart, less one: as many as a wide plot and a narrow one have room for. */
const STEPS = [4, 2] as const;
/** Width of a plot that is narrow. */
const NARROW_PLOT = 400;

function formatTime(ns: number): string {
  const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const [size, unit] = units.find(([least]) => ns >= least * 0.9995) ?? [1, "ns"];
  return `${Number((ns / size).toPrecision(3))} ${unit}`;
}

/** Formats 1/(1-quantile) as a percentage. */
function formatNines(value: number): string {
  const decimals = Math.min(Math.max(Math.ceil(Math.log10(value)) - 1, 0), 7);
  return `${Number((100 * (1 - 1 / value)).toFixed(decimals))} %`;
}

function formatRate(value: number): string {
  return `${Math.round(value).toLocaleString("en")}/s`;
}

/** Reads an axis as the renderer wrote it: what it shows, `log` or `linear`, and its ends. */
function readAxis(text = ""): Axis {
  const [kind, scale, low = 0, high = 1] = text.split(" ").map((word, place) => (place < 2 ? word : Number(word))) as [string, string, number, number];
  const format = { nines: formatNines, rate: formatRate, time: formatTime }[kind] ?? String;
  const value = (share: number) => (scale === "log" ? low * (high / low) ** share : low + share * (high - low));
  return { value, format };
}

function readPoints(path: string, box: DOMRect): Point[] {
  return [...path.matchAll(/[ML]([-\d.]+) ([-\d.]+)/g)].map(([, x, y]) => [
    (Number(x) - box.x) / box.width,
    (box.y + box.height - Number(y)) / box.height,
  ]);
}

function readDrawing(svg: SVGSVGElement): Drawing | undefined {
  const plot = svg.querySelector<SVGRectElement>(".plot");
  if (!plot) {
    return undefined;
  }
  const number = (name: string) => Number(plot.getAttribute(name));
  const box = new DOMRect(number("x"), number("y"), number("width"), number("height"));
  const lines = [...svg.querySelectorAll<SVGGElement>("g.series")].flatMap((group): Line[] => {
    const path = group.querySelector(".ln")?.getAttribute("d");
    return path ? [{ series: group.dataset["s"] ?? "", group, points: readPoints(path, box) }] : [];
  });
  const overlay = make(svg, "g", { class: "overlay", "aria-hidden": "true" });
  svg.append(overlay);
  return { svg, box, across: readAxis(plot.dataset["x"]), upward: readAxis(plot.dataset["y"]), lines, overlay };
}

/** Makes an element of a drawing. */
function make<K extends keyof SVGElementTagNameMap>(svg: SVGSVGElement, name: K, attributes: Record<string, string | number>) {
  // Not by its name, as a report has no address in it.
  const element = document.createElementNS(svg.namespaceURI, name) as SVGElementTagNameMap[K];
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, `${value}`);
  }
  return element;
}

/** Returns the height of a line at a place of the horizontal axis; undefined beyond its ends. */
function heightAt(points: Point[], share: number): number | undefined {
  const after = points.findIndex(([x]) => x >= share);
  const [next, previous] = [points[after], points[Math.max(after - 1, 0)]];
  if (!next || !previous || (after === 0 && next[0] > share)) {
    return undefined;
  }
  const part = (share - previous[0]) / (next[0] - previous[0] || 1);
  return previous[1] + part * (next[1] - previous[1]);
}

/** A figure with lines, and its tools. */
class LineFigure {
  private readonly hidden = new Set<string>();
  private range = WHOLE;
  private position: number | undefined;
  private readonly values = new Map<string, HTMLElement>();
  private readonly place = document.createElement("output");
  private readonly slider = document.createElement("input");
  private readonly zoomOut = document.createElement("button");

  constructor(private readonly figure: HTMLElement, private readonly drawings: Drawing[]) {
    this.makeLegend();
    this.makeTools();
    for (const drawing of drawings) {
      this.listen(drawing);
    }
  }

  /** Makes each name of the legend a button that shows or hides its line. */
  private makeLegend(): void {
    for (const item of this.figure.querySelectorAll<HTMLElement>(".legend [data-s]")) {
      const series = item.dataset["s"] ?? "";
      const [button, value] = [document.createElement("button"), document.createElement("span")];
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      value.className = "value";
      button.append(...item.childNodes, " ", value);
      item.append(button);
      this.values.set(series, value);
      button.addEventListener("click", () => {
        const isHidden = !this.hidden.delete(series) && Boolean(this.hidden.add(series));
        button.setAttribute("aria-pressed", `${!isHidden}`);
        this.draw();
      });
    }
  }

  private makeTools(): void {
    const [tools, label] = [document.createElement("p"), document.createElement("label")];
    tools.className = "chart-tools";
    Object.assign(this.slider, { type: "range", min: "0", max: "1000", value: "0" });
    this.slider.addEventListener("input", () => {
      const { left, right } = this.range;
      this.point(left + (Number(this.slider.value) / 1000) * (right - left));
    });
    label.append("Values at ", this.slider);
    tools.append(label, this.place);
    // Marks of a chart (a capacity, an objective) stay where they are, so only charts without them can be zoomed.
    if (this.drawings.every(({ svg }) => !svg.querySelector(".band, .level, .at, .dot"))) {
      const zoomIn = document.createElement("button");
      for (const [button, name, factor] of [[zoomIn, "Zoom in", 0.5], [this.zoomOut, "Zoom out", 2]] as const) {
        Object.assign(button, { type: "button", textContent: name });
        button.addEventListener("click", () => this.scale(factor));
        tools.append(button);
      }
      this.zoomOut.disabled = true;
    }
    this.figure.append(tools);
    this.figure.classList.add("with-tools");
  }

  private get canZoom(): boolean {
    return this.zoomOut.isConnected;
  }

  private listen(drawing: Drawing): void {
    let begin: number | undefined;
    const { svg } = drawing;
    svg.addEventListener("pointerdown", (event) => {
      if (this.canZoom && event.pointerType === "mouse" && event.button === 0) {
        begin = this.shareAt(drawing, event);
        event.preventDefault();
      }
    });
    svg.addEventListener("pointermove", (event) => this.point(this.shareAt(drawing, event), begin));
    svg.addEventListener("pointerup", (event) => {
      const end = this.shareAt(drawing, event);
      if (begin !== undefined && Math.abs(end - begin) >= NARROWEST) {
        this.zoom({ left: Math.min(begin, end), right: Math.max(begin, end) });
      }
      begin = undefined;
    });
    svg.addEventListener("pointerleave", () => {
      begin = undefined;
      this.point(undefined);
    });
    svg.addEventListener("dblclick", () => this.zoom(WHOLE));
  }

  /** Returns the place of the pointer on the whole horizontal axis. */
  private shareAt({ svg, box }: Drawing, event: PointerEvent): number {
    const outer = svg.getBoundingClientRect();
    const x = ((event.clientX - outer.left) / outer.width) * svg.viewBox.baseVal.width;
    const share = Math.min(Math.max((x - box.x) / box.width, 0), 1);
    return this.range.left + share * (this.range.right - this.range.left);
  }

  /** Zooms around the place that is pointed at. */
  private scale(factor: number): void {
    const { left, right } = this.range;
    const width = Math.min(Math.max((right - left) * factor, NARROWEST), 1);
    const begin = Math.min(Math.max((this.position ?? (left + right) / 2) - width / 2, 0), 1 - width);
    this.zoom({ left: begin, right: begin + width });
  }

  private zoom(range: Range): void {
    this.range = range;
    this.zoomOut.disabled = range.right - range.left >= 1;
    this.draw();
  }

  /** Shows the values at a place, and how far the pointer was drawn from where it was pressed. */
  private point(position: number | undefined, begin?: number): void {
    this.position = position;
    const [drawing] = this.drawings;
    if (!drawing) {
      return;
    }
    this.place.textContent = position === undefined ? "" : drawing.across.format(drawing.across.value(position));
    this.slider.setAttribute("aria-valuetext", this.place.textContent);
    for (const { series, points } of drawing.lines) {
      const height = position === undefined ? undefined : heightAt(points, position);
      const text = height === undefined ? "" : drawing.upward.format(drawing.upward.value(height));
      this.values.get(series)?.replaceChildren(text);
    }
    this.draw(begin);
  }

  private draw(begin?: number): void {
    for (const drawing of this.drawings) {
      for (const group of drawing.svg.querySelectorAll<SVGGElement>("g.series")) {
        group.classList.toggle("hidden", this.hidden.has(group.dataset["s"] ?? ""));
      }
      this.drawLines(drawing, begin);
    }
  }

  private drawLines({ svg, box, across, upward, lines, overlay }: Drawing, begin?: number): void {
    const { left, right } = this.range;
    const isZoomed = right - left < 1;
    const shown = lines.filter(({ series }) => !this.hidden.has(series)).map(({ points }) => cut(points, this.range));
    const heights = shown.flat().map(([, y]) => y);
    const [bottom, top] = isZoomed && heights.length ? [Math.min(...heights) - 0.01, Math.max(...heights) + 0.01] : [0, 1];
    const x = (share: number) => box.x + ((share - left) / (right - left)) * box.width;
    const y = (share: number) => box.y + (1 - (share - bottom) / (top - bottom)) * box.height;
    for (const { group, points } of lines) {
      const path = cut(points, this.range).map(([across, up], place) => `${place ? "L" : "M"}${x(across).toFixed(1)} ${y(up).toFixed(1)}`);
      for (const line of group.querySelectorAll(".ln, .aim")) {
        line.setAttribute("d", path.join(""));
      }
    }
    svg.classList.toggle("zoomed", isZoomed);
    overlay.replaceChildren();
    const end = box.y + box.height;
    const steps = STEPS[box.width < NARROW_PLOT ? 1 : 0];
    for (let step = 0; isZoomed && step <= steps; step += 1) {
      const [place, height] = [left + (step / steps) * (right - left), bottom + (step / steps) * (top - bottom)];
      const anchor = step === steps ? "end" : "middle";
      const below = make(svg, "text", { class: "tick", x: x(place), y: end + 20, "text-anchor": anchor });
      below.textContent = across.format(across.value(place));
      const beside = make(svg, "text", { class: "tick", x: box.x - 8, y: y(height) + 4, "text-anchor": "end" });
      beside.textContent = upward.format(upward.value(height));
      overlay.append(below, beside);
    }
    if (this.position !== undefined && this.position >= left && this.position <= right) {
      const at = x(this.position);
      const from = begin === undefined ? at : x(begin);
      overlay.append(
        make(svg, "rect", { class: "drawn", x: Math.min(at, from), y: box.y, width: Math.abs(at - from), height: box.height }),
        make(svg, "line", { class: "at", x1: at, x2: at, y1: box.y, y2: end }),
      );
    }
  }
}

/** Returns the part of a line within a range, with its ends on the edges. */
function cut(points: Point[], { left, right }: Range): Point[] {
  const edge = (share: number): Point[] => {
    const height = heightAt(points, share);
    return height === undefined ? [] : [[share, height]];
  };
  const within = points.filter(([x]) => x > left && x < right);
  return [...edge(left), ...within, ...edge(right)];
}

/** Pointing at a line or at its name brings it forward. */
function bringForward(figure: HTMLElement): void {
  const choose = (series: string | undefined) => {
    figure.classList.toggle("chosen", series !== undefined);
    for (const mark of figure.querySelectorAll<SVGElement>("[data-s]")) {
      mark.classList.toggle("on", mark.dataset["s"] === series);
    }
  };
  const chooseAt = (event: Event) => {
    const mark = (event.target as Element).closest<SVGElement>("[data-s]");
    const isHidden = mark?.querySelector('[aria-pressed="false"]');
    choose(isHidden ? undefined : mark?.dataset["s"]);
  };
  figure.addEventListener("pointerover", chooseAt);
  // The pointer may be over the name of a line that was hidden just now. A key brings nothing forward.
  figure.addEventListener("click", (event) => {
    if (figure.classList.contains("chosen")) {
      chooseAt(event);
    }
  });
  figure.addEventListener("pointerleave", () => choose(undefined));
}

/** Adds tools to all charts below an element. */
export function addTools(root: ParentNode): void {
  for (const figure of root.querySelectorAll<HTMLElement>("figure.lines")) {
    bringForward(figure);
    const drawings = [...figure.querySelectorAll<SVGSVGElement>("svg.chart")].flatMap((svg) => readDrawing(svg) ?? []);
    if (drawings.length) {
      new LineFigure(figure, drawings);
    }
  }
}
