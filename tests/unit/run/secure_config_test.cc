// Section [secure_aggregation]: its effects on clients, and the settings that it excludes.
#include <doctest/doctest.h>

#include <cmath>

#include <string>

#include "core/config/document.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

Result<RunConfig> read_secure(const std::string& text) {
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  return read_run_config(document);
}

const std::string kExact = "[secure_aggregation]\nkind = \"exact\"\n";

void check_secure_refused(const std::string& text, const std::string& words) {
  const auto run = read_secure(text);
  REQUIRE_FALSE(run);
  INFO(run.error().message);
  CHECK(run.error().message.find(words) != std::string::npos);
}

// Reads the masking specification as a client does, from the task text.
privacy::MaskingSpec told(const RunConfig& run) {
  const auto document = config::parse_toml(run.task_text, "run");
  REQUIRE(document);
  config::Reader root(document->root, "", "run");
  const auto masking = privacy::read_masking(root);
  REQUIRE(masking);
  return *masking;
}

}  // namespace

TEST_CASE("secure run: clients are told what they mask with, and nobody else's run is changed by it") {
  const auto plain = read_secure("");
  REQUIRE(plain);
  CHECK_FALSE(plain->secure.on);
  CHECK(plain->task_text.find("masking") == std::string::npos);
  const auto run = read_secure(kExact + "min_clients = 4\ncorrupt = 0.2\ncomplete_below = 300\n");
  REQUIRE(run);
  CHECK(run->strategy.fixed_point.fraction_bits == plain->strategy.fixed_point.fraction_bits);
  const privacy::MaskingSpec masking = told(*run);
  CHECK(masking.codec == protocol::Codec::kMasked64);
  CHECK(masking.fraction_bits == 28);
  CHECK(masking.max_abs == 256);
  CHECK(masking.uniform_weight == 0);
  CHECK(masking.max_weight == run->secure.masking.max_weight);
  CHECK(masking.rules.min_survivors == 4);
  CHECK(masking.rules.assumptions.corrupt == 0.2);
  CHECK(masking.rules.complete_below == 300);
  const auto bounded = read_secure(kExact + "min_clients = 4\n[strategy]\nmax_weight = 500\n");
  REQUIRE_MESSAGE(bounded, bounded.error().message);
  CHECK(told(*bounded).max_weight == 500);
  // No sum can overflow, for any selection.
  CHECK(masking.max_weight * 10 <= run->strategy.fixed_point.max_total_weight().value());
  const auto drawn = read_secure(kExact +
                                 "[strategy]\nmax_abs = 1e9\nfraction_bits = 13\naggregator = { kind = "
                                 "\"uniform_mean\" }\n[sampling]\nkind = \"poisson\"\n[data]\npartition = { "
                                 "clients = 10000 }\n");
  REQUIRE_MESSAGE(drawn, drawn.error().message);
  CHECK(told(*drawn).uniform_weight * 10'000 <= drawn->strategy.fixed_point.max_total_weight().value());
}

TEST_CASE("secure run: words of 32 bits set the fixed point, as fine as so many updates leave room for") {
  const auto run = read_secure("[secure_aggregation]\nkind = \"compact\"\n[strategy]\nmax_abs = 1.0\n");
  REQUIRE(run);
  const privacy::MaskingSpec masking = told(*run);
  CHECK(masking.codec == protocol::Codec::kMasked32);
  CHECK(masking.fraction_bits == run->strategy.fixed_point.fraction_bits);
  CHECK(masking.fraction_bits == 13);  // 10 updates of 16384: 2^31 / 163840 = 13107
  const auto uniform = read_secure(
      "[secure_aggregation]\nkind = \"compact\"\n[strategy]\nmax_abs = 1.0\naggregator = { kind = "
      "\"uniform_mean\" }\n");
  REQUIRE(uniform);
  CHECK(told(*uniform).uniform_weight == 1);
  CHECK(told(*uniform).fraction_bits == 27);
  check_secure_refused(
      "[secure_aggregation]\nkind = \"compact\"\nmax_weight = 1048576\n[sampling]\nclients_per_round "
      "= 100\n[data]\npartition = { clients = 100 }\n",
      "too coarse in 32 bits");
}

TEST_CASE("secure run: what needs to see single updates is refused, and why is said") {
  check_secure_refused(kExact + "[strategy]\nkind = \"fednova\"\n",
                       "the aggregator fednova needs single updates");
  check_secure_refused(kExact + "[strategy]\naggregator = { kind = \"median\" }\n",
                       "needs single updates, which the coordinator cannot see; use mean or uniform_mean");
  check_secure_refused(kExact + "[strategy]\nkind = \"fedbuff\"\n", "secure aggregation needs rounds");
  check_secure_refused(kExact + "[strategy]\nkind = \"scaffold\"\n", "scaffold needs single updates");
  check_secure_refused(kExact + "[compression]\nkind = \"int8\"\n", "cannot be compressed");
  check_secure_refused(kExact + "[dissemination]\nkind = \"serverless\"\n",
                       "every client sees single updates");
  check_secure_refused(kExact + "[sampling]\nkind = \"oort\"\n", "needs to see or to weight single updates");
  check_secure_refused(kExact + "[sampling]\nkind = \"md\"\n", "needs to see or to weight single updates");
  check_secure_refused(kExact + "[tracks]\nlifting_rounds = 3\n", "lifting_rounds");
  check_secure_refused(kExact +
                           "[[tracks.disagreement]]\nkind = \"inbound\"\nclients = [\"0\"]\n"
                           "against = [\"3\"]\n",
                       "the difference between the sums of two tracks reveals");
  check_secure_refused(kExact + "[sampling]\nclients_per_round = 2\n",
                       "min_clients is 3, but a round has only 2 clients");
  check_secure_refused(kExact + "[sampling]\nkind = \"aw_psp\"\nlabels = \"sets\"\n", "labels");
  check_secure_refused(kExact + "[status]\nlabels = \"sets\"\n",
                       "run.toml:4: status.labels: must be \"none\": clients that mask their updates");
  // The noise is too small to hide anything.
  const std::string faint =
      kExact + "[differential_privacy]\nnoise_multiplier = 0.4\nmax_participations = 1000\nkind = ";
  check_secure_refused(faint +
                           "\"distributed\"\n[[tracks.disagreement]]\nkind = \"inbound\"\n"
                           "clients = [\"0\"]\nagainst = [\"3\"]\n",
                       "noise_multiplier = 0.4 is too small to hide the updates that one track excludes");
  check_secure_refused(faint + "\"local\"\n",
                       "noise_multiplier = 0.4 is too small for kind = \"local\" with secure_aggregation");
  check_secure_refused(kExact + "max_weight = 5\n", "has no effect without kind = \"compact\"");
  check_secure_refused("[secure_aggregation]\nmin_clients = 5\n", "has no effect with kind = \"none\"");
  check_secure_refused("[secure_aggregation]\nkind = \"exakt\"\n", "exact");
}

TEST_CASE("secure run: bits of 32-bit words leave room for every sum, and are never too coarse") {
  for (const std::size_t updates : {1U, 10U, 1000U, 60'000U})
    for (const std::uint64_t weight : {1U, 64U, 5000U})
      for (const double max_abs : {1e-3, 1.0, 3.7, 200.0}) {
        CAPTURE(updates);
        CAPTURE(weight);
        CAPTURE(max_abs);
        const auto bits = privacy::fraction_bits_of(updates, weight, max_abs);
        const auto sum = [&](int b) {
          return static_cast<double>(updates) *
                 (std::ceil(std::ldexp(max_abs * static_cast<double>(weight), b)) + 1);
        };
        if (bits) {
          CHECK(sum(*bits) <= 2147483648.0 + static_cast<double>(updates));
          CHECK(std::ldexp(max_abs, *bits) >= 256);
        } else {
          // Even the coarsest permitted resolution overflows.
          const int coarsest = static_cast<int>(std::ceil(std::log2(256 / max_abs)));
          CHECK(sum(coarsest) > 2147483647.0 - static_cast<double>(updates));
        }
      }
}

}  // namespace fedge::run
