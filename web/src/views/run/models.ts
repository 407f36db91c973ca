// The models of a run that can be downloaded.
import { download, get } from "../../api.js";
import { act, h } from "../../dom.js";
import { facts } from "../../parts.js";
import type { Models } from "../../types.js";

export async function models(run: number): Promise<HTMLElement> {
  const there = await get<Models>(`/runs/${run}/models`);
  const button = (text: string, query: string, name: string): HTMLElement =>
    h("button", {
      class: "small",
      onClick: () => void act(() => download(`/runs/${run}/model${query}`, `run-${run}-${name}.safetensors`),
        `Run ${run}: the model is there`, async () => undefined),
    }, text);
  if (there.last === null) return h("p", { class: "empty" }, "There is no model yet: no round is complete.");
  return facts([
    ["Last", button(`Round ${there.last}`, "", `round-${there.last}`)],
    ["Best", there.best === null ? null : button(`Round ${there.best}`, "?which=best", `best-${there.best}`)],
    ["Earlier", there.rounds.length === 0 ? null : h("span", { class: "buttons" },
      ...there.rounds.slice(-20).map(round => button(`Round ${round}`, `?round=${round}`, `round-${round}`)))],
  ]);
}
