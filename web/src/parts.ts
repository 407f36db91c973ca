// Parts that several views share: tables, badges, cards.
import { Child, h } from "./dom.js";

const tones: Record<string, string> = {
  running: "good", equal: "good", enrolled: "good", accepted: "good", open: "good", online: "good", ready: "good",
  pending: "wait", away: "wait", paused: "wait", training: "wait", uploading: "wait", late: "wait", invited: "wait", preparing: "wait",
  failed: "bad", refused: "bad", lost: "bad", revoked: "bad", declined: "bad", different: "bad",
};

export function badge(state: string): HTMLElement {
  return h("span", { class: `badge ${tones[state] ?? "plain"}` }, state);
}

export interface Column<T> { title: string; cell: (row: T) => Child; right?: boolean; minor?: boolean }

// `minor` columns are hidden on phones.
export function table<T>(caption: string, columns: Column<T>[], rows: T[], empty: string): HTMLElement {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  const classes = (column: Column<T>): string =>
    [column.right ? "right" : "", column.minor ? "minor" : ""].filter(Boolean).join(" ");
  const body = h("tbody");
  for (const row of rows)
    body.append(h("tr", {}, ...columns.map(column => h("td", { class: classes(column) || null }, column.cell(row)))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, ...columns.map(column =>
        h("th", { scope: "col", class: classes(column) || null }, column.title)))),
      body));
}

export function card(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "card" }, h("h2", {}, title), ...children);
}

export function stat(name: string, value: string, note = "", tone = ""): HTMLElement {
  return h("div", { class: `stat ${tone}` },
    h("div", { class: "name" }, name), h("div", { class: "value" }, value), h("div", { class: "hint" }, note));
}

export function labels(names: string[]): HTMLElement {
  return h("span", { class: "labels" }, ...names.map(name => h("span", { class: "label" }, name)));
}

export function link(path: string, ...children: Child[]): HTMLElement {
  return h("a", { href: `#/${path}` }, ...children);
}

export function facts(pairs: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== null && value !== "")
    .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
