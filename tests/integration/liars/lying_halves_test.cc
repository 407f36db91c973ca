// Clients that lie in runs with split training, or ask for more of a long tokenizer than there is.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "protocol/limits.h"
#include "tests/integration/hostile_peer.h"
#include "tests/support/text.h"
#include "tests/unit/learn/text/long_tokenizer.h"

namespace fedge::test {
namespace {

constexpr std::size_t kWidth = 16;

// Texts for two clients.
struct LanguageTexts {
  LanguageTexts() {
    for (const char* name : {"a.txt", "b.txt"}) {
      std::string text;
      while (text.size() < 900) text += "the sea was calm. ";
      directory.write(name, {text.begin(), text.end()});
    }
  }
  // Settings of a run that both clients take part in.
  std::vector<std::string> settings(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {R"(data={dataset="text",context=16,validation=0.1,directory=")" +
                                        directory.path().string() +
                                        R"(",partition={kind="natural",clients=2}})",
                                    R"(model={kind="llama",layers=2,width=16,heads=2})",
                                    "run.wait_for_clients=2",
                                    "run.rounds=1",
                                    "run.round_deadline=2",
                                    "training.local_steps=2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  learn::test::TemporaryDirectory directory;
};

// Activations of one sequence of three tokens, as an honest client would send them first.
protocol::SplitValues activations(const protocol::TrainRequest& task) {
  return {.run = task.run,
          .round = task.round,
          .values = std::vector<std::byte>(3 * kWidth * sizeof(float)),
          .steps = 2,
          .total = 3,
          .last = true,
          .sent = {3},
          .targets = {2, 3, 4}};
}

}  // namespace

TEST_CASE(
    "lying halves: whoever sends activations that cannot be used is disconnected, and the round goes on") {
  const LanguageTexts texts;
  Federation f(2, texts.settings({"model.adapter.rank=2", "strategy.kind=splitft",
                                  "strategy.planner.cut=fixed", "strategy.planner.blocks=1"}));
  f.data_directories = {{"text", texts.directory.path()}};
  f.add_client();
  HostilePeer peer(f);
  std::size_t refusals = 0;
  std::string reason;
  peer.hear = [&](const protocol::Message& message) {
    if (const auto* refused = std::get_if<protocol::SplitRefused>(&message)) {
      ++refusals;
      reason = refused->reason;
    }
  };
  peer.join(f.token());
  peer.wait_for_task(1);
  protocol::SplitValues bad = activations(*peer.task);
  std::string expected;
  SUBCASE("too few bytes") {
    bad.values.resize(kWidth);
    expected = "values at the cut";
  }
  SUBCASE("values that are not numbers") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bad.values.data(), &nan, sizeof nan);
    expected = "are not finite";
  }
  SUBCASE("a part without its beginning") {
    bad = {.run = bad.run, .round = bad.round, .part = 1, .parts = 2, .values = bad.values};
    expected = "part";
  }
  SUBCASE("a round without a task") {
    bad.round = RoundNumber(9);
    expected = "no task of round 9";
  }
  while (!peer.closed && refusals < 10'000) {
    const std::size_t before = refusals;
    peer.link->send(bad);
    f.run_until([&] { return refusals > before || peer.closed; });
  }
  CHECK(peer.closed);
  CHECK(refusals > 0);
  CHECK_MESSAGE(contains(reason, expected), reason);
  CHECK(f.reported("more values than the coordinator could use"));
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 1);
  CHECK(f.rounds[0].clients_completed == 1);
}

TEST_CASE("lying halves: copies of a message that is being answered are dropped, and the next one waits") {
  const LanguageTexts texts;
  Federation f(2, texts.settings({"model.adapter.rank=2", "strategy.kind=splitft",
                                  "strategy.planner.cut=fixed", "strategy.planner.blocks=1"}));
  f.data_directories = {{"text", texts.directory.path()}};
  f.add_client();
  HostilePeer peer(f);
  std::vector<std::uint64_t> answered;
  std::size_t kept = 0;
  peer.hear = [&](const protocol::Message& message) {
    if (const auto* values = std::get_if<protocol::SplitValues>(&message)) {
      CHECK(values->kind == protocol::SplitKind::kGradients);
      CHECK(values->values.size() == 3 * kWidth * sizeof(float));
      answered.push_back(values->step);
    }
    if (std::holds_alternative<protocol::SplitKept>(message)) ++kept;
  };
  peer.join(f.token());
  peer.wait_for_task(1);
  // All of them arrive together, so that the coordinator is still computing when the second comes.
  protocol::SplitValues step = activations(*peer.task);
  for (int i = 0; i < 40; ++i) peer.link->send(step);
  step.step = 1;
  peer.link->send(step);
  const protocol::SplitEnded end{peer.task->run, peer.task->round, 2};
  for (int i = 0; i < 3; ++i) peer.link->send(end);
  f.run_until([&] { return kept > 0; });
  CHECK(answered.size() < 40);
  CHECK(answered.back() == 1);
  f.run_to_the_end();
}

TEST_CASE("lying halves: whoever asks for a tokenizer's parts again and again is disconnected") {
  const LanguageTexts texts;
  const auto tokenizer = texts.directory.path() / "tokenizer.bin";
  write_long_tokenizer(tokenizer);
  Federation f(2,
               texts.settings({R"(data.tokenizer={kind="vocabulary",file=")" + tokenizer.string() + "\"}"}));
  f.data_directories = {{"text", texts.directory.path()}};
  f.add_client();
  HostilePeer peer(f);
  std::size_t parts = 0;
  std::uint32_t total = 0;
  peer.hear = [&](const protocol::Message& message) {
    if (const auto* part = std::get_if<protocol::TokenizerPart>(&message)) {
      ++parts;
      total = part->total;
    }
  };
  peer.join(f.token());
  peer.wait_for_task(1);
  while (!peer.closed && parts < 1000) {
    const std::size_t before = parts;
    peer.link->send(protocol::TokenizerRequest{peer.task->run, 0});
    f.run_until([&] { return parts > before || peer.closed; });
  }
  CHECK(peer.closed);
  CHECK(parts == (total + protocol::kMaxTokenizerPart - 1) / protocol::kMaxTokenizerPart);
  CHECK(f.reported("requests for a tokenizer"));
  f.run_to_the_end();
  CHECK(f.rounds.at(0).clients_completed == 1);
}

}  // namespace fedge::test
