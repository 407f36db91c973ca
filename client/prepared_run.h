// What a client daemon does for a run on its worker thread: build data, model and trainer from the run's
// description, then each task's work, going on from what the last one left in the state directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/local_work.h"
#include "client/secure/private_releases.h"
#include "client/serverless/own_aggregate.h"
#include "client/trainers/external_trainer.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/data/data_directories.h"
#include "learn/task.h"
#include "protocol/messages.h"
#include "protocol/status_spec.h"

namespace fedge::client {

// What a run needs, once it is prepared; used on the worker thread only.
struct PreparedRun {
  std::string name;
  std::shared_ptr<const learn::Task> task;
  LocalWork work;
  std::filesystem::path memory;  // where FileMemory is
  protocol::StatusSpec status;
  std::vector<double> labels;                               // as they are published
  SampleCount samples;                                      // to train on, at least 1
  std::optional<double> capability;                         // share of a model, if a trainer program has said
  std::shared_ptr<const OwnAggregate> aggregate = nullptr;  // in a run without a server
  std::optional<privacy::MaskingSpec> masking = {};         // in a run whose updates are summed in secret
  Digest terms{};                                           // hash of the run's description
  std::uint64_t seed = 0;                                   // of the run
  std::optional<privacy::LocalPrivacySpec> local_privacy = {};  // in a run whose updates are noised here
  PrivateReleases::Noise noise = {};                            // of the clients, on each update

  // Where it noises its updates, masked or not, as many as it may send; otherwise nothing.
  std::optional<std::uint32_t> most_updates() const;
};

struct ClientSide {
  ClientId client;
  std::filesystem::path state_directory;
  std::shared_ptr<ExternalTrainer> trainer;  // the user's program; null: the built-in trainer
  learn::DataDirectories data_directories;
  bool in_directory = false;  // it is a node of the distributed directory
  bool only_secure = false;   // it takes no part where updates are seen one by one
  // Nor where all of its updates together may tell more than this; nothing: whatever they tell. But for a
  // chance of max_delta, whatever the run's own delta is.
  std::optional<double> max_epsilon = {};
  double max_delta = 1e-5;
  // Nor where all of its updates together may tell more than this in spite of clients' noise, its own or that
  // of the honest clients of each sum; of the honest there are at least as many as these rules and the run's
  // say.
  std::optional<double> require_noise = {};
  privacy::SecureRules rules = {.complete_below = 0, .min_survivors = 0};
};
// Errors say what this client lacks, or what it builds otherwise than the coordinator. With a trainer program
// none of the run's data is read: the program has its own.
Result<std::shared_ptr<PreparedRun>> prepare_run(const protocol::RunDescription& description,
                                                 const ClientSide& side);

struct TaskInHand {
  ClientId client;
  const protocol::TrainRequest& request;
  const ParameterVector& model;
  const ParameterVector* control = nullptr;
  std::stop_token stop;                              // give up
  std::stop_token finish;                            // that is enough training
  std::optional<run::PrivateSum::Noise> noise = {};  // needed where updates are noised here
};

// The task's work, going on from what the last accepted one left. Who has lost that can begin anew if all it
// forgets is what compressed updates had left out; a control variate is part of the coordinator's sum.
Result<WorkResult> work_on(PreparedRun& run, const TaskInHand& task);

}  // namespace fedge::client
