// RoundWarmup: the tracker of one round's warm-up, in the coordinator and in the simulator. It draws the
// overlay and the universe, lets owners spray, and schedules slots until every client holds k foreign chunks.
// Clients that get nothing are left out. It sees no chunks, only which client reports which chunks. A slot
// ends when everything ordered has arrived, or after a second. Clients whose chunks arrive quickly get more
// orders, so that no line's speed must be known. Pure; not thread-safe. Memory: two bits per client and chunk
// of the universe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/messages.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/schedulers/schedulers.h"
#include "swarm/warmup/warmup_state.h"

namespace fedge::swarm {

class RoundWarmup {
 public:
  // Interval at which go_on() must be called.
  static constexpr Duration kTick = std::chrono::milliseconds(50);

  struct Member {
    ClientId client;
    protocol::ObjectId update{};  // distinct for each member
    bool listens = false;         // accepts connections; two members that do not cannot be neighbours
  };
  // The overlay's seed is revealed after the warm-up, the secret one never.
  struct Seeds {
    std::uint64_t overlay = 0;
    std::uint64_t secret = 0;
  };
  // `config` must have passed check_warmup() for this number of members. kInvalid if an owner has no possible
  // receiver for its sprays.
  static Result<RoundWarmup> begin(const WarmupConfig& config, std::vector<Member> members, Seeds seeds);

  // A unique name of this warm-up's swarm.
  const protocol::ObjectId& swarm() const { return swarm_; }
  const std::vector<Member>& members() const { return members_; }
  bool has(ClientId client) const { return numbers_.contains(client); }
  std::vector<ClientId> neighbours(ClientId client) const;
  protocol::WarmupPlan plan(ClientId client, RunId run, TaskId task) const;
  std::uint64_t overlay_seed() const { return seeds_.overlay; }

  // The client has disconnected, and its chunks are lost.
  void leave(ClientId client);

  // The chunks that a member reports of an update: those it holds or, of its own update, those it would send.
  // Null if it has reported nothing.
  using Look = std::function<const ChunkSet*(ClientId, const protocol::ObjectId&)>;
  // Messages by client; the caller fills in the keys of sprays.
  using Orders = std::vector<std::pair<ClientId, protocol::WarmupSlot>>;
  // The orders to send now; none after the end.
  Orders go_on(Time now, const Look& look, RunId run, TaskId task);
  bool over() const { return over_; }
  // The reason the warm-up failed, so that owners may not be hidden; empty if it did not fail.
  const std::string& failure() const { return failure_; }
  void give_up(const std::string& why);

  struct Figures {
    std::uint32_t slots = 0;
    std::size_t transfers = 0;        // ordered in slots and arrived
    std::size_t owner_transfers = 0;  // those of them that came from the chunk's owner
    std::size_t blended = 0;          // additional orders to the chunk's owner
    std::size_t sprayed = 0;
    std::size_t not_sprayed = 0;  // sprays that did not arrive
    std::size_t left_out = 0;     // members that disconnected or got nothing
  };
  const Figures& figures() const { return figures_; }

 private:
  enum class Stage { kOpening, kSpraying, kSlots };
  struct Order {
    Pseudonym from = 0;
    Time since{};
    std::optional<std::size_t> spray;  // number of the try; none if it is not sprayed
    std::optional<Pseudonym> over;     // relay
  };
  using Ordered = std::map<std::pair<Pseudonym, Chunk>, Order>;  // by receiver
  struct Spray {
    Transfer transfer;
    std::size_t tries = 0;
  };
  RoundWarmup(const WarmupConfig& config, std::vector<Member> members, Seeds seeds);

  bool opened(Time now, const Look& look);
  void begin_with_what_is_there(const Look& look);
  void collect(Time now, const Look& look);
  void expire(Time now);
  void spray(Time now, std::vector<protocol::WarmupSlot>& slots);
  void end_spraying();
  // The possible relays of a spray: whether there are any, and one that has room now.
  struct Relays {
    bool any = false;
    std::optional<Pseudonym> next;
  };
  Relays relays(const Spray& spray) const;
  void schedule(Time now, const Look& look, std::vector<protocol::WarmupSlot>& slots);
  std::vector<Transfer> next_transfers();
  void order(const Transfer& transfer, const Order& order);
  std::uint32_t room_to_send(Pseudonym client) const;
  std::uint32_t room_to_get(Pseudonym client) const;
  Ordered::iterator withdraw(Ordered::iterator order);
  void take(Pseudonym client, Chunk chunk);
  void leave_out(Pseudonym client);
  void break_edge(Pseudonym a, Pseudonym b);
  const Universe& universe() const { return state_.universe(); }
  const protocol::ObjectId& update_of(Chunk chunk) const { return members_[universe().owner(chunk)].update; }

  WarmupConfig config_;
  std::vector<Member> members_;  // by pseudonym
  std::map<ClientId, Pseudonym> numbers_;
  Seeds seeds_;
  Rng rng_;
  protocol::ObjectId swarm_{};
  Overlay drawn_;
  WarmupState state_;
  std::vector<std::uint32_t> places_;  // of each chunk in its update
  std::vector<std::uint32_t> lags_;
  std::uint32_t longest_lag_ = 0;
  Overlay overlay_;                                     // of the working edges
  std::vector<std::pair<Pseudonym, Pseudonym>> edges_;  // working edges
  std::vector<ChunkSet> offered_;
  std::vector<std::uint32_t> rate_;       // chunks sent so far, by client
  std::vector<std::uint32_t> most_sent_;  // window of chunks to send
  std::vector<std::uint32_t> most_got_;   // window of chunks to get
  std::vector<bool> relaying_;            // false once a client has failed to relay
  std::vector<std::uint32_t> sending_;    // chunks ordered and not arrived, including relayed ones
  std::vector<std::uint32_t> getting_;
  Ordered orders_;
  std::vector<Spray> to_spray_;
  Stage stage_ = Stage::kOpening;
  std::optional<Time> began_;
  // Time of each client's last chunk sent and got, and of the last chunk of any client.
  std::vector<Time> sent_at_;
  std::vector<Time> got_at_;
  Time moved_{};
  Time busy_{};  // when a chunk was last in flight or held back by a lag
  Time slot_began_{};
  std::uint32_t slot_ = 0;
  std::pair<Pseudonym, Pseudonym> opening_{};  // client to wait for, update's owner
  bool over_ = false;
  std::string failure_;
  Figures figures_;
};

}  // namespace fedge::swarm
