// PrivacyLedger: what a run's releases have cost so far, and that no more are made than its budget allows.
// Kept with the model that each release made, so that a restart knows of every one. Its cost is asked for
// after every release and composed from what is already known. Externally synchronised.
#pragma once

#include <cstdint>
#include <map>

#include "core/result.h"
#include "run/privacy/differential_privacy.h"

namespace fedge::run {

class PrivacyLedger {
 public:
  explicit PrivacyLedger(const DifferentialPrivacySpec& spec) : spec_(spec), accountant_(spec.accountant) {}

  // One more release, before it is made, of a round for which each client was drawn with at most this chance
  // whoever the others were. kRefused if it would exceed the budget; it is not counted then.
  Result<void> charge(double chance);
  // Of all so far, at the run's delta; never less than it was.
  Result<double> epsilon();

  // How often by chance, to be kept and taken up again.
  using Charges = std::map<double, std::uint64_t>;
  const Charges& charges() const { return charges_; }
  // kCorrupt for what is none.
  Result<void> take_up(Charges charges);

 private:
  bool as_planned(const Charges& charges) const;

  DifferentialPrivacySpec spec_;
  Charges charges_;
  privacy::Accountant accountant_;  // of charges_ when epsilon() was last asked for
  privacy::GrowingLoss growing_;
  double epsilon_ = 0;
};

}  // namespace fedge::run
