// RunExchange: the coordinator's place among the clients of a serverless run: it watches the swarms of their
// updates, and fetches the model that they aggregated into the run's store. Use it on the io_context's
// thread; it answers in a later handler. Owned by shared_ptr, because the seeder calls back. Private to
// coordinator/.
#pragma once

#include <functional>
#include <memory>

#include "protocol/chunks/chunk_store.h"
#include "protocol/session/loop.h"
#include "server/conductor/ports.h"
#include "server/coordinator/detail/seeder.h"

namespace fedge::server {

class RunExchange final : public Exchange, public std::enable_shared_from_this<RunExchange> {
 public:
  struct Surroundings {
    boost::asio::io_context& io;
    Seeder& seeder;
    protocol::ChunkStore& models;
    // Returns whether this is the run's current model: clients may aggregate a model that equals it.
    std::function<bool(const protocol::ObjectId&)> is_current;
    std::function<void(const protocol::ObjectId&, const Result<void>&)> on_fetched;
    std::function<swarm::RoundWarmup::Seeds(TaskId)> warmup_seeds;
  };
  explicit RunExchange(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  bool watch(const protocol::Manifest& object) override { return surroundings_.seeder.watch(object); }
  void admit(ClientId client, const protocol::ObjectId& object) override {
    surroundings_.seeder.admit(client, object);
  }
  void let_go(const protocol::ObjectId& object) override;
  void fetch(const protocol::Manifest& model) override;
  void pause(const protocol::ObjectId& model) override {
    if (arriving_ && arriving_->manifest().id() == model) let_go(model);
  }
  void abandon(const protocol::ObjectId& model) override;
  bool obtainable(const protocol::ObjectId& object) const override {
    return surroundings_.seeder.obtainable(object);
  }
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const override {
    return surroundings_.seeder.chunks_of(client, object);
  }
  bool listens(ClientId client) const override { return surroundings_.seeder.listens(client); }
  void introduce(ClientId client, const std::vector<ClientId>& others,
                 const protocol::ObjectId& object) override {
    surroundings_.seeder.introduce(client, others, object);
  }
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId task) override { return surroundings_.warmup_seeds(task); }

  // Returns the model that was fetched last, and forgets it.
  std::shared_ptr<protocol::StoredObject> take() { return std::exchange(arriving_, nullptr); }
  // Returns the bytes of models received on the wire.
  Bytes received() const { return *received_; }

 private:
  // Answers in a later handler.
  void answer(const protocol::ObjectId& model, const Result<void>& outcome);

  Surroundings surroundings_;
  std::shared_ptr<protocol::StoredObject> arriving_;
  bool open_ = false;  // it is exchanged
  std::shared_ptr<Bytes> received_ = std::make_shared<Bytes>();
};

}  // namespace fedge::server
