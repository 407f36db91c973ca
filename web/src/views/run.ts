// One run: its curves, the current round, why it waits, and its run file.
import { all, FeedEvent, get, post, remove } from "../api.js";
import { act, ask, h, replace } from "../dom.js";
import { bytes, figure, moment, percent, seconds } from "../format.js";
import { card, facts, stat } from "../parts.js";
import type { Progress, Round, Run, RunDetails } from "../types.js";
import { curves } from "./run/curves.js";
import { models } from "./run/models.js";
import { present } from "./run/present.js";
import { VerificationCard } from "./run/verification.js";
import type { MakeView } from "./view.js";

export const run: MakeView = (session, argument) => {
  const number = Number(argument);
  const head = h("div", { class: "stats" });
  const actions = h("div", { class: "actions" });
  const plots = h("div");
  const now = h("div");
  const about = h("div");
  const files = h("div");
  const verification = new VerificationCard(number, () => session.may("submitter", shown?.project ?? ""));
  const element = h("div", {}, actions, head, plots, card("At present", now), card("Models", files), card("Verification", verification.element), card("About this run", about));
  let rounds: Round[] = [];
  let shown: Run | null = null;
  let progress: Progress | null = null;
  const memory: [number, number][] = [];

  const change = async (what: string, title: string, text: string): Promise<void> => {
    const reason = await ask(title, text, title.split(" ")[0]!, "Reason, for the audit log");
    if (reason === null) return;
    await act(() => post(`/runs/${number}/${what}`, reason ? { reason } : {}), `Run ${number}: done`, () => view.refresh());
  };
  const removeRun = async (): Promise<void> => {
    const sure = await ask("Remove the run", "Its results, metrics and journal are deleted. The audit log records it.", "Remove");
    if (sure === null) return;
    await act(() => remove(`/runs/${number}`), `Run ${number} is removed`, async () => { location.hash = "#/runs"; });
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
      stat("Loss", figure(last?.test_loss ?? last?.train_loss) || "–", last?.test_loss ? "test" : "training"),
      privacy(last),
      progress?.memory_bytes && progress.model_bytes ? stat("Memory", bytes(progress.memory_bytes),
        `of the coordinator; the model has ${bytes(progress.model_bytes)}`) : null);
    replace(plots, curves(rounds, progress, memory));
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
        }, "Stop"),
      shown.ended !== null && session.may("operator", shown.project) &&
        h("button", { class: "danger", onClick: () => void removeRun() }, "Remove"));
  };
  const readProgress = async (): Promise<void> => {
    progress = await get<Progress>(`/runs/${number}/progress`);
    const round = rounds[rounds.length - 1]?.round ?? 0;
    if (progress.led && progress.memory_bytes !== null && memory[memory.length - 1]?.[0] !== round)
      memory.push([round, progress.memory_bytes]);
    replace(now, present(progress));
  };
  // What the run has spent of its privacy budget, and when that ends it.
  const privacy = (last: Round | undefined): HTMLElement | null => {
    if (typeof last?.epsilon !== "number" && !progress?.epsilon_budget) return null;
    const budget = progress?.epsilon_budget ? ` of ${figure(progress.epsilon_budget)}` : "";
    return stat("Privacy spent", `ε ${figure(last?.epsilon ?? 0)}${budget}`,
      progress?.ends_after ? `ends after round ${progress.ends_after} at the latest` : "");
  };

  const view = {
    title: `Run ${number}`,
    element,
    async refresh() {
      const reading = readProgress();  // meanwhile
      reading.catch(() => undefined);
      const details = await get<RunDetails>(`/runs/${number}`);
      shown = details.run;
      const after = rounds.length > 0 ? rounds[rounds.length - 1]!.round : 0;
      const more = await all<Round>(`/runs/${number}/rounds?after=${after}`, 100_000);
      rounds = rounds.concat(more.filter(round => round.round > after));
      await reading;
      showHead();
      const list = await models(number, files.childElementCount === 0);
      if (list) replace(files, list);
      if (rounds.length > 0) await verification.refresh();
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
