// The models of a run that can be downloaded.
import { download, get } from "../../api.js";
import { act, h } from "../../dom.js";
import { facts } from "../../parts.js";
import type { Models } from "../../types.js";

// Returns nothing if the list has not changed: buttons that are replaced lose the keyboard.
let shown = "";
export async function models(run: number, anew: boolean): Promise<HTMLElement | null> {
  const there = await get<Models>(`/runs/${run}/models`);
  const now = JSON.stringify(there);
  if (now === shown && !anew) return null;
  shown = now;
  const button = (text: string, query: string, name: string): HTMLElement =>
    h("button", {
      class: "small",
      "aria-label": `Download the model of round ${name.replace(/\D/g, "")}`,
      onClick: () => void act(() => download(`/runs/${run}/model${query}`, `run-${run}-${name}.safetensors`),
        `Run ${run}: the model is there`, async () => undefined),
    }, text);
  if (there.last === null && there.best === null && there.rounds.length === 0) return h("p", { class: "empty" }, "There is no model yet: no round is complete.");
  return facts([
    ["Last", there.last === null ? null : button(`Round ${there.last}`, "", `round-${there.last}`)],
    ["Best", there.best === null ? null : button(`Round ${there.best}`, "?which=best", `best-${there.best}`)],
    ["Earlier", there.rounds.length === 0 ? null : h("span", { class: "buttons" },
      ...there.rounds.slice(-20).map(round => button(`Round ${round}`, `?round=${round}`, `round-${round}`)))],
  ]);
}
