#include "learn/split/lower_half.h"

#include <utility>

#include "learn/models/loss.h"
#include "learn/split/distance_correlation.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kComparedTokens = 256;

// The values of the first tokens that are sent.
std::vector<float> some_tokens(std::span<const float> values, const SentTokens& sent, std::size_t width) {
  std::vector<float> some;
  for (std::size_t s = 0; s < sent.of.size(); ++s)
    for (std::size_t t = 0; t < sent.of[s] && some.size() < kComparedTokens * width; ++t) {
      const auto token = values.subspan((s * sent.length + t) * width, width);
      some.insert(some.end(), token.begin(), token.end());
    }
  return some;
}

}  // namespace

void LowerHalf::begin(const SplitStart& start) {
  fault_.reset();
  if (const auto begun = peer_.begin(start); !begun) fault_ = begun.error();
}

void LowerHalf::end(std::uint64_t steps) {
  if (fault_) return;
  if (const auto ended = peer_.end(steps); !ended) fault_ = ended.error();
}

BatchLoss LowerHalf::run(const SplitModel& model, std::span<const float> parameters, const Batch& batch,
                         const Step& step, std::span<float> gradient, Workspace& workspace) {
  const std::size_t length = batch.tokens.size() / step.samples.size();
  const std::vector<std::uint32_t> sent = sent_tokens(batch.targets, length);
  TokenLoss loss(batch.targets, length);
  model.for_each_piece(batch, cut_, workspace, [&](const SplitPiece& place) {
    const std::size_t first = place.first / length;
    const std::size_t count = place.rows / length;
    const ExchangedPiece piece{
        .step = step.number,
        .last = place.first + place.rows == batch.tokens.size(),
        .place = place,
        .sent = {std::span(sent).subspan(first, count), length},
        .targets = batch.targets.subspan(place.first, place.rows),
        .total = loss.total(),
        .samples = spec_.feedback ? step.samples.subspan(first, count) : std::span<const std::uint32_t>()};
    const auto done =
        run_piece(model, parameters, batch, piece, loss.losses().subspan(first, count), gradient, workspace);
    if (!done) fault_ = done.error();
    return done.has_value();
  });
  return loss.result();
}

void LowerHalf::embed(const SplitModel& model, std::span<const float> parameters, const Batch& batch,
                      const ExchangedPiece& piece, Workspace& workspace) {
  std::vector<float> all(piece.place.rows * model.width());
  model.embed(parameters, batch, piece.place, all, workspace);
  embeddings_ = some_tokens(all, piece.sent, model.width());
}

void LowerHalf::compare(const SentTokens& sent, std::span<const float> activations, std::size_t width) {
  if (embeddings_.empty()) return;
  correlation_ =
      distance_correlation(embeddings_, some_tokens(activations, sent, width), embeddings_.size() / width);
}

Result<void> LowerHalf::run_piece(const SplitModel& model, std::span<const float> parameters,
                                  const Batch& batch, ExchangedPiece piece, std::span<double> losses,
                                  std::span<float> gradient, Workspace& workspace) {
  const std::size_t floats = piece.place.rows * model.width();
  if (values_.size() < floats) values_ = AlignedBuffer<float>(floats);
  const std::span<float> values = values_.span().first(floats);
  const CutCodec codec(spec_.codec, model.width());
  const bool first = piece.step == 0 && piece.place.first == 0;
  if (first) embed(model, parameters, batch, piece, workspace);
  model.lower_forward(parameters, batch, piece.place, values, workspace);
  if (first) compare(piece.sent, values, model.width());
  if (spec_.feedback)
    feedback_.encode(codec, values, piece.sent, piece.samples, sent_);
  else
    codec.encode(values, piece.sent, sent_);
  if (spec_.keeps_targets) {
    const auto targets = std::exchange(piece.targets, {});
    FEDGE_TRY_VOID(peer_.forward(piece, sent_));
    FEDGE_TRY_VOID(codec.decode(sent_, piece.sent, values));
    model.head(parameters, piece.place, targets, piece.total, values, losses, workspace);
    codec.encode(values, piece.sent, sent_);
    FEDGE_TRY_VOID(peer_.backward(piece, sent_));
  } else {
    FEDGE_TRY_VOID(peer_.exchange(piece, sent_, losses));
  }
  FEDGE_TRY_VOID(codec.decode(sent_, piece.sent, values));
  model.lower_backward(parameters, piece.place, values, gradient, workspace);
  return {};
}

}  // namespace fedge::learn
