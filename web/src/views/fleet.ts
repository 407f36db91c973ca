// All clients, with what they did lately.
import { all, FeedEvent } from "../api.js";
import { h, replace } from "../dom.js";
import { ago, plural } from "../format.js";
import { badge, labels, link, table } from "../parts.js";
import type { Client } from "../types.js";
import type { MakeView } from "./view.js";

const kMost = 10_000;

function failures(client: Client): string {
  return Object.entries(client.failures).map(([kind, count]) => `${count} ${kind}`).join(", ");
}

function fits(client: Client, text: string): boolean {
  return [String(client.client), client.name, client.project, client.state, ...client.labels, client.software ?? "",
    client.online ? "online" : "offline"].some(field => field.toLowerCase().includes(text));
}

export const fleet: MakeView = () => {
  const filter = h("input", { type: "search", placeholder: "Name, label, project, state …", "aria-label": "Filter clients" });
  const count = h("p", { class: "muted", "aria-live": "polite" });
  const list = h("div");
  const element = h("div", {}, h("div", { class: "filter" }, filter, count), h("div", { class: "card" }, list));
  let clients: Client[] = [];
  const show = (): void => {
    const text = filter.value.trim().toLowerCase();
    const shown = clients.filter(client => text === "" || fits(client, text));
    const cut = clients.length >= kMost ? ` The first ${kMost} are shown.` : "";
    count.textContent = `${plural(shown.length, "client")}, ${shown.filter(client => client.online).length} online.${cut}`;
    replace(list, table("Clients", [
      { title: "Client", cell: client => link(`clients/${client.client}`, `${client.client}${client.name ? ` · ${client.name}` : ""}`) },
      { title: "Seen", cell: client => client.online ? badge("online") : ago(client.last_seen) },
      { title: "State", cell: client => client.state === "enrolled" ? null : badge(client.state) },
      { title: "Labels", cell: client => labels(client.labels), minor: true },
      { title: "Project", cell: client => client.project, minor: true },
      { title: "Version", cell: client => client.software?.replace("fedge-client ", ""), minor: true },
      { title: "Platform", cell: client => client.platform, minor: true },
      { title: "Accepted", cell: client => client.accepted, right: true },
      { title: "Failures", cell: client => failures(client), minor: true },
    ], shown, clients.length === 0 ? "No client has joined yet: create a join token" : "No client fits"));
  };
  filter.addEventListener("input", show);
  return {
    title: "Clients",
    element,
    async refresh() {
      clients = await all<Client>("/clients", kMost);
      show();
    },
    concerns: (event: FeedEvent) => event.name.startsWith("client."),
  };
};
