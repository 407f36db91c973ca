// Clients mask their updates, so that the coordinator learns only their sum. The session of a track phase is
// a SecureRound; masked updates travel like others.
#include <map>
#include <optional>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/node.h"
#include "server/conductor/route.h"
#include "server/engine/secure_round.h"

namespace fedge::server {
namespace {

class SecureRoute final : public Route {
 public:
  explicit SecureRoute(const RouteParts& parts)
      : parts_(parts),
        setup_{parts.config.id, sha256(parts.config.task_text), parts.config.secure.masking,
               parts.config.secure.patience} {}

  void begin(const RunEngine::BeginSecure& begin) override;
  void fetch(const RunEngine::Fetch& offered) override;
  void discard(ClientId client, TaskId task) override { parts_.ports.updates->discard(client, task); }
  void fold(const RunEngine::Fold& accepted) override {
    if (parts_.host.retelling()) return;  // the masked updates of an earlier process are of no use
    parts_.ports.aggregate->fold_masked(accepted, round_->take_scalars(accepted.client));
  }
  bool keep(ClientId client, const protocol::UpdateVerdict& verdict) override {
    if (round_) round_->keep(client, verdict);
    return round_.has_value();
  }
  void close(const RunEngine::CloseRound& turn) override;
  bool makes_model() const override { return turn_.has_value(); }
  void committed(bool aggregated) override;
  void left(ClientId client, bool held) override;
  void arrived(ClientId client) override;
  Heard receive(ClientId client, const protocol::Message& message) override;
  void summed(const Result<MaskedSum>& sum) override;
  void expired() override;
  void retell(const RunEngine::Input& input) override;
  void resume() override;
  std::optional<Time> next_deadline() const override {
    return round_ ? round_->next_deadline() : std::nullopt;
  }

 private:
  void carry_out(std::vector<SecureRound::Effect>& effects);
  void closed(SecureRound::Closed closed);
  // Tells who watches the run, if something has changed.
  void show();

  RouteParts parts_;
  SecureRound::Setup setup_;
  std::optional<SecureRound> round_;
  std::optional<RunEngine::CloseRound> turn_;  // phase being closed
  SecureStage shown_;                          // the last one that was told
};

// The secrets of a session do not survive the process.
void SecureRoute::begin(const RunEngine::BeginSecure& begin) {
  if (parts_.host.retelling()) return;
  std::map<ClientId, PublicKey> identities;
  for (const auto& member : begin.members)
    if (parts_.ports.clients->connected(member.client))
      identities.emplace(member.client, parts_.ports.clients->key_of(member.client));
  round_.emplace(setup_, begin, parts_.ports.aggregate->view(begin.task.track).model->id(), identities,
                 parts_.host.now());
  std::vector<SecureRound::Effect> effects;
  round_->begin(effects);
  carry_out(effects);
}

void SecureRoute::fetch(const RunEngine::Fetch& offered) {
  const bool current = round_ && round_->task() == offered.offer.task();
  const auto objection =
      current ? round_->offered(offered.client, offered.offer)
              : Error{ErrorCode::kStale, "the secure aggregation session of this update has ended"};
  if (objection)
    parts_.host.submit(RunEngine::Damaged{offered.client, offered.offer.task(), *objection});
  else
    parts_.ports.updates->fetch(offered);
}

void SecureRoute::close(const RunEngine::CloseRound& turn) {
  turn_ = turn;
  if (parts_.host.retelling()) return;  // the journal has its sum, or nobody does
  if (!round_) return closed(SecureRound::nothing_to_sum(turn));
  std::vector<SecureRound::Effect> effects;
  round_->close(parts_.host.now(), effects);
  carry_out(effects);
}

void SecureRoute::closed(SecureRound::Closed closed) {
  if (!closed.unmasking) return parts_.host.close(*std::exchange(turn_, std::nullopt), NotMade{closed.error});
  parts_.ports.aggregate->sum_up(turn_->task(), std::move(*closed.unmasking));
}

void SecureRoute::summed(const Result<MaskedSum>& sum) {
  RunEngine::CloseRound turn = *std::exchange(turn_, std::nullopt);
  if (!sum) return parts_.host.close(turn, NotMade{sum.error()});
  turn.train_loss = sum->train_loss;
  for (const ClientId client : sum->bad_shares)
    parts_.host.report(
        Event{Severity::kWarning, "secure.invalid_share", {}}.with("client", std::int64_t{client.value()}));
  parts_.host.close(turn, Folded{});
}

void SecureRoute::committed(bool aggregated) {
  if (!round_) return;
  for (const auto& [client, verdict] : round_->verdicts(aggregated)) parts_.host.say(client, verdict);
  round_.reset();
}

void SecureRoute::left(ClientId client, bool) {
  if (!round_) return;
  std::vector<SecureRound::Effect> effects;
  round_->left(client, parts_.host.now(), effects);
  carry_out(effects);
}

void SecureRoute::arrived(ClientId client) {
  if (!round_) return;
  std::vector<SecureRound::Effect> effects;
  round_->returned(client, effects);
  carry_out(effects);
}

Heard SecureRoute::receive(ClientId client, const protocol::Message& message) {
  if (!SecureRound::is_about(message)) return Heard::kOther;
  if (!round_) return Heard::kTaken;
  std::vector<SecureRound::Effect> effects;
  round_->receive(client, message, parts_.host.now(), effects);
  carry_out(effects);
  return Heard::kTaken;
}

void SecureRoute::expired() {
  const auto deadline = next_deadline();
  if (!deadline || parts_.host.now() < *deadline) return;
  std::vector<SecureRound::Effect> effects;
  round_->expired(parts_.host.now(), effects);
  carry_out(effects);
}

// A phase that was committed without a journaled sum had none.
void SecureRoute::retell(const RunEngine::Input& input) {
  if (turn_ && std::holds_alternative<RunEngine::Committed>(input))
    closed(SecureRound::nothing_to_sum(*turn_));
}

void SecureRoute::resume() {
  if (turn_) closed(SecureRound::nothing_to_sum(*turn_));
}

void SecureRoute::carry_out(std::vector<SecureRound::Effect>& effects) {
  for (auto& effect : effects)
    std::visit(Overloaded{[&](const SecureRound::Send& send) { parts_.host.say(send.client, send.message); },
                          [&](const SecureRound::Tell& tell) { parts_.host.submit(tell.input); },
                          [&](SecureRound::Open& open) {
                            parts_.ports.aggregate->open_sum(std::move(open.cells), open.task_sums);
                          },
                          [&](SecureRound::Closed& result) { closed(std::move(result)); },
                          [&](const Event& event) { parts_.host.report(event); }},
               effect);
  show();
}

void SecureRoute::show() {
  if (parts_.ports.watch == nullptr || !round_) return;
  auto progress = round_->progress();
  if (!progress) return;
  SecureStage now{round_->task(), round_->attempt(), progress->stage, std::move(progress->awaited)};
  if (now == shown_) return;
  shown_ = now;
  parts_.ports.watch->secure(now, parts_.host.now());
}

}  // namespace

std::unique_ptr<Route> make_secure_route(const RouteParts& parts) {
  return std::make_unique<SecureRoute>(parts);
}

}  // namespace fedge::server
