// Accountant: what a run's releases have cost so far. A list of (mechanism, how often), to which a ledger
// adds a round's before the round is released; epsilon at a delta at any time, also with one more round.
// Equal mechanisms are merged, so that a thousand rounds alike cost and say the same as one entry counted a
// thousand times.
//
// Two ways to account, both upper bounds of the true epsilon at all times:
//   rdp  Renyi curves added up (rdp.h): for every mechanism, milliseconds
//   pld  privacy loss distributions (pld.h), or the closed form where there is one, and never more than rdp,
//   because
//        the smaller of two bounds is one. Mechanisms with only a curve (Skellam, distributed Gaussian,
//        cohorts of fixed size), and more than 32 different mechanisms, are accounted for by rdp alone.
//
// A value; not for use from two threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "privacy/differential/accounting/loss/pld.h"
#include "privacy/differential/accounting/mechanism.h"

namespace fedge::privacy {

enum class AccountantKind { kRdp, kPld };

struct Release {
  Mechanism mechanism;
  std::uint64_t count = 1;
};

class Accountant {
 public:
  explicit Accountant(AccountantKind kind) : kind_(kind) {}

  // kInvalid names the parameter that is wrong, or says that mechanisms for adding or removing a client
  // cannot be composed with those for replacing one; nothing is then added.
  Result<void> add(const Release& release);
  // These instead of all so far. What has been computed about a mechanism that stays is kept.
  Result<void> replace(std::span<const Release> releases);

  // Infinity if there is no bound. kInvalid unless 0 < delta < 1.
  Result<double> epsilon(double delta) const;
  // The same where it is asked for after every release: see GrowingLoss, which is used for one mechanism.
  Result<double> epsilon(double delta, GrowingLoss& growing) const;
  // With these releases besides, which are not added.
  Result<double> epsilon_with(const Release& next, double delta) const;
  // kInvalid unless epsilon >= 0.
  Result<double> delta(double epsilon) const;

  std::vector<Release> releases() const;

 private:
  struct Entry {
    Mechanism mechanism;
    Account account;
    std::uint64_t count;
    mutable std::vector<double> curve;  // at the recommended orders, once it was asked for
  };
  Result<double> epsilon(double delta, GrowingLoss* growing) const;
  RdpCurve curve() const;
  bool unbounded() const;
  bool has_losses() const;
  std::vector<RepeatedStep> losses() const;

  AccountantKind kind_;
  std::vector<Entry> entries_;
};

}  // namespace fedge::privacy
