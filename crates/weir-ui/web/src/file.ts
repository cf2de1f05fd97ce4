// Script of report.html, which is one file.
import { addTools } from "./report.ts";

addTools(document);
