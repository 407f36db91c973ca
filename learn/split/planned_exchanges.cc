#include "learn/split/planned_exchanges.h"

#include <algorithm>

#include "learn/split/split_model.h"

namespace fedge::learn {

PlannedExchanges::PlannedExchanges(const Task& task, ClientId client, RoundNumber round, double data_share,
                                   std::uint64_t max_steps)
    : task_(task),
      all_(task.samples_of(client)),
      order_(task.trained_on(client, data_share), task.spec().training.batch_size,
             task.training_rng(client, round)),
      steps_(order_.all().empty() ? 0 : task.spec().training.steps(order_.all().size())) {
  if (max_steps > 0) steps_ = std::min(steps_, max_steps);
}

std::optional<PlannedExchanges::Piece> PlannedExchanges::next() {
  if (taken_ == batch_.size()) {
    if (made_ == steps_) return std::nullopt;
    batch_ = order_.next();
    taken_ = 0;
    ++made_;
  }
  const TextInputs& text = task_.data().text;
  Piece piece{.step = made_ - 1, .first = static_cast<std::uint32_t>(taken_)};
  for (const std::uint32_t sample : batch_) piece.total += text.windows[sample].targets;
  const std::size_t most = task_.model().split()->sequences(task_.spec().training.batch_size);
  for (; taken_ < batch_.size() && piece.sent.size() < most; ++taken_) {
    const TextInputs::Window& window = text.windows[batch_[taken_]];
    piece.sent.push_back(window.targets);
    const auto at = std::lower_bound(all_.begin(), all_.end(), batch_[taken_]);
    piece.samples.push_back(static_cast<std::uint32_t>(at - all_.begin()));
    const auto first = text.tokens.begin() + window.start + 1;
    piece.targets.insert(piece.targets.end(), first, first + window.targets);
  }
  piece.last = taken_ == batch_.size();
  return piece;
}

}  // namespace fedge::learn
