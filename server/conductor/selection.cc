// Conductor, part 2: which clients the run is for.
#include <algorithm>
#include <string>

#include "server/conductor/conductor.h"

namespace fedge::server {

bool Conductor::is_for(ClientId client) const {
  const aggregation::ClientFilter& where = setup_.config.sampling.where;
  if (where.matches_all()) return true;
  const auto labels = ports_.clients->labels_of(client);
  return labels && where.matches(*labels);
}

void Conductor::exclude(ClientId client) {
  excluded_.insert(client);
  if (ports_.watch != nullptr)
    ports_.watch->declined(client,
                           "the run is for clients with " + setup_.config.sampling.where.text() +
                               " (sampling.where), which the labels of this client do not fulfil",
                           now_);
}

bool Conductor::relabelled(ClientId client, Time now) {
  if (over_ || is_for(client) != excluded_.contains(client)) return false;
  if (excluded_.erase(client) > 0) {
    linked(client, now);
    return true;
  }
  ports_.models->release(client);
  ports_.clients->send(client, protocol::RunEnded{setup_.config.id, "the run is no longer for this client"});
  left(client, /*for_good=*/true, now);
  exclude(client);
  return false;
}

std::size_t Conductor::numbers() const {
  return disagree_ ? setup_.config.task.data.partition.clients : run::client_numbers(setup_.config);
}

std::optional<Error> Conductor::objection(const aggregation::Policy& policy) const {
  return policy.disagreements.empty() ? std::nullopt : beyond_policies();
}

std::optional<Error> Conductor::beyond_policies() const {
  const std::size_t counted = setup_.config.tracks.policy.clients;
  if (!highest_ || highest_->value() < counted) return std::nullopt;
  return invalid("clients can disagree only if the numbers of all clients are below " +
                 std::to_string(counted) + " (data.partition.clients), but client " +
                 std::to_string(highest_->value()) + " has taken part in the run");
}

// Takes up what later decisions about clients depend on.
void Conductor::note(const RunEngine::Input& input) {
  if (const auto* arrived = std::get_if<RunEngine::ClientArrived>(&input))
    highest_ = std::max(highest_.value_or(arrived->client), arrived->client);
  if (const auto* changed = std::get_if<RunEngine::PolicyChanged>(&input))
    disagree_ = disagree_ || !changed->policy.disagreements.empty();
}

}  // namespace fedge::server
