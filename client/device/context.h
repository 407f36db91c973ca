// DaemonContext: what the parts of the client daemon share: options, key, files, threads, and the state of
// each run. Internal to client/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "client/conductor/task_conductor.h"
#include "client/daemon.h"
#include "client/prepared_run.h"
#include "client/task_files.h"
#include "protocol/session/loop.h"

namespace fedge::client {

// The state of one run. Keys are the engine's runs: at most kMaxRuns, and those of resumed updates.
struct DeviceRun {
  std::string name;                                           // empty: not described yet
  std::shared_ptr<const protocol::RunDescription> described;  // `prepared` is built from this
  std::shared_ptr<ExternalTrainer> trainer;           // if the user's program trains; used by the worker
  std::shared_ptr<PreparedRun> prepared;              // used by the worker and the trainer
  std::optional<ClientSide> waiting;                  // for the first segment of a stream
  std::shared_ptr<const LoadedModel> loaded;          // of the last task, for training ahead
  std::shared_ptr<protocol::StoredObject> update;     // trained, kept until the verdict
  std::optional<protocol::ObjectId> exchanging;       // the model that is exchanged with other clients
  std::shared_ptr<protocol::StoredObject> exchanged;  // its chunks; null until its place in the store exists
  std::shared_ptr<protocol::StoredObject> made;       // the model that the last serverless task produced
  std::optional<double> utility;                      // of its last training
};

struct DaemonContext {
  boost::asio::io_context& io;
  DaemonOptions options;
  Membership membership;
  SecretKey key;
  std::unique_ptr<TaskFiles> files;  // used by the worker once the daemon is started
  std::shared_ptr<protocol::TlsIdentity> identity = nullptr;
  std::shared_ptr<Swarm> swarm = nullptr;
  std::unique_ptr<dht::DirectoryNode> directory = nullptr;
  std::vector<std::unique_ptr<Sensor>> sensors = {};
  std::map<RunId, DeviceRun> runs = {};
  // The daemon sets both: step() gives its conductor an input, report() reports an event.
  std::function<void(TaskConductor::Input)> step = {};
  std::function<void(const Event&)> report = {};
  const ClientEngine* engine = nullptr;
  std::weak_ptr<void> owner = {};
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  // Jobs of both hold the daemon weakly: otherwise a job that never begins would keep it alive.
  protocol::Worker worker = {};   // for files
  protocol::Worker trainer = {};  // for training and evaluation, one at a time
  protocol::Worker writer = {};   // for writes that must not wait for training

  Time now() const { return Time(std::chrono::steady_clock::now() - started); }
  // A pointer to a part of the daemon that keeps the daemon alive, or that does not.
  template <class T>
  std::shared_ptr<T> alive(T* part) const {
    return {owner.lock(), part};
  }
  template <class T>
  std::weak_ptr<T> weak(T* part) const {
    return alive(part);
  }
};

}  // namespace fedge::client
