// Accountant: the privacy cost of a run's releases so far, as a list of (mechanism, count). A ledger adds a
// round's mechanisms before the round is released. epsilon(delta) can be computed at any time, also with one
// more round. Equal mechanisms are merged: a thousand equal rounds cost and give the same as one entry with
// count 1000.
//
// There are two kinds, both upper bounds of the true epsilon:
//   rdp  the sum of Renyi curves (rdp.h): for every mechanism, in milliseconds
//   pld  privacy loss distributions (pld.h) or a closed form, but never more than rdp. Mechanisms with only
//        a curve (Skellam, distributed Gaussian, cohorts of fixed size) and more than 32 different
//        mechanisms are accounted for by rdp alone.
//
// A value type; not thread-safe.
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

  // kInvalid, and nothing is added, if a parameter is wrong (the error names it), or if mechanisms for adding
  // or removing a client would be combined with mechanisms for replacing one.
  Result<void> add(const Release& release);
  // Replaces all releases. Cached results of mechanisms that remain are kept.
  Result<void> replace(std::span<const Release> releases);

  // Infinity if there is no finite bound. kInvalid unless 0 < delta < 1.
  Result<double> epsilon(double delta) const;
  // The same for repeated calls, one after every release. `growing` is used while there is only one
  // mechanism.
  Result<double> epsilon(double delta, GrowingLoss& growing) const;
  // kInvalid unless epsilon >= 0.
  Result<double> delta(double epsilon) const;

  std::vector<Release> releases() const;

 private:
  struct Entry {
    Mechanism mechanism;
    Account account;
    std::uint64_t count;
    mutable std::vector<double> curve;  // at the recommended orders, computed when first needed
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
