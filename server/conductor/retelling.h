// Retelling: the ports of a conductor to which a journal is told again, in a recovery and in a replay.
// Clients hear nothing, nothing is transferred, and nothing is awaited. A subclass says what becomes of
// updates and models: it does each change in step(), which does nothing once a step has failed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/conductor/conductor.h"

namespace fedge::server {

class Retelling : public Clients,
                  public Models,
                  public Updates,
                  public Exchange,
                  public Aggregate,
                  public Gate,
                  public Owner {
 public:
  // `watch` follows what is told again; null: nobody does.
  Ports ports(Watch* watch = nullptr) { return {this, this, this, this, this, this, this, nullptr, watch}; }

 protected:
  template <class Step>
  void step(Step&& what) {
    if (fault_) return;
    if (const Result<void> done = what(); !done) fault_ = done.error();
  }
  // Returns the first error of a step.
  Result<void> outcome() const { return fault_ ? Result<void>(*fault_) : Result<void>(); }

 private:
  // A client that was given a task was connected; its departure is an input.
  bool connected(ClientId) const override { return true; }
  PublicKey key_of(ClientId) const override { return {}; }
  void send(ClientId, const protocol::Message&) override {}
  void release(ClientId) override {}
  void give(const RunEngine::Assign&, RoundNumber) override {}
  void take_back(ClientId, TaskId) override {}
  void fetch(const RunEngine::Fetch&) override {}
  void discard(ClientId, TaskId) override {}
  bool watch(const protocol::Manifest&) override { return true; }
  void admit(ClientId, const protocol::ObjectId&) override {}
  void let_go(const protocol::ObjectId&) override {}
  void fetch(const protocol::Manifest&) override {}
  void pause(const protocol::ObjectId&) override {}
  void abandon(const protocol::ObjectId&) override {}
  bool obtainable(const protocol::ObjectId&) const override { return true; }
  const swarm::ChunkSet* chunks_of(ClientId, const protocol::ObjectId&) const override { return nullptr; }
  bool listens(ClientId) const override { return false; }
  void introduce(ClientId, const std::vector<ClientId>&, const protocol::ObjectId&) override {}
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId) override { return {}; }
  void folded_by_clients(const RunEngine::Fold&) override {}
  void open_sum(std::vector<Range>, std::size_t) override {}
  void fold_masked(const RunEngine::Fold&, std::vector<std::uint64_t>) override {}
  void sum_up(TaskId, privacy::Unmasking) override {}
  void record(const RunEngine::Input&) override {}
  void enter(Decision) override {}
  void report(const Event&) override {}
  void settled(bool) override {}
  void finished(const std::string&) override {}
  void failed(const Error& error) override {
    step([&] { return Result<void>(error); });
  }

  std::optional<Error> fault_;
};

}  // namespace fedge::server
