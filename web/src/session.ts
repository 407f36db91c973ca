// Session knows the user who is logged in and its roles. The coordinator decides; this only hides what it would
// refuse.
import type { Identity, Role } from "./types.js";

const order: Role[] = ["viewer", "submitter", "operator", "admin"];

export class Session {
  constructor(readonly identity: Identity) {}

  may(role: Role, project = "*"): boolean {
    return this.identity.grants.some(grant => {
      const [place, given] = grant.split("=") as [string, Role];
      return (place === "*" || place === project) && order.indexOf(given) >= order.indexOf(role);
    });
  }
  maySomewhere(role: Role): boolean {
    return this.identity.grants.some(grant => order.indexOf(grant.split("=")[1] as Role) >= order.indexOf(role));
  }
}
