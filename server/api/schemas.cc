#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "core/text.h"
#include "server/api/detail/call.h"

namespace fedge::server {
namespace {

// Returns the type without its question mark, and whether it had one.
std::pair<std::string_view, bool> nullable(std::string_view type) {
  if (!type.ends_with('?')) return {type, false};
  return {type.substr(0, type.size() - 1), true};
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_unsigned();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  return value.is_array() && std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
}

const char* description_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kNames = {
      {{"string", "a string"},
       {"integer", "an integer from 0"},
       {"number", "a number"},
       {"boolean", "true or false"},
       {"object", "an object"},
       {"strings", "a list of strings"}}};
  const auto* found = std::ranges::find(kNames, type, &std::pair<std::string_view, const char*>::first);
  return found == kNames.end() ? "another value" : found->second;
}

// Those of clients, join tokens and runs.
std::vector<Schema> client_and_run_schemas() {
  return {
      {"Problem",
       "An error, as in RFC 9457",
       {{"title", "string", "Name of the status"},
        {"status", "integer", "HTTP status"},
        {"detail", "string", "What is wrong, and what would be right"},
        {"code", "string",
         "invalid, not_found, corrupt, refused, stale, unsupported, unavailable or resource"}}},
      {"Identity",
       "Who sent the request",
       {{"name", "string", "\"user NAME\", or \"uid NUMBER\" on the coordinator's machine"},
        {"grants", "strings", "PROJECT=ROLE; the project * stands for all"},
        {"software", "string", "Program and version that answers"}}},
      {"Client",
       "An enrolled client, or one that is invited by an unused join token",
       {{"client", "integer", "Number"},
        {"name", "string", "Name that an operator gave it; may be empty"},
        {"labels", "strings", "Labels, ascending"},
        {"project", "string", "Project that it belongs to"},
        {"state", "string", "enrolled, pending, revoked; without a key: invited, expired, used up"},
        {"enrolled", "string?", "Time when it joined"},
        {"token", "integer", "Number of its join token; 0: an operator added it"},
        {"key", "string?", "Public key"},
        {"online", "boolean", "Whether it is connected"},
        {"online_since", "string?", "Time when it connected"},
        {"last_seen", "string?", "Time when it was last connected"},
        {"address", "string?", "IP address and port of its last connection"},
        {"software", "string?", "Program and version"},
        {"platform", "string?", "Operating system and processor"},
        {"accepted", "integer", "Tasks whose answer was accepted"},
        {"failures", "object",
         "Number of tasks that ended otherwise: late, lost, and failed or refused with the code"},
        {"received", "integer", "Bytes from it"},
        {"sent", "integer", "Bytes to it"},
        {"kept_key", "string?", "The coordinator's next key that it has stored last"},
        {"last_task", "ClientTask?", "Its last task that has ended"},
        {"last_failure", "ClientFailure?", "Its last task that was not accepted"},
        {"runs", "ClientRun[]", "Runs in progress that it takes part in, or has declined"}}},
      {"ClientTask",
       "A task that has ended",
       {{"run", "integer", "Number of the run"},
        {"round", "integer", "Number of the round"},
        {"kind", "string", "training, evaluation or statistics"},
        {"outcome", "string", "accepted, refused, failed, lost, late or unneeded"},
        {"ended", "string", "Time of its end"},
        {"training_seconds", "number", "From the request to the offer of the update; 0: there was no offer"},
        {"upload_seconds", "number", "From the offer to the end"},
        {"bytes", "integer", "Size of the update"}}},
      {"ClientFailure",
       "A task that was not accepted",
       {{"run", "integer", "Number of the run"},
        {"round", "integer", "Number of the round"},
        {"kind", "string", "late, lost, or failed or refused with the code, such as failed.resource"},
        {"reason", "string", "Why"},
        {"at", "string", "Time"}}},
      {"ClientRun",
       "A client's part in a run",
       {{"run", "integer", "Number of the run"},
        {"state", "string", "preparing, ready or declined"},
        {"reason", "string?", "Why it declined"}}},
      {"Progress",
       "What happens in a run at present",
       {{"run", "integer", "Number"},
        {"led", "boolean", "Whether the coordinator executes the run; if not, the rest is empty"},
        {"round", "integer", "Number of the current round; 0: none has begun"},
        {"tasks", "Task[]", "Tasks of the current phase of the round"},
        {"last_round", "integer", "Number of the last round that was closed; 0: none was"},
        {"last_tasks", "Task[]", "Its tasks"},
        {"ready", "integer", "Connected clients that take part"},
        {"preparing", "integer", "Connected clients that have not answered yet"},
        {"declined", "Declined[]", "Connected clients that take no part"},
        {"quarantined", "Quarantined[]",
         "Connected clients that are not asked to train for some rounds, because their last trainings "
         "failed"},
        {"model_bytes", "integer?", "Bytes of the model's values"},
        {"memory_bytes", "integer?", "Bytes of memory that the coordinator uses, for all runs together"},
        {"ends_after", "integer?",
         "Round after which the run ends at the latest: run.rounds, or earlier by the privacy budget"},
        {"epsilon_budget", "number?", "The privacy budget"},
        {"delta", "number?", "Probability with which epsilon may fail"},
        {"secure", "SecureSum?", "The secure sum in progress"},
        {"waiting", "Waiting?", "What the run waits for; null: for no further client"}}},
      {"SecureSum",
       "A secure sum in progress",
       {{"stage", "string",
         "keys, shares and updates, while clients exchange keys, send shares of their secrets, and send "
         "masked "
         "updates; consents and unmasking, while they confirm who took part and send what removes the masks; "
         "over"},
        {"round", "integer", "Round"},
        {"attempt", "integer", "It begins anew after a restart of the coordinator"},
        {"since", "string?", "Since when it is in this stage, or awaits these clients"},
        {"awaited", "integers", "Connected clients whose next message is awaited"}}},
      {"Quarantined",
       "A client that is not asked to train for some rounds",
       {{"client", "integer", "Number of the client"},
        {"failures", "integer", "Failed trainings in succession"},
        {"round", "integer", "Round of the last one"},
        {"rounds", "integer",
         "Rounds for which the quarantine lasts; in asynchronous runs, in units of run.round_deadline"}}},
      {"Task",
       "A client's task in a round",
       {{"client", "integer", "Number of the client"},
        {"round", "integer", "Number of the round; in asynchronous runs, of the client's task"},
        {"track", "integer", "Number of the track"},
        {"kind", "string", "training, evaluation or statistics"},
        {"stage", "string",
         "away (since a restart), training, uploading, accepted, refused, failed, lost, late or unneeded"},
        {"asked", "string?", "Time of the request; null: before the coordinator's last restart"},
        {"training_seconds", "number", "So far, or until the offer of the update; with the model's download"},
        {"upload_seconds", "number?", "From the offer on"},
        {"bytes", "integer?", "Size of the update"},
        {"received_bytes", "integer?", "Bytes of it that are here; null: it is not being uploaded"},
        {"code", "string?", "Of a refusal or failure"},
        {"reason", "string?", "Why it was not accepted"}}},
      {"Transfer",
       "A model or an update that moves between the coordinator and a client",
       {{"transfer", "integer", "Number, ascending since the coordinator's start"},
        {"client", "integer", "Number of the client"},
        {"run", "integer", "Number of the run"},
        {"project", "string", "Project of the run"},
        {"round", "integer", "Round of the client's task"},
        {"track", "integer", "Track of the task"},
        {"kind", "string", "training, evaluation or statistics"},
        {"direction", "string", "download (to the client) or upload (from the client)"},
        {"object", "string", "model, control (control variates of SCAFFOLD) or update"},
        {"bytes", "integer", "Size of the object"},
        {"done", "integer", "Bytes of it that were moved, or that the receiver had before"},
        {"waits_for", "string?", "turn: others upload; disk: the coordinator's is full; null: it moves"},
        {"since", "string", "Time since which it moves, or waits"},
        {"bytes_per_second", "integer?",
         "Over the last 5 to 10 seconds; null: it waits, or has just begun"}}},
      {"Declined",
       "A client that takes no part in a run",
       {{"client", "integer", "Number of the client"},
        {"reason", "string", "Why"},
        {"since", "string?", "Time of its answer"}}},
      {"Waiting",
       "A run that waits for clients",
       {{"round", "integer", "Number of the round that would begin"},
        {"ready", "integer", "Clients that are ready"},
        {"needed", "integer", "Clients that it needs"},
        {"since", "string", "Time since which it waits"}}},
      {"NewClient",
       "A device to enrol by its key",
       {{"key", "string", "Public key that 'fedge-client key' prints"},
        {"name", "string", "Name", false},
        {"labels", "strings", "Labels", false},
        {"project", "string", "Project; default: default", false}}},
      {"ClientChange",
       "What changes of a client; absent fields stay",
       {{"name", "string", "Name", false},
        {"labels", "strings", "All labels", false},
        {"project", "string", "Project", false}}},
      {"Revocation",
       "How to revoke a client",
       {{"keep_token", "boolean", "Keep its join token valid for other clients", false}}},
      {"Revoked",
       "A revoked client",
       {{"client", "Client", "The client"},
        {"token_revoked", "integer?", "Join token that was open and was revoked too"}}},
      {"JoinToken",
       "A join token, without its secret",
       {{"token", "integer", "Number"},
        {"state", "string", "open, used up, expired or revoked"},
        {"used", "integer", "Clients that joined with it"},
        {"uses", "integer", "Clients that may join with it"},
        {"approve", "boolean", "Clients that join need an approval"},
        {"client", "integer?", "Number that its only client gets"},
        {"replaces", "integer?", "Number of the client whose place its only client takes"},
        {"name", "string", "Name of the clients that join"},
        {"labels", "strings", "Labels of the clients that join"},
        {"project", "string", "Project of the clients that join"},
        {"created", "string", "Time of creation"},
        {"expires", "string", "Time of expiry"}}},
      {"NewJoinTokens",
       "Join tokens to create",
       {{"count", "integer", "Number of tokens, 1 to 100,000; default: 1", false},
        {"uses", "integer", "Clients that may join with each; default: 1", false},
        {"approve", "boolean", "Clients that join need an approval", false},
        {"hours", "number", "Hours until they expire; default: 24", false},
        {"address", "string", "HOST:PORT at which clients reach the coordinator; default: where it listens",
         false},
        {"no_address", "boolean", "Put no address into the tokens", false},
        {"replaces", "integer",
         "Number of a client whose number, description and history the device takes over", false},
        {"name", "string", "Name of the clients that join", false},
        {"labels", "strings", "Labels of the clients that join", false},
        {"project", "string", "Project of the clients that join; default: default", false}}},
      {"CreatedJoinToken",
       "A new join token, with its secret",
       {{"token", "integer", "Number"},
        {"client", "integer?", "Number that its only client gets"},
        {"join", "string", "What the device needs: fedge-client join"}}},
      {"CreatedJoinTokens", "New join tokens", {{"items", "CreatedJoinToken[]", "One for each"}}},
      {"Run",
       "A run",
       {{"run", "integer", "Number"},
        {"id", "string", "16 hexadecimal digits, as in the audit log"},
        {"name", "string", "Name in its run file"},
        {"project", "string", "Project that it belongs to"},
        {"state", "string", "pending, running, paused, finished, failed or stopped"},
        {"rounds", "integer", "Rounds that are complete"},
        {"submitted", "string", "Time of submission"},
        {"submitter", "string?", "Who submitted it"},
        {"started", "string?", "Time of its first round's start"},
        {"ended", "string?", "Time of its end"},
        {"reason", "string?", "Why it waits, is paused, or has ended"},
        {"waiting", "Waiting?", "What it waits for; null: for no client"},
        {"position", "integer?", "Place of a pending run in the queue of all projects, from 1"},
        {"results", "string?", "Directory of its results on the coordinator's machine"}}},
      {"RunDetails",
       "A run with its run file",
       {{"run", "Run", "The run"},
        {"document", "string", "Its run file, complete, as TOML"},
        {"evaluated", "object?", "Metrics of the last round whose model was evaluated"}}},
      {"NewRun",
       "A run to submit",
       {{"document", "string", "Run file, TOML"},
        {"file", "string", "Name of that file, for messages", false},
        {"assignments", "strings", "KEY=VALUE, applied to the run file in this order", false},
        {"project", "string", "Project; default: default", false}}},
      {"SubmittedRun",
       "A run that was submitted",
       {{"run", "Run", "The run"}, {"notes", "strings", "Keys whose values are not used as given"}}},
      {"Reason", "Why an operator does this", {{"reason", "string", "Shown with the run", false}}},
      {"Round",
       "A line of metrics.jsonl; see docs/reference/metrics.md",
       {{"round", "integer", "Number"}},
       true},
      {"NewVerification",
       "Which rounds are replayed",
       {{"until", "integer", "Last round; default: the last complete one", false}}},
      {"Verification",
       "A replay of a run",
       {{"run", "integer", "Number"},
        {"until", "integer", "Last round that is replayed"},
        {"state", "string", "running, equal, different, or failed: it could not be done"},
        {"started", "string", "Time"},
        {"ended", "string?", "Time"},
        {"reason", "string?", "The difference, or why it could not be done"},
        {"updates", "integer", "Updates that were compared"},
        {"rounds", "ReplayedRound[]", "Rounds that were compared, at most the last 1000"}}},
      {"ReplayedRound",
       "A round and the hashes of its model",
       {{"round", "integer", "Number"},
        {"recorded", "string?", "Hash of the model that the coordinator recorded; null: not recorded yet"},
        {"replayed", "string", "Hash of the model of the replay"}}},
      {"RemovedRun", "A run that was removed", {{"run", "integer", "Number"}}},
      {"Models",
       "Rounds whose models are there",
       {{"last", "integer?", "The last complete round; null: there is none, or its model was not kept"},
        {"best", "integer?", "The best round so far (run.keep_best)"},
        {"rounds", "integers", "Earlier rounds, ascending (run.keep_models)"}}},
      {"Statistics", "Statistics of the clients' data", {}, true},
      {"Disagreement",
       "A disagreement between clients",
       {{"number", "integer", "Number; later ones move up when one is lifted"},
        {"kind", "string", "full, partial_data, inbound, outbound or bidirectional"},
        {"clients", "strings", "Clients that disagree"},
        {"against", "strings", "Clients that they disagree with"},
        {"from_round", "integer?", "First round; null: the round after it was added"},
        {"until_round", "integer?", "Last round; null: no end"},
        {"past", "string?",
         "removed or stays: the influence of earlier updates; null: only data is withheld"}}},
      {"NewDisagreement",
       "A disagreement to add",
       {{"kind", "string", "full, partial_data, inbound, outbound or bidirectional"},
        {"clients", "strings", "Clients that disagree"},
        {"against", "strings", "Clients that they disagree with", false},
        {"from_round", "integer", "First round; default: the next", false},
        {"until_round", "integer", "Last round; default: no end", false},
        {"withheld", "number", "partial_data: fraction of its samples that a client does not train on",
         false},
        {"deep", "boolean", "Also remove the influence of earlier updates", false}}},
      {"AddedDisagreement", "A disagreement that was added", {{"number", "integer", "Number"}}},
  };
}

}  // namespace

const std::vector<Schema>& api_schemas() {
  static const std::vector<Schema> schemas = [] {
    std::vector<Schema> all = client_and_run_schemas();
    std::ranges::copy(access_schemas(), std::back_inserter(all));
    return all;
  }();
  return schemas;
}

const Schema* find_schema(const std::string& name) {
  const auto found = std::ranges::find(api_schemas(), name, &Schema::name);
  return found == api_schemas().end() ? nullptr : &*found;
}

Result<void> check_body(const Json& body, const Schema& schema) {
  if (!body.is_object()) return invalid("the body of the request must be a JSON object");
  for (const auto& [name, value] : body.items()) {
    const auto field = std::ranges::find(schema.fields, name, &FieldDoc::name);
    if (field == schema.fields.end()) {
      std::string known;
      for (const FieldDoc& one : schema.fields) known += (known.empty() ? "" : ", ") + std::string(one.name);
      return invalid("the body of the request has an unknown field '" + clean_text(name, 80) +
                     "'; known fields: " + known);
    }
    const auto [type, may_be_null] = nullable(field->type);
    if (value.is_null() && (may_be_null || !field->required)) continue;
    if (!has_type(value, type))
      return invalid("the field " + std::string(field->name) + " of the request must be " +
                     description_of(type));
  }
  for (const FieldDoc& field : schema.fields)
    if (field.required && !body.contains(field.name))
      return invalid("the body of the request lacks the field " + std::string(field.name));
  return {};
}

}  // namespace fedge::server
