// Routes that replay a run and compare its models.
#include <utility>

#include "server/api/detail/call.h"
#include "server/api/verifier.h"

namespace fedge::server {
namespace {

Json verification_json(const Verifier::Outcome& outcome) {
  Json json;
  json["run"] = outcome.run.value();
  json["until"] = outcome.until;
  json["state"] = outcome.ended == 0 ? "running"
                  : !outcome.equal   ? "failed"
                  : *outcome.equal   ? "equal"
                                     : "different";
  json["started"] = calendar_text(outcome.started);
  json["ended"] = time_or_null(outcome.ended);
  json["reason"] = outcome.reason.empty() ? Json() : Json(outcome.reason);
  json["updates"] = outcome.updates;
  json["rounds"] = Json::array();
  for (const Verifier::Round& round : outcome.rounds)
    json["rounds"].push_back({{"round", round.round},
                              {"recorded", round.recorded.empty() ? Json() : Json(round.recorded)},
                              {"replayed", round.replayed}});
  return json;
}

Result<Verifier*> verifier_of(const Call& call) {
  if (const auto& verifier = call.stores.parts().verifier) return verifier.get();
  return Error{ErrorCode::kUnavailable,
               "no coordinator runs in this data directory; replay the run with 'fedge-sim replay'"};
}

Result<Reply> start_verification(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kSubmitter));
  FEDGE_TRY(verifier, verifier_of(call));
  FEDGE_TRY(rounds, store->rounds(run.number));
  if (rounds == 0) return invalid("no round of the run is complete yet");
  const auto until = call.has("until") ? call.body["until"].get<std::uint64_t>() : rounds;
  if (until == 0 || until > rounds)
    return invalid("until is " + std::to_string(until) + ", but must be from 1 to " + std::to_string(rounds) +
                   ", the last complete round");
  FEDGE_TRY_VOID(call.stores.audit().append(
      event_by(call.actor(), "run.verification_started", "run " + run.name,
               {{"run_id", text_of(run.id)}, {"run", std::to_string(run.number.value())}})));
  FEDGE_TRY_VOID(verifier->start(run.number, until));
  const auto begun = verifier->outcome(run.number);
  return Reply{202, verification_json(*begun)};
}

Result<Reply> show_verification(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  FEDGE_TRY(verifier, verifier_of(call));
  const auto outcome = verifier->outcome(run.number);
  if (!outcome)
    return Error{ErrorCode::kNotFound, "run " + std::to_string(run.number.value()) +
                                           " was not replayed since the coordinator started"};
  return Reply{200, verification_json(*outcome)};
}

}  // namespace

std::vector<ApiRoute> verification_routes() {
  return {{.method = "POST",
           .path = "/runs/{run}/verification",
           .operation = "startVerification",
           .summary = "Replay a run on the coordinator's machine, and compare its models",
           .role = Role::kSubmitter,
           .handler = start_verification,
           .body = "NewVerification",
           .answer = "Verification",
           .success = 202},
          {.method = "GET",
           .path = "/runs/{run}/verification",
           .operation = "showVerification",
           .summary = "Show the last replay of a run",
           .role = Role::kViewer,
           .handler = show_verification,
           .answer = "Verification"}};
}

}  // namespace fedge::server
