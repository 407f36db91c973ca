// The first page: what runs, who is connected, what waits for somebody.
import { all } from "../api.js";
import { h, replace } from "../dom.js";
import { ago, plural } from "../format.js";
import { news } from "../news.js";
import { badge, card, link, stat, table } from "../parts.js";
import type { Client, Run } from "../types.js";
import { KeyCard } from "./key.js";
import type { MakeView } from "./view.js";

const kRecent = 8;

export const overview: MakeView = session => {
  const stats = h("div", { class: "stats" });
  const runs = h("div");
  const events = h("ol", { class: "news" });
  const key = session.may("operator") ? new KeyCard(session) : null;
  const element = h("div", {}, stats, card("Runs", runs), card("What happened since you logged in", events),
    key && card("The coordinator's key", key.element));
  const showEvents = (): void => {
    const list = news();
    replace(events, list.length === 0 && h("li", { class: "muted" }, "Nothing yet."), ...list.map(event => h("li", {},
      h("time", {}, String(event.data["time"] ?? "").slice(11, 19)), " ",
      h("b", {}, event.name), " ",
      Object.entries(event.data).filter(([key]) => !["time", "level", "event"].includes(key))
        .map(([key, value]) => `${key} ${String(value)}`).join(", "))));
  };
  return {
    title: "Overview",
    element,
    async refresh() {
      showEvents();
      const [list, clients] = await Promise.all([all<Run>("/runs"), all<Client>("/clients"), key?.refresh()]);
      const open = list.filter(run => run.ended === null);
      const online = clients.filter(client => client.online).length;
      const pending = clients.filter(client => client.state === "pending").length;
      const waiting = open.filter(run => run.waiting !== null).length;
      replace(stats,
        stat("Runs in progress", String(open.filter(run => run.state === "running").length),
          plural(open.filter(run => run.state === "pending").length, "run waits", "runs wait")),
        stat("Clients online", String(online), `of ${clients.filter(client => client.state === "enrolled").length} enrolled`),
        stat("Approvals", String(pending), pending > 0 ? "devices wait for you" : "nothing to do", pending > 0 ? "wait" : ""),
        stat("Runs that wait for clients", String(waiting), waiting > 0 ? "see the run" : "none", waiting > 0 ? "wait" : ""));
      const recent = [...open, ...list.filter(run => run.ended !== null)
        .sort((a, b) => b.run - a.run)].slice(0, kRecent);
      replace(runs, table("Runs", [
        { title: "Run", cell: run => link(`runs/${run.run}`, `${run.run} · ${run.name}`) },
        { title: "State", cell: run => badge(run.state) },
        { title: "Rounds", cell: run => run.rounds, right: true },
        { title: "Project", cell: run => run.project, minor: true },
        { title: "Submitted", cell: run => ago(run.submitted), minor: true },
        { title: "Reason", cell: run => run.reason, minor: true },
      ], recent, "No run was submitted yet: fedge run submit FILE"));
    },
    concerns(event) {
      showEvents();
      return event.name === "round" || event.name.startsWith("key.") || event.name.startsWith("run.") || event.name.startsWith("client.");
    },
  };
};
