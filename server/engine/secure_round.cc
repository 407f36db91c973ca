#include "server/engine/secure_round.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"
#include "privacy/secure_aggregation/session.h"
#include "run/secure_update.h"
#include "server/engine/round_events.h"

namespace fedge::server {

SecureRound::SecureRound(const Setup& setup, const RunEngine::BeginSecure& begin, const Digest& model,
                         const std::map<ClientId, PublicKey>& identities, Time now)
    : setup_(setup), begin_(begin) {
  std::vector<privacy::SecureServer::Member> members;
  for (const auto& member : begin_.members) {
    const auto identity = identities.find(member.client);
    if (identity == identities.end())
      absent_.push_back(member.client);
    else
      members.push_back({member.client, identity->second, member.coverage});
  }
  if (members.empty()) return;
  session_.emplace(privacy::SecureServer::Terms{.session = {.run = setup_.run,
                                                            .round = begin_.task.round,
                                                            .track = begin_.task.track,
                                                            .attempt = begin_.attempt},
                                                .model = model,
                                                .terms = privacy::terms_of(begin_.task.kind, setup_.terms),
                                                .rules = setup_.masking.rules,
                                                .patience = setup_.patience},
                   std::move(members), now);
}

void SecureRound::begin(std::vector<Effect>& effects) {
  for (const ClientId client : absent_) leave_out(client, "the client is not connected", effects);
}

bool SecureRound::is_about(const protocol::Message& message) {
  return std::holds_alternative<protocol::SecureKeys>(message) ||
         std::holds_alternative<protocol::SecureShares>(message) ||
         std::holds_alternative<protocol::SecureConsent>(message) ||
         std::holds_alternative<protocol::SecureUnmask>(message);
}

bool SecureRound::receive(ClientId client, const protocol::Message& message, Time now,
                          std::vector<Effect>& effects) {
  if (!is_about(message)) return false;
  if (!session_) return true;
  std::vector<privacy::SecureServer::Effect> session;
  if (const auto* keys = std::get_if<protocol::SecureKeys>(&message))
    session_->receive(client, *keys, now, session);
  if (const auto* shares = std::get_if<protocol::SecureShares>(&message))
    session_->receive(client, *shares, now, session);
  if (const auto* consent = std::get_if<protocol::SecureConsent>(&message))
    session_->receive(client, *consent, now, session);
  if (const auto* unmask = std::get_if<protocol::SecureUnmask>(&message))
    session_->receive(client, *unmask, now, session);
  carry_on(session, effects);
  return true;
}

void SecureRound::left(ClientId client, Time now, std::vector<Effect>& effects) {
  if (!session_) return;
  std::vector<privacy::SecureServer::Effect> session;
  session_->left(client, now, session);
  carry_on(session, effects);
}

void SecureRound::returned(ClientId client, std::vector<Effect>& effects) {
  if (!session_) return;
  std::vector<privacy::SecureServer::Effect> session;
  session_->returned(client, session);
  carry_on(session, effects);
}

void SecureRound::expired(Time now, std::vector<Effect>& effects) {
  if (!session_) return;
  std::vector<privacy::SecureServer::Effect> session;
  session_->expired(now, session);
  carry_on(session, effects);
}

std::optional<Time> SecureRound::next_deadline() const {
  return session_ ? session_->next_deadline() : std::nullopt;
}

Event SecureRound::about_sum(Severity severity, const char* name) const {
  return event(severity, name, begin_.task.round).with("track", std::int64_t{begin_.task.track.value()});
}

// Excludes a member. For the engine, the client's task has failed.
void SecureRound::leave_out(ClientId client, const std::string& reason, std::vector<Effect>& effects) const {
  effects.push_back(about_sum(Severity::kWarning, "secure.client_excluded")
                        .with("client", number(client))
                        .with("reason", reason));
  effects.push_back(Send{client, protocol::CancelTask{setup_.run, begin_.task.round, reason,
                                                      begin_.task.track, begin_.task.kind}});
  effects.push_back(
      Tell{RunEngine::Failed{client, protocol::TaskFailed{setup_.run, begin_.task.round, ErrorCode::kRefused,
                                                          reason, begin_.task.track, begin_.task.kind}}});
}

void SecureRound::end(Error error, std::vector<Effect>& effects) {
  if (failed_) return;
  failed_ = std::move(error);
  effects.push_back(about_sum(Severity::kWarning, "secure.failed").with("reason", failed_->message));
  if (closing_) return effects.push_back(Closed{std::nullopt, *failed_});
  for (const auto& member : begin_.members) leave_out(member.client, failed_->message, effects);
}

void SecureRound::carry_on(std::vector<privacy::SecureServer::Effect>& session,
                           std::vector<Effect>& effects) {
  using Session = privacy::SecureServer;
  for (auto& effect : session)
    std::visit(
        Overloaded{
            [&](Session::Send& send) {
              effects.push_back(Send{
                  send.client, std::visit([](auto& message) { return protocol::Message(std::move(message)); },
                                          send.message)});
            },
            [&](const Session::Excluded& excluded) { leave_out(excluded.client, excluded.reason, effects); },
            [&](const Session::Agreed&) {
              agreed_ = true;
              effects.push_back(about_sum(Severity::kInfo, "secure.keys_exchanged")
                                    .with("members", number(session_->members()))
                                    .with("neighbours", std::int64_t{session_->graph().degree})
                                    .with("threshold", std::int64_t{session_->graph().threshold})
                                    .with("parameters_left_out", number(session_->left_out())));
              if (session_->left_out() > 0 && begin_.task.kind == TaskKind::kTraining)
                effects.push_back(
                    about_sum(Severity::kWarning, "secure.parameters_left_out")
                        .with("parameters", number(session_->left_out()))
                        .with("reason",
                              std::string("too few clients of the round train these parameters "
                                          "(secure_aggregation.min_clients), so they keep their values")));
              effects.push_back(Open{session_->cells(), begin_.task_sums});
            },
            [&](const Session::Unmaskable&) {
              effects.push_back(Closed{session_->take_unmasking(), {}});
            },
            [&](Session::Failed& failed) { end(std::move(failed.error), effects); }},
        effect);
}

std::optional<Error> SecureRound::offered(ClientId client, const protocol::UpdateOffer& offer) {
  const Coverage* masked = agreed_ ? session_->coverage_of(client) : nullptr;
  if (masked == nullptr)
    return Error{ErrorCode::kRefused, "this client is not a member of the secure aggregation session"};
  if (offer.update.coverage != *masked)
    return invalid("the masked update covers " + std::to_string(offer.update.coverage.count()) +
                   " parameters, but the session covers " + std::to_string(masked->count()));
  const std::size_t scalars = session_->cells().size() + run::kSecureFigures + begin_.task_sums;
  if (offer.masked_scalars.size() != scalars)
    return invalid("the masked update has " + std::to_string(offer.masked_scalars.size()) +
                   " scalars, but the session has " + std::to_string(scalars));
  scalars_[client] = offer.masked_scalars;
  return std::nullopt;
}

std::vector<std::uint64_t> SecureRound::take_scalars(ClientId client) {
  auto node = scalars_.extract(client);
  FEDGE_CHECK(!node.empty(), "a masked update has scalars");
  folded_.push_back(client);
  return std::move(node.mapped());
}

SecureRound::Closed SecureRound::nothing_to_sum(const RunEngine::CloseRound& turn) {
  return {std::nullopt,
          {ErrorCode::kUnavailable, turn.selected == 0
                                        ? "no client was selected"
                                        : "the coordinator stopped while the masks were being removed"}};
}

void SecureRound::close(Time now, std::vector<Effect>& effects) {
  closing_ = true;
  if (!failed_ && (!agreed_ || folded_.empty()))
    return end({ErrorCode::kUnavailable, "no masked update was received"}, effects);
  if (failed_) return effects.push_back(Closed{std::nullopt, *failed_});
  std::ranges::sort(folded_);
  std::vector<privacy::SecureServer::Effect> session;
  session_->summed(folded_, now, session);
  carry_on(session, effects);
}

std::vector<std::pair<ClientId, protocol::UpdateVerdict>> SecureRound::verdicts(bool summed) const {
  std::vector<std::pair<ClientId, protocol::UpdateVerdict>> result;
  for (const auto& [client, accepted] : kept_) {
    protocol::UpdateVerdict verdict = accepted;
    if (!summed) {
      verdict.accepted = false;
      verdict.code = ErrorCode::kUnavailable;
      verdict.reason = "the masked updates could not be summed";
    }
    result.emplace_back(client, std::move(verdict));
  }
  return result;
}

}  // namespace fedge::server
