// VirtualSplit: the exchanges of split trainings in virtual time: a device computes, sends the activations of
// a piece over its link, waits for the coordinator, which serves the pieces of all clients in the order of
// their arrival, and computes again when the gradients have come. A lost connection costs what was on its
// way. The values themselves are those of TrainingPool. One thread. Memory: the present piece of each client
// that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "learn/split/planned_exchanges.h"
#include "learn/task.h"
#include "protocol/split_messages.h"
#include "sim/devices.h"
#include "sim/transfers/client_links.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualSplit {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    const Devices& devices;
    const learn::Task& task;
    double samples_per_second;  // of the coordinator, for the whole model; 0: it needs no time
  };
  VirtualSplit(Surroundings surroundings, std::size_t clients)
      : surroundings_(std::move(surroundings)), trainings_(clients) {}

  struct Start {
    RunId run;
    TaskId task;
    std::size_t cut = 0;
    double data_share = 1;
    std::function<void()> done;  // the client has trained, and the coordinator keeps its half
  };
  // Begins the client's training, in place of another.
  void begin(ClientId client, const Start& start);
  // The bytes of values since the last call.
  ClientLinks::Traffic take_traffic() { return {up_.take(), down_.take()}; }
  void drop(ClientId client) { trainings_[client.value()].reset(); }
  // The client has connected again, and the coordinator has told it to go on with this task.
  void asked_again(ClientId client, TaskId task);

 private:
  struct Training {
    Training(Start begun, learn::PlannedExchanges exchanges)
        : start(std::move(begun)), plan(std::move(exchanges)) {}
    Start start;
    learn::PlannedExchanges plan;
    learn::PlannedExchanges::Piece piece;
    std::uint64_t number = 0;
    std::uint32_t exchange = 0;  // of the piece: 0, and 1 if the targets stay on the client
    bool waits = false;          // for the coordinator
    bool answered = false;       // the coordinator has what it waits for
    bool ended = false;          // all steps are made
  };
  // Calls `what` at this time if the client is still at this training.
  template <class What>
  void go_on(ClientId client, const Training& training, Time when, What what);
  Training* find(ClientId client, std::uint64_t number);
  void next_piece(ClientId client, Training& training);
  void send(ClientId client, Training& training);
  void serve(ClientId client, Training& training);
  void answer(ClientId client, Training& training);
  void take_answer(ClientId client, Training& training);
  protocol::SplitValues head(const Training& training, protocol::SplitKind kind) const;
  // Bytes of the present piece's values.
  std::size_t values_size(const Training& training) const;
  Bytes size_up(const Training& training) const;
  Bytes size_down(const Training& training) const;
  // The part of a sample's whole training that one side computes in `thirds` of its passes.
  Duration time(double samples_per_second, const Training& training, double blocks, double thirds) const;

  Surroundings surroundings_;
  std::vector<std::unique_ptr<Training>> trainings_;  // by client
  std::uint64_t trainings_begun_ = 0;
  Time server_free_{};
  ByteCount up_;  // of values
  ByteCount down_;
};

}  // namespace fedge::sim
