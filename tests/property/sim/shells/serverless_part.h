// A client's part in a serverless round: the updates that it was told of, the order to aggregate some of
// them, and its model. It decides nothing; the script says what it does.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/serverless/own_aggregate.h"
#include "core/rng.h"
#include "protocol/messages.h"
#include "run/stored_update.h"
#include "tests/property/sim/shells/scene.h"

namespace fedge::server::shells {

class ServerlessPart {
 public:
  using Object = std::shared_ptr<protocol::StoredObject>;
  using Objects = std::map<protocol::ObjectId, Object>;

  ServerlessPart(const Scene& scene, Rng draws) : scene_(scene), draws_(std::move(draws)) {}

  std::optional<protocol::TrainRequest> request;    // of the round
  std::map<protocol::ObjectId, bool> told;          // updates of the round; whether it has reported them
  bool planned = false;                             // a warm-up waits until it has announced its chunks
  std::vector<protocol::Chunk> ordered;             // by the warm-up's tracker, and not yet arrived
  std::vector<protocol::WarmupSlot::Spray> sprays;  // likewise, of its own update
  std::optional<protocol::AggregateUpdates> order;
  Object made;
  bool sent_made = false;
  bool lies = false;  // its model is not the one that was ordered

  void hear(const protocol::Message& message) {
    if (const auto* asked = std::get_if<protocol::TrainRequest>(&message)) begin(*asked);
    if (!request) return;
    // A coordinator that does not know the answer, after a restart for example, tells of an update again.
    if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message); update && is_mine(*update))
      told[update->update.id()] = false;
    if (const auto* plan = std::get_if<protocol::WarmupPlan>(&message); plan && is_mine(*plan))
      planned = true;
    if (const auto* slot = std::get_if<protocol::WarmupSlot>(&message); slot && is_mine(*slot)) {
      for (const auto& ask : slot->asks) ordered.push_back({ask.object, ask.chunk});
      sprays.insert(sprays.end(), slot->sprays.begin(), slot->sprays.end());
    }
    if (const auto* wanted = std::get_if<protocol::AggregateUpdates>(&message); wanted && is_mine(*wanted)) {
      order = *wanted;
      sent_made = false;
    }
  }
  // The coordinator has restarted: it sends the order again to the clients that vote on the model then. A
  // client that was going to lie might be the only one.
  void restarted() {
    order.reset();
    if (!lies) return;
    made.reset();
    lies = false;
  }
  // Returns the client's update for this task, always the same one.
  Object update_for(const protocol::TrainRequest& task) {
    Object& update = updates_[task.task()];
    if (!update) update = store(task.coverage.count(), task.model, task.coverage);
    return update;
  }
  // Returns the model that the coordinator's order gives, computed by the client's own code; null if it gives
  // none. `model` is that of the task.
  Object aggregate(const Object& model, const Objects& all) const {
    const client::OwnAggregate own(std::make_shared<const run::RunConfig>(scene_.config), scene_.training);
    client::OwnAggregate::Updates updates;
    for (const auto& part : order->parts) {
      auto examined = own.examine(all.at(part.object), *store_);
      REQUIRE(examined);
      updates.emplace(part.object, std::move(*examined));
    }
    auto aggregated = own.make(model, order->parts, updates, *store_);
    return aggregated ? *aggregated : nullptr;
  }
  // Returns a model that nobody else has.
  Object other_model() {
    return store(request->model.coverage.count(), request->model, request->model.coverage);
  }

 private:
  template <class T>
  bool is_mine(const T& message) const {
    return message.task() == request->task();
  }
  void begin(const protocol::TrainRequest& asked) {
    const bool again = request && request->task() == asked.task();
    request = asked;
    if (again) return;
    told.clear();
    planned = false;
    ordered.clear();
    sprays.clear();
    order.reset();
    made.reset();
    sent_made = lies = false;
  }
  Object store(std::size_t number, protocol::Manifest shape, const Coverage& coverage) {
    std::vector<float> values(number);
    for (float& value : values) value = static_cast<float>(draws_.uniform() - 0.5) / 8;
    shape.coverage = coverage;
    auto stored = run::store_values(values, shape, *store_);
    REQUIRE(stored);
    return *stored;
  }

  const Scene& scene_;
  Rng draws_;
  std::map<TaskId, Object> updates_;
  std::unique_ptr<protocol::ChunkStore> store_ = protocol::make_memory_chunk_store(std::size_t{1} << 26);
};

}  // namespace fedge::server::shells
