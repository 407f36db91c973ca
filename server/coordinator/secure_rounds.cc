#include "server/coordinator/detail/secure_rounds.h"

#include "core/node.h"
#include "protocol/session/loop.h"

namespace fedge::server {

void SecureRounds::begin(const RunEngine::BeginSecure& begin, const Digest& model,
                         const std::map<ClientId, PublicKey>& identities) {
  round_.emplace(setup_, begin, model, identities, now());
  std::vector<SecureRound::Effect> effects;
  round_->begin(effects);
  carry_out(effects);
}

bool SecureRounds::received(ClientId client, const protocol::Message& message) {
  if (!round_) return SecureRound::is_about(message);
  std::vector<SecureRound::Effect> effects;
  const bool known = round_->receive(client, message, now(), effects);
  carry_out(effects);
  return known;
}

void SecureRounds::left(ClientId client) {
  if (!round_) return;
  std::vector<SecureRound::Effect> effects;
  round_->left(client, now(), effects);
  carry_out(effects);
}

void SecureRounds::returned(ClientId client) {
  if (!round_) return;
  std::vector<SecureRound::Effect> effects;
  round_->returned(client, effects);
  carry_out(effects);
}

std::optional<Error> SecureRounds::offered(const RunEngine::Fetch& fetch) {
  if (!round_ || round_->task() != fetch.offer.task())
    return Error{ErrorCode::kStale, "the secure aggregation session of this update has ended"};
  return round_->offered(fetch.client, fetch.offer);
}

void SecureRounds::close(const RunEngine::CloseRound& turn) {
  if (!round_) return callbacks_.on_closed(SecureRound::nothing_to_sum(turn));
  std::vector<SecureRound::Effect> effects;
  round_->close(now(), effects);
  carry_out(effects);
}

void SecureRounds::finish(bool summed) {
  if (!round_) return;
  for (const auto& [client, verdict] : round_->verdicts(summed)) callbacks_.send(client, verdict);
  round_.reset();
  timer_.cancel();
}

void SecureRounds::stop() {
  timer_.cancel();
  round_.reset();
}

// Posts inputs for the engine, because engine effects may still be in progress.
void SecureRounds::carry_out(std::vector<SecureRound::Effect>& effects) {
  for (auto& effect : effects)
    std::visit(Overloaded{[&](const SecureRound::Send& send) { callbacks_.send(send.client, send.message); },
                          [&](const SecureRound::Tell& tell) {
                            protocol::post(io_, [self = weak_from_this(), input = tell.input] {
                              if (const auto alive = self.lock()) alive->callbacks_.on_outcome(input);
                            });
                          },
                          [&](SecureRound::Open& open) { callbacks_.on_open(std::move(open.cells)); },
                          [&](SecureRound::Closed& closed) { callbacks_.on_closed(std::move(closed)); },
                          [&](const Event& event) { callbacks_.on_event(event); }},
               effect);
  const auto deadline = round_ ? round_->next_deadline() : std::nullopt;
  if (!deadline) {
    timer_.cancel();
    return;
  }
  const std::chrono::steady_clock::time_point due(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline->time_since_epoch()));
  timer_.at(due, [self = weak_from_this()] {
    const auto alive = self.lock();
    if (!alive || !alive->round_) return;
    std::vector<SecureRound::Effect> late;
    alive->round_->expired(alive->now(), late);
    alive->carry_out(late);
  });
}

}  // namespace fedge::server
