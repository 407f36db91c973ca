// One run: its curves, the current round, why it waits, and its run file.
import { all, FeedEvent, get, post } from "../api.js";
import { chart, Line } from "../chart.js";
import { act, ask, h, replace } from "../dom.js";
import { ago, bytes, figure, moment, percent, plural, seconds } from "../format.js";
import { badge, card, facts, link, stat, table } from "../parts.js";
import type { Figure, Progress, Round, Run, RunDetails, Task } from "../types.js";
import type { MakeView } from "./view.js";

function line(name: string, rounds: Round[], value: (round: Round) => Figure, dashed = false): Line {
  const points: [number, number][] = [];
  for (const round of rounds) {
    const y = value(round);
    if (typeof y === "number") points.push([round.round, y]);
  }
  return { name, points, dashed };
}

function trackLines(rounds: Round[], value: (track: NonNullable<Round["tracks"]>[number]) => Figure): Line[] {
  const count = Math.max(0, ...rounds.map(round => round.tracks?.length ?? 0));
  return Array.from({ length: count }, (_, index) =>
    line(`track ${index}`, rounds, round => round.tracks?.[index] && value(round.tracks[index]!)));
}

function curves(rounds: Round[], budget: number | null): HTMLElement {
  const tracks = Math.max(0, ...rounds.map(round => round.tracks?.length ?? 0)) > 1;
  const scored = [
    line("test", rounds, round => round.test_accuracy),
    line("on clients", rounds, round => round.evaluation?.accuracy),
    line("worst tenth of the clients", rounds, round => round.evaluation?.accuracy_p10, true),
  ].filter(one => one.points.length > 0);
  const errors = [line("test", rounds, round => round.test_rmse), line("on clients", rounds, round => round.evaluation?.rmse)]
    .filter(one => one.points.length > 0);
  const charts = [
    errors.length > 0 && scored.length === 0
      ? chart(errors, { title: "RMSE" })
      : chart(tracks ? trackLines(rounds, track => track.test_accuracy) : scored,
        { title: tracks ? "Accuracy by track" : "Accuracy", format: percent, tick: value => `${Number((value * 100).toPrecision(3))} %` }),
    chart(tracks ? trackLines(rounds, track => track.test_loss) : [
      line("test", rounds, round => round.test_loss), line("training", rounds, round => round.train_loss, true),
      line("on clients", rounds, round => round.evaluation?.loss)], { title: "Loss" }),
    chart([line("up", rounds, round => round.bytes_up), line("down", rounds, round => round.bytes_down)],
      { title: "Bytes in a round", format: bytes, fromZero: true }),
    chart([line("accepted", rounds, round => round.clients_completed),
      line("selected", rounds, round => round.clients_selected, true)], { title: "Clients in a round", fromZero: true, whole: true }),
  ];
  const spent = line("epsilon", rounds, round => round.epsilon);
  if (spent.points.length > 0)
    charts.push(chart([spent], {
      title: "Privacy spent", fromZero: true,
      limit: budget === null ? undefined : { value: budget, name: `budget ${figure(budget)}` },
    }));
  return h("div", { class: "charts" }, ...charts);
}

// "epsilon = 8" in the section [differential_privacy] of the run file; null: no budget.
function budgetIn(document: string): number | null {
  const section = /\[differential_privacy\]([^[]*)/.exec(document)?.[1] ?? "";
  const found = /^\s*epsilon\s*=\s*([\d.e+-]+)/m.exec(section);
  return found ? Number(found[1]) : null;
}

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
    { title: "Size", cell: task => bytes(task.bytes), right: true, minor: true },
    { title: "Reason", cell: task => task.reason, minor: true },
  ], tasks, "");
}

function present(progress: Progress): HTMLElement {
  const box = h("div");
  const { waiting } = progress;
  if (!progress.led) return h("p", { class: "empty" }, "The coordinator does not execute this run at present.");
  box.append(h("p", { class: "muted" }, `${plural(progress.ready, "client is", "clients are")} ready, ` +
    `${progress.preparing} prepare, ${progress.declined.length} declined.`));
  if (waiting)
    box.append(h("p", { class: "note wait" },
      `Round ${waiting.round} waits for clients: it needs ${waiting.needed}, and ${waiting.ready} ` +
      `${waiting.ready === 1 ? "is" : "are"} ready, since ${ago(waiting.since)}.`));
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

export const run: MakeView = (session, argument) => {
  const number = Number(argument);
  const head = h("div", { class: "stats" });
  const actions = h("div", { class: "actions" });
  const plots = h("div");
  const now = h("div");
  const about = h("div");
  const element = h("div", {}, actions, head, plots, card("At present", now), card("About this run", about));
  let rounds: Round[] = [];
  let shown: Run | null = null;
  let budget: number | null = null;

  const change = async (what: string, title: string, text: string): Promise<void> => {
    const reason = await ask(title, text, title.split(" ")[0]!, "Reason, for the audit log");
    if (reason === null) return;
    await act(() => post(`/runs/${number}/${what}`, reason ? { reason } : {}), `Run ${number}: done`, () => view.refresh());
  };
  const showHead = (): void => {
    if (!shown) return;
    const last = rounds[rounds.length - 1];
    const evaluated = [...rounds].reverse().find(round => typeof round.test_accuracy === "number" ||
      typeof round.evaluation?.accuracy === "number");
    replace(head,
      stat("State", shown.state, shown.reason ?? "", shown.waiting ? "wait" : ""),
      stat("Rounds", String(Math.max(shown.rounds, last?.round ?? 0)), last ? `after ${seconds(last.wall_seconds)}` : ""),
      stat("Accuracy", percent(evaluated?.test_accuracy ?? evaluated?.evaluation?.accuracy) || "–",
        evaluated ? `after round ${evaluated.round}` : "not evaluated yet"),
      stat("Loss", figure(last?.test_loss ?? last?.train_loss) || "–", last?.test_loss ? "test" : "training"));
    replace(plots, curves(rounds, budget));
    const may = session.may("submitter", shown.project);
    replace(actions,
      may && ["running", "pending"].includes(shown.state) &&
        h("button", { onClick: () => void change("pause", "Pause the run", "Its clients keep their work.") }, "Pause"),
      may && shown.state === "paused" &&
        h("button", { onClick: () => void change("resume", "Resume the run", "It continues in the same round.") }, "Resume"),
      may && shown.ended === null && shown.state !== "stopped" &&
        h("button", {
          class: "danger",
          onClick: () => void change("stop", "Stop the run", "It ends for good; its last model is its result."),
        }, "Stop"));
  };
  const readProgress = async (): Promise<void> =>
    replace(now, present(await get<Progress>(`/runs/${number}/progress`)));

  const view = {
    title: `Run ${number}`,
    element,
    async refresh() {
      const details = await get<RunDetails>(`/runs/${number}`);
      shown = details.run;
      budget = budgetIn(details.document);
      const after = rounds.length > 0 ? rounds[rounds.length - 1]!.round : 0;
      const more = await all<Round>(`/runs/${number}/rounds?after=${after}`, 100_000);
      rounds = rounds.concat(more.filter(round => round.round > after));
      showHead();
      await readProgress();
      const model = rounds[rounds.length - 1]?.model_hash;
      replace(about,
        facts([["Name", shown.name], ["Project", shown.project], ["Submitted", `${moment(shown.submitted)} by ${shown.submitter ?? "unknown"}`],
          ["Started", moment(shown.started)], ["Ended", moment(shown.ended)], ["Results", shown.results],
          ["Model", model ? h("code", {}, model) : null]]),
        h("details", {}, h("summary", {}, "Run file"), h("pre", { tabindex: 0 }, details.document)));
    },
    concerns(event: FeedEvent) {
      if (Number(event.data["run"] ?? number) !== number) return false;
      if (event.name === "progress") void readProgress().catch(() => undefined);
      return event.name === "round" || event.name.startsWith("run.") || event.name === "client.declined";
    },
  };
  return view;
};
