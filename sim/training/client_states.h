// ClientStates: what the virtual clients of a simulation keep between tasks (client/local/client_memory.h),
// in memory up to a budget. Beyond it, the states that were used least recently are in a file. As with
// MemoryStore, a client has at most two states for each track: it continues from the one that the coordinator
// accepted last. A later process can continue with the states of a checkpoint. Any thread. Cost: O(log
// clients) a call, and the size of a state; of save_all(), all states that have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "client/local/client_memory.h"
#include "core/ids.h"
#include "core/platform/scratch_file.h"
#include "core/result.h"

namespace fedge::sim {

class ClientStates {
 public:
  // At most `budget` bytes stay in memory; the rest is in a file without a name in this directory. Before
  // this call everything stays in memory.
  void spill_to(const std::filesystem::path& directory, std::size_t budget);
  // The same, but the file has this name and stays.
  Result<void> keep_in(const std::filesystem::path& file, std::size_t budget);

  // Which states there are, and where in the file. Numbers, for a checkpoint.
  struct Index {
    // For each: client, track, round, offset, the sizes of its parts, checksum.
    std::vector<std::uint64_t> states;
    std::vector<std::uint64_t> unused;  // for each unused place: bytes, offset
    std::uint64_t end = 0;              // bytes of the file
  };
  // After keep_in(): writes all states to the file, durably. Places of this index that are freed from
  // now on keep their bytes until the forget_former() after the next save_all(): one of both indexes is
  // always valid.
  Result<Index> save_all();
  void forget_former();
  // After keep_in(): continues with the states of an index. kCorrupt if the file is too short for it; load()
  // finds other damage.
  Result<void> restore(const Index& index);

  // Returns the state that the client's task of this round left, an empty one for round 0, and forgets its
  // other states of the track. The state must exist. Errors are those of the file.
  Result<client::ClientMemory> load(ClientId client, TrackId track, RoundNumber round);
  // Keeps the state in memory, in place of one of the same round.
  void save(ClientId client, TrackId track, client::ClientMemory state);
  // Writes states to the file until the others fit into the budget. Call it after save().
  Result<void> shrink();
  void forget(TrackId track);

  std::size_t bytes_in_memory() const;
  std::uint64_t bytes_in_file() const;  // that are in use
  std::uint64_t file_size() const;

 private:
  using Key = std::tuple<ClientId, TrackId, RoundNumber>;
  struct Place {
    std::uint64_t offset = 0;
    std::size_t control = 0;  // numbers in each part
    std::size_t residual = 0;
    std::size_t personal = 0;
    std::uint64_t checksum = 0;  // 0: the last checkpoint does not have the place
    std::size_t bytes() const;
  };
  struct State {
    std::optional<client::ClientMemory> memory;  // nothing: only in the file
    std::uint64_t used = 0;                      // key in by_use_, while in memory
    std::optional<Place> place;                  // in the file
  };
  using States = std::map<Key, State>;
  void erase(States::iterator state);
  Result<client::ClientMemory> read(const Key& key, const Place& place) const;
  Result<void> write(State& state);

  mutable std::mutex mutex_;
  std::size_t budget_ = 0;
  std::filesystem::path directory_;  // of the scratch file; empty: there is none
  States states_;
  std::map<std::uint64_t, Key> by_use_;  // states in memory, the one used least recently first
  std::uint64_t uses_ = 0;
  std::size_t in_memory_ = 0;  // bytes
  std::optional<ScratchFile> file_;
  std::uint64_t end_ = 0;      // of the file
  std::uint64_t in_file_ = 0;  // bytes
  using Places = std::map<std::size_t, std::vector<std::uint64_t>>;
  Places free_;           // places in the file, by size
  Places former_;         // the same, of the last checkpoint
  bool durable_ = false;  // keep_in()
};

}  // namespace fedge::sim
