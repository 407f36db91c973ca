// RunHost, part 3: rounds with secure sums.
#include <utility>

#include "server/coordinator/detail/run_host.h"
#include "server/store/input_codec.h"

namespace fedge::server {

void RunHost::hear_secure() {
  const auto self = weak_from_this();
  secure_->set_callbacks({.on_outcome =
                              [self](const RunEngine::Input& outcome) {
                                if (const auto alive = self.lock()) alive->step(outcome);
                              },
                          .on_open =
                              [self](std::vector<Range> cells) {
                                const auto alive = self.lock();
                                if (!alive) return;
                                alive->worker_.post(
                                    [alive, cells = std::move(cells)] { alive->state_.open_secure(cells); });
                              },
                          .on_closed =
                              [self](SecureRound::Closed closed) {
                                if (const auto alive = self.lock()) alive->summed(std::move(closed));
                              },
                          .send =
                              [self](ClientId client, const protocol::Message& message) {
                                if (const auto alive = self.lock()) alive->deliver(client, message);
                              },
                          .on_event =
                              [self](const Event& event) {
                                if (const auto alive = self.lock()) alive->report(event);
                              }});
}

bool RunHost::secure(ClientId client, const protocol::Message& message) {
  if (!SecureRound::is_about(message)) return false;
  if (!secure_)
    house_.misbehaved(client,
                      std::string(protocol::name_of(message)) + ", which the coordinator did not request");
  else if (!allowance_.answer(client))
    house_.misbehaved(client, "more answers than the coordinator requested");
  else
    secure_->received(client, message);
  return true;
}

void RunHost::begin_secure(const RunEngine::BeginSecure& begin) {
  std::map<ClientId, PublicKey> identities;
  for (const auto& member : begin.members)
    if (const auto link = house_.peers.find(member.client)) identities.emplace(member.client, link->peer());
  secure_->begin(begin, state_.track(begin.task.track).object()->manifest().id(), identities);
}

void RunHost::fold_masked(const RunEngine::Fold& accepted) {
  const auto scalars = secure_->take_scalars(accepted.client);
  const run::StoredUpdate upload = uploads_->take(accepted.client);
  folded_.push_back(upload.arrived);
  worker_.post([self = shared_from_this(), client = accepted.client, scalars, object = upload.arrived] {
    const auto folded = self->state_.fold_masked(
        client, {.coverage = &object->manifest().coverage,
                 .read = [&](std::uint64_t first,
                             std::span<std::byte> out) { return object->read_bytes(first, out); },
                 .scalars = scalars});
    object->rest();
    if (folded) return;
    protocol::post(self->house_.io, [self, folded] { self->fail(folded.error()); });
  });
}

void RunHost::summed(SecureRound::Closed closed) {
  const auto closing = std::exchange(unmade_, nullptr);
  if (!closing || finished_) return;
  if (!closed.unmasking) {
    closing->not_aggregated = closed.error;
    return post_closing(closing);
  }
  worker_.post([self = shared_from_this(), closing,
                unmasking = std::make_shared<privacy::Unmasking>(std::move(*closed.unmasking))] {
    const TaskId task{closing->close.round, closing->close.track};
    auto sum = std::make_shared<Result<RunState::Summed>>(self->state_.sum_up(task, *unmasking));
    protocol::post(self->house_.io, [self, closing, sum] { self->unmasked(closing, *sum); });
  });
}

void RunHost::unmasked(const std::shared_ptr<Closing>& closing, const Result<RunState::Summed>& sum) {
  if (finished_) return;
  if (!sum) {
    closing->not_aggregated = sum.error();
    return post_closing(closing);
  }
  closing->close.train_loss = sum->train_loss;
  closing->summed = sum->object;
  for (const ClientId client : sum->bad_shares)
    report(
        Event{Severity::kWarning, "secure.invalid_share", {}}.with("client", std::int64_t{client.value()}));
  journal_->add(now(), encode_record(sum->turn), sum->object);
  post_closing(closing);
}

}  // namespace fedge::server
