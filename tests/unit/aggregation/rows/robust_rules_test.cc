#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "aggregation/aggregators/robust/rules.h"
#include "tests/support/aggregation.h"

namespace fedge::aggregation {
namespace {

using Values = std::vector<float>;

const std::vector<std::string> kRules = {"median", "trimmed_mean",     "krum",          "multi_krum",
                                         "bulyan", "geometric_median", "centered_clip", "clipped_mean"};

std::vector<Update> updates_of(const std::vector<Values>& rows) {
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < rows.size(); ++client)
    updates.push_back(test_update(client, rows[client]));
  return updates;
}

// Returns the rule's result for these updates of clients 0, 1, 2, ...
std::vector<double> result(const std::string& rule, const std::vector<Values>& rows,
                           const std::string& options = "") {
  Sequential sequential;
  const auto aggregator = make_aggregator(rule, test_context(rows[0].size()), options);
  REQUIRE(aggregator->add(updates_of(rows), sequential));
  return aggregate_of(*aggregator, rows[0].size());
}

// Returns the rule's error for this number of updates.
Error refusal(const std::string& rule, std::size_t updates, const std::string& options = "") {
  Sequential sequential;
  const auto aggregator = make_aggregator(rule, test_context(1), options);
  REQUIRE(aggregator->add(updates_of(std::vector<Values>(updates, Values{1})), sequential));
  const auto prepared = aggregator->prepare(sequential);
  CHECK(aggregator->covered().empty() == !prepared);
  return prepared ? Error{ErrorCode::kInvalid, "nothing"} : prepared.error();
}

std::string config_error(const std::string& rule, const std::string& options) {
  const auto document = config::parse_toml(options, "run.toml");
  REQUIRE(document);
  config::Reader section(document->root, "strategy.aggregator", "run.toml");
  kind_named(aggregator_kinds(), rule).read(section);
  const auto finished = section.finish();
  return finished ? "" : finished.error().message;
}

std::size_t min_updates(const std::string& rule, const std::string& options = "") {
  return read_part(kind_named(aggregator_kinds(), rule), options).min_updates;
}

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("median: the middle value of each parameter, of an even number the mean of two") {
  CHECK(result("median", {{1, -5}, {9, 0}, {2, 7}}) == Doubles{2, 0});
  CHECK(result("median", {{1, -5}, {9, 0}, {2, 7}, {4, -1}}) == Doubles{3, -0.5});
  CHECK(result("median", {{4, 8}}) == Doubles{4, 8});
  CHECK(result("median", {{4, 8}, {5, 0}}) == Doubles{4.5, 4});
}

TEST_CASE("trimmed mean: drops as many low as high values") {
  const std::vector<Values> rows = {{100}, {1}, {-50}, {3}, {5}};
  CHECK(result("trimmed_mean", rows, "trim = 1") == Doubles{3});
  CHECK(result("trimmed_mean", rows, "trim = 2") == Doubles{3});
  CHECK(result("trimmed_mean", rows, "trim = 0")[0] == doctest::Approx(59.0 / 5));
  CHECK(result("trimmed_mean", rows) == Doubles{3});                  // a fifth of 5 is 1
  CHECK(result("trimmed_mean", {{1}, {2}, {6}, {7}}) == Doubles{4});  // a fifth of 4 is 0
}

TEST_CASE("krum: the update whose nearest others are nearest, of equals the lowest client") {
  // n = 5, f = 1: two neighbours. Scores: 0: 1 + 4 = 5; 1: 1 + 1 = 2; 2: 1 + 4 = 5; 10: 1 + 64; 11: 1 + 81.
  const std::vector<Values> line = {{0}, {1}, {2}, {10}, {11}};
  CHECK(result("krum", line, "byzantine = 1") == Doubles{1});
  // f = 0: three of five neighbours. 0: 1+4+100, 1: 1+1+81, 2: 1+4+64, 10: 1+64+81, 11: 1+81+100.
  CHECK(result("krum", line, "byzantine = 0") == Doubles{2});
  // All distances are equal.
  CHECK(result("krum", {{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}) == Doubles{2, 0, 0});
}

TEST_CASE("multi-krum: the mean of those with the lowest scores, all but the hostile by default") {
  const std::vector<Values> line = {{0}, {1}, {2}, {10}, {11}};
  // Scores with two neighbours: 5, 2, 5, 65, 82.
  CHECK(result("multi_krum", line, "byzantine = 1\nselect = 1") == Doubles{1});
  CHECK(result("multi_krum", line, "byzantine = 1\nselect = 2") == Doubles{0.5});
  CHECK(result("multi_krum", line, "byzantine = 1") == Doubles{3.25});
  CHECK(result("multi_krum", line) == Doubles{3.25});
  CHECK(result("multi_krum", line, "byzantine = 1\nselect = 5")[0] == doctest::Approx(24.0 / 5));
}

TEST_CASE("bulyan: hand-computed, seven updates of which one is far away") {
  // n = 7, f = 1: bulyan selects five updates and averages the three closest to their median. Krum selects
  // among the remaining updates with 4, 3, 2, 1, 1 neighbours:
  //   of 0 1 2 3 4 5 100   scores 30 15 10 10 15 30 ...   2
  //   of 0 1 3 4 5 100     26 14 9 14 21 ...              3
  //   of 0 1 4 5 100       17 10 10 17 ...                1
  //   of 0 4 5 100         16 1 1 ...                     4
  //   of 0 5 100           25 25 ...                      0
  // Selected 0 1 2 3 4: median 2, closest 1 2 3.
  const std::vector<Values> line = {{0}, {1}, {2}, {3}, {4}, {5}, {100}};
  CHECK(result("bulyan", line, "byzantine = 1") == Doubles{2});
  CHECK(result("bulyan", line) == Doubles{2});
  // Without hostile clients, all updates are selected and averaged.
  CHECK(result("bulyan", {{0}, {1}, {8}}, "byzantine = 0") == Doubles{3});
}

TEST_CASE("bulyan: of ten it bears one, though a fifth is two") {
  std::vector<Values> rows(10, Values{3});
  rows[4] = {-200};
  CHECK(result("bulyan", rows) == Doubles{3});
  CHECK(refusal("bulyan", 10, "byzantine = 2").message ==
        "bulyan with byzantine = 2 requires at least 11 updates; this round has 10");
}

TEST_CASE("geometric median: one step of Weiszfeld by hand") {
  // The mean is 4. The distances 4, 3, 7 give weights 1/4, 1/3, 1/7 for 0, 1, 11.
  const double weights = 1.0 / 4 + 1.0 / 3 + 1.0 / 7;
  CHECK(result("geometric_median", {{0}, {1}, {11}}, "iterations = 1")[0] ==
        doctest::Approx((1.0 / 3 + 11.0 / 7) / weights).epsilon(1e-12));
}

TEST_CASE("geometric median: counts samples, and a majority's point wins") {
  Sequential sequential;
  const auto aggregator = make_aggregator("geometric_median", test_context(2), "iterations = 200");
  const std::vector<Update> updates = {test_update(0, {1, 2}, 10), test_update(1, {7, 7}, 3),
                                       test_update(2, {-9, 4}, 3)};
  REQUIRE(aggregator->add(updates, sequential));
  const auto z = aggregate_of(*aggregator, 2);
  CHECK(z[0] == doctest::Approx(1.0).epsilon(1e-4));
  CHECK(z[1] == doctest::Approx(2.0).epsilon(1e-4));
}

TEST_CASE("centered clip: by hand, and it goes on from the last round's aggregate") {
  Sequential sequential;
  const auto aggregator = make_aggregator("centered_clip", test_context(1), "radius = 2");
  // From 0, the clipped differences are 1, 2, 2. The next round starts from 5/3: all three differences are
  // clipped to 2.
  REQUIRE(aggregator->add(updates_of({{1}, {2}, {50}}), sequential));
  CHECK(aggregate_of(*aggregator, 1)[0] == doctest::Approx(5.0 / 3));
  aggregator->clear();
  REQUIRE(aggregator->add(updates_of({{100}, {100}}), sequential));
  CHECK(aggregate_of(*aggregator, 1)[0] == doctest::Approx(5.0 / 3 + 2));
}

TEST_CASE("centered clip: every iteration clips around where the last one ended") {
  // 0 -> (1 + 2 + 2) / 3 = 5/3 -> 5/3 + (-2/3 + 1/3 + 2) / 3 = 20/9.
  CHECK(result("centered_clip", {{1}, {2}, {50}}, "radius = 2\niterations = 2")[0] ==
        doctest::Approx(20.0 / 9));
}

TEST_CASE("clipped mean: weighted by samples, shortened to a number or to the median norm") {
  Sequential sequential;
  const std::vector<Update> updates = {test_update(0, {3, 4}, 1), test_update(1, {0, 1}, 2),
                                       test_update(2, {-20, 0}, 1)};
  const auto clipped = [&](const std::string& options) {
    const auto aggregator = make_aggregator("clipped_mean", test_context(2), options);
    REQUIRE(aggregator->add(updates, sequential));
    return aggregate_of(*aggregator, 2);
  };
  // The norms are 5, 1 and 20; the median is 5.
  const auto to_median = clipped("");
  CHECK(to_median[0] == doctest::Approx(-0.5));
  CHECK(to_median[1] == doctest::Approx(1.5));
  const auto to_two = clipped("clip_norm = 2");
  CHECK(to_two[0] == doctest::Approx((1.2 - 2) / 4));
  CHECK(to_two[1] == doctest::Approx((1.6 + 2) / 4));
}

TEST_CASE("robust rules: too few updates are told what is needed, after bucketing in buckets") {
  for (const std::string& rule : kRules) CHECK(refusal(rule, 0).message == "no update has arrived");
  for (const std::string& rule : kRules) CHECK(refusal(rule, 0).code == ErrorCode::kUnavailable);
  CHECK(refusal("krum", 2).message ==
        "krum with byzantine = 0 requires at least 3 updates; this round has 2");
  CHECK(refusal("krum", 6, "byzantine = 2").message ==
        "krum with byzantine = 2 requires at least 7 updates; this round has 6");
  CHECK(refusal("multi_krum", 7, "byzantine = 2\nselect = 8").message ==
        "multi_krum with select = 8 requires at least 8 updates; this round has 7");
  CHECK(refusal("bulyan", 2).message == "bulyan requires at least 3 updates; this round has 2");
  CHECK(refusal("trimmed_mean", 4, "trim = 2").message ==
        "trimmed_mean with trim = 2 requires at least 5 updates; this round has 4");
  CHECK(refusal("krum", 6, "byzantine = 1\nbucket_size = 2").message ==
        "krum with byzantine = 1 requires at least 9 updates, which make 5 buckets of up to 2; this round "
        "has 6");
  CHECK(refusal("krum", 6, "byzantine = 2").code == ErrorCode::kUnavailable);
}

TEST_CASE("robust rules: more updates than can be compared are refused before memory is taken for them") {
  CHECK(refusal("krum", 8193).message ==
        "krum compares at most 8192 updates, but this round has 8193; raise strategy.aggregator.bucket_size");
  CHECK(refusal("krum", 2 * 8193, "bucket_size = 2").message ==
        "krum compares at most 8192 buckets of updates, but this round has 8193; raise "
        "strategy.aggregator.bucket_size");
  CHECK(refusal("bulyan", 8193).code == ErrorCode::kUnavailable);
  CHECK(refusal("median", 65'537).code == ErrorCode::kUnavailable);
  CHECK(refusal("median", 65'537, "bucket_size = 16").message == "nothing");
}

TEST_CASE("robust rules: what a part asks for at least is what its rule then accepts, and no less") {
  for (const auto& [rule, options] :
       std::vector<std::pair<std::string, std::string>>{{"median", ""},
                                                        {"trimmed_mean", "trim = 3"},
                                                        {"krum", "byzantine = 2"},
                                                        {"krum", ""},
                                                        {"multi_krum", "byzantine = 1\nselect = 9"},
                                                        {"bulyan", "byzantine = 2"},
                                                        {"bulyan", ""},
                                                        {"krum", "byzantine = 1\nbucket_size = 3"},
                                                        {"bulyan", "byzantine = 1\nbucket_size = 2"}}) {
    CAPTURE(rule);
    CAPTURE(options);
    const std::size_t least = min_updates(rule, options);
    CHECK(refusal(rule, least, options).message == "nothing");
    CHECK(refusal(rule, least - 1, options).code == ErrorCode::kUnavailable);
  }
  CHECK(min_updates("median") == 1);
  CHECK(min_updates("krum", "byzantine = 2") == 7);
  CHECK(min_updates("bulyan", "byzantine = 2\nbucket_size = 2") == 21);
}

TEST_CASE("robust rules: a partial update is refused") {
  Sequential sequential;
  for (const std::string& rule : kRules) {
    const auto aggregator = make_aggregator(rule, test_context(3));
    const Update update = test_update(4, {1, 2});
    const auto added = aggregator->add({&update, 1}, sequential);
    REQUIRE_FALSE(added);
    CHECK(added.error().message == "client 4's update covers 2 of 3 parameters; the aggregator " + rule +
                                       " requires updates of the whole model");
    CHECK_FALSE(kind_named(aggregator_kinds(), rule).traits.partial_updates);
  }
}

TEST_CASE("robust rules: a round after another sees nothing of its updates") {
  Sequential sequential;
  for (const std::string rule : {"median", "krum", "bulyan", "geometric_median", "clipped_mean"}) {
    CAPTURE(rule);
    const std::vector<Values> rows = {{1, 0}, {2, 5}, {4, 4}, {3, 3}};
    const auto aggregator = make_aggregator(rule, test_context(2));
    REQUIRE(aggregator->add(updates_of({{90, 9}, {80, 7}, {70, -5}, {60, 6}, {0, 1}}), sequential));
    aggregate_of(*aggregator, 2);
    aggregator->clear();
    CHECK(aggregator->covered().empty());
    CHECK_FALSE(aggregator->prepare(sequential));
    REQUIRE(aggregator->add(updates_of(rows), sequential));
    CHECK(aggregate_of(*aggregator, 2) == result(rule, rows));
    CHECK(aggregator->covered() == Coverage::all(2));
  }
}

TEST_CASE("robust rules: options out of range or at odds are refused by name") {
  CHECK(config_error("median", "memory_mb = 1\nclip_norm = 2.5\nbucket_size = 2") == "");
  CHECK(config_error("krum", "byzantine = -1\nmemory_mb = 1048576") == "");
  for (const auto& [rule, options, part] : std::vector<std::array<std::string, 3>>{
           {"median", "memory_mb = 0", "strategy.aggregator.memory_mb"},
           {"median", "trim = 1", "strategy.aggregator.trim"},
           {"krum", "bucket_size = 0", "strategy.aggregator.bucket_size"},
           {"bulyan", "byzantine = -2", "strategy.aggregator.byzantine"},
           {"geometric_median", "iterations = 0", "strategy.aggregator.iterations"},
           {"centered_clip", "radius = 0.0", "strategy.aggregator.radius"},
           {"median", "clip_norm = 1.0\nclip_to_median = true",
            "clip_norm and clip_to_median exclude each other"},
           {"clipped_mean", "clip_to_median = false",
            "is false and clip_norm is 0, so clipped_mean would not clip; set one of the two keys"}}) {
    CAPTURE(options);
    const std::string message = config_error(rule, options);
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.find("run.toml") != std::string::npos);
  }
}

}  // namespace fedge::aggregation
