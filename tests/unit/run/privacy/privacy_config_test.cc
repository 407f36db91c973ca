// Section [differential_privacy]: the noise that a budget requires, and the settings that it excludes.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/config/document.h"
#include "core/text.h"
#include "privacy/differential/accounting/calibration.h"
#include "privacy/differential/accounting/tree.h"
#include "run/privacy/privacy_ledger.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

Result<RunConfig> read_private(const std::string& text) {
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  return read_run_config(document);
}

RunConfig must_read(const std::string& text) {
  auto run = read_private(text);
  REQUIRE_MESSAGE(run, run.error().message);
  return std::move(*run);
}

void check_private_refused(const std::string& text, const std::string& words) {
  const auto run = read_private(text);
  REQUIRE_FALSE(run);
  INFO(run.error().message);
  CHECK(run.error().message.find(words) != std::string::npos);
}

const std::string kThousand =
    "[run]\nrounds = 100\n[data]\npartition = { clients = 1000 }\n[sampling]\nclients_per_round = 50\n";
const std::string kCentral = "[differential_privacy]\nkind = \"central\"\n";
const std::string kSecure = "[secure_aggregation]\nkind = \"compact\"\nmin_clients = 20\n";

}  // namespace

TEST_CASE("private run: without a word about it nothing changes") {
  const RunConfig plain = must_read("");
  CHECK_FALSE(plain.privacy.on());
  CHECK(plain.sampling.kind == "uniform");
  CHECK(plain.strategy.fixed_point.fraction_bits == 28);
  check_private_refused("[differential_privacy]\nepsilon = 3\n", "has no effect with kind = \"none\"");
  check_private_refused("[differential_privacy]\nkind = \"central\"\n",
                        "requires epsilon, noise_multiplier, or both");
}

TEST_CASE("private run: a budget sets the noise that all rounds together keep it with") {
  const RunConfig run = must_read(kThousand + kCentral + "epsilon = 2\ndelta = 1e-5\n");
  CHECK(run.sampling.kind == "poisson");
  CHECK(run.strategy.aggregator_kind == "uniform_mean");
  CHECK(run.privacy.sampling_rate == doctest::Approx(0.05));
  CHECK(run.privacy.expected_clients == doctest::Approx(50));
  CHECK(run.sampling.make()->traits().chance == run.privacy.sampling_rate);
  // The accountants have their own vectors; this test checks that just this many rounds fit the budget.
  CHECK(run.privacy.most_releases >= 100);
  CHECK(run.privacy.most_releases <= 101);
  privacy::Accountant accountant(privacy::AccountantKind::kPld);
  REQUIRE(accountant.add(run.privacy.release(run.privacy.sampling_rate, 100)));
  CHECK(*accountant.epsilon(1e-5) <= 2);
  CHECK(*accountant.epsilon(1e-5) > 1.99);
  const RunConfig renyi = must_read(kThousand + kCentral + "epsilon = 2\naccountant = \"rdp\"\n");
  CHECK(renyi.privacy.noise_multiplier > run.privacy.noise_multiplier);
}

TEST_CASE("private run: the sums are as fine as the noise can be") {
  for (const char* norm : {"1e-3", "1.0", "1e3"}) {
    CAPTURE(norm);
    const RunConfig run =
        must_read(kThousand + kCentral + "noise_multiplier = 1.0\nclipping_norm = " + norm + "\n");
    const double unit = static_cast<double>(run.privacy.weight) * run.strategy.fixed_point.unit();
    const double sigma = run.privacy.update_noise * run.privacy.clipping_norm * unit;
    CHECK(sigma <= 0x1p19);
    CHECK(sigma > 0x1p17);
    CHECK(run.privacy.most_releases == UINT64_MAX);
  }
}

TEST_CASE("private run: noise and budget together say how many rounds there are") {
  const RunConfig run = must_read(kThousand + kCentral + "noise_multiplier = 0.8\nepsilon = 2\n");
  const auto allowed = privacy::allowed_rounds(
      privacy::GaussianMechanism{.sampling_rate = run.privacy.sampling_rate, .noise_multiplier = 0.8},
      {2, 1e-5}, privacy::AccountantKind::kPld);
  REQUIRE(allowed);
  CHECK(run.privacy.most_releases == *allowed);
  CHECK(*allowed < 100);
  check_private_refused(kThousand + kCentral + "noise_multiplier = 0.1\nepsilon = 0.5\n",
                        "a single round already exceeds epsilon = 0.5 at delta = 1e-05");
}

TEST_CASE("private run: with another sampler than poisson every round costs as if everybody took part") {
  for (const std::string kind : {"uniform", "psp"}) {  // equivalent samplers
    const RunConfig run = must_read("[data]\npartition = { clients = 100 }\n[sampling]\nkind = \"" + kind +
                                    "\"\n" + kCentral + "noise_multiplier = 4.0\n");
    CHECK(run.privacy.sampling_rate == 1);
    CHECK(run.privacy.expected_clients == 10);
  }
}

TEST_CASE("private run: a delta at which one of its clients could be given away is refused") {
  const std::string thousand = kThousand + kCentral + "noise_multiplier = 4.0\n";
  check_private_refused(
      thousand + "delta = 0.001\n",
      "run.toml:10: differential_privacy.delta: is 0.001, but with data.partition.clients = 1000 it must be "
      "below 0.001");
  CHECK(must_read(thousand + "delta = 0.00099\n").privacy.delta == 0.00099);
}

TEST_CASE("private run: a norm that adapts takes its part of the noise") {
  const RunConfig run = must_read(kThousand + kCentral + "noise_multiplier = 1.0\nclipping = \"adaptive\"\n");
  CHECK(run.privacy.count_noise == doctest::Approx(2.5));
  // Andrew et al., theorem 1.
  CHECK(run.privacy.update_noise ==
        doctest::Approx(std::pow(1 - std::pow(2 * run.privacy.count_noise, -2), -0.5)));
  check_private_refused(
      kThousand + kCentral + "noise_multiplier = 8.0\nclipping = \"adaptive\"\ncount_noise = 2\n",
      "count_noise");
  check_private_refused(kThousand + kCentral + "noise_multiplier = 1.0\ntarget_quantile = 0.4\n",
                        "has no effect without clipping = \"adaptive\"");
}

TEST_CASE("private run: with noise of their own clients are told how much, and words hold it") {
  const RunConfig run =
      must_read(kThousand + kSecure +
                "[differential_privacy]\nkind = \"distributed\"\nepsilon = 4\nmax_participations = 6\n");
  CHECK(run.sampling.kind == "uniform");
  CHECK(run.privacy.noisy_clients == 18);  // of 20, 5 % of which may be corrupt
  const auto document = config::parse_toml(run.task_text, "run");
  REQUIRE(document);
  config::Reader root(document->root, "", "run");
  const auto masking = privacy::read_masking(root);
  REQUIRE(masking);
  CHECK(masking->clipping_norm == 1);
  CHECK(masking->noise_multiplier == doctest::Approx(run.privacy.noise_multiplier / std::sqrt(18.0)));
  CHECK(masking->fraction_bits == run.strategy.fixed_point.fraction_bits);
  // The sum of a thousand clipped updates and their noise fits into 31 bits.
  const double unit = std::ldexp(1, masking->fraction_bits);
  CHECK(1000 * unit + 12 * masking->noise_multiplier * unit * std::sqrt(1000.0) < 0x1p31);
  CHECK(masking->max_participations == 6);
  // A client's cost is that of six Gaussians. Sampling does not amplify it, since the coordinator knows the
  // cohort. Renyi accounting gives a little more than the exact value.
  privacy::Accountant exact(privacy::AccountantKind::kPld);
  REQUIRE(exact.add({privacy::GaussianMechanism{.noise_multiplier = run.privacy.noise_multiplier}, 6}));
  CHECK(*exact.epsilon(1e-5) <= 4);
  CHECK(*exact.epsilon(1e-5) > 3.4);
  PrivacyLedger ledger(run.privacy);
  for (int round = 0; round < 100; ++round) REQUIRE(ledger.charge(0.05));
  CHECK(*ledger.epsilon() <= 4);
  CHECK(*ledger.epsilon() > 3.99);
  check_private_refused(kThousand + kSecure + "[differential_privacy]\nkind = \"distributed\"\nepsilon = 4\n",
                        "raise max_participations");
}

TEST_CASE("private run: along a tree the cost is that of how often a client takes part") {
  const std::string tree =
      "[run]\nrounds = 20\n[data]\npartition = { clients = 1000 }\n[sampling]\nclients_per_round = 100\n"
      "[differential_privacy]\nkind = \"tree\"\n";
  const RunConfig twice =
      must_read(tree + "noise_multiplier = 5.0\nmax_participations = 2\nmin_separation = 9\n");
  CHECK(twice.sampling.kind == "uniform");
  CHECK(twice.privacy.expected_clients == 100);
  const auto zeta = privacy::tree_squared_sensitivity({20, 2, 9});
  REQUIRE(zeta);
  PrivacyLedger ledger(twice.privacy);
  for (int round = 0; round < 20; ++round) REQUIRE(ledger.charge(1));
  privacy::Accountant accountant(privacy::AccountantKind::kPld);
  REQUIRE(accountant.add({privacy::GaussianMechanism{.noise_multiplier = 5 / std::sqrt(*zeta)}, 1}));
  CHECK(*ledger.epsilon() == doctest::Approx(*accountant.epsilon(1e-5)));
  const RunConfig calibrated = must_read(tree + "epsilon = 3\nmax_participations = 2\nmin_separation = 9\n");
  CHECK(calibrated.privacy.most_releases >= 20);
  // Every track has a tree; the accounting uses one tree over all track phases, in which a client may take
  // part in any two.
  const RunConfig tracks = must_read(tree +
                                     "noise_multiplier = 5.0\nmax_participations = 2\nmin_separation = 9\n"
                                     "[tracks]\ndisagreement = [{ kind = \"inbound\", clients = [\"0\"], "
                                     "against = [\"1\"] }]\n");
  const auto mechanism = std::get<privacy::TreeMechanism>(tracks.privacy.release(1, 40).mechanism);
  CHECK(mechanism.participation == privacy::Participation{40, 2, 0});
  check_private_refused(tree + "epsilon = 3\n", "raise max_participations");
  check_private_refused(tree + "epsilon = 3\nmax_participations = 2\nmin_separation = 10\n",
                        "lower min_separation");
  check_private_refused(tree + "epsilon = 3\nmax_participations = 2\nclipping = \"adaptive\"\n",
                        "requires a constant clipping norm");
  check_private_refused(kThousand + kCentral + "epsilon = 3\nmax_participations = 2\n",
                        "has no effect without kind = \"distributed\", \"tree\" or \"local\"");
}

TEST_CASE("private run: noise of single updates is as much as lets all of a client's keep the budget") {
  const std::string local =
      "[run]\nrounds = 20\n[data]\npartition = { clients = 1000 }\n[sampling]\nclients_per_round = 100\n"
      "[differential_privacy]\nkind = \"local\"\nclipping_norm = 0.2\n";
  const RunConfig run = must_read(local + "epsilon = 8\nmax_participations = 2\n");
  CHECK(run.sampling.kind == "uniform");
  const auto document = config::parse_toml(run.task_text, "run");
  REQUIRE(document);
  config::Reader root(document->root, "", "run");
  const auto told = privacy::read_local_privacy(root);
  REQUIRE(told);
  CHECK(told->clipping_norm == 0.2);
  CHECK(told->max_participations == 2);
  const privacy::NoisedUpdates all{told->noise_multiplier, told->max_participations};
  const double guaranteed = *privacy::gaussian_epsilon({&all, 1}, told->delta);
  CHECK(guaranteed <= 8);
  CHECK(guaranteed > 7.99);
  // The finest resolution at which the noise can be drawn.
  const double units = std::ldexp(2 * 0.2 * told->noise_multiplier, told->fraction_bits);
  CHECK(units <= 0x1p19);
  CHECK(units > 0x1p18);
  // A client takes part in two rounds, however many rounds the run has.
  PrivacyLedger ledger(run.privacy);
  double before = 0;
  for (int round = 0; round < 20; ++round) {
    REQUIRE(ledger.charge(1));
    if (round == 0) before = *ledger.epsilon();
    if (round == 1) CHECK(*ledger.epsilon() > before);
  }
  CHECK(*ledger.epsilon() == doctest::Approx(guaranteed));
  // Any aggregator may be used.
  CHECK(must_read("[strategy]\nkind = \"median\"\n" + local + "epsilon = 8\nmax_participations = 2\n")
            .strategy.aggregator_kind == "median");
  check_private_refused(local + "epsilon = 8\n", "raise max_participations");
  check_private_refused(local + "epsilon = 8\nnoise_multiplier = 1.0\nmax_participations = 9\n",
                        "but max_participations is 9");
  check_private_refused(local + "epsilon = 8\nmax_participations = 2\nclipping = \"per_layer\"\n",
                        "use clipping = \"flat\"");
  check_private_refused(local + "epsilon = 0.01\nmax_participations = 2\n",
                        "raise strategy.max_abs, or lower clipping_norm");
  check_private_refused(local + "epsilon = 8\nmin_separation = 2\n", "has no effect without kind = \"tree\"");
  check_private_refused("[strategy]\nkind = \"fednova\"\n" + local + "epsilon = 8\nmax_participations = 2\n",
                        "reveal the size of a client's data");
}

TEST_CASE("private run: a grid that the coordinator takes for fine enough is so for a client") {
  std::size_t refused = 0;
  for (int exponent = -80; exponent < 40; ++exponent) {
    const double noise = std::exp2(exponent / 4.0);
    CAPTURE(noise);
    const auto run = read_private(kThousand + kSecure +
                                  "[differential_privacy]\nkind = \"distributed\"\nmax_participations = "
                                  "6\nclipping_norm = 0.7\nnoise_multiplier = " +
                                  number_text(noise) + "\n");
    if (!run) {
      CHECK(run.error().message.find("too coarse for this noise") != std::string::npos);
      ++refused;
      continue;
    }
    const auto document = config::parse_toml(run->task_text, "run");
    REQUIRE(document);
    const config::Table section = {{"masking", document->root.at("masking")}};
    config::Reader root(section, "", "run");
    REQUIRE(privacy::read_masking(root));
    const auto sound = root.finish();
    CHECK_MESSAGE(sound, sound.error().message);
  }
  CHECK(refused > 10);
  CHECK(refused < 60);
}

TEST_CASE(
    "private run: what tells others who was drawn goes with no guarantee that rests on nobody knowing") {
  const std::string drawn = kThousand + kCentral + "epsilon = 2\n";
  const std::string words = "reveals which clients were drawn";
  check_private_refused(drawn + "[dissemination]\nkind = \"swarm\"\n", words);
  const std::string status = "[status]\nevery_seconds = 60\nvia = \"directory\"\npublish = ";
  for (const char* field : {"freshness", "utility"})
    check_private_refused(drawn + status + "[\"" + field + "\"]\n", words);
  must_read(drawn + status + "[\"availability\"]\n");
  must_read(drawn + "[status]\nevery_seconds = 60\npublish = [\"freshness\"]\n");  // to the coordinator only
  // Accounting without amplification by sampling needs no secret cohort.
  const std::string uniform =
      "[run]\nrounds = 10\n[data]\npartition = { clients = 1000 }\n[sampling]\n"
      "kind = \"uniform\"\nclients_per_round = 50\n" +
      kCentral + "epsilon = 2\n";
  must_read(uniform + "[dissemination]\nkind = \"swarm\"\n");
}

TEST_CASE("private run: what no guarantee is known for is refused, and why is said") {
  const std::string noise = kCentral + "noise_multiplier = 1.0\n";
  check_private_refused("[strategy]\nkind = \"median\"\n" + noise,
                        "use the aggregator uniform_mean instead of median");
  check_private_refused("[strategy]\naggregator = { kind = \"mean\" }\n" + noise,
                        "uniform_mean instead of mean");
  check_private_refused("[strategy]\nkind = \"fedbuff\"\n" + noise, "strategy.schedule.kind = \"buffered\"");
  check_private_refused("[strategy]\nkind = \"scaffold\"\n" + noise, "control variate");
  check_private_refused("[dissemination]\nkind = \"serverless\"\n" + noise, "every client sees every update");
  check_private_refused("[sampling]\nkind = \"oort\"\n" + noise, "use poisson");
  check_private_refused("[sampling]\nkind = \"aw_psp\"\nlabels = \"sets\"\n" + noise, "use poisson");
  check_private_refused("[sampling]\nover_selection = 1.5\n" + noise, "over_selection has no effect");
  check_private_refused(
      "[status]\nlabels = \"dp_histogram\"\n[differential_privacy]\nkind = \"local\"\nnoise_multiplier = "
      "1.0\nmax_participations = 10\n",
      "so every client would refuse this run");
  check_private_refused(
      "[differential_privacy]\nkind = \"distributed\"\nnoise_multiplier = 1.0\nmax_participations = 10\n",
      "set secure_aggregation.kind");
  check_private_refused("[secure_aggregation]\nkind = \"exact\"\n" + noise + "clipping = \"adaptive\"\n",
                        "use clipping = \"flat\"");
}

TEST_CASE("private run: statistics and rounds keep the budget together") {
  const std::string own =
      "[run]\nrounds = 40\n[data]\ndataset = \"csv\"\nname = \"mine\"\nnumeric = [\"x\", \"z\"]\ntarget = "
      "\"y\"\nclasses = [\"0\", \"1\"]\nnormalise = \"federated\"\npartition = { kind = \"own\", clients = "
      "1000 "
      "}\n[model]\nkind = \"softmax\"\n[sampling]\nclients_per_round = 50\n[differential_privacy]\n";
  for (const std::string kind : {"kind = \"central\"\n", "kind = \"tree\"\nmax_participations = 4\n"}) {
    const RunConfig run = must_read(own + kind + "epsilon = 2\n");
    const DifferentialPrivacySpec& spec = run.privacy;
    CHECK(spec.statistics_whole > 0);
    privacy::Accountant alone(spec.accountant);
    REQUIRE(alone.add(spec.statistics_release(3)));
    CHECK(*alone.epsilon(spec.delta) == doctest::Approx(0.2).epsilon(0.01));
    // The noise in units of shares: of the stated multiple of what a client changes at most.
    const double norm = std::sqrt(1 + 1 + 3 * 2.0);
    CHECK(std::sqrt(static_cast<double>(spec.statistics_variance)) >=
          spec.statistics_noise * norm * static_cast<double>(spec.statistics_whole));
    privacy::Accountant all(spec.accountant);
    REQUIRE(all.add(spec.statistics_release(3)));
    REQUIRE(all.add(spec.release(spec.sampling_rate, 40)));
    CHECK(*all.epsilon(spec.delta) <= 2);
    CHECK(*all.epsilon(spec.delta) > 1.99);
    CHECK(spec.most_releases >= 40);
    CHECK(run.task_text.find("[statistics]\nwhole = " + std::to_string(spec.statistics_whole)) !=
          std::string::npos);
    // More noise on the rounds than without statistics.
    std::string constants = own;
    constants.replace(constants.find("normalise = \"federated\"\n"), 24, "");
    CHECK(must_read(constants + kind + "epsilon = 2\n").privacy.noise_multiplier < spec.noise_multiplier);
  }
  const std::string central = own + "kind = \"central\"\n";
  check_private_refused(central + "noise_multiplier = 1\n", "requires epsilon or statistics_noise");
  CHECK(must_read(central + "noise_multiplier = 1\nstatistics_noise = 3\n").privacy.statistics_noise == 3);
  check_private_refused(central + "epsilon = 1\nstatistics_noise = 1\n", "the statistics alone cost epsilon");
  check_private_refused(central + "epsilon = 1\nstatistics_noise = 1e6\n", "is too much for 2 columns");
  check_private_refused(kThousand + kCentral + "epsilon = 2\nstatistics_noise = 3\n",
                        "has no effect without data.normalise");
  check_private_refused(own + "kind = \"local\"\nepsilon = 8\nstatistics_noise = 3\n",
                        "has no effect without kind = \"central\" or \"tree\"");
}

}  // namespace fedge::run
