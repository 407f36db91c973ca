// The updates that have arrived in the simulator's shell, and how the masked ones are masked.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "privacy/secure_aggregation/client.h"
#include "sim/training/training_pool.h"

namespace fedge::server::shells {

// An update as its client delivers it.
struct Delivery {
  Coverage coverage;
  SampleCount samples;
  double loss = 0;
  std::shared_ptr<const aggregation::UpdateValues> values;
  std::shared_ptr<const privacy::Masking> masking;  // null: it is not masked
};

class ArrivedUpdates final : public sim::VirtualUpdates {
 public:
  void keep(ClientId client, sim::TrainedUpdate update,
            const std::shared_ptr<const privacy::Masking>& masking) {
    updates_.insert_or_assign(client, std::move(update));
    if (masking) masks_.insert_or_assign(client, masking);
  }
  const privacy::Masking& masking(ClientId client) const { return *masks_.at(client); }
  const sim::TrainedUpdate* find(ClientId client, TaskId task) const {
    const auto found = updates_.find(client);
    return found != updates_.end() && found->second.task == task ? &found->second : nullptr;
  }
  bool has(ClientId client, TaskId task) const override { return find(client, task) != nullptr; }
  Result<const sim::TrainedUpdate*> arrived(ClientId client, TaskId task) override {
    return find(client, task);
  }
  sim::TrainedUpdate take(ClientId client) override { return std::move(updates_.extract(client).mapped()); }
  void drop(ClientId client) override { updates_.erase(client); }
  void forget(TrackId) override {}
  void release(const sim::SharedState&) override {}

 private:
  std::map<ClientId, sim::TrainedUpdate> updates_;
  std::map<ClientId, std::shared_ptr<const privacy::Masking>> masks_;
};

}  // namespace fedge::server::shells
