// The coordinator's half of split trainings: equal to the whole model for clients with any cuts, in any
// order, with messages that come again; and what a client may not send.
#include "server/split/split_server.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "learn/split/lower_half.h"
#include "learn/submodel.h"
#include "protocol/codec.h"
#include "protocol/split_stream.h"
#include "tests/unit/learn/split/split_fixture.h"

namespace fedge::server {
namespace {

using learn::test::kSplitBlocks;
using learn::test::kSplitContext;
using learn::test::kSplitVocabulary;
using learn::test::SplitProblem;
using protocol::SplitKind;
using protocol::SplitValues;

constexpr ClientId kSplitClient(3);
constexpr RoundNumber kSplitRound(2);

learn::TrainingSpec split_training(bool kept = false, learn::CutEncoding codec = learn::CutEncoding::kFloat32,
                                   bool feedback = false) {
  learn::TrainingSpec spec;
  spec.optimizer = learn::OptimizerKind::kAdamW;
  spec.learning_rate = 0.01F;
  spec.batch_size = 12;
  spec.local_epochs = 2;
  spec.local_model = LocalModel::kSplit;
  spec.split = {.cut_ranks = 2, .keeps_targets = kept, .codec = codec, .feedback = feedback};
  return spec;
}

ParameterVector model_of(const SplitProblem& p) {
  ParameterVector values(p.model->layout());
  std::ranges::copy(p.parameters, values.values().begin());
  return values;
}

// A client's peer: its messages as bytes, in parts, to the server, and back.
class SplitWire final : public learn::UpperPeer {
 public:
  SplitWire(SplitServer& server, ClientId client) : server_(server), client_(client) {}

  Result<void> begin(const learn::SplitStart& start) override {
    steps_ = start.steps;
    return {};
  }
  Result<void> exchange(const learn::ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses) override {
    FEDGE_TRY(answer, ask(SplitKind::kActivations, piece, values));
    std::ranges::copy(answer.losses, losses.begin());
    return {};
  }
  Result<void> forward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) override {
    const auto answer = ask(SplitKind::kActivations, piece, values);
    return answer ? Result<void>() : Result<void>(answer.error());
  }
  Result<void> backward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) override {
    const auto answer = ask(SplitKind::kOutputGradients, piece, values);
    return answer ? Result<void>() : Result<void>(answer.error());
  }
  Result<void> end(std::uint64_t steps) override {
    ended = steps;
    return {};
  }

  // Called before each message; may change it.
  std::function<void(SplitValues&)> before;
  std::uint64_t ended = 0;
  std::size_t times = 1;  // each message is sent
  std::size_t messages = 0;

 private:
  Result<SplitValues> ask(SplitKind kind, const learn::ExchangedPiece& piece,
                          std::vector<std::byte>& values) {
    SplitValues message{.round = kSplitRound,
                        .kind = kind,
                        .step = piece.step,
                        .first = static_cast<std::uint32_t>(piece.place.first / kSplitContext),
                        .values = std::move(values),
                        .steps = steps_,
                        .total = static_cast<std::uint32_t>(piece.total),
                        .last = piece.last,
                        .sent = {piece.sent.of.begin(), piece.sent.of.end()},
                        .samples = {piece.samples.begin(), piece.samples.end()}};
    for (std::size_t s = 0; s < message.sent.size() && !piece.targets.empty(); ++s)
      for (std::size_t t = 0; t < message.sent[s]; ++t)
        message.targets.push_back(std::uint32_t{piece.targets[s * kSplitContext + t]} + 1);
    if (before) before(message);
    ++messages;
    Result<SplitValues> answer = Error{};
    for (std::size_t time = 0; time < times; ++time) {
      answer = server_.answer(client_, message);
      if (!answer) return answer;
    }
    // As protobuf says it.
    const std::string bytes = protocol::encode(protocol::Message(*answer));
    const auto decoded = protocol::decode<SplitValues>(std::as_bytes(std::span(bytes)));
    REQUIRE_MESSAGE(decoded, decoded.error().message);
    CHECK(*decoded == *answer);
    values = answer->values;
    return answer;
  }

  SplitServer& server_;
  ClientId client_;
  std::uint64_t steps_ = 0;
};

struct SplitTrained {
  std::vector<float> below;
  std::vector<float> above;
  std::optional<Error> fault;
};

SplitTrained train_split(const SplitProblem& p, const learn::TrainingSpec& spec, std::size_t cut,
                         SplitServer& server, SplitWire& wire, ClientId client = kSplitClient) {
  const SplitLayout layout = p.layout(2);
  const Coverage coverage = layout.below(cut);
  std::vector<float> parameters = p.parameters;
  learn::LowerHalf lower(wire, cut, spec.split);
  learn::Trainer(*p.model, spec)
      .train(parameters, p.data, p.samples, Rng(5 + client.value()),
             {.coverage = &coverage, .split = &lower, .round = kSplitRound});
  SplitTrained trained{.below = std::vector<float>(coverage.count()), .above = {}, .fault = lower.fault()};
  learn::gather(parameters, coverage, trained.below);
  if (trained.fault) return trained;
  auto above = server.end(client, kSplitRound, wire.ended);
  REQUIRE_MESSAGE(above, above.error().message);
  trained.above = std::move(*above);
  return trained;
}

// The same in one process.
SplitTrained both_halves(const SplitProblem& p, const learn::TrainingSpec& spec, std::size_t cut,
                         ClientId client = kSplitClient) {
  const SplitLayout layout = p.layout(2);
  const Coverage below = layout.below(cut);
  const Coverage above = layout.above(cut);
  std::vector<float> parameters = p.parameters;
  learn::UpperHalf upper(*p.model, spec);
  learn::LocalPeer peer(upper, layout, parameters, nullptr);
  learn::LowerHalf lower(peer, cut, spec.split);
  learn::Trainer(*p.model, spec)
      .train(parameters, p.data, p.samples, Rng(5 + client.value()),
             {.coverage = &below, .split = &lower, .round = kSplitRound});
  SplitTrained trained{
      .below = std::vector<float>(below.count()), .above = std::vector<float>(above.count()), .fault = {}};
  learn::gather(parameters, below, trained.below);
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= p.parameters[i];
  learn::gather(parameters, above, trained.above);
  return trained;
}

// What the server says of a client's first message if it is changed in this way.
std::string split_refusal(const std::function<void(SplitValues&)>& change,
                          const learn::TrainingSpec& spec = split_training(), std::size_t at = 0) {
  const SplitProblem p(true);
  SplitServer server(*p.model, spec, p.layout(2));
  server.take_model(model_of(p));
  server.begin(kSplitClient, kSplitRound, 2);
  SplitWire wire(server, kSplitClient);
  wire.before = [&](SplitValues& message) {
    if (wire.messages == at) change(message);
  };
  const SplitTrained trained = train_split(p, spec, 2, server, wire);
  return trained.fault ? trained.fault->message : "accepted";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "split server: over messages, with any cut, codec and shape, both halves are those of one process") {
  for (const bool llama : {true, false}) {
    const SplitProblem p(llama);
    for (const bool kept : {false, true})
      for (const bool int8 : {false, true}) {
        const auto spec =
            split_training(kept, int8 ? learn::CutEncoding::kInt8 : learn::CutEncoding::kFloat32, int8);
        SplitServer server(*p.model, spec, p.layout(2));
        server.take_model(model_of(p));
        for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
          CAPTURE(kept);
          CAPTURE(int8);
          CAPTURE(cut);
          server.begin(kSplitClient, kSplitRound, cut);
          SplitWire wire(server, kSplitClient);
          wire.times = cut;  // a message that comes again changes nothing
          const SplitTrained trained = train_split(p, spec, cut, server, wire);
          REQUIRE_FALSE(trained.fault);
          const SplitTrained alone = both_halves(p, spec, cut);
          CHECK(trained.below == alone.below);
          CHECK(trained.above == alone.above);
        }
      }
  }
}

TEST_CASE("split server: clients whose messages alternate train as if each were alone") {
  const SplitProblem p(true);
  for (const bool kept : {false, true}) {
    const auto spec = split_training(kept);
    SplitServer server(*p.model, spec, p.layout(2));
    server.take_model(model_of(p));
    // Each message of the first lets the second send one; the second runs on a trainer of its own, in a loop
    // that is continued from the first's messages.
    server.begin(ClientId(0), kSplitRound, 1);
    server.begin(ClientId(1), kSplitRound, 3);
    SplitWire second(server, ClientId(1));
    std::vector<SplitTrained> others;
    SplitWire first(server, ClientId(0));
    first.before = [&](SplitValues&) {
      if (first.messages % 4 == 1) others.push_back(train_split(p, spec, 3, server, second, ClientId(1)));
    };
    const SplitTrained one = train_split(p, spec, 1, server, first, ClientId(0));
    CHECK(one.below == both_halves(p, spec, 1, ClientId(0)).below);
    CHECK(one.above == both_halves(p, spec, 1, ClientId(0)).above);
    REQUIRE(others.size() > 2);
    for (const SplitTrained& other : others) CHECK(other.above == both_halves(p, spec, 3, ClientId(1)).above);
  }
}

TEST_CASE("split server: a client may begin again, and one without what it had trained must") {
  const SplitProblem p(true);
  const auto spec = split_training();
  SplitServer server(*p.model, spec, p.layout(2));
  server.take_model(model_of(p));
  server.begin(kSplitClient, kSplitRound, 2);
  SplitWire wire(server, kSplitClient);
  // The server forgets, as in a restart.
  wire.before = [&](SplitValues&) {
    if (wire.messages != 7) return;
    server.drop(kSplitClient);
    server.begin(kSplitClient, kSplitRound, 2);
  };
  const SplitTrained broken = train_split(p, spec, 2, server, wire);
  REQUIRE(broken.fault);
  CHECK(broken.fault->code == ErrorCode::kStale);
  SplitWire again(server, kSplitClient);
  const SplitTrained trained = train_split(p, spec, 2, server, again);
  CHECK(trained.above == both_halves(p, spec, 2).above);
  // The same task assigned again keeps what is trained; another round or cut does not.
  server.begin(kSplitClient, kSplitRound, 2);
  CHECK(server.end(kSplitClient, kSplitRound, again.ended));
  server.begin(kSplitClient, kSplitRound, 3);
  CHECK(server.end(kSplitClient, kSplitRound, again.ended).error().code == ErrorCode::kStale);
}

TEST_CASE("split server: only a complete training has a half") {
  const SplitProblem p(true);
  const auto spec = split_training();
  SplitServer server(*p.model, spec, p.layout(2));
  server.take_model(model_of(p));
  CHECK(server.end(kSplitClient, kSplitRound, 1).error().code == ErrorCode::kNotFound);
  server.begin(kSplitClient, kSplitRound, 2);
  CHECK(server.end(kSplitClient, kSplitRound, 1).error().code == ErrorCode::kStale);
  SplitWire wire(server, kSplitClient);
  wire.before = [&](SplitValues&) {
    // Within a batch.
    if (wire.messages == 4)
      CHECK(says(server.end(kSplitClient, kSplitRound, 1).error().message,
                 "the training ends after 1 steps, but has 1"));
    if (wire.messages == 3)
      CHECK(says(server.end(kSplitClient, kSplitRound, 2).error().message,
                 "the training ends after 2 steps, but has 1"));
  };
  CHECK_FALSE(train_split(p, spec, 2, server, wire).fault);
}

TEST_CASE("split server: messages that the task does not allow are refused, and say what is wrong") {
  CHECK(split_refusal([](SplitValues&) {}) == "accepted");
  CHECK(says(split_refusal([](SplitValues& m) { m.round = RoundNumber(9); }), "no task of round 9"));
  CHECK(says(split_refusal([](SplitValues& m) { m.kind = SplitKind::kGradients; }), "begin again"));
  CHECK(says(split_refusal([](SplitValues& m) { m.kind = SplitKind::kGradients; }, split_training(), 3),
             "a client does not send values of this kind"));
  CHECK(says(split_refusal([](SplitValues& m) { m.step = 1; }), "begin again"));
  CHECK(says(split_refusal([](SplitValues& m) { m.step = 5; }, split_training(), 3), "begin again"));
  CHECK(says(split_refusal([](SplitValues& m) { m.first = 7; }, split_training(), 1),
             "the sequences from 7 on, expected those from 5"));
  CHECK(says(split_refusal([](SplitValues& m) { m.values.pop_back(); }), "bytes, expected"));
  CHECK(says(split_refusal([](SplitValues& m) {
               m.sent.push_back(1);
               m.targets.push_back(1);
             }),
             "6 sequences, more than a piece or the batch has"));
  CHECK(
      says(split_refusal([](SplitValues& m) { m.sent[1] = kSplitContext + 1; }), "a sequence of 97 tokens"));
  CHECK(says(split_refusal([](SplitValues& m) { m.sent[1] = 0; }), "a sequence of 0 tokens"));
  CHECK(says(split_refusal([](SplitValues& m) { m.total = 0; }), "a batch with 0 targets"));
  CHECK(says(split_refusal([](SplitValues& m) { m.total = 4'000'000; }), "a batch with 4000000 targets"));
  CHECK(says(split_refusal([](SplitValues& m) { m.steps = 0; }), "a training of 0 steps"));
  CHECK(says(split_refusal([](SplitValues& m) { m.steps = 99; }, split_training(), 3),
             "a training of 99 steps"));
  CHECK(says(split_refusal([](SplitValues& m) { m.targets.clear(); }), "no targets"));
  CHECK(says(split_refusal([](SplitValues& m) { m.targets[0] = kSplitVocabulary + 1; }),
             "the target 23, but the vocabulary has 23 tokens"));
  CHECK(says(split_refusal([](SplitValues& m) { m.samples.assign(m.sent.size(), 1); }), "error feedback"));
  CHECK(says(split_refusal([](SplitValues& m) { m.targets.assign(1, 1); }, split_training(true)),
             "should stay on the client"));
  // Gradients of other sequences than the last activations.
  CHECK(says(split_refusal([](SplitValues& m) { m.first = 1; }, split_training(true), 1), "other sequences"));
  CHECK(says(split_refusal([](SplitValues& m) { m.kind = SplitKind::kActivations; }, split_training(true), 3),
             "activations, before the gradients of the last ones"));
  const float bad = std::numeric_limits<float>::quiet_NaN();
  const auto poison = [&](SplitValues& m) { std::memcpy(m.values.data() + 4 * 24 * 3, &bad, sizeof(bad)); };
  CHECK(says(split_refusal(poison), "not finite in token 3"));
  CHECK(says(split_refusal(poison, split_training(true), 1), "not finite in token 3"));
}

TEST_CASE("split server: the bytes of a message that it takes are those of a piece") {
  const SplitProblem p(true);
  const SplitServer server(*p.model, split_training(), p.layout(2));
  // Five sequences of 96 tokens of 24 floats.
  CHECK(server.most_bytes() == 5 * 96 * 24 * 4);
  const SplitServer small(*p.model, split_training(false, learn::CutEncoding::kInt8), p.layout(2));
  CHECK(small.most_bytes() == 5 * 96 * (24 + 4));
}

}  // namespace fedge::server
