#include "learn/completion.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "learn/pretrain.h"
#include "learn/text/text_data.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;

TEST_CASE("completion: held-out lines are cut behind their first colon and space, whole ones alone") {
  const std::vector<TextGroup> groups = {
      {"a", "seen: never\n", "Define x: one: two\nno cut\n: no prompt\nno rest: \nlast: y\nthird: z\n"},
      {"b", "", ""},
      {"c", "", "q: r\nwithout an end: s"}};
  const auto lines = completions(groups, 2);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].prompt == "Define x: ");
  CHECK(lines[0].reference == "one: two");
  CHECK(lines[1].prompt == "last: ");
  CHECK(lines[1].reference == "y");
  CHECK(lines[2].prompt == "q: ");
  CHECK(lines[2].reference == "r");
  CHECK(completions(groups, 1).size() == 2);
  CHECK(completions(groups, 9).size() == 4);
}

TEST_CASE(
    "completion: a model that knows one line ends that with ROUGE-L 1, and another as far as they agree") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "say: the sea is cold\n";
  const learn::test::TemporaryDirectory directory;
  directory.write("known.txt", {text.begin(), text.end()});
  TaskSpec spec;
  spec.data.dataset = "text";
  spec.data.directory = directory.path().string();
  spec.data.context = 32;
  spec.model.kind = "transformer";
  spec.model.language.layers = 1;
  spec.model.language.width = 16;
  spec.model.language.heads = 2;
  spec.training.optimizer = OptimizerKind::kAdamW;
  spec.training.learning_rate = 0.01F;
  spec.training.local_steps = 100;
  const auto data = load_text(spec.data, TextSplit::kTrain);
  REQUIRE(data);
  const auto trained = pretrain(spec, 1, *data, {});
  REQUIRE(trained);
  // LCS: 4 of 4 words; 3 words, of 4 in the model's line and 6 in the reference; none.
  const std::vector<Completion> lines = {
      {"say: ", "the sea is cold"}, {"say: ", "The deep grey sea was cold"}, {"say: ", "nothing"}};
  Sequential one;
  ThreadPool two(2);
  const auto score = [&](std::size_t count, Parallel& parallel) {
    return score_completions(*trained->model, trained->values.values(), Tokenizer::ascii(),
                             std::span(lines).first(count), parallel);
  };
  CHECK(score(1, one).f == doctest::Approx(1.0));
  CHECK(score(2, one).recall == doctest::Approx((1 + 3.0 / 6) / 2));
  CHECK(score(2, one).precision == doctest::Approx((1 + 3.0 / 4) / 2));
  CHECK(score(3, one).f == doctest::Approx((1 + 0.6) / 3));
  CHECK(score(3, two).f == score(3, one).f);
}
