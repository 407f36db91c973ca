// The last events since the login, newest first.
import type { FeedEvent } from "./api.js";

const kKept = 30;
const kept: FeedEvent[] = [];

// Tasks and rounds have places of their own on the pages.
export function note(event: FeedEvent): void {
  if (["progress", "round", "gap"].includes(event.name)) return;
  kept.unshift(event);
  kept.length = Math.min(kept.length, kKept);
}
export function news(): readonly FeedEvent[] { return kept; }
export function forget(): void { kept.length = 0; }
