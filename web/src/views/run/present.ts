// What happens in a run at present: its tasks, its secure sum, and why it waits.
import { h } from "../../dom.js";
import { ago, bytes, plural, seconds, share } from "../../format.js";
import { badge, link, table } from "../../parts.js";
import type { Progress, SecureSum, Task } from "../../types.js";

// A bar from the request to the end, in the time of the whole round.
function timeline(tasks: Task[]): HTMLElement {
  const dates = tasks.flatMap(task => task.asked === null ? [] : [Date.parse(task.asked)]);
  const start = dates.length > 0 ? Math.min(...dates) : 0;
  // A task from before a restart has no date: its bar begins at the left.
  const delay = (task: Task): number => task.asked === null ? 0 : (Date.parse(task.asked) - start) / 1000;
  const length = (task: Task): number =>
    delay(task) + task.training_seconds + (task.upload_seconds ?? 0);
  const whole = Math.max(1e-3, ...tasks.map(length));
  const part = (value: number): string => `${(value / whole * 100).toFixed(2)}`;
  return table("Tasks of the round", [
    { title: "Client", cell: (task: Task) => link(`clients/${task.client}`, String(task.client)) },
    { title: "Stage", cell: task => badge(task.stage) },
    {
      title: `${seconds(whole)}`, cell: task => {
        const svgBar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svgBar.setAttribute("class", "bar");
        svgBar.setAttribute("viewBox", "0 0 100 8");
        svgBar.setAttribute("preserveAspectRatio", "none");
        svgBar.setAttribute("aria-hidden", "true");
        const offset = delay(task);
        const add = (from: number, size: number, kind: string): void => {
          const rectangle = document.createElementNS("http://www.w3.org/2000/svg", "rect");
          for (const [name, value] of Object.entries({ x: part(from), y: "1", width: part(size), height: "6", class: kind }))
            rectangle.setAttribute(name, value);
          svgBar.append(rectangle);
        };
        add(offset, task.training_seconds, `train ${task.stage}`);
        if (task.upload_seconds !== null) add(offset + task.training_seconds, task.upload_seconds, `send ${task.stage}`);
        return svgBar;
      },
    },
    { title: "Training", cell: task => seconds(task.training_seconds), right: true, minor: true },
    { title: "Upload", cell: task => seconds(task.upload_seconds), right: true, minor: true },
    {
      title: "Size", right: true, minor: true,
      cell: task => task.received_bytes === null || task.bytes === null ? bytes(task.bytes) : share(task.received_bytes, task.bytes),
    },
    { title: "Reason", cell: task => task.reason, minor: true },
  ], tasks, "");
}

const stages: [string, string][] = [
  ["keys", "Keys"], ["shares", "Shares of secrets"], ["updates", "Masked updates"], ["consents", "Consents"],
  ["unmasking", "Removing the masks"],
];

// The steps of a secure sum, and which clients the coordinator waits for.
function secureSum(sum: SecureSum): HTMLElement {
  const at = stages.findIndex(([stage]) => stage === sum.stage);
  return h("div", { class: "secure" },
    h("h3", {}, `Secure sum of round ${sum.round}`),
    h("ol", { class: "steps" }, ...stages.map(([, name], index) =>
      h("li", { class: index < at || at < 0 ? "done" : index === at ? "current" : null, "aria-current": index === at ? "step" : null }, name))),
    sum.awaited.length > 0 && h("p", { class: "muted" }, "Waits for ", plural(sum.awaited.length, "client"), ": ",
      ...sum.awaited.slice(0, 20).flatMap((client, index) => [index > 0 && ", ", link(`clients/${client}`, String(client))]),
      sum.awaited.length > 20 && " and others"));
}

export function present(progress: Progress): HTMLElement {
  const box = h("div");
  const { waiting } = progress;
  if (!progress.led) return h("p", { class: "empty" }, "The coordinator does not execute this run at present.");
  box.append(h("p", { class: "muted" }, `${plural(progress.ready, "client is", "clients are")} ready, ` +
    `${progress.preparing} prepare, ${progress.declined.length} declined.`));
  if (waiting)
    box.append(h("p", { class: "note wait" },
      `Round ${waiting.round} waits for clients: it needs ${waiting.needed}, and ${waiting.ready} ` +
      `${waiting.ready === 1 ? "is" : "are"} ready, since ${ago(waiting.since)}.`));
  if (progress.secure) box.append(secureSum(progress.secure));
  if (progress.quarantined.length > 0)
    box.append(table("Clients in quarantine", [
      { title: "Client", cell: one => link(`clients/${one.client}`, String(one.client)) },
      { title: "Since", cell: one => `round ${one.round}` },
      { title: "Reason", cell: one => one.failures === 1 ? "its last training failed" : `its last ${one.failures} trainings failed` },
    ], progress.quarantined, ""));
  if (progress.declined.length > 0)
    box.append(table("Clients that declined", [
      { title: "Client", cell: one => link(`clients/${one.client}`, String(one.client)) },
      { title: "Declined", cell: one => one.since === null ? "" : ago(one.since) },
      { title: "Reason", cell: one => one.reason },
    ], progress.declined, ""));
  if (progress.tasks.length > 0) box.append(h("h3", {}, `Round ${progress.round}`), timeline(progress.tasks));
  if (progress.last_tasks.length > 0)
    box.append(h("details", { open: progress.tasks.length === 0 },
      h("summary", {}, `Round ${progress.last_round}, closed`), timeline(progress.last_tasks)));
  return box;
}

