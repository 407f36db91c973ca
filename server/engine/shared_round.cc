#include "server/engine/shared_round.h"

#include <algorithm>
#include <utility>

namespace fedge::server {

void SharedRound::join(ClientId client) {
  participants_.insert(client);
  expected_.erase(client);
}

void SharedRound::expect(ClientId client) {
  if (participants_.contains(client)) expected_.insert(client);
  leave(client);
}

void SharedRound::restart() {
  for (const ClientId client : std::set<ClientId>(participants_)) expect(client);
}

void SharedRound::leave(ClientId client) {
  participants_.erase(client);
  made_.erase(client);
  for (auto& [object, answers] : answers_) answers.erase(client);
}

void SharedRound::offer(ClientId client, const protocol::Manifest& update) {
  const protocol::ObjectId object = update.id();
  offers_.insert_or_assign(client, Offer{update, object});
  answers_.try_emplace(object);
}

void SharedRound::settle(ClientId client) {
  if (const auto offer = offers_.find(client); offer != offers_.end()) offer->second.decided = true;
}

std::vector<const protocol::Manifest*> SharedRound::updates() const {
  std::map<protocol::ObjectId, const protocol::Manifest*> known;
  for (const auto& [client, offer] : offers_) known.emplace(offer.object, &offer.update);
  std::vector<const protocol::Manifest*> updates;
  for (const auto& [object, update] : known) updates.push_back(update);
  return updates;
}

std::vector<std::pair<ClientId, const protocol::Manifest*>> SharedRound::owners() const {
  std::vector<std::pair<ClientId, const protocol::Manifest*>> owners;
  std::set<protocol::ObjectId> seen;
  for (const auto& [client, offer] : offers_)
    if (participants_.contains(client) && seen.insert(offer.object).second)
      owners.emplace_back(client, &offer.update);
  return owners;
}

bool SharedRound::gathered() const {
  const std::size_t here = owners().size();
  if (here == 0 || here >= enough_) return here > 0;
  return expected_.empty() &&
         std::ranges::all_of(participants_, [&](ClientId client) { return offers_.contains(client); });
}

bool SharedRound::answer(ClientId client, const protocol::UpdateHeld& held) {
  const auto answers = answers_.find(held.object);
  if (answers == answers_.end() || !participants_.contains(client)) return false;
  return answers->second.try_emplace(client, Answer{held.sound, {held.code, held.reason}}).second;
}

bool SharedRound::undecided(ClientId client) const {
  const auto offer = offers_.find(client);
  return offer != offers_.end() && !offer->second.decided;
}

std::vector<SharedRound::Decision> SharedRound::decide(
    bool late, const std::function<bool(const protocol::ObjectId&)>& obtainable) {
  std::vector<Decision> decisions;
  for (auto& [client, offer] : offers_) {
    if (offer.decided) continue;
    std::size_t waited = 0;  // for
    std::size_t heard = 0;
    for (const ClientId participant : participants_) {
      const bool has = answers_[offer.object].contains(participant);
      if (has) ++heard;
      if (!has && waited_for(participant)) ++waited;
    }
    const bool all = heard > 0 && waited == 0;
    const bool most = 2 * heard > participants_.size();
    const bool present = participants_.contains(client);
    const bool lost = !all && !present && !obtainable(offer.object);
    if (!all && !(late && most) && !lost) continue;
    offer.decided = true;
    decisions.push_back(lost ? Decision{client, std::nullopt, true} : decision(client, offer));
  }
  std::erase_if(offers_, [&](const auto& offer) {
    return std::ranges::any_of(decisions, [&](const Decision& decision) {
      return decision.client == offer.first && (decision.lost || decision.fault);
    });
  });
  return decisions;
}

SharedRound::Decision SharedRound::decision(ClientId client, const Offer& offer) const {
  const auto& answers = answers_.at(offer.object);
  const auto is_unsound = [](const auto& answer) { return !answer.second.sound; };
  const auto unsound = static_cast<std::size_t>(std::ranges::count_if(answers, is_unsound));
  if (2 * unsound < answers.size()) return {client, std::nullopt, false};
  return {client, std::ranges::find_if(answers, is_unsound)->second.fault, false};
}

protocol::AggregateUpdates SharedRound::order(RunId run) const {
  protocol::AggregateUpdates order{.run = run, .round = task_.round, .track = task_.track, .parts = {}};
  for (const RunEngine::Fold& fold : folds_)
    order.parts.push_back({offers_.at(fold.client).object, fold.weight, fold.steps, fold.factor});
  // Not in the order of the clients, which would tell whose is whose.
  std::ranges::sort(order.parts, {}, [](const auto& part) {
    return std::tuple(part.object, part.weight.value(), part.steps, part.factor);
  });
  return order;
}

bool SharedRound::made(ClientId client, const protocol::Manifest& model) {
  return participants_.contains(client) && made_.try_emplace(client, model).second;
}

const protocol::Manifest* SharedRound::model(bool late) const {
  std::map<protocol::ObjectId, std::vector<const protocol::Manifest*>> votes;
  for (const auto& [client, model] : made_) votes[model.id()].push_back(&model);
  const auto best = std::ranges::max_element(
      votes, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (best == votes.end()) return nullptr;
  const bool most = 2 * best->second.size() > participants_.size();
  const bool all = made_.size() == participants_.size();
  return most || all || late ? best->second.front() : nullptr;
}

protocol::UpdateVerdict SharedRound::verdict(protocol::UpdateVerdict accepted, bool made) {
  if (made) return accepted;
  accepted.accepted = false;
  accepted.code = ErrorCode::kUnavailable;
  accepted.reason = "no client has made the round's aggregate";
  return accepted;
}

std::vector<ClientId> SharedRound::dissenters(const protocol::ObjectId& model) const {
  std::vector<ClientId> others;
  for (const auto& [client, made] : made_)
    if (made.id() != model) others.push_back(client);
  return others;
}

}  // namespace fedge::server
