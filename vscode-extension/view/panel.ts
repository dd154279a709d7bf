/** The panel's page: it shows the server's report and tells the extension what is asked of it. */

import type { FromPage, PageState, ToPage } from "../src/panelMessages";

interface VsCode {
  postMessage(message: FromPage): void;
  getState(): PageState | undefined;
  setState(state: PageState): void;
}
declare function acquireVsCodeApi(): VsCode;
/** Of the report's own script: makes its pictures live. */
declare function enliven(root: ParentNode): void;

const vscode = acquireVsCodeApi();
const main = required("main");
const notice = required("notice");
let uri = "";

function required(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no #${id}`);
  }
  return found;
}

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  text = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  element.append(text, ...children);
  return element;
}

function button(title: string, act: () => void): HTMLButtonElement {
  const made = make("button", title);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function showReport(message: Extract<ToPage, { type: "report" }>): void {
  const again = message.uri === uri;
  const scroll = again ? window.scrollY : (restored(message.uri) ?? 0);
  uri = message.uri;
  // Scripts in it would not run: it comes in by innerHTML, and the page's policy allows only its own.
  main.innerHTML = message.html;
  for (const operand of main.querySelectorAll<HTMLElement>(".operand")) {
    fold(operand, message.maxTiles);
  }
  enliven(main);
  for (const place of main.querySelectorAll<HTMLElement>("[data-path][data-line]")) {
    linkToSource(place);
  }
  window.scrollTo({ top: scroll });
  showCurrent(message.current, scroll === 0);
  showStale(message.stale);
  remember();
}

function restored(of: string): number | undefined {
  const state = vscode.getState();
  return state?.uri === of ? state.scroll : undefined;
}

function remember(): void {
  if (uri !== "") {
    vscode.setState({ uri, scroll: window.scrollY });
  }
}

/** Pictures with very many blocks are drawn when asked for: drawing them all is slow. */
function fold(operand: HTMLElement, most: number): void {
  const blocks = operand.querySelectorAll("svg.blocks rect").length;
  const pictures = [...operand.querySelectorAll<HTMLElement>("figure.panel")];
  if (blocks <= most || pictures.length === 0) {
    return;
  }
  const show = button(`Show ${blocks.toLocaleString("en")} blocks`, () => {
    pictures.forEach((picture) => (picture.hidden = false));
    operand.querySelector<SVGElement>("svg.blocks")?.focus();
    show.remove();
  });
  pictures.forEach((picture) => (picture.hidden = true));
  pictures[0]?.before(show);
}

function linkToSource(place: HTMLElement): void {
  const { path, line } = place.dataset;
  if (path === undefined || line === undefined) {
    return;
  }
  if (!place.matches("a[href], button")) {
    place.setAttribute("role", "link");
    place.tabIndex = 0;
  }
  place.classList.add("source");
  const open = (event: Event): void => {
    event.preventDefault();
    vscode.postMessage({ type: "open", path, line: Number(line) });
  };
  place.addEventListener("click", open);
  place.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      open(event);
    }
  });
}

function showCurrent(anchor: string | null, scroll = true): void {
  for (const section of main.querySelectorAll("section")) {
    section.classList.toggle("current", section.id === anchor);
  }
  for (const link of main.querySelectorAll("nav a")) {
    if (anchor !== null && link.getAttribute("href") === `#${anchor}`) {
      link.setAttribute("aria-current", "true");
    } else {
      link.removeAttribute("aria-current");
    }
  }
  // The page stays where it is while the user works in it.
  if (scroll && anchor !== null && !document.hasFocus()) {
    document.getElementById(anchor)?.scrollIntoView({ block: "start" });
  }
}

function showStale(stale: boolean): void {
  notice.replaceChildren();
  if (stale) {
    notice.append(
      "The code changed since this was probed. ",
      button("Run probe", () => ask("probe")),
    );
  }
  document.body.classList.toggle("stale", stale);
}

function showEmpty(message: Extract<ToPage, { type: "empty" }>): void {
  uri = "";
  showStale(false);
  const needs = message.needs.map((need) => {
    const sign = make("span", need.met ? "✓" : "✗");
    sign.className = need.met ? "sign good" : "sign bad";
    sign.setAttribute("aria-hidden", "true");
    const words = make("span", need.met ? "Met: " : "Missing: ");
    words.className = "unseen";
    const item = make("li", "", sign, words, need.text);
    const action = need.action;
    if (action !== undefined && !need.met) {
      item.append(
        " ",
        button(action.title, () => ask(action.command)),
      );
    }
    return item;
  });
  const box = make("div", "", make("h1", message.heading), make("p", message.text));
  box.className = "empty";
  if (needs.length > 0) {
    const list = make("ul", "", ...needs);
    list.className = "needs";
    box.append(make("h2", "What a probe needs"), list);
  }
  if (message.canProbe) {
    const run = button("Run probe", () => ask("probe"));
    run.className = "primary";
    box.append(run);
  }
  main.replaceChildren(box);
}

function ask(command: Extract<FromPage, { type: "command" }>["command"]): void {
  vscode.postMessage({ type: "command", command });
}

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
  const message = event.data;
  switch (message.type) {
    case "report":
      return showReport(message);
    case "current":
      showCurrent(message.current);
      return showStale(message.stale);
    case "empty":
      return showEmpty(message);
  }
});
window.addEventListener("scrollend", remember);
vscode.postMessage({ type: "ready" });
