// The list of runs.
import { all } from "../api.js";
import { h, replace } from "../dom.js";
import { ago } from "../format.js";
import { badge, link, table } from "../parts.js";
import type { Run } from "../types.js";
import type { MakeView } from "./view.js";

export const runs: MakeView = () => {
  const element = h("div", { class: "card" });
  return {
    title: "Runs",
    element,
    async refresh() {
      const list = (await all<Run>("/runs")).sort((a, b) => b.run - a.run);
      replace(element, table("Runs", [
        { title: "Run", cell: run => link(`runs/${run.run}`, `${run.run} · ${run.name}`) },
        { title: "State", cell: run => badge(run.state) },
        { title: "Rounds", cell: run => run.rounds, right: true },
        { title: "Project", cell: run => run.project, minor: true },
        { title: "Submitted", cell: run => ago(run.submitted) },
        { title: "By", cell: run => run.submitter, minor: true },
        { title: "Reason", cell: run => run.reason, minor: true },
      ], list, "No run was submitted yet: fedge run submit FILE"));
    },
    concerns: event => event.name === "round" || event.name.startsWith("run."),
  };
};
