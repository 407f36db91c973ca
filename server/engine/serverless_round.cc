#include "server/engine/serverless_round.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fedge::server {

void ServerlessRound::join(ClientId client) {
  participants_.insert(client);
  expected_.erase(client);
}

void ServerlessRound::expect(ClientId client) {
  if (participants_.contains(client)) expected_.insert(client);
  leave(client);
}

void ServerlessRound::give_up(ClientId client) {
  expected_.erase(client);
  leave(client);
}

void ServerlessRound::restart() {
  for (const ClientId client : std::set<ClientId>(participants_)) expect(client);
}

bool ServerlessRound::dismisses(const protocol::Message& message) const {
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&message)) return cancel->task() == task_;
  if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) return failed->task() == task_;
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  return verdict != nullptr && !verdict->accepted && verdict->task() == task_;
}

void ServerlessRound::leave(ClientId client) {
  participants_.erase(client);
  made_.erase(client);
  for (auto& [object, answers] : answers_) answers.erase(client);
}

void ServerlessRound::offer(ClientId client, const protocol::Manifest& update) {
  const protocol::ObjectId object = update.id();
  offers_.insert_or_assign(client, Offer{update, object});
  answers_.try_emplace(object);
}

void ServerlessRound::settle(ClientId client) {
  if (const auto offer = offers_.find(client); offer != offers_.end()) offer->second.decided = true;
}

std::vector<const protocol::Manifest*> ServerlessRound::updates() const {
  std::map<protocol::ObjectId, const protocol::Manifest*> known;
  for (const auto& [client, offer] : offers_) known.emplace(offer.object, &offer.update);
  std::vector<const protocol::Manifest*> updates;
  for (const auto& [object, update] : known) updates.push_back(update);
  return updates;
}

std::vector<std::pair<ClientId, const protocol::Manifest*>> ServerlessRound::owners() const {
  std::vector<std::pair<ClientId, const protocol::Manifest*>> owners;
  std::set<protocol::ObjectId> seen;
  for (const auto& [client, offer] : offers_)
    if (participants_.contains(client) && seen.insert(offer.object).second)
      owners.emplace_back(client, &offer.update);
  return owners;
}

bool ServerlessRound::gathered() const {
  const std::size_t here = owners().size();
  if (here == 0 || here >= enough_) return here > 0;
  return expected_.empty() &&
         std::ranges::all_of(participants_, [&](ClientId client) { return offers_.contains(client); });
}

bool ServerlessRound::answer(ClientId client, const protocol::UpdateHeld& held) {
  const auto answers = answers_.find(held.object);
  if (answers == answers_.end() || !participants_.contains(client)) return false;
  return answers->second.try_emplace(client, Answer{held.sound, {held.code, held.reason}}).second;
}

bool ServerlessRound::undecided(ClientId client) const {
  const auto offer = offers_.find(client);
  return offer != offers_.end() && !offer->second.decided;
}

ServerlessRound::Tally ServerlessRound::tally(const protocol::ObjectId& object) const {
  Tally tally{.silent = expected_.size()};
  const auto& answers = answers_.at(object);
  for (const ClientId participant : participants_) {
    const auto answer = answers.find(participant);
    if (answer == answers.end()) {
      tally.silent += waited_for(participant) ? 1U : 0U;
    } else if (answer->second.sound) {
      ++tally.sound;
    } else if (++tally.unsound == 1) {
      tally.fault = answer->second.fault;
    }
  }
  return tally;
}

std::vector<ServerlessRound::Decision> ServerlessRound::decide(
    bool late, const std::function<bool(const protocol::ObjectId&)>& obtainable) {
  std::vector<Decision> decisions;
  for (auto& [client, offer] : offers_) {
    if (offer.decided) continue;
    const Tally said = tally(offer.object);
    const bool all = said.heard() > 0 && said.silent == 0;
    const bool refused = said.is_most(said.unsound);
    const bool present = participants_.contains(client) || expected_.contains(client);
    const bool lost = !all && !present && !obtainable(offer.object);
    if (!lost && !all && !(late && (refused || said.is_most(said.sound)))) continue;
    offer.decided = true;
    Decision decision{client, std::nullopt, lost};
    if (refused && !lost)
      decision.fault = said.fault.with_prefix(std::to_string(said.unsound) + " of " +
                                              std::to_string(said.heard() + said.silent) +
                                              " clients report that the update is invalid: ");
    decisions.push_back(std::move(decision));
  }
  std::erase_if(offers_, [&](const auto& offer) {
    return std::ranges::any_of(decisions, [&](const Decision& decision) {
      return decision.client == offer.first && (decision.lost || decision.fault);
    });
  });
  return decisions;
}

protocol::AggregateUpdates ServerlessRound::order(RunId run) const {
  protocol::AggregateUpdates order{.run = run, .round = task_.round, .track = task_.track, .parts = {}};
  for (const RunEngine::Fold& fold : folds_)
    order.parts.push_back({offers_.at(fold.client).object, fold.weight, fold.steps, fold.factor});
  // Sorted by content: the order of clients would reveal whose update is whose.
  std::ranges::sort(order.parts, {}, [](const auto& part) {
    return std::tuple(part.object, part.weight.value(), part.steps, part.factor);
  });
  return order;
}

bool ServerlessRound::made(ClientId client, const protocol::Manifest& model) {
  return participants_.contains(client) && made_.try_emplace(client, model).second;
}

void ServerlessRound::close() {
  if (!voters_) voters_ = participants_.size() + expected_.size();
}

std::pair<const protocol::Manifest*, std::size_t> ServerlessRound::most_made() const {
  std::map<protocol::ObjectId, std::size_t> votes;
  std::pair<const protocol::Manifest*, std::size_t> most{nullptr, 0};
  for (const auto& [client, model] : made_)
    if (const std::size_t number = ++votes[model.id()]; number > most.second) most = {&model, number};
  return most;
}

const protocol::Manifest* ServerlessRound::model() const {
  const auto [model, number] = most_made();
  return 2 * number > voters_.value_or(0) ? model : nullptr;
}

bool ServerlessRound::hopeless() const {
  const std::size_t undecided = participants_.size() - made_.size() + expected_.size();
  return 2 * (most_made().second + undecided) <= voters_.value_or(0);
}

Error ServerlessRound::no_model(bool fetching) const {
  if (fetching)
    return {ErrorCode::kUnavailable,
            "no client delivers the model that more than half of the clients aggregated"};
  return {ErrorCode::kUnavailable,
          "no model was aggregated by more than half of the " + std::to_string(voters_.value_or(0)) +
              " clients of the round; the largest group that aggregated the same model has " +
              std::to_string(most_made().second) + " clients"};
}

protocol::UpdateVerdict ServerlessRound::verdict(protocol::UpdateVerdict accepted, bool made) {
  if (made) return accepted;
  accepted.accepted = false;
  accepted.code = ErrorCode::kUnavailable;
  accepted.reason = "no model was aggregated by more than half of the clients of the round";
  return accepted;
}

std::vector<ClientId> ServerlessRound::dissenters(const protocol::ObjectId& model) const {
  std::vector<ClientId> others;
  for (const auto& [client, made] : made_)
    if (made.id() != model) others.push_back(client);
  return others;
}

}  // namespace fedge::server
