// PreparedRun: a run on the client daemon's worker and trainer threads. prepare_run() builds data, model and
// trainer from the run's description; work_on() executes a task, continuing from what the last one left in
// the state directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/loaded_model.h"
#include "client/local/local_work.h"
#include "client/secure/private_releases.h"
#include "client/serverless/own_aggregate.h"
#include "client/task_files.h"
#include "client/trainers/external_trainer.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/data/data_directories.h"
#include "learn/screening/segment_store.h"
#include "learn/task.h"
#include "protocol/messages.h"
#include "protocol/status_spec.h"

namespace fedge::client {

// A prepared run. The trainer thread alone trains and evaluates with it.
struct PreparedRun {
  std::string name;
  std::shared_ptr<const learn::Task> task;
  LocalWork work;
  std::filesystem::path memory;  // directory of FileMemory
  protocol::StatusSpec status;
  std::vector<double> labels;        // published_labels()
  SampleCount samples;               // training samples; 0: it only evaluates
  std::optional<double> capability;  // fraction of a model, if a trainer program reported it
  std::shared_ptr<const OwnAggregate> aggregate = nullptr;      // in serverless runs
  std::optional<privacy::MaskingSpec> masking = {};             // with secure aggregation
  Digest terms{};                                               // hash of the run's description
  std::uint64_t seed = 0;                                       // of the run
  std::optional<privacy::LocalPrivacySpec> local_privacy = {};  // if this client adds noise to its updates
  PrivateReleases::Noise noise = {};                            // from all clients, on each update
  SampleCount evaluates = {};  // samples on which this client evaluates models
  // The run says in which type this client keeps the matrices that are not trained, and its owner says where.
  // With a trainer program, which gets the whole model, they are float32 in memory.
  BaseKeeping base = {};
  bool counts = true;  // it sends statistics of its data if the run asks for them
  // Own data that a sensor's stream adds to: the segments, and how many there were of them when they were
  // read. `renew` prepares the run again, with those that there are now.
  std::shared_ptr<learn::SegmentStore> stream = {};
  std::uint64_t stream_generation = 0;
  std::function<Result<std::shared_ptr<PreparedRun>>()> renew = {};

  // The run's limit on updates per client if this client adds noise, masked or not; otherwise nothing.
  std::optional<std::uint32_t> most_updates() const;
};

struct ClientSide {
  ClientId client;
  std::filesystem::path state_directory;
  std::shared_ptr<ExternalTrainer> trainer;  // the user's program; null: the built-in trainer
  learn::DataDirectories data_directories;
  std::map<std::string, std::shared_ptr<learn::SegmentStore>> streams = {};  // by the name of the data
  bool in_directory = false;                                                 // it is a node of the directory
  bool evaluates = true;                    // the owner lets it evaluate models
  bool counts = true;                       // the owner lets it send statistics of its data
  bool only_secure = false;                 // refuses runs without secure aggregation
  bool splits = false;                      // the owner lets it send activations of samples (split training)
  std::filesystem::path shared_bases = {};  // BaseKeeping::shared
  // Refuses runs if all of its updates together may reach a larger epsilon; nothing: no limit. Computed at
  // max_delta, whatever the run's own delta is.
  std::optional<double> max_epsilon = {};
  double max_delta = 1e-5;
  // Likewise, but also counts the noise of the honest clients in each sum. `rules` and the run's rules
  // together give the least number of honest clients.
  std::optional<double> require_noise = {};
  privacy::SecureRules rules = {.complete_below = 0, .min_survivors = 0};
};
// Errors say what this client lacks, or what it builds differently from the coordinator. With a trainer
// program no data of the run is read: the program has its own.
Result<std::shared_ptr<PreparedRun>> prepare_run(const protocol::RunDescription& description,
                                                 const ClientSide& side);

// Whether the run's data is a stream of this client that has kept no segment for training yet, but will.
bool waits_for_stream(const protocol::RunDescription& description, const ClientSide& side);

// Whether prepare_run()'s error may quote a value or a name from the device's files, so that only the owner
// may see it. True of every error if the owner has named a path or the run is on own data, except for
// refusals and missing abilities, which are decided before any data is read.
bool may_quote_data(const protocol::RunDescription& description, const ClientSide& side, const Error& error);

struct TaskInHand {
  ClientId client;
  const protocol::TrainRequest& request;
  const LoadedModel& loaded;
  std::stop_token stop;                              // abort
  std::stop_token finish;                            // end training early
  std::optional<run::PrivateSum::Noise> noise = {};  // required if this client adds noise
  learn::UpperPeer* upper = nullptr;                 // split training: the coordinator's half
  // The task is expected, but not assigned yet: it continues from the task before it, whose update has no
  // verdict yet, so that the memories of other tasks stay.
  bool ahead = false;
};

// Executes the task, continuing from what the last accepted one left. A client that lost this memory can
// start anew if it held only compression errors. A lost control variate is an error, since it is part of
// the coordinator's sum.
Result<WorkResult> work_on(PreparedRun& run, const TaskInHand& task);

}  // namespace fedge::client
