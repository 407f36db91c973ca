// The curves of a run: quality by track, bytes, clients, privacy, memory.
import { chart, Line } from "../../chart.js";
import { h } from "../../dom.js";
import { bytes, figure, percent } from "../../format.js";
import type { Figure, Progress, Round } from "../../types.js";

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

// `memory`: round and bytes, as seen since the page was opened.
export function curves(rounds: Round[], now: Progress | null, memory: [number, number][]): HTMLElement {
  const budget = now?.epsilon_budget ?? null;
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
  if (memory.length > 1)
    charts.push(chart([{ name: "coordinator", points: memory }], {
      title: "Memory, since this page was opened", format: bytes, fromZero: true,
      limit: now?.model_bytes ? { value: now.model_bytes, name: `model ${bytes(now.model_bytes)}` } : undefined,
    }));
  return h("div", { class: "charts" }, ...charts);
}

