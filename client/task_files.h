// TaskFiles: what a client keeps on disk of its tasks, so that neither a cut link nor a power cut costs it
// twice: models on their way (STATE/chunks, a cache whose oldest files give way) and for each run the
// finished update that waits for its verdict (its payload there, the rest in STATE/pending/). Whatever is
// read back is believed for its hashes alone. Blocks on the disk: the daemon's worker thread calls it;
// objects it hands out may be read and written elsewhere.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/local_work.h"
#include "client/pending_update.h"
#include "core/event.h"
#include "core/parameters.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::client {

class TaskFiles {
 public:
  struct Download {
    std::shared_ptr<protocol::StoredObject> model;
    std::vector<bool> wanted;                         // chunks of it
    std::shared_ptr<protocol::StoredObject> control;  // null without one
  };
  // What is to be fetched.
  struct Offer {
    protocol::Manifest model;
    std::optional<protocol::Manifest> control;
    Coverage needed;      // parameters of the model, and of nothing else
    bool frozen = false;  // most of the model stays what it is: worth keeping for the next
  };
  struct Update {
    PendingUpdate pending;
    std::shared_ptr<protocol::StoredObject> payload;
  };

  // At most so many bytes of payload under the state directory, which is made if absent.
  static Result<std::unique_ptr<TaskFiles>> open(const std::filesystem::path& state_directory,
                                                 std::size_t max_bytes);

  // What an earlier process was left with, one update a run and at most kMaxRuns, in the order of the runs.
  // What is damaged or too many is removed, and `report` has said so.
  std::vector<Update> take_up(const std::function<void(const Event&)>& report);
  // Where these vectors of the whole layout go, with the chunks that are there already, be it as a part of
  // the model before. Those of the download before are released, but
  // for a frozen model's if there is room for three.
  Result<Download> download(const ParameterLayout& layout, const Offer& offer);
  // A float32 object of the whole layout, every wanted chunk (empty: each) checked; the others' values are 0.
  // A damaged one is kCorrupt and fetched again next time. 4 bytes a parameter.
  Result<ParameterVector> load(const std::shared_ptr<protocol::StoredObject>& object,
                               const std::shared_ptr<const ParameterLayout>& layout,
                               const std::vector<bool>& wanted = {});
  // Keeps the run's update until forget(), in place of the one before; survives a power cut once it returns.
  // Releases the download in the same way.
  Result<Update> keep(const protocol::TrainRequest& request, const OutgoingUpdate& update);
  void forget(RunId run);
  // Of a round without a server: an object whose chunks come from others, with those that are there already.
  // Kept until let_go(); kResource where the cache has no room for it.
  Result<std::shared_ptr<protocol::StoredObject>> hold(RunId run, const protocol::Manifest& manifest);
  void let_go(RunId run);
  // Where such a round's model is made of them.
  protocol::ChunkStore& chunks() { return *store_; }
  // All but those of these runs.
  void forget_others(std::span<const RunId> held);

 private:
  TaskFiles(std::filesystem::path state_directory, std::unique_ptr<protocol::ChunkStore> store,
            std::size_t max_bytes)
      : directory_(std::move(state_directory)), store_(std::move(store)), max_bytes_(max_bytes) {}
  Result<Update> take_up(const std::filesystem::path& file);
  Result<Update> write(const PendingUpdate& pending, const OutgoingUpdate& update);
  Result<void> check_room(const char* what, std::uint64_t bytes) const;
  void make_room(std::uint64_t bytes);
  void let_go_of_former();
  void release_download();
  Result<void> take_over(const protocol::Manifest& model);

  std::filesystem::path directory_;
  std::unique_ptr<protocol::ChunkStore> store_;
  std::size_t max_bytes_;
  Download download_;
  // The model before, as far as it was fetched, where most of the next is the same.
  std::shared_ptr<protocol::StoredObject> former_;
  bool keeps_former_ = false;
  // Of the updates that are kept; their space cannot be taken.
  std::map<RunId, std::shared_ptr<protocol::StoredObject>> payloads_;
  // Nor can that of these.
  std::map<RunId, std::map<protocol::ObjectId, std::shared_ptr<protocol::StoredObject>>> held_;
};

// Where the chunks are.
std::filesystem::path chunk_cache(const std::filesystem::path& state_directory);
// Bytes that it takes on the disk.
std::uint64_t chunk_cache_use(const std::filesystem::path& state_directory);

}  // namespace fedge::client
