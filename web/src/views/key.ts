// The coordinator's key: what clients know of the next one, and its rotation.
import { get, post, remove } from "../api.js";
import { act, ask, h, replace } from "../dom.js";
import { ago, plural } from "../format.js";
import { facts, link } from "../parts.js";
import type { Session } from "../session.js";
import type { Key } from "../types.js";

const kShown = 20;  // clients by name

export class KeyCard {
  readonly element = h("div");

  constructor(private readonly session: Session) {}

  async refresh(): Promise<void> {
    let key: Key;
    try {
      key = await get<Key>("/key");
    } catch (error) {
      replace(this.element, h("p", { class: "note bad" }, error instanceof Error ? error.message : String(error)));
      return;
    }
    const change = this.session.may("admin");
    replace(this.element,
      facts([
        ["Key in force", h("code", { class: "break" }, key.key)],
        ["Next key", key.next_key && h("code", { class: "break" }, key.next_key)],
        ["Announced", key.announced && ago(key.announced)],
      ]),
      key.next_key === null ? h("p", { class: "muted" }, "No next key is announced.") : this.stored(key),
      change && h("p", { class: "buttons" }, ...this.buttons(key)));
  }

  private stored(key: Key): HTMLElement {
    const missing = key.unaware_clients;
    if (missing === 0) return h("p", { class: "note good" }, `Stored by all clients: ${key.clients}.`);
    return h("p", { class: "note wait" }, `Stored by ${key.clients - missing} of ${plural(key.clients, "client")}; not by `,
      ...key.unaware.slice(0, kShown).flatMap((one, index) => [
        index > 0 && ", ",
        link(`clients/${one.client}`, `${one.client}${one.name ? ` · ${one.name}` : ""}`),
        one.state === "pending" ? " (waits for approval)" : one.last_seen ? ` (seen ${ago(one.last_seen)})` : " (never connected)",
      ]),
      missing > Math.min(kShown, key.unaware.length) && " and others");
  }

  private buttons(key: Key): HTMLElement[] {
    if (key.next_key === null)
      return [h("button", {
        onClick: () => void this.confirmed("Announce a next key",
          "The coordinator creates a key and tells every client that connects. The present key stays in force.", "Announce",
          () => post("/key/next"), "The next key is announced: make a backup now"),
      }, "Announce a next key")];
    const force = key.unaware_clients > 0;
    return [
      h("button", {
        class: force ? "danger" : null,
        onClick: () => void this.confirmed("Replace the key",
          (force ? `${plural(key.unaware_clients, "client")} cannot connect afterwards until the owner runs fedge-client move. ` : "") +
          "The present key is destroyed, and all clients connect again.", "Replace",
          () => post("/key/rotation", { force, next_key: key.next_key }), "The key was replaced: make a backup now"),
      }, "Replace the key"),
      h("button", {
        class: "danger",
        onClick: () => void this.confirmed("Withdraw the next key", "The clients forget it.", "Withdraw",
          () => remove("/key/next"), "The next key was withdrawn"),
      }, "Withdraw"),
    ];
  }

  private async confirmed(title: string, text: string, button: string, work: () => Promise<unknown>, done: string): Promise<void> {
    if (await ask(title, text, button) === null) return;
    await act(work, done, () => this.refresh());
  }
}
