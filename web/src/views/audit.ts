// The audit log, newest first, and its check.
import { get, Page } from "../api.js";
import { h, replace, say } from "../dom.js";
import { moment } from "../format.js";
import { table } from "../parts.js";
import type { AuditEntry } from "../types.js";
import type { MakeView } from "./view.js";

const kShown = 500;

export const audit: MakeView = () => {
  const list = h("div");
  const verified = h("p", { class: "muted", "aria-live": "polite" });
  const check = h("button", {
    onClick: () => void get<{ entries: number; head: string }>("/audit/verification")
      .then(summary => { verified.textContent = `${summary.entries} entries, unbroken. Hash of the last: ${summary.head}`; })
      .catch((error: Error) => say(error.message, true)),
  }, "Check the chain");
  const element = h("div", {}, h("div", { class: "actions" }, check), verified, h("div", { class: "card" }, list));
  return {
    title: "Audit log",
    element,
    async refresh() {
      const summary = await get<{ entries: number }>("/audit/verification");
      const page = await get<Page<AuditEntry>>(`/audit?limit=${kShown}&after=${Math.max(0, summary.entries - kShown)}`);
      replace(list, table("Audit log", [
        { title: "Entry", cell: entry => entry.seq, right: true },
        { title: "Time", cell: entry => h("time", { class: "nowrap" }, moment(entry.time)) },
        { title: "Who", cell: entry => entry.actor.length > 24 ? h("code", { title: entry.actor }, `${entry.actor.slice(0, 24)}…`) : entry.actor },
        { title: "Action", cell: entry => entry.action },
        { title: "Subject", cell: entry => entry.subject, minor: true },
        { title: "Details", cell: entry => Object.entries(entry.details).map(([key, value]) => `${key} ${value}`).join(", "), minor: true },
      ], page.items.reverse(), "The log is empty."));
    },
    concerns: () => false,
  };
};
