// SummedUpdates: which sums a client has helped to take the masks away from, in its state directory, whatever
// becomes of the run: of two sums of the same updates but one, that one would be known. So for a task it does
// that once, and where it adds no noise of its own an update is in one sum only, whatever run or round asks
// for it. A file of records, 64 bytes for each sum (STATE/summed-updates); an unfinished last one is
// overwritten. Not thread-safe. About 150 bytes of memory for each sum.
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
  // An update's origin is all that it is trained from: the coordinator's key, the hashes of model and run
  // description, and the run's seed.
  struct Origin {
    const PublicKey& coordinator;
    const Digest& model;
    const Digest& terms;
    std::uint64_t seed = 0;
  };
  static Digest origin_of(const Origin& origin);
  // Hashes an update as it is before it is noised or masked. One of zeros has no hash and may be in several
  // sums: it changes none, and to refuse it would tell that it is of zeros.
  static Digest update_of(std::span<const float> values);

  // Empty if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<SummedUpdates> read(const std::filesystem::path& state_directory);

  // kRefused if this task, or a later one of its run and track, has been summed.
  Result<void> admit_task(RunId run, TaskId task) const;
  // kRefused if an update of this origin has been summed: but in the same run's earlier round, where the sum
  // may have come to nothing.
  Result<void> admit_origin(const Sum& sum) const;
  // kRefused if this very update has been summed.
  Result<void> admit_update(const Digest& update) const;

  // A sum that is about to be revealed is known from now on, and on the disk, also after a power cut, once
  // write() of what this gives returns. Of what cannot be written the next one takes the place. kResource
  // when the file is full.
  struct Record {
    std::filesystem::path file;
    std::shared_ptr<std::uint64_t> end;  // of what is written; used by the thread that writes
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
  std::map<Tag, std::pair<RunId, TaskId>> origins_;  // of the last one
  std::set<Tag> updates_;
};

}  // namespace fedge::client
