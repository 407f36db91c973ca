// The simulation's part of secure aggregation.
#include <utility>

#include "sim/simulation.h"

namespace fedge::sim {

void Simulation::sum_in_secret() {
  if (!state_.config().secure.on) return;
  sessions_ = std::make_unique<VirtualSessions>(VirtualSessions::Surroundings{
      .config = state_.config(),
      .parameters = task_.model().layout()->size(),
      .rng = root_.fork("secure aggregation"),
      .send = [this](ClientId id, const protocol::Message& message) { client_sends(id, message); },
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

}  // namespace fedge::sim
