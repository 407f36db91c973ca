// Approvals and join tokens.
import { all, post } from "../api.js";
import { act as attempt, ask, h, replace } from "../dom.js";
import { moment } from "../format.js";
import { badge, card, labels, link, table } from "../parts.js";
import type { Client, JoinToken } from "../types.js";
import type { MakeView } from "./view.js";

export const joining: MakeView = session => {
  const pending = h("div");
  const tokens = h("div");
  const made = h("div");
  const form = h("form", { class: "inline" });
  const element = h("div", {}, card("Devices that wait for approval", pending), card("Create a join token", form, made),
    card("Join tokens", tokens));

  const act = (work: () => Promise<unknown>, done: string): Promise<void> => attempt(work, done, () => view.refresh());
  const field = (name: string, label: string, attributes: Record<string, string | number>): HTMLElement =>
    h("label", {}, label, h("input", { name, ...attributes }));
  form.append(
    field("name", "Name", { type: "text", maxlength: 64 }),
    field("labels", "Labels, with commas", { type: "text" }),
    field("project", "Project", { type: "text", value: "default" }),
    field("uses", "Devices", { type: "number", min: 1, max: 1_000_000, value: 1 }),
    field("hours", "Hours", { type: "number", min: 1, max: 87_600, value: 24 }),
    h("label", { class: "check" }, h("input", { name: "approve", type: "checkbox" }), "needs approval"),
    h("button", { type: "submit" }, "Create"));
  form.addEventListener("submit", event => {
    event.preventDefault();
    const data = new FormData(form);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const body = {
      name: text("name"), labels: text("labels").split(",").map(one => one.trim()).filter(Boolean), project: text("project"),
      uses: Number(text("uses")), hours: Number(text("hours")), approve: data.get("approve") !== null,
    };
    void act(async () => {
      const created = await post<{ items: { join: string }[] }>("/join-tokens", body);
      replace(made, h("p", {}, "It is shown only here. On the device: fedge-client run --token-file FILE"),
        h("pre", { tabindex: 0 }, created.items.map(one => one.join).join("\n")));
    }, "A join token was created");
  });
  const view = {
    title: "Joining",
    element,
    async refresh() {
      const [waiting, list] = await Promise.all([all<Client>("/clients?state=pending"), all<JoinToken>("/join-tokens")]);
      replace(pending, table("Pending clients", [
        { title: "Client", cell: one => link(`clients/${one.client}`, `${one.client}${one.name ? ` · ${one.name}` : ""}`) },
        { title: "Joined", cell: one => moment(one.enrolled) },
        { title: "Key", cell: one => h("code", {}, one.key?.slice(0, 16) ?? "") },
        { title: "Project", cell: one => one.project, minor: true },
        {
          title: "Action", cell: one => session.may("operator", one.project) &&
            h("button", {
              class: "small", "aria-label": `Approve client ${one.client}`,
              onClick: () => void act(() => post(`/clients/${one.client}/approve`), `Client ${one.client} is approved`),
            }, "Approve"),
        },
      ], waiting, "No device waits."));
      replace(tokens, table("Join tokens", [
        { title: "Token", cell: one => one.token },
        { title: "State", cell: one => badge(one.state) },
        { title: "Used", cell: one => `${one.used} of ${one.uses}`, right: true },
        { title: "For", cell: one => one.replaces !== null ? `replaces client ${one.replaces}` : one.name },
        { title: "Labels", cell: one => labels(one.labels), minor: true },
        { title: "Project", cell: one => one.project, minor: true },
        { title: "Expires", cell: one => h("time", { class: "nowrap" }, moment(one.expires)), minor: true },
        {
          title: "Action", cell: one => one.state === "open" && session.may("operator", one.project) &&
            h("button", {
              class: "small danger", "aria-label": `Revoke token ${one.token}`,
              onClick: () => void ask(`Revoke token ${one.token}`, "No further device can join with it.", "Revoke")
                .then(yes => yes === null ? undefined :
                  act(() => post(`/join-tokens/${one.token}/revoke`), `Token ${one.token} is revoked`)),
            }, "Revoke"),
        },
      ], list.sort((a, b) => b.token - a.token), "There are no join tokens."));
    },
    concerns: (event: { name: string }) => ["client.pending", "client.enrolled", "client.awaiting_approval"].includes(event.name),
  };
  return view;
};
