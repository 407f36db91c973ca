#include "server/coordinator/ports/run_exchange.h"

#include <utility>

#include "protocol/session/loop.h"
#include "server/coordinator/counted_chunks.h"

namespace fedge::server {

void RunExchange::fetch(const protocol::Manifest& model) {
  const protocol::ObjectId id = model.id();
  auto object = surroundings_.models.create(model);
  if (!object) {
    arriving_.reset();
    return answer(id, object.error());
  }
  arriving_ = *object;
  open_ = true;
  surroundings_.seeder.fetch(
      arriving_, std::make_shared<UpdateSink>(arriving_, received_),
      protocol::weakly(this, [this, id](const Result<void>& outcome) { answer(id, outcome); }));
}

void RunExchange::answer(const protocol::ObjectId& model, const Result<void>& outcome) {
  protocol::post(surroundings_.io, protocol::weakly(this, [this, model, outcome] {
                   surroundings_.on_fetched(model, outcome);
                 }));
}

// A model whose place in the store could not be created is not exchanged; it may be the run's current model,
// which clients fetch.
void RunExchange::let_go(const protocol::ObjectId& object) {
  const bool fetched = arriving_ && arriving_->manifest().id() == object;
  if (fetched && !std::exchange(open_, false)) return;
  surroundings_.seeder.let_go(object);
}

void RunExchange::abandon(const protocol::ObjectId& model) {
  if (!arriving_ || arriving_->manifest().id() != model) return;
  let_go(model);
  arriving_.reset();
  if (!surroundings_.is_current(model)) surroundings_.models.remove(model);
}

}  // namespace fedge::server
