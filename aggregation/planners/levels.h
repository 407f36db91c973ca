// Activation levels: how much each client trains. A mix such as "10 % of the clients train all, 90 % train a
// fifth" is two lists and drawn once for a run. Alternatively, each client declares what it can train.
// O(clients).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/rng.h"

namespace fedge::aggregation {

// Defaults: the mix of FedPLT's published code.
struct Levels {
  std::vector<double> shares = {1.0, 0.2};     // in (0, 1]
  std::vector<double> fractions = {0.1, 0.9};  // of the clients; add up to 1
  bool declared = false;                       // clients declare their capability; replaces fractions
};

inline constexpr std::size_t kMaxLevels = 64;

// Reads `shares`, `fractions` and `capability`. Errors stay in the section.
Levels read_levels(config::Reader& section);

// Reads only `fractions` and `capability`, for levels whose shares come from `key`; `even` is the default
// fractions.
void read_population(config::Reader& section, const std::string& key, const std::vector<double>& even,
                     Levels& levels);

// Reads `split_output` of the planners that divide layers into rows.
bool read_split_output(config::Reader& section);

// Number of clients in each level, by the largest-remainder method; equal remainders go to the earlier level.
// `fractions` must come from validated Levels.
std::vector<std::size_t> level_counts(const std::vector<double>& fractions, std::size_t clients);

// The level of each client. Drawn levels are fixed from the beginning. A client that declares a capability
// gets the largest share not above it, or else the smallest share, when it arrives.
class Population {
 public:
  Population() = default;
  Population(const Levels& levels, std::size_t clients, const Rng& run);

  std::size_t level(ClientId client) const;
  // Records the share that the client can train. Returns true if its level changed or is its first.
  bool admit(ClientId client, double capability);

 private:
  std::vector<double> shares_;
  bool declared_ = false;
  std::vector<std::uint8_t> level_;  // by client; kUnknown: has not declared its own yet
};

// Draws the level of each client: level_counts() of each, in an order given by one shuffle. It is the same
// for every planner of a run, so that runs of one seed compare planners and not populations.
std::vector<std::uint8_t> assign_levels(const Levels& levels, std::size_t clients, const Rng& run);

// A fraction in lowest terms.
struct Fraction {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 1;
  bool operator==(const Fraction&) const = default;
};

// The fraction with the smallest denominator, at most 1000, whose nearest double is `value` in (0, 1]: 0.2 is
// 1/5, 0.125 is 1/8. Refuses other values (0.3333).
Result<Fraction> exact_fraction(double value);

}  // namespace fedge::aggregation
