#include "server/coordinator/ports/run_exchange.h"

#include <utility>

#include "core/crypto/random.h"
#include "server/coordinator/counted_chunks.h"

namespace fedge::server {

void RunExchange::fetch(const protocol::Manifest& model) {
  const protocol::ObjectId id = model.id();
  auto object = surroundings_.models.create(model);
  if (!object) return answer(id, object.error());
  arriving_ = *object;
  surroundings_.seeder.fetch(arriving_, std::make_shared<UpdateSink>(arriving_, received_),
                             [weak = weak_from_this(), id](const Result<void>& outcome) {
                               if (const auto self = weak.lock()) self->answer(id, outcome);
                             });
}

void RunExchange::answer(const protocol::ObjectId& model, const Result<void>& outcome) {
  protocol::post(surroundings_.io, [weak = weak_from_this(), model, outcome] {
    if (const auto self = weak.lock()) self->surroundings_.on_fetched(model, outcome);
  });
}

void RunExchange::abandon(const protocol::ObjectId& model) {
  surroundings_.seeder.let_go(model);
  if (std::exchange(arriving_, nullptr) && !surroundings_.is_current(model))
    surroundings_.models.remove(model);
}

swarm::RoundWarmup::Seeds RunExchange::warmup_seeds(TaskId) { return {random_u64(), random_u64()}; }

}  // namespace fedge::server
