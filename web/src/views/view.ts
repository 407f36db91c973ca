// A view shows one page. It is built anew when the address changes, and refreshed when events say so.
import type { FeedEvent } from "../api.js";
import type { Session } from "../session.js";

export interface View {
  title: string;
  element: HTMLElement;
  // Reads everything again. Called once at the beginning.
  refresh(): Promise<void>;
  // Whether this event makes a refresh() necessary; the view may also use it at once.
  concerns(event: FeedEvent): boolean;
  // Milliseconds between two refreshes without an event, for what changes without one.
  every?: number;
}
export type MakeView = (session: Session, argument: string) => View;
