#include "run/privacy/privacy_ledger.h"

#include <doctest/doctest.h>

namespace fedge::run {
namespace {

// A specification whose budget permits exactly this many releases.
DifferentialPrivacySpec ledger_spec(std::uint64_t releases) {
  DifferentialPrivacySpec spec;
  spec.kind = DifferentialPrivacySpec::Kind::kCentral;
  spec.noise_multiplier = 1;
  spec.sampling_rate = 0.1;
  privacy::Accountant accountant(spec.accountant);
  REQUIRE(accountant.add(spec.release(spec.sampling_rate, releases)));
  spec.epsilon = *accountant.epsilon(spec.delta) + 1e-9;
  spec.most_releases = releases;
  return spec;
}

}  // namespace

TEST_CASE("privacy ledger: so many releases as the budget allows, and each costs something") {
  PrivacyLedger ledger(ledger_spec(3));
  double before = 0;
  CHECK(*ledger.epsilon() == 0);
  for (int release = 0; release < 3; ++release) {
    REQUIRE(ledger.charge(0.1));
    CHECK(*ledger.epsilon() > before);
    before = *ledger.epsilon();
  }
  const auto fourth = ledger.charge(0.1);
  REQUIRE_FALSE(fourth);
  CHECK(fourth.error().code == ErrorCode::kRefused);
  CHECK(fourth.error().message.find("would exceed differential_privacy.epsilon") != std::string::npos);
  CHECK(*ledger.epsilon() == before);
  CHECK(ledger.charges() == PrivacyLedger::Charges{{{0.1, 3}}});
}

TEST_CASE("privacy ledger: what a sampler really did is what is charged, never less than was planned") {
  PrivacyLedger planned(ledger_spec(20));
  PrivacyLedger dearer(ledger_spec(20));
  REQUIRE(planned.charge(0.01));
  CHECK(planned.charges() == PrivacyLedger::Charges{{{0.1, 1}}});
  REQUIRE(dearer.charge(0.5));
  CHECK(*dearer.epsilon() > *planned.epsilon());
  // Without amplification, one release exceeds this budget.
  PrivacyLedger once(ledger_spec(1));
  CHECK_FALSE(once.charge(1));
  CHECK(once.charges() == PrivacyLedger::Charges());
}

TEST_CASE("privacy ledger: it goes on from what was kept of it, and from nothing else") {
  const DifferentialPrivacySpec spec = ledger_spec(5);
  PrivacyLedger first(spec);
  for (int release = 0; release < 4; ++release) REQUIRE(first.charge(0.1));
  PrivacyLedger second(spec);
  REQUIRE(second.take_up(first.charges()));
  CHECK(*second.epsilon() == *first.epsilon());
  CHECK(second.charge(0.1));
  CHECK_FALSE(second.charge(0.1));
  for (const PrivacyLedger::Charges& wrong :
       {PrivacyLedger::Charges{{{0.05, 1}}}, PrivacyLedger::Charges{{{1.5, 1}}},
        PrivacyLedger::Charges{{{0.1, 0}}}, PrivacyLedger::Charges{{}, 1}})
    CHECK(second.take_up(wrong).error().code == ErrorCode::kCorrupt);
  CHECK(PrivacyLedger(DifferentialPrivacySpec()).take_up(first.charges()).error().code ==
        ErrorCode::kCorrupt);
}

TEST_CASE("privacy ledger: steps of statistics count against the budget, also after a restart") {
  DifferentialPrivacySpec spec = ledger_spec(1);
  spec.statistics_noise = 12;
  spec.statistics_whole = 4096;
  privacy::Accountant accountant(spec.accountant);
  REQUIRE(accountant.add(spec.release(spec.sampling_rate, 2)));
  REQUIRE(accountant.add(spec.statistics_release(3)));
  spec.epsilon = *accountant.epsilon(spec.delta) + 1e-9;
  spec.most_releases = 2;

  PrivacyLedger ledger(spec);
  double before = 0;
  for (int step = 0; step < 3; ++step) {
    REQUIRE(ledger.charge_statistics());
    CHECK(*ledger.epsilon() > before);
    before = *ledger.epsilon();
  }
  CHECK(ledger.charges().statistics == 3);
  PrivacyLedger later(spec);
  REQUIRE(later.take_up(ledger.charges()));
  CHECK(*later.epsilon() == before);
  REQUIRE(later.charge(0.1));
  REQUIRE(later.charge(0.1));
  CHECK(*later.epsilon() <= spec.epsilon);
  CHECK_FALSE(later.charge(0.1));
  CHECK_FALSE(later.charge_statistics());
  // Without the steps, more rounds would fit.
  PrivacyLedger forgetful(spec);
  for (int round = 0; round < 2; ++round) REQUIRE(forgetful.charge(0.1));
  CHECK(*forgetful.epsilon() < *later.epsilon());
}

}  // namespace fedge::run
