// Requests to the admin API. The token is in the memory of this tab and in its session storage, never in an
// address or a cookie.

export interface Problem { status: number; detail: string }
export class ApiError extends Error {
  constructor(readonly problem: Problem) { super(problem.detail); }
}
export interface Page<T> { items: T[]; next: number | string | null }
export interface FeedEvent { id: string; name: string; data: Record<string, unknown> }

const kTokenKey = "fedge-token";
const root = "/api/v1";

let token = sessionStorage.getItem(kTokenKey);
let onRefused: () => void = () => undefined;

export function isLoggedIn(): boolean { return token !== null; }
export function logIn(given: string): void {
  token = given;
  sessionStorage.setItem(kTokenKey, given);
}
export function logOut(): void {
  token = null;
  sessionStorage.removeItem(kTokenKey);
}
export function whenRefused(job: () => void): void { onRefused = job; }

function headers(more: Record<string, string> = {}): Record<string, string> {
  return { Authorization: `Bearer ${token ?? ""}`, ...more };
}

async function problemOf(answer: Response): Promise<ApiError> {
  try {
    return new ApiError(await answer.json() as Problem);
  } catch {
    return new ApiError({ status: answer.status, detail: `the coordinator answered with status ${answer.status}` });
  }
}

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(root + path, {
      method,
      headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
    });
  } catch {
    throw new ApiError({ status: 0, detail: "the coordinator cannot be reached" });
  }
  if (answer.ok) return await answer.json() as T;
  const error = await problemOf(answer);
  if (answer.status === 401) onRefused();
  throw error;
}

// Gets a file and gives it to the browser's downloads under this name.
export async function download(path: string, name: string): Promise<void> {
  const answer = await fetch(root + path, { headers: headers(), credentials: "omit", cache: "no-store" });
  if (!answer.ok) throw await problemOf(answer);
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);  // the download may begin later
}

export function remove<T>(path: string): Promise<T> { return request<T>("DELETE", path); }
export function get<T>(path: string): Promise<T> { return request<T>("GET", path); }
export function post<T>(path: string, body?: unknown): Promise<T> { return request<T>("POST", path, body); }
export function patch<T>(path: string, body: unknown): Promise<T> { return request<T>("PATCH", path, body); }

// All pages of a list, at most `most` items.
export async function all<T>(path: string, most = 10_000): Promise<T[]> {
  const joint = path.includes("?") ? "&" : "?";
  const items: T[] = [];
  for (let after = ""; ;) {
    const page = await get<Page<T>>(`${path}${joint}limit=1000${after}`);
    items.push(...page.items);
    if (page.next === null || items.length >= most) return items;
    after = `&after=${encodeURIComponent(String(page.next))}`;
  }
}

// Follows the events until `signal` ends it; connects again after a pause, where it was.
export async function follow(
  onEvent: (event: FeedEvent) => void, onState: (connected: boolean) => void, signal: AbortSignal): Promise<void> {
  let last: string | null = null;
  while (!signal.aborted) {
    try {
      const answer: Response = await fetch(`${root}/events`, {
        headers: headers(last === null ? {} : { "Last-Event-ID": last }), signal, credentials: "omit", cache: "no-store",
      });
      if (answer.status === 401) return onRefused();
      if (!answer.ok || !answer.body) throw await problemOf(answer);
      onState(true);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let unread = "";
      for (; ;) {
        const part = await reader.read();
        if (part.done) break;
        unread += part.value;
        for (let end = unread.indexOf("\n\n"); end >= 0; end = unread.indexOf("\n\n")) {
          const event = parseEvent(unread.slice(0, end));
          unread = unread.slice(end + 2);
          if (!event) continue;
          if (event.id) last = event.id;
          onEvent(event);
        }
      }
    } catch {
      if (signal.aborted) return;
    }
    onState(false);
    await new Promise(done => setTimeout(done, 2000));
  }
}

function parseEvent(text: string): FeedEvent | null {
  const event = { id: "", name: "", data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) event.id = line.slice(4);
    if (line.startsWith("event: ")) event.name = line.slice(7);
    if (line.startsWith("data: ")) event.data = line.slice(6);
  }
  if (!event.name) return null;
  return { id: event.id, name: event.name, data: JSON.parse(event.data || "{}") as Record<string, unknown> };
}
