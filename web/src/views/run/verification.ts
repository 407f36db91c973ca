// Replays a run on the coordinator's machine, and shows that its models are equal.
import { get, post } from "../../api.js";
import { act, h, replace } from "../../dom.js";
import { moment } from "../../format.js";
import { badge, table } from "../../parts.js";
import type { Verification } from "../../types.js";

export class VerificationCard {
  readonly element = h("div");
  private timer = 0;

  constructor(private readonly run: number, private readonly may: () => boolean) {}

  // Looks again while the replay goes on and the card is shown.
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    let last: Verification | null = null;
    try {
      last = await get<Verification>(`/runs/${this.run}/verification`);
    } catch {
      // The run was not replayed yet.
    }
    replace(this.element,
      h("p", { class: "muted" }, "The coordinator trains the run again from its journal and the clients' data, and compares each model."),
      this.may() && last?.state !== "running" &&
        h("button", { onClick: () => void this.start() }, "Verify"),
      last && h("p", {}, badge(last.state), ` rounds 1 to ${last.until}, ${last.ended ? moment(last.ended) : `since ${moment(last.started)}`}`),
      last?.reason && h("p", { class: "note bad" }, last.reason),
      last && last.rounds.length > 0 && table("Models of the run and of its replay", [
        { title: "Round", cell: one => one.round },
        { title: "Recorded", cell: one => h("code", {}, one.recorded?.slice(0, 16) ?? "not yet") },
        { title: "Replayed", cell: one => h("code", {}, one.replayed.slice(0, 16)) },
        { title: "Equal", cell: one => one.recorded === null ? "" : badge(one.recorded === one.replayed ? "equal" : "different") },
      ], last.rounds.slice(-20).reverse(), ""));
    if (last?.state === "running")
      this.timer = window.setTimeout(() => { if (this.element.isConnected) void this.refresh(); }, 1000);
  }

  private async start(): Promise<void> {
    await act(() => post(`/runs/${this.run}/verification`, {}), `Run ${this.run}: the replay has begun`, () => this.refresh());
  }
}
