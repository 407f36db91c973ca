#include "privacy/differential/accounting/accountant.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "privacy/differential/accounting/calibration.h"
#include "privacy/differential/accounting/gaussian.h"
#include "privacy/differential/accounting/rdp_curves.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

constexpr AccountantKind kBoth[] = {AccountantKind::kRdp, AccountantKind::kPld};

double epsilon_of(const Release& release, double delta, AccountantKind kind) {
  Accountant accountant(kind);
  REQUIRE(accountant.add(release));
  return *accountant.epsilon(delta);
}

GaussianMechanism sampled(double q, double sigma) { return {q, sigma}; }

std::string refusal(const Mechanism& mechanism) {
  Accountant accountant(AccountantKind::kRdp);
  const auto added = accountant.add({mechanism, 1});
  return added ? "" : added.error().message;
}

}  // namespace

TEST_CASE("accountant: the tight one says no more than the other, wherever one looks") {
  for (const double q : {0.001, 0.02, 0.3})
    for (const double sigma : {0.5, 2.0})
      for (const std::uint64_t steps : {std::uint64_t{1}, std::uint64_t{30}, std::uint64_t{2000}})
        for (const double delta : {1e-2, 1e-7}) {
          CAPTURE(q);
          CAPTURE(sigma);
          CAPTURE(steps);
          const Release release{sampled(q, sigma), steps};
          const double tight = epsilon_of(release, delta, AccountantKind::kPld);
          const double loose = epsilon_of(release, delta, AccountantKind::kRdp);
          CHECK(tight <= loose * (1 + 1e-6));
          CHECK(std::isfinite(tight));
          // The epsilon of one step is a lower bound.
          CHECK(tight >= sampled_gaussian_epsilon({q, sigma}, delta) * (1 - 1e-9));
        }
}

TEST_CASE("accountant: epsilon rises with steps and sampling, falls with noise and delta") {
  for (const AccountantKind kind : kBoth) {
    const auto rises = [&](const Release& less, double delta_less, const Release& more, double delta_more) {
      CHECK(epsilon_of(less, delta_less, kind) <= epsilon_of(more, delta_more, kind) * (1 + 2e-6));
    };
    const double qs[] = {0.005, 0.1, 0.6, 1};
    const double sigmas[] = {6, 2, 1, 0.6};
    for (std::size_t i = 0; i + 1 < std::size(qs); ++i)
      rises({sampled(qs[i], 1), 50}, 1e-6, {sampled(qs[i + 1], 1), 50}, 1e-6);
    for (std::size_t i = 0; i + 1 < std::size(sigmas); ++i)
      rises({sampled(0.02, sigmas[i]), 50}, 1e-6, {sampled(0.02, sigmas[i + 1]), 50}, 1e-6);
    for (const std::uint64_t steps : {1U, 2U, 10U, 1000U})
      rises({sampled(0.02, 1), steps}, 1e-6, {sampled(0.02, 1), steps + 1}, 1e-6);
    for (const double delta : {1e-2, 1e-4, 1e-8})
      rises({sampled(0.02, 1), 50}, delta, {sampled(0.02, 1), 50}, delta / 2);
  }
}

TEST_CASE("accountant: delta at the epsilon of a delta is that delta") {
  for (const AccountantKind kind : kBoth)
    for (const double delta : {1e-3, 1e-6, 1e-11}) {
      Accountant accountant(kind);
      REQUIRE(accountant.add({sampled(0.02, 0.9), 400}));
      const double epsilon = *accountant.epsilon(delta);
      CHECK(*accountant.delta(epsilon) == doctest::Approx(delta).epsilon(1e-4));
    }
}

TEST_CASE("accountant: nobody sampled costs nothing, everybody is the Gaussian, no noise has no bound") {
  for (const AccountantKind kind : kBoth) {
    CHECK(epsilon_of({sampled(0, 1), 100}, 1e-5, kind) == 0);
    CHECK(epsilon_of({sampled(0, 0), 100}, 1e-5, kind) == 0);
    CHECK(epsilon_of({sampled(0.1, 1), 0}, 1e-5, kind) == 0);
    CHECK(std::isinf(epsilon_of({sampled(0.1, 0), 1}, 1e-5, kind)));
    CHECK(std::isinf(epsilon_of({LaplaceMechanism{1, 0}, 1}, 1e-5, kind)));
    CHECK(std::isinf(epsilon_of({SkellamMechanism{1, 0, {}}, 1}, 1e-5, kind)));
    CHECK(std::isinf(epsilon_of({TreeMechanism{0, {8, 1, 0}}, 1}, 1e-5, kind)));
    CHECK(std::isinf(epsilon_of({DistributedGaussianMechanism{1, {0, 10}, {}}, 1}, 1e-5, kind)));
    CHECK(*Accountant(kind).epsilon(1e-5) == 0);
  }
  CHECK(epsilon_of({sampled(1, 10), 100}, 1e-5, AccountantKind::kPld) ==
        doctest::Approx(4.377178095681).epsilon(1e-11));
  // The result is continuous just below q = 1.
  CHECK(epsilon_of({sampled(1 - 1e-9, 10), 100}, 1e-5, AccountantKind::kPld) ==
        doctest::Approx(4.377178095681).epsilon(1e-5));
  CHECK(epsilon_of({sampled(1 - 1e-9, 10), 100}, 1e-5, AccountantKind::kRdp) ==
        doctest::Approx(epsilon_of({sampled(1, 10), 100}, 1e-5, AccountantKind::kRdp)).epsilon(1e-5));
}

TEST_CASE("accountant: extreme settings end, and end in a number or infinity") {
  for (const AccountantKind kind : kBoth)
    for (const double q : {1e-8, 0.5, 1 - 1e-12})
      for (const double sigma : {1e-3, 0.05, 1e3, 1e8})
        for (const std::uint64_t steps : {std::uint64_t{2}, std::uint64_t{1'000'000}}) {
          CAPTURE(q);
          CAPTURE(sigma);
          CAPTURE(steps);
          const double epsilon = epsilon_of({sampled(q, sigma), steps}, 1e-6, kind);
          CHECK(epsilon >= 0);
          CHECK(!std::isnan(epsilon));
        }
}

TEST_CASE("accountant: rounds one by one cost what they cost at once") {
  for (const AccountantKind kind : kBoth) {
    Accountant ledger(kind);
    double before = 0;
    for (int round = 1; round <= 6; ++round) {
      REQUIRE(ledger.add({sampled(0.05, 1.2), 1}));
      const double now = *ledger.epsilon(1e-6);
      CHECK(now >= before * (1 - 1e-6));
      before = now;
    }
    CHECK(ledger.releases().size() == 1);
    CHECK(before == epsilon_of({sampled(0.05, 1.2), 6}, 1e-6, kind));
  }
}

TEST_CASE("accountant: different rounds together, and mechanisms that only have a curve") {
  Accountant mixed(AccountantKind::kPld);
  REQUIRE(mixed.add({sampled(0.02, 1), 100}));
  REQUIRE(mixed.add({sampled(1, 20), 3}));
  REQUIRE(mixed.add({sampled(1, 30), 2}));
  const double tight = *mixed.epsilon(1e-6);
  CHECK(tight > epsilon_of({sampled(0.02, 1), 100}, 1e-6, AccountantKind::kPld));
  REQUIRE(mixed.add({SkellamMechanism{1, 400, {1, 1, 1}}, 1}));
  Accountant loose(AccountantKind::kRdp);
  for (const Release& release : mixed.releases()) REQUIRE(loose.add(release));
  CHECK(*mixed.epsilon(1e-6) == *loose.epsilon(1e-6));
  CHECK(*mixed.epsilon(1e-6) > tight);
}

TEST_CASE("accountant: the DP-FTRL of Gboard, by published figures") {
  const Release gboard{TreeMechanism{7, {2000, 6, 313}}, 1};
  CHECK(epsilon_of(gboard, 1e-10, AccountantKind::kRdp) == doctest::Approx(8.8986).epsilon(1e-4));
  CHECK(epsilon_of(gboard, 1e-10, AccountantKind::kPld) == doctest::Approx(8.52609).epsilon(1e-6));
}

TEST_CASE("accountant: cohorts of fixed size are never mixed with sampled ones") {
  Accountant accountant(AccountantKind::kPld);
  REQUIRE(accountant.add({FixedCohortMechanism{0.01, 2}, 100}));
  CHECK(*accountant.epsilon(1e-6) > 0);
  CHECK(!accountant.add({sampled(0.01, 1), 1}));
  CHECK(accountant.releases().size() == 1);
}

TEST_CASE("accountant: what is out of range is refused by name") {
  CHECK(refusal(sampled(-0.1, 1)).starts_with("sampling rate"));
  CHECK(refusal(sampled(1.5, 1)).starts_with("sampling rate"));
  CHECK(refusal(sampled(NAN, 1)).starts_with("sampling rate"));
  CHECK(refusal(sampled(0.1, -1)).starts_with("noise multiplier"));
  CHECK(refusal(sampled(0.1, NAN)).starts_with("noise multiplier"));
  CHECK(refusal(sampled(0.1, INFINITY)).starts_with("noise multiplier"));
  CHECK(refusal(LaplaceMechanism{1, -1}).starts_with("scale"));
  CHECK(refusal(SkellamMechanism{1, NAN, {}}).starts_with("variance"));
  CHECK(refusal(SkellamMechanism{1, 1, {2, 1, 1}}).starts_with("L1 sensitivity"));
  CHECK(refusal(SkellamMechanism{1, 1, {-1, 1, 1}}).starts_with("L2 sensitivity"));
  CHECK(refusal(DistributedGaussianMechanism{1, {1, 0}, {}}).starts_with("clients"));
  CHECK(refusal(DistributedGaussianMechanism{1, {1, 5}, {1, 1, 0}}).starts_with("dimension"));
  CHECK(refusal(TreeMechanism{1, {0, 1, 0}}).starts_with("number of rounds"));
  const Accountant accountant(AccountantKind::kPld);
  for (const double delta : {0.0, 1.0, -1.0, 2.0, static_cast<double>(NAN)})
    CHECK(accountant.epsilon(delta).error().message.starts_with("delta"));
  for (const double epsilon : {-1.0, static_cast<double>(NAN)})
    CHECK(accountant.delta(epsilon).error().message.starts_with("epsilon"));
}

TEST_CASE("calibration: the least noise for a guarantee keeps it, and a little less does not") {
  for (const AccountantKind kind : kBoth)
    for (const Release& release : {Release{sampled(0.01, 1), 500},
                                   {sampled(1, 1), 3},
                                   {LaplaceMechanism{1, 1}, 4},
                                   {TreeMechanism{1, {64, 2, 8}}, 1},
                                   {SkellamMechanism{1, 1, {10, 30, 16}}, 5}}) {
      const double noise = *calibrate_noise(release, {2, 1e-6}, kind);
      CHECK(epsilon_of({with_noise(release.mechanism, noise), release.count}, 1e-6, kind) <= 2);
      CHECK(epsilon_of({with_noise(release.mechanism, noise * 0.9999), release.count}, 1e-6, kind) > 2);
    }
  CHECK(*calibrate_noise({sampled(1, 1), 1}, {1, 1e-5}, AccountantKind::kPld) ==
        doctest::Approx(3.730631634815942).epsilon(2e-6));
  CHECK(*calibrate_noise({sampled(0, 1), 10}, {1, 1e-5}, AccountantKind::kPld) == 0);
  for (const Guarantee& none : {Guarantee{0, 1e-5}, {-1, 1e-5}, {1, 0}, {1, 1}, {NAN, 1e-5}, {1, NAN}})
    CHECK(!calibrate_noise({sampled(0.1, 1), 1}, none, AccountantKind::kRdp));
}

TEST_CASE("calibration: reference value, from above and closely") {
  for (const auto& vector : reference_vectors("calibration")) {
    const auto& params = vector["params"];
    const Release release{sampled(params["q"], 1), params["steps"]};
    const double got = *calibrate_noise(release, {params["epsilon"], params["delta"]}, AccountantKind::kPld);
    CHECK(got >= vector["value"].get<double>() * (1 - 1e-6));
    CHECK(got <= vector["value"].get<double>() * (1 + 2e-6));
  }
}

TEST_CASE("calibration: as many rounds as a guarantee allows, and not one more") {
  for (const AccountantKind kind : kBoth) {
    const std::uint64_t rounds = *allowed_rounds(sampled(0.02, 1), {4, 1e-6}, kind);
    REQUIRE(rounds > 10);
    CHECK(epsilon_of({sampled(0.02, 1), rounds}, 1e-6, kind) <= 4);
    CHECK(epsilon_of({sampled(0.02, 1), rounds + 1}, 1e-6, kind) > 4);
  }
  CHECK(*allowed_rounds(sampled(1, 0.5), {0.1, 1e-6}, AccountantKind::kRdp) == 0);
  CHECK(*allowed_rounds(sampled(0.1, 0), {5, 1e-6}, AccountantKind::kRdp) == 0);
  CHECK(*allowed_rounds(sampled(0, 1), {5, 1e-6}, AccountantKind::kRdp) == kMostRounds);
  // A tree of n levels covers 2^n - 1 steps at the cost of its levels.
  const std::uint64_t steps = *allowed_rounds(TreeMechanism{10, {1, 1, 0}}, {2, 1e-6}, AccountantKind::kPld);
  CHECK(std::has_single_bit(steps + 1));
}

}  // namespace fedge::privacy
