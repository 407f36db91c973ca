// Split training: the two halves of a model, wherever it is cut, are the whole model, bit for bit.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "learn/submodel.h"
#include "tests/unit/learn/split/split_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using namespace fedge::learn::test;

namespace {

constexpr std::size_t kSplitBatch = 12;  // three pieces

TrainingSpec split_training(OptimizerKind optimizer, float momentum, bool keeps_targets) {
  TrainingSpec spec;
  spec.optimizer = optimizer;
  spec.momentum = momentum;
  spec.learning_rate = optimizer == OptimizerKind::kAdamW ? 0.01F : 0.5F;
  spec.weight_decay = 0.01F;
  spec.batch_size = kSplitBatch;
  spec.local_epochs = 2;
  spec.local_model = LocalModel::kSplit;
  spec.split.keeps_targets = keeps_targets;
  spec.schedule = {.cosine = true, .warmup = 0.1, .final = 0.2, .rounds = 3};
  return spec;
}

struct SplitTrained {
  std::vector<float> parameters;
  TrainingResult result;
};

SplitTrained train_whole(const SplitProblem& p, const TrainingSpec& spec, const Coverage& coverage) {
  SplitTrained trained{p.parameters, {}};
  trained.result = Trainer(*p.model, spec)
                       .train(trained.parameters, p.data, p.samples, Rng(5),
                              {.coverage = &coverage, .round = RoundNumber(2)});
  return trained;
}

SplitTrained train_split(const SplitProblem& p, const TrainingSpec& spec, std::size_t cut) {
  SplitTrained trained{p.parameters, {}};
  const SplitLayout layout = p.layout(spec.split.cut_ranks);
  const Coverage below = layout.below(cut);
  UpperHalf upper(*p.model, spec);
  LocalPeer peer(upper, layout, trained.parameters, nullptr);
  LowerHalf lower(peer, cut, spec.split);
  trained.result = Trainer(*p.model, spec)
                       .train(trained.parameters, p.data, p.samples, Rng(5),
                              {.coverage = &below, .split = &lower, .round = RoundNumber(2)});
  CHECK_FALSE(lower.fault());
  return trained;
}

// Records what a server sees of a client, and answers with its half.
class Watched : public UpperPeer {
 public:
  Watched(UpperPeer& peer, std::size_t fails_at) : peer_(peer), fails_at_(fails_at) {}
  Result<void> begin(const SplitStart& start) override {
    steps = start.steps;
    return peer_.begin(start);
  }
  Result<void> exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses) override {
    return seen(piece) ? peer_.exchange(piece, values, losses) : gone();
  }
  Result<void> forward(const ExchangedPiece& piece, std::vector<std::byte>& values) override {
    return seen(piece) ? peer_.forward(piece, values) : gone();
  }
  Result<void> backward(const ExchangedPiece& piece, std::vector<std::byte>& values) override {
    return seen(piece) ? peer_.backward(piece, values) : gone();
  }
  Result<void> end(std::uint64_t made) override {
    ended = made;
    return peer_.end(made);
  }

  std::uint64_t steps = 0;
  std::size_t pieces = 0;
  std::size_t targets = 0;
  std::uint64_t ended = 0;

 private:
  static Result<void> gone() { return Error{ErrorCode::kUnavailable, "the server is gone"}; }
  bool seen(const ExchangedPiece& piece) {
    targets += piece.targets.size();
    return pieces++ < fails_at_;
  }
  UpperPeer& peer_;
  std::size_t fails_at_;
};

// A training that is cut after two blocks, with a watched server that fails after some pieces.
struct WatchedTraining {
  WatchedTraining(const SplitProblem& of, bool kept, std::size_t fails_at)
      : problem(of),
        spec(split_training(OptimizerKind::kSgd, 0, kept)),
        parameters(of.parameters),
        layout(of.layout()),
        below(layout.below(2)),
        upper(*of.model, spec),
        local(upper, layout, parameters, nullptr),
        peer(local, fails_at),
        lower(peer, 2, spec.split) {}

  // `most`: of the steps; 0: all.
  TrainingResult run(std::uint64_t most) {
    return Trainer(*problem.model, spec)
        .train(parameters, problem.data, problem.samples, Rng(5),
               {.coverage = &below, .split = &lower, .max_steps = most});
  }

  const SplitProblem& problem;
  TrainingSpec spec;
  std::vector<float> parameters;
  SplitLayout layout;
  Coverage below;
  UpperHalf upper;
  LocalPeer local;
  Watched peer;
  LowerHalf lower;
};

// Answers a client's pieces with a half that serves others as well; lets them train between two pieces.
class InTurn final : public UpperPeer {
 public:
  InTurn(UpperHalf& upper, const SplitLayout& layout, const std::vector<float>& model,
         std::vector<float>& shared)
      : upper_(upper), layout_(layout), model_(model), shared_(shared) {}
  Result<void> begin(const SplitStart& start) override {
    state = upper_.begin(start, layout_, model_);
    return {};
  }
  Result<void> exchange(const ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses) override {
    if (meanwhile) meanwhile(piece);
    upper_.enter(state, shared_, nullptr);
    auto done = upper_.exchange(piece, values, losses);
    upper_.leave(state);
    return done;
  }
  Result<void> forward(const ExchangedPiece&, std::vector<std::byte>&) override { return {}; }
  Result<void> backward(const ExchangedPiece&, std::vector<std::byte>&) override { return {}; }
  Result<void> end(std::uint64_t) override { return {}; }

  SplitState state;
  std::function<void(const ExchangedPiece&)> meanwhile;

 private:
  UpperHalf& upper_;
  const SplitLayout& layout_;
  const std::vector<float>& model_;
  std::vector<float>& shared_;
};

// Trains below each cut with NaN for all parameters that a client does not read.
void check_what_is_read(const SplitProblem& p, bool kept) {
  const TrainingSpec spec = split_training(OptimizerKind::kSgd, 0, kept);
  for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
    const SplitTrained expected = train_split(p, spec, cut);
    const SplitLayout layout = p.layout();
    const Coverage below = layout.below(cut);
    std::vector<float> parameters(p.parameters.size(), std::numeric_limits<float>::quiet_NaN());
    const Coverage read = layout.read_below(cut, kept);
    for (const Range& range : read.ranges())
      std::copy_n(p.parameters.data() + range.begin, range.size(), parameters.data() + range.begin);
    std::vector<float> elsewhere = p.parameters;  // of the server
    UpperHalf upper(*p.model, spec);
    LocalPeer peer(upper, layout, elsewhere, nullptr);
    LowerHalf lower(peer, cut, spec.split);
    Trainer(*p.model, spec)
        .train(parameters, p.data, p.samples, Rng(5),
               {.coverage = &below, .split = &lower, .round = RoundNumber(2)});
    for (const Range& range : below.ranges())
      CHECK(std::equal(parameters.data() + range.begin, parameters.data() + range.end,
                       expected.parameters.data() + range.begin));
    const Coverage above = layout.above(cut);
    for (const Range& range : above.ranges())
      CHECK(std::equal(elsewhere.data() + range.begin, elsewhere.data() + range.end,
                       expected.parameters.data() + range.begin));
  }
}

}  // namespace

TEST_CASE("split: two halves, cut behind any block, train the whole model bit for bit") {
  for (const bool llama : {true, false}) {
    const SplitProblem p(llama);
    for (const bool kept : {false, true})
      for (const auto& [optimizer, momentum] : {std::pair{OptimizerKind::kSgd, 0.0F},
                                                {OptimizerKind::kSgd, 0.9F},
                                                {OptimizerKind::kAdamW, 0.0F}}) {
        TrainingSpec spec = split_training(optimizer, momentum, kept);
        spec.recompute = llama && kept;
        const SplitTrained expected = train_whole(p, spec, p.adapters());
        REQUIRE(expected.parameters != p.parameters);
        for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
          CAPTURE(llama);
          CAPTURE(kept);
          CAPTURE(cut);
          const SplitTrained halves = train_split(p, spec, cut);
          CHECK(halves.parameters == expected.parameters);
          CHECK(halves.result.steps == 6);
          CHECK(halves.result.mean_loss == expected.result.mean_loss);
          CHECK(halves.result.rms_loss == expected.result.rms_loss);
        }
      }
  }
}

TEST_CASE(
    "split: at the cut, only the first ranks are trained, in the client's last block and the server's "
    "first") {
  const SplitProblem p(true);
  TrainingSpec spec = split_training(OptimizerKind::kSgd, 0, false);
  spec.split.cut_ranks = 2;
  const AdapterLayout& shape = p.model->adapters()->shape();
  for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
    CAPTURE(cut);
    const SplitLayout layout = p.layout(2);
    const SplitTrained halves = train_split(p, spec, cut);
    CHECK(halves.parameters == train_whole(p, spec, layout.below(cut).unite(layout.above(cut))).parameters);
    for (const AdaptedMatrix& matrix : shape.matrices) {
      const std::size_t block = p.model->layout()->tensor_at(matrix.weight).layer;
      for (std::size_t rank = 0; rank < kSplitRank; ++rank)
        for (const auto& [place, size] : {std::pair{matrix.a, matrix.in}, {matrix.b, matrix.out}}) {
          const std::size_t at = shape.offset + rank * shape.row + place;
          const bool same = std::equal(halves.parameters.data() + at, halves.parameters.data() + at + size,
                                       p.parameters.data() + at);
          CHECK(same == ((block == cut || block == cut + 1) && rank >= 2));
        }
    }
  }
}

TEST_CASE("split: both halves have every adapter once, and the client's tells the cut") {
  const SplitProblem p(true);
  const SplitLayout all = p.layout();
  REQUIRE(all.blocks() == kSplitBlocks);
  for (std::size_t cut = 1; cut <= kSplitBlocks; ++cut) {
    CHECK(all.below(cut).intersect(all.above(cut)).empty());
    CHECK(all.below(cut).unite(all.above(cut)) == p.adapters());
    CHECK(all.cut_of(all.below(cut)) == cut);
    for (const std::size_t ranks : {1U, 3U}) {
      const SplitLayout few = p.layout(ranks);
      CHECK(few.cut_of(few.below(cut)) == cut);
      CHECK(few.cut_of(all.below(cut)) == 0);
      CHECK(all.below(cut).contains(few.below(cut)));
      for (const bool head : {false, true}) CHECK(few.read_below(cut, head) == all.read_below(cut, head));
      CHECK(few.read_above(cut) == all.above(cut));
      std::vector<float> below(few.below(cut).count()), above(few.above(cut).count());
      std::vector<float> joined(below.size() + above.size()), packed(joined.size());
      gather(p.parameters, few.below(cut), below);
      gather(p.parameters, few.above(cut), above);
      gather(p.parameters, few.both(cut), packed);
      few.join(cut, below, above, joined);
      CHECK(joined == packed);
    }
  }
  CHECK(all.above(kSplitBlocks).empty());
  CHECK(all.cut_of(p.adapters()) == kSplitBlocks);
  CHECK(all.cut_of({}) == 0);
  const auto refused = SplitLayout::of(*p.model->layout(), p.model->adapters()->shape(), kSplitRank + 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "rank 6 at the cut is above model.adapter.rank, which is 5");
}

TEST_CASE(
    "split: a client needs nothing of the model but what lies below its cut, and the head for its loss") {
  for (const bool llama : {true, false})
    for (const bool kept : {false, true}) {
      CAPTURE(llama);
      CAPTURE(kept);
      check_what_is_read(SplitProblem(llama), kept);
    }
}

TEST_CASE("split: one server trains clients with other cuts in turn, each as if it were alone") {
  const SplitProblem p(true);
  TrainingSpec spec = split_training(OptimizerKind::kAdamW, 0, false);
  spec.split.cut_ranks = 2;
  const SplitLayout layout = p.layout(2);
  UpperHalf upper(*p.model, spec);
  std::vector<float> shared = p.parameters;
  // Answers the client's pieces with the shared half; between two of them it lets others train.
  const auto train = [&](InTurn& peer, std::size_t cut, std::vector<float>& parameters) {
    const Coverage below = layout.below(cut);
    LowerHalf lower(peer, cut, spec.split);
    Trainer(*p.model, spec)
        .train(parameters, p.data, p.samples, Rng(5),
               {.coverage = &below, .split = &lower, .round = RoundNumber(2)});
  };
  InTurn first(upper, layout, p.parameters, shared), second(upper, layout, p.parameters, shared);
  std::vector<float> a = p.parameters, b = p.parameters;
  // Between two pieces of one batch.
  first.meanwhile = [&](const ExchangedPiece& piece) {
    if (piece.step != 1 || piece.place.first == 0 || std::exchange(first.meanwhile, nullptr) == nullptr)
      return;
    train(second, 1, b);
  };
  train(first, 3, a);
  for (const auto& [cut, peer, client] : {std::tuple{3UL, &first, &a}, {1UL, &second, &b}}) {
    const SplitTrained alone = train_split(p, spec, cut);
    CAPTURE(cut);
    const Coverage below = layout.below(cut);
    for (const Range& range : below.ranges())
      CHECK(std::equal(client->data() + range.begin, client->data() + range.end,
                       alone.parameters.data() + range.begin));
    std::vector<float> values(peer->state.held.count());
    gather(alone.parameters, peer->state.held, values);
    CHECK(peer->state.values == values);
  }
}

TEST_CASE("split: the server sees the targets only if they are sent, and how many steps there are") {
  const SplitProblem p(true);
  for (const bool kept : {false, true}) {
    WatchedTraining training(p, kept, 1000);
    training.run(4);
    CHECK(training.peer.steps == 6);
    CHECK(training.peer.ended == 4);
    // One of the four batches is short: it has 6 sequences instead of 12, five to a piece.
    CHECK(training.peer.pieces == (3 + 3 + 2 + 3) * (kept ? 2 : 1));
    CHECK(training.peer.targets == (kept ? 0 : (12 + 12 + 6 + 12) * kSplitContext));
  }
}

TEST_CASE("split: a server that goes away ends the training, with its reason") {
  const SplitProblem p(false);
  for (const bool kept : {false, true}) {
    WatchedTraining training(p, kept, 7);
    const TrainingResult result = training.run(0);
    REQUIRE(training.lower.fault().has_value());
    CHECK(training.lower.fault()->message == "the server is gone");
    CHECK(training.peer.pieces == 8);
    CHECK(training.peer.ended == 0);
    CHECK(result.steps == (kept ? 1 : 2));
  }
}
