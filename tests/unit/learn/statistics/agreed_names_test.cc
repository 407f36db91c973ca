// Categorical columns on whose values the clients agree without naming them.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "learn/data/kinds.h"
#include "learn/statistics/federated_statistics.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using test::TemporaryDirectory;

const std::string kAgreed = R"(dataset = "csv"
name = "t"
numeric = ["x"]
missing = ["?"]
categorical = [{ column = "fixed", values = ["a", "b"] }, { column = "color", most = 3 }]
target = "y"
classes = ["0", "1"]
normalise = "federated"
partition = { kind = "own", clients = 2 }
split = { test = 0 }
)";

// The samples of a file with these colors, as its client has them.
Dataset colored(const std::vector<std::string>& colors, const std::string& schema = kAgreed) {
  const TemporaryDirectory directory;
  auto spec = test::data_spec(schema);
  REQUIRE_MESSAGE(spec, spec.error().message);
  std::string text = "x,fixed,color,y\n";
  for (std::size_t i = 0; i < colors.size(); ++i)
    text += std::to_string(i) + (i % 2 == 0 ? ",a," : ",b,") + colors[i] + "," + std::to_string(i % 2) + "\n";
  spec->directory = test::write_text(directory.path() / "t.csv", text).string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  auto data = (*source)->load(*spec, Split::kTrain);
  REQUIRE_MESSAGE(data, data.error().message);
  return std::move(*data);
}

std::vector<std::uint32_t> all_of(const Dataset& data) {
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  return samples;
}

// The statistics of these clients together.
FederatedStatistics agreed(std::initializer_list<const Dataset*> clients) {
  const auto spec = test::data_spec(kAgreed);
  REQUIRE(spec);
  const auto info = describe(*spec);
  REQUIRE(info);
  auto statistics = FederatedStatistics::create(*info);
  REQUIRE(statistics);
  while (!statistics->complete()) {
    std::vector<std::int64_t> total(statistics->shape().size());
    for (const Dataset* data : clients) {
      const auto sums = count_values(statistics->shape(), *data, all_of(*data), statistics->edges());
      REQUIRE_MESSAGE(sums, sums.error().message);
      add_counts(total, *sums);
    }
    statistics->take(total);
  }
  return std::move(*statistics);
}

// The features of the column of colors, of one sample after the other.
std::vector<float> color_features(const Dataset& data, const Normalisation& by) {
  std::vector<float> inputs(data.size() * data.shape.size());
  data.read_inputs(0, inputs);
  normalise(data.columns, by, inputs);
  std::vector<float> colors;
  for (std::size_t i = 0; i < data.size(); ++i)
    colors.insert(colors.end(), inputs.begin() + static_cast<std::ptrdiff_t>(i * 6 + 3),
                  inputs.begin() + static_cast<std::ptrdiff_t>(i * 6 + 6));
  return colors;
}

using Features = std::vector<float>;

}  // namespace

TEST_CASE("agreed names: clients that know different names get the same feature for the same name") {
  const Dataset one = colored({"red", "red", "blue", "red"});
  const Dataset other = colored({"green", "blue", "?", "blue", "blue"});
  const FederatedStatistics statistics = agreed({&one, &other});
  const Normalisation by = statistics.normalisation();
  // blue 4, red 3, green 1
  CHECK(color_features(one, by) == Features{0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0});
  CHECK(color_features(other, by) == Features{0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0});
  // A client that joins later: names in another order, of which one is known to nobody.
  CHECK(color_features(colored({"pink", "green"}), by) == Features{0, 0, 0, 0, 0, 1});

  const DataStatistics result = statistics.result();
  REQUIRE(result.columns.size() == 2);
  CHECK(result.columns[1].name == "color");
  CHECK(result.columns[1].agreed == std::vector<std::uint64_t>{4, 3, 1});
  CHECK(result.columns[1].count == 8);
  CHECK(result.columns[1].missing == 1);
  CHECK_FALSE(result.columns[1].median);
  // The columns beside it are what they are without it.
  CHECK(std::abs(result.columns[0].mean - (0 + 1 + 2 + 3 + 0 + 1 + 2 + 3 + 4) / 9.0) < 1e-3);
  std::vector<float> inputs(6);
  other.read_inputs(1, inputs);
  normalise(other.columns, by, inputs);
  CHECK(inputs[1] == 0);
  CHECK(inputs[2] == 1);
}

TEST_CASE("agreed names: with more names than features, the most frequent ones have them") {
  const Dataset data = colored({"a", "b", "b", "c", "c", "c", "d", "d", "d", "d", "e"});
  const FederatedStatistics statistics = agreed({&data});
  CHECK(statistics.result().columns[1].agreed == std::vector<std::uint64_t>{4, 3, 2});
  const Features features = color_features(data, statistics.normalisation());
  CHECK(Features(features.begin(), features.begin() + 9) == Features{0, 0, 0, 0, 0, 1, 0, 0, 1});
  CHECK(Features(features.end() - 6, features.end()) == Features{1, 0, 0, 0, 0, 0});
}

TEST_CASE("agreed names: the same name however a number or its blanks are written, and no other") {
  const Dataset data = colored({"1", "1.0", " 1", "+1e0", "one", "0", "-0"});
  const FederatedStatistics statistics = agreed({&data});
  CHECK(statistics.result().columns[1].agreed == std::vector<std::uint64_t>{4, 2, 1});
}

TEST_CASE("agreed names: a column without names, and with a single one") {
  const Dataset missing = colored({"?", "?"});
  const FederatedStatistics none = agreed({&missing});
  CHECK(none.result().columns[1].agreed.empty());
  CHECK(none.result().columns[1].missing == 2);
  CHECK(color_features(colored({"red"}), none.normalisation()) == Features{0, 0, 0});
  const Dataset red = colored({"red", "red"});
  const FederatedStatistics one = agreed({&red});
  CHECK(color_features(colored({"red", "blue"}), one.normalisation()) == Features{1, 0, 0, 0, 0, 0});
}

TEST_CASE("agreed names: rare names are told apart, whatever the most frequent one's count") {
  // So many that some of the rare ones are in one of the first bins.
  constexpr std::size_t kRare = 24;
  std::vector<std::string> colors(5000, "frequent");
  for (std::size_t i = 0; i < kRare; ++i) colors.push_back("rare" + std::to_string(i));
  std::string wide = kAgreed;
  wide.replace(wide.find("most = 3"), 8, "most = 30");
  const Dataset data = colored(colors, wide);
  const auto spec = test::data_spec(wide);
  REQUIRE(spec);
  const auto statistics = statistics_of(*describe(*spec), data, all_of(data));
  REQUIRE(statistics);
  std::vector<std::uint64_t> expected(1 + kRare, 1);
  expected[0] = 5000;
  CHECK(statistics->result().columns[1].agreed == expected);
}

TEST_CASE("agreed names: what a liar counts below 0 has no feature") {
  const auto spec = test::data_spec(kAgreed);
  REQUIRE(spec);
  auto statistics = FederatedStatistics::create(*describe(*spec));
  REQUIRE(statistics);
  const StatisticsShape shape = statistics->shape();
  const Dataset data = colored({"red", "blue"});
  while (!statistics->complete()) {
    auto total = *count_values(shape, data, all_of(data), statistics->edges());
    std::vector<std::int64_t> lies(shape.size());
    lies[StatisticsShape::kClients] = 1;
    lies[StatisticsShape::kSamples] = lies[StatisticsShape::kLabels] = 9;
    for (std::size_t c = 0; c < 2; ++c) lies[shape.column(c) + StatisticsShape::kBins] = 9;
    CHECK(check_counts(shape, lies, 9));
    add_counts(total, lies);
    statistics->take(total);
  }
  CHECK(statistics->result().columns[1].agreed == std::vector<std::uint64_t>{1, 1});
  for (const float deviation : statistics->normalisation().deviation) CHECK(deviation > 0);
}

TEST_CASE("agreed names: places are positive, finite and rarely the same") {
  std::set<float> places;
  for (int i = 0; i < 3000; ++i) {
    const float place = place_of_name("name " + std::to_string(i));
    CHECK(place > 0);
    CHECK(std::isfinite(place));
    places.insert(place);
  }
  CHECK(places.size() >= 2998);
  CHECK(places.lower_bound(1.0F) != places.begin());
  // As docs/PROTOCOL.md describes it: Python's hashlib.
  CHECK(std::bit_cast<std::uint32_t>(place_of_name("red")) == 0x57ce247cU);
}

TEST_CASE("agreed names: a column without values needs federated normalisation") {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kAgreed;
    text.replace(text.find(from), from.size(), to);
    const auto spec = test::data_spec(text);
    return spec ? std::string("no error") : spec.error().message;
  };
  CHECK(error("normalise = \"federated\"\n", "").find("needs data.normalise = \"federated\"") !=
        std::string::npos);
  CHECK(error("most = 3", "most = 3, values = [\"red\"]").find("most: has no effect beside values") !=
        std::string::npos);
  CHECK(error("most = 3", "most = 65").find("out of range") != std::string::npos);
  CHECK(error("{ column = \"color\", most = 3 }", "{ column = \"color\" }") == "no error");
}

}  // namespace fedge::learn
