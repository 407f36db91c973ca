// The last events since the login, newest first.
import type { FeedEvent } from "./api.js";

const kKept = 30;
const kept: FeedEvent[] = [];

// What happens in every round is not news: the pages of the runs show it.
export function note(event: FeedEvent): void {
  const routine = /^(progress|round|gap|(round|evaluation|statistics)\.(started|closed|completed|waiting))$/;
  if (routine.test(event.name) && event.data["level"] !== "warning") return;
  kept.unshift(event);
  kept.length = Math.min(kept.length, kKept);
}
export function news(): readonly FeedEvent[] { return kept; }
export function forget(): void { kept.length = 0; }
