// The objects of the admin API, as docs/reference/admin-api.md describes them.

export type Role = "viewer" | "submitter" | "operator" | "admin";
export interface Identity { name: string; grants: string[]; software: string }
export interface Waiting { round: number; ready: number; needed: number; since: string }
export interface Run {
  run: number; id: string; name: string; project: string; state: string; rounds: number; submitted: string;
  submitter: string | null; started: string | null; ended: string | null; reason: string | null;
  waiting: Waiting | null; position: number | null; results: string | null;
}
export interface RunDetails { run: Run; document: string; evaluated: Round | null }
export type Figure = number | null | undefined;
export interface TrackRound {
  model_hash: string; test_accuracy: Figure; test_loss: Figure; train_loss: Figure; clients_completed: number;
  owner_count: number;
}
export interface Round {
  round: number; model_hash: string; test_accuracy: Figure; test_loss: Figure; test_rmse?: Figure; train_loss: Figure;
  clients_selected: number; clients_completed: number; bytes_up: Figure; bytes_down: Figure; wall_seconds: Figure;
  epsilon?: Figure; evaluation?: { accuracy: Figure; loss: Figure; rmse?: Figure; accuracy_p10?: Figure; accuracy_p90?: Figure };
  tracks?: TrackRound[];
}
export interface Task {
  client: number; round: number; track: number; kind: string; stage: string; asked: string | null; training_seconds: number;
  upload_seconds: number | null; bytes: number | null; received_bytes: number | null; code: string | null; reason: string | null;
}
export interface Transfer {
  transfer: number; client: number; run: number; project: string; round: number; track: number; kind: string;
  direction: string; object: string; bytes: number; done: number; waits_for: string | null; since: string;
  bytes_per_second: number | null;
}
export interface Declined { client: number; reason: string; since: string | null }
export interface Quarantined { client: number; failures: number; round: number; rounds: number }
export interface SecureSum { stage: string; round: number; attempt: number; since: string | null; awaited: number[] }
export interface Verification {
  run: number; until: number; state: string; started: string; ended: string | null; reason: string | null; updates: number;
  rounds: { round: number; recorded: string | null; replayed: string }[];
}
export interface Models { last: number | null; best: number | null; rounds: number[] }
export interface Progress {
  run: number; led: boolean; round: number; tasks: Task[]; last_round: number; last_tasks: Task[]; ready: number;
  preparing: number; declined: Declined[]; waiting: Waiting | null;
  quarantined: Quarantined[]; secure: SecureSum | null; model_bytes: number | null; memory_bytes: number | null;
  ends_after: number | null; epsilon_budget: number | null; delta: number | null;
}
export interface ClientTask {
  run: number; round: number; kind: string; outcome: string; ended: string; training_seconds: number;
  upload_seconds: number; bytes: number;
}
export interface Client {
  client: number; name: string; labels: string[]; project: string; state: string; enrolled: string | null; token: number;
  key: string | null; online: boolean; online_since: string | null; last_seen: string | null; address: string | null;
  software: string | null; platform: string | null; accepted: number; failures: Record<string, number>; received: number;
  sent: number; kept_key: string | null; last_task: ClientTask | null;
  last_failure: { run: number; round: number; kind: string; reason: string; at: string } | null;
  runs: { run: number; state: string; reason: string | null }[];
}
export interface Key {
  key: string; next_key: string | null; announced: string | null; clients: number; unaware_clients: number;
  unaware: { client: number; name: string; state: string; last_seen: string | null }[]; open_tokens: number;
}
export interface JoinToken {
  token: number; state: string; used: number; uses: number; approve: boolean; client: number | null;
  replaces: number | null; name: string; labels: string[]; project: string; created: string; expires: string;
}
export interface AuditEntry {
  seq: number; time: string; actor: string; action: string; subject: string; details: Record<string, string>;
}
