// Models of earlier rounds in a run's results (run.keep_models).
#include "server/report/model_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "server/report/results_place.h"
#include "server/report/run_output.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

using KeptRounds = std::vector<std::uint64_t>;

run::RunConfig keeping(std::uint32_t models, std::uint32_t every = 1) {
  run::RunConfig config;
  config.name = "kept";
  config.keep_models = models;
  config.keep_models_every = every;
  return config;
}

// A model whose two values are `value`.
FinalModel model_with(float value, std::vector<std::string> exclude = {}) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {2});
  FinalModel model{nullptr, ParameterVector(std::move(layout))};
  for (float& each : model.values.values()) each = value;
  if (!exclude.empty()) {
    TrackDescription track;
    track.exclude = std::move(exclude);
    model.track = std::make_shared<const TrackDescription>(std::move(track));
  }
  return model;
}

template <class... Models>
std::vector<FinalModel> list_of(Models... models) {
  std::vector<FinalModel> list;
  (list.push_back(std::move(models)), ...);
  return list;
}

void keep(const test::TemporaryDirectory& place, const run::RunConfig& config, std::uint64_t round) {
  const auto models = list_of(model_with(static_cast<float>(round)));
  REQUIRE(keep_models(place.path(), {.config = config, .round = round}, models));
}

float value_in(const std::filesystem::path& file) {
  const auto read = read_safetensors(file, 1 << 20);
  REQUIRE_MESSAGE(read, read.error().message);
  return read->values.values()[0];
}

}  // namespace

TEST_CASE("model files: the models of the last rounds are kept, and nothing else is removed") {
  const test::TemporaryDirectory place;
  const auto config = keeping(3);
  REQUIRE(make_directory(place.path() / "models"));
  for (const char* name : {"round-x.safetensors", "notes.txt", "round-000001.txt"})
    REQUIRE(write_file_atomic(place.path() / "models" / name, "mine"));
  for (std::uint64_t round = 1; round <= 5; ++round) {
    keep(place, config, round);
    CHECK(kept_rounds(place.path()).size() == std::min<std::uint64_t>(round, 3));
  }
  CHECK(kept_rounds(place.path()) == KeptRounds{3, 4, 5});
  for (const std::uint64_t round : {3U, 4U, 5U})
    CHECK(value_in(kept_model(place.path(), round)) == static_cast<float>(round));
  for (const char* name : {"round-x.safetensors", "notes.txt", "round-000001.txt"})
    CHECK(std::filesystem::exists(place.path() / "models" / name));
}

TEST_CASE("model files: rounds with more than six digits are in order, too") {
  const test::TemporaryDirectory place;
  for (const std::uint64_t round : {999'999U, 1'000'000U, 1'000'001U}) keep(place, keeping(2), round);
  CHECK(kept_rounds(place.path()) == KeptRounds{1'000'000, 1'000'001});
}

TEST_CASE("model files: a round that is computed again replaces its model") {
  const test::TemporaryDirectory place;
  keep(place, keeping(2), 1);
  const auto again = list_of(model_with(77));
  const auto config = keeping(2);
  REQUIRE(keep_models(place.path(), {.config = config, .round = 1}, again));
  CHECK(kept_rounds(place.path()) == KeptRounds{1});
  CHECK(value_in(kept_model(place.path(), 1)) == 77);
}

TEST_CASE("model files: which rounds are kept") {
  CHECK_FALSE(keeps_model(keeping(0), 1));
  CHECK(keeps_model(keeping(1), 1));
  CHECK_FALSE(keeps_model(keeping(1, 5), 4));
  CHECK(keeps_model(keeping(1, 5), 10));
}

TEST_CASE("model files: each track has a file that says whom it excludes, and old ones go together") {
  const test::TemporaryDirectory place;
  const auto config = keeping(1);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    const auto models = list_of(model_with(1), model_with(2, {"b", "a"}));
    REQUIRE(keep_models(place.path(), {.config = config, .round = round, .version = "9.9"}, models));
  }
  TrackDescription track;
  track.exclude = {"b", "a"};
  const auto read = read_safetensors(kept_model(place.path(), 2, track), 1 << 20);
  REQUIRE(read);
  CHECK(read->values.values()[0] == 2);
  CHECK(read->metadata.at("exclude") == "b,a");
  CHECK(read->metadata.at("round") == "2");
  CHECK(read->metadata.at("fedge_version") == "9.9");
  CHECK(read->metadata.at("model_hash") == to_hex(model_hash(read->values.values())));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(place.path() / "models"))
    ++files;
  CHECK(files == 2);
}

TEST_CASE(
    "model files: a run that continues after a round loses the models of later ones, and a new run loses "
    "all") {
  const test::TemporaryDirectory place;
  for (std::uint64_t round = 1; round <= 4; ++round) keep(place, keeping(9), round);
  remove_models_after(place.path(), 2);
  CHECK(kept_rounds(place.path()) == KeptRounds{1, 2});
  REQUIRE(remove_results(place.path(), ""));
  CHECK(kept_rounds(place.path()).empty());
}

TEST_CASE("model files: a directory that cannot be written is an error with its name") {
  const test::TemporaryDirectory place;
  REQUIRE(write_file_atomic(place.path() / "models", "a file"));
  const auto models = list_of(model_with(1));
  const auto config = keeping(1);
  const auto kept = keep_models(place.path(), {.config = config, .round = 1}, models);
  REQUIRE_FALSE(kept);
  CHECK(kept.error().message.find((place.path() / "models").string()) != std::string::npos);
}

}  // namespace fedge::server
