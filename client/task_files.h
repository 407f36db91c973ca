// TaskFiles: a client's durable task data, so that a disconnect or a power cut repeats neither a download
// nor a training. It keeps models being fetched in STATE/chunks, a cache that drops its oldest files. Each
// run's finished update stays until its verdict: its payload in the cache, the rest in STATE/pending/. Data
// read back is checked against its hashes. Blocks on the disk: the daemon's worker thread calls it. The
// returned objects may be used on other threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/local/local_work.h"
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
    std::vector<bool> wanted;                         // which chunks of it
    std::shared_ptr<protocol::StoredObject> control;  // null without one
  };
  // What to fetch.
  struct Offer {
    protocol::Manifest model;
    std::optional<protocol::Manifest> control;
    Coverage needed;      // parameters of the model that are needed
    bool frozen = false;  // most of the model stays constant: keep it for the next one
    // The object that is exchanged with other clients; used if it has the model, else ignored. May be null.
    std::shared_ptr<protocol::StoredObject> present = nullptr;
  };
  struct Update {
    PendingUpdate pending;
    std::shared_ptr<protocol::StoredObject> payload;
  };

  // Keeps at most `max_bytes` of payload under the state directory, which it creates if absent.
  static Result<std::unique_ptr<TaskFiles>> open(const std::filesystem::path& state_directory,
                                                 std::size_t max_bytes);

  // The updates that an earlier process left: one for each run, at most kMaxRuns, in the order of the runs.
  // Removes files that are damaged or too many, and reports them.
  std::vector<Update> take_up(const std::function<void(const Event&)>& report);
  // Opens the files for these vectors of the whole layout; they contain the chunks already stored, also as
  // part of the former model. Removes the files of the previous download, except a frozen model if the
  // cache has room for three.
  Result<Download> download(const ParameterLayout& layout, const Offer& offer);
  // Reads a float32 object of the whole layout. Checks every wanted chunk (empty: all chunks); other values
  // are 0. A damaged chunk gives kCorrupt and is fetched again next time. Takes 4 bytes for each parameter
  // that is read, but those that `base` holds go there instead and are 0, too.
  Result<ParameterVector> load(const std::shared_ptr<protocol::StoredObject>& object,
                               const std::shared_ptr<const ParameterLayout>& layout,
                               const std::vector<bool>& wanted = {}, learn::CompactWeights* base = nullptr);
  // Keeps the run's update until forget(), replacing the previous one; survives a power cut once it
  // returns. Releases the download as the next download() would.
  Result<Update> keep(const protocol::TrainRequest& request, const OutgoingUpdate& update);
  void forget(RunId run);
  // Serverless rounds: opens an object whose chunks come from other clients, with the chunks already stored,
  // or uses `present` as download() does. Keeps it until let_go(). kResource if the cache has no room for it.
  Result<std::shared_ptr<protocol::StoredObject>> hold(
      RunId run, const protocol::Manifest& manifest,
      const std::shared_ptr<protocol::StoredObject>& present = nullptr);
  void let_go(RunId run);
  // The store for models that such a round aggregates.
  protocol::ChunkStore& chunks() { return *store_; }
  // Forgets the updates of all runs but these.
  void forget_others(std::span<const RunId> held);

 private:
  TaskFiles(std::filesystem::path state_directory, std::unique_ptr<protocol::ChunkStore> store,
            std::size_t max_bytes)
      : directory_(std::move(state_directory)), store_(std::move(store)), max_bytes_(max_bytes) {}
  Result<Update> take_up(const std::filesystem::path& file);
  Result<Update> write(const PendingUpdate& pending, const OutgoingUpdate& update);
  Result<void> check_room(const char* what, std::uint64_t bytes) const;
  void make_room(std::uint64_t bytes);
  Result<void> read(const std::shared_ptr<protocol::StoredObject>& object, std::size_t chunk,
                    std::span<std::byte> bytes);
  void let_go_of_former();
  void release_download();
  Result<void> take_over(const protocol::Manifest& model);

  std::filesystem::path directory_;
  std::unique_ptr<protocol::ChunkStore> store_;
  std::size_t max_bytes_;
  Download download_;
  // The previous model, as far as it was fetched; kept if the next one is mostly the same.
  std::shared_ptr<protocol::StoredObject> former_;
  bool keeps_former_ = false;
  // Payloads of the kept updates; their space cannot be reused.
  std::map<RunId, std::shared_ptr<protocol::StoredObject>> payloads_;
  // Held objects; their space cannot be reused either.
  std::map<RunId, std::map<protocol::ObjectId, std::shared_ptr<protocol::StoredObject>>> held_;
};

// The directory of the chunks.
std::filesystem::path chunk_cache(const std::filesystem::path& state_directory);
// Bytes that the cache takes on the disk.
std::uint64_t chunk_cache_use(const std::filesystem::path& state_directory);

}  // namespace fedge::client
