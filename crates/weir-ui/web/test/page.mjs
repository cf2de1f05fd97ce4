// Uses the page as people do, in a real browser: starts a run from the form, watches it, opens its report, compares two,
// by keyboard alone; looks for what axe-core calls a violation; and makes pictures.
//
//   node test/page.mjs CHROMIUM URL FOLDER
//
// FOLDER gets the pictures. The study `quick` and the run `first` must be there. Prints what is wrong, one line each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [browserPath, url, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const browser = await chromium.launch({ executablePath: browserPath, args: flags.split(" ") });
const faults = [];

/** Opens the page. The policy is left out only where axe-core has to be put into it. */
async function open(options, address = url) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  await page.goto(address);
  await page.locator("h1, [role=alert]").first().waitFor();
  return page;
}

/** Moves the focus by Tab until it is on an element with this role and name. */
async function tabTo(page, role, name) {
  for (let step = 0; step < 80; step += 1) {
    await page.keyboard.press("Tab");
    const isThere = await page.getByRole(role, { name, exact: true }).first().evaluate((element) => element === document.activeElement).catch(() => false);
    if (isThere) {
      return;
    }
  }
  throw new Error(`Tab never comes to ${role} ${name}`);
}

async function startByKeyboard() {
  const page = await open({ viewport: { width: 1200, height: 900 } });
  await tabTo(page, "link", "Studies");
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: "Study", exact: true }).waitFor();
  await tabTo(page, "combobox", "Study");
  await page.keyboard.type("quick");
  await page.keyboard.press("Enter");
  await page.getByText("No errors.").waitFor();
  await breakAndMend(page);
  await tabTo(page, "button", "Start");
  await page.keyboard.press("Enter");
  await page.getByText("block ").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.locator(".live-chart .share").nth(90).waitFor();
  await page.screenshot({ path: `${pictures}/ui-working.png`, fullPage: true, clip: { x: 0, y: 0, width: 1200, height: 2200 } });
  const address = page.url();
  // Whoever closes the page ends nothing, and finds the run again.
  await page.reload();
  await page.getByText("Done.").waitFor();
  if (!address.includes("#/live/")) {
    faults.push(`the page is at ${address}`);
  }
  await tabTo(page, "link", "Open the report");
  await page.keyboard.press("Enter");
  await page.locator(".answer").waitFor();
  await readChartByKeyboard(page);
  await compareByKeyboard(page);
}

/** Reads values of a report's chart, and zooms it. */
async function readChartByKeyboard(page) {
  const figure = page.locator("figure.lines").first();
  await figure.getByRole("slider", { name: "Values at" }).focus();
  for (let step = 0; step < 5; step += 1) {
    await page.keyboard.press("PageUp");
  }
  await figure.getByText(/^\d[\d.]* [mµ]?s$/).first().waitFor();
  await figure.getByRole("button", { name: "Zoom in" }).focus();
  await page.keyboard.press("Enter");
  await figure.locator("svg.wide.zoomed").waitFor();
  await figure.screenshot({ path: `${pictures}/report-chart.png` });
}

/** Types an unknown parameter, reads the error, takes the one that is offered. */
async function breakAndMend(page) {
  await tabTo(page, "textbox", /Text of the study/);
  await page.keyboard.press("Control+End");
  await page.keyboard.type("  - {name: more, settings: {origin_keepaliv: 32}}");
  await page.getByText("1 error", { exact: true }).waitFor();
  await page.keyboard.press("Control+End");
  for (let step = 0; step < ": 32}}".length; step += 1) {
    await page.keyboard.press("ArrowLeft");
  }
  await page.keyboard.press("Control+Space");
  await page.getByRole("option", { name: "origin_keepalive", exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("No errors.").waitFor();
}

async function compareByKeyboard(page) {
  await page.goto(`${page.url().split("#")[0]}#/runs`);
  await page.locator("table.runs").waitFor();
  const boxes = page.getByRole("checkbox");
  await boxes.first().waitFor();
  for (const box of [boxes.nth(0), boxes.nth(1)]) {
    await box.focus();
    await page.keyboard.press("Space");
  }
  await page.getByRole("button", { name: "Compare two" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".report h1").waitFor();
  await page.context().close();
}

const PAGES = ["runs", "studies/quick", "live", "run/first", "history", "catalog", "doctor"];
const LOOKS = [
  ["desktop-light", { viewport: { width: 1200, height: 900 }, colorScheme: "light" }],
  ["phone-dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark", isMobile: true, hasTouch: true }],
];

/** Looks at every page in every look: no violations, no page wider than its window. */
async function lookAround() {
  for (const [look, options] of LOOKS) {
    const page = await open({ ...options, bypassCSP: true });
    const begin = page.url().split("#")[0];
    for (const name of PAGES) {
      await page.goto(`${begin}#/${name}`);
      await page.locator("h1").waitFor();
      await page.getByText("Reading …").waitFor({ state: "detached" });
      await page.screenshot({ path: `${pictures}/ui-${name.split("/")[0]}-${look}.png` });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      faults.push(...violations.map((one) => `${name}, ${look}: ${one.id}: ${one.nodes[0]?.html.slice(0, 200)}`));
      const surplus = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (surplus > 0) {
        faults.push(`${name}, ${look}: ${surplus} px wider than the window`);
      }
    }
    await page.context().close();
  }
}

/** Somebody without the token sees a sentence, and nothing else. */
async function comeWithoutToken() {
  const page = await open({}, url.split("#")[0]);
  await page.getByRole("alert").getByText("open the page by the URL").waitFor();
  await page.context().close();
}

try {
  await startByKeyboard();
  await lookAround();
  // Its refusal is an error of the console.
  const before = faults.length;
  await comeWithoutToken();
  faults.splice(before);
} catch (error) {
  faults.push(`${error}`);
}
await browser.close();
for (const fault of faults) {
  console.log(fault);
}
process.exitCode = faults.length ? 1 : 0;
