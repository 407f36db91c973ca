// PrivacyLedger: records the privacy cost of a run's releases and enforces its budget. It is stored together
// with the model of each release, so that a restart knows all releases. epsilon() composes incrementally, for
// calls after every release. Externally synchronised.
#pragma once

#include <cstdint>
#include <map>

#include "core/result.h"
#include "run/privacy/differential_privacy.h"

namespace fedge::run {

class PrivacyLedger {
 public:
  explicit PrivacyLedger(const DifferentialPrivacySpec& spec) : spec_(spec), accountant_(spec.accountant) {}

  // Counts one more release before it is made. In its round each client was drawn independently with at most
  // probability `chance`. kRefused, without counting it, if it would exceed the budget.
  Result<void> charge(double chance);
  // Counts one more step of the statistics, likewise.
  Result<void> charge_statistics();
  // The cost of all releases so far, at the run's delta; never decreases.
  Result<double> epsilon();

  // Number of releases, for saving and restoring.
  struct Charges {
    std::map<double, std::uint64_t> rounds{};  // by probability
    std::uint64_t statistics = 0;              // steps
    bool operator==(const Charges&) const = default;
  };
  const Charges& charges() const { return charges_; }
  // Restores saved charges; kCorrupt if they do not fit this run.
  Result<void> take_up(Charges charges);

 private:
  bool as_planned(const Charges& charges) const;
  Result<void> take(Charges charges);

  DifferentialPrivacySpec spec_;
  Charges charges_;
  privacy::Accountant accountant_;  // holds charges_ as of the last epsilon()
  privacy::GrowingLoss growing_;
  double epsilon_ = 0;
};

}  // namespace fedge::run
