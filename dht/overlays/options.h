// OverlayOptions: all options of an overlay and its network, with the papers' defaults or, where the papers
// give none, ours. Periods are in rounds. Plain data; check_options() validates it.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "dht/overlays/values/value_store.h"

namespace fedge::dht {

// Error for an invalid option: "--loss must be a chance, at least 0 and below 1".
inline std::string must_be(const char* option, const char* what) {
  return std::string(option) + " must be " + what;
}

enum class OverlayKind { kChord, kPastry, kKademlia };
const char* to_string(OverlayKind kind);
Result<OverlayKind> overlay_kind(const std::string& name);

// Interval of Chord's greedy step: (n, k] may return the key's own node; the paper has (n, k).
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
  std::size_t neighbourhood = 0;  // M: nodes near by delay; 0: none
  double probe_leaves = 1;        // T_s: the two adjacent leaves and a third one in rotation
  double fetch_row = 4;           // T_r: a random row from a random node in it
};

struct KademliaOptions {
  std::size_t k = 20;
  std::size_t alpha = 3;
  double refresh = 60;  // T_b
  bool cache = true;    // a lookup leaves a copy at the closest node that answered and had none
  double ping = 1;      // least rounds between two pings of a full bucket's oldest contact
};

// Defences against hostile nodes. The defaults are the papers', which trust all nodes. Kademlia supports all
// of them, the other overlays only the last two.
struct Protections {
  // An id is a hash of its node's public key, which contacts carry: a node cannot claim another id.
  bool bound_ids = false;
  // Most contacts of one address group (such as a /24 network) in a bucket and in a search; 0: no limit.
  std::size_t per_group = 0;
  // Number of lookup paths that share no node (Baumgart and Mies, "S/Kademlia", 2007, section 4.4).
  std::size_t paths = 1;
  bool keep_old = true;  // an old contact that answers stays; false: the newcomer replaces it
  // A lookup asks all responsible nodes instead of ending at the first value.
  bool read_all = false;
  // Requests and messages need a token that the receiver issued to the sender's address. No node can use
  // another's address, and an answer to an unverified sender is not longer than the request.
  bool tokens = false;
};

struct OverlayOptions {
  OverlayKind kind = OverlayKind::kChord;
  Duration round = std::chrono::seconds(1);
  Duration rpc_timeout = std::chrono::milliseconds(500);
  Duration route_timeout = std::chrono::seconds(2);  // of a recursive lookup; then iterative
  double suspicion = 3;          // rounds for which an unresponsive node is not trusted, unless it is heard
  bool recursive = false;        // Chord and Pastry
  std::size_t replication = 3;   // r
  double republish = 60;         // T_rep; values live three times as long
  double repair = 4;             // how often holders check whether the r responsible nodes have changed
  double maintenance_scale = 1;  // factor on every period of the protocols' own maintenance
  double loss = 0;               // probability that a message is lost
  StoreLimits store;
  Protections protections;
  ChordOptions chord;
  PastryOptions pastry;
  KademliaOptions kademlia;
};

// Errors are kInvalid and name the option as on the command line.
Result<void> check_options(const OverlayOptions& options);

// When a periodic duty is due: several times a round, or once in several rounds.
class Pace {
 public:
  explicit Pace(double period) : per_round_(1.0 / period) {}
  // Returns how often the duty is due in the round that begins.
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

}  // namespace fedge::dht
