// SummedUpdates: the secure sums for which a client has revealed masks, in its state directory. Two sums
// that differ in one update reveal that update. So a client reveals at most one sum for a task. Without its
// own noise, its update is in one sum only, whatever run or round asks for it. Records outlive their runs.
// A file of records, 64 bytes for each sum (STATE/summed-updates); an unfinished last one is overwritten.
// Not thread-safe. About 150 bytes of memory for each sum.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class SummedUpdates {
 public:
  struct Sum {
    RunId run;
    TaskId task;
    Digest origin{};  // origin_of()
    Digest update{};  // update_of()
  };
  // An update's origin is everything that it is trained from: the coordinator's key, the hashes of model
  // and run description, and the run's seed.
  struct Origin {
    const PublicKey& coordinator;
    const Digest& model;
    const Digest& terms;
    std::uint64_t seed = 0;
    TaskKind kind = TaskKind::kTraining;
  };
  // The task as a record names it: evaluations and statistics have tracks of their own, so that they are not
  // taken for the training of the same round.
  static TaskId recorded(TaskId task);
  static Digest origin_of(const Origin& origin);
  // Hashes an update before noise and masks. An update of zeros has no hash and may be in several sums: it
  // changes none, and a refusal would reveal that it is zero.
  static Digest update_of(std::span<const float> values);
  // The same of the sums of an evaluation. Statistics have no hash: the same data gives the same sums in
  // every run.
  static Digest sums_of(TaskKind kind, std::span<const std::int64_t> sums);

  // Empty if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<SummedUpdates> read(const std::filesystem::path& state_directory);
  // Without a file: the records are not to be written.
  static SummedUpdates in_memory() { return SummedUpdates({}); }

  // kRefused if this task, or a later one of its run and track, has been summed.
  Result<void> admit_task(RunId run, TaskId task) const;
  // kRefused if an update of this origin has been summed, except in an earlier round of the same run and
  // track: that sum may have failed.
  Result<void> admit_origin(const Sum& sum) const;
  // kRefused if this same update has been summed.
  Result<void> admit_update(const Digest& update) const;

  // Adds a sum that is about to be revealed. It is durable once write() of the returned record returns. If
  // that fails, the next record takes its place in the file. kResource when the file is full.
  struct Record {
    std::filesystem::path file;
    std::shared_ptr<std::uint64_t> end;  // end of the written records; used by the writing thread
    std::array<std::byte, 64> bytes{};
    Result<void> write() const;
  };
  Result<Record> add(const Sum& sum);

 private:
  using Tag = std::array<std::byte, 16>;  // the first half of a digest
  explicit SummedUpdates(std::filesystem::path file) : file_(std::move(file)) {}
  void note(RunId run, TaskId task, const Tag& origin, const Tag& update);

  std::filesystem::path file_;
  std::uint64_t sums_ = 0;
  std::shared_ptr<std::uint64_t> end_ = std::make_shared<std::uint64_t>(0);
  std::map<std::pair<RunId, TrackId>, RoundNumber> last_;
  std::map<Tag, std::pair<RunId, TaskId>> origins_;  // last task of each origin
  std::set<Tag> updates_;
};

}  // namespace fedge::client
