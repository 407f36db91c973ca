// Data sets that a program registers: what they return is checked, and only what is needed is loaded.
#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"
#include "learn/data/validation.h"
#include "tests/support/own/kinds.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::contains;

namespace {

Result<DataSpec> read_data_spec(const std::string& data) {
  fedge::test::register_own_kinds();
  const auto document = config::parse_toml("data = { " + data + " }\n", "run.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", document->name);
  TaskSpec spec = read_task(root);
  if (const auto right = root.finish(); !right) return right.error();
  return spec.data;
}

// The first error of an own data set with this fault: of its description, its samples, its labels or its
// clients' parts.
std::string failure_of_data(const std::string& dataset, const std::string& fault) {
  const auto spec =
      read_data_spec("dataset = \"" + dataset + "\", fault = \"" + fault + "\", partition = { clients = 2 }");
  if (!spec) return spec.error().message;
  const auto message = [](const auto& result) { return result ? std::string() : result.error().message; };
  for (const std::string& error : {message(describe(*spec)), message(partition_sizes(*spec, Rng(7))),
                                   message(load_part(*spec, 1, Rng(7))), message(load_train(*spec, Rng(7)))})
    if (!error.empty()) return error;
  return "";
}

const std::string kPart = "data.dataset: the data set ";

}  // namespace

TEST_CASE("own data set: a client loads the samples that its number has in the whole data set") {
  std::string dataset;
  SUBCASE("loaded whole") { dataset = "own_samples"; }
  SUBCASE("loaded in part") { dataset = "own_divisible"; }
  const auto spec = read_data_spec("dataset = \"" + dataset + "\", partition = { clients = 2 }");
  REQUIRE_MESSAGE(spec, spec.error().message);
  const auto all = load_train(*spec, Rng(7));
  REQUIRE(all);
  const auto parts = partition_for_clients(*spec, (*all)->labels, (*all)->classes, Rng(7));
  REQUIRE(parts);
  const auto sizes = partition_sizes(*spec, Rng(7));
  REQUIRE(sizes);
  for (std::size_t client = 0; client < 2; ++client) {
    const auto part = load_part(*spec, client, Rng(7));
    REQUIRE(part);
    REQUIRE((*part)->size() == parts->of(client).size());
    CHECK((*sizes)[client] == (*part)->size());
    for (std::size_t i = 0; i < (*part)->size(); ++i) {
      const std::uint32_t sample = parts->of(client)[i];
      float input[2];
      (*part)->read_inputs(i, input);
      CHECK(input[0] == static_cast<float>(sample));
      CHECK(input[1] == -static_cast<float>(sample));
      CHECK((*part)->labels[i] == sample % 2);
    }
  }
  CHECK((*load_test(*spec))->size() == 4);
  CHECK(class_names(*spec) == std::vector<std::string>{"even", "odd"});
  DataSpec validated = *spec;
  validated.validation = 0.4;
  CHECK((*load_evaluation(validated, Rng(7)))->size() == 4);
}

TEST_CASE("own data set: labels and a client's part are loaded alone if the data set can") {
  const auto spec =
      read_data_spec("dataset = \"own_divisible\", validation = 0.4, partition = { clients = 2 }");
  REQUIRE(spec);
  const int before = fedge::test::CountedSamples::loads;
  CHECK(partition_sizes(*spec, Rng(7)));
  CHECK(load_part(*spec, 1, Rng(7)));
  CHECK(load_evaluation(*spec, Rng(7)));
  CHECK(fedge::test::CountedSamples::loads == before);
}

TEST_CASE("own data set: an exception, an error or wrong samples are errors that name it") {
  const std::string named = kPart + "own_samples";
  const auto failure = [](const std::string& fault) { return failure_of_data("own_samples", fault); };
  CHECK(failure("").empty());
  CHECK(failure("throws") == named + " threw an exception: no such table");
  CHECK(failure("error") == named + ": there is no file");
  CHECK(failure("describe") == named + " threw an exception: index 7");
  CHECK(failure("tokens") == named + ": describe() returned a shape with `tokens`; set its trait `text`");
  CHECK(failure("described") == named + ": describe() returned 3 outputs; there must be one for each class");
  CHECK(failure("label") == named + ": labels() returned the label 2, but the data set has 2 classes");
  CHECK(failure("shape") == named + ": load() returned samples of another shape than describe()");
  CHECK(failure("nan") == named + ": load() returned a value that is not finite");
  CHECK(failure("fewer") == named + ": load() returned 20 values for 9 samples of 2");
  CHECK(contains(failure("null"), named + " is null"));
  const auto refused = read_data_spec("fault = \"nan\"");
  REQUIRE_FALSE(refused);
  CHECK(
      contains(refused.error().message,
               "data.fault: has no effect with dataset = \"fashion-mnist\"; it applies only to own_samples"));
}

TEST_CASE("own data set: wrong labels and parts are errors that name it") {
  const std::string named = kPart + "own_divisible: ";
  const auto failure = [](const std::string& fault) { return failure_of_data("own_divisible", fault); };
  CHECK(failure("").empty());
  CHECK(failure("labels") == named + "labels() returned the label 2, but the data set has 2 classes");
  CHECK(failure("classes") == named + "labels() returned 3 classes, but describe() 2");
  for (const char* fault : {"one less", "others"})
    CHECK(failure(fault) == named + "load_chosen() returned other samples than the chosen ones");
}

TEST_CASE("own data set: an error of the partition is not one of the data set") {
  for (const std::string dataset : {"own_samples", "own_divisible"}) {
    const auto spec = read_data_spec("dataset = \"" + dataset + "\", partition = { clients = 500 }");
    REQUIRE(spec);
    const auto part = load_part(*spec, 1, Rng(7));
    REQUIRE_FALSE(part);
    CHECK_MESSAGE(!contains(part.error().message, dataset), part.error().message);
  }
}

TEST_CASE("own data set: the windows and tokens of a text are checked before they are used") {
  const std::string named = kPart + "own_text: load() returned ";
  const auto failure = [](const std::string& fault) {
    const auto spec = read_data_spec("dataset = \"own_text\", context = 4, fault = \"" + fault +
                                     "\", partition = { clients = 2 }");
    REQUIRE_MESSAGE(spec, spec.error().message);
    const auto part = load_part(*spec, 1, Rng(7));
    return part ? std::string() : part.error().message;
  };
  CHECK(failure("").empty());
  CHECK(failure("wide") == named + "a window of 5 targets, but the shape allows 1 to 4");
  CHECK(failure("no target") == named + "a window of 0 targets, but the shape allows 1 to 4");
  CHECK(failure("beyond") == named + "a window of 3 targets that begins at token 5, but only 8 tokens");
  CHECK(contains(failure("far"), "begins at token 4294967295, but only 8 tokens"));
  CHECK(failure("token") == named + "the token 4, but the vocabulary has 4");
  CHECK(failure("bytes") == named + "the bytes of 3 tokens, but the vocabulary has 4");
  CHECK(failure("windows") == named + "1 windows and 2 labels");
}

TEST_CASE("own data set: a text names its classes itself") {
  const auto spec = read_data_spec("dataset = \"own_text\"");
  REQUIRE(spec);
  CHECK(class_names(*spec) == std::vector<std::string>{"first", "second"});
}
