#include "privacy/differential/local_privacy.h"

#include <doctest/doctest.h>

#include <vector>

namespace fedge::privacy {

TEST_CASE("local privacy: what clients are told of it is read back") {
  const LocalPrivacySpec spec{.clipping_norm = 0.3,
                              .noise_multiplier = 1.7,
                              .fraction_bits = 21,
                              .max_participations = 12,
                              .delta = 1e-6};
  config::Table root;
  root.emplace("local_privacy", config::Value{to_table(spec), "test"});
  config::Reader reader(root, "", "test");
  const auto read = read_local_privacy(reader);
  REQUIRE(reader.finish());
  REQUIRE(read);
  CHECK(read->clipping_norm == spec.clipping_norm);
  CHECK(read->noise_multiplier == spec.noise_multiplier);
  CHECK(read->fraction_bits == spec.fraction_bits);
  CHECK(read->max_participations == spec.max_participations);
  CHECK(read->delta == spec.delta);
  const config::Table none;
  config::Reader empty(none, "", "test");
  CHECK_FALSE(read_local_privacy(empty));
}

TEST_CASE("local privacy: a description that leaves a key out, or has no noise, is refused") {
  LocalPrivacySpec spec;
  for (const char* key :
       {"clipping_norm", "noise_multiplier", "fraction_bits", "max_participations", "delta"}) {
    CAPTURE(key);
    config::Table section = to_table(spec);
    section.erase(key);
    config::Table root;
    root.emplace("local_privacy", config::Value{section, "test"});
    config::Reader reader(root, "", "test");
    read_local_privacy(reader);
    const auto finished = reader.finish();
    REQUIRE_FALSE(finished);
    CHECK(finished.error().message.find(key) != std::string::npos);
  }
  spec.noise_multiplier = 0;
  config::Table root;
  root.emplace("local_privacy", config::Value{to_table(spec), "test"});
  config::Reader reader(root, "", "test");
  read_local_privacy(reader);
  CHECK_FALSE(reader.finish());
}

// Values of Balle and Wang's analytic Gaussian, computed independently: sigma 3.730632 for (1, 1e-5); a
// hundred releases with noise 10 equal one with noise 1, epsilon 4.377178.
TEST_CASE("local privacy: the guarantee is that of all updates that a client may send") {
  const auto epsilon = [](const std::vector<NoisedUpdates>& updates) {
    return *gaussian_epsilon(updates, 1e-5);
  };
  CHECK(epsilon({{3.730632, 1}}) == doctest::Approx(1).epsilon(1e-5));
  CHECK(epsilon({{10, 100}}) == doctest::Approx(4.377178).epsilon(1e-5));
  // Half of the updates with noise 10, and the equivalent of the other half with twice the noise.
  CHECK(epsilon({{10, 50}, {20, 200}}) == doctest::Approx(4.377178).epsilon(1e-5));
  CHECK(epsilon({}) == 0);
}

}  // namespace fedge::privacy
