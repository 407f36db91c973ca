// Builds the page. All text, also from peers, becomes text nodes: nothing here parses HTML.

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>;

const svgNames = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      element.append(child instanceof Node ? child : String(child));
}

// h("button", {class: "small", onClick: ...}, "Revoke")
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

export function svg(name: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(svgNames, name);
  fill(element, attributes, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  fill(parent, {}, children);
}

// Says something to people who use a screen reader, and shows it for a few seconds.
export function say(text: string, wrong = false): void {
  const status = document.getElementById("status");
  if (!status) return;
  const line = h("div", { class: wrong ? "toast wrong" : "toast" }, text);
  status.append(line);
  setTimeout(() => line.remove(), wrong ? 12_000 : 5_000);
}

// Does something at the coordinator, says that it is done or why not, and shows the result.
export async function act(work: () => Promise<unknown>, done: string, refresh: () => Promise<void>): Promise<void> {
  try {
    await work();
    say(done);
    await refresh();
  } catch (error) {
    say((error as Error).message, true);
  }
}

// Asks before something that cannot be taken back. Resolves to the text of the field, or null.
export function ask(title: string, text: string, action: string, field?: string): Promise<string | null> {
  return new Promise(resolve => {
    const input = field ? h("input", { type: "text", id: "reason", maxlength: 200 }) : null;
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "dialog-title" }, title),
        h("p", {}, text),
        input && h("label", { for: "reason" }, field),
        input,
        h("div", { class: "actions" },
          h("button", { value: "", class: "quiet" }, "Cancel"),
          h("button", { value: "yes", class: "danger" }, action))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? input?.value ?? "" : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
