// Texts as data: windows, groups as labels, parts for devices, evaluation in bits, and centralised training.
#include "learn/text/text_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/parallel.h"
#include "learn/data/batch.h"
#include "learn/data/validation.h"
#include "learn/evaluation/evaluate.h"
#include "learn/generate.h"
#include "learn/pretrain.h"
#include "learn/task.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

struct Texts {
  learn::test::TemporaryDirectory directory;
  TaskSpec spec;

  Texts() {
    write("a", "abcdefgh ", 1500);
    write("b", "the quick brown fox. ", 700);
    spec.data.dataset = "text";
    spec.data.directory = directory.path().string();
    spec.data.context = 16;
    spec.data.partition = {.kind = PartitionKind::kNatural, .clients = 2};
    spec.model = {.kind = "transformer", .language = {.layers = 1, .width = 16, .heads = 2}};
    spec.training.optimizer = OptimizerKind::kAdamW;
    spec.training.learning_rate = 0.01F;
    spec.training.batch_size = 8;
    spec.training.local_steps = 150;
  }
  void write(const std::string& name, const std::string& sentence, std::size_t times) const {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += sentence;
    directory.write(name + ".txt", {text.begin(), text.end()});
  }
};

}  // namespace

TEST_CASE("text data: a sample is a line or a paragraph, cut where it is longer than the context") {
  Texts texts;
  // 40 lines, of which the held-out text is the last part.
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "one line\r\nand another of it\n  \n\nthird, longer than the context is\n\n";
  texts.directory.write("a.txt", {text.begin(), text.end()});
  texts.directory.write("b.txt", {text.begin(), text.end()});
  const auto lengths = [&](TextUnit unit, std::size_t count) {
    texts.spec.data.unit = unit;
    const auto data = load_train(texts.spec.data, Rng(1));
    REQUIRE(data);
    std::vector<std::uint32_t> first;
    for (std::size_t i = 0; i < count; ++i) first.push_back((*data)->text.windows[i].targets);
    return first;
  };
  // Each token but the first of a sample's unit is a target: "one line\r" has 8, "and another of it" 16.
  CHECK(lengths(TextUnit::kLine, 5) == std::vector<std::uint32_t>{8, 16, 16, 16, 8});
  CHECK(lengths(TextUnit::kParagraph, 5) == std::vector<std::uint32_t>{16, 10, 16, 16, 16});
  CHECK(lengths(TextUnit::kWindow, 5) == std::vector<std::uint32_t>{16, 16, 16, 16, 16});
}

TEST_CASE("text data: classes of lengths take the place of groups, and Dirichlet distributes them") {
  Texts texts;
  std::string text;
  Rng rng(2);
  for (int i = 0; i < 2000; ++i) text += std::string(2 + rng.below(14), 'a') + "\n";
  texts.directory.write("a.txt", {text.begin(), text.end()});
  texts.directory.write("b.txt", {text.begin(), text.end()});
  DataSpec& spec = texts.spec.data;
  spec.unit = TextUnit::kLine;
  spec.length_classes = 5;
  spec.partition = {.kind = PartitionKind::kDirichlet, .clients = 5, .alpha = 1e6};
  const auto shares = [&](double alpha) {
    spec.partition.alpha = alpha;
    const auto data = load_train(spec, Rng(1));
    REQUIRE(data);
    const auto partition = partition_for_clients(spec, (*data)->labels, (*data)->classes, Rng(1));
    REQUIRE(partition);
    std::vector<int> held((*data)->size());
    std::vector<std::vector<double>> share(5, std::vector<double>(5));  // by class and client
    std::vector<double> total(5);
    for (std::size_t client = 0; client < 5; ++client)
      for (const std::uint32_t sample : partition->of(client)) {
        ++held[sample];
        ++share[(*data)->labels[sample]][client];
        ++total[(*data)->labels[sample]];
      }
    // A disjoint cover.
    CHECK(std::ranges::all_of(held, [](int times) { return times == 1; }));
    for (std::size_t i = 0; i < (*data)->size(); ++i)
      for (std::size_t j = 0; j < 20; ++j)
        if ((*data)->text.windows[i].targets < (*data)->text.windows[j].targets)
          CHECK((*data)->labels[i] <= (*data)->labels[j]);
    for (std::size_t c = 0; c < 5; ++c) {
      CHECK(total[c] > 0.1 * static_cast<double>((*data)->size()));
      for (double& part : share[c]) part /= total[c];
    }
    return share;
  };
  for (const auto& of_class : shares(1e6))
    for (const double share : of_class) CHECK(share == doctest::Approx(0.2).epsilon(0.05));
  spec.partition.min_size = 0;
  for (const auto& of_class : shares(0.001)) CHECK(std::ranges::max(of_class) > 0.95);
  CHECK(shares(0.001) == shares(0.001));
}

TEST_CASE("text data: windows follow one another, each predicts its next token, and none crosses groups") {
  const Texts texts;
  const auto data = load_train(texts.spec.data, Rng(1));
  REQUIRE(data);
  const Dataset& d = **data;
  CHECK(d.shape.tokens);
  CHECK(d.target().outputs == 96);
  CHECK(d.classes == 2);
  CHECK(d.class_names == std::vector<std::string>{"a", "b"});
  const Tokenizer ascii = Tokenizer::ascii();
  std::string said[2];
  for (std::size_t i = 0; i < d.size(); ++i) {
    const auto& window = d.text.windows[i];
    REQUIRE(window.targets >= 1);
    REQUIRE(window.targets <= 16);
    const bool last = i + 1 == d.size() || d.labels[i + 1] != d.labels[i];
    if (!last) CHECK(d.text.windows[i + 1].start == window.start + window.targets);
    said[d.labels[i]] += ascii.decode(std::span(d.text.tokens).subspan(window.start + 1, window.targets));
  }
  CHECK(said[0].starts_with("bcdefgh abcdefgh"));
  CHECK(said[1].starts_with("he quick brown fox. the"));
  CHECK(said[0].find('q') == std::string::npos);

  const auto samples = std::vector<std::uint32_t>{0, static_cast<std::uint32_t>(d.size() - 1)};
  BatchBuffer buffer(16, true, 2);
  const Batch batch = buffer.read(d, samples);
  for (std::size_t t = 0; t + 1 < 16; ++t) CHECK(batch.targets[t] == batch.tokens[t + 1]);
  const std::size_t length = d.text.windows[samples[1]].targets;
  for (std::size_t t = 0; t < 16; ++t) CHECK((batch.targets[16 + t] == kNoToken) == (t >= length));
}

TEST_CASE("text data: a device's part is the windows that the simulator's client has, and nothing else") {
  const Texts texts;
  const auto whole = Task::build(texts.spec, 5);
  REQUIRE(whole);
  for (const std::uint32_t client : {0U, 1U}) {
    const auto part = Task::build_for(texts.spec, 5, ClientId(client));
    REQUIRE(part);
    const auto samples = (*whole)->samples_of(ClientId(client));
    REQUIRE((*part)->data().size() == samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::uint32_t here[] = {static_cast<std::uint32_t>(i)};
      BatchBuffer one(16, true, 1), other(16, true, 1);
      const Batch a = one.read((*part)->data(), here);
      const Batch b = other.read((*whole)->data(), std::span<const std::uint32_t>(samples).subspan(i, 1));
      CHECK(std::ranges::equal(a.tokens, b.tokens));
      CHECK(std::ranges::equal(a.targets, b.targets));
      CHECK((*part)->data().labels[i] == client);
    }
  }
}

TEST_CASE("text data: so many windows of what is held out are tested on, evenly spread over each group") {
  Texts texts;
  const auto all = load_test(texts.spec.data);
  texts.spec.data.test_windows = 5;
  const auto some = load_test(texts.spec.data);
  REQUIRE((all && some));
  CHECK((*all)->size() > 60);
  CHECK((*some)->size() == 10);
  std::size_t of_b = 0;
  for (const Label label : (*some)->labels) of_b += label;
  CHECK(of_b == 5);
  CHECK((*some)->text.windows[4].start > (*all)->text.windows[20].start);
}

TEST_CASE("text data: validation windows are of the training text, of each group, and no client has them") {
  Texts texts;
  texts.spec.data.validation = 0.25;
  const auto train = load_train(texts.spec.data, Rng(1));
  const auto validation = load_evaluation(texts.spec.data, Rng(5));
  const auto whole = Task::build(texts.spec, 5);
  REQUIRE((train && validation && whole));
  std::vector<std::size_t> counts(2), chosen(2);
  for (const Label label : (*train)->labels) ++counts[label];
  for (const Label label : (*validation)->labels) ++chosen[label];
  for (const std::size_t group : {0U, 1U}) {
    CHECK(chosen[group] == static_cast<std::size_t>(std::llround(0.25 * static_cast<double>(counts[group]))));
    CHECK((*whole)->samples_of(ClientId(static_cast<std::uint32_t>(group))).size() ==
          counts[group] - chosen[group]);
    const auto part = Task::build_for(texts.spec, 5, ClientId(static_cast<std::uint32_t>(group)));
    REQUIRE(part);
    CHECK((*part)->data().size() == counts[group] - chosen[group]);
  }
  texts.spec.data.test_windows = 5;
  const auto some = load_evaluation(texts.spec.data, Rng(5));
  REQUIRE(some);
  CHECK((*some)->size() == 10);
  CHECK((*some)->labels == std::vector<Label>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
}

TEST_CASE("text data: central training leaves out the validation windows") {
  Texts texts;
  const auto train = load_train(texts.spec.data, Rng(1));
  REQUIRE(train);
  CHECK(pretraining_samples(texts.spec, 5, **train, {})->size() == (*train)->size());
  texts.spec.data.validation = 0.25;
  const auto held = validation_samples(texts.spec.data, (*train)->labels, 2, Rng(5));
  const auto rest = pretraining_samples(texts.spec, 5, **train, {});
  REQUIRE((held && rest));
  CHECK(held->size() + rest->size() == (*train)->size());
  for (const std::uint32_t window : *held) CHECK(!std::ranges::binary_search(*rest, window));
}

TEST_CASE("text data: natural clients have whole groups, dealt in turn, and more than there are is refused") {
  const std::vector<Label> labels = {0, 0, 1, 2, 2, 3};
  const auto two = partition({.kind = PartitionKind::kNatural, .clients = 2}, labels, 4, Rng(1));
  REQUIRE(two);
  CHECK(std::ranges::equal(two->of(0), std::vector<std::uint32_t>{0, 1, 3, 4}));
  CHECK(std::ranges::equal(two->of(1), std::vector<std::uint32_t>{2, 5}));
  const auto five = partition({.kind = PartitionKind::kNatural, .clients = 5}, labels, 4, Rng(1));
  REQUIRE_FALSE(five);
  CHECK(five.error().message.find("data.partition.clients") != std::string::npos);
  CHECK(five.error().message.find("client 4 would get none of the 4 groups") != std::string::npos);
}

TEST_CASE("text data: a uniform model needs log2 of the vocabulary bits a byte, and groups count alike") {
  const Texts texts;
  const auto data = load_test(texts.spec.data);
  REQUIRE(data);
  const auto model = make_model(texts.spec.model, (*data)->shape, (*data)->target().outputs);
  REQUIRE(model);
  const std::vector<float> zeros((*model)->layout()->size());
  Sequential sequential;
  const Evaluation even = evaluate(**model, zeros, **data, sequential).value();
  CHECK(even.bits_per_byte == doctest::Approx(std::log2(96)).epsilon(1e-5));
  CHECK(even.group_bits_per_byte == doctest::Approx(std::log2(96)).epsilon(1e-5));
  CHECK(even.loss == doctest::Approx(std::log(96)).epsilon(1e-5));
}

TEST_CASE("text data: pretraining learns a text that says little, and the model goes on writing it") {
  const Texts texts;
  const auto data = load_train(texts.spec.data, Rng(1));
  REQUIRE(data);
  std::vector<float> losses;
  PretrainOptions options;
  options.report = [&](std::uint64_t, float loss, std::span<const float>) { losses.push_back(loss); };
  const auto trained = pretrain(texts.spec, 3, **data, options);
  REQUIRE(trained);
  CHECK(trained->steps == 150);
  REQUIRE(losses.size() == 150);
  CHECK(losses.front() == doctest::Approx(std::log(96)).epsilon(0.1));
  CHECK(losses.back() < 0.5F);
  const auto again = pretrain(texts.spec, 3, **data, {});
  REQUIRE(again);
  CHECK(model_hash(again->values.values()) == model_hash(trained->values.values()));
  const auto prompt = Tokenizer::ascii().encode("abcdefgh abc");
  const auto written =
      generate(*trained->model, trained->values.values(), prompt, {.tokens = 9, .temperature = 0}, Rng(1));
  CHECK(Tokenizer::ascii().decode(written) == "defgh abc");
}

TEST_CASE("text data: pretraining can leave labels out, and says so if nothing is left") {
  const Texts texts;
  const auto data = load_train(texts.spec.data, Rng(1));
  REQUIRE(data);
  PretrainOptions options;
  options.labels = {7};
  const auto none = pretrain(texts.spec, 3, **data, options);
  REQUIRE_FALSE(none);
  CHECK(none.error().message ==
        "no sample of the data set has one of the chosen labels, so there is nothing to train on");
}

TEST_CASE("text data: a cosine learning rate goes on from round to round as in one piece") {
  Texts texts;
  texts.spec.training.schedule = {.cosine = true, .warmup = 0.25, .final = 0.1, .rounds = 2};
  texts.spec.training.local_steps = 4;
  texts.spec.training.optimizer = OptimizerKind::kSgd;
  texts.spec.training.batch_size = 2048;  // all data in one batch: every first step has the same gradient
  const auto task = Task::build(texts.spec, 1);
  REQUIRE(task);
  // The first step of plain SGD moves the model by rate times gradient: the distance shows the rate.
  const auto moved = [&](std::uint32_t round, std::uint64_t steps) {
    std::vector<float> model((*task)->model().layout()->size());
    (*task)->model().initialise(model, Rng(2));
    std::vector<float> update(model.size());
    Trainer trainer = (*task)->make_trainer();
    const auto done = (*task)->train({.client = ClientId(0), .round = RoundNumber(round), .max_steps = steps},
                                     model, update, trainer);
    REQUIRE(done);
    double squares = 0;
    for (const float value : update) squares += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(squares);
  };
  // The first of 8 steps has half of the peak rate. The fifth comes a third of the way through the cosine
  // decay.
  const double half = moved(1, 1);
  const double third = moved(2, 1);
  const double share = 0.1 + 0.9 * (1 + std::cos(std::numbers::pi / 3)) / 2;
  CHECK(third / half == doctest::Approx(share / 0.5).epsilon(1e-3));
}

TEST_CASE("text data: a learning rate warms up in just as many steps as it is told to, and then falls") {
  Texts texts;
  texts.spec.training.schedule = {.cosine = true, .warmup = 0.25, .final = 0.1, .rounds = 2};
  texts.spec.training.local_steps = 4;
  texts.spec.training.optimizer = OptimizerKind::kSgd;
  texts.spec.training.learning_rate = 1e-4F;  // so small that the gradient hardly changes within a round
  texts.spec.training.batch_size = 2048;
  const auto task = Task::build(texts.spec, 1);
  REQUIRE(task);
  const auto moved = [&](std::uint64_t steps) {
    std::vector<float> model((*task)->model().layout()->size());
    (*task)->model().initialise(model, Rng(2));
    std::vector<float> update(model.size());
    Trainer trainer = (*task)->make_trainer();
    REQUIRE((*task)->train({.client = ClientId(0), .round = RoundNumber(1), .max_steps = steps}, model,
                           update, trainer));
    double squares = 0;
    for (const float value : update) squares += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(squares);
  };
  // Warm-up takes a quarter of 8 steps in two rounds: 1/2, then 1. The third step has the peak rate; the
  // fourth comes a sixth of the way through the cosine decay.
  const double fourth = 0.1 + 0.9 * (1 + std::cos(std::numbers::pi / 6)) / 2;
  const double first = moved(1);
  CHECK(moved(2) / first == doctest::Approx((0.5 + 1) / 0.5).epsilon(2e-3));
  CHECK(moved(3) / first == doctest::Approx((0.5 + 1 + 1) / 0.5).epsilon(2e-3));
  CHECK(moved(4) / first == doctest::Approx((0.5 + 1 + 1 + fourth) / 0.5).epsilon(2e-3));
}

TEST_CASE("text data: bits a byte are over the bytes that tokens stand for, and groups count alike") {
  // Three tokens of 1, 3 and 2 bytes, and a model that gives all the same probability: log2 3 bits each.
  Dataset data{.shape = {1, 4, 1, true}, .classes = 2, .floats = {}, .labels = {0, 1}};
  data.text.vocabulary = 3;
  data.text.bytes = {1, 3, 2};
  data.text.tokens = {2, 1, 1, 2, 0};
  data.text.windows = {{.start = 0, .targets = 2}, {.start = 3, .targets = 1}};
  const auto model =
      make_model({.kind = "transformer", .language = {.layers = 1, .width = 8, .heads = 2}}, data.shape, 3);
  REQUIRE(model);
  const std::vector<float> zeros((*model)->layout()->size());
  Sequential sequential;
  const Evaluation result = evaluate(**model, zeros, data, sequential).value();
  CHECK(result.bits_per_byte == doctest::Approx(3 * std::log2(3) / 7));
  CHECK(result.group_bits_per_byte == doctest::Approx((2 * std::log2(3) / 6 + std::log2(3) / 1) / 2));
}

TEST_CASE("text data: a text of which nothing is left to test on, or no text, is refused by its directory") {
  Texts texts;
  texts.write("a", "abcdefgh ", 50);
  texts.write("b", "abcdefgh ", 50);
  CHECK(load_train(texts.spec.data, Rng(1)));
  const auto test = load_test(texts.spec.data);
  REQUIRE_FALSE(test);
  CHECK(test.error().message.find("data.directory: the text is too short") != std::string::npos);
}

TEST_CASE("text data: attention that no memory holds is refused before it is asked for") {
  const ModelSpec spec{.kind = "transformer", .language = {.layers = 4, .width = 1024, .heads = 1024}};
  const auto model = make_model(spec, {1, 4096, 1, true}, 96);
  REQUIRE_FALSE(model);
  CHECK(model.error().message.find("data.context: the model would have more than 2^32 attention weights") !=
        std::string::npos);
}

TEST_CASE("text data: what a strategy adds to a client's training is left out of pretraining") {
  Texts texts;
  const auto data = load_train(texts.spec.data, Rng(1));
  REQUIRE(data);
  texts.spec.training.local_steps = 3;
  texts.spec.model.adapter.rank = 2;
  const auto plain = pretrain(texts.spec, 3, **data, {});
  texts.spec.training.objective = {.kind = "rank_pruning", .lambda = 1, .gamma = 0.5};
  texts.spec.training.nesting = NestingKind::kSum;
  const auto pruned = pretrain(texts.spec, 3, **data, {});
  REQUIRE((plain && pruned));
  CHECK(model_hash(pruned->values.values()) == model_hash(plain->values.values()));
}
