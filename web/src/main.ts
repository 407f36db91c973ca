// The frame of the dashboard: login, navigation, and the view of the present address.
import { ApiError, FeedEvent, follow, get, isLoggedIn, logIn, logOut, whenRefused } from "./api.js";
import { h, replace, say } from "./dom.js";
import { forget, note } from "./news.js";
import { Session } from "./session.js";
import type { Identity, Role } from "./types.js";
import { audit } from "./views/audit.js";
import { client } from "./views/client.js";
import { fleet } from "./views/fleet.js";
import { joining } from "./views/joining.js";
import { overview } from "./views/overview.js";
import { run } from "./views/run.js";
import { runs } from "./views/runs.js";
import { transfers } from "./views/transfers.js";
import type { MakeView, View } from "./views/view.js";

interface Place { path: string; title: string; make: MakeView; role: Role; everywhere?: boolean }

const places: Place[] = [
  { path: "", title: "Overview", make: overview, role: "viewer" },
  { path: "runs", title: "Runs", make: runs, role: "viewer" },
  { path: "clients", title: "Clients", make: fleet, role: "viewer" },
  { path: "transfers", title: "Transfers", make: transfers, role: "viewer" },
  { path: "joining", title: "Joining", make: joining, role: "operator" },
  { path: "audit", title: "Audit log", make: audit, role: "admin", everywhere: true },
];
const details: Record<string, MakeView> = { runs: run, clients: client };
const kPause = 1000;  // between two refreshes, in milliseconds
const kTheme = "fedge-theme";

const app = document.getElementById("app")!;

function applyTheme(theme: string | null): void {
  if (theme) document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
}

function showLogin(message = ""): void {
  const input = h("input", {
    type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true, placeholder: "fedge_…",
  });
  const wrong = h("p", { class: "note bad", role: "alert" }, message);
  wrong.hidden = message === "";
  const form = h("form", { class: "login card" },
    h("img", { src: "icon.svg", alt: "", width: 40, height: 40 }),
    h("h1", {}, "Fedge"),
    h("label", { for: "token" }, "Access token"), input,
    h("button", { type: "submit" }, "Log in"), wrong,
    h("p", { class: "muted" }, "An administrator creates one with: fedge user token create NAME"));
  form.addEventListener("submit", event => {
    event.preventDefault();
    logIn(input.value.trim());
    void begin();
  });
  document.title = "Log in · Fedge";
  replace(app, h("main", { id: "main", class: "center" }, form));
  input.focus();
}

class Frame {
  private view: View | null = null;
  private refreshing = false;
  private wanted = false;
  private timer = 0;
  private readonly heading = h("h1", { tabindex: -1 });
  private readonly main = h("main", { id: "main" });
  private readonly nav = h("nav", { "aria-label": "Pages" });
  private readonly state = h("span", { class: "connection" }, "connecting");
  private readonly ending = new AbortController();

  constructor(private readonly session: Session) {
    const theme = h("button", { class: "quiet", onClick: () => this.changeTheme(), "aria-label": "Change colours" }, "◐");
    replace(app,
      h("header", {},
        h("a", { class: "brand", href: "#/" }, h("img", { src: "icon.svg", alt: "", width: 24, height: 24 }), "Fedge"),
        this.nav,
        h("div", { class: "who" }, this.state, h("span", { class: "name" }, session.identity.name.replace(/^user /, "")), theme,
          h("button", { class: "quiet", onClick: () => this.leave() }, "Log out"))),
      this.main);
    addEventListener("hashchange", this.changed);
    void follow(event => this.take(event), connected => this.connected(connected), this.ending.signal);
    void this.show();
  }

  private readonly changed = (): void => { void this.show(true); };

  close(): void {
    this.ending.abort();
    clearInterval(this.timer);
    removeEventListener("hashchange", this.changed);
  }

  private leave(): void {
    this.close();
    forget();
    logOut();
    showLogin();
  }

  private changeTheme(): void {
    const dark = document.documentElement.dataset["theme"] ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = dark === "dark" ? "light" : "dark";
    localStorage.setItem(kTheme, next);
    applyTheme(next);
  }

  private async show(focus = false): Promise<void> {
    const [name = "", argument = ""] = location.hash.replace(/^#\//, "").split("/");
    const place = places.find(one => one.path === name) ?? places[0]!;
    const make = argument && details[place.path] ? details[place.path]! : place.make;
    this.view = make(this.session, argument);
    replace(this.nav, ...places.filter(one => one.everywhere ? this.session.may(one.role) : this.session.maySomewhere(one.role))
      .map(one => h("a", { href: `#/${one.path}`, "aria-current": one === place ? "page" : null }, one.title)));
    this.heading.textContent = this.view.title;
    document.title = `${this.view.title} · Fedge`;
    replace(this.main, this.heading, this.view.element);
    if (focus) this.heading.focus();
    clearInterval(this.timer);
    if (this.view.every !== undefined)
      this.timer = setInterval(() => { if (!document.hidden) void this.refresh(); }, this.view.every);
    await this.load(this.view);
  }

  private async load(view: View): Promise<void> {
    try {
      await view.refresh();
    } catch (error) {
      const text = error instanceof ApiError ? error.problem.detail : String(error);
      if (view !== this.view) return;
      if (view.element.childElementCount === 0) replace(view.element, h("p", { class: "note bad" }, text));
      else say(text, true);
    }
  }

  // One refresh at a time, and at most one a second, whatever happens.
  private async refresh(): Promise<void> {
    this.wanted = true;
    if (this.refreshing) return;
    this.refreshing = true;
    while (this.wanted && this.view) {
      this.wanted = false;
      await this.load(this.view);
      await new Promise(done => setTimeout(done, kPause));
    }
    this.refreshing = false;
  }

  private take(event: FeedEvent): void {
    note(event);
    if (event.name === "gap" || this.view?.concerns(event)) void this.refresh();
  }

  private connected(connected: boolean): void {
    this.state.textContent = connected ? "live" : "connecting";
    this.state.className = connected ? "connection on" : "connection";
    if (connected) void this.refresh();
  }
}

let frame: Frame | null = null;

async function begin(): Promise<void> {
  try {
    const identity = await get<Identity>("/identity");
    frame?.close();
    frame = new Frame(new Session(identity));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.problem.status === 401) logOut();
    showLogin(error.problem.detail);
  }
}

whenRefused(() => {
  frame?.close();
  frame = null;
  logOut();
  showLogin("The coordinator does not accept this access token: it is wrong, has expired or was revoked.");
});
applyTheme(localStorage.getItem(kTheme));
if (isLoggedIn()) void begin();
else showLogin();
