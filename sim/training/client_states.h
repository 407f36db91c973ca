// ClientStates: what the virtual clients of a simulation keep between tasks (client/client_memory.h), in
// memory up to a budget. Beyond it, the states that were used least recently are in a scratch file. As with
// MemoryStore, a client has at most two states for each track: it continues from the one that the coordinator
// accepted last. Any thread. Cost: O(log clients) a call, and the size of a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "client/client_memory.h"
#include "core/ids.h"
#include "core/platform/scratch_file.h"
#include "core/result.h"

namespace fedge::sim {

class ClientStates {
 public:
  // At most `budget` bytes stay in memory; the rest is in a file without a name in this directory. Before
  // this call everything stays in memory.
  void spill_to(const std::filesystem::path& directory, std::size_t budget);

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
    std::size_t bytes() const;
  };
  struct State {
    std::optional<client::ClientMemory> memory;  // nothing: at `place`
    std::uint64_t used = 0;                      // key in by_use_, while in memory
    Place place;
  };
  using States = std::map<Key, State>;
  void erase(States::iterator state);
  Result<client::ClientMemory> read(const Key& key, const Place& place) const;
  Result<void> write(State& state);

  mutable std::mutex mutex_;
  std::size_t budget_ = 0;
  std::filesystem::path directory_;  // empty: everything stays in memory
  States states_;
  std::map<std::uint64_t, Key> by_use_;  // states in memory, the one used least recently first
  std::uint64_t uses_ = 0;
  std::size_t in_memory_ = 0;  // bytes
  std::optional<ScratchFile> file_;
  std::uint64_t end_ = 0;                                   // of the file
  std::uint64_t in_file_ = 0;                               // bytes
  std::map<std::size_t, std::vector<std::uint64_t>> free_;  // places in the file, by size
};

}  // namespace fedge::sim
