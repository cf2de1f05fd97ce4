// Runs inside a report once all that it asked for has come or failed: looks at the page as a reader would and posts what
// it finds to the page around it. Lengths are CSS pixels.
addEventListener("load", () => {
  const SLACK = 1; // fractions of a pixel are no fault
  const found = [];
  const say = (fault, element, more = "") => {
    const name = `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""}`;
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 50);
    found.push(`${fault}: ${name} “${text}” ${more}`.trim());
  };
  const shown = (element) => element.getClientRects().length > 0;
  const boxed = (element) => {
    for (let at = element.parentElement; at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible") return true;
    }
    return false;
  };
  const texts = (svg) => [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);

  // Folded sections are part of the page.
  for (const details of document.querySelectorAll("details")) details.open = true;

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    found.push(`the page scrolls sideways: ${root.scrollWidth} in ${root.clientWidth}`);
  }
  for (const element of document.body.querySelectorAll("*")) {
    // What a box scrolls or hides is its own affair; the box itself must fit.
    if (boxed(element)) continue;
    const { left, right, width } = element.getBoundingClientRect();
    if (width > 0 && (right > root.clientWidth + SLACK || left < -SLACK)) {
      say("sticks out of the page", element, `${left}..${right}`);
    }
  }

  let charts = 0;
  for (const figure of document.querySelectorAll("figure")) {
    const drawn = [...figure.querySelectorAll("svg.chart")].filter(shown);
    if (drawn.length === 0) say("a figure without a chart", figure);
    for (const svg of drawn) {
      charts += 1;
      const box = svg.getBoundingClientRect();
      if (box.width < 100 || box.height < 50) say("a chart too small to read", svg, `${box.width}×${box.height}`);
      const marks = [...svg.querySelectorAll("path.ln, path.mark, circle.mark, line.whisker")];
      const visible = marks.filter((mark) => {
        const { width, height } = mark.getBoundingClientRect();
        const { stroke, fill } = getComputedStyle(mark);
        return (width > 0 || height > 0) && !(stroke === "none" && fill === "none");
      });
      if (visible.length === 0) say("an empty chart", svg);
      const all = texts(svg);
      if (all.length === 0) say("a chart without labels", svg);
      all.forEach(([text, a], index) => {
        if (a.left < box.left - SLACK || a.right > box.right + SLACK || a.bottom > box.bottom + 2 * SLACK) {
          say("text sticks out of its chart", text, `${a.left}..${a.right} in ${box.left}..${box.right}`);
        }
        for (const [other, b] of all.slice(index + 1)) {
          // A line of text is taller than its letters.
          const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const deep = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (over > SLACK && deep > 3) say("text over text", text, `and “${other.textContent}”`);
        }
      });
    }
  }

  // Contrast after WCAG 2.2, §1.4.3: 4.5 for text.
  // `rgb(1, 2, 3)` counts to 255, `color(srgb 0.1 0.2 0.3)`, which a mix of colours gives, to 1.
  const channels = (color) => {
    const whole = color.startsWith("color(") ? 255 : 1;
    return color.match(/[\d.]+/g).map((c, index) => Number(c) * (index < 3 ? whole : 1));
  };
  const luminance = (color) => {
    const linear = channels(color).slice(0, 3).map((c) => {
      const share = c / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (channels(color).length === 3 || channels(color)[3] === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const pale = new Set();
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !shown(element) || element.closest("script, title, desc")) continue;
    const style = getComputedStyle(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(color), luminance(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    const kind = `${element.getAttribute("class")} ${color}`;
    if (contrast < 4.5 && !pale.has(kind)) {
      pale.add(kind);
      say("text too pale", element, contrast.toFixed(2));
    }
  }

  for (const entry of performance.getEntriesByType("resource")) {
    found.push(`a request: ${entry.name}`);
  }

  const body = getComputedStyle(document.body);
  const facts = [
    `width=${root.clientWidth}`,
    `dark=${matchMedia("(prefers-color-scheme: dark)").matches}`,
    `ink=${luminance(body.color).toFixed(3)}`,
    `paper=${luminance(body.backgroundColor).toFixed(3)}`,
    `charts=${charts}`,
  ];
  parent.postMessage([...facts, ...found.map((fault) => `fault=${fault}`)].join("\n"), "*");
});
