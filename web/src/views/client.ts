// One client: who it is, what it did, and what an operator may do with it.
import { get, patch, post } from "../api.js";
import { act as attempt, ask, h, replace } from "../dom.js";
import { ago, bytes, moment, seconds } from "../format.js";
import { badge, card, facts, labels, link, stat, table } from "../parts.js";
import type { Client } from "../types.js";
import type { MakeView } from "./view.js";

export const client: MakeView = (session, argument) => {
  const number = Number(argument);
  const actions = h("div", { class: "actions" });
  const head = h("div", { class: "stats" });
  const about = h("div");
  const runs = h("div");
  const failures = h("div");
  const join = h("div");
  const element = h("div", {}, actions, join, head, card("Device", about), card("Runs in progress", runs),
    card("Failures", failures));

  const act = (work: () => Promise<unknown>, done: string): Promise<void> => attempt(work, done, () => view.refresh());
  const revoke = async (): Promise<void> => {
    if (await ask(`Revoke client ${number}`, "It is disconnected at once, and its task ends.", "Revoke") === null) return;
    await act(() => post(`/clients/${number}/revoke`, {}), `Client ${number} is revoked`);
  };
  const rename = async (one: Client): Promise<void> => {
    const name = await ask(`Name of client ${number}`, `Now: ${one.name || "none"}`, "Rename", "New name");
    if (name !== null) await act(() => patch(`/clients/${number}`, { name }), `Client ${number} is named ${name || "nothing"}`);
  };
  const replaceDevice = async (): Promise<void> => {
    await act(async () => {
      const made = await post<{ items: { join: string }[] }>("/join-tokens", { replaces: number });
      replace(join, card("Join token of the new device",
        h("p", {}, "On the new device, with an empty state directory: fedge-client run --token-file FILE. The token is shown only here, and is valid for a day."),
        h("pre", { tabindex: 0 }, made.items[0]!.join)));
    }, "A token was created");
  };
  const view = {
    title: `Client ${number}`,
    element,
    async refresh() {
      const one = await get<Client>(`/clients/${number}`);
      const operator = session.may("operator", one.project);
      replace(actions,
        operator && one.state === "pending" &&
          h("button", { onClick: () => void act(() => post(`/clients/${number}/approve`), `Client ${number} is approved`) }, "Approve"),
        operator && h("button", { onClick: () => void rename(one) }, "Rename"),
        operator && one.key !== null && h("button", { onClick: () => void replaceDevice() }, "Replace the device"),
        operator && one.state === "revoked" &&
          h("button", { onClick: () => void act(() => post(`/clients/${number}/readmit`), `Client ${number} is admitted again`) }, "Admit again"),
        operator && one.state !== "revoked" && h("button", { class: "danger", onClick: () => void revoke() }, "Revoke"));
      const task = one.last_task;
      replace(head,
        stat("Connection", one.online ? "online" : "offline",
          one.online ? `since ${ago(one.online_since)}` : `last seen ${ago(one.last_seen)}`, one.online ? "good" : ""),
        stat("State", one.state, one.enrolled ? `since ${moment(one.enrolled)}` : "has not joined"),
        stat("Accepted tasks", String(one.accepted), task ? `last: ${task.outcome} ${ago(task.ended)}` : ""),
        stat(`Last ${task?.kind ?? "task"}`, task && task.training_seconds > 0 ? seconds(task.training_seconds) : "–",
          task && task.bytes > 0 ? `update of ${bytes(task.bytes)} in ${seconds(task.upload_seconds)}` : ""));
      replace(about, facts([
        ["Name", one.name], ["Labels", one.labels.length > 0 ? labels(one.labels) : null], ["Project", one.project],
        ["Address", one.address], ["Version", one.software], ["Platform", one.platform],
        ["Traffic", `${bytes(one.received)} received, ${bytes(one.sent)} sent`],
        ["Key", one.key ? h("code", {}, one.key) : null]]));
      replace(runs, table("Runs in progress", [
        { title: "Run", cell: part => link(`runs/${part.run}`, String(part.run)) },
        { title: "Part", cell: part => badge(part.state) },
        { title: "Reason", cell: part => part.reason },
      ], one.runs, one.online ? "It takes part in no run." : "It is not connected."));
      const failure = one.last_failure;
      replace(failures,
        table("Failures by kind", [
          { title: "Kind", cell: ([kind]) => kind },
          { title: "Tasks", cell: ([, count]) => count, right: true },
        ], Object.entries(one.failures), "No task of this client has failed."),
        failure && h("p", { class: "note bad" },
          `Last: ${failure.kind} ${ago(failure.at)} (run ${failure.run}, round ${failure.round}): ${failure.reason}`));
    },
    concerns: (event: { name: string; data: Record<string, unknown> }) =>
      event.name === "round" || event.data["client"] === number,
  };
  return view;
};
