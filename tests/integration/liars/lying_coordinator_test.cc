// Real client daemons against coordinators that lie by a script (lying_coordinator.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/integration/liars/lying_coordinator.h"
#include "tests/integration/liars/wanted_scripts.h"
#include "tests/unit/client/secure_turn.h"

namespace fedge::test {
namespace {

using client::site::SecureTurn;

constexpr std::size_t kLies = 20;

// Lies to a client with --only-secure in runs that mask or claim to.
class LiesAboutMasks : public LyingCoordinator {
 public:
  explicit LiesAboutMasks(std::uint64_t seed) : LyingCoordinator(seed), plain_(site.work.text) {
    site.secure.required = true;
    masked_ = plain_ + config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}});
  }
  std::size_t offers = 0;
  std::size_t reveals = 0;

 private:
  // What determines an update: equal data gives equal values.
  struct Data {
    protocol::ObjectId model;
    RoundNumber round;
    auto operator<=>(const Data&) const = default;
  };
  using Attempt = std::pair<RunId, std::uint32_t>;

  std::string terms_of(RunId run) override { return below(4) == 0 ? plain_ : true_terms(run); }
  std::string true_terms(RunId run) const {
    return run.value() % 2 == 0 ? masked_ + "# another description of the same\n" : masked_;
  }

  void ask() override {
    const RunId run = any_run();
    const auto round = static_cast<std::uint32_t>(1 + below(3));
    cancel_all();
    twists_ = 0;
    if (below(3) == 0) {
      site.heard.clear();
      site.tell(task(run, round));  // without a session
      return wait_for_answer(run);
    }
    if (below(2) == 0) describe(run);
    site.work.text = true_terms(run);
    twists_ = below(2) == 0 ? 1 + below(3) : 0;
    const bool honest = twists_ == 0;
    turn_.emplace(site, round, ++attempts_, run);
    sessions_[{run, attempts_}] = {site.work.model.id(), RoundNumber(round)};
    turn_->begin();
    if (honest) {
      const bool answered = turn_->masks();
      REQUIRE_MESSAGE(answered, log());
      if (site.count<protocol::UpdateOffer>(run) > 0 && site.count<protocol::TaskFailed>(run) == 0)
        CHECK(turn_->reveals());
      return;
    }
    for (int i = 0; i < 6; ++i) {
      settle();
      turn_->hear();
      if (i == 4) turn_->sum(survivors());
    }
  }
  std::vector<ClientId> survivors() {
    std::vector<ClientId> some;
    for (std::uint32_t i = 0; i < 3; ++i)
      if (below(4) != 0) some.emplace_back(i);
    return some;
  }

  bool twist(protocol::Message& message) override {
    if (twists_ == 0 || below(2) == 0) return true;
    --twists_;
    if (auto* request = std::get_if<protocol::TrainRequest>(&message)) {
      request->secure_attempt = below(2) == 0 ? 0 : request->secure_attempt;
      if (below(2) == 0) request->coverage = Coverage::of({{0, 100}});
      return true;
    }
    if (auto* roster = std::get_if<protocol::SecureRoster>(&message)) {
      if (below(2) == 0) roster->threshold = 1;
      if (below(2) == 0) roster->degree = 1;
      if (below(2) == 0 && !roster->peers.empty()) roster->peers.pop_back();
      return below(4) != 0;
    }
    if (auto* shares = std::get_if<protocol::SecurePeerShares>(&message)) {
      if (below(2) == 0 && !shares->shares.empty()) shares->shares.pop_back();
      return below(4) != 0;
    }
    if (auto* told = std::get_if<protocol::SecureSurvivors>(&message)) {
      // Two different requests about the same sum.
      const auto all = told->numbers;
      if (!told->numbers.empty()) told->numbers.erase(told->numbers.begin() + below(told->numbers.size()));
      if (below(2) == 0 && site.link) site.link->send(protocol::SecureSurvivors{told->session, all});
      return true;
    }
    if (auto* consents = std::get_if<protocol::SecureConsents>(&message)) {
      if (!consents->consents.empty()) consents->consents.pop_back();
      return below(2) == 0;
    }
    return true;
  }

  void heard_too(const protocol::Message& message) override {
    if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) {
      ++offers;
      CHECK(protocol::is_masked(offer->update.codec));
      CHECK(offer->samples == SampleCount(1));
      CHECK(offer->train_loss == 0);
      CHECK(offer->norm == 0);
      CHECK(offer->loss_rms == 0);
    }
    if (const auto* unmask = std::get_if<protocol::SecureUnmask>(&message)) revealed(*unmask);
  }
  void revealed(const protocol::SecureUnmask& unmask) {
    const auto& session = unmask.session;
    const auto known = said_.emplace(std::pair(session.run, session.attempt), unmask);
    if (!known.second) {
      CHECK(known.first->second == unmask);  // the same answer to the same request
      return;
    }
    ++reveals;
    CHECK(unmask.survivors.size() + 1 >= 3);
    CHECK_MESSAGE(tasks_.emplace(session.run, session.task()).second,
                  "the masks of one task were taken away in two attempts");
    const auto data = sessions_.find({session.run, session.attempt});
    REQUIRE(data != sessions_.end());
    CHECK_MESSAGE(summed_.insert(data->second).second, "the same update is in two sums");
  }
  // Masked words are uniform: the highest 24 of their 64 bits are equal in one of 2^23.
  void left(const protocol::UpdateOffer& offer, const std::vector<std::byte>& bytes) override {
    std::size_t small = 0;
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      std::int64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (word >> 40 == 0 || word >> 40 == -1) ++small;
    }
    CHECK(bytes.size() == 8 * offer.update.coverage.count());
    CHECK(small < 3);
  }

  std::string plain_;
  std::string masked_;
  std::optional<SecureTurn> turn_;
  std::uint32_t attempts_ = 0;
  std::uint64_t twists_ = 0;
  std::map<Attempt, Data> sessions_;
  std::map<Attempt, protocol::SecureUnmask> said_;
  std::set<std::pair<RunId, TaskId>> tasks_;
  std::set<Data> summed_;
};

// Lies to a client with --max-epsilon, --require-noise or both, in runs whose clients add noise or claim to:
// with enough noise and few updates each, or with too little, and again under other terms after their end.
class LiesAboutNoise : public LyingCoordinator {
 public:
  explicit LiesAboutNoise(std::uint64_t seed) : LyingCoordinator(seed), plain_(site.work.text) {
    const std::uint32_t options = below(3);
    if (options != 0) site.max_epsilon = kMaxEpsilon;
    if (options != 1) site.require_noise = kMaxEpsilon;
  }
  // What all updates so far reveal together: one Gaussian mechanism with noise 1 / sqrt(told).
  double told() const { return told_; }
  std::size_t updates = 0;
  static constexpr double kMaxEpsilon = 1;

 private:
  std::string terms_of(RunId) override {
    constexpr const char* kNoises[] = {"40.0", "20.0", "10.0", "10.0", "5.0", "1.0", "0.01"};
    if (below(8) == 0) return plain_;
    return plain_ +
           "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = " + kNoises[below(std::size(kNoises))] +
           "\nfraction_bits = 14\nmax_participations = " + std::to_string(1 + below(6)) +
           "\ndelta = " + (below(2) == 0 ? "1e-5" : "0.01") + "\n";
  }
  void ask() override {
    const RunId run = any_run();
    if (below(2) == 0) describe(run);
    cancel_all();
    site.heard.clear();
    site.tell(task(run, 1 + below(6)));
    wait_for_answer(run);
  }
  void heard_too(const protocol::Message& message) override {
    const auto* offer = std::get_if<protocol::UpdateOffer>(&message);
    if (offer == nullptr) return;
    CHECK(offer->samples == SampleCount(1));
    CHECK(offer->train_loss == 0);
    CHECK(offer->loss_rms == 0);
  }
  // Measures the noise: its norm is far above that of the update, which is at most 1.
  void left(const protocol::UpdateOffer& offer, const std::vector<std::byte>& bytes) override {
    std::vector<float> values(offer.update.coverage.count());
    REQUIRE(bytes.size() == std::as_bytes(std::span(values)).size());
    std::memcpy(values.data(), bytes.data(), bytes.size());
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    // The noise of each value, relative to the sensitivity: twice the clipping norm.
    const double noise = std::sqrt(squares / static_cast<double>(values.size())) / 2;
    ++updates;
    told_ += 1 / (noise * noise);
    CHECK_MESSAGE(delta_at(kMaxEpsilon, 1 / std::sqrt(told_)) < 1.2e-5,
                  log() << "after " << updates << " updates");
  }
  // The delta of a Gaussian mechanism (Balle and Wang, ICML 2018, theorem 5).
  static double delta_at(double epsilon, double noise) {
    const auto below_normal = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
    return below_normal(1 / (2 * noise) - epsilon * noise) -
           std::exp(epsilon) * below_normal(-1 / (2 * noise) - epsilon * noise);
  }

  std::string plain_;
  double told_ = 0;
};

}  // namespace

TEST_CASE(
    "liars: whatever a coordinator says, nothing leaves a client that insists on masks without them, and no "
    "update is in two sums") {
  std::size_t offers = 0;
  std::size_t reveals = 0;
  const auto scripts = play_scripts(40, [&](std::uint64_t seed) {
    LiesAboutMasks liar(seed);
    liar.play(kLies);
    offers += liar.offers;
    reveals += liar.reveals;
  });
  MESSAGE(scripts << " scripts, " << offers << " masked updates, " << reveals << " sums");
  if (scripts > 10) CHECK(reveals > 0);  // otherwise nothing was tested
}

TEST_CASE(
    "liars: whatever a coordinator says, all that leaves a client tells at most what its owner allows") {
  std::size_t updates = 0;
  double most = 0;
  const auto scripts = play_scripts(20, [&](std::uint64_t seed) {
    LiesAboutNoise liar(seed);
    liar.play(2 * kLies);
    updates += liar.updates;
    most = std::max(most, liar.told());
  });
  MESSAGE(scripts << " scripts, " << updates << " noised updates; most told: noise " << 1 / std::sqrt(most));
  if (scripts > 10) CHECK(updates > scripts);
}

}  // namespace fedge::test
