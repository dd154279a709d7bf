// The searchable table of what works in a kernel. Its data come from support-data.js, made when the pages are built.
(() => {
  "use strict";
  const data = window.pallasSupport;
  const root = document.getElementById("support");
  if (!data || !root) return;

  const field = (name) => document.getElementById(`support-${name}`);
  const list = field("list");
  // Letters of the data, and those of names: there or deprecated.
  const WORDS = { ...data.words, y: "yes" };
  const LOOKS = { l: "works", c: "works", r: "works", y: "works", s: "some", n: "fails", x: "fails", "?": "unknown" };
  const backends = Object.keys(data.backends);

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };

  const entries = [
    ...data.functions.map((each) => ({ ...each, kind: "function" })),
    ...data.apis.map((each) => ({ ...each, kind: "api" })),
  ];
  // The same name may be a function that was measured and a name with a history: both are shown, under two anchors.
  const taken = new Set();
  for (const entry of entries) {
    entry.anchor = taken.has(entry.name) ? `${entry.name}:${entry.kind}` : entry.name;
    taken.add(entry.anchor);
    // Every Pallas name is "experimental": that word finds nothing.
    const full = entry.full.replace("jax.experimental.", "");
    entry.words = `${entry.name} ${full} ${(entry.primitives ?? []).join(" ")}`.toLowerCase();
  }

  const choices = (select, pairs) => {
    for (const [value, text] of pairs) select.append(element("option", { value, textContent: text }));
  };
  choices(field("backend"), [["", "all"], ...Object.entries(data.backends)]);
  choices(field("version"), [...data.versions].reverse().map((version) => [version, version]));
  choices(field("dtype"), [["", "any"], ...data.dtypes.map((dtype) => [dtype, dtype])]);

  const order = (version) => version.split(".").map(Number);
  const before = (left, right) => {
    const [a, b] = [order(left), order(right)];
    for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
      if ((a[at] ?? 0) !== (b[at] ?? 0)) return (a[at] ?? 0) < (b[at] ?? 0);
    }
    return false;
  };

  /** One letter for a function on a backend, at a version, for one dtype or for all that can be loaded. */
  const verdict = (entry, backend, version, dtype) => {
    const on = entry.on[backend];
    if (!on) return "?";
    const column = data.versions.indexOf(version);
    const letters = (dtype ? [on.rows[data.dtypes.indexOf(dtype)]] : on.rows).map((row) => row[column]);
    const known = new Set(letters.filter((letter) => letter !== "?"));
    if (known.size > 1) known.delete("x");
    if (known.size === 0) return "?";
    if (known.size === 1) return [...known][0];
    return known.has("n") || known.has("s") ? "s" : [..."lcr"].find((letter) => known.has(letter));
  };

  /** Whether a name exists at a version, and whether it is deprecated there. */
  const standing = (entry, version) => {
    const there = entry.spans.some(([first, end]) => !before(version, first) && (end === null || before(version, end)));
    if (!there) return "n";
    return entry.deprecated && !before(version, entry.deprecated) ? "s" : "y";
  };

  const badge = (letter, label) =>
    element("span", { className: `verdict ${LOOKS[letter]}`, title: label }, WORDS[letter]);

  const summary = (entry, state) => {
    const line = element("summary", {}, element("code", { textContent: entry.name }));
    const shown = element("span", { className: "verdicts" });
    if (entry.kind === "api") {
      const letter = standing(entry, state.version);
      const word = { y: "there", n: "not there", s: "deprecated" }[letter];
      shown.append(element("span", { className: `verdict ${LOOKS[letter]}` }, word));
    } else {
      for (const backend of state.backend ? [state.backend] : backends) {
        const letter = verdict(entry, backend, state.version, state.dtype);
        const name = data.backends[backend];
        shown.append(element("span", { className: "on" }, `${name} `, badge(letter, `${name}: ${WORDS[letter]}`)));
      }
    }
    line.append(shown);
    return line;
  };

  const matrix = (entry, backend) => {
    const on = entry.on[backend];
    const head = element("tr", {}, element("th", { scope: "col" }, "dtype"));
    for (const version of data.versions) head.append(element("th", { scope: "col" }, version));
    const body = element("tbody");
    // Dtypes that fare alike share a row.
    const groups = new Map();
    data.dtypes.forEach((dtype, at) => {
      if (!/^\?*$/.test(on.rows[at])) groups.set(on.rows[at], [...(groups.get(on.rows[at]) ?? []), dtype]);
    });
    for (const [letters, dtypes] of groups) {
      const row = element("tr", {}, element("th", { scope: "row" }, dtypes.join(" ")));
      for (const letter of letters) row.append(element("td", {}, badge(letter, WORDS[letter])));
      body.append(row);
    }
    // The theme wraps tables without a class into a scrolling box of its own.
    const table = element("table", { className: "matrix" }, element("thead", {}, head), body);
    return element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: data.backends[backend] }, table);
  };

  /** Text of which the parts between backticks are code. */
  const prose = (tag, text) => {
    const made = element(tag);
    text.split("`").forEach((part, at) => made.append(at % 2 ? element("code", {}, part) : part));
    return made;
  };

  const details = (entry) => {
    const body = element("div", { className: "body" }, element("p", {}, element("code", {}, entry.full)));
    if (entry.kind === "api") {
      const said = entry.spans.map(([first, end]) => {
        const start = first === data.oldest ? `there in ${first}, the oldest version known` : `since jax ${first}`;
        return end === null ? start : `${start}, gone in ${end}`;
      });
      if (entry.deprecated) said.push(`deprecated since ${entry.deprecated}`);
      body.append(element("p", {}, `${said.join("; ")}.`));
      if (entry.message) body.append(prose("p", `jax says: ${entry.message}`));
      if (entry.instead) body.append(prose("p", `Instead: ${entry.instead}`));
    } else {
      const newest = data.versions[data.versions.length - 1];
      for (const backend of backends) {
        const on = entry.on[backend];
        body.append(element("h4", {}, data.backends[backend]));
        if (!on) {
          body.append(element("p", {}, "Not measured."));
          continue;
        }
        if (on.message) body.append(prose("p", `In jax ${newest} it ${on.message}.`));
        if (on.fails) {
          const items = element("ul");
          for (const each of on.fails) items.append(prose("li", each));
          body.append(element("p", {}, `Fails in jax ${newest} for:`), items);
        }
        for (const each of on.instead ?? []) body.append(prose("p", `Instead: ${each}`));
        body.append(matrix(entry, backend));
      }
      if (entry.primitives.length) body.append(element("p", {}, `Primitives: ${entry.primitives.join(", ")}`));
    }
    body.append(element("p", {}, element("a", { href: `#${entry.anchor}` }, "Link to this entry")));
    return body;
  };

  const read = () => ({
    query: field("query").value.trim().toLowerCase(),
    backend: field("backend").value,
    version: field("version").value,
    dtype: field("dtype").value,
    status: field("status").value,
  });

  const matches = (entry, state) => {
    if (!state.query.split(/\s+/).every((word) => entry.words.includes(word))) return false;
    if (!state.status) return true;
    const letters =
      entry.kind === "api"
        ? [standing(entry, state.version)]
        : (state.backend ? [state.backend] : backends).map((each) =>
            verdict(entry, each, state.version, state.dtype),
          );
    return letters.some((letter) => LOOKS[letter] === state.status);
  };

  const rank = (entry, query) => {
    const last = entry.name.slice(entry.name.lastIndexOf(".") + 1).toLowerCase();
    return entry.name.toLowerCase() === query || last === query ? 0 : last.startsWith(query) ? 1 : 2;
  };

  const show = () => {
    const state = read();
    const found = entries.filter((entry) => matches(entry, state));
    if (state.query) found.sort((left, right) => rank(left, state.query) - rank(right, state.query));
    list.replaceChildren(
      ...found.map((entry) => {
        const made = element("details", { id: entry.anchor }, summary(entry, state));
        made.addEventListener("toggle", () => {
          if (made.open && made.childElementCount === 1) made.append(details(entry));
        });
        return made;
      }),
    );
    field("count").textContent = `${found.length} of ${entries.length} entries`;
    const kept = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      if (value && !(key === "version" && value === data.versions[data.versions.length - 1])) kept.set(key, value);
    }
    const query = kept.size ? `?${kept}` : "";
    history.replaceState(null, "", `${location.pathname}${query}${location.hash}`);
  };

  const openLinked = () => {
    const anchor = decodeURIComponent(location.hash.slice(1));
    if (!entries.some((entry) => entry.anchor === anchor)) return;
    if (!document.getElementById(anchor)) {
      // A link names its entry whatever was searched for.
      field("query").value = "";
      field("status").value = "";
      show();
    }
    const target = document.getElementById(anchor);
    target.open = true;
    target.scrollIntoView({ block: "center" });
    target.querySelector("summary").focus({ preventScroll: true });
  };

  const asked = new URLSearchParams(location.search);
  for (const name of ["query", "backend", "version", "dtype", "status"]) {
    const value = asked.get(name);
    if (value !== null) field(name).value = value;
    if (field(name).value === "" && name === "version") field(name).selectedIndex = 0;
    field(name).addEventListener("input", show);
  }
  show();
  openLinked();
  window.addEventListener("hashchange", openLinked);
  list.after(element("p", { className: "source", textContent: data.source }));
})();
