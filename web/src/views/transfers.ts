// The models and updates that move at present.
import { FeedEvent, get, Page } from "../api.js";
import { h, replace } from "../dom.js";
import { ago, bytes, plural, share } from "../format.js";
import { link, table } from "../parts.js";
import type { Transfer } from "../types.js";
import type { MakeView } from "./view.js";

const kMost = 1000;
const kEvery = 2000;  // the bytes move without events

const objects: Record<string, string> = { model: "model", control: "control variates", update: "update" };
const reasons: Record<string, string> = { turn: "waits for its turn", disk: "waits for the disk" };

// The cells of a transfer that change. They are filled again in place, so that the focus and the scroll position stay.
class Row {
  readonly bar = h("progress", { class: "progress" });
  readonly text = h("span", { class: "hint", "aria-hidden": "true" });
  readonly rate = h("span", { class: "nowrap" });
  readonly narrow = h("span", { class: "hint narrow" });  // the rate, where there is no column for it
  readonly since = h("span", { class: "nowrap" });
  readonly amount = h("div", { class: "amount" }, this.bar, this.text, this.narrow);

  show(one: Transfer): void {
    const text = share(one.done, one.bytes);
    this.bar.max = Math.max(1, one.bytes);
    this.bar.value = one.bytes === 0 ? 1 : one.done;
    this.bar.setAttribute("aria-label", `Client ${one.client}, run ${one.run}, ${one.direction} of the ${objects[one.object] ?? one.object}`);
    this.bar.setAttribute("aria-valuetext", text);
    this.text.textContent = text;
    const reason = one.waits_for === null ? "" : reasons[one.waits_for] ?? "waits";
    const speed = one.bytes_per_second === null ? "" : `${bytes(one.bytes_per_second)}/s`;
    replace(this.rate, reason ? h("span", { class: "badge wait" }, reason) : speed);
    this.narrow.textContent = reason || speed;
    this.since.textContent = ago(one.since);
  }
}

export const transfers: MakeView = () => {
  const count = h("p", { class: "muted" });
  const list = h("div", { class: "card" });
  const element = h("div", {}, count, list);
  let rows = new Map<number, Row>();
  const build = (shown: Transfer[]): void => {
    const focused = document.activeElement?.closest("a")?.getAttribute("href") ?? null;
    replace(list, table("Transfers", [
      { title: "Client", cell: one => link(`clients/${one.client}`, String(one.client)) },
      { title: "Run", cell: one => link(`runs/${one.run}`, String(one.run)) },
      { title: "Direction", cell: one => `${one.direction} of the ${objects[one.object] ?? one.object}` },
      { title: "Progress", cell: one => rows.get(one.transfer)!.amount },
      { title: "Speed", cell: one => rows.get(one.transfer)!.rate, minor: true },
      { title: "Since", cell: one => rows.get(one.transfer)!.since, minor: true },
      { title: "Round", cell: one => one.round, right: true, minor: true },
      { title: "Project", cell: one => one.project, minor: true },
    ], shown, "Nothing is being uploaded or downloaded at present."));
    if (focused !== null)
      [...list.querySelectorAll("a")].find(one => one.getAttribute("href") === focused)?.focus();
  };
  return {
    title: "Transfers",
    element,
    every: kEvery,
    async refresh() {
      const page = await get<Page<Transfer>>(`/transfers?limit=${kMost}`);
      const shown = page.items;
      const changed = shown.length !== rows.size || shown.some(one => !rows.has(one.transfer));
      if (changed) rows = new Map(shown.map(one => [one.transfer, rows.get(one.transfer) ?? new Row()]));
      for (const one of shown) rows.get(one.transfer)!.show(one);
      if (changed || list.childElementCount === 0) build(shown);
      const uploads = shown.filter(one => one.direction === "upload").length;
      const waiting = shown.filter(one => one.waits_for !== null).length;
      count.textContent = `${plural(uploads, "upload")}, ${plural(shown.length - uploads, "download")}, ${waiting} waiting.` +
        (page.next === null ? "" : ` The first ${kMost} are shown.`);
    },
    concerns: (event: FeedEvent) => event.name === "progress" || event.name.startsWith("client."),
  };
};
