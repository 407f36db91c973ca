// Participants: which clients took part in each round of a simulation, and how each evaluated the model, as
// columns in DIRECTORY/participants (column_files.h). docs/reference/metrics.md explains them to users. One
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "sim/participants/column_files.h"

namespace fedge::sim {

class Participants {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  // An update that the coordinator accepted.
  struct Training {
    TrackId track;
    ClientId client;
    std::uint64_t samples = 0;
    std::uint64_t steps = 0;
    Time arrived{};          // since the start of the run, on the virtual clock
    double loss = kUnknown;  // as the client reports it; not known of masked updates
    double norm = kUnknown;  // Euclidean norm of the update
  };
  // A client's evaluation of a model on its own samples.
  struct Evaluation {
    TrackId track;
    ClientId client;
    std::uint64_t samples = 0;
    double loss = kUnknown;
    double accuracy = kUnknown;
    double rmse = kUnknown;
  };

  // The results' directory. Of the files there, the rows of the first `rounds` rounds stay.
  static Result<Participants> open(const std::filesystem::path& results, std::uint64_t rounds);
  // Removes the files of an earlier run.
  static Result<void> remove(const std::filesystem::path& results);

  // What single clients did in a run, ascending.
  struct Summary {
    std::vector<double> trainings;   // number of accepted updates of each client that has one
    std::vector<double> accuracies;  // of each client in the last round in which clients evaluated
  };
  // Reads the files; empty if the run has none.
  static Result<Summary> read(const std::filesystem::path& results);

  // Add a row to the round that has not ended yet.
  void add(const Training& training);
  void add(const Evaluation& evaluation);
  // Writes the round's rows.
  Result<void> end_round();

 private:
  Participants(ColumnFiles trainings, ColumnFiles evaluations, std::uint64_t rounds)
      : trainings_(std::move(trainings)), evaluations_(std::move(evaluations)), round_(rounds + 1) {}

  ColumnFiles trainings_;
  ColumnFiles evaluations_;
  std::uint64_t round_;
};

}  // namespace fedge::sim
