// Activation levels: which clients train how much. A mix such as "10 % of the clients train all,
// 90 % train a fifth" is two lists, and who has which level is drawn once for a run; or each client says
// what it can train. O(clients).
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
  bool declared = false;                       // in place of fractions: by what clients say they can train
};

inline constexpr std::size_t kMaxLevels = 64;

// Reads `shares`, `fractions` and `capability`. Errors are left in the section.
Levels read_levels(config::Reader& section);

// The last two alone, into levels whose shares are known from this key; `even` is the default of fractions.
void read_population(config::Reader& section, const std::string& key, const std::vector<double>& even,
                     Levels& levels);

// Reads `split_output` of the planners that divide layers into rows.
bool read_split_output(config::Reader& section);

// Clients of each level: the largest-remainder method; equal remainders go to the level named first.
// The fractions are those of checked Levels.
std::vector<std::size_t> level_counts(const std::vector<double>& fractions, std::size_t clients);

// Which level each client has. Drawn levels are there from the beginning; a client that declares its own has
// the largest share that is not above what it says it can train, or else the smallest, from when it arrives.
class Population {
 public:
  Population() = default;
  Population(const Levels& levels, std::size_t clients, const Rng& run);

  std::size_t level(ClientId client) const;
  // The client says which share it can train. Returns whether it has got another level by that, or its first.
  bool admit(ClientId client, double capability);

 private:
  std::vector<double> shares_;
  bool declared_ = false;
  std::vector<std::uint8_t> level_;  // by client; kUnknown: has not declared its own yet
};

// The level of each client, by client: level_counts() of each, in an order drawn by one shuffle. The
// same for every planner of a run, so that runs of one seed compare planners and not populations.
std::vector<std::uint8_t> assign_levels(const Levels& levels, std::size_t clients, const Rng& run);

// A number of lowest terms.
struct Fraction {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 1;
  bool operator==(const Fraction&) const = default;
};

// The fraction of the smallest denominator, at most 1000, whose nearest double is `value` in (0, 1]:
// 0.2 is 1/5, 0.125 is 1/8. Refuses a value that is no such fraction (0.3333).
Result<Fraction> exact_fraction(double value);

}  // namespace fedge::aggregation
