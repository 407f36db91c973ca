// RoundWarmup: the tracker of one round's warm-up, in the coordinator and in the simulator: draws the overlay
// and the universe, has owners spray, schedules slots until everybody holds k chunks of others, and gives up
// on whom nothing comes to. It sees no chunk, only who says that he has which. A slot ends when everything
// ordered has come, or after a second, and where chunks come quickly more are ordered: no line's speed
// has to be known. Pure, not thread-safe. Memory: two
// bits for each client and chunk of all.
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
#include "swarm/warmup/schedulers/rarity.h"
#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::swarm {

class RoundWarmup {
 public:
  // How often go_on() is to be called.
  static constexpr Duration kTick = std::chrono::milliseconds(50);

  struct Member {
    ClientId client;
    protocol::ObjectId update{};  // no two the same
    bool listens = false;         // accepts links; where neither does they cannot be neighbours
  };
  // What is drawn: the seed of the overlay is revealed when the warm-up is over, the other one never.
  struct Seeds {
    std::uint64_t overlay = 0;
    std::uint64_t secret = 0;
  };
  // `config` must have passed check_warmup for so many members. kInvalid if somebody is everybody's
  // neighbour, and could spray to nobody.
  static Result<RoundWarmup> begin(const WarmupConfig& config, std::vector<Member> members, Seeds seeds);

  // A name for its neighbourhoods, which nothing else has.
  const protocol::ObjectId& swarm() const { return swarm_; }
  const std::vector<Member>& members() const { return members_; }
  bool has(ClientId client) const { return numbers_.contains(client); }
  std::vector<ClientId> neighbours(ClientId client) const;
  protocol::WarmupPlan plan(ClientId client, RunId run, TaskId task) const;
  std::uint64_t overlay_seed() const { return seeds_.overlay; }

  // It is gone, and its chunks with it.
  void leave(ClientId client);

  // What a member says it has of an update, and of its own, that it would send; null if it has said nothing.
  using Look = std::function<const ChunkSet*(ClientId, const protocol::ObjectId&)>;
  // By client; the keys of sprays are left to fill in.
  using Orders = std::vector<std::pair<ClientId, protocol::WarmupSlot>>;
  // What is to be done now; nothing more once it is over.
  Orders go_on(Time now, const Look& look, RunId run, TaskId task);
  bool over() const { return over_; }
  // Why whose is whose may not be hidden.
  const std::string& failure() const { return failure_; }
  void give_up(const std::string& why);

  struct Figures {
    std::uint32_t slots = 0;
    std::size_t transfers = 0;        // in slots
    std::size_t owner_transfers = 0;  // of them: from the chunk's owner
    std::size_t blended = 0;          // ordered besides: to the chunk's owner
    std::size_t sprayed = 0;
    std::size_t not_sprayed = 0;  // because they did not arrive
    std::size_t left_out = 0;     // members that have gone, or to whom nothing came
  };
  const Figures& figures() const { return figures_; }

 private:
  enum class Stage { kOpening, kSpraying, kSlots };
  struct Order {
    Pseudonym from = 0;
    Time since{};
    std::optional<std::size_t> spray;  // which try it is, and
    std::optional<Pseudonym> over;     // over whom
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
  // Who can pass it on, and is to: none of them may have room now.
  struct Relays {
    bool any = false;
    std::optional<Pseudonym> next;
  };
  Relays relays(const Spray& spray) const;
  void schedule(Time now, const Look& look, std::vector<protocol::WarmupSlot>& slots);
  std::vector<Transfer> next_transfers();
  bool covered() const;
  void order(const Transfer& transfer, const Order& order);
  std::uint32_t room_to_send(Pseudonym client) const;
  std::uint32_t room_to_get(Pseudonym client) const;
  Ordered::iterator withdraw(Ordered::iterator order);
  void take(Pseudonym client, Chunk chunk);
  void leave_out(Pseudonym client);
  void break_edge(Pseudonym a, Pseudonym b);
  std::size_t foreign(Pseudonym client) const { return got_[client].count() - own_got_[client]; }
  const protocol::ObjectId& update_of(Chunk chunk) const { return members_[universe_.owner(chunk)].update; }

  WarmupConfig config_;
  std::vector<Member> members_;  // by number
  std::map<ClientId, Pseudonym> numbers_;
  Seeds seeds_;
  Rng rng_;
  protocol::ObjectId swarm_{};
  Overlay drawn_;
  Universe universe_;
  std::vector<std::uint32_t> places_;  // of each chunk in its update
  std::vector<std::uint32_t> lags_;
  std::uint32_t longest_lag_ = 0;
  std::size_t k_;
  Overlay overlay_;                                     // of the edges that work
  std::vector<std::pair<Pseudonym, Pseudonym>> edges_;  // likewise
  Rarity rarity_;
  std::vector<ChunkSet> got_;  // of its own update as well, as far as these were ordered
  std::vector<std::size_t> own_got_;
  std::vector<ChunkSet> offered_;
  std::vector<std::uint32_t> rate_;       // chunks that each has sent
  std::vector<std::uint32_t> most_sent_;  // that each is to send at a time
  std::vector<std::uint32_t> most_got_;   // likewise
  std::vector<bool> active_;
  std::vector<bool> relaying_;          // nothing says that it does not
  std::vector<std::uint32_t> sending_;  // or passing on: ordered and not yet there
  std::vector<std::uint32_t> getting_;
  Ordered orders_;
  std::vector<Spray> to_spray_;
  Stage stage_ = Stage::kOpening;
  std::optional<Time> began_;
  // When something that was ordered last came from, and to, each; and to anybody.
  std::vector<Time> sent_at_;
  std::vector<Time> got_at_;
  Time moved_{};
  Time busy_{};  // when something was last under way, or held up by a lag
  Time slot_began_{};
  std::uint32_t slot_ = 0;
  std::pair<Pseudonym, Pseudonym> opening_{};  // whom is waited for, and about whose update
  bool over_ = false;
  std::string failure_;
  Figures figures_;
};

}  // namespace fedge::swarm
