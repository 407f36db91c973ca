// The simulation's part of secure aggregation.
#include <cstring>
#include <utility>

#include "run/secure_update.h"
#include "sim/noise_key.h"
#include "sim/simulation.h"

namespace fedge::sim {

void Simulation::sum_in_secret() {
  if (!state_.config().secure.on) return;
  sessions_ = std::make_unique<VirtualSessions>(VirtualSessions::Surroundings{
      .config = state_.config(),
      .parameters = task_.model().layout()->size(),
      .rng = root_.fork("secure aggregation"),
      .now = [this] { return now_; },
      .at = [this](Time time,
                   std::function<void()> what) { schedule(time, std::nullopt, Happening{std::move(what)}); },
      .up_arrival = [this](ClientId id, Bytes size) { return up_arrival(id, size); },
      .session = [this](ClientId id) { return at(id).online ? std::optional(at(id).session) : std::nullopt; },
      .send = [this](ClientId id, const protocol::Message& message) { server_sends(id, message); },
      .on_input = [this](const server::RunEngine::Input& input) { step_server(input); },
      .on_open = [this](std::vector<Range> cells) { state_.open_secure(std::move(cells)); },
      .on_closed = [this](server::SecureRound::Closed closed) { summed(std::move(closed)); },
      .on_ready = [this](ClientId id) { masks_known(id); },
      .on_stopped = [this](ClientId id, const Error& error) { give_up(id, error); },
      .on_event = [this](const Event& event) { report(event); }});
}

// Returns true if the update must wait for its masks; otherwise adds its masked form to the offer.
bool Simulation::waits_for_masks(ClientId id, client::ClientEngine::Trained& trained) {
  if (!sessions_) return false;
  VirtualClient& client = at(id);
  if (!sessions_->ready(id)) {
    client.unmasked = trained;
    return true;
  }
  sessions_->describe(id, trained.offer);
  sessions_->masked(id);
  return false;
}

void Simulation::masks_known(ClientId id) {
  const auto trained = std::exchange(at(id).unmasked, std::nullopt);
  if (!trained) return;
  at(id).training_ends = now_;
  schedule(now_, id, ClientInput{*trained, at(id).session});
}

void Simulation::give_up(ClientId id, const Error& error) {
  const RunId run = state_.config().id;
  const protocol::TrainRequest* task = at(id).engine.task(run);
  if (task == nullptr || at(id).engine.holds_update(run)) return;  // its update's verdict is still to come
  schedule(now_, id,
           ClientInput{client::ClientEngine::TrainingFailed{run, task->task(), error}, at(id).session});
}

// Reports a fault as the client's own log would; no other party learns of it.
void Simulation::report_fault(const server::RunEngine::Fold& accepted, const Error& fault) {
  report(Event{Severity::kError, "training.failed", {}}
             .with("client", std::int64_t{accepted.client.value()})
             .with("round", std::int64_t{accepted.task.round.value()})
             .with("reason", fault.message));
}

void Simulation::fold_masked(const server::RunEngine::Fold& accepted) {
  sessions_->folded(accepted.client);
  const TrainedUpdate update = pool_.take(accepted.client);
  std::vector<float> values(update.coverage.count());
  if (const auto read = update.values->read(0, values); !read) return fail(read.error());
  const run::RunConfig& config = state_.config();
  const Secret noise = client_noise_root(config.seed, accepted.client);
  const auto masked = run::mask_update(
      {.coverage = &update.coverage,
       .values = values,
       .samples = update.training.samples,
       .loss = update.training.mean_loss,
       .rounding = root_.fork("rounding", accepted.task.round.value(), accepted.client.value()),
       .noise = run::PrivateSum::Noise{&noise, accepted.task}},
      config.secure.masking, sessions_->masking(accepted.client), parallel_);
  if (!masked) return fail(masked.error());
  if (update.fault)
    report_fault(accepted, *update.fault);
  else if (masked->fault)
    report_fault(accepted, *masked->fault);
  const auto folded = state_.fold_masked(
      accepted.client, {.coverage = &masked->coverage,
                        .read = [&](std::uint64_t first, std::span<std::byte> out) -> Result<void> {
                          std::memcpy(out.data(), masked->words.data() + first, out.size());
                          return {};
                        },
                        .scalars = masked->scalars});
  if (!folded) fail(folded.error());
}

void Simulation::summed(server::SecureRound::Closed closed) {
  auto close = *std::exchange(closing_, std::nullopt);
  std::optional<Error> failed;
  if (closed.unmasking) {
    const auto sum = state_.sum_up({close.round, close.track}, *closed.unmasking);
    if (sum) {
      close.train_loss = sum->train_loss;
      state_.remove(*sum);
    } else {
      failed = sum.error();
    }
  } else {
    failed = closed.error;
  }
  if (failed)
    report(Event{Severity::kWarning, "round.not_aggregated", {}}
               .with("round", std::int64_t{close.round.value()})
               .with("reason", failed->message));
  sessions_->finish(!failed);
  commit(close);
}

}  // namespace fedge::sim
