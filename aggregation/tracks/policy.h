// Policy: which clients disagree about sharing a model, how, and in which rounds. The operator writes it in a
// separate file or in a run file's section [tracks]. aggregation/tracks/resolution.h derives a round's tracks
// from it. Plain data, no thread rule. Taxonomy: Rosendal and Oprescu, arXiv:2604.23386.
//
//   clients = ["a", "b", "c"]     # or a number n: they are then called "0" to "n-1"
//   strict = false
//   keep_orphan_global = false
//   [[disagreement]]
//   kind = "inbound"              # a's model shall be free of b's influence
//   clients = ["a"]
//   against = ["b"]
//   from_round = 1                # 1 if left out
//   until_round = 4               # the last round in which it holds; for ever if left out
//   deep = false                  # true: also what b did before from_round
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/ids.h"
#include "core/result.h"

namespace fedge::aggregation {

inline constexpr std::size_t kMaxPolicyClients = 1'000'000;
inline constexpr std::size_t kMaxDisagreements = 100'000;
// Sum over all disagreements of clients times the clients they are against.
inline constexpr std::size_t kMaxDisagreementPairs = 5'000'000;
inline constexpr std::size_t kMaxClientName = 1024;  // bytes

// The kinds, with c any of `clients` and x any of `against`:
enum class DisagreementKind : std::uint8_t {
  kFull,           // c takes no part at all
  kPartialData,    // c keeps a share of its samples out of training
  kInbound,        // x must not influence c's model
  kOutbound,       // c must not influence x's model
  kBidirectional,  // both
};

// The name in a policy file: "inbound".
const std::string& name_of(DisagreementKind kind);

struct Disagreement {
  DisagreementKind kind = DisagreementKind::kFull;
  std::vector<ClientId> clients;  // ascending, each once, at least one
  std::vector<ClientId> against;  // likewise; empty for kFull and kPartialData
  RoundNumber from_round{1};
  std::optional<RoundNumber> until_round;  // inclusive; none: never ends
  bool deep = false;    // also excludes contributions before from_round; never with kPartialData
  double withheld = 0;  // kPartialData: share of the samples, in (0, 1); else 0

  bool is_active(RoundNumber round) const {
    return round >= from_round && (!until_round || round <= *until_round);
  }
  bool operator==(const Disagreement&) const = default;
};

struct Policy {
  std::size_t clients = 0;  // ids 0 .. clients - 1
  // Names by id: unique, 1 to 1024 bytes, as check_text() allows (core/text.h). Empty: clients are named by
  // their numbers.
  std::vector<std::string> names;
  std::vector<Disagreement> disagreements;
  bool strict = false;              // ResolveOptions::strict
  bool keep_orphan_global = false;  // ResolveOptions::keep_orphan_global

  std::string name(ClientId client) const;
  bool operator==(const Policy&) const = default;
};

// Reads a file that holds only a policy; `clients` is required. Errors name file, line and key.
Result<Policy> read_policy(const config::Document& document);
// Reads the section [tracks] of a run with this many clients. The key `clients`, if present, must match.
// Errors stay in `section`, for its finish(); after an error the result must not be used.
Policy read_policy(config::Reader& section, std::size_t clients);
// Writes a policy in canonical form. read_policy() restores the same policy if the string is not longer than
// a configuration file may be.
std::string to_toml(const Policy& policy);

}  // namespace fedge::aggregation
