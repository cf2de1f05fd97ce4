import { render } from "preact";
import { App } from "./app.tsx";
import { takeToken } from "./api.ts";

takeToken();
const page = document.getElementById("page");
if (page) {
  page.replaceChildren();
  render(<App />, page);
}
