// OverlayOptions: everything that can be set of an overlay and its network, with the defaults of the papers
// or, where they leave it open, ours. Periods are in rounds. Plain data; check_options says what is wrong
// with it.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "sim/overlays/value_store.h"

namespace fedge::sim {

// The reason why an option's value is refused: "--loss must be a chance, at least 0 and below 1".
inline std::string must_be(const char* option, const char* what) {
  return std::string(option) + " must be " + what;
}

enum class OverlayKind { kChord, kPastry, kKademlia };
const char* to_string(OverlayKind kind);
Result<OverlayKind> overlay_kind(const std::string& name);

// Chord's greedy step looks for a finger in (n, k], which may be the key's own node, or in the paper's (n,
// k).
enum class FingerInterval { kClosed, kOpen };

struct ChordOptions {
  std::size_t successors = 8;
  double stabilize = 1;   // T_s
  double fix_finger = 1;  // T_f: one finger
  double check_predecessor = 1;
  FingerInterval interval = FingerInterval::kClosed;
};

struct PastryOptions {
  unsigned digit_bits = 4;        // b
  std::size_t leaf_set = 16;      // L, both sides together
  std::size_t neighbourhood = 0;  // M: nodes that are near by delay; 0: none are kept
  double probe_leaves = 1;        // T_s: the two adjacent leaves and one more, in turn
  double fetch_row = 4;           // T_r: a random row from a random node in it
};

struct KademliaOptions {
  std::size_t k = 20;
  std::size_t alpha = 3;
  double refresh = 60;  // T_b
  bool cache = true;    // a lookup leaves a copy at the closest node that answered and had none
  double ping = 1;      // a full bucket's oldest contact is pinged at most once in so many rounds
};

// What stands against hostile nodes. The defaults are the papers', which trust everybody; Kademlia has all of
// them, the others the last two.
struct Protections {
  // An id is a hash of its node's public key, which contacts carry: nobody claims another one.
  bool bound_ids = false;
  // So many contacts of one group of addresses (such as a /24 network) in a bucket and in a search; 0: any.
  std::size_t per_group = 0;
  // A lookup goes along so many paths that share no node (Baumgart and Mies, "S/Kademlia", 2007,
  // section 4.4).
  std::size_t paths = 1;
  bool keep_old = true;  // an old contact that answers stays; otherwise the newcomer takes its place
  // A lookup asks all that are responsible, instead of ending with the first that has a value.
  bool read_all = false;
  // A request is answered, and a message believed, only with the token that its receiver has given to that
  // address: nobody speaks in another's name, and a stranger's answer is no longer than the request.
  bool tokens = false;
};

struct OverlayOptions {
  OverlayKind kind = OverlayKind::kChord;
  Duration round = std::chrono::seconds(1);
  Duration rpc_timeout = std::chrono::milliseconds(500);
  Duration route_timeout = std::chrono::seconds(2);  // of a recursive lookup; then it goes on iteratively
  double suspicion = 3;    // a node that did not answer is not believed in for so long, unless it is heard
  bool recursive = false;  // Chord and Pastry
  std::size_t replication = 3;   // r
  double republish = 60;         // T_rep; values live for three times as long
  double repair = 4;             // holders look whether the r responsible nodes have changed
  double maintenance_scale = 1;  // every period of the protocols' own maintenance times this
  double loss = 0;               // chance that a message is lost
  StoreLimits store;
  Protections protections;
  ChordOptions chord;
  PastryOptions pastry;
  KademliaOptions kademlia;
};

// kInvalid names the option as the command line has it.
Result<void> check_options(const OverlayOptions& options);

// When a periodic duty is due: a round may hold several, or be one of many without any.
class Pace {
 public:
  explicit Pace(double period) : per_round_(1.0 / period) {}
  // How often it is due in the round that begins.
  unsigned rounds_begin() {
    debt_ += per_round_;
    const auto due = static_cast<unsigned>(debt_ + 1e-9);
    debt_ -= due;
    return due;
  }

 private:
  double per_round_;
  double debt_ = 0;
};

}  // namespace fedge::sim
